"""Messages of Arrow's tables and files judged twice in plain Python, those that either side can touch alone."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from routing.features.diff.decision_comparison import (
    DECIDED,
    ENDS,
    JOINED,
    SHOWN,
    AffectedServices,
    MessageChanges,
    find_affected,
    narrow,
)
from routing.features.diff.sides import DiffSides, OneSide
from routing.plan.checked_inputs import network_of
from routing.plan.verdicts import JudgedRow, KnownDialogs, RowJudge
from routing.rules import text
from routing.schemas import EXAMPLES, KEY_CHANGES, MESSAGE_CHANGES
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import micros_in, plain_values
from routing.tables.column_kinds import arrow_schema
from routing.tables.input_columns import read_messages
from routing.tables.table_columns import Table, TableColumns, as_dataset, rows_where, shape_of
from routing.terms import REJECTED

if TYPE_CHECKING:
    import pyarrow

Decided = tuple[str | None, ...]
"""What is compared of a decision, in the order of `comparing.DECIDED`."""
_ID = "conversation_id"
_GROUP = ("instance_name", "database_name", "to_service_name")
_EXAMPLE = tuple(name for name in EXAMPLES.names if name not in ENDS)
_OF_A_MESSAGE = tuple(name for name in MESSAGE_CHANGES.names if not name.endswith(("_before", "_after")))


def find_changed(
    messages: Table, dialogs: Table | None, sides: DiffSides, *, with_messages: bool
) -> MessageChanges:
    """Return the messages of which the decisions differ; ``with_messages`` keeps each of them.

    Judged are those that may differ, with all messages of their instance to their service, since these may ask for
    the same route (section 5).
    """
    affected = find_affected(sides)
    if not sides.is_one_time and dialogs is not None:
        _add_dialogs(affected, messages, dialogs, *sorted((sides.before.at, sides.after.at)))
    names = affected.whole | affected.services.keys()
    changes = _ChangedMessages(with_messages)
    if names:
        read = KnownDialogs.of_table(dialogs)
        judges = [_judge(one_side, names, read, messages, affected) for one_side in (sides.before, sides.after)]
        for batch in _batches(messages, affected):
            changes.add(batch, *(judge.judge(batch) for judge in judges))
    return MessageChanges(as_dataset(messages).count_rows(), changes.groups, changes.examples, changes.messages())


def _judge(
    side: OneSide, names: set[str], dialogs: KnownDialogs, messages: Table, affected: AffectedServices
) -> RowJudge:
    """Create the judge of one side's messages of some instances, with the messages that open requests."""
    judge = RowJudge(network_of(narrow(side.settings, names)), dialogs, side.at)
    judge.find_openers(_batches(messages, affected))
    return judge


def _batches(messages: Table, affected: AffectedServices) -> Iterator[TableColumns]:
    return chain.from_iterable(read_messages(messages, only) for only in affected.filters)


def _add_dialogs(affected: AffectedServices, messages: Table, dialogs: Table, first: int, last: int) -> None:
    """Add the messages of dialogs that are acknowledged, or expire, between two times (microseconds)."""
    import pyarrow.compute as pc

    ids = _turning(dialogs, first, last)
    if not len(ids):
        return
    rows, shape = as_dataset(messages), shape_of(messages, "messages")
    of_dialogs = fold_texts(pc.field(shape[_ID])).isin(ids)
    places = [shape["instance_name"], shape["to_service_name"]]
    places_found = rows.to_table(columns=places, filter=of_dialogs).group_by(places).aggregate([])
    for instance, service in zip(*(plain_values(column) for column in places_found.columns), strict=True):
        if instance and service:
            affected.add(instance, service)


