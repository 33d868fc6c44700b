"""``sbroute import``: catalog exports, T-SQL scripts and Extended Events into the input tables."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from routing.commands import command_context as context
from routing.commands import shared_arguments
from routing.commands.server_options import add_script_options, script_of
from routing.document import Cell, DataTable, Document, Paragraph, Tone, TonedText, Words, make_columns
from routing.errors import EXIT_DONE, EnvironmentFault
from routing.render.wording import count, count_files

if TYPE_CHECKING:
    from routing.importing.covered_rows import ImportResult


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command, its kinds and their options."""
    command = commands.add_parser(
        "import",
        help="load exports, T-SQL scripts and Extended Events into the tables",
        description="Load exports of catalog views, T-SQL scripts and Extended Events into the input tables."
        " docs/how-to/import.md shows how.",
        example="sbroute import catalog conf/examples/exports --config conf/examples/import.yaml",
    )
    kinds = command.add_subparsers(dest="kind", metavar="KIND", required=True, parser_class=type(command))
    _add_catalog(kinds, common)
    _add_tsql(kinds, common)
    _add_events(kinds, common)
    queries = kinds.add_parser(
        "queries",
        parents=[common],
        help="print the T-SQL script that exports the views from an instance",
        description="Print the T-SQL script that exports all views from an instance, for sqlcmd or SSMS. It only"
        " reads. With --events print scripts that also create an event session.",
        example="sbroute import queries > queries.sql",
    )
    queries.add_argument(
        "--events", action="store_true", help="print the scripts that record and read the broker's events"
    )
    add_script_options(queries)


def _add_catalog(kinds: context.Subparsers, common: argparse.ArgumentParser) -> None:
    kind = kinds.add_parser(
        "catalog",
        parents=[common],
        help="exports of catalog views: a snapshot of the databases that they cover",
        description="Import exports of catalog views (CSV, JSON, Parquet): the state of an instance at one time.",
        example="sbroute import catalog conf/examples/exports --config conf/examples/import.yaml",
    )
    kind.add_argument(
        "sources", metavar="DIR|FILE", nargs="+", help="exports, or folders of them; URIs are read by Spark"
    )
    context.add_config(kind)
    of_files = kind.add_argument_group("facts missing in the files")
    shared_arguments.add_options(of_files, has_defaults=False)
    of_files.add_argument("--view", metavar="NAME", help="the view of a single file, if its name does not show it")
    _add_unfinished(kind)


def _add_tsql(kinds: context.Subparsers, common: argparse.ArgumentParser) -> None:
    kind = kinds.add_parser(
        "tsql",
        parents=[common],
        help="T-SQL scripts: changes to the tables",
        description="Import the changes of T-SQL scripts to routes, services, the Service Broker endpoint and"
        " the brokers of databases. The command reads scripts and never runs them.",
        example="sbroute import tsql conf/examples/scripts/hub.sql --instance HUB"
        " --config conf/examples/import.yaml",
    )
    kind.add_argument(
        "sources", metavar="FILE", nargs="+", help="scripts, applied in this order; URIs are read by Spark"
    )
    context.add_config(kind)
    of_scripts = kind.add_argument_group("facts missing in the scripts")
    of_scripts.add_argument(
        "--instance", metavar="NAME", required=True, help="the instance that the scripts are for"
    )
    of_scripts.add_argument("--database", metavar="NAME", help="the database in use until a script says USE")
    of_scripts.add_argument(
        "--scripted-at", metavar="TIME", help="the scripts' time, from which LIFETIME counts (default: the file's)"
    )
    of_scripts.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="the time zone of --scripted-at if it has none, such as Europe/Berlin or +02:00 (UTC)",
    )
    shared_arguments.add_encoding(of_scripts)
    context.add_variables(of_scripts)
    of_scripts.add_argument(
        "--snapshot", action="store_true", help="close the other routes of the databases in the scripts"
    )
    _add_unfinished(kind)


def _add_events(kinds: context.Subparsers, common: argparse.ArgumentParser) -> None:
    kind = kinds.add_parser(
        "events",
        parents=[common],
        help="Extended Events: what SQL Server did with messages",
        description="Import SQL Server's actions on messages from the broker's Extended Events: rows of"
        " sys.fn_xe_file_target_read_file (CSV, JSON lines, Parquet) and XML files.",
        example="sbroute import events xe --config conf/mine.yaml",
    )
    kind.add_argument(
        "sources",
        metavar="DIR|FILE",
        nargs="+",
        help="files of events, or folders of them; URIs are read by Spark",
    )
    context.add_config(kind)
    kind.add_argument("--instance", metavar="NAME", help="the instance of rows without a column instance_name")
    _add_unfinished(kind)


