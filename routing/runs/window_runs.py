"""Run a job over a time window: decide its messages again, and replace their rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.config import ConfigError, ResolveSettings
from routing.delta import ledger, protocol
from routing.errors import InputError
from routing.messages import openers, results, validate
from routing.rules.timeline import TimeRange, as_utc
from routing.runs import increment, retries
from routing.runs.incremental_runs import Work, decide
from routing.runs.message_changes import NewAndDeleted, TakenOut, find_dialog_changes
from routing.runs.run_tables import changing_outputs, commit_outputs, conform_messages, read_inputs
from routing.runs.run_work import (
    RunInputs,
    RunResult,
    check_pending,
    count_pending,
    count_resolved,
    count_rows,
    note_quarantine,
    with_quarantine,
)
from routing.tables.cached_frames import FrameCache

_PENDING = "pending_messages"


def window_of(resolve: ResolveSettings) -> TimeRange:
    """Return the window of a configuration whose mode is ``window``."""
    if resolve.window_from is None or resolve.window_to is None:
        raise ConfigError.half_a_window()
    return TimeRange("enqueue_time", as_utc(resolve.window_from), as_utc(resolve.window_to))


def is_within(window: TimeRange) -> Column:
    """Return whether a row is of a message in the window. The result is never null."""
    time = F.col(window.column)
    return F.coalesce((time >= F.lit(window.first)) & (time < F.lit(window.end)), F.lit(False))


def run_window(inputs: RunInputs, frame_cache: FrameCache, now: datetime) -> RunResult:
    """Decide the messages of the window again, each as of its own time, and replace their rows.

    Messages after the last run that counts are left out. ``now`` is the time of the run. Raises InputError.
    """
    last, clock, outputs = inputs.start.last, inputs.clock, changing_outputs(inputs)
    if last is None:
        raise InputError.nothing_recorded(str(inputs.config.output["runs"]))
    messages = ledger.check_versions(inputs.inputs["messages"])
    ledger.check_succession(inputs.config, last)
    if not ledger.is_same_input(inputs.opener, last, "messages", messages):
        raise InputError.full_run_needed(
            f"{str(messages.location)!r} was made anew or put back since the last run"
        )
    # Columns can be created only after the session has started.
    spark, window = outputs.spark, window_of(inputs.config.resolve)
    inside = is_within(window)
    versions = {key: inputs.start.versions[key] for key in last.output_versions}
    with clock.stage("read"):
        tables = read_inputs(inputs, frame_cache)
        rows = conform_messages(inputs, messages.read(spark)).where(inside)
    stored = increment.StoredOutputs(
        inputs.config, last, dict(versions), inputs.opener, frame_cache, outputs.lacking, replaced=inside
    )
    arrived = increment.find_arrived(messages, NewAndDeleted(rows, None), stored, inputs.start, inputs.context)
    dialog_changes = find_dialog_changes(inputs, frame_cache)
    digests = retries.digest_inputs(tables)
    with clock.stage("validate"):
        tried = increment.Retries(None, 0)
        reduced = increment.reduce_dialogs(tables, arrived, tried, dialog_changes, stored, inputs.notes)
        suspects = dialog_changes.suspects(last)
        checked = validate.check(
            tables,
            reduced=reduced,
            suspects=suspects,
            quarantines=inputs.quarantines,
            are_valid=retries.has_validated(last, digests),
        )
    note_quarantine(inputs, checked)
    work = Work(versions, stored, arrived, tried, checked, digests, TakenOut())
    step, plan = decide(inputs, work, checked, now)
    with clock.stage("write"):
        if plan.requests is not None:
            requests = increment.not_on_record(openers.new_route_requests(plan), step, plan.source.broadcasts)
            versions |= commit_outputs(inputs, {"new_route_requests": requests}, adds=True)
        rejected = increment.combine_rejected(
            results.rejected_messages(plan), step, inputs.options.run_id, plan.source.broadcasts
        )
        resolved = results.resolved_routes(plan, has_attempts=True)
        for key, written in (("resolved_routes", resolved), ("rejected_messages", rejected)):
            versions[key] = protocol.replace_within(outputs, inputs.start, key, written, window)
    with clock.stage(_PENDING):
        waiting = increment.still_pending(plan, step, now)
        if _PENDING in versions and _PENDING not in outputs.lacking:
            versions[_PENDING] = protocol.replace_within(outputs, inputs.start, _PENDING, waiting, window)
        else:
            whole = _with_others(waiting, arrived.pending, inside)
            versions |= commit_outputs(inputs, {_PENDING: whole}, adds=False)
    with clock.stage("counts") as tally:
        groups = count_resolved(inputs, versions)
        counts = count_pending(inputs, versions[_PENDING])
        check_pending(counts, groups)
        read = plan.counts.rows_read + step.duplicate_count + step.withheld_count
        done = count_rows(inputs, versions, groups, ("rejected_messages",), read, counts.withheld)
        tally.rows = done.resolved
    done = replace(done, next_due_at=counts.next_due_at, digests=digests)
    return with_quarantine(inputs, done, checked.quarantine, counts.quarantined)


def _with_others(waiting: DataFrame, pending: DataFrame | None, inside: Column) -> DataFrame:
    """Add the delayed messages outside the window, which after a full run are not in the table yet."""
    if pending is None:
        return waiting
    return waiting.unionByName(pending.where(~inside).select(*waiting.columns))