def _turning(dialogs: Table, first: int, last: int) -> Any:
    """Return the folded ids of conversations of which a dialog is acknowledged or expires between two times."""
    import pyarrow
    import pyarrow.compute as pc

    shape = shape_of(dialogs, "dialogs")
    times = [name for name in ("acknowledged_at", "lifetime") if name in shape]
    columns = {name: pc.field(shape[name]) for name in (_ID, *times)}
    rows = as_dataset(dialogs).to_table(columns=columns)
    turning_ids: set[str] = set()
    for name in times:
        micros = micros_in(rows[name])
        turns = pc.and_(pc.greater(micros, first), pc.less_equal(micros, last))
        turning_ids.update(fold_texts(rows_where(rows[_ID], turns)).to_pylist())
    return pyarrow.array(sorted(turning_ids), pyarrow.string())


def _decided(judged: JudgedRow) -> Decided:
    """Return the parts of a message's decision, or of its rejection, that are compared."""
    done = judged.verdict
    if done is None:
        return (REJECTED, JOINED.join(judged.rejections), None, None, None, None)
    where = (done.address, done.mirror_address, done.destination_database)
    return (done.outcome, done.reason, done.route_name, *where)


def _plain(decided: Decided) -> Decided:
    """Return the decision with words as the texts that tables hold."""
    return tuple(None if value is None else str(value) for value in decided)


@dataclass
class _ChangedMessages:
    """The changed messages so far."""

    with_messages: bool
    _counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    # For each change from an outcome and reason to others the places of the lowest messages, nulls first.
    _lowest: dict[Decided, list[tuple[Any, ...]]] = field(default_factory=dict)
    _parts: list[pyarrow.RecordBatch] = field(default_factory=list)

    def add(self, batch: TableColumns, before: Sequence[JudgedRow], after: Sequence[JudgedRow]) -> None:
        """Add the messages of a batch, judged on both sides."""
        pairs = enumerate(zip(map(_decided, before), map(_decided, after), strict=True))
        changed = [(place, _plain(old), _plain(new)) for place, (old, new) in pairs if old != new]
        if not changed:
            return
        rows = batch.take([place for place, _, _ in changed])
        changed_rows = zip(rows.rows(*_GROUP), rows.rows(*_EXAMPLE), changed, strict=True)
        for (instance, database, service), example, (_, old, new) in changed_rows:
            self._counts[(instance, text.empty_as_null(database), service, *old, *new)] += 1
            self._keep_lowest((*old[:2], *new[:2]), example)
        if self.with_messages:
            self._parts.append(_rows(rows, [old for _, old, _ in changed], [new for _, _, new in changed]))

    def _keep_lowest(self, ends: Decided, example: tuple[Any, ...]) -> None:
        lowest = self._lowest.setdefault(ends, [])
        insort(lowest, tuple((value is not None, value or "") for value in example))
        del lowest[SHOWN:]

    @property
    def groups(self) -> list[Mapping[str, Any]]:
        """As `comparing.MessageChanges` has them."""
        names = KEY_CHANGES.names
        return [dict(zip(names, (*group, count), strict=True)) for group, count in self._counts.items()]

    @property
    def examples(self) -> list[Mapping[str, Any]]:
        """As `comparing.MessageChanges` has them."""
        return [
            dict(
                zip(
                    EXAMPLES.names,
                    (*ends, *(value if is_given else None for is_given, value in example)),
                    strict=True,
                )
            )
            for ends, examples in self._lowest.items()
            for example in examples
        ]

    def messages(self) -> pyarrow.Table | None:
        """Return every changed message; None where they are not kept."""
        if not self.with_messages:
            return None
        import pyarrow

        return pyarrow.Table.from_batches(self._parts, arrow_schema(MESSAGE_CHANGES.optional()))


def _rows(messages: TableColumns, before: Sequence[Decided], after: Sequence[Decided]) -> pyarrow.RecordBatch:
    """Build the rows of changed messages with both decisions."""
    import pyarrow

    values: dict[str, Sequence[Any]] = {name: messages.values[name] for name in _OF_A_MESSAGE}
    for when, decided in (("before", before), ("after", after)):
        columns = zip(*decided, strict=True)
        values.update({f"{name}_{when}": column for name, column in zip(DECIDED, columns, strict=True)})
    schema = arrow_schema(MESSAGE_CHANGES.optional())
    return pyarrow.record_batch([pyarrow.array(values[one.name], one.type) for one in schema], schema=schema)
