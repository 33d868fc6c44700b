"""An incremental run, from top to bottom: what is new or delayed is resolved, and added to the outputs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.delta import ledger
from routing.messages import openers, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.lookups import look_into
from routing.runs import increment
from routing.runs.counting import RunCounts, check_pending, count_resolved, count_rows, note_unended_requests
from routing.runs.work import SparkWork
from routing.terms import Outcome


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
    stored = increment.StoredOutputs(work.config, last, dict(versions), work.opener)
    with clock.stage("read"):
        inputs = validate.read(work.open_tables())
    with clock.stage("validate"):
        checked = validate.check(inputs)
    with clock.stage("lookups"):
        lookups = look_into(work.spark, checked, work.keeper)
    step = increment.read(lookups, messages_table, stored, now, clock, work.keeper)
    work.notes.extend(step.notes)
    if step.is_idle and not is_first:
        return RunCounts(versions)
    unended = checked.count_unended_requests() if step.on_record is None else increment.count_unended(step)
    note_unended_requests(work, unended)
    asking = replace(lookups, requests=step.requests)
    job = compile_messages(
        step.messages, checked, work.options, work.keeper, clock, lookups=asking, notes=work.notes
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
