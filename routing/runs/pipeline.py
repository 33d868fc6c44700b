"""What surrounds a run: its lock, what runs before it left, its row in ``runs``; and reading what runs wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import Config
from routing.errors import ConfigError, InputError, RecordedAlready
from routing.messages import openers, pending, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.job import Options
from routing.runs.changing import telling_what_may_change
from routing.runs.done import Run, done_before
from routing.runs.full import run_full
from routing.runs.incremental import run_incremental
from routing.runs.stages import Progress, Stages, Untimed
from routing.runs.work import Work
from routing.sessions.holding import Held
from routing.storage import disks, imported, ledger, protocol, tables, view
from routing.storage.columns import Table, check_given
from routing.storage.conform import conform
from routing.storage.keeping import Keeper, released_on_failure
from routing.storage.ledger import DeltaTables
from routing.storage.locking import only_run
from routing.storage.opening import Opener
from routing.storage.places import check_writable
from routing.storage.protocol import LastRun, Start
from routing.storage.recorded import check_run_id, new_run_id
from routing.storage.releases import release
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE


@dataclass(frozen=True)
class Resolution:
    """What `resolve` returns: three DataFrames in the schemas of the output tables.

    They share a small routing plan that the session keeps until `unpersist`.
    """

    resolved_routes: DataFrame
    new_route_requests: DataFrame
    rejected_messages: DataFrame
    kept: Keeper = field(default_factory=Keeper)

    def unpersist(self) -> None:
        """Let go of what was kept for these frames; they can still be read, at the price of doing it again."""
        self.kept.release()


def resolve(
    spark: SparkSession,
    tables: Mapping[str, Table],
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE,
    run_id: str | None = None,
) -> Resolution:
    """Resolve messages against route tables (rule book, all sections).

    ``tables`` maps the configuration's keys (routes, databases, services, instances, messages; dialogs and
    route_requests where there are any) to tables with the columns of tables.md: messages and dialogs are
    DataFrames, the others DataFrames, Arrow tables or datasets. The result's frames are lazy; validation and the
    pass for the routing keys run at once. ``as_of`` (UTC where it has no zone)
    decides all messages at one time. Raises InputError where a table breaks its contract.
    """
    check_given(tables)
    checked = validate.check(validate.read(tables))
    messages = conform(tables["messages"], "messages")
    options = Options(
        run_id=run_id or new_run_id(),
        as_of=None if as_of is None else _utc(as_of),
        dialog_hash=dialog_hash,
        broadcast_limit=broadcast_limit,
        missing_route_namespace=missing_route_namespace,
    )
    with released_on_failure() as keeper:
        job = compile_messages(messages, checked, options, keeper, Untimed())
        return Resolution(
            results.resolved_routes(job),
            openers.new_route_requests(job),
            results.rejected_messages(job),
            keeper,
        )


def run(
    spark: SparkSession,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    tell: Callable[[str], None] = lambda text: None,
) -> Run:
    """The main job, from tables to tables (commands.md).

    ``progress`` is told of each stage when it begins and when it has ended, ``tell`` by what each table is read.
    Every pass reads each input at the one version that the run records, or as it is where it has none; outputs
    that do not depend on each other are committed side by side, pending once the others are counted, runs last.
    ``now`` (UTC where it has no zone; the clock if not given) is the time at which incremental mode tries delayed
    messages again. Where a run of this id counts already, that one is returned and nothing is written: to try
    again is harmless. Raises ContractError before anything is written, StorageError after, and where another run
    is at work.
    """
    return run_with(Opener.of_session(spark, tell), config, run_id=run_id, now=now, progress=progress)


def run_with(
    opener: Opener,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    recording: Callable[[str], AbstractContextManager[None]] = lambda run_id: nullcontext(),
) -> Run:
    """`run`, in a session that may be starting meanwhile.

    To wait for it is a stage of its own. The run comes to count within ``recording``, which is given its id.
    """
    started = datetime.now(timezone.utc)
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
    outputs = DeltaTables(opener, config)
    with only_run(config.output["runs"], options.run_id), Keeper() as keeper:
        with clock.stage("read"):
            start = _start(outputs, options.run_id, is_full=is_full)
            if start is None:
                return done_before(opener, config, options.run_id, now and _utc(now))
            inputs = tables.snapshots(opener, config.tables)
            options = replace(options, may_change=isinstance(inputs["messages"], tables.AsItIs))
            newest = imported.read_newest(opener, config.kept.get("imports"))
            unfinished = imported.note_unfinished(opener, config.journal)
        notes_so_far = [*start.notes, *unfinished]
        work = Work(outputs, start, options, inputs, newest, clock, opener, keeper, notes_so_far)
        moment = None if is_full else _utc(now or started)
        with telling_what_may_change(inputs):
            written = run_full(work) if moment is None else run_incremental(work, moment)
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
        row |= ledger.identities_of(opener, {"messages": inputs["messages"]})
        with recording(options.run_id):
            row, notes = protocol.finish(outputs, start, written.versions, row)
        work.notes.extend(notes)
        shown = _show_view(outputs, start, written.versions["resolved_routes"])
        work.notes.extend(note for note in shown if note not in work.notes)
    return Run(row, tuple(work.notes), unfinished=tuple(unfinished))


def _options(config: Config, run_id: str) -> Options:
    """How messages are resolved, as a configuration says."""
    return Options(
        run_id=run_id,
        as_of=config.resolve.as_of,
        dialog_hash=config.resolve.dialog_hash,
        broadcast_limit=config.resolve.broadcast_limit,
        missing_route_namespace=config.missing_route_namespace,
    )


def _start(outputs: DeltaTables, run_id: str, *, is_full: bool) -> Start | None:
    """What the runs so far left, what unfinished ones wrote taken back; None where this run counts already.

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


