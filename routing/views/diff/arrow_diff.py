"""Decide and follow messages of Arrow tables and files on both sides, if a difference can affect them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from routing.cases.estate_differences import AffectedServices, Only, PathDifference
from routing.engines.arrow.changed_batches import BatchComparer, ComparedMessages, DecidingSide
from routing.engines.arrow.changed_rows import GROUP, ChangedRows
from routing.engines.arrow.compared_paths import ComparedPaths, SidePaths
from routing.engines.arrow.message_keys import ChosenRows, MessageRows
from routing.engines.arrow.resolved_batches import MessageScan, find_all_requests, for_each_thread
from routing.engines.arrow.text_numbers import ServiceNumbers
from routing.plan.checked_inputs import CheckedInputs
from routing.process import no_search_for_cycles
from routing.result_schemas import ENDS, EXAMPLES, KEY_CHANGES, MESSAGE_CHANGES
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import arrow_schema, micros_in, plain_values
from routing.tables.encoded_texts import GroupSums, encoded
from routing.tables.read_rows import condition_of
from routing.tables.table_columns import Table, as_dataset, in_files_with, rows_where, shape_of
from routing.terms import ReadRow
from routing.views.diff.decision_comparison import SHOWN, MessageChanges

if TYPE_CHECKING:
    import pyarrow

    from routing.delta.data_files import DataFiles, DataFileWriter

_ID, _COUNT = "conversation_id", "messages"
_GROUP = tuple(name for name in KEY_CHANGES.names if name != _COUNT)
_EXAMPLE = tuple(name for name in EXAMPLES.names if name not in ENDS)


def compare_messages(
    messages: Table, dialogs: Table | None, difference: PathDifference
) -> ComparedMessages | None:
    """Return the messages that both sides must decide, or None if no message can change.

    They include all messages of the same instance and service, since these may ask for the same route (section 5).
    """
    sides, touched = difference.sides, AffectedServices()
    touched.join(difference.affected)
    if not sides.is_one_time and dialogs is not None:
        _add_dialogs(touched, messages, dialogs, *sorted((sides.before.at, sides.after.at)))
    if not touched.filters:
        return None
    selections = difference.select(touched, lambda only: _find_services(messages, only))
    rows = replace(MessageRows.of(messages, None), chosen=ChosenRows(selections))
    rows = replace(rows, rows=_files_with(rows.rows, selections))
    checked = [CheckedInputs(side.settings, dialogs=dialogs) for side in sides.both]
    paths, services = ComparedPaths(), ServiceNumbers.of(*checked)
    # The dialogs, and the rows of both sides, are without a fault.
    scans = [
        MessageScan.of(replace(rows, at=side.at), dialogs, inputs, services=services)
        for side, inputs in zip(sides.both, checked, strict=True)
    ]
    before, after = (
        DecidingSide.of(scan, find_all_requests(scan), network, SidePaths(paths, may_differ))
        for scan, network, may_differ in zip(
            scans, (difference.before, difference.after), (difference.may_differ, None), strict=True
        )
    )
    return ComparedMessages(before, after, ChosenRows(touched.filters), paths)


def _files_with(rows: pyarrow.dataset.Dataset, selections: Iterable[Only]) -> pyarrow.dataset.Dataset:
    condition: Any = None
    for only in selections:
        file_condition = condition_of(rows, only)
        condition = file_condition if condition is None else condition | file_condition
    return in_files_with(rows, condition)


def _find_services(messages: Table, only: Only) -> Iterator[str]:
    shape = shape_of(messages, "messages")
    if "from_service_name" not in shape:
        return
    rows = as_dataset(messages)
    for (service,) in _distinct(rows, [shape["to_service_name"]], condition_of(rows, only)):
        if service:
            yield service


def _distinct(rows: pyarrow.dataset.Dataset, names: list[str], condition: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the distinct values of some columns of text, in rows that meet a condition."""
    import pyarrow

    groups = GroupSums(names, {})
    for batch in encoded(rows, names).scanner(names, filter=condition).to_batches():
        if len(batch):
            groups.add(pyarrow.table(batch))
    all_groups = groups.all()
    yield from zip(*(plain_values(all_groups[name]) for name in names), strict=True)


def _add_dialogs(affected: AffectedServices, messages: Table, dialogs: Table, first: int, last: int) -> None:
    """Add the messages of dialogs that are acknowledged, or expire, between two times (microseconds)."""
    import pyarrow.compute as pc

    ids = _find_changing_dialogs(dialogs, first, last)
    if not len(ids):
        return
    shape = shape_of(messages, "messages")
    of_dialogs = fold_texts(pc.field(shape[_ID])).isin(ids)
    places = [shape["instance_name"], shape["to_service_name"]]
    for instance, service in _distinct(as_dataset(messages), places, of_dialogs):
        if instance and service:
            affected.add(instance, service)


