"""Define the questions of `explain` and `trace` on a stored or a described message, with all their errors.

This module does not import Spark, so a wrong question fails at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from routing.arguments import checked
from routing.errors import ContractError, join_bounded, name_nearest, quote
from routing.rules.text import printed_guid

# The id of a described message. A stored message may have the same id without effect.
DESCRIBED_ID = "described"


AGE = ("enqueue_time", "message_sequence_number", "message_id")
"""The columns that order messages of an end by age. Rows without a value come last."""


class ConversationEnd(NamedTuple):
    """One end of a conversation, with a folded id. ``database_name`` is None for messages from the network."""

    conversation_id: str
    instance_name: str | None
    database_name: str | None
    is_initiator: bool | None


@checked
@dataclass(frozen=True)
class StoredMessage:
    """Ask about a message of table ``messages``: by its id, or the oldest of one end of a conversation.

    Args:
        message_id: the id of the message, or None if ``conversation`` is given.
        instance_name: the instance, if several have a message with that id or an end of the conversation.
        at: the time of the decision on all messages (UTC), like ``--as-of``. By default each message has its own.
        conversation: the id of a conversation, or the handle of an end, as SQL Server's tools print them.

    Raises:
        QuestionError: neither or both are given, or the conversation is not a GUID.

    Example:
        >>> question = routing.StoredMessage("m3")
        >>> [verdict] = routing.explain(routing.load_config("job.yaml"), question).verdict
        >>> verdict["outcome"], verdict["address"]
        ('SENT', 'TCP://far.example:4022')
    """

    message_id: str | None = None
    instance_name: str | None = None
    at: datetime | None = None
    conversation: str | None = None

    def __post_init__(self) -> None:
        """Refuse a question that names no message."""
        if self.conversation is None and self.message_id is None:
            raise QuestionError.neither()
        if self.conversation is not None and self.message_id is not None:
            raise QuestionError.mixed(["--conversation"])
        if self.conversation is not None and printed_guid(self.conversation) is None:
            raise QuestionError.no_conversation(self.conversation)


@checked
@dataclass(frozen=True)
class DescribedMessage:
    """Ask about a message that need not exist.

    Args:
        instance_name: the instance that decides.
        database_name: the database that sends it, or None if it arrives over the network.
        to_service_name: the target service.
        at: the time of the decision (UTC).
        to_broker_instance: the broker instance that BEGIN DIALOG named.
        conversation_id: its dialog, or the handle of an end. None asks for the outcome of every dialog.
        is_target: whether the dialog's target sends it.
        from_service_name: the service that sends it, which receives a reply.
        hops_remaining: the number of forwards that are left.

    Example:
        >>> from datetime import datetime
        >>> question = routing.DescribedMessage("hub", "Sales", "//far", datetime(2026, 1, 5, 13))
        >>> [verdict] = routing.explain(routing.load_config("job.yaml"), question).verdict
        >>> verdict["outcome"], verdict["route_name"]
        ('SENT', 'Far')
    """

    instance_name: str
    database_name: str | None
    to_service_name: str
    at: datetime
    to_broker_instance: str | None = None
    conversation_id: str | None = None
    is_target: bool = False
    from_service_name: str | None = None
    hops_remaining: int | None = None


Question = StoredMessage | DescribedMessage


class QuestionError(ContractError):
    """A question without an answer: it contradicts itself, or names objects that are not in the tables."""

    @classmethod
    def neither(cls) -> QuestionError:
        """Say that no message is named."""
        return cls(
            "no message is named",
            "--message-id ID or --conversation GUID for a stored one; --instance with --database or"
            " --from-network, and --service, for one that is described",
        )

    @classmethod
    def mixed(cls, options: Sequence[str]) -> QuestionError:
        """Say that a stored message is described as well."""
        return cls(
            f"--message-id names a stored message, which {' and '.join(options)} cannot change",
            "leave out one of them",
        )

    @classmethod
    def all_but_named(cls, options: Sequence[str]) -> QuestionError:
        """Say that all messages are asked about, and one is named."""
        return cls(f"--all follows every message, {' and '.join(options)} only one", "leave out one of them")

    @classmethod
    def incomplete(cls, missing: Sequence[str]) -> QuestionError:
        """Say that the description lacks a part."""
        return cls(f"a described message needs {' and '.join(missing)}")

    @classmethod
    def both_origins(cls) -> QuestionError:
        """Say that a message cannot be both sent from a database and arrived over the network."""
        return cls("--database and --from-network cannot be combined: a message is either sent here or arrives")

    @classmethod
    def no_text(cls, option: str) -> QuestionError:
        """Report an option with bytes that are not text in the terminal's encoding, so no table has it."""
        return cls(f"{option} holds bytes that are not text in this terminal's encoding", "write it in UTF-8")

    @classmethod
    def unknown_message(cls, message_id: str, instance: str | None) -> QuestionError:
        """Say that no row has the id."""
        location = "" if instance is None else f" on instance {quote(instance)}"
        return cls(f"no message {quote(message_id)} is stored{location}", "ids are compared exactly")

    @classmethod
    def ambiguous(cls, message_id: str, instances: Sequence[str]) -> QuestionError:
        """Say that several instances have a message of that id."""
        names = join_bounded([quote(name) for name in instances], "instance")
        return cls(f"message {quote(message_id)} is stored on {names}", "choose one with --instance")

    @classmethod
    def doubled(cls, message_id: str, instance: str) -> QuestionError:
        """Say that one instance has the id several times, which breaks the table's key."""
        return cls(
            f"several messages of instance {quote(instance)} have the id {quote(message_id)}",
            "message ids must be unique on an instance; describe the message instead",
        )

    @classmethod
    def no_conversation(cls, conversation: str) -> QuestionError:
        """Report a conversation that is given by neither an id nor a handle."""
        return cls(
            f"--conversation {quote(conversation)} is not a GUID",
            "give a conversation_id or a conversation_handle, in any case, with or without braces",
        )

    @classmethod
    def unknown_conversation(
        cls, conversation: str, instance: str | None, *, ends: Iterable[ConversationEnd], knows_handles: bool
    ) -> QuestionError:
        """Report that no message belongs to the conversation, or to that end.

        ``ends`` are those with the handle. ``knows_handles`` is True if there is a table of handles.
        """
        location = "" if instance is None else f" on instance {quote(instance)}"
        end_names = sorted(_describe_end(end) for end in ends)
        if end_names:
            hint = f"an import stored it as the handle of {join_bounded(end_names, 'endpoint')}"
        elif knows_handles:
            hint = "ids are looked up in tables.messages, handles in tables.observed_routing"
        else:
            hint = "only ids were looked up, because tables.observed_routing with the handles is missing"
        return cls(f"no message of conversation {quote(conversation)} is stored{location}", hint)

    @classmethod
    def several_ends(cls, conversation: str, ends: Mapping[ConversationEnd, int]) -> QuestionError:
        """Say that several ends of a conversation have messages, and how many each."""
        end_names = sorted(f"{_describe_end(end)} ({_messages(count)})" for end, count in ends.items())
        choices = ["with the conversation handle of one endpoint", "with --message-id"]
        if len({end.instance_name for end in ends}) > 1:
            choices.insert(0, "with --instance")
        return cls(
            f"conversation {quote(conversation)} has messages of {join_bounded(end_names, 'endpoint')}",
            f"choose one {' or '.join(choices)}",
        )

    @classmethod
    def several_conversations(cls, handle: str, ids: Sequence[str]) -> QuestionError:
        """Say that a handle was seen in several conversations, which SQL Server does not do."""
        names = join_bounded([quote(conversation_id) for conversation_id in ids], "conversation")
        return cls(f"handle {quote(handle)} belongs to {names}", "give the conversation id")

    @classmethod
    def rejected(cls, reasons: Sequence[str], only_named: str | None = None) -> QuestionError:
        """Report that a run would reject the message. ``only_named`` is its instance if only its name is known."""
        hint = "docs/reference/tables.md explains each reason"
        if only_named is not None:
            hint = f"the databases, addresses and forwarding of instance {quote(only_named)} are not known; {hint}"
        return cls(f"the message would be rejected: {', '.join(reasons)}", hint)

    @classmethod
    def unknown_word(cls, kind: str, text: str, known_words: Sequence[str]) -> QuestionError:
        """Say that the output has no such word."""
        near = name_nearest(text.upper(), {word: word for word in known_words})
        hint = f"did you mean {near}?" if near else f"known are {', '.join(known_words)}"
        return cls(f"there is no {kind} {quote(text)}", hint)

    @classmethod
    def unknown_name(cls, kind: str, name: str, known_names: Iterable[str], location: str = "") -> QuestionError:
        """Report an instance or database that a table lacks. ``known_names`` are the known ones."""
        near = name_nearest(_as_meant(name), {_as_meant(one): one for one in sorted(known_names, reverse=True)})
        hint = f"did you mean {quote(near)}?" if near else f"look it up in table {kind}s"
        return cls(f"no {kind} {quote(name)} is listed{location}", hint)


def _describe_end(end: ConversationEnd) -> str:
    place = "from the network" if end.database_name is None else f"database {quote(end.database_name)}"
    role = "target" if end.is_initiator is False else "initiator" if end.is_initiator else "role unknown"
    return f"instance {quote(end.instance_name)}, {place}, {role}"


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def _as_meant(name: str) -> str:
    """Return a name's form for the search of similar names. It is short, because the search is slow."""
    return name.strip().lower()[:100]
