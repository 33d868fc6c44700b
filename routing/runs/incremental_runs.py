"""Decide new and delayed messages and add them to the outputs, or decide those of a time window again.

A run over a time window decides each message as of its own time, and replaces its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.config import ConfigError, ResolveSettings
from routing.delta import ledger
from routing.delta.job_outputs import LastRun
from routing.errors import InputError
from routing.messages import openers, pending, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.lookups import build_lookups
from routing.messages.route_plan import MessageSource, RoutePlan
from routing.plan.checked_inputs import CheckedTables
from routing.rules.timeline import TimeRange, as_utc
from routing.runs import increment, retries
from routing.runs.message_changes import (
    ArrivedMessages,
    TakenOut,
    find_changes,
    find_dialog_changes,
    take_out_deleted,
)
from routing.runs.run_tables import changing_outputs, commit_outputs, conform_messages, read_inputs
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

    The first run of a job creates every table. Later runs append only to tables for which they may have rows. In
    pending_messages they replace the rows that differ.
    """
    outputs = changing_outputs(inputs)
    work = _find_work(inputs, outputs, frame_cache, now)
    last = inputs.start.last
    if work.checked is None:
        return work.idle_result() if last is None else work.idle_result_as(last)
    if work.is_idle:
        waiting = count_pending(inputs, work.stored.versions[_PENDING]) if work.arrived.pending_count else None
        withheld = 0 if waiting is None else waiting.quarantined
        return with_quarantine(inputs, work.idle_result(waiting), work.checked.quarantine, withheld)
    return _Outputs.of(work, outputs, work.checked, now).commit_all()


def run_window(inputs: RunInputs, frame_cache: FrameCache, now: datetime) -> RunResult:
    """Decide the messages of the window again, each as of its own time, and replace their rows.

    Messages after the last run that counts are left out. ``now`` is the time of the run. Raises InputError.
    """
    outputs = changing_outputs(inputs)
    if inputs.start.last is None:
        raise InputError.nothing_recorded(str(inputs.config.output["runs"]))
    window = _window_of(inputs.config.resolve)
    work = _find_work(inputs, outputs, frame_cache, now, window)
    if work.checked is None:
        raise TypeError("a run over a window checks its inputs")
    return _Outputs.of(work, outputs, work.checked, now).replace_all(window)


def _window_of(resolve: ResolveSettings) -> TimeRange:
    """Return the window of a configuration whose mode is ``window``."""
    if resolve.window_from is None or resolve.window_to is None:
        raise ConfigError.half_a_window()
    return TimeRange("enqueue_time", as_utc(resolve.window_from), as_utc(resolve.window_to))


def _is_within(window: TimeRange) -> Column:
    """Return whether a row is of a message in the window. The result is never null."""
    time = F.col(window.column)
    return F.coalesce((time >= F.lit(window.first)) & (time < F.lit(window.end)), F.lit(False))


@dataclass(frozen=True)
class _Work:
    """The messages and inputs that a run has found.

    ``stored`` are the outputs of earlier runs. ``search`` finds duplicates of new messages. ``checked`` is None if
    there is nothing to do, and the last run has validated the same inputs.
    """

    stored: increment.StoredOutputs
    arrived: ArrivedMessages
    search: increment.SearchForDoubles | None
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
            self.stored.versions,
            rows_read=pending_count,
            rows_unchanged=pending_count,
            next_due_at=None if waiting is None else waiting.next_due_at,
            input_digests=self.digests,
            rows_erased=self.taken_out.erased,
        )

    def idle_result_as(self, last: LastRun) -> RunResult:
        """Return the counts of a run in which nothing has changed since the last one."""
        return replace(
            self.idle_result(),
            next_due_at=last.next_due_at,
            rows_quarantined=last.rows_quarantined,
            quarantined_instances=last.quarantined_instances,
        )


