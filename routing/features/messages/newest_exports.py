"""What the newest exports of transmission queues hold: which messages wait, as far as imports know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from routing.features.messages.message_filter import HELD
from routing.schemas import IMPORTS, OBSERVED_ROUTING, Schema
from routing.tables.arrow_rows import micros_in, table_of
from routing.tables.input_columns import condition_of
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table, as_dataset, is_frame
from routing.tables.times import micros_of
from routing.terms import TRANSMISSION_QUEUE, ImportKind

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

Queue = tuple[str, str]
"""An instance and one of its databases."""
_VIEW = "transmission_queue"
_QUEUE, _AT = ("instance_name", "database_name"), "observed_at"
_EXPORTS = Schema(tuple(field for field in IMPORTS if field.name in (*_QUEUE, "exported_at", "kind")))
_HELD = Schema(tuple(field for field in OBSERVED_ROUTING if field.name in (*HELD, _AT)))
_OF_QUEUES = {"source": [TRANSMISSION_QUEUE]}


def newest_exports(imports: Table | None) -> dict[Queue, Any]:
    """Return the time of the newest export of each database's queue; a database without one is left out."""
    newest: dict[Queue, Any] = {}
    for row in [] if imports is None else read_rows(imports, _EXPORTS, only={"view_or_file": [_VIEW]}):
        if row["kind"] == ImportKind.SCRIPT:
            # A script may be called like the view.
            continue
        queue = (row["instance_name"], row["database_name"])
        newest[queue] = max(row["exported_at"], newest.get(queue, row["exported_at"]))
    return newest


def held_messages(observed: Table | None, exports: Mapping[Queue, Any], like: Table) -> Any:
    """Return the messages that the newest export of each queue holds, in the columns `message_filter.HELD`.

    A DataFrame where ``like`` is one, else a table of Arrow.
    """
    newest = [
        {"instance_name": instance, "database_name": database, _AT: at}
        for (instance, database), at in exports.items()
    ]
    if observed is None or not newest:
        return _as_kind_of(like, [])
    if not is_frame(observed):
        held_rows = _held_in_arrow(observed, newest)
        return _as_kind_of(like, held_rows.to_pylist()) if is_frame(like) else held_rows
    frame = _held_in_spark(observed, newest)
    return frame if is_frame(like) else _as_kind_of(like, (row.asDict() for row in frame.collect()))


def count_held(messages: Any) -> int:
    """Count messages that queues hold."""
    return messages.count() if is_frame(messages) else len(messages)


def _as_kind_of(like: Table, rows: Iterable[Mapping[str, Any]]) -> Any:
    shape = Schema(tuple(field for field in _HELD.optional() if field.name in HELD))
    if not is_frame(like):
        return table_of(rows, shape)
    from routing.tables.frames import frame_of

    return frame_of(like.sparkSession, rows, shape)


def _held_in_arrow(observed: Any, newest: list[dict[str, Any]]) -> pyarrow.Table:
    """Select the newest exports by Arrow; times are compared as they are read, for statistics round them."""
    import pyarrow

    rows = as_dataset(observed)
    observations = rows.to_table(columns=_HELD.names, filter=condition_of(rows, _OF_QUEUES))
    observations = observations.set_column(observations.column_names.index(_AT), _AT, micros_in(observations[_AT]))
    numbers = [{**row, _AT: micros_of(row[_AT])} for row in newest]
    exports = pyarrow.Table.from_pylist(
        numbers, pyarrow.schema([*((name, pyarrow.string()) for name in _QUEUE), (_AT, pyarrow.int64())])
    )
    return observations.join(exports, [*_QUEUE, _AT], join_type="left semi").select(list(HELD)).drop_null()


def _held_in_spark(observed: DataFrame, newest: list[dict[str, Any]]) -> DataFrame:
    from routing.tables.broadcast_joins import small_side
    from routing.tables.frames import frame_of, where_in

    exports = small_side(frame_of(observed.sparkSession, newest, _HELD.optional()).select(*_QUEUE, _AT))
    mine = where_in(observed, _OF_QUEUES).join(exports, [*_QUEUE, _AT], how="left_semi")
    return mine.select(*HELD).dropna()
