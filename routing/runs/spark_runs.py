"""Run a job by Spark, in full or by increment: inputs at one version each, and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.delta import ledger, protocol, spark_tables
from routing.delta.opening import TableOpener
from routing.errors import ContractError, RoutingError, StorageError, first_sentence, quote
from routing.messages import openers, results, validate
from routing.messages.compiling import compile_messages, find_keys, join_lookups, open_source
from routing.messages.lookups import look_into
from routing.plan.checked_inputs import CheckedInputs
from routing.runs import increment
from routing.runs.run_work import (
    RunInputs,
    RunResult,
    check_pending,
    count_resolved,
    count_rows,
    note_unended_requests,
)
from routing.schemas import OUTPUTS
from routing.tables import frames
from routing.tables.cached_frames import FRAME_LIMITS, FrameCache, FrameLimits
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


# An incremental run, from top to bottom: what is new or delayed is resolved, and added to the outputs.


def _run_incremental(inputs: RunInputs, frame_cache: FrameCache, now: datetime) -> RunResult:
    """Read new rows, check, compile, commit and count; try delayed messages again at ``now``.

    The first run of a job makes every table. Later ones add to those for which they have rows, and leave others
    alone; pending_messages is replaced.
    """
    clock, last = inputs.clock, inputs.start.last
    messages_table = ledger.check_versions(inputs.inputs["messages"])
    if last is not None:
        ledger.check_succession(inputs.config, last)
    is_first = last is None
    versions = {} if last is None else {key: inputs.start.versions[key] for key in last.output_versions}
    stored = increment.StoredOutputs(inputs.config, last, dict(versions), inputs.opener, frame_cache)
    checked = _check(inputs, frame_cache)
    with clock.stage("lookups"):
        lookups = look_into(inputs.outputs.spark, checked, frame_cache)
    step = increment.read(lookups, messages_table, stored, now, inputs.context)
    if step.is_idle and not is_first:
        return RunResult(versions)
    unended = checked.count_unended_requests() if step.on_record is None else increment.count_unended(step)
    note_unended_requests(inputs.notes, unended)
    asking = lookups if step.on_record is None else replace(lookups, requests=step.requests, request_count=None)
    with clock.stage("lookups"):
        source = join_lookups(step.messages, asking, inputs.context)
    plan = compile_messages(source, find_keys(source))
    broadcasts = source.broadcasts
    with clock.stage("write"):
        outputs: dict[str, DataFrame | None] = {"rejected_messages": None} if is_first else {}
        if plan.requests is not None or is_first:
            rows = openers.new_route_requests(plan)
            outputs["new_route_requests"] = increment.not_on_record(rows, step, broadcasts)
        outputs["resolved_routes"] = results.resolved_routes(plan, attempt=F.col("attempt"))
        versions |= _commit(inputs, outputs, adds=not is_first)
    with clock.stage("counts"):
        groups = count_resolved(inputs, versions)
    if step.duplicate_count or groups.total() < plan.counts.rows_read:
        with clock.stage("rejected"):
            rows = results.rejected_messages(plan)
            rejected = increment.combine_rejected(rows, step, inputs.options.run_id, broadcasts)
            outputs["rejected_messages"] = rejected
            versions |= _commit(inputs, {"rejected_messages": rejected}, adds=True)
    with clock.stage("counts") as tally:
        done = count_rows(inputs, versions, groups, outputs, plan.counts.rows_read + step.duplicate_count)
        tally.rows = done.resolved
    delayed = done.outcomes.get(str(Outcome.DELAYED), 0)
    if delayed or step.tried_again is not None or "pending_messages" not in versions:
        with clock.stage("pending_messages"):
            versions |= _commit(inputs, {"pending_messages": increment.still_pending(plan)}, adds=False)
            check_pending(inputs, versions, groups)
    return done
