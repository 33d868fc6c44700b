"""Follow all messages by Arrow, batch by batch: rows of ``message_paths``, none of them an object of Python.

A path is followed in plain Python once for all messages of a key, when a batch first shows it; a message has the
number of its path. What is a message's own is looked at by itself: a request that it waits for, the end of its
dialog, and an address that a route reads from its service name.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from routing.engines.arrow.decisions import GrowingColumn, PairNumbering, TimelineTable, WordColumn
from routing.engines.arrow.message_keys import MessageRows, texts_of
from routing.engines.arrow.open_requests import FoundRequests
from routing.engines.arrow.resolved_batches import (
    BatchResolver,
    KeyedBatch,
    MessageScan,
    find_all_requests,
    for_each_thread,
)
from routing.engines.arrow.text_numbers import NONE, TextColumn
from routing.plan.checked_inputs import CheckedInputs, check_inputs, network_of, survey_dialogs
from routing.plan.key_rows import FROM_NETWORK
from routing.plan.paths import PathPlanner, PathTimeline
from routing.plan.planner import MOST_KEYS
from routing.process import no_search_for_cycles
from routing.rules.matching import UNNAMED
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import (
    EXPIRED,
    REQUESTED,
    FirstHop,
    HopRow,
    PathRow,
    PathSender,
    end_at_first_hop,
    path_row,
    reads_address,
)
from routing.schemas import MESSAGE_PATHS
from routing.tables.arrow_forms import fold_texts, leading_addresses
from routing.tables.arrow_rows import arrow_schema, plain_values
from routing.tables.encoded_texts import MappedTexts, TextNumbering, split_words
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import read_settings
from routing.tables.table_columns import Table
from routing.terms import MSDB, Ending

if TYPE_CHECKING:
    import pyarrow

    from routing.delta.data_files import DataFiles

_HOPS, _OUTCOME, _ADDRESS = "hops", "outcome", "final_address"
_HOP_TEXTS = tuple(name for name in HopRow._fields if name != "matching_step")
_FLAGS = ("ways_agree", "multiple_targets", "return_ways_agree")
_PATH_TEXTS = tuple(name for name in PathRow._fields if name not in (*_FLAGS, _HOPS))
# The number of a sending service that is not known, and of a conversation of which no request is on record.
_NOBODY = -1
# Hops left that never run out on the way.
_UNLIMITED = -1


@dataclass
class AddresseeNumbers:
    """Numbers for what the rules read of a service name in a whole estate (`ServiceAddress`).

    Those of names that the estate names come first; then a name without an address, one with an address that no
    instance has, and the addresses of instances as they are written. Several threads may ask.
    """

    names: pyarrow.Array
    addresses: pyarrow.Array
    _written: TextNumbering = field(default_factory=TextNumbering)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, checked: CheckedInputs) -> AddresseeNumbers:
        """Return the numbers of the services that a configuration names."""
        import pyarrow

        named = checked.named
        names = pyarrow.array(sorted(named.services_anywhere()), pyarrow.string())
        return cls(names, pyarrow.array(sorted(named.addresses), pyarrow.string()))

    def number(self, words: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of names."""
        import pyarrow.compute as pc

        count = len(self.names)
        in_names = leading_addresses(words)
        is_known = pc.is_in(fold_texts(in_names), value_set=self.addresses, skip_nulls=True)
        with self._lock:
            written = self._written.number(pc.if_else(is_known, in_names, None)).cast("int64")
        other = pc.if_else(in_names.is_valid(), count + 1, count)
        named = pc.index_in(words, value_set=self.names, skip_nulls=True).cast("int64")
        return pc.if_else(words.is_valid(), pc.coalesce(named, pc.add(written, count + 2), other), None)

    def addressee(self, number: int) -> ServiceAddress:
        """Return the service that a number stands for."""
        count = len(self.names)
        if number < count:
            return ServiceAddress.of_name(self.names[number].as_py())
        if number < count + 2:
            return ServiceAddress(None, None, holds_address=number > count)
        [address] = plain_values(self._written.texts[number - count - 2 : number - count - 1])
        return ServiceAddress(None, address, holds_address=True)


