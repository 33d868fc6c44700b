"""Messages found in Arrow's tables and files: few passes over few columns, and no object of Python for a row.

Most of ten million rows are only counted: by instance first, then by service within the instances that fill the
list, then by time within its last group. Only the files that hold a listed row are read in all columns.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.features.messages.message_filter import GROUP, HELD, LEVELS, READ, STUCK, MessageFilter
from routing.features.messages.selected_messages import SelectedMessages
from routing.schemas import RESOLVED_ROUTES, Schema
from routing.tables.arrow_forms import find_replaced, without
from routing.tables.arrow_rows import find_undecodable, plain_values, with_readable_texts
from routing.tables.input_columns import COUNT, condition_of, group_rows, sum_groups
from routing.tables.read_rows import rows_of_arrow
from routing.tables.table_columns import Only, as_dataset, in_files, rows_where, select_arrow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_AGE = "enqueue_time"
_VERDICT = ("outcome", "reason")
_READ = Schema(tuple(field for field in RESOLVED_ROUTES if field.name in READ))
# What a row that a later attempt has replaced is counted and known by.
_NARROW = (*GROUP, "database_name", _AGE, "message_id", "attempt")


@dataclass(frozen=True)
class _Messages:
    """Rows for which a condition holds, except those that later attempts have replaced (columns `_NARROW`)."""

    rows: pyarrow.dataset.Dataset
    condition: Any
    replaced: pyarrow.Table

    def narrow(self, condition: Any) -> _Messages:
        """Narrow the messages by another condition; None is no condition."""
        if condition is None:
            return self
        replaced = as_dataset(self.replaced).to_table(filter=condition)
        return _Messages(self.rows, _both(self.condition, condition), replaced)

    def count(self, names: Sequence[str]) -> pyarrow.Table:
        """Count the messages by columns."""
        import pyarrow
        import pyarrow.compute as pc

        counted = group_rows(self.rows, names, self.condition)
        if not len(self.replaced):
            return counted
        gone = group_rows(as_dataset(self.replaced), names)
        gone = gone.set_column(len(names), COUNT, pc.negate(gone[COUNT]))
        left = sum_groups(pyarrow.concat_tables([counted, gone]), names)
        return rows_where(left, pc.greater(left[COUNT], 0))

    def read(self) -> pyarrow.Table:
        """Read all messages, in the columns of a listed one."""
        return self._in_files(_files_of(self.rows, self.condition))

    def oldest(self, wanted: int) -> pyarrow.Table:
        """Read rows that include the oldest ones, as many as are wanted, in the columns of a listed one."""
        # A replaced row may be older than those that stand.
        bound, files = _find_oldest(self.rows, self.condition, wanted + len(self.replaced))
        return self.narrow(bound)._in_files(files)

    def _in_files(self, files: Collection[str]) -> pyarrow.Table:
        found = in_files(self.rows, files).to_table(columns=_READ.names, filter=self.condition)
        return without(found, self.replaced)


def select(resolved: Any, asked: MessageFilter, held: pyarrow.Table | None) -> SelectedMessages:
    """Return the messages that are asked for; with ``held`` (columns `message_filter.HELD`) those it names."""
    rows = as_dataset(resolved)
    messages = _Messages(rows, None, find_replaced(rows, _NARROW)).narrow(condition_of(rows, asked.only))
    if held is not None:
        messages = _keep_held(messages, held)
    counts = messages.count((LEVELS[0], *_VERDICT))
    if asked.oldest:
        found, groups = messages.oldest(asked.limit), None
    else:
        found, groups = _first_by_group(messages, sum_groups(counts, LEVELS[:1]), asked.limit)
    found = found.sort_by([(name, "ascending") for name in asked.order]).slice(0, asked.limit)
    if groups is None:
        there: Only = {
            # What is no UTF-8 is nothing that a condition may name; it stands in tables of older releases alone.
            name: plain_values(found[name].unique())
            for name in LEVELS
            if find_undecodable(found[name]) is None
        }
        groups = messages.narrow(condition_of(rows, there)).count(GROUP)
    told = sum_groups(counts, _VERDICT).to_pylist()
    stuck = messages.narrow(condition_of(messages.rows, {"outcome": list(STUCK)}))
    listed = rows_of_arrow(found, _READ)
    return SelectedMessages.of(
        listed, told, with_readable_texts(groups).to_pylist(), lambda: _find_oldest_time(stuck)
    )


def _find_oldest_time(messages: _Messages) -> datetime | None:
    """Return the enqueue time of the oldest message."""
    oldest = messages.oldest(1).sort_by(_AGE).slice(0, 1)
    return next((row[_AGE] for row in rows_of_arrow(oldest, _READ)), None)


def _first_by_group(
    messages: _Messages, instances: pyarrow.Table, limit: int
) -> tuple[pyarrow.Table, pyarrow.Table]:
    """Read rows that include the first ones by group and age; return them with their groups, counted."""
    import pyarrow

    cut = _cut(instances, LEVELS[:1], limit)
    before = messages if cut is None else messages.narrow(_up_to(LEVELS[:1], cut.group))
    groups = before.count(GROUP)
    cut = None if cut is None else _cut(sum_groups(groups, LEVELS), LEVELS, limit)
    if cut is None:
        return before.read(), groups
    listed = select_arrow(groups, groups.column_names, _up_to(LEVELS, cut.group))
    found = messages.narrow(_equal(LEVELS, cut.group)).oldest(cut.wanted)
    if cut.wanted < limit:
        found = pyarrow.concat_tables([before.narrow(_below(LEVELS, cut.group)).read(), found])
    return found, listed


@dataclass(frozen=True)
class _Cut:
    """The group in which a list ends, in scalars of Arrow's, and how many of its rows are wanted."""

    group: tuple[Any, ...]
    wanted: int


