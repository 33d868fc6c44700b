"""``sbroute trace``: follow a message hop by hop to its end, and the reply back."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from routing import config
from routing.cases.questions import Question, QuestionError
from routing.commands import command_context as context
from routing.commands.shared_arguments import MESSAGE_OPTIONS, add_question, question_of, tell_others
from routing.errors import EXIT_DONE
from routing.tables.arrow_rows import leave_pandas_out

if TYPE_CHECKING:
    from routing.delta.opening import TableOpener


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "trace",
        parents=[common],
        help="whether a message arrives, and its acknowledgement comes back",
        description="Follow a message from instance to instance to its end, and the reply back. Name a stored"
        " message (--message-id, or --conversation for its oldest), or describe one (--instance, --database"
        " or --from-network, --service).",
        example="sbroute trace --config sbroute-demo/demo.yaml --message-id d00263-i0 --instance depot-east",
    )
    context.add_config(command)
    described = add_question(command)
    described.add_argument("--from-service", metavar="NAME", help="the service that sends the message")
    described.add_argument("--hops", metavar="N", type=int, help="how often the message may be forwarded")
    command.add_argument(
        "--at",
        metavar="TIME",
        help="decide every hop as of this time (ISO 8601; default for a described message: now)",
    )
    command.add_argument(
        "--all", action="store_true", help="follow every message, and replace the table output.message_paths"
    )


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Follow the message that the options name, or all."""
    # Before the configuration, because a URI starts Spark, which is wasted time for an invalid question.
    early = config.is_uri(options.config)
    question = _question(options) if early else None
    settings = context.load(options)
    question = question if early else _question(options)
    leave_pandas_out()
    if question is None:
        return _trace_all(settings, context.open_by_choice(settings, options, console), options, console)
    opening = context.opener(settings, options, console)
    from routing.cases.question_source import open_tables
    from routing.views.trace.tracing import make_document, trace, write_trace

    with console.during("reading"):
        tables, clock = open_tables(settings, opening), datetime.now(timezone.utc)
        done = trace(tables, question, as_of=settings.resolve.as_of, clock=clock, exports=options.exports or ())
    tell_others(done.others, console)
    notes = context.tell_unfinished(opening, console, settings)
    context.print_result(options, console, lambda: write_trace(done), lambda: make_document(done), notes)
    return EXIT_DONE


def _question(options: argparse.Namespace) -> Question | None:
    """Build the question of the options, or return None for all messages. Raises QuestionError."""
    if not options.all:
        return question_of(options)
    message_options = context.given_options(options, (*MESSAGE_OPTIONS, "exports"))
    if message_options:
        raise QuestionError.all_but_named(message_options)
    return None


def _trace_all(
    settings: config.Config, opening: TableOpener, options: argparse.Namespace, console: context.Console
) -> int:
    """Write the paths of all messages, and print the counts of their ends."""
    from routing.views.trace.paths_table import write_all
    from routing.views.trace.tracing import make_counts_document, write_counts

    at = context.moment_or_none(options.at, "--at")
    console.command_progress.text = "the table of paths is unchanged or complete (start it again)"
    done = write_all(settings, opening, as_of=at, progress=console.progress)
    for note in done.notes:
        console.note(note)
    notes = context.tell_unfinished(opening, console, settings)
    context.print_result(options, console, lambda: write_counts(done), lambda: make_counts_document(done), notes)
    return EXIT_DONE
