"""An incremental run, from top to bottom: what is new or delayed is resolved, and added to the outputs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import functions as F

from routing.messages import openers, results, validate
from routing.messages.compiling import compile_job, count_keys
from routing.messages.lookups import look_into
from routing.runs import increment
from routing.runs.counting import Written, count_rows
from routing.runs.work import Work
from routing.storage import ledger
from routing.terms import Outcome


def run_incremental(work: Work, now: datetime) -> Written:
    """Read what is new, check, compile, commit, count. Delayed messages are tried again at ``now``.

    The first run of a job makes every table. Later ones add to those for which they have rows, and leave others
    alone; pending_messages is replaced. Raises InputError, OutputError, then StorageError and InternalError.
    """
    clock, last = work.clock, work.start.last
    if last is not None:
        ledger.check_succession(work.config, last)
    is_first, put = last is None, work.replace if last is None else work.add
    versions = {} if last is None else {key: work.start.versions[key] for key in last.output_versions}
    stored = increment.Stored(work.config, last, dict(versions))
    with clock.stage("read"):
        inputs = validate.read(work.open_tables())
    with clock.stage("validate"):
        checked = validate.check(inputs)
    lookups = look_into(work.spark, checked, work.keeper)
    step = increment.read(lookups, work.inputs["messages"], stored, now, clock, work.keeper)
    work.notes.extend(step.notes)
    if step.is_idle and not is_first:
        return Written(versions)
    with clock.stage("keys"):
        keys = count_keys(step.messages, replace(lookups, requests=step.requests), work.options, work.notes)
    with clock.stage("plan"):
        job = compile_job(keys, work.options, work.keeper)
    found = None
    if job.may_ask:
        with clock.stage("requests"):
            found = openers.find_openers(job)
    rejected = None
    if found is not None or is_first:
        with clock.stage("new_route_requests"):
            rows = increment.not_on_record(openers.new_route_requests(job, found), step, job.broadcasts)
            versions["new_route_requests"], _ = put("new_route_requests", rows)
    if keys.rows_rejected or step.duplicate_count or is_first:
        with clock.stage("rejected_messages"):
            rows = increment.combine_rejected(
                results.rejected_messages(job), step, work.options.run_id, job.broadcasts
            )
            versions["rejected_messages"], rejected = put("rejected_messages", rows)
    with clock.stage("resolved_routes"):
        rows = results.resolved_routes(job, found, attempt=F.col("attempt"))
        versions["resolved_routes"], resolved = put("resolved_routes", rows)
    with clock.stage("counts"):
        done = count_rows(versions, resolved, rejected, keys.rows_read + step.duplicate_count)
    delayed = done.outcomes.get(str(Outcome.DELAYED), 0)
    if delayed or step.tried_again is not None or "pending_messages" not in versions:
        with clock.stage("pending_messages"):
            rows = increment.still_pending(step, resolved, work.options.run_id, delayed, job.broadcasts)
            versions["pending_messages"], _ = work.replace("pending_messages", rows)
    return done
