"""Which stored message a question means: the one of an id, or the oldest of one end of a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from routing.analysis.explain.asked import Described, End, QuestionError, Stored
from routing.analysis.explain.known import Row
from routing.analysis.explain.reading import Source, count_ends, find_oldest
from routing.rules.text import printed_guid


@dataclass(frozen=True)
class Found:
    """A stored message; ``others``: of a conversation that was asked about, how many more its end has."""

    row: Row
    others: int = 0


def find_stored(source: Source, question: Stored) -> Found:
    """The message that a question means. Raises QuestionError where that is none, or more than one."""
    if question.conversation is None:
        return Found(_find_by_id(source, question.message_id or "", question.instance_name))
    return _find_in_conversation(source, question.conversation, question.instance_name)


def find_dialog(source: Source, question: Described) -> str | None:
    """The id of the dialog that a description names by id or handle; what is no GUID as it is given.

    Raises QuestionError.
    """
    given = question.conversation_id
    guid = None if given is None else printed_guid(given)
    if given is None or guid is None:
        return given
    ids = sorted({end.conversation_id for end in source.find_ends(guid)})
    if len(ids) > 1:
        raise QuestionError.several_conversations(given, ids)
    return ids[0] if ids else guid


def _find_by_id(source: Source, message_id: str, instance: str | None) -> Row:
    rows = source.find_stored(message_id, instance)
    if not rows:
        raise QuestionError.unknown_message(message_id, instance)
    names = sorted({str(row["instance_name"]) for row in rows})
    if len(names) > 1:
        raise QuestionError.ambiguous(message_id, names)
    if len(rows) > 1:
        raise QuestionError.doubled(message_id, names[0])
    return rows[0]


def _find_in_conversation(source: Source, given: str, instance: str | None) -> Found:
    """The oldest message of the end that a handle names, or of the one end of the conversation that has any."""
    guid = printed_guid(given) or ""
    named = source.find_ends(guid)
    messages = source.read_conversations({end.conversation_id for end in named} or {guid})

    def is_meant(end: End) -> bool:
        return (not named or end in named) and instance in (None, end.instance_name)

    meant = {end: count for end, count in count_ends(messages).items() if is_meant(end)}
    if not meant:
        raise QuestionError.unknown_conversation(given, instance, knows_handles=source.knows_handles)
    if len(meant) > 1:
        raise QuestionError.several_ends(given, meant)
    [(end, count)] = meant.items()
    return Found(find_oldest(messages, end), count - 1)
