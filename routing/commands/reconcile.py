"""``sbroute reconcile``: compare the routes with SQL Server's actions."""

from __future__ import annotations

import argparse

from routing.commands import command_context as context
from routing.errors import EXIT_DONE, EXIT_FOUND
from routing.tables.arrow_rows import leave_pandas_out


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "reconcile",
        parents=[common],
        help="whether SQL Server followed the routes",
        description="Compare SQL Server's decisions with the routes, and list the likely causes of differences."
        " It reads tables.observed_routing, which import fills, and replaces the table"
        " output.reconciliation if the configuration names it.",
        example="sbroute reconcile --config conf/mine.yaml --fail-under 50",
    )
    context.add_config(command)
    command.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=_percent,
        help="exit code 1 if less than this percentage of the observed episodes is confirmed or compatible",
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Reconcile, write the table, and print the summary."""
    leave_pandas_out()
    from routing.views.reconcile.reconciling import as_json, make_document, reconcile

    settings = context.load(options)
    opening = context.open_by_choice(settings, options, console)
    console.command_progress.text = "the table of the reconciliation is unchanged or complete (start it again)"
    with context.steps(console) as progress:
        done = reconcile(settings, opener=opening, progress=progress, with_rows=False)
    for note in done.notes:
        console.note(f"note: {note}", "warning")
    notes = [*context.tell_unfinished(opening, console, settings), *done.notes]
    context.print_result(options, console, lambda: as_json(done), lambda: make_document(done), notes)
    fails = options.fail_under is not None and done.percent is not None and done.percent < options.fail_under
    return EXIT_FOUND if fails else EXIT_DONE


def _percent(text: str) -> float:
    """Return a share of a hundred, for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return number
