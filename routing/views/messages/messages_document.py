"""Write listed messages as a document: the stuck ones with their age, then all messages in groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from routing.document import (
    Block,
    Cell,
    DataTable,
    Document,
    DocumentHeading,
    ListItem,
    Paragraph,
    TonedText,
    Words,
    make_columns,
)
from routing.groups import group_pairs
from routing.render.phrases import cut, when
from routing.render.wording import count, format_duration, mark_outcome, write_json
from routing.rules.text import fold
from routing.terms import LEAVES, Outcome, ReadRow
from routing.views.messages.message_filter import GROUP, STUCK
from routing.views.messages.message_list import MessageList

_SHOWN_TEXT = 1_000
# The number of reasons in the first sentence. More reasons are listed in a table.
_FEW = 3
_GROUPED = ("instance_name", "to_service_name", "outcome", "reason")
_GROUPS = ("instance", "service", "outcome", "reason", "messages", "listed")


def make_document(done: MessageList) -> Document:
    """Describe the list: the number and age of stuck messages, counts, messages, and SQL Server's statuses."""
    if not done.total:
        return [Paragraph(_state_nothing(done))]
    return [
        Paragraph(_state_stuck(done)),
        *_state_checked(done),
        *_state_others(done),
        *_missing(done),
        *_list_reasons(done),
        *(_list_oldest(done) if done.asked.oldest else _list_groups(done)),
        *_status_texts(done),
    ]


def _is_stuck(row: ReadRow) -> bool:
    return row["outcome"] in STUCK


def _count_departed(done: MessageList) -> int:
    return sum(row["messages"] for row in done.counts if row["outcome"] in LEAVES)


def _state_stuck(done: MessageList) -> Words:
    counts = [row for row in done.counts if _is_stuck(row)]
    stuck = sum(row["messages"] for row in counts)
    # This list does not follow messages that left their instance.
    here = f" at {'their' if stuck > 1 else 'its'} own instance" if _count_departed(done) else ""
    if not stuck:
        return f"No message is stuck{here}."
    whole = count(done.total if stuck < done.total else stuck, "message")
    of = f"{stuck:,} of {whole}" if stuck < done.total else whole
    of += " that wait" if done.asked.waiting and stuck < done.total else ""
    since = "since" if stuck == 1 else "the oldest since"
    waits = "" if done.oldest_stuck is None else f", {since} {_age(done.oldest_stuck)}"
    are = f"{of} {'is' if stuck == 1 else 'are'} stuck{here}{waits}"
    if len(counts) > _FEW:
        reasons = {row["reason"] for row in counts}
        return f"{are}, for {count(len(reasons), 'reason')}."
    sentence: list[str | TonedText] = [f"{are}: "]
    for number, row in enumerate(counts):
        before, reason = f"{', ' if number else ''}{row['messages']:,} ", f" {row['reason']}"
        sentence += [before, mark_outcome(row["outcome"]), reason]
    return [*sentence, "."]


def _state_checked(done: MessageList) -> Iterator[Block]:
    if done.last_checked is not None and any(row["outcome"] == Outcome.DELAYED for row in done.counts):
        yield Paragraph(f"The delayed messages were last checked as of {when(done.last_checked)}.")


def _state_others(done: MessageList) -> Iterator[Block]:
    not_stuck = [row for row in done.counts if not _is_stuck(row)]
    if not_stuck:
        counts = ", ".join(f"{row['messages']:,} {row['outcome']} {row['reason']}" for row in not_stuck)
        whole = "Of the others" if len(not_stuck) < len(done.counts) else f"Of {count(done.total, 'message')}"
        departed = _count_departed(done)
        end = "it ends, and whether it is" if departed == 1 else "they end, and whether they are"
        left = f" {count(departed, 'message')} left: `sbroute trace --all` shows where {end} acknowledged."
        further = left if departed else ""
        yield Paragraph(f"{whole}: {counts}.{further}")


def _list_reasons(done: MessageList) -> Iterator[Block]:
    counts = [(row["outcome"], row["reason"], row["messages"]) for row in done.counts if _is_stuck(row)]
    if len(counts) > _FEW:
        yield DataTable(make_columns(("outcome", "reason", "messages"), ["messages"]), counts, "Stuck messages")


def _missing(done: MessageList) -> Iterator[Block]:
    missing = 0 if done.queued_messages is None or done.asked.only else done.queued_messages - done.total
    if missing > 0:
        yield Paragraph(
            f"the newest exports hold {missing:,} more, which the outputs lack: imported since the last run,"
            " or rejected by it"
        )


def _state_nothing(done: MessageList) -> str:
    if done.queued_messages is not None and not done.exported:
        return "No export of a transmission queue was imported, so no waiting messages are known."
    if done.queued_messages == 0:
        return "No message waits: the newest exports of the transmission queues are empty."
    if done.queued_messages is not None:
        return (
            f"None of the {done.queued_messages:,} messages in the newest exports matches the filter. Messages"
            " imported since the last run are not in the outputs yet."
        )
    if done.asked.only:
        return "No message matches the filter."
    return "The outputs have no messages."


