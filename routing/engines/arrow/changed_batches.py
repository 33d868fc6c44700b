"""Find by Arrow, batch by batch, the messages that two configurations, or two times, decide differently.

Each side decides a batch as a run does. Equal values of two decisions have one number on both sides: so numbers
are compared, and texts only where a route reads its address from the message's own service name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from routing.engines.arrow.decisions import DecisionColumns, GrowingColumn, WordColumn
from routing.engines.arrow.message_keys import NUMBERED, MessageRows, texts_of
from routing.engines.arrow.open_requests import FoundRequests
from routing.engines.arrow.resolved_batches import (
    BatchResolver,
    KnownPlaces,
    MessageScan,
    as_read,
    find_all_requests,
    find_decisions,
    find_reasons,
)
from routing.engines.arrow.text_numbers import TextColumn, first_of, used_words
from routing.plan.checked_inputs import CheckedInputs
from routing.result_schemas import DECIDED, EXAMPLES, KEY_CHANGES, MESSAGE_CHANGES
from routing.schemas import ColumnKind
from routing.tables.arrow_forms import leading_addresses
from routing.tables.arrow_rows import arrow_type, find_undecodable, plain_values, with_readable_texts
from routing.tables.encoded_texts import split_words
from routing.tables.table_columns import Table
from routing.terms import REJECTED

if TYPE_CHECKING:
    import pyarrow

_SIDES = ("before", "after")
_ENDS = tuple(name for name in EXAMPLES.names if name.endswith(_SIDES))
_EXAMPLE = tuple(name for name in EXAMPLES.names if name not in _ENDS)
_GROUPED = tuple(name for name in KEY_CHANGES.names if name != "messages" and not name.endswith(_SIDES))
_JOINED = ", "
# A diff also reads the conversation as it is written, and the place in the batch.
_AS_READ, _PLACE = "conversation_as_read", "place"
# No decision has this number.
_NO_NUMBER = -1


@dataclass(frozen=True)
class DecidingSide:
    """One of two sides: its configuration, its time, and the requests that messages open there."""

    scan: MessageScan
    requests: FoundRequests | None
    places: KnownPlaces

    @classmethod
    def of(cls, messages: MessageRows, dialogs: Table | None, checked: CheckedInputs) -> DecidingSide:
        """Return a side that decides some messages; ``dialogs`` are Arrow's, without a fault."""
        scan = MessageScan.of(messages, dialogs, checked)
        return cls(scan, find_all_requests(scan), KnownPlaces.of(checked))


class ComparedColumns(NamedTuple):
    """Compared columns of decisions, by the numbers that both sides share.

    ``texts`` are words and numbers of words by the names of `DECIDED`; ``ends`` numbers of outcome and reason;
    ``reads_address``: the address is that of the message's own service name, if that has one.
    """

    texts: Mapping[str, tuple[pyarrow.Array, pyarrow.Array]]
    ends: pyarrow.Array
    reads_address: pyarrow.Array