def _find_work(
    inputs: RunInputs,
    outputs: ledger.DeltaTables,
    frame_cache: FrameCache,
    now: datetime,
    window: TimeRange | None = None,
) -> _Work:
    """Find new, deleted and delayed messages, take deleted ones out, and validate the other inputs.

    With ``window``, the messages are those of the window, and none are retried.
    """
    last, clock = inputs.start.last, inputs.clock
    messages = ledger.check_versions(inputs.inputs["messages"])
    if last is not None:
        ledger.check_succession(inputs.config, last)
        if window is not None and not ledger.is_same_input(inputs.opener, last, "messages", messages):
            raise InputError.full_run_needed(
                f"{str(messages.location)!r} was made anew or put back since the last run"
            )
    versions = {} if last is None else {key: inputs.start.versions[key] for key in last.output_versions}
    with clock.stage("read"):
        reading = frame_cache.start(outputs.spark, partial(read_inputs, inputs, frame_cache))
        changes = None if window is None else _read_window(inputs, window)
    changes = changes or find_changes(inputs, messages, frame_cache)
    with clock.stage("read"):
        tables = reading()
    digests = retries.digest_inputs(tables)
    check = partial(
        validate.check,
        tables,
        quarantines=inputs.quarantines,
        are_valid=retries.has_validated(last, digests),
    )
    checked = None
    if changes.deleted is not None:
        # Nothing is written before all inputs are valid.
        with clock.stage("validate"):
            checked = check()
    taken_out = take_out_deleted(inputs, outputs, changes, versions)
    replaced = None if window is None else _is_within(window)
    stored = increment.StoredOutputs(inputs, {**versions, **taken_out.versions}, frame_cache, replaced)
    arrived = increment.find_arrived(messages, changes, stored)
    search = increment.start_search(arrived, stored)
    dialog_changes = find_dialog_changes(inputs, frame_cache)
    tried = increment.Retries(None, 0)
    if window is None:
        tried = retries.choose(arrived, digests, now, stored, dialog_changes)
    work = _Work(stored, arrived, search, tried, checked, digests, taken_out)
    if work.is_idle and (tried.inputs_are_same or checked is not None):
        note_quarantine(inputs, checked)
        return work
    with clock.stage("validate"):
        reduced = increment.reduce_dialogs(tables, arrived, tried, dialog_changes, stored)
        if checked is None or reduced is not None:
            suspects = dialog_changes.suspects(last)
            if checked is not None:
                # All dialogs were just checked. Faulty ones need not be among those of this run's messages.
                suspects = validate.Suspects.ALL if checked.quarantine.instances else validate.Suspects.NONE
            checked = check(reduced=reduced, suspects=suspects)
    note_quarantine(inputs, checked)
    return replace(work, checked=checked)


def _read_window(inputs: RunInputs, window: TimeRange) -> ArrivedMessages:
    """Return the messages of a window, in any number."""
    messages = inputs.inputs["messages"].read(inputs.outputs.spark)
    return ArrivedMessages(conform_messages(inputs, messages).where(_is_within(window)), None)


def _decide(work: _Work, checked: CheckedTables, now: datetime) -> tuple[increment.NewMessages, RoutePlan]:
    """Return the messages of a run and the plan that decides them."""
    inputs = work.stored.inputs
    clock = inputs.clock
    with clock.stage("lookups"):
        lookups = build_lookups(inputs.outputs.spark, checked, work.stored.frame_cache, inputs.context)
    step = increment.read(lookups, work.arrived, work.search, work.retries.rows, work.stored, now)
    unended = checked.count_unended_requests() if step.on_record is None else increment.count_unended(step)
    note_unended_requests(inputs.notes, unended)
    asking = lookups if step.on_record is None else replace(lookups, requests=step.requests, request_count=None)
    return step, compile_messages(MessageSource(step.messages, asking, inputs.context), are_held=True)


