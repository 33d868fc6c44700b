"""Find the messages that two configurations or two times decide differently, batch by batch with Arrow.

Each side decides a batch as a run does, and follows it as `trace --all` does. Both sides use the same numbers for
equal decisions and equal paths, so numbers are compared. Texts are compared only if a route reads its address from
a message's service name.

Only those messages are decided that may differ at their first hop, or anywhere on their path on the first side.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from routing.engines.arrow.changed_rows import (
    AS_READ,
    ENDS_OF_DECISIONS,
    GROUPED,
    READS_ADDRESS,
    ChangedRows,
    DecidedRows,
    PartingPaths,
    differ,
)
from routing.engines.arrow.compared_paths import ComparedPaths, SidePaths
from routing.engines.arrow.decisions import DecisionColumns
from routing.engines.arrow.interned_rows import GrowingColumn, InternedRows, number_words
from routing.engines.arrow.message_keys import ChosenRows
from routing.engines.arrow.path_numbers import PathFinder, PathNumbers
from routing.engines.arrow.resolved_batches import (
    Asked,
    BatchResolver,
    KeyedBatch,
    MessagePlaces,
    MessageScan,
    Requests,
    as_read,
    find_decisions,
    find_reasons,
)
from routing.engines.arrow.text_numbers import first_of, map_words
from routing.result_schemas import DECIDED, ENDING, KEY_CHANGES, SIDES
from routing.rules.network import EstateNetwork
from routing.schemas import ColumnKind
from routing.tables.arrow_forms import leading_addresses
from routing.tables.arrow_rows import arrow_schema, arrow_type, plain_values
from routing.terms import REJECTED, TableRow

if TYPE_CHECKING:
    import pyarrow

_JOINED = ", "
# The column with a message's place in its batch.
_PLACE = "place"
# No decision has this number.
_NO_NUMBER = -1


@dataclass(frozen=True)
class DecidingSide:
    """One of two sides: its configuration and time, the requests that messages open, and their paths."""

    scan: MessageScan
    requests: Requests | None
    paths: SidePaths
    numbers: PathNumbers

    @classmethod
    def of(
        cls,
        scan: MessageScan,
        requests: Requests | None,
        network: EstateNetwork,
        paths: SidePaths,
    ) -> DecidingSide:
        """Return a side without any followed path."""
        numbers = PathNumbers(scan, network, paths)
        return cls(scan, requests, paths, numbers)


def read_for_comparison(
    scan: MessageScan, further_columns: Mapping[str, pyarrow.compute.Expression] | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """Read the messages of a scan and more expressions for `BatchComparer.compare`."""
    import pyarrow

    as_it_is = {AS_READ: scan.messages.column("conversation_id")}
    for batch in scan.batches({**as_it_is, **(further_columns or {})}):
        yield pyarrow.RecordBatch.from_arrays(
            [*batch.columns, pyarrow.array(range(len(batch)), pyarrow.int64())],
            [*batch.schema.names, _PLACE],
        )


class _DecidedBatch(NamedTuple):
    """The numbers of the decisions and the shared paths of a batch of messages."""

    decisions: pyarrow.Array
    paths: pyarrow.Array

    def take(self, places: pyarrow.Array) -> _DecidedBatch:
        return _DecidedBatch(*(column.take(places) for column in self))


class _SideBatches:
    """Decides one batch of a side at a time, for one thread."""

    def __init__(self, place: int, side: DecidingSide, compared: ComparedMessages) -> None:
        self._place, self._side, self._compared = place, side, compared
        self._resolver, self._finder = BatchResolver(side.scan), PathFinder(side.scan, side.numbers)
        self._places = MessagePlaces(side.scan)

    def find_differing(self, batch: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return a mask of the messages that may take a different path on the other side."""
        import pyarrow
        import pyarrow.compute as pc

        keyed, requested = self._key(batch)
        path_numbers = self._finder.find(keyed, requested)
        differs = self._side.paths.may_differ().take(path_numbers)
        if len(keyed.rows) == len(batch):
            return differs
        is_sound = pc.is_in(batch[_PLACE], value_set=keyed.rows[_PLACE])
        return pc.replace_with_mask(pyarrow.repeat(pyarrow.scalar(False), len(batch)), is_sound, differs)

    def decide(self, batch: pyarrow.RecordBatch) -> _DecidedBatch:
        """Decide and follow the messages of a batch."""
        import pyarrow.compute as pc

        keyed, requested = self._key(batch)
        decisions, paths = self._compared.decisions, self._compared.paths
        decided = self._side.scan.decisions.decided()
        path_numbers = self._finder.find(keyed, requested)
        of_sound = (
            decisions.of_side(self._place, decided).take(find_decisions(keyed, decided, requested)),
            self._side.paths.shared().take(path_numbers),
        )
        if len(keyed.rows) == len(batch):
            return _DecidedBatch(*of_sound)
        is_sound = pc.is_in(batch[_PLACE], value_set=keyed.rows[_PLACE])
        rejected = pc.invert(is_sound)
        rows = batch.filter(rejected)
        instances, _, scopes = self._places.find(rows)
        reasons = _join_codes(find_reasons(as_read(_with_original_columns(rows)), instances, scopes))
        columns = zip(of_sound, (decisions.of_reasons(reasons), paths.of_reasons(reasons)), strict=True)
        nothing = _repeat(_NO_NUMBER, len(batch))
        return _DecidedBatch(
            *(
                pc.replace_with_mask(pc.replace_with_mask(nothing, is_sound, numbers), rejected, rejections)
                for numbers, rejections in columns
            )
        )

    def _key(self, batch: pyarrow.RecordBatch) -> tuple[KeyedBatch, Asked | None]:
        """Return a keyed batch, and masks of the messages that a request for a route stops."""
        import pyarrow

        side = self._side
        at = pyarrow.repeat(pyarrow.scalar(side.scan.messages.at, pyarrow.int64()), len(batch))
        keyed = self._resolver.key(batch.set_column(batch.schema.get_field_index("at"), "at", at))
        requests = side.requests
        return keyed, None if requests is None else requests.find(keyed, side.scan.decisions.decided())


