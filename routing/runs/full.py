"""A full run, from top to bottom: every message is resolved, and the outputs are replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from routing.engines.arrow import message_keys
from routing.messages import openers, results, validate
from routing.messages.compiling import compile_messages, plan_of, with_keys, with_plan
from routing.messages.job import Job
from routing.messages.lookups import look_into
from routing.runs.counting import Written, count_resolved, count_rows, note_unended_requests
from routing.runs.work import Work, open_traffic
from routing.storage.columns import Table
from routing.storage.frames import at_once


def run_full(work: Work) -> Written:
    """Read, check, compile, commit, count. Raises InputError, then StorageError and InternalError."""
    clock = work.clock
    traffic = open_traffic(work.opener, work.inputs)
    job = _compile_on_spark(work) if traffic is None else _compile_meanwhile(work, traffic)
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


def _compile_on_spark(work: Work) -> Job:
    """Check the inputs, find the keys of messages that Spark reads, and decide for them."""
    clock = work.clock
    with clock.stage("read"):
        inputs, messages = validate.read(work.open_tables()), work.read_messages()
    with clock.stage("validate"):
        checked = validate.check(inputs)
    note_unended_requests(work, checked.count_unended_requests())
    return compile_messages(messages, checked, work.options, work.keeper, clock, notes=work.notes)


def _compile_meanwhile(work: Work, traffic: dict[str, Table]) -> Job:
    """The same of messages that Arrow reads: the session, which may be starting yet, is needed at the end."""
    clock = work.clock
    with clock.stage("read"):
        inputs = validate.read({**work.open_settings(), **traffic})
    with clock.stage("validate"):
        checked = validate.check(inputs)
    note_unended_requests(work, checked.count_unended_requests())
    with clock.stage("keys") as tally:
        counts = message_keys.count_keys(traffic["messages"], checked.dialogs, checked, work.options.as_of)
        tally.rows = counts.rows_read
    with clock.stage("plan") as tally:
        prepared = plan_of(counts, checked)
        tally.rows = len(counts.keys)
    with clock.stage("lookups"):
        # A session that has just started takes its time for the first of everything.
        firsts: list[Callable[[], Any]] = [work.read_messages, lambda: prepared.on(work.spark, work.keeper)]
        if checked.dialogs is not None:
            firsts.append(work.read_dialogs)
        messages, plan, *dialogs = at_once(work.spark, lambda first: first(), firsts)
        on_spark = replace(checked, dialogs=dialogs[0] if dialogs else None)
        lookups = look_into(work.spark, on_spark, work.keeper)
        counted = with_keys(counts, messages, lookups, work.options, work.notes)
    return with_plan(counted, plan, work.options, work.keeper, clock)
