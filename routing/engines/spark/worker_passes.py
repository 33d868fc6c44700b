"""Follow all messages, or compare them on two sides, with the Arrow engine in Spark's Python workers.

Spark joins the tables that grow with the traffic. Each message gets the facts of its dialog, and whether it
waits for a requested route. Messages are not shuffled as long as the joined tables can be broadcast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.engines.arrow.joined_messages import WorkerPlan, WorkerSide, asked_columns, run_plan
from routing.messages import keying, results
from routing.messages.route_plan import RequestSides, RoutePlan
from routing.result_schemas import MESSAGE_CHANGES, SIDES
from routing.rules.timeline import micros_of
from routing.schemas import MESSAGE_PATHS, MESSAGES, Schema
from routing.sessions.python_workers import map_by_workers
from routing.tables import spark_forms
from routing.tables.frames import spark_schema

if TYPE_CHECKING:
    import pyarrow

# Columns of messages that are changed for joins, with the names of their unchanged copies.
_AS_READ = {name: f"{name}_as_read" for name in ("database_name", "conversation_id")}

_SOUND = "is_well_formed"


def message_paths(plan: RoutePlan) -> DataFrame:
    """Return the rows of ``message_paths``, one for each accepted message."""
    return _run(plan.source.messages, [plan], SIDES[:1], MESSAGE_PATHS)


def changed_messages(messages: DataFrame, before: RoutePlan, after: RoutePlan) -> DataFrame:
    """Return the messages that change between two sides, in the columns of `MESSAGE_CHANGES`.

    Both sides must have the same dialogs.
    """
    return _run(messages, [before, after], SIDES, MESSAGE_CHANGES)


def _run(messages: DataFrame, plans: Sequence[RoutePlan], names: Sequence[str], shape: Schema) -> DataFrame:
    """Process messages in workers. The size of their plan depends only on the configuration."""
    sides = [
        WorkerSide(
            name,
            plan.source.lookups.in_driver.settings,
            None if plan.options.as_of is None else micros_of(plan.options.as_of),
            plan.requests is not None,
        )
        for name, plan in zip(names, plans, strict=True)
    ]
    work_plan = WorkerPlan(sides, plans[0].source.dialogs is not None)
    if work_plan.has_dialogs or any(side.has_requests for side in sides):
        messages = _join(messages, dict(zip(names, plans, strict=True)), work_plan)
    packed = work_plan.pack()

    def work(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return run_plan(packed, batches)

    return map_by_workers(messages, work, spark_schema(shape.optional()))


def _join(messages: DataFrame, plans: dict[str, RoutePlan], work_plan: WorkerPlan) -> DataFrame:
    """Add the facts of dialogs to all messages, and for each side whether step 4 stops them."""
    [first, *_] = plans.values()
    as_read = messages.withColumns(
        {
            **{copied: F.col(name) for name, copied in _AS_READ.items()},
            _SOUND: F.coalesce(spark_forms.is_well_formed(), F.lit(False)),
        }
    )
    # A message has the same dialog on both sides.
    joined = keying.find_dialog(keying.prepare(as_read, first.options.as_of), first.source.dialogs)
    for name, plan in plans.items():
        if plan.requests is not None:
            joined = _add_requests(joined, plan, plan.requests, name)
    added = [
        *(keying.DIALOG if work_plan.has_dialogs else ()),
        *(name for side in work_plan.sides for name in side.columns),
    ]
    message_columns = (F.col(_AS_READ.get(name, name)).alias(name) for name in MESSAGES.names)
    return joined.select(*message_columns, *added)


def _add_requests(messages: DataFrame, plan: RoutePlan, requests: RequestSides, name: str) -> DataFrame:
    """Add a side's columns of `asked_columns` to the result of `keying.find_dialog`."""
    rejects, lookups, decided = plan.may_reject, plan.source.lookups, plan.decided
    if decided is None:
        raise TypeError("only the driver's decisions are joined with messages for workers")
    timed = messages.withColumn("decided_at", keying.time_of(plan.options.as_of))
    scoped = keying.add_scope(timed, lookups) if rejects or lookups.checked.has_transport else timed
    keyed = plan.source.key(keying.read_dialog(scoped))
    is_rejected = ~F.col(_SOUND) | F.col("own_addresses").isNull() if rejects else None
    fits = decided.size <= plan.source.broadcasts.limit
    chosen = results.choose(keyed, decided, lookups.dialog_hash, fits=fits, is_rejected=is_rejected)
    with_requests = results.add_requests(results.cut(chosen), requests, in_msdb=plan.uses.asks_msdb)
    columns = zip(("requested", "requested_in_msdb"), asked_columns(name), strict=True)
    return with_requests.select(*messages.columns, *(F.col(column).alias(alias) for column, alias in columns))