def _add_unfinished(kind: argparse.ArgumentParser) -> None:
    written = kind.add_argument_group("what to write")
    written.add_argument("--dry-run", action="store_true", help="only print what would be written")
    written.add_argument(
        "--drop-unfinished",
        action="store_true",
        help="discard an interrupted import instead of completing it, and list what it wrote",
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Read the sources, import them into the tables, and print the result."""
    if options.kind == "queries":
        from routing.importing.catalog.query_script import queries

        script = queries(of_events=True) if options.events else script_of(options)
        console.result(script.rstrip("\n"))
        return EXIT_DONE
    if find_spec("sqlglot") is None:
        raise EnvironmentFault.no_package("sqlglot", "import")
    done = _BY_KIND[options.kind](options, console)
    if options.format == "json":
        console.result(json.dumps(done.as_json()))
    else:
        console.document(describe_import(done))
        context.tell_sentences(console, done.rejected, done.notes)
    noun = "row" if done.counted == "rows" else "statement"
    rejected = sum(numbers[1] for numbers in done.rows_read.values())
    console.note(count_files(done.files_read, done.files_skipped, rejected, noun))
    return EXIT_DONE


def _catalog(options: argparse.Namespace, console: context.Console) -> ImportResult:
    from routing.importing.catalog import read_export

    endpoint_addresses, times = shared_arguments.addresses(options), shared_arguments.times(options)
    stand_ins = shared_arguments.stand_ins(options, times, console)
    settings = context.load(options)
    from routing.importing.fetching import reach_by
    from routing.importing.from_catalog import import_export

    opening = context.opener(settings, options, console)
    # Before tables are opened, so that unreadable files are reported at once.
    with console.during("reading the exports"):
        export = read_export(options.sources, stand_ins, options.view, times, reach_by(opening))

    done = _import(
        options, console, partial(import_export, opening, settings, export, addresses=endpoint_addresses)
    )
    return replace(done, files_read=export.files_read, files_skipped=export.files_skipped)


def _tsql(options: argparse.Namespace, console: context.Console) -> ImportResult:
    values = context.variables(options.variables)
    from routing.importing.catalog.cell_values import time_zone

    zone = None if options.time_zone is None else time_zone(options.time_zone)
    at = shared_arguments.moment_on_clock(options.scripted_at, "--scripted-at", zone, console)
    settings = context.load(options)
    from routing.importing.fetching import reach_by
    from routing.importing.script_rows import read_scripts

    opening = context.opener(settings, options, console)
    with console.during("reading the scripts"):
        scripts = read_scripts(
            options.sources,
            instance=options.instance,
            database=options.database,
            scripted_at=at,
            variables=values,
            reach=reach_by(opening),
            note=console.note,
        )
    from routing.importing.from_tsql import import_scripts

    run_import = partial(
        import_scripts, opening, settings, scripts, instance=options.instance, snapshot=options.snapshot
    )
    return replace(_import(options, console, run_import), files_read=len(scripts))


def _events(options: argparse.Namespace, console: context.Console) -> ImportResult:
    settings = context.load(options)
    from routing.importing.fetching import reach_by
    from routing.importing.from_events import import_events

    opening = context.opener(settings, options, console)
    run_import = partial(
        import_events, opening, settings, options.sources, reach_by(opening), instance=options.instance
    )
    return _import(options, console, run_import)


def _import(
    options: argparse.Namespace, console: context.Console, run_import: Callable[..., ImportResult]
) -> ImportResult:
    """Import into the tables, with the options that every kind has."""
    if not options.dry_run:
        console.command_progress.text = "committed changes stay (the next import completes the rest)"
    with context.steps(console) as progress:
        return run_import(
            now=datetime.now(timezone.utc),
            dry_run=options.dry_run,
            drop_unfinished=options.drop_unfinished,
            progress=progress,
        )


_BY_KIND = {"catalog": _catalog, "events": _events, "tsql": _tsql}


# The output of an import.


def describe_import(imported: ImportResult) -> Document:
    """Describe the rows that an import read and wrote. Rejected rows are printed separately."""
    read = [(name, *numbers) for name, numbers in imported.rows_read.items()]
    written: list[tuple[Cell, ...]] = [
        (table, *(counts[kind] for kind in imported.kinds))
        for table, counts in imported.written.items()
        if counts.total()
    ]
    unit, source = ("rows", "view") if imported.counted == "rows" else ("statements", "script")
    numbers = (unit, "of them rejected", "of them left out")
    done = "Rows to be written (this was a dry run)" if imported.is_dry_run else "Rows written"
    return [
        Paragraph(_say_written(imported)),
        Paragraph(_say_read(imported)),
        DataTable(make_columns(("table", *imported.kinds), imported.kinds), written, done),
        DataTable(make_columns((source, *numbers), numbers), read, f"{unit.capitalize()} read"),
    ]


def _say_written(imported: ImportResult) -> str:
    totals: Counter[str] = sum(imported.written.values(), Counter())
    phrase = ", ".join(f"{totals[kind]:,} {kind}" for kind in imported.kinds[:-1] if totals[kind])
    why = ": the tables already have all of it" if totals["unchanged"] else ""
    if imported.is_dry_run:
        return f"This was a dry run. Rows that an import would write: {phrase or 'none'}."
    return f"Rows written: {phrase}." if phrase else f"Nothing was written{why}."


def _say_read(imported: ImportResult) -> Words:
    read, rejected, left_out = (sum(row[at] for row in imported.rows_read.values()) for at in range(3))
    noun = "row" if imported.counted == "rows" else "statement"
    rejected_phrase = f"{rejected:,} rejected"
    left_out_text = f", {left_out:,} left out" if left_out else ""
    return (
        f"{count(read, noun)} read, ",
        TonedText(rejected_phrase, Tone.BAD) if rejected else rejected_phrase,
        f"{left_out_text}.",
    )
