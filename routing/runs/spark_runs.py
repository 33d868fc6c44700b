"""Run a job by Spark: in full, incrementally or over a time window."""

from __future__ import annotations

from routing.messages import openers, results, validate
from routing.messages.compiling import compile_messages, open_source
from routing.plan.checked_inputs import CheckedTables
from routing.runs.incremental_runs import run_incremental, run_window
from routing.runs.run_tables import commit_outputs, conform_messages, read_inputs, telling_what_may_change
from routing.runs.run_work import (
    RunInputs,
    RunResult,
    count_quarantined,
    count_resolved,
    count_rows,
    note_quarantine,
    note_unended_requests,
)
from routing.tables.cached_frames import FRAME_LIMITS, FrameCache, FrameLimits


def resolve(inputs: RunInputs, limits: FrameLimits = FRAME_LIMITS) -> RunResult:
    """Resolve the messages of a run's mode: all, new and delayed ones, or those of a time window.

    Raises InputError, OutputError, then StorageError and InternalError.
    """
    with FrameCache(limits) as frame_cache, telling_what_may_change(inputs.inputs):
        if inputs.moment is None:
            return _run_full(inputs, frame_cache)
        if inputs.config.resolve.mode == "window":
            return run_window(inputs, frame_cache, inputs.moment)
        return run_incremental(inputs, frame_cache, inputs.moment)


def _check(inputs: RunInputs, frame_cache: FrameCache) -> CheckedTables:
    """Read and check the inputs without the messages."""
    with inputs.clock.stage("read"):
        tables = read_inputs(inputs, frame_cache)
    with inputs.clock.stage("validate"):
        checked = validate.check(tables, quarantines=inputs.quarantines)
    note_quarantine(inputs, checked)
    return checked


# A full run, from top to bottom: every message is resolved, and the outputs are replaced.


def _run_full(inputs: RunInputs, frame_cache: FrameCache) -> RunResult:
    """Read, check, compile, commit and count."""
    clock, checked = inputs.clock, _check(inputs, frame_cache)
    note_unended_requests(inputs.notes, checked.count_unended_requests())
    with clock.stage("read"):
        messages = conform_messages(inputs, inputs.inputs["messages"].read(inputs.outputs.spark))
    source = open_source(messages, checked, inputs.context, frame_cache)
    plan = compile_messages(source)
    with clock.stage("write"):
        outputs = {
            "new_route_requests": None if plan.requests is None else openers.new_route_requests(plan),
            "rejected_messages": None,
            "resolved_routes": results.resolved_routes(plan),
        }
        versions = commit_outputs(inputs, outputs, adds=False)
    with clock.stage("counts"):
        groups = count_resolved(inputs, versions)
    if groups.total() < plan.counts.rows_read:
        with clock.stage("rejected"):
            rejected = {"rejected_messages": results.rejected_messages(plan)}
            versions |= commit_outputs(inputs, rejected, adds=True)
    with clock.stage("counts") as tally:
        done = count_rows(inputs, versions, groups, outputs, plan.counts.rows_read)
        tally.rows = done.rows_resolved
        return count_quarantined(inputs, done, checked.quarantine)
