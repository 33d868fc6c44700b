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
    with clock.stage("keys"):
        lookups = look_into(work.spark, checked, work.keeper)
        keys = count_keys(messages, lookups, work.options, work.notes)
    with clock.stage("plan"):
        job = compile_job(keys, work.options, work.keeper)
    found = None
    if job.may_ask:
        with clock.stage("requests"):
            found = openers.find_openers(job)
    versions = {}
    with clock.stage("new_route_requests"):
        versions["new_route_requests"], _ = work.replace(
            "new_route_requests", openers.new_route_requests(job, found)
        )
    with clock.stage("rejected_messages"):
        versions["rejected_messages"], rejected = work.replace("rejected_messages", results.rejected_messages(job))
    with clock.stage("resolved_routes"):
        versions["resolved_routes"], resolved = work.replace(
            "resolved_routes", results.resolved_routes(job, found)
        )
    with clock.stage("counts"):
        return count_rows(versions, resolved, rejected, keys.rows_read)