def _cut(counts: pyarrow.Table, names: Sequence[str], limit: int) -> _Cut | None:
    """Return where a list of so many rows ends; None where it holds all rows."""
    import pyarrow.compute as pc

    ordered = counts.sort_by([(name, "ascending") for name in names])
    ends = pc.cumulative_sum(ordered[COUNT])
    place = pc.sum(pc.less(ends, limit)).as_py() or 0
    if place == len(ordered):
        return None
    before = ends[place - 1].as_py() if place else 0
    return _Cut(tuple(ordered[name][place] for name in names), limit - before)


def _equal(names: Sequence[str], group: Sequence[Any]) -> Any:
    """Return whether a row is of a group."""
    import pyarrow.compute as pc

    return reduce(operator.and_, [pc.field(name) == value for name, value in zip(names, group, strict=True)])


def _below(names: Sequence[str], group: Sequence[Any]) -> Any:
    """Return whether a row is of a group that comes before one."""
    import pyarrow.compute as pc

    steps = [
        reduce(operator.and_, [pc.field(name) < value, *([_equal(names[:place], group[:place])] if place else [])])
        for place, (name, value) in enumerate(zip(names, group, strict=True))
    ]
    return reduce(operator.or_, steps)


def _up_to(names: Sequence[str], group: Sequence[Any]) -> Any:
    """Return the condition for rows of groups up to one, that included."""
    return _below(names, group) | _equal(names, group)


def _find_oldest(rows: pyarrow.dataset.Dataset, condition: Any, wanted: int) -> tuple[Any, set[str]]:
    """Return the condition that rows are as old as the last one wanted, and the files that have such rows."""
    import pyarrow
    import pyarrow.compute as pc

    found = [
        (getattr(tagged.fragment, "path", ""), tagged.record_batch[_AGE])
        for tagged in rows.scanner(columns=[_AGE], filter=condition).scan_batches()
    ]
    times = pyarrow.chunked_array([part for _, part in found], rows.schema.field(_AGE).type).combine_chunks()
    if len(times) <= wanted:
        return None, {path for path, part in found if len(part)}
    bound = times[pc.partition_nth_indices(times, pivot=wanted - 1)[wanted - 1].as_py()]
    files = {path for path, part in found if pc.any(pc.less_equal(part, bound)).as_py()}
    return pc.field(_AGE) <= bound, files


def _files_of(rows: pyarrow.dataset.Dataset, condition: Any) -> set[str]:
    """Return the files that have rows for which a condition holds."""
    batches = rows.scanner(columns=[_AGE], filter=condition).scan_batches()
    return {getattr(tagged.fragment, "path", "") for tagged in batches if len(tagged.record_batch)}


def _keep_held(messages: _Messages, held: pyarrow.Table) -> _Messages:
    """Select the messages that queues hold, read as a whole: no more than these hold."""
    import pyarrow.compute as pc

    of_ids = messages.narrow(pc.field("message_id").isin(held["message_id"].unique()))
    found = of_ids.read().join(held, list(HELD), join_type="left semi")
    return _Messages(as_dataset(found), None, messages.replaced.slice(0, 0))


def _both(condition: Any, other: Any) -> Any:
    return other if condition is None else condition & other
