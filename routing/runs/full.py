"""A full run, from top to bottom: every message is resolved, and the outputs are replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from routing.engines.arrow import message_keys
from routing.messages import openers, results, validate
from routing.messages.compiling import KnownKeys, compile_messages, plan_of
from routing.messages.job import ResolveJob
from routing.plan.checked import CheckedInputs
from routing.runs.counting import RunCounts, count_resolved, count_rows, note_unended_requests
from routing.runs.work import SparkWork, open_traffic
from routing.tables.frames import at_once
from routing.tables.table_columns import Table


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
    clock, traffic = work.clock, open_traffic(work.opener, work.inputs)
    with clock.stage("read"):
        inputs = validate.read(work.open_tables() if traffic is None else {**work.open_settings(), **traffic})
    with clock.stage("validate"):
        checked = validate.check(inputs)
    note_unended_requests(work, checked.count_unended_requests())
    if traffic is None:
        with clock.stage("read"):
            messages = work.read_messages()
        known_keys = None
    else:
        messages, checked, known_keys = _find_keys(work, traffic["messages"], checked)
    return compile_messages(
        messages, checked, work.options, work.keeper, clock, known_keys=known_keys, notes=work.notes
    )


def _find_keys(
    work: SparkWork, messages: Table, checked: CheckedInputs
) -> tuple[DataFrame, CheckedInputs, KnownKeys]:
    """Decide for messages that Arrow reads; the session, which may be starting yet, is needed at the end.

    Returns messages and dialogs as frames, the keys, and the plan.
    """
    clock = work.clock
    with clock.stage("keys") as tally:
        counts = message_keys.count_keys(messages, checked.dialogs, checked, work.options.as_of)
        tally.rows = counts.rows_read
    with clock.stage("plan") as tally:
        prepared = plan_of(counts, checked)
        tally.rows = len(counts.keys)
    with clock.stage("lookups"):
        # A session that has just started takes its time for the first of everything.
        firsts: list[Callable[[], Any]] = [work.read_messages, lambda: prepared.on(work.spark, work.keeper)]
        if checked.dialogs is not None:
            firsts.append(work.read_dialogs)
        frame, plan, *dialogs = at_once(work.spark, lambda first: first(), firsts)
    return frame, replace(checked, dialogs=dialogs[0] if dialogs else None), KnownKeys(counts, plan)
