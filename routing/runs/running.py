"""Run a job with either engine: lock its outputs, check the leftovers of earlier runs, and record the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial

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
from routing.rules.timeline import as_utc
from routing.run_context import Progress, ResolveOptions, RunContext, StageClock
from routing.runs.run_work import RunInputs, RunResult
from routing.schemas import RUNS, TRAFFIC
from routing.sessions.job_labels import labelled_jobs
from routing.tables.table_columns import Table
from routing.terms import ReadRow, TableRow


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


def find_done(
    runs: Table | None, config: Config, run_id: str, now: datetime | None, *, erase: bool = False
) -> Run | None:
    """Return the run with an id that the table ``runs`` records, or None. Raises RunError."""
    row = find_recorded(runs, config, run_id, now, erase=erase)
    if row is None:
        return None
    earlier = find_earlier_run(runs, row["mode"], before=row["finished_at"])
    return Run(row, (say_recorded(row),), was_recorded=True, earlier=earlier)


def find_run_before(runs: Table | None, mode: str, last: LastRun | None) -> EarlierRun | None:
    """Return the last run of a mode, or None. ``last`` is the last run of any mode."""
    if last is None:
        return None
    if last.mode == mode:
        return EarlierRun(last.run_id, last.finished_at, last.outcome_counts)
    return find_earlier_run(runs, mode)


@dataclass(frozen=True)
class RunEngine:
    """The engine of a run: its name in ``runs``, how it opens tables, writes outputs and resolves messages."""

    name: str
    opener: TableOpener
    outputs: Callable[[TableOpener, Config, list[str]], JobTables]
    resolve: Callable[[RunInputs], RunResult]


def run_by(
    engine: RunEngine,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    erase: bool = False,
    progress: Callable[[Progress], None] = lambda stage: None,
    recording: Callable[[str], AbstractContextManager[None]] = lambda run_id: nullcontext(),
) -> Run:
    """Run a job once by an engine, as `pipeline.run` describes.

    The row in ``runs`` is written within ``recording``, which is given the run's id.
    """
    started, opener = datetime.now(timezone.utc), engine.opener
    config = config.placed(opener.placed)
    is_full = config.resolve.mode == "full"
    is_incremental = config.resolve.mode == "incremental"
    if now is not None and not is_incremental:
        raise ConfigError.now_without_retries()
    if erase and not is_incremental:
        raise ConfigError.erase_in_full_run()
    options = _options(config, new_run_id() if run_id is None else check_run_id(run_id))
    # Convert the settings before anything is written: a committed run must not fail if JSON cannot hold them.
    settings = config.as_json()
    for key, location in config.output.items():
        check_writable(f"output.{key}", location)
    with (
        labelled_jobs(options.run_id, opener.session_so_far) as label_jobs,
        only_run(config.output["runs"], options.run_id),
    ):
        label_jobs(None)
        context = RunContext(options, StageClock(progress, label_jobs))
        opener.waiting = partial(context.clock.stage, "session")
        outputs = engine.outputs(opener, config, context.notes)
        inputs = prepare(outputs, context, None if is_full else as_utc(now or started))
        if inputs is None:
            done = find_done(outputs.runs, config, options.run_id, now and as_utc(now), erase=erase)
            if done is None:
                raise StorageError.overtaken("runs", str(config.output["runs"]))
            return done
        result = engine.resolve(replace(inputs, erases=erase))
        facts = {"started_at": started, "settings": settings, "engine": engine.name}
        return record(inputs, result, facts, recording)


def prepare(outputs: JobTables, context: RunContext, moment: datetime | None) -> RunInputs | None:
    """Prepare a run: check the leftovers of earlier runs, and choose one version of each input.

    Returns None if a run with this id is already recorded. Raises OutputError, InputError, StorageError.
    """
    opener, config = outputs.opener, outputs.config
    with context.clock.stage("read"):
        start = _start(outputs, context.options.run_id, is_full=moment is None)
        if start is None:
            return None
        context.notes.extend(start.notes)
        earlier = find_run_before(outputs.runs, config.resolve.mode, start.last)
        inputs = spark_tables.find_inputs(opener, config.tables)
        present = leave_out_missing(opener, config, context.notes.append, lambda: start.last, inputs)
        spark_tables.check_inputs(inputs, present.tables)
        inputs = {key: inputs[key] for key in present.tables}
        if config.resolve.mode == "window":
            inputs = _as_last_read(inputs, start.last)
        options = replace(
            context.options, may_change=isinstance(inputs["messages"], spark_tables.UnversionedTable)
        )
        newest = import_times.read_newest(opener, config.import_tables.get("imports"))
        unfinished = tuple(import_times.note_unfinished(opener, config.journal))
        context.notes.extend(unfinished)
    context = replace(context, options=options)
    return RunInputs(context, outputs, start, inputs, newest, moment, earlier, unfinished)


def _as_last_read(inputs: dict[str, spark_tables.Input], last: LastRun | None) -> dict[str, spark_tables.Input]:
    """Return the inputs with the messages at the version that the last run read."""
    messages = inputs["messages"]
    if last is None or not isinstance(messages, spark_tables.TableSnapshot):
        return inputs
    version = last.input_versions.get("messages", messages.version)
    return {**inputs, "messages": replace(messages, version=version)}


def record(
    inputs: RunInputs,
    result: RunResult,
    facts: ReadRow,
    recording: Callable[[str], AbstractContextManager[None]],
) -> Run:
    """Make a run count by its row in ``runs``, and show its result in the catalog's view.

    ``facts`` are the columns of the row that neither inputs nor result have. The row is written within
    ``recording``, which is given the run's id. Raises StorageError.
    """
    options, start, outputs = inputs.options, inputs.start, inputs.outputs
    traffic = {key: inputs.inputs[key] for key in TRAFFIC if key in inputs.inputs}
    row = {
        **facts,
        **vars(result),
        "run_id": options.run_id,
        "mode": inputs.config.resolve.mode,
        "finished_at": _after(start.last),
        "as_of": options.as_of,
        "now": inputs.moment if inputs.config.resolve.mode == "incremental" else None,
        "window_from": inputs.config.resolve.window_from,
        "window_to": inputs.config.resolve.window_to,
        "input_versions": {key: snapshot.version for key, snapshot in inputs.inputs.items()},
        "dialog_hash": options.dialog_hash,
        "stage_seconds": inputs.clock.seconds,
        "release": release(),
        **ledger.identities_of(inputs.opener, traffic),
    }
    with recording(options.run_id):
        whole, notes = protocol.finish(outputs, start, result.output_versions, row)
    inputs.notes.extend(notes)
    version = result.output_versions["resolved_routes"]
    if start.last is None or version != start.last.output_versions["resolved_routes"]:
        # The start of the run has already shown an unchanged version.
        shown = _show_view(outputs, start, version)
        inputs.notes.extend(note for note in shown if note not in inputs.notes)
    ordered = {name: whole[name] for name in RUNS.names if name in whole}
    return Run(ordered, tuple(inputs.notes), unfinished=inputs.unfinished, earlier=inputs.earlier)


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
    """Check earlier runs' outputs and restore those of unfinished runs. Return None if this run is recorded.

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
    # A run that was killed after it was recorded may not have updated the view.
    shown = _show_view(outputs, start, last.output_versions["resolved_routes"])
    return replace(start, notes=(*start.notes, *shown))


def _show_view(outputs: JobTables, start: RunStart, version: int) -> tuple[str, ...]:
    """Show a version in the catalog's view. The first run also notes a catalog that accepts no such view."""
    refused = current_routes_view.show(outputs.opener, outputs.config, version)
    return (refused.note,) if refused is not None and (refused.is_stale or start.last is None) else ()


def _after(last: LastRun | None) -> datetime:
    """Return the current time, but later than the last run: the order of runs must not depend on the clock."""
    now = datetime.now(timezone.utc)
    return now if last is None else max(now, last.finished_at + timedelta(microseconds=1))
