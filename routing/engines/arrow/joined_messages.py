"""Follow and compare messages on Spark's workers with the functions of the Arrow engine.

Spark joins the tables that grow with the traffic. So each message has the facts of its dialog, and whether it
waits for a requested route. A worker gets the configuration and decides each key once.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from routing.engines.arrow.bucketed_rows import join_small
from routing.engines.arrow.changed_batches import (
    BatchComparer,
    ComparedMessages,
    DecidingSide,
    read_for_comparison,
)
from routing.engines.arrow.compared_paths import ComparedPaths, SidePaths
from routing.engines.arrow.dialog_ends import JoinedDialogs
from routing.engines.arrow.message_keys import NUMBERED, MessageRows
from routing.engines.arrow.path_numbers import PathNumbers
from routing.engines.arrow.resolved_batches import MessageScan
from routing.engines.arrow.traced_batches import BatchTracer, NumberedPaths
from routing.plan.checked_inputs import CheckedInputs, Settings, network_of
from routing.process import no_search_for_cycles
from routing.result_schemas import MESSAGE_CHANGES
from routing.schemas import MESSAGE_PATHS, MESSAGES
from routing.tables.arrow_rows import arrow_schema

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.decisions import DecisionColumns
    from routing.engines.arrow.resolved_batches import Asked, KeyedBatch

# Limits of the rows and bytes of small batches that are joined, and of the rows of a returned batch.
_ROWS_AT_ONCE, _BYTES_AT_ONCE, _ROWS_GIVEN = 1 << 17, 64 << 20, 10_000


def asked_columns(side: str) -> tuple[str, str]:
    """Return the columns that show whether step 4 stops a message on a side, in its own scope and in msdb."""
    return f"requested_{side}", f"requested_in_msdb_{side}"


@dataclass(frozen=True)
class JoinedRequests:
    """The requests of messages that already have the columns of `asked_columns`."""

    in_scope: str
    in_msdb: str

    def find(self, keyed: KeyedBatch, decided: DecisionColumns) -> Asked:
        """Return masks of the messages that step 4 stops in their own scope, and in msdb."""
        return keyed.rows[self.in_scope], keyed.rows[self.in_msdb]


@dataclass(frozen=True)
class WorkerSide:
    """A configuration and a time with which workers decide messages.

    ``at`` is in microseconds, or None for each message's own time. With ``has_requests``, messages have the
    columns of `asked_columns` for the side's ``name``.
    """

    name: str
    settings: Settings
    at: int | None
    has_requests: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of messages for this side."""
        return asked_columns(self.name) if self.has_requests else ()

    @property
    def requests(self) -> JoinedRequests | None:
        """The requests of messages, or None if no message can ask for a route."""
        return JoinedRequests(*self.columns) if self.has_requests else None

    def scan(self, *, has_dialogs: bool) -> MessageScan:
        """Return the tables that decide messages, without messages."""
        import pyarrow.dataset

        rows = pyarrow.dataset.dataset(arrow_schema(MESSAGES.optional()).empty_table())
        messages = MessageRows(rows, {name: name for name in MESSAGES.names}, self.at)
        scan = MessageScan.of(messages, None, CheckedInputs(self.settings))
        return replace(scan, ends=JoinedDialogs(scan.numbers)) if has_dialogs else scan


@dataclass(frozen=True)
class WorkerPlan:
    """The plan of a pass on workers. They follow messages with one side, and compare them with two."""

    sides: Sequence[WorkerSide]
    has_dialogs: bool

    def pack(self) -> bytes:
        """Serialize the plan for workers. Its size depends only on the configuration."""
        plain = replace(self, sides=[replace(side, settings=dict(side.settings)) for side in self.sides])
        return zlib.compress(pickle.dumps(plain, pickle.HIGHEST_PROTOCOL), 1)

    def open(self) -> Callable[[MessageScan], Iterator[pyarrow.Table]]:
        """Return a function that follows or compares messages."""
        return _open_tracer(self) if len(self.sides) == 1 else _open_comparer(self)


def run_plan(packed: bytes, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of ``message_paths`` or `MESSAGE_CHANGES` for batches of messages.

    The messages must also have the columns of `JoinedDialogs` if the plan has dialogs, and those of its sides.
    """
    import pyarrow

    plan, work = _open(packed)
    base = plan.sides[0].scan(has_dialogs=plan.has_dialogs)
    tables = (pyarrow.Table.from_batches([batch]) for batch in batches if len(batch))
    with no_search_for_cycles():
        for rows in join_small(tables, _ROWS_AT_ONCE, _BYTES_AT_ONCE):
            for table in work(replace(base, messages=replace(base.messages, rows=_numbered(rows)))):
                yield from table.combine_chunks().to_batches(_ROWS_GIVEN)


@lru_cache(maxsize=1)
def _open(packed: bytes) -> tuple[WorkerPlan, Callable[[MessageScan], Iterator[pyarrow.Table]]]:
    """Open a plan once for all tasks of a worker, so that each key is decided once."""
    plan: WorkerPlan = pickle.loads(zlib.decompress(packed))
    return plan, plan.open()


def _numbered(rows: pyarrow.Table) -> pyarrow.dataset.Dataset:
    """Return messages for `MessageRows`, with the columns of `NUMBERED` as numbers of texts."""
    import pyarrow.dataset

    rows = rows.combine_chunks()
    for name in NUMBERED:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, rows[name].cast(pyarrow.string()).dictionary_encode())
    return pyarrow.dataset.dataset(rows)


def _open_tracer(plan: WorkerPlan) -> Callable[[MessageScan], Iterator[pyarrow.Table]]:
    """Return a function that follows messages."""
    import pyarrow.compute as pc

    [side] = plan.sides
    scan, paths = side.scan(has_dialogs=plan.has_dialogs), NumberedPaths()
    numbers = PathNumbers(scan, network_of(side.settings), paths)
    tracer = BatchTracer(scan, side.requests, numbers, paths)
    shape, side_columns = arrow_schema(MESSAGE_PATHS.optional()), {name: pc.field(name) for name in side.columns}

    def work(messages: MessageScan) -> Iterator[pyarrow.Table]:
        for batch in messages.batches(side_columns):
            rows = tracer.trace(batch)
            if rows is not None:
                yield rows.cast(shape)

    return work


def _open_comparer(plan: WorkerPlan) -> Callable[[MessageScan], Iterator[pyarrow.Table]]:
    """Return a function that compares messages on both sides."""
    import pyarrow.compute as pc

    scans = [side.scan(has_dialogs=plan.has_dialogs) for side in plan.sides]
    paths = ComparedPaths()
    before, after = (
        DecidingSide.of(scan, side.requests, network_of(side.settings), SidePaths(paths, None))
        for side, scan in zip(plan.sides, scans, strict=True)
    )
    comparer = BatchComparer(ComparedMessages(before, after, None, paths))
    shape = arrow_schema(MESSAGE_CHANGES.optional())
    side_columns = {name: pc.field(name) for side in plan.sides for name in side.columns}

    def work(messages: MessageScan) -> Iterator[pyarrow.Table]:
        for batch in read_for_comparison(messages, side_columns):
            changed = comparer.compare(batch)
            if changed is not None:
                yield changed.table().cast(shape)

    return work
