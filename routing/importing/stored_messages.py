"""Which messages of an import are stored, and under which ids: the rows are matched by Arrow or by Spark.

A message is known by its instance, database, conversation, role and number (tables.md), whatever its id is: rows
of older releases and of other sources have ids of other forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from routing.importing.keyed import ON
from routing.schemas import MESSAGES, ColumnKind, Field, Schema
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import table_of
from routing.tables.column_kinds import arrow_schema
from routing.tables.table_columns import Table, is_frame, select_arrow, spell
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

_ID, _PLACE = "message_id", "place"
_KNOWN_BY = Schema(tuple(field for field in MESSAGES.optional() if field.name in ON["messages"]))
_READ = Schema((*_KNOWN_BY, Field(_ID, ColumnKind.STRING)))
_CONVERSATION, _DATABASE = "conversation_id", "database_name"


def find_message_ids(table: Table, rows: Sequence[TableRow]) -> list[str | None]:
    """Return for each row the id under which its message is stored; None where it is not.

    ``rows`` are of ``messages`` or ``observed_routing``. No database is the same as an empty name; of several
    stored messages that are the same the first id counts. A row without role or number is no message's.
    """
    ids: list[str | None] = [None] * len(rows)
    if rows:
        matches = _find_in_spark(table, rows) if is_frame(table) else _find_in_arrow(table, rows)
        for place, message_id in matches:
            ids[place] = message_id
    return ids


def with_stored_ids(rows: Sequence[TableRow], ids: Sequence[str | None]) -> list[TableRow]:
    """Return observations that carry the ids of their stored messages; one without keeps its own."""
    return [
        row if stored_id is None else {**row, "message_id": stored_id}
        for row, stored_id in zip(rows, ids, strict=True)
    ]


def _find_in_arrow(table: Any, rows: Sequence[TableRow]) -> Iterable[tuple[int, str]]:
    import pyarrow
    from pyarrow import compute

    names = spell(table)
    asked = _compare(table_of(rows, _KNOWN_BY)).append_column(_PLACE, pyarrow.array(range(len(rows))))
    # Compared while files are read, so that no more comes to memory than may be meant.
    instance, conversation = (compute.field(names[name]) for name in ("instance_name", _CONVERSATION))
    may_be_meant = instance.isin(_values_in(asked["instance_name"]))
    may_be_meant &= fold_texts(conversation).isin(_values_in(asked[_CONVERSATION]))
    read = select_arrow(table, [names[name] for name in _READ.names if name in names], may_be_meant)
    there = spell(read)
    stored = pyarrow.table(
        {
            name: read[there[name]].cast(kind.type) if name in there else pyarrow.nulls(len(read), kind.type)
            for name, kind in zip(_READ.names, arrow_schema(_READ), strict=True)
        }
    )
    stored = _compare(stored).group_by(_KNOWN_BY.names).aggregate([(_ID, "min")])
    matches = asked.join(stored, _KNOWN_BY.names, join_type="inner")
    return zip(matches[_PLACE].to_pylist(), matches[f"{_ID}_min"].to_pylist(), strict=True)


def _compare(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows with conversations and databases as they are compared."""
    from pyarrow import compute

    for name, values in (
        (_CONVERSATION, fold_texts(rows[_CONVERSATION])),
        (_DATABASE, compute.fill_null(rows[_DATABASE], "")),
    ):
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows


def _values_in(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    return column.unique().drop_null()


def _find_in_spark(table: DataFrame, rows: Sequence[TableRow]) -> Iterable[tuple[int, str]]:
    from pyspark.sql import functions as F

    from routing.tables.frames import frame_of, with_columns_of

    def compare(frame: DataFrame) -> DataFrame:
        return frame.withColumns(
            {_CONVERSATION: F.lower(_CONVERSATION), _DATABASE: F.coalesce(_DATABASE, F.lit(""))}
        )

    schema = Schema((*_KNOWN_BY, Field(_PLACE, ColumnKind.INT)))
    asked = frame_of(table.sparkSession, [{**row, _PLACE: place} for place, row in enumerate(rows)], schema)
    stored = compare(with_columns_of(table, _READ)).join(compare(asked), _KNOWN_BY.names, how="inner")
    return [(row[0], row[1]) for row in stored.groupBy(_PLACE).agg(F.min(_ID)).collect()]
