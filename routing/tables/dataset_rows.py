"""Filter, sort and group the rows of a dataset, reading as few files and columns as possible.

Delta's log has the times of a file only in milliseconds, so times are compared after reading.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.tables.arrow_forms import Attempts, without
from routing.tables.arrow_rows import micros_in
from routing.tables.encoded_texts import (
    WAITING,
    GroupSums,
    TextNumbering,
    array_of,
    decoded,
    encoded,
    is_one_of,
)
from routing.tables.table_columns import ALL, COUNT, Filter, as_dataset, in_files, in_files_with, rows_where
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

# Columns with a distinct text in most rows. Numbering these takes longer than reading them.
_IDS = frozenset(("message_id", "conversation_id", "conversation_handle", "conversation_group_id"))


@dataclass(frozen=True)
class DatasetRows:
    """The rows of a dataset.

    ``shape`` maps the columns to their names in the dataset. ``attempts`` has the rows that later attempts
    replaced. It is None if there are none, or if replaced rows count too. ``rows_waiting`` rows are collected
    before they are added to the groups.
    """

    dataset: pyarrow.dataset.Dataset
    shape: Mapping[str, str]
    attempts: Attempts | None = None
    rows_waiting: int = WAITING

    def type_of(self, name: str) -> pyarrow.DataType:
        """Return the type of a column."""
        return self.dataset.schema.field(self.shape[name]).type

    def is_text(self, name: str) -> bool:
        """Return whether a column exists and has texts."""
        import pyarrow

        return name in self.shape and pyarrow.types.is_string(self.type_of(name))

    def fields(self, names: Iterable[str]) -> TableRow:
        """Return the dataset's columns with these names, as expressions."""
        import pyarrow.compute as pc

        return {name: pc.field(self.shape[name]) for name in dict.fromkeys(names) if name in self.shape}

    def condition(self, only: Filter) -> Any:
        """Return the condition that each column has one of its values, or None without a filter."""
        import pyarrow.compute as pc

        conditions = []
        for name, values in only.items():
            if name not in self.shape:
                conditions += [] if values is None else [pc.scalar(False)]
            elif values is None:
                conditions.append(pc.field(self.shape[name]).is_null())
            else:
                # Comparing one value is faster than looking it up.
                wanted, field = array_of(values, self.type_of(name)), pc.field(self.shape[name])
                conditions.append(field == wanted[0] if len(wanted) == 1 else field.isin(wanted))
        return all_of(conditions)

    def count(self, present: Sequence[str] = ()) -> int:
        """Count the rows with a value in each of some columns."""
        import pyarrow.compute as pc

        if any(name not in self.shape for name in present):
            return 0
        condition = all_of([pc.field(self.shape[name]).is_valid() for name in present])
        replaced = 0 if self.attempts is None else as_dataset(self.attempts.replaced).count_rows(filter=condition)
        return int(self.dataset.count_rows(filter=condition)) - replaced

    def parts(
        self,
        names: Iterable[str],
        only: Filter = ALL,
        numbered: Collection[str] = (),
        *,
        has_replaced: bool = False,
    ) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
        """Yield some columns of the rows that ``only`` selects, in batches of limited size.

        Texts of the ``numbered`` columns, and of those in ``only``, are numbers if the files store them so. Each
        batch has a weight. It is 1, or -1 with ``has_replaced`` for replaced rows, which other batches contain
        too.
        """
        fields = self.fields((*names, *only))
        if any(name not in self.shape and values is not None for name, values in only.items()):
            return
        tests = {name: is_one_of(values) for name, values in only.items() if name in self.shape}
        texts = {self.shape[name] for name in (*numbered, *only) if name in self.shape and name not in _IDS}
        # A condition that is the same for all rows of a file is checked once for the file.
        rows = encoded(in_files_with(self.dataset, self.condition(only)), texts)
        is_once = None if self.attempts is None or has_replaced else self.attempts.once
        # Read-ahead takes most of the memory.
        scanner = rows.scanner(fields, filter=is_once, batch_readahead=4, fragment_readahead=1)
        for batch in scanner.to_batches():
            yield 1, _rows_that_pass(batch, tests)
        if self.attempts is not None:
            rest = self.attempts.replaced if has_replaced else self.attempts.last
            for batch in rest.select(list(fields)).to_batches():
                yield -1 if has_replaced else 1, _rows_that_pass(batch, tests)

    def count_groups(
        self,
        by: Sequence[str],
        *,
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        varying: str | None = None,
        only: Filter = ALL,
    ) -> pyarrow.Table:
        """Count the rows of each group (see `ArrowTraffic.groups`). Texts are numbers until all rows are read."""
        import pyarrow
        import pyarrow.compute as pc

        measures = {f"min_{name}": (name, "min") for name in least} | {
            f"max_{name}": (name, "max") for name in most
        }
        if varying is not None:
            measures |= {"_least": (varying, "min"), "_most": (varying, "max")}
        present = [name for name in by if name in self.shape]
        numbers = {name: TextNumbering() for name in present if self.is_text(name) and name not in _IDS}
        sums = GroupSums(
            present, {COUNT: "sum", **{name: how for name, (_, how) in measures.items()}}, self.rows_waiting
        )
        # A minimum or maximum cannot be corrected by subtracting replaced rows.
        has_replaced = not measures
        names = dict.fromkeys((*present, *(name for name, _ in measures.values())))
        for weight, part in self.parts(names, only, numbers, has_replaced=has_replaced):
            columns = {
                name: numbers[name].number(part[name]) if name in numbers else part[name] for name in present
            }
            columns |= {name: as_measured(part[of]) for name, (of, _) in measures.items()}
            sums.add(pyarrow.table({**columns, COUNT: pyarrow.repeat(weight, len(part))}))
        groups = sums.all()
        columns = {name: pyarrow.nulls(len(groups), pyarrow.string()) for name in by}
        columns |= {name: groups[name].cast(self.type_of(name)) for name in present if name not in numbers}
        columns |= {name: numbering.texts.take(groups[name].cast("int64")) for name, numbering in numbers.items()}
        columns[COUNT] = groups[COUNT].cast("int64")
        columns |= {name: groups[name].cast(type_measured(self.type_of(of))) for name, (of, _) in measures.items()}
        table = pyarrow.table(columns)
        if self.attempts is not None and has_replaced:
            table = rows_where(table, pc.greater(table[COUNT], 0))
        if varying is not None:
            table = rows_where(table, pc.not_equal(table["_least"], table["_most"]))
            table = table.drop_columns(["_least", "_most"])
        return table

    # The first rows in an order. If the order begins with a time, few other rows are read completely.

    def first(
        self, names: Sequence[str], only: Filter = ALL, order: Sequence[str] = (), limit: int | None = None
    ) -> pyarrow.Table:
        """Return the first rows in an order, with the named columns and those of the order."""
        condition, replaced = self.condition(only), None if self.attempts is None else self.attempts.replaced
        rows, count = self._find_files(condition, counts=limit is not None)
        if limit is not None and order and count > limit:
            condition = rows._is_among_first(condition, order[0], limit)
            rows, _ = rows._find_files(condition)
        read = (*names, *order, *(() if replaced is None else replaced.column_names))
        table = rows.dataset.to_table(columns=self.fields(read), filter=condition)
        if replaced is not None:
            table = without(table, replaced)
        return in_order(table, order)[:limit]

    def where(self, condition: Any, names: Sequence[str]) -> pyarrow.Table:
        """Return some columns of the rows that meet a condition, replaced rows included."""
        rows, _ = self._find_files(condition)
        return rows.dataset.to_table(columns=self.fields(names), filter=condition)

    def _find_files(self, condition: Any, *, counts: bool = False) -> tuple[DatasetRows, int]:
        """Return the files with rows that meet a condition, and with ``counts`` the number of these rows.

        Arrow reads every column of all files that may have such rows. So only the columns of the condition are
        read first.
        """
        rows = self.dataset
        if condition is None:
            return self, rows.count_rows() if counts else 0
        if not counts and len(getattr(rows, "files", ())) < 2:
            return self, 0
        batches = rows.scanner(columns=[], filter=condition).scan_batches()
        counted: Counter[str] = Counter()
        for batch in batches:
            counted[getattr(batch.fragment, "path", "")] += len(batch.record_batch)
        return replace(self, dataset=in_files(rows, +counted)), counted.total()

    def _is_among_first(self, condition: Any, time: str, limit: int) -> Any:
        """Return a condition that the first rows by a time meet, and few others."""
        import pyarrow
        import pyarrow.compute as pc

        if time not in self.shape or not pyarrow.types.is_timestamp(self.type_of(time)):
            return condition
        # A replaced row may be older than those that count.
        last = self._find_time(time, condition, limit + (len(self.attempts.replaced) if self.attempts else 0))
        return all_of([condition, None if last is None else pc.field(self.shape[time]) <= last])

    def _find_time(self, name: str, condition: Any, wanted: int) -> Any:
        """Return the time of the last of the ``wanted`` first rows, or None if there are no further rows.

        Only a few more times than ``wanted`` are in memory at once.
        """
        import pyarrow

        first = pyarrow.nulls(0, self.type_of(name))
        waiting: list[pyarrow.Array] = []
        rows = self.dataset.scanner(self.fields([name]), filter=condition, batch_readahead=4, fragment_readahead=1)
        for batch in rows.to_batches():
            waiting.append(batch.column(0))
            if sum(map(len, waiting)) > wanted + self.rows_waiting:
                first, waiting = _least([first, *waiting], wanted + 1), []
        first = _least([first, *waiting], wanted + 1).sort()
        return first[wanted - 1] if len(first) > wanted and first[wanted - 1].is_valid else None