class PathKeys(NamedTuple):
    """Keys by which the paths of messages are followed, as numbers.

    ``addressees`` and ``senders`` are those of `AddresseeNumbers`, or `_NOBODY`; ``conversations`` places among
    those of which a request is on record, or `_NOBODY`.
    """

    addressees: pyarrow.Array
    brokers: pyarrow.Array
    senders: pyarrow.Array
    conversations: pyarrow.Array
    scopes: pyarrow.Array
    is_initiator: pyarrow.Array


class PathColumns(NamedTuple):
    """Columns of paths, by their number.

    ``texts`` are words and the numbers of words. ``hops`` are lists of numbers of hops, whose columns are
    ``hop_texts`` and ``hop_steps``. ``reads_address``: the last hop's address is that of the message's own service
    name.
    """

    texts: Mapping[str, tuple[pyarrow.Array, pyarrow.Array]]
    flags: Mapping[str, pyarrow.Array]
    hops: pyarrow.Array
    hop_texts: Mapping[str, tuple[pyarrow.Array, pyarrow.Array]]
    hop_steps: pyarrow.Array
    reads_address: pyarrow.Array


class PathTable:
    """The paths of all keys that messages have shown so far; several threads may ask."""

    def __init__(self, scan: MessageScan, network: EstateNetwork, *, most_keys: int = MOST_KEYS) -> None:
        """Create a table without paths; ``scan`` reads the messages, ``network`` is the whole estate."""
        import pyarrow

        self._scan, self._network, self._planner = scan, network, PathPlanner(network, most_keys=most_keys)
        self.addressees = AddresseeNumbers.of(scan.checked)
        self.waiting = pyarrow.array(sorted(network.waiting_conversations), pyarrow.string())
        self._pairs = {name: PairNumbering() for name in ("bound", "answered", "both", "keys", "timelines")}
        self._lock = threading.Lock()
        whole = pyarrow.int64()
        self._timelines, self._known_timelines = TimelineTable(), 0
        # Of each key the hops from which on more change nothing.
        self._most_hops, self._known_keys = GrowingColumn(whole), 0
        self._paths: dict[Hashable, int] = {}
        self._texts = {name: WordColumn.empty() for name in _PATH_TEXTS}
        self._flags = {name: GrowingColumn(pyarrow.bool_()) for name in (*_FLAGS, "reads_address")}
        self._hop_lists = GrowingColumn(pyarrow.list_(pyarrow.int32()))
        self._hops: dict[HopRow, int] = {}
        self._hop_texts = {name: WordColumn.empty() for name in _HOP_TEXTS}
        self._hop_steps = GrowingColumn(pyarrow.int32())
        self.expired, self.requested, self.requested_in_msdb = (
            pyarrow.array([self._add_first_hop(first, place, in_msdb) for place in scan.decisions.scopes], whole)
            for first, in_msdb in ((EXPIRED, False), (REQUESTED, False), (REQUESTED, True))
        )

    def find(
        self, keys: PathKeys, at: pyarrow.Array, conversations: pyarrow.Array, hops: pyarrow.Array | None
    ) -> pyarrow.Array:
        """Return the numbers of the paths of messages, those of keys that are new followed now.

        By the time and the conversation of messages, and the hops that they have left.
        """
        import pyarrow.compute as pc

        numbering = self._pairs
        addressee_and_broker = numbering["bound"].number(keys.addressees, keys.brokers)
        sender_and_conversation = numbering["answered"].number(keys.senders, keys.conversations)
        both = numbering["both"].number(addressee_and_broker, sender_and_conversation)
        places = pc.add(pc.multiply(keys.scopes.cast("int64"), 2), keys.is_initiator.cast("int64"))
        numbered = numbering["keys"].number(both, places)
        # A timeline has the number of its key with the hops left.
        timelines = numbering["timelines"].number(numbered, self._limit(numbered, hops))
        with self._lock:
            self._follow_new()
            table = self._timelines.arrays()
        return table.choose(timelines, at, conversations)

    def _limit(self, keys: pyarrow.Array, hops: pyarrow.Array | None) -> pyarrow.Array:
        """Return the hops that messages of keys have left, `_UNLIMITED` where more would change nothing."""
        import pyarrow
        import pyarrow.compute as pc

        unlimited = pyarrow.scalar(_UNLIMITED, pyarrow.int64())
        if hops is None or hops.null_count == len(hops):
            return pyarrow.repeat(unlimited, len(keys))
        with self._lock:
            new = range(self._known_keys, len(self._pairs["keys"].pairs))
            for key in new:
                self._most_hops.add(self._timeline(key).most_hops(self._scan.messages.at))
            self._known_keys += len(new)
            most = self._most_hops.array().take(keys)
        left = pc.max_element_wise(hops.cast("int64"), 0, skip_nulls=False)
        return pc.if_else(pc.fill_null(pc.less(left, most), fill_value=False), left, unlimited)

    def columns(self) -> PathColumns:
        """Return the columns of all paths so far."""
        with self._lock:
            texts, hop_texts = (
                {name: (one.words.array(), one.numbers.array()) for name, one in columns.items()}
                for columns in (self._texts, self._hop_texts)
            )
            flags = {name: one.array() for name, one in self._flags.items()}
            hops, steps = self._hop_lists.array(), self._hop_steps.array()
        return PathColumns(texts, flags, hops, hop_texts, steps, flags.pop("reads_address"))

    def _follow_new(self) -> None:
        """Follow the messages of keys that are new, or that have numbers of hops left that are new."""
        new = self._pairs["timelines"].pairs[self._known_timelines :]
        with no_search_for_cycles():
            for key, left in new:
                self._timelines.add(list(self._follow(key, None if left == _UNLIMITED else left)))
        self._known_timelines += len(new)

    def _timeline(self, key: int) -> PathTimeline:
        both, place = self._pairs["keys"].pairs[key]
        addressee_and_broker, sender_and_conversation = self._pairs["both"].pairs[both]
        addressee, broker = self._pairs["bound"].pairs[addressee_and_broker]
        sender, conversation = self._pairs["answered"].pairs[sender_and_conversation]
        name, database = self._scan.decisions.scopes[place >> 1]
        numbers, addressees = self._scan.numbers, self.addressees
        sends = PathSender(
            self._network.instances[name],
            None if database == FROM_NETWORK else database,
            bool(place & 1),
            None if sender == _NOBODY else addressees.addressee(sender),
            None if conversation == _NOBODY else self.waiting[conversation].as_py(),
        )
        named = None if broker == NONE else numbers.brokers[broker] if broker >= 0 else UNNAMED
        return self._planner.timeline(sends, addressees.addressee(addressee), named)

    def _follow(self, key: int, left: int | None) -> Iterator[tuple[int | None, Sequence[int]]]:
        """Yield until when the messages of a key take which paths; neighbours in time that are alike are one."""
        waiting: tuple[int | None, Sequence[int]] | None = None
        for one in self._timeline(key).intervals((left,), self._scan.messages.at):
            found = [path for choice in one.choices for path in choice.paths]
            paths = [self._number_path(path_row(path), reads_address(path.there)) for path in found]
            if waiting is not None and waiting[1] != paths:
                yield waiting
            waiting = one.valid_to, paths
        if waiting is not None:
            yield waiting

    def _add_first_hop(self, first: FirstHop, place: tuple[str, str], in_msdb: bool) -> int:
        """Return the number of the path of messages from a scope that their own instance keeps or drops."""
        instance, database = place
        scope = MSDB if in_msdb or database == FROM_NETWORK else database
        return self._number_path(end_at_first_hop(first, instance, scope), False)

    def _number_path(self, row: PathRow, reads: bool) -> int:
        number = self._paths.get((row, reads))
        if number is None:
            number = self._paths[row, reads] = len(self._paths)
            for name, column in self._texts.items():
                column.add(getattr(row, name))
            for name in _FLAGS:
                self._flags[name].add(getattr(row, name))
            self._flags["reads_address"].add(reads)
            self._hop_lists.add([self._number_hop(hop) for hop in row.hops])
        return number

    def _number_hop(self, hop: HopRow) -> int:
        number = self._hops.get(hop)
        if number is None:
            number = self._hops[hop] = len(self._hops)
            for name, column in self._hop_texts.items():
                column.add(getattr(hop, name))
            self._hop_steps.add(hop.matching_step)
        return number


