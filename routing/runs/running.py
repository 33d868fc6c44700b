"""Run a job by either engine: lock its outputs, inspect what earlier runs left, and record the row in ``runs``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Protocol

from routing.config import Config, ConfigError
from routing.delta import current_routes_view, import_times, ledger, protocol, spark_tables
from routing.delta.counted_runs import (
    EarlierRun,
    check_run_id,
    find_earlier_run,
    find_recorded,
    leave_out_missing,
    new_run_id,
    release,
    say_recorded,
)
from routing.delta.job_outputs import LastRun
from routing.delta.ledger import JobTables
from routing.delta.opening import TableOpener
from routing.delta.protocol import RunStart
from routing.delta.run_lock import only_run
from routing.delta.table_details import check_writable
from routing.errors import RecordedAlready, StorageError
from routing.plan.checked_inputs import ResolveOptions
from routing.rules.timeline import as_utc
from routing.runs.run_work import Progress, RunCounts, RunWork, Stages
from routing.terms import TableRow


@dataclass(frozen=True)
class Run:
    """Hold a finished run: its row of ``runs``, and its notes.

    Args:
        row: the row of table ``runs`` (tables.md).
        notes: sentences for the person who watches the run.
        was_recorded: whether a run of this id counted already, so that nothing was done.
        unfinished: the notes on imports that were not finished when the run read its inputs.
        earlier: the last run of the same mode before it; None for the first.

    Example:
        >>> done = routing.resolve_local(routing.load_config("job.yaml"), run_id="second")
        >>> done.row["rows_resolved"], done.was_recorded
        (5, False)
    """

    row: TableRow
    notes: tuple[str, ...]
    was_recorded: bool = False
    unfinished: tuple[str, ...] = ()
    earlier: EarlierRun | None = None


def find_done(opener: TableOpener, config: Config, run_id: str, now: datetime | None) -> Run | None:
    """Return the run that counts under an id; None where none does. Raises as `find_recorded` does."""
    row = find_recorded(opener, config, run_id, now)
    if row is None:
        return None
    earlier = find_earlier_run(opener, config, row["mode"], before=row["finished_at"])
    return Run(row, (say_recorded(row),), was_recorded=True, earlier=earlier)


def done_before(opener: TableOpener, config: Config, run_id: str, now: datetime | None) -> Run:
    """Return the run that was found to count under an id. Raises RunError where its settings were others."""
    done = find_done(opener, config, run_id, now)
    if done is None:
        raise StorageError.overtaken("runs", str(config.output["runs"]))
    return done


def find_run_before(opener: TableOpener, config: Config, last: LastRun | None) -> EarlierRun | None:
    """Return the last run of the configured mode, None where there is none; ``last`` is that of any mode."""
    mode = config.resolve.mode
    if last is None:
        return None
    if last.mode == mode:
        return EarlierRun(last.run_id, last.finished_at, last.outcome_counts)
    return find_earlier_run(opener, config, mode)


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
            left_out: list[str] = []
            inputs = spark_tables.snapshots(opener, leave_out_missing(opener, config, left_out.append).tables)
            options = replace(options, may_change=isinstance(inputs["messages"], spark_tables.AsItIs))
            newest = import_times.read_newest(opener, config.import_tables.get("imports"))
            unfinished = import_times.note_unfinished(opener, config.journal)
        notes_so_far = [*start.notes, *left_out, *unfinished]
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
    refused = current_routes_view.show(outputs.opener, outputs.config, version)
    return (refused.note,) if refused is not None and (refused.is_stale or start.last is None) else ()


def _after(last: LastRun | None) -> datetime:
    """Return the clock, but later than the run before: the order of runs must not depend on it."""
    now = datetime.now(timezone.utc)
    return now if last is None else max(now, last.finished_at + timedelta(microseconds=1))
