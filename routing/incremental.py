"""What an incremental run reads: the messages that are new, those that are tried again, the requests on record.

Data goes from the last run that counts (`ledger`) to the frames that `compiling` takes; nothing is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing import duplicates, pending
from routing.appended import Appended, appended
from routing.config import Config, size_in_bytes
from routing.conform import conform, in_shape
from routing.keeping import Keeper, held, held_frame, held_together
from routing.ledger import LastRun
from routing.schemas import MESSAGES, ROUTE_REQUESTS
from routing.stages import Stages
from routing.tables import Snapshot
from routing.terms import Outcome

_REQUEST_KEY = ["instance_name", "database_name", "service_name", "requested_at", "message_id"]
# A pending message in memory, roughly.
_PENDING_BYTES = 500


@dataclass(frozen=True)
class Increment:
    """What is new, and what is tried again.

    frames: the conformed inputs, their messages with a column ``attempt`` (no messages where ``is_idle``: there is
    nothing to do). as_read: these messages as they came in. tried_again: rows of ``pending_messages``, None where
    there are none. duplicates: rows to be rejected with their reasons, None where there are none. on_record: the
    keys of stored route requests, or None.
    """

    frames: Mapping[str, DataFrame]
    as_read: DataFrame
    tried_again: DataFrame | None
    duplicates: DataFrame | None = None
    duplicate_count: int = 0
    on_record: DataFrame | None = None
    is_idle: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stored:
    """What the runs so far left: the last that counts, and the versions of the output tables by key."""

    config: Config
    last: LastRun | None
    versions: Mapping[str, int]

    def read(self, spark: SparkSession, key: str) -> DataFrame:
        """An output table as the runs so far left it."""
        return Snapshot(self.config.output[key], self.versions[key]).read(spark)

    @property
    def limit(self) -> int:
        """The bytes that may be broadcast."""
        return size_in_bytes(self.config.resolve.broadcast_limit)


def read(
    spark: SparkSession,
    inputs: Mapping[str, Snapshot],
    stored: Stored,
    now: datetime,
    clock: Stages,
    keeper: Keeper,
) -> Increment:
    """The frames of an incremental run.

    What ``keeper`` is given here must stay until the run has ended. Raises InputError where the messages that are
    new cannot be told, or an input has wrong columns.
    """
    last = stored.last
    with clock.stage("read"):
        others = {key: found.read(spark) for key, found in inputs.items() if key != "messages"}
        frames = held({key: conform(frame, key) for key, frame in others.items()})
    with clock.stage("new messages"):
        new = _new(spark, inputs["messages"], last)
        messages = conform(new.rows, "messages")
    again, requests = None, None
    if last is not None:
        with clock.stage("pending"):
            again, requests = _left(spark, inputs["messages"], last, stored, keeper)
    step = Increment(frames, messages, again, is_idle=new.count == 0 and again is None)
    if step.is_idle:
        return step
    with clock.stage("duplicates"):
        resolved = None if last is None else stored.read(spark, "resolved_routes")
        step = _without_duplicates(step, resolved, new.count, stored.limit, keeper)
    step = _with_requests(step, requests)
    return _with_retries(step, now)


def _new(spark: SparkSession, messages: Snapshot, last: LastRun | None) -> Appended:
    if last is None:
        return Appended(messages.read(spark), None)
    return appended(spark, messages, last.input_versions["messages"], last.finished_at)


def _left(
    spark: SparkSession, messages: Snapshot, last: LastRun, stored: Stored, keeper: Keeper
) -> tuple[DataFrame | None, DataFrame | None]:
    """What the runs so far left: the messages to be tried again, and the route requests; None for no rows."""
    requests = stored.read(spark, "new_route_requests").select(*_REQUEST_KEY)
    if "pending_messages" in last.output_versions:
        # Both are tables as they stand: where they are large nothing is gained by keeping them.
        left = held_together({"again": stored.read(spark, "pending_messages"), "requests": requests})
        return _if_any(left["again"]), _if_any(left["requests"])
    requests = held_frame(requests)
    count = last.outcome_counts.get(str(Outcome.DELAYED), 0)
    if not count:
        return None, _if_any(requests)
    read = Snapshot(messages.location, last.input_versions["messages"]).read(spark)
    fits = count * _PENDING_BYTES <= stored.limit
    again = pending.after_full_run(
        conform(read, "messages"), stored.read(spark, "resolved_routes"), broadcast=fits
    )
    return _if_any(keeper.keep(again)), _if_any(requests)


def _if_any(frame: DataFrame) -> DataFrame | None:
    return frame if frame.limit(1).count() else None


def _without_duplicates(
    step: Increment, stored: DataFrame | None, count: int | None, limit: int, keeper: Keeper
) -> Increment:
    """The step without message rows whose id is stored already, or stands twice."""
    if count == 0:
        return step
    fits = count is not None and count * duplicates.KEY_BYTES <= limit
    found = duplicates.checked(step.as_read, stored, step.frames, keeper, broadcast=fits)
    notes = [*step.notes]
    if stored is not None and not fits:
        notes.append(
            "the keys of the new messages are over broadcast_limit: stored keys are shuffled to find doubles"
        )
    return replace(
        step, as_read=found.messages, duplicates=found.duplicates, duplicate_count=found.count, notes=notes
    )


def _with_requests(step: Increment, requests: DataFrame | None) -> Increment:
    """The step with the requests of earlier runs on record; where `route_requests` has one, its row counts."""
    if requests is None:
        return step
    known = step.frames.get("route_requests")
    ours = requests.withColumn("ended_at", F.lit(None).cast("timestamp")).select(*ROUTE_REQUESTS.names)
    if known is not None:
        listed = known.select(*_REQUEST_KEY).distinct()
        ours = known.unionByName(ours.join(F.broadcast(listed), _REQUEST_KEY, how="left_anti"))
    return replace(step, frames={**step.frames, "route_requests": ours}, on_record=requests)


def _with_retries(step: Increment, now: datetime) -> Increment:
    """The step with its messages complete: the new ones, and those that are tried again at ``now``."""
    messages, as_read = pending.first_tried(step.as_read), step.as_read
    if step.tried_again is not None:
        messages = messages.unionByName(pending.tried_again(step.tried_again, now))
        as_read = as_read.unionByName(step.tried_again.select(*MESSAGES.names))
    return replace(step, frames={**step.frames, "messages": messages}, as_read=as_read)


def not_on_record(requests: DataFrame, step: Increment) -> DataFrame:
    """Requests to be stored, without those that are stored already: none is opened twice."""
    if step.on_record is None:
        return requests
    return requests.join(F.broadcast(step.on_record), _REQUEST_KEY, how="left_anti").select(*requests.columns)


def rejected(sound: DataFrame, step: Increment, run_id: str) -> DataFrame:
    """The rows of ``rejected_messages``: the run's own, as they were read, and the duplicates."""
    rows = sound if step.tried_again is None else pending.as_read(sound, step.tried_again)
    if step.duplicates is None:
        return rows
    doubles = step.duplicates.withColumn("run_id", F.lit(run_id))
    return rows.unionByName(in_shape(doubles, rows.schema))


def still_pending(step: Increment, resolved: DataFrame, run_id: str, count: int, config: Config) -> DataFrame:
    """The rows of ``pending_messages``; ``resolved`` are the run's own rows, of which ``count`` are delayed."""
    fits = count * _PENDING_BYTES <= size_in_bytes(config.resolve.broadcast_limit)
    return pending.pending_messages(step.as_read, resolved, run_id, broadcast=fits)