class BatchTracer:
    """Follows batches of messages, one after the other, for one thread."""

    def __init__(self, scan: MessageScan, requests: FoundRequests | None, paths: PathTable) -> None:
        self._scan, self._requests, self._paths = scan, requests, paths
        self._resolver = BatchResolver(scan)
        self._addressees, self._senders = (MappedTexts(paths.addressees.number) for _ in range(2))
        self._addresses = MappedTexts(leading_addresses)

    def trace(self, batch: pyarrow.RecordBatch) -> pyarrow.Table | None:
        """Return the rows of ``message_paths`` of a batch; None where all messages are set aside."""
        import pyarrow

        keyed = self._resolver.key(batch)
        if not len(keyed.rows):
            return None
        numbers = self._find(keyed)
        paths = self._paths.columns()
        columns = self._resolver.own_columns(keyed.rows)
        columns["from_service_name"] = self._resolver.read_texts(keyed.rows, "from_service_name")
        # Each path is taken once, however many messages have it.
        coded = numbers.dictionary_encode()
        distinct = coded.dictionary
        for name, (words, of_paths) in paths.texts.items():
            local = of_paths.take(distinct).dictionary_encode()
            columns[name] = TextColumn(words.take(local.dictionary), local.indices.take(coded.indices)).array()
        columns |= {name: flags.take(distinct).take(coded.indices) for name, flags in paths.flags.items()}
        hops = paths.hops.take(numbers)
        reads = paths.reads_address.take(distinct).take(coded.indices)
        columns[_HOPS] = _hops_of(paths, hops)
        if reads.true_count:
            in_names = self._addresses.of(keyed.rows["to_service_name"])
            columns |= _with_addresses(columns, hops, reads, in_names)
        return pyarrow.table([columns[name] for name in MESSAGE_PATHS.names], MESSAGE_PATHS.names)

    def _find(self, keyed: KeyedBatch) -> pyarrow.Array:
        """Return the numbers of the paths of messages."""
        import pyarrow.compute as pc

        rows, paths = keyed.rows, self._paths
        names = rows.schema.names
        hops = rows["hops_remaining"] if "hops_remaining" in names else None
        numbers = paths.find(self._key(keyed), rows["at"], rows["conversation_id"], hops)
        if self._requests is not None:
            in_scope, in_msdb = self._requests.find(keyed, self._scan.decisions.decided())
            numbers = pc.if_else(in_msdb, paths.requested_in_msdb.take(keyed.scopes), numbers)
            numbers = pc.if_else(in_scope, paths.requested.take(keyed.scopes), numbers)
        if keyed.is_expired is not None:
            numbers = pc.if_else(keyed.is_expired, paths.expired.take(keyed.scopes), numbers)
        return numbers

    def _key(self, keyed: KeyedBatch) -> PathKeys:
        import pyarrow
        import pyarrow.compute as pc

        rows, scan = keyed.rows, self._scan
        # Of an arrival the way back is not known, whoever sent it.
        arrives = [database == FROM_NETWORK for _, database in scan.decisions.scopes]
        senders = self._senders.of(texts_of(rows, "from_service_name"))
        is_empty = _is_empty(texts_of(rows, "from_service_name"))
        is_known = pc.and_not(senders.is_valid(), pc.or_(is_empty, pyarrow.array(arrives).take(keyed.scopes)))
        conversations = pc.index_in(rows["conversation_id"], value_set=self._paths.waiting)
        return PathKeys(
            self._addressees.of(rows["to_service_name"]),
            keyed.keys.brokers,
            pc.if_else(is_known, senders, _NOBODY),
            pc.fill_null(conversations, _NOBODY),
            keyed.scopes,
            keyed.keys.is_initiator,
        )


