"""Resolve messages batch by batch with Arrow, without Python objects for rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

from routing.engines.arrow.decisions import EXPIRED, REQUESTED, DecisionColumns, DecisionTable
from routing.engines.arrow.dialog_ends import DialogEnds, JoinedDialogs
from routing.engines.arrow.message_keys import NUMBERED, MessageRows, find_sound, numbers_of, texts_of
from routing.engines.arrow.open_requests import FoundRequests, find_requests, may_any_ask, read_on_record
from routing.engines.arrow.text_numbers import (
    NONE,
    OTHER,
    ServiceNumbers,
    TextNumbers,
    first_of,
    map_words,
    same_for_all,
    spread,
)
from routing.plan.checked_inputs import CheckedInputs
from routing.schemas import MESSAGES, REJECTED_MESSAGES, RESOLVED_ROUTES, ColumnKind
from routing.tables.arrow_forms import empty_as_null, find_codes, fold_texts, leading_addresses, read_brokers
from routing.tables.arrow_rows import arrow_schema, arrow_type, micros_in, with_readable_texts
from routing.tables.encoded_texts import MappedTexts
from routing.tables.table_columns import Table

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.joined_messages import JoinedRequests

# Rows that are decided and written at a time.
ROWS_AT_ONCE = 1 << 19
# Alternative routes that are written at a time.
_MOST_ALTERNATIVES = 4_000_000


@dataclass(frozen=True)
class MessageScan:
    """The messages and the tables that decide them, for every pass over the messages."""

    checked: CheckedInputs
    numbers: TextNumbers
    messages: MessageRows
    ends: DialogEnds | JoinedDialogs | None
    decisions: DecisionTable
    rows_at_once: int = ROWS_AT_ONCE

    @classmethod
    def of(
        cls,
        messages: MessageRows,
        dialogs: Table | None,
        checked: CheckedInputs,
        rows_at_once: int = ROWS_AT_ONCE,
        services: ServiceNumbers | None = None,
    ) -> MessageScan:
        """Prepare the messages of a run. ``dialogs`` must be an Arrow table without faults.

        ``services`` are given if another scan shares the numbers of services.
        """
        numbers = TextNumbers.of(checked, services)
        ends, decisions = DialogEnds.of(dialogs, numbers), DecisionTable(checked, numbers)
        return cls(checked, numbers, messages, ends, decisions, rows_at_once)

    def batches(
        self, further_columns: Mapping[str, pyarrow.compute.Expression] | None = None
    ) -> Iterator[pyarrow.RecordBatch]:
        """Read the columns that decide messages, those that outputs need, and ``further_columns``."""
        rows = self.messages
        columns = {name: rows.column(name) for name in ("message_id", "is_initiator")}
        columns |= {name: rows.column(name) for name in NUMBERED if name in rows.shape}
        for name in ("message_sequence_number", "hops_remaining"):
            if name in rows.shape:
                columns[name] = rows.column(name).cast("int64")
        columns |= {
            "conversation_id": fold_texts(rows.column("conversation_id")),
            "enqueued": rows.micros("enqueue_time"),
            "at": rows.time(),
            "sound": rows.is_sound(),
        }
        if self.ends is not None:
            columns |= self.ends.columns(rows.column("conversation_id"))
        return rows.scan({**columns, **(further_columns or {})}, NUMBERED, self.rows_at_once)


class KeyedBatch(NamedTuple):
    """The accepted messages of a batch, with the numbers of their scopes, keys and decisions.

    ``named`` and ``of_dialogs`` have the broker instances that messages and their dialogs name, as dictionary
    arrays. ``is_expired`` is
    None if no dialog ends.
    """

    rows: pyarrow.RecordBatch
    scopes: pyarrow.Array
    keys: pyarrow.Array
    decisions: pyarrow.Array
    named: pyarrow.Array
    of_dialogs: pyarrow.Array | None
    is_expired: pyarrow.Array | None


class MessagePlaces:
    """Finds the instances and databases of one batch of messages at a time, for one thread."""

    def __init__(self, scan: MessageScan) -> None:
        import pyarrow

        numbers = scan.numbers
        self._instances, self._databases = (
            MappedTexts(numbers.number_instances),
            MappedTexts(numbers.number_databases),
        )
        self._width = len(numbers.databases)
        places = {name: place for place, name in enumerate(numbers.instances)}
        databases = {name: place for place, name in enumerate(numbers.databases)}
        codes = [places[instance] * self._width + databases[name] for instance, name in scan.decisions.scopes]
        self._scope_codes = pyarrow.array(codes, pyarrow.int64())

    def find(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.Array, pyarrow.Array, pyarrow.Array]:
        """Return the numbers of the instances, databases and scopes of messages.

        Unknown instances and databases are below zero. The scope is null if either is unknown.
        """
        import pyarrow.compute as pc

        instances = pc.fill_null(self._instances.of(batch["instance_name"]), OTHER)
        databases = pc.fill_null(self._databases.of(texts_of(batch, "database_name")), 0)
        code = pc.add(pc.multiply(instances.cast("int64"), self._width), databases)
        is_known = pc.and_(pc.greater_equal(instances, 0), pc.greater_equal(databases, 0))
        return instances, databases, pc.index_in(pc.if_else(is_known, code, -1), value_set=self._scope_codes)


class BatchResolver:
    """Resolves one batch at a time, for one thread."""

    def __init__(self, scan: MessageScan) -> None:
        self._scan, numbers = scan, scan.numbers
        self._places = MessagePlaces(scan)
        self._services, self._brokers = MappedTexts(numbers.services.number), MappedTexts(numbers.number_brokers)
        self._named = map_words(read_brokers)
        self._texts = {name: map_words(empty_as_null) for name in NUMBERED}
        self._addresses = map_words(leading_addresses)

    def key(self, batch: pyarrow.RecordBatch) -> KeyedBatch:
        """Drop the rejected rows and decide the others, except for their requests for routes."""
        import pyarrow.compute as pc

        scan = self._scan
        instances, databases, scopes = self._places.find(batch)
        valid = pc.and_(find_sound(batch), scopes.is_valid())
        if pc.sum(valid).as_py() != len(batch):
            batch = batch.filter(valid)
            instances, databases, scopes = (column.filter(valid) for column in (instances, databases, scopes))
        named_brokers = texts_of(batch, "to_broker_instance")
        brokers = pc.fill_null(self._brokers.of(named_brokers), NONE)
        of_dialogs = is_expired = None
        if scan.ends is not None:
            of_dialogs, numbers_of_dialogs, is_expired = scan.ends.find(batch, instances, databases)
            brokers = pc.if_else(pc.equal(brokers, NONE), numbers_of_dialogs, brokers)
        services = self._services.of(batch["to_service_name"])
        keys = scan.decisions.number(scopes, services, brokers, batch["is_initiator"])
        decisions = scan.decisions.decide(keys, batch["at"], batch["conversation_id"])
        return KeyedBatch(batch, scopes, keys, decisions, self._named.of(named_brokers), of_dialogs, is_expired)

    def own_columns(self, rows: pyarrow.RecordBatch) -> dict[str, pyarrow.Array]:
        """Return the columns that outputs copy from the messages."""
        whole = ("message_id", "conversation_id", "is_initiator")
        columns: dict[str, pyarrow.Array] = {name: rows[name] for name in whole}
        columns |= {name: self.read_texts(rows, name) for name in NUMBERED[:3]}
        columns["message_sequence_number"] = numbers_of(rows, "message_sequence_number")
        return columns | {"enqueue_time": _times(rows["enqueued"]), "decided_at": _times(rows["at"])}

    def read_texts(self, rows: pyarrow.RecordBatch, name: str) -> pyarrow.Array:
        """Return a column of `NUMBERED` as outputs have it, with empty text as null."""
        return self._texts[name].of(texts_of(rows, name))

    def resolve(self, keyed: KeyedBatch, requests: FoundRequests | None, run_id: str) -> Iterator[pyarrow.Table]:
        """Yield the rows of ``resolved_routes`` of a batch in parts of limited size."""
        import pyarrow
        import pyarrow.compute as pc

        rows, decided = keyed.rows, self._scan.decisions.decided()
        requested = None if requests is None else requests.find(keyed, decided)
        decisions = find_decisions(keyed, decided, requested).dictionary_encode()
        columns = self.own_columns(rows)
        columns["to_broker_instance"] = keyed.named
        texts = {name: spread(column, decisions) for name, column in decided.texts.items()}
        broker_columns = [texts["broker_instance"], keyed.named]
        texts["broker_instance"] = first_of(
            broker_columns if keyed.of_dialogs is None else [*broker_columns, keyed.of_dialogs]
        )
        reads = decided.reads_address.take(decisions.dictionary)
        if pc.any(reads).as_py():
            in_names = self._addresses.of(rows["to_service_name"])
            texts["address"] = first_of(
                [pc.if_else(reads.take(decisions.indices), in_names, None), texts["address"]]
            )
        columns |= texts
        columns["matching_step"] = decided.matching_step.take(decisions.dictionary).take(decisions.indices)
        columns["run_id"] = same_for_all(run_id, len(rows))
        columns["attempt"] = pyarrow.repeat(pyarrow.scalar(1, pyarrow.int32()), len(rows))
        alternatives = decided.alternatives.take(decisions.dictionary)
        yield from _with_alternatives(columns, alternatives, decisions.indices)


def find_all_requests(scan: MessageScan) -> FoundRequests | None:
    """Return the requests that messages open or wait for, or None if no message can ask for a route."""
    if not may_any_ask(scan):
        return None
    resolver = BatchResolver(scan)

    def read() -> Iterator[KeyedBatch]:
        return (resolver.key(batch) for batch in scan.batches())

    return find_requests(scan, read, read_on_record(scan))


Asked = tuple["pyarrow.Array", "pyarrow.Array"]
"""Masks of the messages that step 4 stops in their own scope, and in msdb."""


Requests = Union[FoundRequests, "JoinedRequests"]
"""The requests for routes that messages open or wait for."""


def find_decisions(keyed: KeyedBatch, decided: DecisionColumns, requested: Asked | None) -> pyarrow.Array:
    """Return the decisions, from the plan and from each message's request, dialog end and hops."""
    import pyarrow.compute as pc

    decisions = keyed.decisions
    if requested is not None:
        in_scope, in_msdb = requested
        decisions = pc.if_else(in_msdb, decided.requested.take(decisions), decisions)
        decisions = pc.if_else(in_scope, REQUESTED, decisions)
    if keyed.is_expired is not None:
        decisions = pc.if_else(keyed.is_expired, EXPIRED, decisions)
    if "hops_remaining" in keyed.rows.schema.names:
        out_of_hops = pc.fill_null(pc.less_equal(keyed.rows["hops_remaining"], 0), fill_value=False)
        decisions = pc.coalesce(pc.if_else(out_of_hops, decided.out_of_hops.take(decisions), None), decisions)
    return decisions.cast("int32")


