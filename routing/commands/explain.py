"""``sbroute explain``: one message, with every step and route of its path."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone

from routing import config
from routing.commands import command_context as context
from routing.commands.shared_arguments import add_question, question_of, tell_others
from routing.errors import EXIT_DONE
from routing.tables.arrow_rows import leave_pandas_out

FORMATS = ("table", "json", context.STATEMENTS_ALONE)


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "explain",
        parents=[common],
        help="why one message goes where it goes, step by step",
        description="Explain where one message goes, and why. Name a stored message (--message-id, or"
        " --conversation for its oldest), or describe one (--instance, --database or --from-network,"
        " --service).",
        example="sbroute explain --config sbroute-demo/demo.yaml --message-id d00263-i0 --instance depot-east",
    )
    context.add_config(command)
    add_question(command)
    command.add_argument(
        "--at", metavar="TIME", help="decide as of this time (ISO 8601; default for a described message: now)"
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Explain the message that the options name."""
    # Before the configuration, because a URI starts Spark, which is wasted time for an invalid question.
    question = question_of(options) if config.is_uri(options.config) else None
    settings = context.load(options)
    question = question or question_of(options)
    leave_pandas_out()
    from routing.cases.question_source import open_tables
    from routing.views.explain.explain_document import make_document, state_nothing_to_run, write_explanation
    from routing.views.explain.explaining import explain

    with console.during("reading"):
        opening = context.opener(settings, options, console)
        tables = open_tables(settings, opening)
        clock = datetime.now(timezone.utc)
        done = explain(tables, question, as_of=settings.resolve.as_of, clock=clock, exports=options.exports or ())
    notes = context.tell_unfinished(opening, console, settings)
    tell_others(done.others, console)
    if options.format == context.STATEMENTS_ALONE:
        from routing.render.text import write_sql

        console.result(write_sql(make_document(done), state_nothing_to_run(done)))
    else:
        context.print_result(options, console, lambda: write_explanation(done), lambda: make_document(done), notes)
    return EXIT_DONE