def _least(parts: Sequence[pyarrow.Array], limit: int) -> pyarrow.Array:
    """Return the least values of some arrays, in any order. Null is greater than all values."""
    import pyarrow
    import pyarrow.compute as pc

    values = pyarrow.concat_arrays(parts)
    if len(values) <= limit:
        return values
    return values.take(pc.partition_nth_indices(values, pivot=limit)[:limit])


def all_of(conditions: Iterable[Any]) -> Any:
    """Combine conditions with AND, ignoring None. Return None if no condition remains."""
    present = [condition for condition in conditions if condition is not None]
    return reduce(operator.and_, present) if present else None


def _rows_that_pass(part: pyarrow.RecordBatch, tests: Mapping[str, Callable[[Any], Any]]) -> pyarrow.RecordBatch:
    """Return the rows of a batch that pass the tests of its columns."""
    import pyarrow.compute as pc

    masks = [test(part[name]) for name, test in tests.items()]
    return part.filter(reduce(pc.and_, masks)) if masks else part


def as_measured(column: pyarrow.Array) -> pyarrow.Array:
    """Convert a column for computing its minimum and maximum, with times as numbers."""
    import pyarrow

    return micros_in(column) if pyarrow.types.is_timestamp(column.type) else decoded(column)


def type_measured(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type of the result of `as_measured` for a column of a type."""
    import pyarrow

    return pyarrow.int64() if pyarrow.types.is_timestamp(kind) else kind


def in_order(table: pyarrow.Table, order: Iterable[str]) -> pyarrow.Table:
    """Sort rows by those of the named columns that exist, ascending and with nulls last."""
    keys = [(name, "ascending") for name in order if name in table.column_names]
    return table.sort_by(keys) if keys else table
