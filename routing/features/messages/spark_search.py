"""Messages found where Spark has them: each attempt but the last left out, counted and cut there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from routing.features.messages.message_filter import GROUP, HELD, LEVELS, READ, STUCK, MessageFilter
from routing.features.messages.selected_messages import SelectedMessages
from routing.tables.frames import rows_of, where_in
from routing.tables.input_columns import COUNT, count_by
from routing.tables.spark_forms import last_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VERDICT = ("outcome", "reason")


def select(resolved: DataFrame, asked: MessageFilter, held: DataFrame | None) -> SelectedMessages:
    """Return the messages that are asked for; with ``held`` (columns `message_filter.HELD`) those it names."""
    messages = where_in(last_rows(resolved), asked.only)
    if held is not None:
        messages = messages.join(held, list(HELD), how="left_semi")
    order = [F.asc_nulls_last(name) for name in asked.order]
    listed = rows_of(messages.select(*READ).orderBy(*order).limit(asked.limit))
    counts = count_by(messages, _VERDICT)
    groups = count_by(messages, GROUP, {name: sorted({row[name] for row in listed}) for name in LEVELS})

    def find_oldest() -> datetime | None:
        stuck = where_in(messages, {"outcome": list(STUCK)}).select(*READ)
        return next((row["enqueue_time"] for row in rows_of(stuck.orderBy("enqueue_time").limit(1))), None)

    return SelectedMessages.of(listed, _rows(counts, _VERDICT), _rows(groups, GROUP), find_oldest)


def _rows(counts: Mapping[tuple[Any, ...], int], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    return ({**dict(zip(names, group, strict=True)), COUNT: count} for group, count in counts.items())