def _list_groups(done: MessageList) -> Iterator[Block]:
    sizes = {_group_of(row): row["messages"] for row in done.groups}
    for group, rows in group_pairs((_group_of(row), row) for row in done.messages).items():
        instance, service, reason, outcome = group
        since = min((row["delayed_since"] for row in rows if row["delayed_since"] is not None), default=None)
        delayed = "" if since is None else f", delayed since {when(since)}"
        title = f"{instance}, service {service}: {sizes[group]:,} {outcome} {reason}{delayed}"
        columns = ("age", "database", "message", *_own_columns(rows))
        lines = [(_row_age(row), row["database_name"], row["message_id"], *_own_cells(row, rows)) for row in rows]
        yield DataTable(make_columns(columns, ["age"]), lines, title, sizes[group] - len(rows))
    yield from _state_unlisted(done)


def _state_unlisted(done: MessageList) -> Iterator[Block]:
    unlisted = done.total - len(done.messages)
    if unlisted:
        yield Paragraph(f"and {unlisted:,} more; --limit N lists more")


def _group_of(row: ReadRow) -> tuple[str, ...]:
    return tuple(row[name] for name in GROUP)


def _list_oldest(done: MessageList) -> Iterator[Block]:
    """Yield the listed messages in one list, and the counts of their groups."""
    yield DocumentHeading("The oldest messages")
    for number, row in enumerate(done.messages, 1):
        database = "" if row["database_name"] is None else f", database {row['database_name']}"
        place = f"{row['instance_name']}{database}, service {row['to_service_name']}"
        message = f"message {row['message_id']}"
        message += "" if _names_conversation(row) else f", conversation {row['conversation_id']}"
        status = _status_of(row)
        status_clause = "" if status is None else f"; SQL Server: {status}"
        outcome, since = mark_outcome(row["outcome"]), row["delayed_since"]
        delayed = "" if since is None else f", delayed since {when(since)}"
        yield ListItem(
            (f"{_row_age(row)}: ", outcome, f" {row['reason']}, {place}; {message}{delayed}{status_clause}"),
            f"{number}.",
        )
    yield from _state_unlisted(done)
    listed_counts = Counter(map(_group_of, done.messages))
    lines = [
        (*(row[name] for name in _GROUPED), row["messages"], listed_counts[_group_of(row)]) for row in done.groups
    ]
    yield DataTable(make_columns(_GROUPS, ["messages", "listed"]), lines, "Groups of these")


def _own_columns(rows: Sequence[ReadRow]) -> list[str]:
    """Return the columns that only some lists need: the conversation id and a status."""
    return [
        *(["conversation"] if not all(map(_names_conversation, rows)) else []),
        *(["SQL Server"] if any(_status_of(row) is not None for row in rows) else []),
    ]


def _own_cells(row: ReadRow, rows: Sequence[ReadRow]) -> list[Cell]:
    cells = {"conversation": row["conversation_id"], "SQL Server": _status_of(row)}
    return [cells[name] for name in _own_columns(rows)]


def _names_conversation(row: ReadRow) -> bool:
    """Return True if the id of a message begins with that of its conversation, as import makes it."""
    return fold(row["message_id"] or "").startswith(fold(row["conversation_id"] or "-"))


def _row_age(row: ReadRow) -> str:
    return _age(row["age_seconds"])


def _age(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))


def _status_of(row: ReadRow) -> str | None:
    """Return SQL Server's number or outcome for a message, and its agreement with the reason."""
    number, agreement, outcome = row["status_number"], row["agreement"], row["status_outcome"]
    # There is no status, or only a text without a known number, which is printed below.
    is_blank = row["status_text"] is None and outcome is None
    return None if agreement is None or is_blank else f"{number or outcome or 'a text'} {agreement}"


def _status_texts(done: MessageList) -> Iterator[Block]:
    """Yield each text of a status or event with its agreement with a reason, most frequent first."""
    counted_texts = Counter(
        (row["status_number"], row["agreement"], row["reason"], text, row["agreement_why"])
        for row in done.messages
        if (text := _event_or_text(row)) is not None
    )
    if counted_texts:
        yield DocumentHeading("SQL Server's statuses of these messages")
    for (number, agreement, reason, text, why), messages in sorted(
        counted_texts.items(), key=lambda item: (-item[1], str(item[0]))
    ):
        numbered = "" if number is None else f"{number} "
        because = "" if why is None else f" {why}"
        yield ListItem(
            f"{count(messages, 'message')}, {reason}: {numbered}{agreement}: {cut(text, _SHOWN_TEXT)}{because}"
        )


def _event_or_text(row: ReadRow) -> str | None:
    if row["status_outcome"] is None:
        text: str | None = row["status_text"]
        return text
    hop = "" if row["status_next_hop"] is None else f" to {row['status_next_hop']}"
    text = "" if row["status_text"] is None else f": {row['status_text']}"
    return f"event: {row['status_outcome']}{hop}{text}"


def write_messages(done: MessageList, now: datetime) -> str:
    """Return one line of JSON: now, last_checked, total, more, counts, groups, queued_messages and messages.

    See docs/reference/json.md.
    """
    return write_json(
        {
            "now": now,
            "last_checked": done.last_checked,
            "total": done.total,
            "more": done.total - len(done.messages),
            "queued_messages": done.queued_messages,
            "counts": [dict(row) for row in done.counts],
            "groups": [dict(row) for row in done.groups],
            "messages": [dict(row) for row in done.messages],
        }
    )
