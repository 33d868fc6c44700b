"""Choose which delayed messages an incremental run decides again.

A delayed message keeps its decision as long as nothing changes that can affect it. Then it is not decided again,
and gets no new row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.delta.counted_runs import has_other_settings, release
from routing.delta.job_outputs import LastRun
from routing.messages.due_times import SERVICE_KEY
from routing.messages.pending import is_withheld
from routing.messages.setting_frames import digest_frames
from routing.messages.validate import InputTables
from routing.runs.increment import Retries, StoredOutputs
from routing.runs.message_changes import ArrivedMessages, DialogChanges
from routing.tables.cached_frames import BroadcastBudget, look_up
from routing.tables.spark_forms import conversation_id
from routing.tables.table_columns import TableColumns

_REQUESTS = "route_requests"


def digest_inputs(tables: InputTables) -> dict[str, str]:
    """Return a digest of each table of the configuration, independent of the order of its rows.

    It is a SHA-256, unless the configuration is too large for the driver.
    """
    if tables.settings is None:
        return digest_frames(tables.frames)
    return {key: _digest_rows(columns) for key, columns in tables.settings.items()}


def has_validated(last: LastRun | None, digests: Mapping[str, str]) -> bool:
    """Return whether the last run was of this release, and validated the same configuration without a fault."""
    if last is None or last.quarantined_instances or last.release != release():
        return False
    return bool(digests) and last.input_digests == digests


def _digest_rows(columns: TableColumns) -> str:
    rows = sorted(map(repr, columns.rows(*columns.values)))
    return hashlib.sha256(
        "\n".join((repr([*columns.values]), *rows)).encode("utf-8", "backslashreplace")
    ).hexdigest()


def choose(
    arrived: ArrivedMessages,
    digests: Mapping[str, str],
    now: datetime,
    stored: StoredOutputs,
    dialogs: DialogChanges,
) -> Retries:
    """Choose the delayed messages that are decided again at ``now``.

    All are chosen if ``now`` is before the last run, or if a change since then can reach all of them (`_compare`).
    """
    inputs, last, waiting = stored.inputs, stored.last, arrived.pending
    if last is None:
        return Retries(None, 0)
    changes = _compare(last, stored, digests, now, dialogs)
    if waiting is None:
        return Retries(None, 0, changes.is_none)
    if changes.reaches_all:
        return Retries(waiting, arrived.pending_count)
    any_due = last.next_due_at is not None and last.next_due_at <= now
    if changes.is_none and arrived.count == 0 and not any_due and "resolved_routes" not in inputs.start.thinned:
        return Retries(None, 0, inputs_are_same=True)
    with inputs.clock.stage("pending"):
        if changes.conversations is None and _count_reachable(waiting, changes, now) == 0:
            return Retries(None, 0, changes.is_none)
        new = None if arrived.count == 0 else arrived.messages
        selected = _select(waiting, new, changes, now, stored.broadcasts)
        chosen, count = stored.frame_cache.keep_counted(selected, arrived.pending_count)
    return Retries(chosen if count else None, count, changes.is_none)


@dataclass(frozen=True)
class _InputChanges:
    """The changes since the last run.

    With ``reaches_all``, any delayed message may get another decision. With ``reaches_asking``, any message that
    may ask for a route may get one. ``conversations`` has the conversations whose messages may get one.
    """

    reaches_all: bool
    reaches_asking: bool
    conversations: DataFrame | None = None

    @property
    def is_none(self) -> bool:
        """Return whether the last run read the same inputs, apart from the messages."""
        return not (self.reaches_all or self.reaches_asking or self.conversations is not None)


def _compare(
    last: LastRun,
    stored: StoredOutputs,
    digests: Mapping[str, str],
    now: datetime,
    dialogs: DialogChanges,
) -> _InputChanges:
    inputs, before = stored.inputs, last.input_digests or {}
    keys = {*before, *digests} - {_REQUESTS}
    reaches_all = (
        "pending_messages" not in last.output_versions
        or "pending_messages" in inputs.outputs.lacking
        or last.now is None
        or now < last.now
        or any(before.get(key) != digests.get(key) for key in keys)
        or has_other_settings(last, inputs.config)
        or dialogs.are_unknown
    )
    opened = "new_route_requests"
    reaches_asking = before.get(_REQUESTS) != digests.get(_REQUESTS) or (
        stored.versions.get(opened) != last.output_versions.get(opened)
    )
    return _InputChanges(reaches_all, reaches_asking, dialogs.conversations)


def _count_reachable(pending: DataFrame, changes: _InputChanges, now: datetime) -> int:
    """Count the rows that are due or may ask for a route. Only narrow columns are read."""
    return int(pending.agg(F.count_if(_is_due(changes, now) | F.col("may_ask"))).collect()[0][0])


def _is_due(changes: _InputChanges, now: datetime) -> Column:
    """Return whether a row is due by now, or has lost its last row in ``resolved_routes``.

    If the inputs are the same, so are the instances in quarantine, and their messages wait. The result is never
    null.
    """
    is_due = F.coalesce(F.col("due_at") <= F.lit(now), F.lit(False)) | F.col("decision_digest").isNull()
    return F.coalesce(F.when(is_withheld(), F.lit(not changes.is_none)), is_due)


def _select(
    pending: DataFrame,
    new: DataFrame | None,
    changes: _InputChanges,
    now: datetime,
    broadcasts: BroadcastBudget,
) -> DataFrame:
    """Select the rows that are due or reached, and rows that may ask for the same route as another message now.

    The other message is new or also selected, for the same service of the same instance.
    """
    is_reached = F.lit(False)
    if changes.conversations is not None:
        reached = changes.conversations.where(F.col("id").isNotNull()).withColumn("is_reached", F.lit(True))
        dialogs = broadcasts.join_side("the conversations of changed dialogs", reached)
        same = conversation_id(F.col("conversation_id")) == F.col("id")
        # Each conversation has one row in dialogs, so the join keeps the number of rows.
        pending = pending.join(dialogs.with_hint(), same, how="left").drop("id")
        is_reached = F.col("is_reached").isNotNull()
    is_due = _is_due(changes, now) | is_reached
    pending = pending.where(is_due | F.col("may_ask"))
    if changes.reaches_asking:
        return pending.drop("is_reached")
    services = pending.where(is_due).select(*SERVICE_KEY)
    if new is not None:
        services = services.unionByName(new.select(*SERVICE_KEY))
    named = services.where(F.col("instance_name").isNotNull() & F.col("to_service_name").isNotNull()).distinct()
    side = broadcasts.join_side("the services of new messages", named.withColumn("is_asked", F.lit(True)))
    # Each service has one row in side, so the join keeps the number of rows.
    marked = look_up(pending, side, SERVICE_KEY)
    is_asked = F.col("may_ask") & F.col("is_asked").isNotNull()
    return marked.where(is_due | F.coalesce(is_asked, F.lit(False))).drop("is_asked", "is_reached")
