"""``sbroute trace``: a message hop by hop to where it ends, and the reply back."""

from __future__ import annotations

import argparse

from routing import config
from routing.analysis.explain.asked import Question
from routing.commands.common import Console, Subparsers, add_config, load, opener
from routing.commands.question import add_question, question_of, tell_others
from routing.errors import EXIT_DONE
from routing.storage.arrow import leave_pandas_out


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "trace",
        parents=[common],
        help="follow a message, or all, hop by hop to the end, and the way back",
        description="Follow a message from instance to instance to where it ends, and the reply back: a stored one"
        " (--message-id, or --conversation for its oldest), or one that is described (--instance, --database or"
        " --from-network, --service).",
    )
    add_config(command)
    add_question(command)
    command.add_argument("--from-service", metavar="NAME", help="described: the service that sends it")
    command.add_argument("--hops", metavar="N", type=int, help="described: how often it may be forwarded")
    command.add_argument(
        "--at",
        metavar="TIME",
        help="decide every hop as of this time (ISO 8601); a described message as of now if not given",
    )
    command.add_argument(
        "--all", action="store_true", help="follow every message, and replace the table output.message_paths"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Follow the message that the options name."""
    # A configuration behind a URI is read through Spark, which a wrong question must not start.
    asked = _question(options) if config.is_uri(options.config) else None
    settings = load(options)
    asked = asked or _question(options)
    leave_pandas_out()
    from routing.analysis.explain.given import open_tables
    from routing.analysis.trace import printing
    from routing.analysis.trace.tracing import trace

    console.progress("reading")
    tables = open_tables(settings, opener(settings, options, console))
    done = trace(tables, asked, as_of=settings.resolve.as_of)
    tell_others(done.others, console)
    console.result(printing.as_json(done) if options.format == "json" else "\n".join(printing.as_text(done)))
    return EXIT_DONE


def _question(options: argparse.Namespace) -> Question:
    return question_of(options, from_service=options.from_service, hops_remaining=options.hops)
