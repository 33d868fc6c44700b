"""Compute when time alone may change the decision of a delayed message."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.route_plan import RoutePlan
from routing.tables.cached_frames import look_up

SERVICE_KEY = ["instance_name", "to_service_name"]
"""The columns of a message that identify the route requests that concern it."""


def add_due_times(decided: DataFrame, plan: RoutePlan, on_record: DataFrame | None, now: datetime) -> DataFrame:
    """Add due_at and may_ask to decided messages.

    ``due_at`` is the first time after the decision at which time alone may change it. It is the end of a route's
    validity, of a dialog, or of a request for the same service. If the decision is as of a time after ``now``, or
    such an end before ``now`` may have changed it, the message is due at once.
    """
    t, run_time = F.col("decided_at"), time_of_run(now)
    of_dialog = (F.when(F.col(name) > t, F.col(name)) for name in ("acknowledged_at", "dialog_lifetime"))
    bounds = [F.col("valid_to"), *of_dialog]
    may_ask = F.lit(False)
    if plan.requests is not None:
        may_ask = F.coalesce(F.col("choice.asks") | F.col("choice.asks_msdb"), F.lit(False))
        times = _request_times(plan.requests.openers.rows, on_record, now)
        side = plan.keep("the times of route requests", times)
        # ``times`` has one row for each service, so the join keeps the number of messages.
        decided = look_up(decided, side, SERVICE_KEY)
        after = F.when(F.col("last_before") > t, run_time).otherwise(F.col("first_after"))
        bounds.append(F.when(may_ask, after))
    due = F.when(t > run_time, run_time).otherwise(F.least(*bounds))
    return decided.withColumns({"due_at": due, "may_ask": may_ask})


def time_of_run(now: datetime) -> Column:
    """Return the time of a run for messages, without writing it into the code that Spark generates.

    Otherwise Java compiles the code again in each run of a session. Spark passes an array by reference, if the
    index is not constant.
    """
    # Spark cannot know that no text has a length below zero.
    zero = F.when(F.octet_length("message_id") < 0, 1).otherwise(0)
    return F.get(F.array(F.lit(now)), zero)


def _request_times(opened: DataFrame, on_record: DataFrame | None, now: datetime) -> DataFrame:
    """Return the last time up to ``now`` and the first time after it, of the requests for each service."""
    times = opened.select(*SERVICE_KEY, F.array("decided_at", "ended_at").alias("times"))
    if on_record is not None:
        named = on_record.withColumnRenamed("service_name", "to_service_name")
        times = times.unionByName(named.select(*SERVICE_KEY, F.array("requested_at", "ended_at").alias("times")))
    request_times = times.select(*SERVICE_KEY, F.explode("times").alias("time"))
    is_before = F.col("time") <= F.lit(now)
    return request_times.groupBy(*SERVICE_KEY).agg(
        F.max(F.when(is_before, F.col("time"))).alias("last_before"),
        F.min(F.when(~is_before, F.col("time"))).alias("first_after"),
    )
