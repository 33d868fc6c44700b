"""The options that name one message, stored or described, and the question that they pose."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone

from routing.analysis.explain.asked import Question
from routing.analysis.explain.posing import question
from routing.commands.common import Console, moment_or_none


def add_question(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
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


def question_of(
    options: argparse.Namespace, *, from_service: str | None = None, hops_remaining: int | None = None
) -> Question:
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
        at=moment_or_none(options.at, "--at"),
        now=datetime.now(timezone.utc),
        from_service=from_service,
        hops_remaining=hops_remaining,
    )


def named_options(options: argparse.Namespace) -> list[str]:
    """Those of the options that are given."""
    named = ("message_id", "instance", "database", "from_network", "service", "broker_instance", "conversation")
    given = vars(options)
    return [f"--{name.replace('_', '-')}" for name in (*named, "is_target") if given[name] not in (None, False)]


def tell_others(others: int, console: Console) -> None:
    """Say that more messages are stored of the end of a conversation that was asked about."""
    if others:
        console.note(
            f"this is the oldest message of that end of the conversation; {others} more of it"
            f" {'is' if others == 1 else 'are'} stored, and can be named by --message-id"
        )
