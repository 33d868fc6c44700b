"""Read the inputs of an incremental run: new messages, messages to retry, and requests on record.

The frames go to `compiling`. This module writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import TableLocation, read_duration
from routing.delta.appended_rows import check_files, files_of
from routing.delta.job_outputs import LastRun
from routing.delta.spark_tables import REMOVE, TableSnapshot
from routing.errors import OutputError
from routing.messages import due_times, duplicates, openers, pending, results, validate
from routing.messages.lookups import RunLookups
from routing.messages.route_plan import RoutePlan
from routing.runs.message_changes import ArrivedMessages, DialogChanges
from routing.runs.run_work import InternalError, RunInputs
from routing.schemas import (
    KEYS,
    MESSAGES,
    OUTPUTS,
    PENDING_MESSAGES,
    REJECTED_MESSAGES,
    ROUTE_REQUESTS,
    ColumnKind,
    Field,
    Schema,
)
from routing.tables import spark_forms
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide, select_by_hash
from routing.tables.frames import run_concurrently, with_columns_of
from routing.tables.read_rows import count_by_files
from routing.tables.spark_forms import conform, in_shape, readable_texts
from routing.terms import Outcome

SearchForDoubles = Callable[[], JoinSide | None]
"""Waits for the search for duplicate messages and returns the result of `duplicates.find_doubles`."""

_CHANGES = Schema((*PENDING_MESSAGES, Field(REMOVE, ColumnKind.BOOLEAN)))
_ENDPOINT = ["conversation_id", "is_initiator"]
_REQUEST_KEY = list(KEYS["route_requests"])


@dataclass(frozen=True)
class NewMessages:
    """The new messages and the messages to retry.

    ``messages`` have the columns of `pending.try_first`, and ``as_read`` are the same messages unchanged.
    ``tried_again`` are rows of ``pending_messages``, or None. ``requests`` are all route requests on record, or
    None. ``duplicates`` are rows to reject with their reasons, or None. ``on_record`` are the stored route
    requests, or None. ``withheld`` are rows of ``pending_messages`` for messages of instances in quarantine, with
    column ``is_changed``, or None. They are not among the others.
    """

    messages: DataFrame
    as_read: DataFrame
    tried_again: DataFrame | None
    requests: DataFrame | None
    duplicates: DataFrame | None = None
    duplicate_count: int = 0
    on_record: DataFrame | None = None
    withheld: DataFrame | None = None
    withheld_count: int = 0


@dataclass(frozen=True)
class Retries:
    """The rows of ``pending_messages`` that a run decides again, or None, and their number.

    ``inputs_are_same`` is true if the last run validated the same inputs, apart from the messages.
    """

    rows: DataFrame | None
    count: int
    inputs_are_same: bool = False


@dataclass(frozen=True)
class StoredOutputs:
    """The outputs of earlier runs at their ``versions``, by key.

    The frames in ``frame_cache`` must stay until the run has ended. ``replaced`` selects the stored rows that a
    run over a window replaces.
    """

    inputs: RunInputs
    versions: Mapping[str, int]
    frame_cache: FrameCache
    replaced: Column | None = None

    @property
    def last(self) -> LastRun | None:
        """The last recorded run."""
        return self.inputs.start.last

    @property
    def broadcasts(self) -> BroadcastBudget:
        """The budget for broadcasts. The run gets a note on each larger side."""
        return BroadcastBudget.of_run(self.inputs.context, self.frame_cache.limits)

    def read(self, spark: SparkSession, key: str) -> DataFrame:
        """Read an output table at its version with Spark."""
        snapshot = TableSnapshot(self.inputs.config.output[key], self.versions[key])
        return with_columns_of(snapshot.read(spark), OUTPUTS[key])

    def read_kept(self, spark: SparkSession, key: str, columns: Sequence[str]) -> tuple[DataFrame | None, int]:
        """Return columns of an output table for several passes, or None without rows, and the number of rows."""
        known_count = count_by_files(self.inputs.open_output(key, self.versions[key]))
        count = self.read(spark, key).count() if known_count is None else known_count
        if count == 0:
            return None, 0
        rows = self.read(spark, key).select(*columns)
        return (self.frame_cache.hold(rows) if count <= self.frame_cache.limits.held_rows else rows), count


def find_arrived(
    messages_table: TableSnapshot, changes: ArrivedMessages, stored: StoredOutputs
) -> ArrivedMessages:
    """Return the new messages of table ``messages_table`` with the leftovers of earlier runs.

    Deleted messages are left out. Raises InputError if files are missing that the last run read.
    """
    if stored.last is None:
        return changes
    with stored.inputs.clock.stage("pending"):
        return _with_left(changes, messages_table, stored, stored.last)


def start_search(arrived: ArrivedMessages, stored: StoredOutputs) -> SearchForDoubles | None:
    """Start to look for new messages that are stored already, or return None without new messages.

    Spark reads the stored keys while the run chooses retries and validates its inputs.
    """
    if arrived.count == 0:
        return None
    spark = arrived.messages.sparkSession

    def search() -> JoinSide | None:
        before = None if stored.last is None else _stored_near(spark, arrived, stored)
        return duplicates.find_doubles(
            arrived.messages, before, stored.frame_cache, stored.broadcasts, arrived.count
        )

    with stored.inputs.clock.stage("duplicates"):
        return stored.frame_cache.start(spark, search)


def reduce_dialogs(
    tables: validate.InputTables,
    arrived: ArrivedMessages,
    tried: Retries,
    changes: DialogChanges,
    stored: StoredOutputs,
) -> DataFrame | None:
    """Cache and return the dialogs of new and retried messages, and changed dialogs.

    Returns None in the first run, which needs all dialogs, and if few dialogs are stored.
    """
    dialogs = tables.stored_dialogs
    if dialogs is None or stored.last is None:
        return None
    # Dialogs are found by a 64-bit hash, which Spark looks up faster than texts. A few other dialogs may have the
    # same hash. A changed dialog may lack its id, which is a fault. It is found too, because null has a hash.
    hash_of = F.xxhash64(spark_forms.conversation_id(F.col("conversation_id")))
    messages = [arrived.messages, *([] if tried.rows is None else [tried.rows])]
    hashes = [rows.select(hash_of.alias("hash")) for rows in messages]
    if changes.conversations is not None:
        hashes.append(changes.conversations.select(F.xxhash64("id").alias("hash")))
    count = None if arrived.count is None else arrived.count + tried.count + changes.count
    wanted = reduce(DataFrame.unionByName, hashes)
    side = stored.broadcasts.join_side("the conversations of a run", wanted, count)
    return stored.frame_cache.store(select_by_hash(dialogs, hash_of, side, count))


def read(
    lookups: RunLookups,
    arrived: ArrivedMessages,
    search: SearchForDoubles | None,
    tried_again: DataFrame | None,
    stored: StoredOutputs,
    now: datetime,
) -> NewMessages:
    """Return the messages that a run decides: new ones without duplicates, and retried ones."""
    clock, frame_cache, broadcasts = stored.inputs.clock, stored.frame_cache, stored.broadcasts
    messages, quarantined = arrived.messages, lookups.checked.quarantine.instances
    step = NewMessages(messages, messages, tried_again, lookups.requests)
    if search is not None:
        with clock.stage("duplicates"):
            doubled = search()
            if doubled is not None:
                as_read, rejected = duplicates.set_doubles_aside(messages, doubled, lookups)
                count = rejected.count()
                step = replace(step, as_read=as_read, duplicates=rejected, duplicate_count=count)
    if arrived.requests is not None:
        with clock.stage("requests"):
            step = _with_requests(step, arrived.requests, broadcasts)
    if quarantined:
        with clock.stage("quarantine"):
            step = _withhold(step, quarantined, frame_cache, stored.inputs.options.run_id, now)
    return _with_retries(step, now)


def _withhold(
    step: NewMessages, quarantined: Collection[str], frame_cache: FrameCache, run_id: str, now: datetime
) -> NewMessages:
    """Take out the messages of instances in quarantine, except those with another fault."""
    is_withheld = spark_forms.is_in(quarantined) & F.coalesce(spark_forms.is_well_formed(), F.lit(False))
    rows = pending.withheld_first(step.as_read.where(is_withheld), run_id, now)
    tried_again = step.tried_again
    if tried_again is not None:
        rows = rows.unionByName(pending.withheld_again(tried_again.where(is_withheld)))
        tried_again = tried_again.where(~is_withheld)
    withheld, count = frame_cache.keep_counted(rows)
    return replace(
        step,
        as_read=step.as_read.where(~is_withheld),
        tried_again=tried_again,
        withheld=withheld,
        withheld_count=count,
    )


def _stored_near(spark: SparkSession, arrived: ArrivedMessages, stored: StoredOutputs) -> DataFrame:
    """Return the stored rows that new messages may duplicate.

    They include all delayed messages, however old, so that no new message has a row in ``pending_messages``.
    """
    names = [*pending.KEY, "enqueue_time"]
    rows = stored.read(spark, "resolved_routes").select(*names)
    within = stored.inputs.config.resolve.duplicates_within
    if within is not None:
        rows = select_near(rows, arrived.messages, read_duration(within))
    if arrived.pending is not None:
        # Messages in quarantine have no row in resolved_routes, and rows of others may have been deleted.
        rows = rows.unionByName(arrived.pending.select(*names))
    if stored.replaced is not None:
        is_kept = ~stored.replaced
        rows = rows.where(is_kept)
    return rows


def select_near(stored: DataFrame, messages: DataFrame, within: timedelta) -> DataFrame:
    """Select stored rows from ``within`` before the first ``enqueue_time`` to ``within`` after the last one.

    Messages without a time are rejected anyway.
    """
    time = F.unix_micros("enqueue_time")
    [bounds] = messages.agg(F.min(time).alias("first"), F.max(time).alias("last")).collect()
    if bounds["first"] is None:
        return stored.limit(0)
    distance = within // timedelta(microseconds=1)
    # With constants, Spark can skip files by their statistics.
    first, last = (F.timestamp_micros(F.lit(n)) for n in (bounds["first"] - distance, bounds["last"] + distance))
    return stored.where((F.col("enqueue_time") >= first) & (F.col("enqueue_time") <= last))


def _with_left(
    arrived: ArrivedMessages, messages: TableSnapshot, stored: StoredOutputs, last: LastRun
) -> ArrivedMessages:
    """Add the leftovers of earlier runs: messages to retry, and route requests."""
    inputs, spark = stored.inputs, arrived.messages.sparkSession
    wanted: dict[str, Sequence[str]] = {"new_route_requests": [*_REQUEST_KEY, *_ENDPOINT]}
    if "pending_messages" in last.output_versions:
        wanted["pending_messages"] = PENDING_MESSAGES.names
    # These are stored tables, so caching large ones gains nothing.
    left = run_concurrently(spark, lambda key: stored.read_kept(spark, key, wanted[key]), list(wanted))
    arrived = replace(arrived, requests=left[0][0])
    if "pending_messages" in wanted:
        rows, count = left[1]
        is_thinned = "resolved_routes" in inputs.start.thinned
        if rows is not None and (is_thinned or "pending_messages" in inputs.outputs.lacking):
            rows = pending.with_digests(rows, stored.read(spark, "resolved_routes"))
        return replace(arrived, pending=rows, pending_count=count)
    count = last.outcome_counts.get(str(Outcome.DELAYED), 0)
    if not count:
        return arrived
    tried = TableSnapshot(messages.location, last.input_versions["messages"])
    check_files(spark, tried)
    delayed, expected = _read_delayed(spark, inputs.config.output["resolved_routes"], last, count)
    waiting = stored.broadcasts.join_side("the messages that the last run delayed", delayed, count)
    with files_of(tried):
        retried = stored.frame_cache.keep(pending.after_full_run(conform(tried.read(spark), "messages"), waiting))
        row_count = retried.count()
    if row_count != expected:
        raise InternalError.delayed(expected, row_count, tried.version)
    if arrived.deleted is not None:
        retried = stored.frame_cache.keep(arrived.without_deleted(retried))
        row_count = retried.count()
    return replace(arrived, pending=retried if row_count else None, pending_count=row_count)


def _read_delayed(
    spark: SparkSession, location: TableLocation, last: LastRun, count: int
) -> tuple[DataFrame, int]:
    """Return the delayed messages of the last run, which was a full one, and their number.

    They are read at the version that it recorded, because old rows may have been deleted since. Raises OutputError
    if that version does not have them all.
    """
    refused = partial(OutputError.full_run_needed, "resolved_routes", str(location))
    wrote = TableSnapshot(location, last.output_versions["resolved_routes"])
    check_files(spark, wrote, refused)
    with files_of(wrote, refused):
        rows = wrote.read(spark)
        delayed = F.col("outcome") == str(Outcome.DELAYED)
        key = F.when(pending.is_pending(), F.struct(*pending.KEY))
        [delayed_counts] = rows.agg(F.count(F.when(delayed, True)), F.count_distinct(key)).collect()
    if delayed_counts[0] != count:
        raise refused(
            f"version {wrote.version} holds {delayed_counts[0]} delayed messages,"
            f" and run {last.run_id!r} recorded {count}"
        )
    return pending.select_delayed_in_full(rows), int(delayed_counts[1])


def _with_requests(step: NewMessages, requests: DataFrame, broadcasts: BroadcastBudget) -> NewMessages:
    """Return the step with the requests of earlier runs. A row in `route_requests` takes precedence.

    A row of `route_requests` without an owner gets the owner from the run that opened it (D10).
    """
    listed_requests = step.requests
    ours = requests.withColumn("ended_at", F.lit(None).cast("timestamp")).select(*ROUTE_REQUESTS.names)
    if listed_requests is not None:
        listed = broadcasts.join_side("the rows of route_requests", listed_requests.select(*_REQUEST_KEY))
        unlisted = ours.join(listed.with_hint(), _REQUEST_KEY, how="left_anti")
        ours = _with_endpoints(listed_requests, requests, broadcasts).unionByName(unlisted)
    return replace(step, requests=ours, on_record=requests)


def count_unended(step: NewMessages) -> int:
    """Count the distinct requests on record without ended_at."""
    if step.requests is None:
        return 0
    return step.requests.where("ended_at IS NULL").select(*_REQUEST_KEY).distinct().count()


def _with_endpoints(listed_requests: DataFrame, requests: DataFrame, broadcasts: BroadcastBudget) -> DataFrame:
    """Add to rows of `route_requests` the endpoints that earlier runs recorded for them."""
    opened = requests.where(openers.names_endpoint()).groupBy(*_REQUEST_KEY)
    # Each request has one row here, so the join keeps the number of requests.
    whose = broadcasts.join_side("the route requests of earlier runs", opened.agg(_smallest().alias("opened_by")))
    joined = listed_requests.join(whose.with_hint(), _REQUEST_KEY, how="left").withColumn(
        "tells", openers.names_endpoint()
    )
    of_run = {name: F.when(F.col("tells"), F.col(name)).otherwise(F.col("opened_by")[name]) for name in _ENDPOINT}
    return joined.withColumns(of_run).select(*ROUTE_REQUESTS.names)


def _smallest() -> Column:
    return F.min(F.struct(*_ENDPOINT))


def _with_retries(step: NewMessages, now: datetime) -> NewMessages:
    """Return the step with all messages: the new ones, and those to retry at ``now``."""
    messages, as_read = pending.try_first(step.as_read), step.as_read
    if step.tried_again is not None:
        messages = messages.unionByName(pending.try_again(step.tried_again, now))
        as_read = as_read.unionByName(step.tried_again.select(*MESSAGES.names))
    return replace(step, messages=messages, as_read=as_read)


def not_on_record(requests: DataFrame, step: NewMessages, broadcasts: BroadcastBudget) -> DataFrame:
    """Remove requests that are already stored, so that none is opened twice."""
    if step.on_record is None:
        return requests
    record = broadcasts.join_side("the route requests of earlier runs", step.on_record)
    return requests.join(record.with_hint(), _REQUEST_KEY, how="left_anti").select(*requests.columns)


def combine_rejected(sound: DataFrame, step: NewMessages, run_id: str, broadcasts: BroadcastBudget) -> DataFrame:
    """Return the rows of ``rejected_messages``: the rejected rows as they were read, and the duplicates."""
    rows = sound
    if step.tried_again is not None:
        own_times = broadcasts.join_side(
            "the times of messages that are tried again", pending.own_times(step.tried_again)
        )
        rows = pending.as_read(sound, own_times)
    if step.duplicates is None:
        return rows
    doubles = step.duplicates.withColumn("run_id", F.lit(run_id))
    return rows.unionByName(in_shape(doubles, REJECTED_MESSAGES, readable_texts()))


def changed_pending(plan: RoutePlan, step: NewMessages, now: datetime) -> DataFrame:
    """Return the rows of ``pending_messages`` that a run adds, replaces or removes (column `REMOVE`)."""
    decided = _decided(plan, step, now)
    is_stored, is_pending = pending.is_stored(), pending.is_pending()
    changed = decided.where((is_pending & pending.differs_from_stored()) | (~is_pending & is_stored))
    rows = pending.pending_messages(changed.withColumn(REMOVE, ~is_pending), plan.options.run_id, _CHANGES)
    if step.withheld is not None:
        withheld = step.withheld.where("is_changed").withColumn(REMOVE, F.lit(False))
        rows = rows.unionByName(in_shape(withheld, _CHANGES))
    if plan.counts.rows_valid == plan.counts.rows_read and not plan.options.may_change:
        return rows
    rejected = results.rejected_retries(plan).withColumn(REMOVE, F.lit(True))
    return rows.unionByName(rejected, allowMissingColumns=True)


def still_pending(plan: RoutePlan, step: NewMessages, now: datetime) -> DataFrame:
    """Return the rows of ``pending_messages`` after a run that decides every delayed message."""
    waiting = _decided(plan, step, now).where(F.coalesce(pending.is_pending(), F.lit(False)))
    rows = pending.pending_messages(waiting, plan.options.run_id)
    return rows if step.withheld is None else rows.unionByName(in_shape(step.withheld, PENDING_MESSAGES))


def _decided(plan: RoutePlan, step: NewMessages, now: datetime) -> DataFrame:
    """Decide the messages of a plan again, without a join, and add their due times."""
    messages, values = results.decide(plan, plan.choices, has_attempts=True)
    return due_times.add_due_times(pending.add_decision(messages, values), plan, step.requests, now)
