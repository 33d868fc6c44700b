"""Run a job by either engine: lock its outputs, inspect what earlier runs left, and record the row in ``runs``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Protocol

from routing.config import Config
from routing.delta import current_routes_view, import_times, ledger, protocol, spark_tables
from routing.delta.counted_runs import check_run_id, new_run_id, release
from routing.delta.job_outputs import LastRun
from routing.delta.ledger import JobTables
from routing.delta.opening import TableOpener
from routing.delta.protocol import RunStart
from routing.delta.run_lock import only_run
from routing.delta.table_details import check_writable
from routing.errors import ConfigError, RecordedAlready
from routing.plan.checked_inputs import ResolveOptions
from routing.rules.timeline import as_utc
from routing.runs.run_results import Run, done_before, find_run_before
from routing.runs.run_work import Progress, RunCounts, RunWork, Stages


class RunEngine(Protocol):
    """The engine that resolves the messages of a run and commits its outputs."""

    @property
    def name(self) -> str:
        """The engine as ``runs`` records it."""

    @property
    def opener(self) -> TableOpener:
        """What opens its tables."""

    def open_outputs(self, config: Config) -> JobTables:
        """Return the outputs of a job, as this engine commits to them."""

    def run(self, base: RunWork, moment: datetime | None) -> RunCounts:
        """Resolve everything, or where there is a moment what is new and delayed; returns what was written."""


def run_by(
    engine: RunEngine,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    recording: Callable[[str], AbstractContextManager[None]] = lambda run_id: nullcontext(),
) -> Run:
    """Run once by an engine, as `pipeline.run` says."""
    started, opener = datetime.now(timezone.utc), engine.opener
    config = config.placed(opener.placed)
    is_full = config.resolve.mode == "full"
    if is_full and now is not None:
        raise ConfigError.now_without_retries()
    options = _options(config, new_run_id() if run_id is None else check_run_id(run_id))
    # Before anything is written: what cannot be told in JSON must not stop a run whose outputs are committed.
    settings = config.as_json()
    clock = Stages(progress)
    opener.time_session(clock)
    for key, location in config.output.items():
        check_writable(key, location)
    outputs = engine.open_outputs(config)
    with only_run(config.output["runs"], options.run_id):
        with clock.stage("read"):
            start = _start(outputs, options.run_id, is_full=is_full)
            if start is None:
                return done_before(opener, config, options.run_id, now and as_utc(now))
            earlier = find_run_before(opener, config, start.last)
            inputs = spark_tables.snapshots(opener, config.tables)
            options = replace(options, may_change=isinstance(inputs["messages"], spark_tables.AsItIs))
            newest = import_times.read_newest(opener, config.import_tables.get("imports"))
            unfinished = import_times.note_unfinished(opener, config.journal)
        notes_so_far = [*start.notes, *unfinished]
        work = RunWork(outputs, start, options, inputs, newest, clock, opener, notes_so_far)
        moment = None if is_full else as_utc(now or started)
        written = engine.run(work, moment)
        row = {
            "run_id": options.run_id,
            "mode": config.resolve.mode,
            "started_at": started,
            "finished_at": _after(start.last),
            "as_of": options.as_of,
            "now": moment,
            "input_versions": {key: snapshot.version for key, snapshot in inputs.items()},
            "output_versions": dict(written.versions),
            "rows_read": written.read,
            "rows_resolved": written.resolved,
            "rows_rejected": written.rejected,
            "outcome_counts": dict(written.outcomes),
            "reason_counts": dict(written.reasons),
            "dialog_hash": options.dialog_hash,
            "settings": settings,
            "stage_seconds": clock.seconds,
            "release": release(),
        }
        row |= {**ledger.identities_of(opener, {"messages": inputs["messages"]}), "engine": engine.name}
        with recording(options.run_id):
            row, notes = protocol.finish(outputs, start, written.versions, row)
        work.notes.extend(notes)
        shown = _show_view(outputs, start, written.versions["resolved_routes"])
        work.notes.extend(note for note in shown if note not in work.notes)
    return Run(row, (*work.notes, *outputs.notes), unfinished=tuple(unfinished), earlier=earlier)


def _options(config: Config, run_id: str) -> ResolveOptions:
    """Return the options of a configuration for resolving messages."""
    return ResolveOptions(
        run_id=run_id,
        as_of=config.resolve.as_of,
        dialog_hash=config.resolve.dialog_hash,
        broadcast_limit=config.resolve.broadcast_limit,
        missing_route_namespace=config.missing_route_namespace,
    )


def _start(outputs: JobTables, run_id: str, *, is_full: bool) -> RunStart | None:
    """Inspect earlier runs' outputs and restore those of unfinished ones; return None where this run counts.

    Raises OutputError, StorageError.
    """
    try:
        start = protocol.begin(outputs, run_id, is_full=is_full, attempt=new_run_id())
    except RecordedAlready:
        return None
    outputs.check()
    last = start.last
    if last is None:
        return start
    if not is_full:
        start = protocol.take_back(outputs, start)
    # A run that was killed once it counted has not come to this.
    shown = _show_view(outputs, start, last.output_versions["resolved_routes"])
    return replace(start, notes=(*start.notes, *shown))


def _show_view(outputs: JobTables, start: RunStart, version: int) -> tuple[str, ...]:
    """Show a version in the catalog's view; the first run tells a catalog that takes no such view."""
    refused = current_routes_view.show(outputs, version)
    is_first = start.last is None or start.last.table_ids is None
    return (refused.note,) if refused is not None and (refused.is_stale or is_first) else ()


def _after(last: LastRun | None) -> datetime:
    """Return the clock, but later than the run before: the order of runs must not depend on it."""
    now = datetime.now(timezone.utc)
    return now if last is None else max(now, last.finished_at + timedelta(microseconds=1))