def _show_view(outputs: DeltaTables, start: Start, version: int) -> tuple[str, ...]:
    """Have the view of a catalog show a version; a catalog that takes no such view is told so by the first run."""
    refused = view.show(outputs, version)
    is_first = start.last is None or start.last.table_ids is None
    return (refused.note,) if refused is not None and (refused.is_stale or is_first) else ()


def _after(last: LastRun | None) -> datetime:
    """The clock, but later than the run before: the order of runs must not depend on it."""
    now = datetime.now(timezone.utc)
    return now if last is None else max(now, last.finished_at + timedelta(microseconds=1))


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def read_run(spark: SparkSession, config: Config, run_id: str) -> Resolution:
    """One consistent set of outputs: what a run wrote, of the versions that it recorded.

    Raises InputError where no run of that id counts, or its versions have been vacuumed.
    """
    config = disks.place_all(config, spark)
    runs = tables.snapshots(Held(spark), {"runs": config.output["runs"]})["runs"].read(spark)
    found = runs.where(F.col("run_id") == run_id).select("mode", "output_versions").collect()
    if not found:
        raise InputError(f"no run {run_id!r} is recorded in {config.output['runs']}", "look up its run_id there")
    versions = found[0]["output_versions"]
    names = ("resolved_routes", "new_route_requests", "rejected_messages")
    frames = {key: tables.Snapshot(config.output[key], versions[key]).read(spark) for key in names}
    if found[0]["mode"] != "full":
        # An incremental run adds to what earlier runs wrote.
        frames = {key: frame.where(F.col("run_id") == run_id) for key, frame in frames.items()}
    resolved, requested, rejected = (frames[key] for key in names)
    return Resolution(resolved, requested, rejected)


def current_routes(spark: SparkSession, config: Config) -> DataFrame:
    """The last row of each message in ``resolved_routes``: rows of unfinished runs and earlier attempts left out.

    Raises InputError where no run counts yet.
    """
    config = disks.place_all(config, spark)
    outputs = DeltaTables(Opener.of_session(spark), config)
    last = outputs.last_run()
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    version = protocol.settle(outputs, "resolved_routes", last.output_versions["resolved_routes"])
    return pending.last_rows(tables.Snapshot(config.output["resolved_routes"], version).read(spark))
