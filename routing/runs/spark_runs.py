"""Run a job by Spark, in full or by increment: inputs at one version each, and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame

from routing.delta import ledger, protocol, spark_tables
from routing.delta.opening import TableOpener
from routing.errors import ContractError, RoutingError, StorageError, first_sentence, quote
from routing.messages import openers, pending, results, validate
from routing.messages.compiling import compile_messages, find_keys, join_lookups, open_source
from routing.messages.lookups import look_into
from routing.messages.route_plan import RoutePlan
from routing.plan.checked_inputs import CheckedInputs
from routing.runs import increment, retries
from routing.runs.message_changes import find_changes, take_out_deleted
from routing.runs.run_work import (
    Groups,
    PendingCounts,
    RunInputs,
    RunResult,
    check_pending,
    count_pending,
    count_resolved,
    count_rows,
    note_unended_requests,
)
from routing.schemas import OUTPUTS
from routing.tables import frames
from routing.tables.cached_frames import FRAME_LIMITS, FrameCache, FrameLimits
from routing.tables.spark_forms import conform, no_rows
from routing.tables.table_columns import Table


def open_inputs(
    opener: TableOpener, inputs: Mapping[str, spark_tables.Input], frame_cache: FrameCache
) -> dict[str, Table]:
    """Return the inputs without the messages, each at its version: dialogs as a frame, others as they are opened.

    What has no version is read as it is. Several passes read the dialogs: those are kept then, so that all see the
    same rows as long as the session keeps them; the others are read once.
    """
    tables = dict[str, Table]()
    for key, snapshot in inputs.items():
        if isinstance(snapshot, spark_tables.AsItIs):
            opener.on_note(f"tables.{key}: as it is, at no version")
        if key == "messages":
            continue
        if isinstance(snapshot, spark_tables.AsItIs):
            rows = snapshot.read(opener.spark)
            tables[key] = frame_cache.store(rows) if key == "dialogs" else rows
        elif key == "dialogs":
            tables[key] = snapshot.read(opener.spark)
        else:
            tables[key] = opener.open_at(f"tables.{key}", snapshot.location, snapshot.version)
    return tables


# Several passes read these; what is small is read once.
_READ_AGAIN = ("messages", "dialogs")


@contextmanager
def telling_what_may_change(inputs: Mapping[str, spark_tables.Input]) -> Iterator[None]:
    """Add to what fails within that an input may have changed between two passes, where one has no versions.

    A pass that meets a message which the first one did not see fails (`messages.results`), and so do counts that
    do not add up. Raises StorageError where it was no error of this package.
    """
    loose = {key: inputs[key].location for key in _READ_AGAIN if isinstance(inputs.get(key), spark_tables.AsItIs)}
    if not loose:
        yield
        return
    try:
        yield
    except ContractError:
        raise
    except RoutingError as error:
        raise error.with_hint(_hint(loose)) from error
    except Exception as error:
        doing = " and ".join(f"reading tables.{key}" for key in loose)
        raise StorageError.failed(doing, first_sentence(error)).with_hint(_hint(loose)) from error


def _hint(loose: Mapping[str, object]) -> str:
    named = ", ".join(f"tables.{key} at {quote(location)}" for key, location in loose.items())
    why = "read at no version, and perhaps changed while the run was at work"
    return f"{why}: {named}; copy these to Delta tables"


def resolve(inputs: RunInputs, limits: FrameLimits = FRAME_LIMITS) -> RunResult:
    """Resolve everything, or in incremental mode what is new and delayed; return what was written.

    Raises InputError, OutputError, then StorageError and InternalError.
    """
    with FrameCache(limits) as frame_cache, telling_what_may_change(inputs.inputs):
        if inputs.moment is None:
            return _run_full(inputs, frame_cache)
        return _run_incremental(inputs, frame_cache, inputs.moment)


def _check(inputs: RunInputs, frame_cache: FrameCache) -> CheckedInputs:
    """Read and check the inputs without the messages."""
    with inputs.clock.stage("read"):
        tables = validate.read(open_inputs(inputs.opener, inputs.inputs, frame_cache), frame_cache.limits)
    with inputs.clock.stage("validate"):
        return validate.check(tables)


def _commit(inputs: RunInputs, outputs: Mapping[str, DataFrame | None], *, adds: bool) -> dict[str, int]:
    """Commit rows to tables, to what stands there or in its place; the versions by key.

    None is no rows: a table that has none is left alone then. All at once, for none depends on another, and no
    run counts before its row in ``runs``.
    """
    spark = inputs.outputs.spark

    def commit_one(key: str) -> int:
        rows = outputs[key]
        if rows is None:
            if inputs.is_empty(key):
                return inputs.start.versions[key]
            rows = no_rows(spark, OUTPUTS[key])
        return protocol.commit(inputs.outputs, inputs.start, key, rows, adds=adds)

    return dict(zip(outputs, frames.at_once(spark, commit_one, list(outputs)), strict=True))


# A full run, from top to bottom: every message is resolved, and the outputs are replaced.


def _run_full(inputs: RunInputs, frame_cache: FrameCache) -> RunResult:
    """Read, check, compile, commit, count."""
    clock, checked = inputs.clock, _check(inputs, frame_cache)
    note_unended_requests(inputs.notes, checked.count_unended_requests())
    with clock.stage("read"):
        messages = conform(inputs.inputs["messages"].read(inputs.outputs.spark), "messages")
    source = open_source(messages, checked, inputs.context, frame_cache)
    plan = compile_messages(source, find_keys(source))
    with clock.stage("write"):
        outputs = {
            "new_route_requests": None if plan.requests is None else openers.new_route_requests(plan),
            "rejected_messages": None,
            "resolved_routes": results.resolved_routes(plan),
        }
        versions = _commit(inputs, outputs, adds=False)
    with clock.stage("counts"):
        groups = count_resolved(inputs, versions)
    if groups.total() < plan.counts.rows_read:
        with clock.stage("rejected"):
            rejected = {"rejected_messages": results.rejected_messages(plan)}
            versions |= _commit(inputs, rejected, adds=True)
    with clock.stage("counts") as tally:
        done = count_rows(inputs, versions, groups, outputs, plan.counts.rows_read)
        tally.rows = done.resolved
    return done


# An incremental run, from top to bottom: what is new or may have changed is decided, and added to the outputs.


def _run_incremental(inputs: RunInputs, frame_cache: FrameCache, now: datetime) -> RunResult:
    """Read new rows, check, compile, commit and count; try delayed messages again at ``now``.

    The first run of a job makes every table. Later ones add to those for which they have rows, and leave others
    alone. In pending_messages they replace the rows that differ.
    """
    clock, last, outputs = inputs.clock, inputs.start.last, inputs.outputs
    if not isinstance(outputs, ledger.DeltaTables):
        raise TypeError("only Spark's outputs take the rows of an incremental run")
    spark = outputs.spark
    messages_table = ledger.check_versions(inputs.inputs["messages"])
    if last is not None:
        ledger.check_succession(inputs.config, last)
    versions = {} if last is None else {key: inputs.start.versions[key] for key in last.output_versions}
    with clock.stage("read"):
        tables = validate.read(open_inputs(inputs.opener, inputs.inputs, frame_cache), frame_cache.limits)
    digests = retries.digest_inputs(tables.settings)
    changes = find_changes(inputs, messages_table, frame_cache)
    checked = None
    if changes.deleted is not None:
        # Nothing is written before all inputs are valid.
        with clock.stage("validate"):
            checked = validate.check(tables)
    taken_out = take_out_deleted(inputs, outputs, changes, versions)
    versions |= taken_out.versions
    stored = increment.StoredOutputs(
        inputs.config, last, dict(versions), inputs.opener, frame_cache, inputs.outputs.lacking
    )
    arrived = increment.find_arrived(messages_table, changes, stored, inputs.start, inputs.context)
    dialogs_are_same = last is not None and ledger.is_same_input(
        inputs.opener, last, "dialogs", inputs.inputs.get("dialogs")
    )
    tried = retries.choose(inputs, arrived, digests, now, stored, dialogs_are_same=dialogs_are_same)
    is_idle = arrived.count == 0 and tried.count == 0 and last is not None
    if is_idle and tried.inputs_are_same and checked is None and last is not None:
        kept, due, erased = arrived.pending_count, last.next_due_at, taken_out.erased
        return RunResult(versions, read=kept, unchanged=kept, next_due_at=due, digests=digests, erased=erased)
    if checked is None or tables.frame is not None:
        with clock.stage("validate"):
            reduced = None
            if tables.frame is not None and tables.in_arrow is None and last is not None and not is_idle:
                reduced = increment.reduce_dialogs(tables.frame, arrived, tried.rows, stored, inputs.notes)
            checked = validate.check(tables, reduced=reduced, is_valid=dialogs_are_same or checked is not None)
    if is_idle:
        return replace(_count_idle(inputs, versions, arrived.pending_count, digests), erased=taken_out.erased)
    with clock.stage("lookups"):
        lookups = look_into(spark, checked, frame_cache)
    step = increment.read(lookups, arrived, tried.rows, stored, now, inputs.context)
    unended = checked.count_unended_requests() if step.on_record is None else increment.count_unended(step)
    note_unended_requests(inputs.notes, unended)
    asking = lookups if step.on_record is None else replace(lookups, requests=step.requests, request_count=None)
    with clock.stage("lookups"):
        source = join_lookups(step.messages, asking, inputs.context)
    plan = compile_messages(source, find_keys(source))
    run = _IncrementalRun(inputs, outputs, step, plan, now, versions)
    done = run.write(plan.counts.rows_read + step.duplicate_count, arrived.pending_count - tried.count, digests)
    return replace(done, erased=taken_out.erased)


@dataclass
class _IncrementalRun:
    """An incremental run whose messages are decided: it writes, and counts what it has written.

    ``versions`` are those of the outputs, and grow with each commit.
    """

    inputs: RunInputs
    outputs: ledger.DeltaTables
    step: increment.NewMessages
    plan: RoutePlan
    now: datetime
    versions: dict[str, int]

    def write(self, decided: int, left_alone: int, digests: Mapping[str, str]) -> RunResult:
        """Commit all outputs; ``decided`` messages were decided, and ``left_alone`` delayed ones were not."""
        inputs, step, plan, versions, clock = self.inputs, self.step, self.plan, self.versions, self.inputs.clock
        is_first = inputs.start.last is None
        broadcasts = plan.source.broadcasts
        with clock.stage("write"):
            outputs: dict[str, DataFrame | None] = {"rejected_messages": None} if is_first else {}
            if plan.requests is not None or is_first:
                rows = openers.new_route_requests(plan)
                outputs["new_route_requests"] = increment.not_on_record(rows, step, broadcasts)
            outputs["resolved_routes"] = results.resolved_routes(plan, has_attempts=True)
            versions |= _commit(inputs, outputs, adds=not is_first)
        with clock.stage("counts"):
            groups = count_resolved(inputs, versions)
        waiting = self._write_pending(groups)
        unchanged = waiting.others - left_alone
        if step.duplicate_count or groups.total() + unchanged < plan.counts.rows_read:
            with clock.stage("rejected"):
                rows = results.rejected_messages(plan)
                rejected = increment.combine_rejected(rows, step, inputs.options.run_id, broadcasts)
                outputs["rejected_messages"] = rejected
                versions |= _commit(inputs, {"rejected_messages": rejected}, adds=True)
        with clock.stage("counts") as tally:
            done = count_rows(inputs, versions, groups, outputs, decided + left_alone, waiting.others)
            tally.rows = done.resolved
        return replace(done, next_due_at=waiting.next_due_at, digests=digests)

    def _write_pending(self, groups: Groups) -> PendingCounts:
        """Commit what changes in pending_messages, and count its rows; its first table is written as a whole."""
        inputs, step, plan, versions, key = self.inputs, self.step, self.plan, self.versions, "pending_messages"
        if key not in versions or key in inputs.outputs.lacking:
            with inputs.clock.stage(key):
                rows = increment.still_pending(plan, step, self.now)
                versions |= _commit(inputs, {key: rows}, adds=False)
        elif step.tried_again is not None or any(pending.tries_again(g.outcome, g.database) for g in groups):
            with inputs.clock.stage(key):
                changes = increment.changed_pending(plan, step, self.now)
                versions[key] = protocol.merge(self.outputs, inputs.start, key, changes, pending.KEY)
        counts = count_pending(inputs, versions[key])
        check_pending(counts, groups)
        return counts


def _count_idle(
    inputs: RunInputs, versions: Mapping[str, int], pending_count: int, digests: Mapping[str, str]
) -> RunResult:
    """Return the counts of a run in which nothing is decided although an input has changed."""
    waiting = count_pending(inputs, versions["pending_messages"]) if pending_count else None
    due = None if waiting is None else waiting.next_due_at
    return RunResult(versions, read=pending_count, unchanged=pending_count, next_due_at=due, digests=digests)
