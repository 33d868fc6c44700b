"""``sbroute diff``: compare the decisions on messages before and after a change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from routing.commands import command_context as context
from routing.commands import shared_arguments
from routing.config import Config
from routing.errors import EXIT_DONE, EXIT_FOUND, ContractError
from routing.render.wording import count_files
from routing.tables.arrow_rows import leave_pandas_out

if TYPE_CHECKING:
    from routing.cases.compared_tables import Against

_OF_SCRIPTS = ("instance", "database", "variables", "encoding")


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "diff",
        parents=[common],
        help="which messages a change moves, and which it breaks",
        description="Show what a change does to the messages before you make it: which messages change, at their"
        " first hop or where they end, which get worse, which routes differ, and which lint findings appear or"
        " disappear. The change is a script, another configuration, older versions of the tables or another time.",
        example="sbroute diff --config sbroute-demo/demo.yaml --with-script conf/examples/labels.sql"
        " --instance depot-east",
    )
    context.add_config(command)
    compared = command.add_argument_group("what to compare with")
    choices = compared.add_mutually_exclusive_group(required=True)
    choices.add_argument("--against", metavar="FILE", help="after: with the tables of another configuration")
    choices.add_argument(
        "--against-version",
        metavar="N|KEY=N",
        action="append",
        help="before: with the table routes, or another one, at an older version (repeatable)",
    )
    choices.add_argument(
        "--against-time", metavar="TIME", help="after: the same tables as of this time (ISO 8601)"
    )
    choices.add_argument(
        "--with-script", metavar="FILE", nargs="+", help="after: as if these T-SQL scripts had run"
    )
    of_scripts = command.add_argument_group("facts missing in the scripts")
    of_scripts.add_argument(
        "--instance",
        metavar="NAME",
        help="the instance of statements before any :CONNECT (default: from the name of the script's folder)",
    )
    of_scripts.add_argument("--database", metavar="NAME", help="the database in use until a script says USE")
    shared_arguments.add_encoding(of_scripts)
    context.add_variables(of_scripts)
    compared.add_argument(
        "--at", metavar="TIME", help="decide all messages as of this time (ISO 8601; default: the clock)"
    )
    written = command.add_argument_group("what to do with the result")
    written.add_argument("--out", metavar="TABLE", help="write every changed message to this Delta table")
    written.add_argument(
        "--fail-on",
        metavar="WORD",
        action="append",
        default=[],
        help="exit code 1 if a message gets worse and ends delayed, dropped or rejected, at any hop; a lost"
        " return path counts as delayed or no-return-path, a loop as dropped or loop; not-known: the end of"
        " a delivered message is no longer known, or an instance without a known address may hide changes"
        " (repeatable, or with commas)",
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Compare, print the changes, and write them if requested."""
    leave_pandas_out()
    from routing.views.diff import diffing
    from routing.views.diff.decision_comparison import fails, words_of
    from routing.views.diff.diff_document import make_document, write_diff
    from routing.views.diff.diffing import diff

    words = words_of(options.fail_on)
    at = context.moment_or_now(options.at, "--at")
    comparison = _ask(options)
    settings = context.load(options)
    # --set overrides only the first configuration.
    other = argparse.Namespace(**{**vars(options), "config": options.against, "overrides": []})
    against = context.load(other) if comparison is None else comparison
    opening = context.open_by_choice(settings, options, console)
    place = None
    if options.out is not None:
        place = diffing.place_of(options.out, [one for one in (settings, against) if isinstance(one, Config)])
        console.command_progress.text = "the table of changed messages is unchanged or complete (start it again)"
    with context.steps(console) as progress:
        done = diff(settings, against, at=at, out=place, opener=opening, progress=progress)
    configs = [settings, against] if isinstance(against, Config) else [settings]
    notes = context.tell_unfinished(opening, console, *configs)
    context.print_result(options, console, lambda: write_diff(done), lambda: make_document(done), notes)
    if done.script is not None:
        context.tell_sentences(console, done.script.rejected, done.script.notes)
        refused = len(done.script.rejected)
        console.note(count_files(len(options.with_script or ()), 0, refused, "statement"))
    return EXIT_FOUND if fails(done.counts, words, done.unaddressed) else EXIT_DONE


def _ask(options: argparse.Namespace) -> Against | None:
    """Read the other side of the comparison from the options.

    None means another configuration, which the caller reads. Raises ContractError.
    """
    from routing.cases.compared_tables import Scripts, versions_of

    if options.with_script is not None:
        return Scripts(
            options.with_script, options.instance, options.database, context.variables(options.variables)
        )
    for option in context.given_options(options, _OF_SCRIPTS):
        raise ContractError(f"{option} works only with --with-script", "leave it out")
    if options.against_version is not None:
        return versions_of(options.against_version)
    return context.moment_or_none(options.against_time, "--against-time")
