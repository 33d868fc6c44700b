"""``sbroute export``: run the script of ``import queries`` on servers, and write a folder of exports."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from routing.commands.command_context import Console, Subparsers, print_result
from routing.commands.server_options import add_servers, read_access, read_servers, tell_servers
from routing.document import Cell, DataTable, Document, Paragraph, make_columns
from routing.errors import EXIT_DONE, EXIT_FAILED
from routing.render.wording import count, write_json

if TYPE_CHECKING:
    from routing.importing.servers.server_exports import ServersExport


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "export",
        parents=[common],
        help="export the views of running servers into a folder (experimental)",
        description="Run the script of `sbroute import queries` on servers, several at once, and write each"
        " result to a file of a folder, for check, lint and import catalog. It only reads. Experimental.",
        example="sbroute export --server HUB --server SHOP --out exports",
    )
    add_servers(command, required=True)
    command.add_argument(
        "--out", metavar="FOLDER", required=True, help="the folder for a file NAME.csv of each server"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Read the servers and print a summary."""
    done = read_servers(options, read_access(options), options.out, console)
    done.check_any()
    print_result(options, console, lambda: _write(done), lambda: _describe(done))
    tell_servers(done, console)
    return EXIT_FAILED if done.unread else EXIT_DONE


def _write(done: ServersExport) -> str:
    return write_json({"servers": [export.as_json() for export in done.exports], "notes": done.notes})


def _describe(done: ServersExport) -> Document:
    read = [export for export in done.exports if export.file is not None]
    rows: list[tuple[Cell, ...]] = [
        (export.server, export.instance_name or "", export.sets, export.rows, str(export.file)) for export in read
    ]
    numbers = ("result sets", "rows")
    return [
        Paragraph(f"{count(len(read), 'server')} exported, {len(done.exports) - len(read)} not."),
        DataTable(make_columns(("server", "instance", *numbers, "file"), numbers), rows, "Exported"),
    ]