def _join_codes(reasons: pyarrow.Array) -> pyarrow.Array:
    """Join the codes of each rejected message into one text."""
    import pyarrow

    return pyarrow.array([_JOINED.join(codes) for codes in reasons.to_pylist()], pyarrow.string())


class ComparedDecisions:
    """The distinct compared values of the decisions of two sides. Several threads may use it."""

    def __init__(self) -> None:
        import pyarrow

        self._lock = threading.Lock()
        kinds = {READS_ADDRESS: pyarrow.bool_(), ENDS_OF_DECISIONS: pyarrow.int64()}
        self._rows = InternedRows(DECIDED, kinds)
        self._of_sides = tuple(GrowingColumn(pyarrow.int64()) for _ in SIDES)
        self._ends: dict[tuple[str | bool | None, ...], int] = {}

    def of_side(self, side: int, decided: DecisionColumns) -> pyarrow.Array:
        """Map a side's decisions to the shared numbers."""
        with self._lock:
            numbers = self._of_sides[side]
            first, count = len(numbers), len(decided.reads_address)
            if first < count:
                texts = [decided.texts[name] for name in DECIDED]
                columns = [plain_values(text[first:count]) for text in texts]
                for values in zip(*columns, decided.reads_address[first:count].to_pylist(), strict=True):
                    numbers.add(self._number(values))
            return numbers.array()

    def of_reasons(self, texts: pyarrow.Array) -> pyarrow.Array:
        """Return the shared numbers of rejected messages, by their codes."""
        nothing = (None,) * (len(DECIDED) - 2)
        with self._lock:
            return number_words(texts, lambda codes: self._number((REJECTED, codes, *nothing, False)))

    def columns(self) -> dict[str, pyarrow.Array]:
        """Return the columns of all values so far: texts, `READS_ADDRESS` and `ENDS_OF_DECISIONS`."""
        with self._lock:
            return self._rows.columns()

    def _number(self, values: tuple[str | bool | None, ...]) -> int:
        def row() -> TableRow:
            end = self._ends.setdefault(values[:2], len(self._ends))
            return {**dict(zip((*DECIDED, READS_ADDRESS), values, strict=True)), ENDS_OF_DECISIONS: end}

        return self._rows.number(values, row)


