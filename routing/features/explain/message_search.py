"""Which stored message a question means: the one of an id, or the oldest of one end of a conversation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from routing.features.explain.explain_source import ExplainSource, count_ends, find_oldest
from routing.features.explain.known_tables import Row
from routing.features.explain.questions import ConversationEnd, DescribedMessage, QuestionError, StoredMessage
from routing.rules.text import printed_guid


@dataclass(frozen=True)
class FoundMessage:
    """A stored message; ``others``: of a conversation that was asked about, how many more its end has."""

    row: Row
    others: int = 0


def find_stored(source: ExplainSource, question: StoredMessage) -> FoundMessage:
    """Return the message that a question means. Raises QuestionError where that is none, or more than one."""
    if question.conversation is None:
        return FoundMessage(_find_by_id(source, question.message_id or "", question.instance_name))
    return _find_in_conversation(source, question.conversation, question.instance_name)


def find_dialog(source: ExplainSource, question: DescribedMessage) -> str | None:
    """Return the id of the dialog that a description names by id or handle; what is not a GUID as it is given.

    Raises QuestionError.
    """
    conversation = question.conversation_id
    guid = None if conversation is None else printed_guid(conversation)
    if conversation is None or guid is None:
        return conversation
    return _name_conversation(conversation, source.find_ends(guid)) or guid


def _find_by_id(source: ExplainSource, message_id: str, instance: str | None) -> Row:
    rows = source.find_stored(message_id, instance)
    if not rows:
        raise QuestionError.unknown_message(message_id, instance)
    names = sorted({str(row["instance_name"]) for row in rows})
    if len(names) > 1:
        raise QuestionError.ambiguous(message_id, names)
    if len(rows) > 1:
        raise QuestionError.doubled(message_id, names[0])
    return rows[0]


def _find_in_conversation(source: ExplainSource, conversation: str, instance: str | None) -> FoundMessage:
    """Find the oldest message of the end that a handle names, or of the only end that has messages."""
    guid = printed_guid(conversation) or ""
    ends = source.find_ends(guid)
    named = _name_conversation(conversation, ends)
    messages = source.read_conversation(named or guid)

    def is_meant(end: ConversationEnd) -> bool:
        return (not ends or end in ends) and instance in (None, end.instance_name)

    meant = {end: count for end, count in count_ends(messages).items() if is_meant(end)}
    if not meant:
        raise QuestionError.unknown_conversation(
            conversation, instance, ends=ends, knows_handles=source.knows_handles
        )
    if len(meant) > 1:
        raise QuestionError.several_ends(conversation, meant)
    [(end, count)] = meant.items()
    return FoundMessage(find_oldest(messages, end), count - 1)


def _name_conversation(handle: str, ends: Collection[ConversationEnd]) -> str | None:
    """Return the conversation of which these are the ends that a handle names; None for no end.

    Raises QuestionError.
    """
    ids = sorted({end.conversation_id for end in ends})
    if len(ids) > 1:
        raise QuestionError.several_conversations(handle, ids)
    return ids[0] if ids else None