def _with_alternatives(
    columns: Mapping[str, pyarrow.Array], alternatives: pyarrow.Array, places: pyarrow.Array
) -> Iterator[pyarrow.Table]:
    import pyarrow
    import pyarrow.compute as pc

    rows = len(places)
    names = [name for name in RESOLVED_ROUTES.names if name != _ALTERNATIVES]
    table = pyarrow.table([columns[name] for name in names], names)
    total = pc.sum(pc.list_value_length(alternatives).take(places)).as_py() or 0
    step = max(rows * _MOST_ALTERNATIVES // total, 1) if total > _MOST_ALTERNATIVES else rows
    place = RESOLVED_ROUTES.names.index(_ALTERNATIVES)
    for start in range(0, rows, step):
        part = table.slice(start, step)
        values = alternatives.take(places.slice(start, step))
        yield part.add_column(place, pyarrow.field(_ALTERNATIVES, values.type), pyarrow.chunked_array([values]))


_ALTERNATIVES = "alternative_routes"


def _times(micros: pyarrow.Array) -> pyarrow.Array:
    return micros.view(arrow_type(ColumnKind.TIMESTAMP))


# Reject messages with Arrow, as `rules.rejecting` does for single rows.


_ROWS_AT_ONCE = 1 << 18
_AS_READ = {ColumnKind.INT: ColumnKind.BIGINT}


@dataclass(frozen=True)
class RejectedRows:
    """The rejected messages of a run."""

    scan: MessageScan
    run_id: str

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield the rows of ``rejected_messages``, batch by batch."""
        import pyarrow
        import pyarrow.compute as pc

        rows, quarantined = self.scan.messages, self.scan.checked.quarantine.instances
        columns = {name: rows.column(name) for name in rows.shape if name in MESSAGES.names}
        columns["sound"] = rows.is_sound()
        places = MessagePlaces(self.scan)
        shape = arrow_schema(REJECTED_MESSAGES.optional())
        for batch in rows.scan(columns, NUMBERED, _ROWS_AT_ONCE):
            instances, _, scopes = places.find(batch)
            # The texts of accepted messages may be long, so they are not decoded.
            doubtful = pc.invert(pc.and_(find_sound(batch), scopes.is_valid()))
            table = as_read(batch.filter(doubtful))
            reasons = find_reasons(table, instances.filter(doubtful), scopes.filter(doubtful), quarantined)
            rejected = pc.indices_nonzero(pc.list_value_length(reasons))
            if len(rejected):
                rows = with_readable_texts(table.take(rejected))
                rows = rows.append_column("reasons", reasons.take(rejected))
                run_id = pyarrow.repeat(pyarrow.scalar(self.run_id), len(rows))
                yield rows.append_column("run_id", run_id).cast(shape)


def as_read(batch: pyarrow.RecordBatch) -> pyarrow.Table:
    """Return the declared columns of messages. Missing columns are null, and integers keep 64 bits."""
    import pyarrow

    columns = {}
    for field in MESSAGES:
        kind = arrow_type(
            _AS_READ.get(field.kind, field.kind) if isinstance(field.kind, ColumnKind) else field.kind
        )
        column = batch[field.name] if field.name in batch.schema.names else pyarrow.nulls(len(batch), kind)
        if field.kind == ColumnKind.TIMESTAMP:
            columns[field.name] = micros_in(column).view(kind)
        else:
            columns[field.name] = column.cast(kind)
    return pyarrow.table(columns)


def find_reasons(
    rows: pyarrow.Table, instances: pyarrow.Array, scopes: pyarrow.Array, quarantined: Collection[str] = ()
) -> pyarrow.Array:
    """Return a list of rejection codes for each message of `as_read`, empty without any (see `find_codes`).

    ``instances`` and ``scopes`` are those of `MessagePlaces`.
    """
    import pyarrow
    import pyarrow.compute as pc

    applies_by_code = find_codes(rows, pc.greater_equal(instances, 0), scopes.is_valid(), quarantined)
    bits: Any = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), len(rows))
    for place, applies in enumerate(applies_by_code.values()):
        bit = pc.shift_left(applies.cast("int32"), pyarrow.scalar(place, pyarrow.int32()))
        bits = pc.bit_wise_or(bits, bit)
    # Only a few combinations of codes occur.
    coded = bits.dictionary_encode()
    lists = [
        [code for place, code in enumerate(applies_by_code) if code_bits >> place & 1]
        for code_bits in coded.dictionary.to_pylist()
    ]
    return pyarrow.array(lists, pyarrow.list_(pyarrow.string())).take(coded.indices)


# Process batches on all cores, with few batches in memory.


B = TypeVar("B")
R = TypeVar("R")


@contextmanager
def allocating_by_jemalloc() -> Iterator[None]:
    """Let Arrow use jemalloc if it is available, unless ARROW_DEFAULT_MEMORY_POOL names a pool.

    With batches of half a million rows, Arrow's default mimalloc constantly returns memory to the system and asks
    for it again. This takes a sixth of the processor time of a run over ten million messages.
    """
    import pyarrow

    before = pyarrow.default_memory_pool()
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pyarrow.supported_memory_backends():
        pyarrow.set_memory_pool(pyarrow.jemalloc_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(before)


def for_each_thread(batches: Iterator[B], work: Callable[[Iterator[B]], R]) -> list[R]:
    """Share batches among threads. Each thread calls ``work`` once with an iterator of its batches.

    Raises the error of the first failing thread, or of the calling thread, such as Ctrl-C. The other threads
    finish their current batch.
    """
    lock, is_over = threading.Lock(), threading.Event()

    def some() -> Iterator[B]:
        while not is_over.is_set():
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def run(_: int) -> R:
        try:
            return work(some())
        except BaseException:
            is_over.set()
            raise

    count = os.cpu_count() or 1
    with ThreadPoolExecutor(count, thread_name_prefix="batches") as pool:
        try:
            return list(pool.map(run, range(count)))
        finally:
            is_over.set()