class ComparedDecisions:
    """Compared values of all decisions of two sides, each once; several threads may ask."""

    def __init__(self) -> None:
        import pyarrow

        self._lock = threading.Lock()
        self._numbers: dict[tuple[str | bool | None, ...], int] = {}
        self._of_sides = tuple(GrowingColumn(pyarrow.int64()) for _ in _SIDES)
        self._known = [0 for _ in _SIDES]
        self._texts = {name: WordColumn.empty() for name in DECIDED}
        self._ends: dict[tuple[str | bool | None, ...], int] = {}
        self._end_numbers, self._reads = GrowingColumn(pyarrow.int64()), GrowingColumn(pyarrow.bool_())

    def of_side(self, side: int, decided: DecisionColumns) -> pyarrow.Array:
        """Return the numbers of a side's decisions."""
        with self._lock:
            first, count = self._known[side], len(decided.reads_address)
            if first < count:
                columns = [
                    plain_values(decided.words[name].take(decided.numbers[name][first:count])) for name in DECIDED
                ]
                for values in zip(*columns, decided.reads_address[first:count].to_pylist(), strict=True):
                    self._of_sides[side].add(self._number(values))
                self._known[side] = count
            return self._of_sides[side].array()

    def of_reasons(self, reasons: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of messages that are set aside, by the lists of their codes."""
        import pyarrow

        texts = pyarrow.array([_JOINED.join(codes) for codes in reasons.to_pylist()], pyarrow.string())
        coded = texts.dictionary_encode()
        with self._lock:
            nothing = (None,) * (len(DECIDED) - 2)
            numbers = [self._number((REJECTED, one, *nothing, False)) for one in coded.dictionary.to_pylist()]
        return pyarrow.array(numbers, pyarrow.int64()).take(coded.indices)

    def columns(self) -> ComparedColumns:
        """Return the columns of all so far."""
        with self._lock:
            texts = {name: (one.words.array(), one.numbers.array()) for name, one in self._texts.items()}
            return ComparedColumns(texts, self._end_numbers.array(), self._reads.array())

    def _number(self, values: tuple[str | bool | None, ...]) -> int:
        number = self._numbers.get(values)
        if number is None:
            number = self._numbers[values] = len(self._numbers)
            *texts, reads = values
            for column, value in zip(self._texts.values(), texts, strict=True):
                column.add(None if value is None else str(value))
            self._end_numbers.add(self._ends.setdefault(values[:2], len(self._ends)))
            self._reads.add(reads)
        return number


class ChangedBatch(NamedTuple):
    """The messages of a batch that change.

    ``rows`` have the columns of `MESSAGE_CHANGES`, whose texts are dictionaries; ``groups`` are those of
    `KEY_CHANGES`; ``examples`` the lowest few of each change from an outcome and reason to others, in the columns
    of `EXAMPLES`.
    """

    rows: pyarrow.Table
    groups: pyarrow.Table
    examples: pyarrow.Table


@dataclass(frozen=True)
class ComparedMessages:
    """Messages that two sides decide, which read the same rows; of each change ``shown`` examples are kept."""

    before: DecidingSide
    after: DecidingSide
    shown: int
    decisions: ComparedDecisions = field(default_factory=ComparedDecisions)

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Read the messages for `BatchComparer.compare`."""
        import pyarrow

        rows = self.before.scan.messages
        for batch in self.before.scan.batches({_AS_READ: rows.column("conversation_id")}):
            yield pyarrow.RecordBatch.from_arrays(
                [*batch.columns, pyarrow.array(range(len(batch)), pyarrow.int64())],
                [*batch.schema.names, _PLACE],
            )


class BatchComparer:
    """Compares batches, one after the other, for one thread."""

    def __init__(self, compared: ComparedMessages) -> None:
        self._compared = compared
        self._sides = [
            (deciding_side, BatchResolver(deciding_side.scan))
            for deciding_side in (compared.before, compared.after)
        ]

    def compare(self, batch: pyarrow.RecordBatch) -> ChangedBatch | None:
        """Return the changes of a batch; None where nothing changes."""
        import pyarrow.compute as pc

        numbers = [self._decide(place, batch) for place in range(len(_SIDES))]
        changed = pc.indices_nonzero(pc.not_equal(*numbers))
        if not len(changed):
            return None
        rows, numbers = batch.take(changed), [one.take(changed) for one in numbers]
        columns = self._compared.decisions.columns()
        decided_rows = [self._read(rows, columns, one) for one in numbers]
        # Only the texts say whether an address in a name equals an address of a route.
        if any(rows_of_side.in_names is not None for rows_of_side in decided_rows):
            differs = pc.indices_nonzero(_differ(*decided_rows))
            if not len(differs):
                return None
            rows = rows.take(differs)
            decided_rows = [self._read(rows, columns, one.take(differs)) for one in numbers]
        return _changed_batch(rows, columns, decided_rows, self._compared.shown)

    def _decide(self, place: int, batch: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return the numbers of what a side decides for the messages of a batch."""
        import pyarrow
        import pyarrow.compute as pc

        deciding_side, resolver = self._sides[place]
        decisions = self._compared.decisions
        at = pyarrow.repeat(pyarrow.scalar(deciding_side.scan.messages.at, pyarrow.int64()), len(batch))
        keyed = resolver.key(batch.set_column(batch.schema.get_field_index("at"), "at", at))
        decided = deciding_side.scan.decisions.decided()
        numbers = decisions.of_side(place, decided).take(find_decisions(keyed, decided, deciding_side.requests))
        if len(keyed.rows) == len(batch):
            return numbers
        is_sound = pc.is_in(batch[_PLACE], value_set=keyed.rows[_PLACE])
        all_numbers = pc.replace_with_mask(_repeat(_NO_NUMBER, len(batch)), is_sound, numbers)
        rejected = pc.invert(is_sound)
        rows = batch.filter(rejected)
        reasons = find_reasons(as_read(_with_what_is_read(rows)), *deciding_side.places.find(rows))
        return pc.replace_with_mask(all_numbers, rejected, decisions.of_reasons(reasons))

    def _read(
        self, rows: pyarrow.RecordBatch, compared_columns: ComparedColumns, numbers: pyarrow.Array
    ) -> _DecidedRows:
        """Return a side's decisions for messages, from the numbers of these decisions."""
        import pyarrow.compute as pc

        texts = {name: TextColumn(words, of.take(numbers)) for name, (words, of) in compared_columns.texts.items()}
        reads = compared_columns.reads_address.take(numbers)
        if not reads.true_count:
            return _DecidedRows(numbers, texts, None)
        words, places = split_words(rows["to_service_name"])
        coded = leading_addresses(words).dictionary_encode()
        in_names = TextColumn(coded.dictionary, pc.if_else(reads, coded.indices.take(places), None))
        return _DecidedRows(numbers, {**texts, "address": first_of([in_names, texts["address"]])}, in_names)


class _DecidedRows(NamedTuple):
    """Decisions of a side for some messages.

    ``numbers`` are those of `ComparedDecisions`, ``texts`` the columns of `DECIDED`; ``in_names`` are addresses in
    the messages' own service names, None where none is read.
    """

    numbers: pyarrow.Array
    texts: Mapping[str, TextColumn]
    in_names: TextColumn | None


def _repeat(value: int, rows: int) -> pyarrow.Array:
    import pyarrow

    return pyarrow.repeat(pyarrow.scalar(value, pyarrow.int64()), rows)


def _with_what_is_read(rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return messages in the columns that decide whether they are rejected."""
    import pyarrow

    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns["conversation_id"] = columns.pop(_AS_READ)
    columns["enqueue_time"] = columns["enqueued"].view(arrow_type(ColumnKind.TIMESTAMP))
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _differ(before: _DecidedRows, after: _DecidedRows) -> pyarrow.Array:
    """Return a mask of messages of which a compared value differs; null is equal to null alone."""
    import pyarrow
    import pyarrow.compute as pc

    differs: Any = pyarrow.repeat(pyarrow.scalar(False), len(before.numbers))
    for name in DECIDED:
        old, new = (rows.texts[name].array().cast(pyarrow.string()) for rows in (before, after))
        is_other = pc.fill_null(pc.not_equal(old, new), fill_value=False)
        differs = pc.or_(differs, pc.or_(is_other, pc.not_equal(old.is_valid(), new.is_valid())))
    return differs


def _changed_batch(
    rows: pyarrow.RecordBatch, compared_columns: ComparedColumns, decided_rows: list[_DecidedRows], shown: int
) -> ChangedBatch:
    """Return messages that change, with both decisions, counted and with examples."""
    import pyarrow

    columns_of_messages: dict[str, pyarrow.Array] = {name: rows[name] for name in ("message_id", "is_initiator")}
    columns_of_messages["conversation_id"] = rows[_AS_READ]
    columns_of_messages |= {name: _readable(used_words(texts_of(rows, name))).array() for name in NUMBERED}
    has_number = "message_sequence_number" in rows.schema.names
    columns_of_messages["message_sequence_number"] = (
        rows["message_sequence_number"] if has_number else pyarrow.nulls(len(rows), pyarrow.int64())
    )
    columns_of_messages["enqueue_time"] = rows["enqueued"].view(arrow_type(ColumnKind.TIMESTAMP))
    decided = {
        f"{name}_{word}": used_words(rows_of_side.texts[name].array()).array()
        for word, rows_of_side in zip(_SIDES, decided_rows, strict=True)
        for name in DECIDED
    }
    columns = {**columns_of_messages, **decided}
    table = with_readable_texts(pyarrow.table({name: columns[name] for name in MESSAGE_CHANGES.names}))
    return ChangedBatch(
        table, _group(table, decided_rows), _find_lowest(table, compared_columns, decided_rows, shown)
    )


def _readable(column: TextColumn) -> TextColumn:
    r"""Return a column whose texts are all UTF-8: each undecodable byte is written as ``\xNN``."""
    import pyarrow

    if find_undecodable(column.words) is None:
        return column
    coded = pyarrow.array(plain_values(column.words), pyarrow.string()).dictionary_encode()
    return TextColumn(coded.dictionary, coded.indices.take(column.places))


def _group(table: pyarrow.Table, decided_rows: list[_DecidedRows]) -> pyarrow.Table:
    """Return the groups of messages that change: rows of `KEY_CHANGES`."""
    import pyarrow
    import pyarrow.compute as pc

    numbers: dict[str, pyarrow.Array] = {}
    for name in _GROUPED:
        [column] = table[name].chunks
        numbers[name] = column.indices
    for place, rows_of_side in enumerate(decided_rows):
        numbers[f"decided_{place}"] = rows_of_side.numbers
        if rows_of_side.in_names is not None:
            numbers[f"in_name_{place}"] = rows_of_side.in_names.places
    names = list(numbers)
    numbers["row"] = pyarrow.array(range(len(table)), pyarrow.int64())
    grouped = pyarrow.table(numbers).group_by(names).aggregate([("row", "min"), ("row", "count")])
    first = table.take(grouped["row_min"])
    texts = {name: first[name].cast(pyarrow.string()) for name in KEY_CHANGES.names if name != "messages"}
    database = texts["database_name"]
    texts["database_name"] = pc.if_else(pc.equal(database, ""), None, database)
    return pyarrow.table({**texts, "messages": grouped["row_count"]})


def _find_lowest(
    table: pyarrow.Table, compared_columns: ComparedColumns, decided_rows: list[_DecidedRows], shown: int
) -> pyarrow.Table:
    """Return examples of each change from an outcome and reason to others: rows of `EXAMPLES`, nulls first."""
    import pyarrow
    import pyarrow.compute as pc

    before, after = (compared_columns.ends.take(rows_of_side.numbers) for rows_of_side in decided_rows)
    changes = pc.add(pc.multiply(before, len(compared_columns.ends)), after).dictionary_encode()
    columns: dict[str, pyarrow.Array] = {}
    for name in _EXAMPLE:
        texts = table[name].cast(pyarrow.string()).combine_chunks()
        columns |= {f"has_{name}": texts.is_valid().cast("int8"), name: texts}
    ordered, parts = pyarrow.table(columns), []
    for change in range(len(changes.dictionary)):
        places = pc.indices_nonzero(pc.equal(changes.indices, change))
        if len(places) > shown:
            order = [(name, "ascending") for name in columns]
            places = places.take(pc.select_k_unstable(ordered.take(places), shown, order))
        parts.append(places)
    return table.select(EXAMPLES.names).take(pyarrow.concat_arrays(parts))
