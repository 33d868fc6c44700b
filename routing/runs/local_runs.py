"""Run jobs in full by the local engine: on this machine's disk, with Arrow and delta-rs, without Java."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from routing.arguments import checked
from routing.config import Config
from routing.delta import protocol
from routing.delta.data_files import DataFiles, DataFileWriter, RowSource
from routing.delta.ledger import LocalOutputs
from routing.delta.opening import LocalOpener
from routing.engines.arrow import open_requests
from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.open_requests import FoundRequests
from routing.engines.arrow.resolved_batches import (
    ROWS_AT_ONCE,
    BatchResolver,
    MessageScan,
    RejectedRows,
    allocating_by_jemalloc,
    find_all_requests,
    for_each_thread,
)
from routing.plan.checked_inputs import check_inputs, survey_dialogs
from routing.run_context import Progress, StageClock
from routing.runs.engine_choice import choose_engine, find_run_reasons
from routing.runs.run_work import (
    RunInputs,
    RunResult,
    count_quarantined,
    count_resolved,
    count_rows,
    note_quarantine,
    note_unended_requests,
)
from routing.runs.running import Run, RunEngine, run_by
from routing.schemas import RESOLVED_ROUTES
from routing.tables.arrow_rows import arrow_schema
from routing.tables.read_rows import read_settings
from routing.tables.table_columns import Table
from routing.terms import DEFAULT_BROADCAST_LIMIT, LOCAL_ENGINE

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


@checked
def resolve_local(
    config: Config,
    *,
    run_id: str | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    on_note: Callable[[str], None] = lambda text: None,
    recording: Callable[[str], AbstractContextManager[None]] = lambda run_id: nullcontext(),
) -> Run:
    """Run the main job without Spark, in full mode, on tables of this machine's disk (commands.md).

    It writes the same tables as `run`.

    Args:
        config: the configuration, with any engine.
        run_id: the id of the run; by default a new one.
        progress: called with each stage when it begins and when it has ended.
        on_note: called with a note on each table that is read otherwise than usual.
        recording: the block within which the row in ``runs`` is written; it is given the run's id.

    Returns:
        The run.

    Raises:
        ContractError: the local engine lacks a setting, or cannot read or write a table; nothing was written.
        StorageError: a write failed, or another run is at work.

    Example:
        >>> done = routing.resolve_local(routing.load_config("job.yaml"), run_id="again")
        >>> done.row["outcome_counts"]
        {'DELIVERED': 2, 'SENT': 1, 'DELAYED': 2}
    """
    choose_engine(LOCAL_ENGINE, find_run_reasons(config))
    return run_by(
        local_engine(LocalOpener(on_note)), config, run_id=run_id, progress=progress, recording=recording
    )


def _note_what_does_not_apply(config: Config) -> Iterator[str]:
    if config.spark:
        yield f"the local engine takes no Spark settings: {', '.join(sorted(config.spark))}"
    if config.resolve.broadcast_limit != DEFAULT_BROADCAST_LIMIT:
        yield "the local engine joins nothing: resolve.broadcast_limit does not apply"


def local_engine(opener: LocalOpener, rows_at_once: int = ROWS_AT_ONCE) -> RunEngine:
    """Return the engine that resolves and writes by Arrow and delta-rs, ``rows_at_once`` messages at a time."""

    def resolve(inputs: RunInputs) -> RunResult:
        inputs.notes.extend(_note_what_does_not_apply(inputs.config))
        with allocating_by_jemalloc():
            return run_full_locally(inputs, rows_at_once)

    return RunEngine(LOCAL_ENGINE, opener, LocalOutputs, resolve)


def run_full_locally(inputs: RunInputs, rows_at_once: int) -> RunResult:
    """Read, check, decide, commit and count. Raises InputError, then StorageError and InternalError."""
    clock, options = inputs.clock, inputs.options
    with clock.stage("read"):
        tables = _open_tables(inputs)
    scan = _scan_messages(tables, options.as_of, clock, rows_at_once, quarantines=inputs.quarantines)
    note_quarantine(inputs, scan.checked)
    note_unended_requests(inputs.notes, scan.checked.count_unended_requests())
    requests = _find_requests(scan, clock)
    versions = {}
    with clock.stage("write"):
        request_rows = None
        if requests is not None and requests.is_any_opened:
            request_rows = TableRows(partial(requests.tables, options.missing_route_namespace, options.run_id))
        versions["new_route_requests"] = _commit(inputs, "new_route_requests", request_rows)
        if requests is not None:
            # This drops the last references to the written requests, which frees their memory.
            requests, request_rows = requests.drop_lone(), None
        resolved = ResolvedRows(scan, requests, options.run_id)
        versions["resolved_routes"] = _commit(inputs, "resolved_routes", resolved)
    with clock.stage("counts"):
        groups = count_resolved(inputs, versions)
    with clock.stage("rejected"):
        rejected = None
        if groups.total() < resolved.read:
            rejected = TableRows(RejectedRows(scan, options.run_id).tables)
        versions["rejected_messages"] = _commit(inputs, "rejected_messages", rejected)
    with clock.stage("counts") as tally:
        done = count_rows(inputs, versions, groups, versions, resolved.read)
        tally.rows = done.rows_resolved
        return count_quarantined(inputs, done, scan.checked.quarantine)


@contextmanager
def resolved_in_files(tables: Mapping[str, Table], as_of: datetime | None) -> Iterator[pyarrow.dataset.Dataset]:
    """Resolve Arrow tables without an output, and yield the rows, in temporary files within the block.

    The rows are those of ``resolved_routes`` with an empty run_id. Raises InputError.
    """
    from pyarrow.dataset import dataset

    clock = StageClock()
    with TemporaryDirectory(prefix="sbroute-") as folder, allocating_by_jemalloc():
        scan = _scan_messages(tables, as_of, clock, ROWS_AT_ONCE)
        requests = _find_requests(scan, clock)
        with DataFiles(Path(folder)) as files:
            ResolvedRows(scan, requests, run_id="").write_to(files)
            files.close()
        yield dataset(folder, schema=arrow_schema(RESOLVED_ROUTES))


def _scan_messages(
    tables: Mapping[str, Table],
    as_of: datetime | None,
    clock: StageClock,
    rows_at_once: int,
    *,
    quarantines: bool = False,
) -> MessageScan:
    """Check the configuration and prepare the tables that decide its messages. Raises InputError."""
    with clock.stage("read"):
        settings = read_settings(tables)
    with clock.stage("validate"):
        dialogs = tables.get("dialogs")
        checked = check_inputs(settings, dialogs, survey_dialogs(dialogs), quarantines=quarantines)
    messages = MessageRows.of(tables["messages"], as_of)
    with clock.stage("lookups"):
        return MessageScan.of(messages, checked.dialogs, checked, rows_at_once)


def _find_requests(scan: MessageScan, clock: StageClock) -> FoundRequests | None:
    """Return the requests that messages open or wait for, or None if no message can ask."""
    if not open_requests.may_any_ask(scan):
        return None
    with clock.stage("requests"):
        return find_all_requests(scan)


def _open_tables(inputs: RunInputs) -> dict[str, Table]:
    """Return every input at its version."""
    return {
        key: inputs.opener.open_at(f"tables.{key}", snapshot.location, snapshot.version)
        for key, snapshot in inputs.inputs.items()
    }


def _commit(inputs: RunInputs, key: str, rows: RowSource | None) -> int:
    """Replace a table's rows and return the version. None means no rows, and an empty table is then kept."""
    if rows is None:
        if inputs.is_empty(key):
            return inputs.start.versions[key]
        rows = TableRows(tuple)
    return protocol.commit(inputs.outputs, inputs.start, key, rows, adds=False)


@dataclass
class ResolvedRows:
    """The rows of ``resolved_routes``, created while they are written. ``read`` then counts all messages."""

    scan: MessageScan
    requests: FoundRequests | None
    run_id: str
    read: int = field(default=0, init=False)

    def write_to(self, files: DataFiles) -> None:
        """Write all rows. Each thread writes its own file."""

        def work(batches: Iterator[pyarrow.RecordBatch]) -> int:
            resolver, file, read = BatchResolver(self.scan), files.open(), 0
            for batch in batches:
                read += len(batch)
                keyed = resolver.key(batch)
                if len(keyed.rows):
                    _write_all(resolver.resolve(keyed, self.requests, self.run_id), file)
            return read

        self.read = sum(for_each_thread(self.scan.batches(), work))


@dataclass(frozen=True)
class TableRows:
    """Rows in several Arrow tables."""

    tables: Callable[[], Iterable[pyarrow.Table]]

    def write_to(self, files: DataFiles) -> None:
        """Write the tables to one file."""
        _write_all(self.tables(), files.open())


def _write_all(tables: Iterable[pyarrow.Table], file: DataFileWriter) -> None:
    for table in tables:
        file.add(table)
