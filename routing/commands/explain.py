"""``sbroute explain``: one message, with every step and route of its way."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone

from routing import config
from routing.analysis.explain.asked import Question
from routing.analysis.explain.posing import question
from routing.commands.common import Console, Subparsers, add_config, load, moment, opener
from routing.errors import EXIT_DONE
from routing.storage.arrow import leave_pandas_out


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "explain",
        parents=[common],
        help="one message: every step, every route, why it did or did not match",
        description="Explain where one message goes, and why: a stored one (--message-id, or --conversation for"
        " its oldest), or one that is described (--instance, --database or --from-network, --service).",
    )
    add_config(command)
    command.add_argument("--message-id", metavar="ID", help="a message of tables.messages")
    command.add_argument(
        "--instance",
        metavar="NAME",
        help="its instance; a stored one needs it where several have that id, or an end of the conversation",
    )
    command.add_argument("--database", metavar="NAME", help="described: the database that sends it")
    command.add_argument("--from-network", action="store_true", help="described: it arrives over the network")
    command.add_argument("--service", metavar="NAME", help="described: the service it is sent to")
    command.add_argument("--broker-instance", metavar="ID", help="described: the broker instance it names")
    command.add_argument(
        "--conversation",
        "--conversation-id",
        metavar="GUID",
        help="a conversation id, or the handle of an end as import saw it: its oldest stored message; described:"
        " the message's dialog, without which step 3 shows the outcome for every broker id",
    )
    command.add_argument("--is-target", action="store_true", help="described: the dialog's target sends it")
    command.add_argument(
        "--at",
        metavar="TIME",
        help="decide as of this time (ISO 8601); a described message as of now if not given",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Explain the message that the options name."""
    # A configuration behind a URI is read through Spark, which a wrong question must not start.
    asked = _question(options) if config.is_uri(options.config) else None
    settings = load(options)
    asked = asked or _question(options)
    leave_pandas_out()
    from routing.analysis.explain import printing
    from routing.analysis.explain.explaining import explain, open_tables

    console.progress("reading")
    tables = open_tables(settings, opener(settings, options, console))
    done = explain(tables, asked, as_of=settings.resolve.as_of)
    if done.others:
        console.note(
            f"this is the oldest message of that end of the conversation; {done.others} more of it"
            f" {'is' if done.others == 1 else 'are'} stored, and can be named by --message-id"
        )
    [verdict], steps = done.verdict, done.steps.rows
    console.result(printing.as_json(verdict, steps) if options.format == "json" else printing.as_text(steps))
    return EXIT_DONE


def _question(options: argparse.Namespace) -> Question:
    """What the options ask. Raises QuestionError."""
    return question(
        message_id=options.message_id,
        instance=options.instance,
        database=options.database,
        from_network=options.from_network,
        service=options.service,
        broker_instance=options.broker_instance,
        conversation=options.conversation,
        is_target=options.is_target,
        at=None if options.at is None else moment(options.at, "--at"),
        now=datetime.now(timezone.utc),
    )
