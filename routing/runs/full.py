"""A full run, from top to bottom: every message is resolved, and the outputs are replaced."""

from __future__ import annotations

from routing.messages import openers, results, validate
from routing.messages.compiling import compile_job, count_keys
from routing.messages.lookups import look_into
from routing.runs.counting import Written, count_rows
from routing.runs.work import Work


def run_full(work: Work) -> Written:
    """Read, check, compile, commit, count. Raises InputError, then StorageError and InternalError."""
    clock = work.clock
    with clock.stage("read"):
        inputs, messages = validate.read(work.open_tables()), work.read_messages()
    with clock.stage("validate"):
        checked = validate.check(inputs)
    with clock.stage("lookups"):
        lookups = look_into(work.spark, checked, work.keeper)
    with clock.stage("keys") as tally:
        keys = count_keys(messages, lookups, work.options, work.notes)
        tally.rows = keys.rows_read
    with clock.stage("plan") as tally:
        job = compile_job(keys, work.options, work.keeper)
        tally.rows = len(keys.keys)
    found = None
    if job.may_ask:
        with clock.stage("requests"):
            found = openers.find_openers(job)
    with clock.stage("write"):
        outputs = {
            "new_route_requests": openers.new_route_requests(job, found),
            "rejected_messages": results.rejected_messages(job),
            "resolved_routes": results.resolved_routes(job, found),
        }
        versions = work.commit(outputs, adds=False)
    with clock.stage("counts") as tally:
        done = count_rows(work, versions, outputs, keys.rows_read)
        tally.rows = done.resolved
    return done
