"""Follow all messages with Arrow, batch by batch, into rows of ``message_paths`` without Python objects.

Each message has the number of its path (`path_numbers`). Only an address that a route reads from the service
name is added for each message.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from routing.engines.arrow.interned_rows import InternedRows
from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.open_requests import FoundRequests
from routing.engines.arrow.path_numbers import PathFinder, PathNumbers
from routing.engines.arrow.resolved_batches import (
    BatchResolver,
    MessageScan,
    Requests,
    find_all_requests,
    for_each_thread,
)
from routing.engines.arrow.text_numbers import spread
from routing.plan.checked_inputs import check_inputs, network_of, survey_dialogs
from routing.plan.planner import MOST_KEYS
from routing.rules.network import ServiceAddress
from routing.rules.pathing import (
    HopRow,
    PathRow,
    PathSender,
    PathWithReturn,
    path_row,
    reads_address,
)
from routing.schemas import MESSAGE_PATHS
from routing.tables.arrow_forms import leading_addresses
from routing.tables.arrow_rows import arrow_schema
from routing.tables.encoded_texts import MappedTexts
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import read_settings
from routing.tables.table_columns import Table
from routing.terms import Ending, TableRow

if TYPE_CHECKING:
    import pyarrow

    from routing.delta.data_files import DataFiles

_HOPS, _STEP, _OUTCOME, _ADDRESS = "hops", "matching_step", "outcome", "final_address"
# If it is true, the address of the last hop comes from the message's service name.
_READS = "reads_address"
_HOP_TEXTS = tuple(name for name in HopRow._fields if name != _STEP)
_FLAGS = ("ways_agree", "multiple_targets", "return_ways_agree")
_PATH_TEXTS = tuple(name for name in PathRow._fields if name not in (*_FLAGS, _HOPS))


class NumberedPaths:
    """Stores distinct paths as columns."""

    def __init__(self) -> None:
        import pyarrow

        self.lock = threading.Lock()
        flags = dict.fromkeys((*_FLAGS, _READS), pyarrow.bool_())
        self._paths = InternedRows(_PATH_TEXTS, {**flags, _HOPS: pyarrow.list_(pyarrow.int32())})
        self._hops = InternedRows(_HOP_TEXTS, {_STEP: pyarrow.int32()})

    def number(self, path: PathWithReturn, sender: PathSender | None, to: ServiceAddress | None) -> int:
        """Return the number of a path. Paths with the same row in the table share it."""
        row, reads = path_row(path), reads_address(path.there)

        def values() -> TableRow:
            hops = [self._hops.number(hop, hop._asdict) for hop in row.hops]
            return {**row._asdict(), _HOPS: hops, _READS: reads}

        return self._paths.number((row, reads), values)

    def columns(self) -> tuple[dict[str, pyarrow.Array], dict[str, pyarrow.Array]]:
        """Return the columns of all paths so far, and those of the hops that paths list by their numbers."""
        with self.lock:
            return self._paths.columns(), self._hops.columns()


class BatchTracer:
    """Follows the messages of one batch at a time, for one thread."""

    def __init__(
        self, scan: MessageScan, requests: Requests | None, numbers: PathNumbers, paths: NumberedPaths
    ) -> None:
        self._scan, self._requests, self._paths = scan, requests, paths
        self._resolver, self._finder = BatchResolver(scan), PathFinder(scan, numbers)
        self._addresses = MappedTexts(leading_addresses)

    def trace(self, batch: pyarrow.RecordBatch) -> pyarrow.Table | None:
        """Return the rows of ``message_paths`` of a batch, or None if all messages are rejected."""
        import pyarrow

        keyed = self._resolver.key(batch)
        if not len(keyed.rows):
            return None
        requests, decided = self._requests, self._scan.decisions
        requested = None if requests is None else requests.find(keyed, decided.decided())
        numbers = self._finder.find(keyed, requested)
        paths, all_hops = self._paths.columns()
        columns = self._resolver.own_columns(keyed.rows)
        columns["from_service_name"] = self._resolver.read_texts(keyed.rows, "from_service_name")
        # The columns of a path are copied once, and not for each message.
        coded = numbers.dictionary_encode()
        distinct = coded.dictionary
        columns |= {name: spread(paths[name], coded) for name in _PATH_TEXTS}
        columns |= {name: paths[name].take(distinct).take(coded.indices) for name in _FLAGS}
        reads = paths[_READS].take(distinct).take(coded.indices)
        hops = paths[_HOPS].take(numbers)
        columns[_HOPS] = _hops_of(all_hops, hops)
        if reads.true_count:
            in_names = self._addresses.of(keyed.rows["to_service_name"])
            columns |= _with_addresses(columns, hops, reads, in_names)
        return pyarrow.table([columns[name] for name in MESSAGE_PATHS.names], MESSAGE_PATHS.names)


def _hops_of(all_hops: Mapping[str, pyarrow.Array], hops: pyarrow.Array) -> pyarrow.Array:
    """Convert lists of the numbers of hops to lists of hops."""
    import pyarrow

    numbers = hops.flatten()
    columns = [all_hops[name].take(numbers) for name in HopRow._fields]
    hop_structs = pyarrow.StructArray.from_arrays(columns, list(HopRow._fields))
    return pyarrow.ListArray.from_arrays(_offsets_of(hops), hop_structs)


def _offsets_of(lists: pyarrow.Array) -> pyarrow.Array:
    """Return the offsets of lists in their flattened values."""
    import pyarrow
    import pyarrow.compute as pc

    zero = pyarrow.array([0], pyarrow.int32())
    return pyarrow.concat_arrays([zero, pc.cumulative_sum(pc.list_value_length(lists)).cast("int32")])


def _with_addresses(
    columns: Mapping[str, pyarrow.Array], hops: pyarrow.Array, reads: pyarrow.Array, in_names: pyarrow.Array
) -> dict[str, pyarrow.Array]:
    """Fill in the addresses from service names, in the last hop and in the final address."""
    import pyarrow
    import pyarrow.compute as pc

    lists, offsets = columns[_HOPS], _offsets_of(hops)
    hop_structs = lists.values
    last = pc.subtract(offsets[1:], 1).filter(reads)
    places = pyarrow.array(range(len(hop_structs)), pyarrow.int32())
    addresses = hop_structs.field("address").cast(pyarrow.string())
    read = pc.replace_with_mask(addresses, pc.is_in(places, value_set=last), in_names.filter(reads))
    fields = [
        read.dictionary_encode() if name == "address" else hop_structs.field(name) for name in HopRow._fields
    ]
    struct = pyarrow.StructArray.from_arrays(fields, list(HopRow._fields))
    leaves = pc.equal(columns[_OUTCOME].cast(pyarrow.string()), str(Ending.LEFT_ESTATE))
    final = pc.if_else(pc.and_(reads, leaves), in_names, columns[_ADDRESS].cast(pyarrow.string()))
    return {_HOPS: pyarrow.ListArray.from_arrays(offsets, struct), _ADDRESS: final.dictionary_encode()}


@dataclass
class ArrowPaths:
    """The paths of all messages in Arrow tables. ``read`` and ``traced`` count messages when all are written."""

    scan: MessageScan
    requests: FoundRequests | None
    numbers: PathNumbers
    paths: NumberedPaths
    read: int = field(default=0, init=False)
    traced: int = field(default=0, init=False)

    @classmethod
    def of(cls, tables: Mapping[str, Table], as_of: datetime | None, *, most_keys: int = MOST_KEYS) -> ArrowPaths:
        """Open input tables and find the messages that open requests. Raises InputError."""
        tables = take_tables(tables)
        settings = read_settings(tables)
        dialogs = tables.get("dialogs")
        checked = check_inputs(settings, dialogs, survey_dialogs(dialogs))
        scan = MessageScan.of(MessageRows.of(tables["messages"], as_of), checked.dialogs, checked)
        paths = NumberedPaths()
        numbers = PathNumbers(scan, network_of(settings), paths, most_keys=most_keys)
        return cls(scan, find_all_requests(scan), numbers, paths)

    def write_to(self, files: DataFiles) -> None:
        """Write all rows. Each thread writes its own file."""

        def work(batches: Iterator[pyarrow.RecordBatch]) -> tuple[int, int]:
            file, read, traced = files.open(), 0, 0
            for batch, rows in self._trace(batches):
                read += len(batch)
                if rows is not None:
                    traced += len(rows)
                    file.add(rows)
            return read, traced

        counts = for_each_thread(self.scan.batches(), work)
        self.read, self.traced = (sum(column_counts) for column_counts in zip(*counts, strict=True))

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
        tracer = BatchTracer(self.scan, self.requests, self.numbers, self.paths)
        return ((batch, tracer.trace(batch)) for batch in batches)
