"""What surrounds a run, by either engine: its lock, what runs before it left, and its row in ``runs``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Protocol

from routing.config import Config
from routing.errors import ConfigError, RecordedAlready
from routing.plan.options import Options
from routing.runs.counting import Written
from routing.runs.done import Run, done_before, find_run_before
from routing.runs.run_work import RunWork
from routing.runs.stages import Progress, Stages
from routing.storage import imported, ledger, protocol, tables, view
from routing.storage.ledger import JobTables
from routing.storage.locking import only_run
from routing.storage.opening import Opener
from routing.storage.places import check_writable
from routing.storage.protocol import LastRun, Start
from routing.storage.recorded import check_run_id, new_run_id
from routing.storage.releases import release
from routing.storage.times import as_utc


class RunEngine(Protocol):
    """What resolves the messages of a run and commits its outputs."""

    @property
    def name(self) -> str:
        """The engine as ``runs`` records it."""

    @property
    def opener(self) -> Opener:
        """What opens its tables."""

    def open_outputs(self, config: Config) -> JobTables:
        """Return the outputs of a job, as this engine commits to them."""

    def run(self, base: RunWork, moment: datetime | None) -> Written:
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
    """Make one run by an engine, as `pipeline.run` says."""
    started, opener = datetime.now(timezone.utc), engine.opener
    config = config.placed(opener.placed)
    is_full = config.resolve.mode == "full"
    if is_full and now is not None:
        raise ConfigError.now_without_retries()
    options = _options(config, new_run_id() if run_id is None else check_run_id(run_id))
    # Before anything is written: what cannot be told in JSON must not stop a run whose outputs are committed.
    settings = config.as_json()
    clock = Stages(progress)
    opener.waiting = lambda: clock.stage("session")
    for key, location in config.output.items():
        check_writable(key, location)
    outputs = engine.open_outputs(config)
    with only_run(config.output["runs"], options.run_id):
        with clock.stage("read"):
            start = _start(outputs, options.run_id, is_full=is_full)
            if start is None:
                return done_before(opener, config, options.run_id, now and as_utc(now))
            earlier = find_run_before(opener, config, start.last)
            inputs = tables.snapshots(opener, config.tables)
            options = replace(options, may_change=isinstance(inputs["messages"], tables.AsItIs))
            newest = imported.read_newest(opener, config.kept.get("imports"))
            unfinished = imported.note_unfinished(opener, config.journal)
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


def _options(config: Config, run_id: str) -> Options:
    """Return how messages are resolved, as a configuration says."""
    return Options(
        run_id=run_id,
        as_of=config.resolve.as_of,
        dialog_hash=config.resolve.dialog_hash,
        broadcast_limit=config.resolve.broadcast_limit,
        missing_route_namespace=config.missing_route_namespace,
    )


def _start(outputs: JobTables, run_id: str, *, is_full: bool) -> Start | None:
    """Look at what the runs so far left, and take back what unfinished ones wrote; None where this run counts.

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


def _show_view(outputs: JobTables, start: Start, version: int) -> tuple[str, ...]:
    """Have the view of a catalog show a version; a catalog that takes no such view is told so by the first run."""
    refused = view.show(outputs, version)
    is_first = start.last is None or start.last.table_ids is None
    return (refused.note,) if refused is not None and (refused.is_stale or is_first) else ()


def _after(last: LastRun | None) -> datetime:
    """Return the clock, but later than the run before: the order of runs must not depend on it."""
    now = datetime.now(timezone.utc)
    return now if last is None else max(now, last.finished_at + timedelta(microseconds=1))
