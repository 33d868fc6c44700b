"""``sbroute runs``: the recorded runs, or one with its slow stages."""

from __future__ import annotations

import argparse
import json

from routing.commands import command_context as context
from routing.errors import EXIT_DONE, OutputError
from routing.render.wording import write_json

_SHOWN = 20


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "runs",
        parents=[common],
        help="list the runs with their counts and durations",
        description="List the recorded runs, newest first, or show one with its stages, versions and settings.",
        example="sbroute runs --config sbroute-demo/demo.yaml --limit 5",
    )
    command.add_argument("run", metavar="RUN", nargs="?", help="one run: its run_id or a unique prefix")
    context.add_config(command)
    command.add_argument(
        "--limit",
        metavar="N",
        type=context.at_least_one,
        default=_SHOWN,
        help=f"the number of runs to list (default: {_SHOWN})",
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Print the list, or the one run."""
    settings = context.load(options)
    from routing.delta.counted_runs import open_runs, plain_settings
    from routing.views import run_documents

    location = settings.output["runs"]
    recorded = open_runs(context.opener(settings, options, console), location)
    if recorded is None:
        raise OutputError.no_runs(str(location))
    if options.run is None:
        rows = run_documents.read_runs(recorded, options.limit + 1).rows
        shown, are_more = rows[: options.limit], len(rows) > options.limit
        context.print_result(
            options,
            console,
            lambda: write_json({"runs": shown, "more": are_more}),
            lambda: run_documents.make_run_list(shown, are_more=are_more),
        )
        return EXIT_DONE
    [run_row] = run_documents.find_run(recorded, options.run, str(location))
    row = {**run_row, "settings": json.dumps(plain_settings(run_row["settings"]), sort_keys=True)}
    context.print_result(options, console, lambda: write_json(row), lambda: run_documents.describe_run(row))
    return EXIT_DONE
