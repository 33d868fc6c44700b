"""The options that name one message, stored or described, and the question that they pose."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone

from routing.commands.common import Console, moment_or_none
from routing.features.explain.posing import question
from routing.features.explain.questions import Question


def add_question(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the options; return the group of those that describe a message."""
    which = command.add_argument_group("which message")
    which.add_argument("--message-id", metavar="ID", help="a message of tables.messages")
    which.add_argument(
        "--conversation",
        "--conversation-id",
        metavar="GUID",
        help="a conversation id, or the handle of an endpoint as import saw it: its oldest stored message; of a"
        " message that you describe the dialog, without which step 3 shows the outcome for every broker instance",
    )
    which.add_argument(
        "--instance",
        metavar="NAME",
        help="its instance; a stored one needs it where several have that id, or an endpoint of the conversation",
    )
    described = command.add_argument_group("a message that you describe")
    described.add_argument("--database", metavar="NAME", help="the database that sends it")
    described.add_argument("--from-network", action="store_true", help="it arrives over the network")
    described.add_argument("--service", metavar="NAME", help="the service that it is sent to")
    described.add_argument("--broker-instance", metavar="ID", help="the broker instance that it names")
    described.add_argument("--is-target", action="store_true", help="the dialog's target sends it")
    return described


def question_of(
    options: argparse.Namespace, *, from_service: str | None = None, hops_remaining: int | None = None
) -> Question:
    """Build the question that the options describe. Raises QuestionError."""
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
    """List the options that describe a message and were given."""
    named = ("message_id", "instance", "database", "from_network", "service", "broker_instance", "conversation")
    values = vars(options)
    return [f"--{name.replace('_', '-')}" for name in (*named, "is_target") if values[name] not in (None, False)]


def tell_others(others: int, console: Console) -> None:
    """Say that more messages are stored of the end of a conversation that was asked about."""
    if others:
        console.note(
            f"this is the oldest message of that end of the conversation; {others} more of it"
            f" {'is' if others == 1 else 'are'} stored, and can be named by --message-id"
        )