def _is_empty(texts: pyarrow.Array) -> pyarrow.Array:
    """Return which texts are empty; false for null."""
    import pyarrow.compute as pc

    words, places = split_words(texts)
    return pc.fill_null(pc.equal(words, "").take(places), fill_value=False)


def _hops_of(paths: PathColumns, hops: pyarrow.Array) -> pyarrow.Array:
    """Return lists of numbers of hops as lists of hops, whose texts share their words."""
    import pyarrow

    numbers = hops.flatten()
    columns: dict[str, pyarrow.Array] = {"matching_step": paths.hop_steps.take(numbers)}
    for name, (words, of_hops) in paths.hop_texts.items():
        columns[name] = TextColumn(words, of_hops.take(numbers)).array()
    each = pyarrow.StructArray.from_arrays([columns[name] for name in HopRow._fields], list(HopRow._fields))
    return pyarrow.ListArray.from_arrays(_offsets_of(hops), each)


def _offsets_of(lists: pyarrow.Array) -> pyarrow.Array:
    """Return where lists begin among their values once these are flattened."""
    import pyarrow
    import pyarrow.compute as pc

    zero = pyarrow.array([0], pyarrow.int32())
    return pyarrow.concat_arrays([zero, pc.cumulative_sum(pc.list_value_length(lists)).cast("int32")])


