"""What grows with the traffic, read of Arrow's tables and files: in few passes, each over few columns.

Times are compared once they are read: what Delta's log says of a file's times is in milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from routing.features.explain.questions import AGE, ConversationEnd
from routing.schemas import DIALOGS, TABLES
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import micros_in, with_readable_texts
from routing.tables.column_kinds import arrow_schema
from routing.tables.input_columns import condition_of
from routing.tables.table_columns import (
    FILE,
    Only,
    TableColumns,
    as_dataset,
    in_files,
    read_arrow,
    rows_where,
    shape_of,
    with_few,
)

if TYPE_CHECKING:
    import pyarrow

# Not what only groups of dialogs have: reading is what takes the time.
_OF_A_DIALOG = [name for name in DIALOGS.names if name not in ("conversation_group_id", "far_service")]
_TIMES = ("observed_at", "enqueue_time")


def messages_of(messages: Any, only: Only) -> TableColumns:
    """Return the few messages that have one of some values in each of some columns."""
    return _few(messages, "messages", only)


def observed_of(observed: Any, only: Only) -> TableColumns:
    """Return the few rows of observed_routing that have one of some values in each of some columns."""
    return _few(observed, "observed_routing", only)


def _few(table: Any, key: str, only: Only) -> TableColumns:
    condition = condition_of(table, only)
    return read_arrow(with_few(table, condition), key, condition)


def of_conversation(messages: Any, conversation: str) -> pyarrow.Table:
    """Return all messages of a conversation, given by its folded id."""
    return _where_folded(messages, "messages", "conversation_id", conversation)


def of_handle(observed: Any, handle: str) -> pyarrow.Table:
    """Return all rows of observed_routing that have a folded conversation handle."""
    return _where_folded(observed, "observed_routing", "conversation_handle", handle)


def _where_folded(table: Any, key: str, name: str, wanted: str) -> pyarrow.Table:
    """Return the rows that have a folded value in a column, in the declared columns of their table."""
    import pyarrow
    import pyarrow.compute as pc

    rows, shape = as_dataset(table), shape_of(table, key)
    fields = arrow_schema(TABLES[key])
    columns = {
        field.name: pc.field(shape[field.name])
        if field.name in shape
        else pc.scalar(pyarrow.scalar(None, field.type))
        for field in fields
    }
    condition = fold_texts(columns[name]) == wanted
    return with_few(rows, condition).to_table(columns=columns, filter=condition)


def oldest_of(messages: pyarrow.Table, end: ConversationEnd) -> TableColumns:
    """Return the oldest message of an end, out of those that `of_conversation` found."""
    import pyarrow.compute as pc

    role = pc.field("is_initiator")
    mine = role.is_null() if end.is_initiator is None else role == end.is_initiator
    for name, value in (("instance_name", end.instance_name), ("database_name", end.database_name)):
        # Empty text is null.
        mine &= pc.coalesce(pc.field(name), pc.scalar("")) == (value or "")
    # What is no UTF-8 is known by how it is written.
    is_mine = as_dataset(with_readable_texts(messages)).to_table(columns={"is_mine": mine})["is_mine"]
    found = rows_where(messages, is_mine)
    first = pc.sort_indices(found, sort_keys=[(name, "ascending") for name in AGE])[:1]
    return read_arrow(found.take(first), "messages")


def dialogs_of(dialogs: Any, conversations: Collection[str], only: Only) -> TableColumns:
    """Return the dialogs of conversations, given by their folded ids, that have one of the values of ``only``."""
    import pyarrow
    import pyarrow.compute as pc

    rows = as_dataset(dialogs)
    folded = fold_texts(pc.field(shape_of(rows, "dialogs")["conversation_id"]))
    wanted = folded.isin(pyarrow.array(sorted(conversations), pyarrow.string()))
    condition = wanted & condition_of(rows, only)
    return read_arrow(with_few(rows, condition), "dialogs", condition, _OF_A_DIALOG)


def in_parts(messages: Any, only: Only, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
    """Yield messages in parts, in the order of (t, message_id); those without any time are left out.

    A part has as many rows as ``sizes`` says, and those that have the last one's t (its id, where t is one for
    all). The places of all are read first, the rest of a message with its part.
    """
    import pyarrow.compute as pc

    rows, condition, shape = as_dataset(messages), condition_of(messages, only), shape_of(messages, "messages")
    by = [shape[name] for name in (_TIMES if as_of is None else ("message_id",)) if name in shape]
    found = rows.to_table(columns=[*by, FILE], filter=condition)
    places = _places(found, by)
    ordered = pc.drop_null(pc.take(places, pc.sort_indices(places)))
    begin = 0
    while begin < len(ordered):
        first = ordered[begin]
        last = ordered[min(begin + next(sizes), len(ordered)) - 1]
        files = rows_where(found[FILE], _between(places, first, last)).unique().to_pylist()
        part = in_files(rows, files).to_table(columns=list(shape.values()), filter=condition)
        yield read_arrow(rows_where(part, _between(_places(part, by), first, last)), "messages")
        begin = pc.sum(pc.less_equal(ordered, last)).as_py()


def _places(rows: Any, by: list[str]) -> Any:
    """Return the times of messages as microseconds, or their ids."""
    import pyarrow
    import pyarrow.compute as pc

    columns = (rows[name] for name in by)
    return pc.coalesce(*(micros_in(one) if pyarrow.types.is_timestamp(one.type) else one for one in columns))


def _between(places: Any, first: Any, last: Any) -> Any:
    import pyarrow.compute as pc

    return pc.and_(pc.greater_equal(places, first), pc.less_equal(places, last))