def _find_changing_dialogs(dialogs: Table, first: int, last: int) -> Any:
    import pyarrow
    import pyarrow.compute as pc

    shape = shape_of(dialogs, "dialogs")
    times = [name for name in ("acknowledged_at", "lifetime") if name in shape]
    columns = {name: pc.field(shape[name]) for name in (_ID, *times)}
    rows = as_dataset(dialogs).to_table(columns=columns)
    parts = [pyarrow.chunked_array([], pyarrow.string())]
    for name in times:
        micros = micros_in(rows[name])
        turns = pc.and_(pc.greater(micros, first), pc.less_equal(micros, last))
        parts.append(fold_texts(rows_where(rows[_ID], turns)).cast(pyarrow.string()))
    return pc.unique(pyarrow.chunked_array([chunk for part in parts for chunk in part.chunks], pyarrow.string()))


@dataclass
class _CountedChanges:
    """The changed messages so far: counts by group, and the lowest ones of each change, nulls first."""

    sums: GroupSums = field(default_factory=lambda: GroupSums(GROUP, {_COUNT: "sum"}))
    lowest: dict[tuple[Any, ...], list[tuple[Any, ...]]] = field(default_factory=dict)

    def add(self, changes: ChangedRows) -> None:
        """Add the changes of a batch."""
        self.sums.add(changes.group())
        lowest = changes.find_lowest(SHOWN)
        ends, examples = (
            zip(*(plain_values(lowest[name]) for name in names), strict=True) for names in (ENDS, _EXAMPLE)
        )
        for change, example in zip(ends, examples, strict=True):
            self.keep_lowest(change, tuple((value is not None, value or "") for value in example))

    def join(self, other: _CountedChanges) -> None:
        """Add the changes of another thread."""
        groups = other.sums.all()
        if len(groups):
            self.sums.add(groups)
        for change, examples in other.lowest.items():
            for example in examples:
                self.keep_lowest(change, example)

    def keep_lowest(self, change: tuple[Any, ...], example: tuple[Any, ...]) -> None:
        """Add an example of a change, if it is one of the lowest."""
        lowest = self.lowest.setdefault(change, [])
        insort(lowest, example)
        del lowest[SHOWN:]

    def groups(self, compared: ComparedMessages) -> list[ReadRow]:
        """Return the groups as `decision_comparison.MessageChanges` has them."""
        counted = self.sums.all()
        if not len(counted):
            return []
        spelt = GroupSums(_GROUP, {_COUNT: "sum"})
        spelt.add(compared.spell(counted))
        groups = spelt.all()
        rows = zip(*(plain_values(groups[name]) for name in KEY_CHANGES.names), strict=True)
        return [dict(zip(KEY_CHANGES.names, row, strict=True)) for row in rows]

    @property
    def examples(self) -> list[ReadRow]:
        """As `decision_comparison.MessageChanges` has them."""
        return [
            {
                **dict(zip(ENDS, change, strict=True)),
                **{n: value if is_there else None for n, (is_there, value) in zip(_EXAMPLE, example, strict=True)},
            }
            for change, examples in self.lowest.items()
            for example in examples
        ]


def _write_to(file: DataFileWriter) -> Callable[[ChangedRows], None]:
    return lambda changes: file.add(changes.table())


@dataclass
class ChangedMessages:
    """The messages that change, which are counted while they are read: to be read once."""

    compared: ComparedMessages | None
    _counted: _CountedChanges = field(default_factory=_CountedChanges)

    def write_to(self, files: DataFiles) -> None:
        """Write every changed message, with one file for each thread."""
        self._read(lambda: _write_to(files.open()))

    def count(self) -> None:
        """Count the changed messages, and keep none."""
        self._read(lambda: lambda changes: None)

    def collect(self) -> pyarrow.Table:
        """Return every changed message."""
        import pyarrow

        shape, parts = arrow_schema(MESSAGE_CHANGES.optional()), list[Any]()
        self._read(lambda: lambda changes: parts.append(changes.table().cast(shape)))
        return pyarrow.concat_tables([shape.empty_table(), *parts])

    def summarize(self, read: int, messages: Table | None) -> MessageChanges:
        """Return the changes among all read messages. ``messages`` are the changed ones, if they are kept."""
        groups = [] if self.compared is None else self._counted.groups(self.compared)
        return MessageChanges(read, groups, self._counted.examples, messages)

    def _read(self, open_sink: Callable[[], Callable[[ChangedRows], None]]) -> None:
        """Send every changed message to a sink; each thread has its own."""
        if self.compared is None:
            return
        compared = self.compared

        def work(batches: Iterator[pyarrow.RecordBatch]) -> _CountedChanges:
            comparer, sink, counted = BatchComparer(compared), open_sink(), _CountedChanges()
            for batch in batches:
                changes = comparer.compare(batch)
                if changes is not None:
                    sink(changes)
                    counted.add(changes)
            return counted

        with no_search_for_cycles():
            for counted in for_each_thread(compared.batches(), work):
                self._counted.join(counted)
