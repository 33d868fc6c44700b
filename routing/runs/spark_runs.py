"""Run a job by Spark, in full or by increment: inputs at one version each, and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.delta import ledger, protocol, spark_tables
from routing.delta.ledger import DeltaTables
from routing.delta.opening import TableOpener
from routing.messages import openers, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.job import ResolveJob
from routing.messages.lookups import look_into
from routing.runs import increment
from routing.runs.run_work import (
    RunCounts,
    RunWork,
    check_pending,
    count_resolved,
    count_rows,
    note_unended_requests,
)
from routing.schemas import OUTPUTS
from routing.tables import frames
from routing.tables.cached_frames import FrameCache
from routing.tables.spark_forms import conform, no_rows
from routing.tables.table_columns import Table
from routing.terms import Outcome


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


@dataclass(frozen=True)
class SparkWork(RunWork):
    """A run by Spark."""

    outputs: DeltaTables
    frame_cache: FrameCache

    def open_tables(self) -> dict[str, Table]:
        """Return the inputs without the messages (`open_inputs`)."""
        return open_inputs(self.opener, self.inputs, self.frame_cache)

    def read_messages(self) -> DataFrame:
        """Return all messages, in their declared columns."""
        return conform(self.inputs["messages"].read(self.spark), "messages")

    @property
    def spark(self) -> SparkSession:
        """The session that it runs in."""
        return self.outputs.spark

    def commit(self, outputs: Mapping[str, DataFrame | None], *, adds: bool) -> dict[str, int]:
        """Commit rows to tables, to what stands there or in its place; the versions by key.

        None is no rows: a table that has none is left alone then. All at once, for none depends on another, and no
        run counts before its row in ``runs``.
        """

        def commit_one(key: str) -> int:
            rows = outputs[key]
            if rows is None:
                if self.is_empty(key):
                    return self.start.versions[key]
                rows = no_rows(self.spark, OUTPUTS[key])
            return protocol.commit(self.outputs, self.start, key, rows, adds=adds)

        return dict(zip(outputs, frames.at_once(self.spark, commit_one, list(outputs)), strict=True))


# A full run, from top to bottom: every message is resolved, and the outputs are replaced.


def run_full(work: SparkWork) -> RunCounts:
    """Read, check, compile, commit, count. Raises InputError, then StorageError and InternalError."""
    clock, job = work.clock, _compile(work)
    counts = job.counted.counts
    with clock.stage("write"):
        is_known = counts.is_exact and job.counted.may_reject
        outputs = {
            "new_route_requests": None if job.requests is None else openers.new_route_requests(job),
            "rejected_messages": results.rejected_messages(job) if is_known else None,
            "resolved_routes": results.resolved_routes(job),
        }
        versions = work.commit(outputs, adds=False)
    with clock.stage("counts"):
        groups = count_resolved(work, versions)
    if not counts.is_exact and groups.total() < counts.rows_read:
        with clock.stage("rejected"):
            versions |= work.commit({"rejected_messages": results.rejected_messages(job)}, adds=True)
    with clock.stage("counts") as tally:
        done = count_rows(work, versions, groups, outputs, counts.rows_read)
        tally.rows = done.resolved
    return done


def _compile(work: SparkWork) -> ResolveJob:
    """Read and check the inputs, find the keys of the messages, and decide for them."""
    clock = work.clock
    with clock.stage("read"):
        inputs = validate.read(work.open_tables(), work.frame_cache.limits)
    with clock.stage("validate"):
        checked = validate.check(inputs)
    note_unended_requests(work, checked.count_unended_requests())
    with clock.stage("read"):
        messages = work.read_messages()
    return compile_messages(messages, checked, work.options, work.frame_cache, clock, notes=work.notes)


# An incremental run, from top to bottom: what is new or delayed is resolved, and added to the outputs.


def run_incremental(work: SparkWork, now: datetime) -> RunCounts:
    """Read new rows, check, compile, commit and count; try delayed messages again at ``now``.

    The first run of a job makes every table. Later ones add to those for which they have rows, and leave others
    alone; pending_messages is replaced. Raises InputError, OutputError, then StorageError and InternalError.
    """
    clock, last = work.clock, work.start.last
    messages_table = ledger.check_versions(work.inputs["messages"])
    if last is not None:
        ledger.check_succession(work.config, last)
    is_first = last is None
    versions = {} if last is None else {key: work.start.versions[key] for key in last.output_versions}
    stored = increment.StoredOutputs(work.config, last, dict(versions), work.opener, work.frame_cache)
    with clock.stage("read"):
        inputs = validate.read(work.open_tables(), work.frame_cache.limits)
    with clock.stage("validate"):
        checked = validate.check(inputs)
    with clock.stage("lookups"):
        lookups = look_into(work.spark, checked, work.frame_cache)
    step = increment.read(lookups, messages_table, stored, now, clock)
    work.notes.extend(step.notes)
    if step.is_idle and not is_first:
        return RunCounts(versions)
    unended = checked.count_unended_requests() if step.on_record is None else increment.count_unended(step)
    note_unended_requests(work, unended)
    asking = lookups if step.on_record is None else replace(lookups, requests=step.requests, request_count=None)
    job = compile_messages(
        step.messages, checked, work.options, work.frame_cache, clock, lookups=asking, notes=work.notes
    )
    counts = job.counted.counts
    with clock.stage("write"):
        outputs: dict[str, DataFrame | None] = {"rejected_messages": None} if is_first else {}
        if job.requests is not None or is_first:
            rows = openers.new_route_requests(job)
            outputs["new_route_requests"] = increment.not_on_record(rows, step, job.broadcasts)
        outputs["resolved_routes"] = results.resolved_routes(job, attempt=F.col("attempt"))
        versions |= work.commit(outputs, adds=not is_first)
    with clock.stage("counts"):
        groups = count_resolved(work, versions)
    if step.duplicate_count or groups.total() < counts.rows_read:
        with clock.stage("rejected"):
            rows = results.rejected_messages(job)
            rejected = increment.combine_rejected(rows, step, work.options.run_id, job.broadcasts)
            outputs["rejected_messages"] = rejected
            versions |= work.commit({"rejected_messages": rejected}, adds=True)
    with clock.stage("counts") as tally:
        done = count_rows(work, versions, groups, outputs, counts.rows_read + step.duplicate_count)
        tally.rows = done.resolved
    delayed = done.outcomes.get(str(Outcome.DELAYED), 0)
    if delayed or step.tried_again is not None or "pending_messages" not in versions:
        with clock.stage("pending_messages"):
            versions |= work.commit({"pending_messages": increment.still_pending(job)}, adds=False)
            check_pending(work, versions, groups)
    return done