@dataclass(frozen=True)
class ComparedMessages:
    """The two sides of a comparison, which read the same rows.

    ``touched`` selects the rows that may differ at their first hop. It is None if both sides decide all rows.
    """

    before: DecidingSide
    after: DecidingSide
    touched: ChosenRows | None
    paths: ComparedPaths
    decisions: ComparedDecisions = field(default_factory=ComparedDecisions)

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Read the messages for `BatchComparer.compare`."""
        return read_for_comparison(self.before.scan)

    def spell(self, groups: pyarrow.Table) -> pyarrow.Table:
        """Convert counts by `GROUP` to rows of `KEY_CHANGES`, some of which may be equal."""
        import pyarrow
        import pyarrow.compute as pc

        decisions, endings, hops = self.decisions.columns(), self.paths.endings(), self.paths.hops()
        database = groups["database_name"]
        columns: dict[str, pyarrow.ChunkedArray] = {name: groups[name] for name in GROUPED}
        columns["database_name"] = pc.if_else(pc.equal(database, ""), None, database)
        for side in SIDES:
            for of_side, texts, names in (("decision", decisions, DECIDED), ("end", endings, ENDING)):
                numbers = groups[f"{of_side}_{side}"]
                columns |= {f"{name}_{side}": texts[name].take(numbers).cast(pyarrow.string()) for name in names}
            in_names = groups[f"address_{side}"]
            columns[f"address_{side}"] = pc.coalesce(in_names, columns[f"address_{side}"])
        columns |= {name: column.take(groups["place"]) for name, column in hops.items()}
        columns["messages"] = groups["messages"]
        shape = arrow_schema(KEY_CHANGES.optional())
        return pyarrow.table({field.name: columns[field.name].cast(field.type) for field in shape})


class BatchComparer:
    """Compares one batch at a time, for one thread."""

    def __init__(self, compared: ComparedMessages) -> None:
        self._compared, self._addresses = compared, map_words(leading_addresses)
        self._before, self._after = (
            _SideBatches(place, side, compared) for place, side in enumerate((compared.before, compared.after))
        )

    def compare(self, batch: pyarrow.RecordBatch) -> ChangedRows | None:
        """Return the changed messages of a batch, or None without changes."""
        import pyarrow.compute as pc

        batch = self._select(batch)
        if not len(batch):
            return None
        decided = [self._before.decide(batch), self._after.decide(batch)]
        ends = [self._compared.paths.ends_of(side_decisions.paths) for side_decisions in decided]
        ends_elsewhere = pc.not_equal(*ends)
        changed = pc.indices_nonzero(
            pc.or_(pc.not_equal(*(side_decisions.decisions for side_decisions in decided)), ends_elsewhere)
        )
        if not len(changed):
            return None
        columns = self._compared.decisions.columns()
        decided_rows = [
            self._read(batch, changed, columns, side_decisions.decisions.take(changed))
            for side_decisions in decided
        ]
        # An address in a name may equal the address of a route, so these texts must be compared.
        if any(rows_of_side.in_names is not None for rows_of_side in decided_rows):
            differs = pc.indices_nonzero(pc.or_(differ(*decided_rows), ends_elsewhere.take(changed)))
            if not len(differs):
                return None
            changed = changed.take(differs)
            decided_rows = [
                self._read(batch, changed, columns, side_decisions.decisions.take(changed))
                for side_decisions in decided
            ]
        paths = PartingPaths.of(
            self._compared.paths, *(side_decisions.paths.take(changed) for side_decisions in decided)
        )
        return ChangedRows(batch, changed, decided_rows, paths, columns)

    def _select(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Select the messages that may differ, at their first hop or later on their path."""
        import pyarrow.compute as pc

        if self._compared.touched is None:
            return batch
        touched = self._compared.touched.mask(batch)
        # Copying most rows takes longer than deciding the others on both sides.
        if touched.true_count * 2 > len(batch):
            return batch
        untouched = pc.invert(touched)
        may_differ = self._before.find_differing(batch.filter(untouched))
        return batch.filter(pc.replace_with_mask(touched, untouched, may_differ))

    def _read(
        self,
        batch: pyarrow.RecordBatch,
        changed: pyarrow.Array,
        compared_columns: Mapping[str, pyarrow.Array],
        numbers: pyarrow.Array,
    ) -> DecidedRows:
        """Return a side's decisions for some messages of a batch, given their numbers."""
        import pyarrow.compute as pc

        texts = {name: compared_columns[name].take(numbers) for name in DECIDED}
        reads = compared_columns[READS_ADDRESS].take(numbers)
        if not reads.true_count:
            return DecidedRows(numbers, texts, None)
        in_names = pc.if_else(reads, self._addresses.of(batch["to_service_name"].take(changed)), None)
        return DecidedRows(numbers, {**texts, "address": first_of([in_names, texts["address"]])}, in_names)


def _repeat(value: int, rows: int) -> pyarrow.Array:
    import pyarrow

    return pyarrow.repeat(pyarrow.scalar(value, pyarrow.int64()), rows)


def _with_original_columns(rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Restore the conversation id and the time of messages, which decide whether they are rejected."""
    import pyarrow

    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns["conversation_id"] = columns.pop(AS_READ)
    columns["enqueue_time"] = columns["enqueued"].view(arrow_type(ColumnKind.TIMESTAMP))
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), list(columns))