@dataclass
class _Outputs:
    """Commits the outputs of a run, and counts its rows after they are written.

    ``versions`` are those of the outputs, and grow with each commit.
    """

    work: _Work
    tables: ledger.DeltaTables
    step: increment.NewMessages
    plan: RoutePlan
    now: datetime
    versions: dict[str, int]

    @classmethod
    def of(cls, work: _Work, tables: ledger.DeltaTables, checked: CheckedTables, now: datetime) -> _Outputs:
        """Decide the messages of a run."""
        return cls(work, tables, *_decide(work, checked, now), now, dict(work.stored.versions))

    @property
    def inputs(self) -> RunInputs:
        """The inputs of the run."""
        return self.work.stored.inputs

    def commit_all(self) -> RunResult:
        """Commit resolved routes, requests and delayed messages at the same time, then rejected messages."""
        inputs, step, plan, versions, clock = self.inputs, self.step, self.plan, self.versions, self.inputs.clock
        is_first = inputs.start.last is None
        with clock.stage("write"):
            rows: dict[str, DataFrame | None] = {"rejected_messages": None} if is_first else {}
            if plan.requests is not None or is_first:
                rows["new_route_requests"] = self._requests()
            rows["resolved_routes"] = results.resolved_routes(plan, has_attempts=True)
            versions |= commit_outputs(inputs, rows, adds=not is_first, others=self._pending_write())
        with clock.stage("counts"):
            groups = count_resolved(inputs, versions)
            waiting = count_pending(inputs, versions[_PENDING])
            check_pending(waiting, groups)
        left_alone = self.work.arrived.pending_count - self.work.retries.count
        decided = groups.total() + waiting.unchanged - left_alone - step.withheld_count
        if step.duplicate_count or decided < plan.counts.rows_read:
            with clock.stage("rejected"):
                rows["rejected_messages"] = self._rejected()
                versions |= commit_outputs(inputs, {"rejected_messages": rows["rejected_messages"]}, adds=True)
        with clock.stage("counts") as tally:
            done = self._count(groups, rows, waiting.unchanged, left_alone)
            tally.rows = done.rows_resolved
        return self._with_waiting(done, waiting)

    def replace_all(self, window: TimeRange) -> RunResult:
        """Commit requests, and replace the rows of the window in the other outputs."""
        inputs, tables, versions, clock = self.inputs, self.tables, self.versions, self.inputs.clock
        with clock.stage("write"):
            waiting_rows = increment.still_pending(self.plan, self.step, self.now)
            replaced = {
                "resolved_routes": results.resolved_routes(self.plan, has_attempts=True),
                "rejected_messages": self._rejected(),
                _PENDING: waiting_rows,
            }
            others: dict[str, Callable[[], object]] = {
                key: partial(tables.replace, key, rows, inputs.start.run, window) for key, rows in replaced.items()
            }
            if self._makes_pending():
                whole = _with_others(waiting_rows, self.work.arrived.pending, _is_within(window))
                others[_PENDING] = partial(tables.put, _PENDING, whole, inputs.start.run, adds=False)
            requests = {} if self.plan.requests is None else {"new_route_requests": self._requests()}
            versions |= commit_outputs(inputs, requests, adds=True, others=others)
        with clock.stage("counts") as tally:
            groups = count_resolved(inputs, versions)
            waiting = count_pending(inputs, versions[_PENDING])
            check_pending(waiting, groups)
            done = self._count(groups, ("rejected_messages",), waiting.withheld)
            tally.rows = done.rows_resolved
        return self._with_waiting(done, waiting)

    def _requests(self) -> DataFrame:
        requests = openers.new_route_requests(self.plan)
        return increment.not_on_record(requests, self.step, self.plan.source.broadcasts)

    def _rejected(self) -> DataFrame:
        rejected = results.rejected_messages(self.plan)
        return increment.combine_rejected(
            rejected, self.step, self.inputs.options.run_id, self.plan.source.broadcasts
        )

    def _pending_write(self) -> dict[str, Callable[[], object]]:
        """Return the write to ``pending_messages`` if its rows may change. A new table gets all rows."""
        step, plan, commit_mark = self.step, self.plan, self.inputs.start.run
        is_new = self._makes_pending()
        if is_new or (step.tried_again is None and (step.withheld is not None or plan.uses.delays)):
            rows = increment.still_pending(plan, step, self.now)
            return {_PENDING: partial(self.tables.put, _PENDING, rows, commit_mark, adds=not is_new)}
        if step.tried_again is not None:
            rows = increment.changed_pending(plan, step, self.now)
            return {_PENDING: partial(self.tables.merge, _PENDING, rows, commit_mark, pending.KEY)}
        return {}

    def _makes_pending(self) -> bool:
        """Return whether ``pending_messages`` does not exist yet, or is of an older release."""
        return _PENDING not in self.versions or _PENDING in self.tables.lacking

    def _count(self, groups: Groups, written: Iterable[str], unchanged: int, left_alone: int = 0) -> RunResult:
        """Return the counts of the run. ``left_alone`` counts delayed messages that were not decided again."""
        step = self.step
        read = self.plan.counts.rows_read + step.duplicate_count + step.withheld_count + left_alone
        return count_rows(self.inputs, self.versions, groups, written, read, unchanged)

    def _with_waiting(self, done: RunResult, waiting: PendingCounts) -> RunResult:
        """Add the facts on delayed messages and messages in quarantine to the counts."""
        work, quarantine = self.work, self.plan.source.lookups.checked.quarantine
        done = replace(
            done, next_due_at=waiting.next_due_at, input_digests=work.digests, rows_erased=work.taken_out.erased
        )
        return with_quarantine(self.inputs, done, quarantine, waiting.quarantined)


def _with_others(waiting: DataFrame, delayed: DataFrame | None, inside: Column) -> DataFrame:
    """Add the delayed messages outside the window, which after a full run are not in the table yet."""
    if delayed is None:
        return waiting
    return waiting.unionByName(delayed.where(~inside).select(*waiting.columns))
