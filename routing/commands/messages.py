"""``sbroute messages``: list messages of the outputs, with their ids and SQL Server's status."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone

from routing.commands import command_context as context
from routing.errors import EXIT_DONE
from routing.tables.arrow_rows import leave_pandas_out
from routing.views.messages.message_filter import SHOWN, ask


def add(commands: context.Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "messages",
        parents=[common],
        help="which messages are stuck, and since when",
        description="List messages with their ids and SQL Server's last status: first the delayed ones, then the"
        " dropped ones, then all others, each oldest first.",
        example="sbroute messages --config sbroute-demo/demo.yaml --outcome delayed --oldest",
    )
    context.add_config(command)
    selection = command.add_argument_group("which messages")
    filters = {
        "outcome": ("WORD", "only messages with this outcome, such as DELAYED"),
        "reason": ("WORD", "only messages with this reason, such as NO_ROUTE"),
        "instance": ("NAME", "only messages of this instance"),
        "service": ("NAME", "only messages to this service"),
    }
    for name, (metavar, text) in filters.items():
        selection.add_argument(
            f"--{name}", metavar=metavar, action="append", default=[], help=f"{text} (repeatable)"
        )
    selection.add_argument(
        "--waiting",
        action="store_true",
        help="only messages in the newest export of their database's transmission queue",
    )
    group = command.add_argument_group("how to list them")
    group.add_argument("--oldest", action="store_true", help="the oldest first, in one list for all outcomes")
    group.add_argument(
        "--limit",
        metavar="N",
        type=context.at_least_one,
        default=SHOWN,
        help=f"the number of messages to list; the others are counted (default: {SHOWN})",
    )
    group.add_argument("--now", metavar="TIME", help="ages are as of this time (ISO 8601; default: the clock)")


def run(options: argparse.Namespace, console: context.Console) -> int:
    """Print the messages that the options ask for."""
    message_query = ask(
        outcomes=options.outcome,
        reasons=options.reason,
        instances=options.instance,
        services=options.service,
        oldest=options.oldest,
        waiting=options.waiting,
        limit=options.limit,
    )
    now = context.moment_or_now(options.now, "--now")
    settings = context.load(options)
    leave_pandas_out()
    from routing.views.messages.message_list import list_stored
    from routing.views.messages.messages_document import make_document, write_messages

    with console.during("reading"):
        opener = context.open_by_choice(settings, options, console)
        done = list_stored(settings, opener, message_query, now=now, clock=datetime.now(timezone.utc))
    context.print_result(options, console, lambda: write_messages(done, now), lambda: make_document(done))
    return EXIT_DONE
