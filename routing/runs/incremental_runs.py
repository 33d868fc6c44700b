"""Decide new messages, and delayed messages whose decision may have changed, and add them to the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pyspark.sql import DataFrame

from routing.delta import ledger, protocol
from routing.delta.job_outputs import LastRun
from routing.messages import openers, pending, results, validate
from routing.messages.compiling import compile_messages, join_lookups
from routing.messages.lookups import build_lookups
from routing.messages.route_plan import RoutePlan
from routing.plan.checked_inputs import CheckedTables
from routing.runs import increment, retries
from routing.runs.message_changes import TakenOut, find_changes, find_dialog_changes, take_out_deleted
from routing.runs.run_tables import changing_outputs, commit_outputs, read_inputs
from routing.runs.run_work import (
    Groups,
    PendingCounts,
    RunInputs,
    RunResult,
    check_pending,
    count_pending,
    count_resolved,
    count_rows,
    note_quarantine,
    note_unended_requests,
    with_quarantine,
)
from routing.tables.cached_frames import FrameCache

_PENDING = "pending_messages"


def run_incremental(inputs: RunInputs, frame_cache: FrameCache, now: datetime) -> RunResult:
    """Decide new messages, and delayed ones as of ``now`` if an input has changed or they are due.

    The first run of a job creates every table. Later runs append only to tables for which they have rows. In
    pending_messages they replace the rows that differ.
    """
    outputs = changing_outputs(inputs)
    work = _find_work(inputs, outputs, frame_cache, now)
    last = inputs.start.last
    if work.checked is None:
        return work.idle_result() if last is None else work.idle_result_as(last)
    if work.is_idle:
        waiting = count_pending(inputs, work.versions[_PENDING]) if work.arrived.pending_count else None
        withheld = 0 if waiting is None else waiting.quarantined
        return with_quarantine(inputs, work.idle_result(waiting), work.checked.quarantine, withheld)
    step, plan = decide(inputs, work, work.checked, now)
    return _Outputs(inputs, outputs, step, plan, now, work.versions).commit_all(work)


@dataclass(frozen=True)
class Work:
    """The messages and inputs that an incremental run has found.

    ``versions`` are those of the outputs. ``stored`` are the outputs of earlier runs. ``checked`` is None if there
    is nothing to do, and the last run has validated the same inputs.
    """

    versions: dict[str, int]
    stored: increment.StoredOutputs
    arrived: increment.Arrived
    retries: increment.Retries
    checked: CheckedTables | None
    digests: Mapping[str, str]
    taken_out: TakenOut

    @property
    def is_idle(self) -> bool:
        """Whether no message is to be decided. The first run is never idle, because it creates its tables."""
        return self.stored.last is not None and self.arrived.count == 0 and self.retries.count == 0

    def idle_result(self, waiting: PendingCounts | None = None) -> RunResult:
        """Return the counts of a run in which no message is decided."""
        pending_count = self.arrived.pending_count
        return RunResult(
            self.versions,
            read=pending_count,
            unchanged=pending_count,
            next_due_at=None if waiting is None else waiting.next_due_at,
            digests=self.digests,
            erased=self.taken_out.erased,
        )

    def idle_result_as(self, last: LastRun) -> RunResult:
        """Return the counts of a run in which nothing has changed since the last one."""
        return replace(
            self.idle_result(),
            next_due_at=last.next_due_at,
            quarantined=last.rows_quarantined,
            quarantined_instances=last.quarantined_instances,
        )


def _find_work(inputs: RunInputs, outputs: ledger.DeltaTables, frame_cache: FrameCache, now: datetime) -> Work:
    """Find new, deleted and delayed messages, take deleted ones out, and validate the other inputs."""
    last, clock = inputs.start.last, inputs.clock
    messages = ledger.check_versions(inputs.inputs["messages"])
    if last is not None:
        ledger.check_succession(inputs.config, last)
    versions = {} if last is None else {key: inputs.start.versions[key] for key in last.output_versions}
    with clock.stage("read"):
        tables = read_inputs(inputs, frame_cache)
    digests = retries.digest_inputs(tables)
    check = partial(
        validate.check,
        tables,
        quarantines=inputs.quarantines,
        are_valid=retries.has_validated(last, digests),
    )
    changes = find_changes(inputs, messages, frame_cache)
    checked = None
    if changes.deleted is not None:
        # Nothing is written before all inputs are valid.
        with clock.stage("validate"):
            checked = check()
    taken_out = take_out_deleted(inputs, outputs, changes, versions)
    versions |= taken_out.versions
    stored = increment.StoredOutputs(
        inputs.config, last, dict(versions), inputs.opener, frame_cache, outputs.lacking
    )
    arrived = increment.find_arrived(messages, changes, stored, inputs.start, inputs.context)
    dialog_changes = find_dialog_changes(inputs, frame_cache)
    tried = retries.choose(inputs, arrived, digests, now, stored, dialog_changes)
    work = Work(versions, stored, arrived, tried, checked, digests, taken_out)
    if work.is_idle and (tried.inputs_are_same or checked is not None):
        note_quarantine(inputs, checked)
        return work
    with clock.stage("validate"):
        reduced = increment.reduce_dialogs(tables, arrived, tried, dialog_changes, stored, inputs.notes)
        if checked is None or reduced is not None:
            suspects = dialog_changes.suspects(last)
            if checked is not None:
                # All dialogs were just checked. Faulty ones need not be among those of this run's messages.
                suspects = validate.Suspects.ALL if checked.quarantine.instances else validate.Suspects.NONE
            checked = check(reduced=reduced, suspects=suspects)
    note_quarantine(inputs, checked)
    return replace(work, checked=checked)


def decide(
    inputs: RunInputs, work: Work, checked: CheckedTables, now: datetime
) -> tuple[increment.NewMessages, RoutePlan]:
    """Return the messages of a run and the plan that decides them."""
    clock = inputs.clock
    with clock.stage("lookups"):
        lookups = build_lookups(inputs.outputs.spark, checked, work.stored.frame_cache, inputs.context)
    step = increment.read(lookups, work.arrived, work.retries.rows, work.stored, now, inputs.context)
    unended = checked.count_unended_requests() if step.on_record is None else increment.count_unended(step)
    note_unended_requests(inputs.notes, unended)
    asking = lookups if step.on_record is None else replace(lookups, requests=step.requests, request_count=None)
    with clock.stage("lookups"):
        source = join_lookups(step.messages, asking, inputs.context)
    return step, compile_messages(source, are_held=True)


@dataclass
class _Outputs:
    """Commits the outputs of an incremental run, and counts its rows after they are written.

    ``versions`` are those of the outputs, and grow with each commit.
    """

    inputs: RunInputs
    tables: ledger.DeltaTables
    step: increment.NewMessages
    plan: RoutePlan
    now: datetime
    versions: dict[str, int]

    def commit_all(self, work: Work) -> RunResult:
        """Commit resolved routes and requests, then the delayed messages, then rejected ones."""
        inputs, step, plan, versions, clock = self.inputs, self.step, self.plan, self.versions, self.inputs.clock
        is_first = inputs.start.last is None
        broadcasts = plan.source.broadcasts
        with clock.stage("write"):
            rows: dict[str, DataFrame | None] = {"rejected_messages": None} if is_first else {}
            if plan.requests is not None or is_first:
                requests = openers.new_route_requests(plan)
                rows["new_route_requests"] = increment.not_on_record(requests, step, broadcasts)
            rows["resolved_routes"] = results.resolved_routes(plan, has_attempts=True)
            versions |= commit_outputs(inputs, rows, adds=not is_first)
        with clock.stage("counts"):
            groups = count_resolved(inputs, versions)
        waiting = self._commit_pending(groups)
        left_alone = work.arrived.pending_count - work.retries.count
        decided = groups.total() + waiting.unchanged - left_alone - step.withheld_count
        if step.duplicate_count or decided < plan.counts.rows_read:
            with clock.stage("rejected"):
                rejected = results.rejected_messages(plan)
                rows["rejected_messages"] = increment.combine_rejected(
                    rejected, step, inputs.options.run_id, broadcasts
                )
                versions |= commit_outputs(inputs, {"rejected_messages": rows["rejected_messages"]}, adds=True)
        with clock.stage("counts") as tally:
            read = plan.counts.rows_read + step.duplicate_count + left_alone + step.withheld_count
            done = count_rows(inputs, versions, groups, rows, read, waiting.unchanged)
            tally.rows = done.resolved
        done = replace(done, next_due_at=waiting.next_due_at, digests=work.digests, erased=work.taken_out.erased)
        return with_quarantine(inputs, done, plan.source.lookups.checked.quarantine, waiting.quarantined)

    def _commit_pending(self, groups: Groups) -> PendingCounts:
        """Commit the changes in ``pending_messages``, and count its rows. A first table is written completely."""
        inputs, step, plan, versions = self.inputs, self.step, self.plan, self.versions
        is_first = _PENDING not in versions or _PENDING in self.tables.lacking
        any_waits = step.withheld is not None or any(
            pending.tries_again(group.outcome, group.database) for group in groups
        )
        if is_first or (any_waits and step.tried_again is None):
            with inputs.clock.stage(_PENDING):
                rows = increment.still_pending(plan, step, self.now)
                versions |= commit_outputs(inputs, {_PENDING: rows}, adds=not is_first)
        elif step.tried_again is not None or any_waits:
            with inputs.clock.stage(_PENDING):
                changed = increment.changed_pending(plan, step, self.now)
                versions[_PENDING] = protocol.merge(self.tables, inputs.start, _PENDING, changed, pending.KEY)
        counts = count_pending(inputs, versions[_PENDING])
        check_pending(counts, groups)
        return counts