def _with_addresses(
    columns: Mapping[str, pyarrow.Array], hops: pyarrow.Array, reads: pyarrow.Array, in_names: pyarrow.Array
) -> dict[str, pyarrow.Array]:
    """Return the columns that have the address of the message's own service name: its last hop, and its end."""
    import pyarrow
    import pyarrow.compute as pc

    lists, offsets = columns[_HOPS], _offsets_of(hops)
    each = lists.values
    last = pc.subtract(offsets[1:], 1).filter(reads)
    every = pyarrow.array(range(len(each)), pyarrow.int32())
    addresses = each.field("address").cast(pyarrow.string())
    read = pc.replace_with_mask(addresses, pc.is_in(every, value_set=last), in_names.filter(reads))
    fields = [read.dictionary_encode() if name == "address" else each.field(name) for name in HopRow._fields]
    struct = pyarrow.StructArray.from_arrays(fields, list(HopRow._fields))
    leaves = pc.equal(columns[_OUTCOME].cast(pyarrow.string()), str(Ending.LEFT_ESTATE))
    final = pc.if_else(pc.and_(reads, leaves), in_names, columns[_ADDRESS].cast(pyarrow.string()))
    return {_HOPS: pyarrow.ListArray.from_arrays(offsets, struct), _ADDRESS: final.dictionary_encode()}


@dataclass
class ArrowPaths:
    """The paths of all messages of Arrow's tables; ``read`` and ``traced`` count messages once all are written."""

    scan: MessageScan
    requests: FoundRequests | None
    paths: PathTable
    read: int = field(default=0, init=False)
    traced: int = field(default=0, init=False)

    @classmethod
    def of(cls, tables: Mapping[str, Table], as_of: datetime | None, *, most_keys: int = MOST_KEYS) -> ArrowPaths:
        """Return the paths of input tables' messages, of which those that open requests are found now.

        Raises InputError.
        """
        tables = take_tables(tables)
        settings = read_settings(tables)
        dialogs = tables.get("dialogs")
        checked = check_inputs(settings, dialogs, survey_dialogs(dialogs))
        scan = MessageScan.of(MessageRows.of(tables["messages"], as_of), checked.dialogs, checked)
        return cls(scan, find_all_requests(scan), PathTable(scan, network_of(settings), most_keys=most_keys))

    def write_to(self, files: DataFiles) -> None:
        """Write all rows, each thread to a file of its own."""

        def work(batches: Iterator[pyarrow.RecordBatch]) -> tuple[int, int]:
            file, read, traced = files.open(), 0, 0
            for batch, rows in self._trace(batches):
                read += len(batch)
                if rows is not None:
                    traced += len(rows)
                    file.add(rows)
            return read, traced

        counts = for_each_thread(self.scan.batches(), work)
        self.read, self.traced = (sum(some) for some in zip(*counts, strict=True))

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield all rows in the order of the messages."""
        for batch, rows in self._trace(self.scan.batches()):
            self.read += len(batch)
            if rows is not None:
                self.traced += len(rows)
                yield rows.cast(arrow_schema(MESSAGE_PATHS.optional()))

    def _trace(
        self, batches: Iterable[pyarrow.RecordBatch]
    ) -> Iterator[tuple[pyarrow.RecordBatch, pyarrow.Table | None]]:
        tracer = BatchTracer(self.scan, self.requests, self.paths)
        return ((batch, tracer.trace(batch)) for batch in batches)
