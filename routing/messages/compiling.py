"""Compile messages to a plan: their keys, the decisions on these, each message's choice, and requests.

Only this module reads the messages before anything is written: it collects their distinct routing keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame

from routing.messages import results, validate
from routing.messages.dialog_hash import choose_implementation
from routing.messages.distributed_plan import decide_by_instance
from routing.messages.lookups import RunLookups, look_into
from routing.messages.openers import find_requests, find_waiting
from routing.messages.route_plan import MessageSource, RoutePlan, as_frames, may_reject
from routing.messages.setting_frames import DistributedInputs, open_settings, prepare_frames
from routing.plan.checked_inputs import CheckedInputs, CheckedTables
from routing.plan.key_rows import DecidedKeys, KeyCounts, decide_keys
from routing.rules.estate import SqlInstance
from routing.run_context import RunContext
from routing.tables.cached_frames import FrameCache
from routing.tables.frames import collect, collect_few
from routing.tables.given_tables import take_tables
from routing.tables.spark_forms import conform
from routing.tables.table_columns import Table, TableColumns

# The size of a dialog in memory, roughly.
_DIALOG = 350
DecideKeys = Callable[[TableColumns, Mapping[str, SqlInstance]], DecidedKeys]
"""Decides for distinct keys of `key_rows.KEY`, by the instances that they name."""


def compile_tables(
    tables: Mapping[str, Table],
    context: RunContext,
    frame_cache: FrameCache,
    *,
    more_columns: Callable[[], Mapping[str, Column]] = dict,
    is_exact: bool = False,
    decide: DecideKeys | None = None,
    distributes: bool = False,
) -> RoutePlan:
    """Validate tables, and compile their messages, which get ``more_columns``.

    With ``distributes``, workers decide by a configuration or keys that are too many for the driver. Raises
    InputError where a table is missing or breaks its contract.
    """
    tables = take_tables(tables, in_spark=True)
    spark = conform(tables["messages"], "messages").sparkSession
    read_frames = partial(open_settings, tables, spark) if distributes else None
    with context.clock.stage("validate"):
        inputs = validate.read(tables, frame_cache.limits, read_frames, context.notes)
        checked = validate.check(inputs)
    messages = conform(tables["messages"], "messages")
    columns = more_columns()
    if columns:
        messages = messages.withColumns(dict(columns))
    source = open_source(messages, checked, context, frame_cache, is_exact=is_exact)
    return compile_messages(source, decide=decide)


def open_source(
    messages: DataFrame,
    checked: CheckedTables,
    context: RunContext,
    frame_cache: FrameCache,
    *,
    is_exact: bool = False,
) -> MessageSource:
    """Return conformed messages with the tables that decide them.

    The frames in ``frame_cache`` must stay until the frames of the plan have been read.
    """
    with context.clock.stage("lookups"):
        lookups = look_into(messages.sparkSession, checked, frame_cache, context)
        return join_lookups(messages, lookups, context, is_exact=is_exact)


def join_lookups(
    messages: DataFrame, lookups: RunLookups, context: RunContext, *, is_exact: bool = False
) -> MessageSource:
    """Choose how messages are joined with dialogs that may change a decision."""
    checked, options = lookups.checked, context.options
    broadcasts = lookups.broadcasts
    dialog_hash = choose_implementation(lookups.spark, options.dialog_hash)
    dialogs = None
    if lookups.dialogs is not None:
        what, size = f"{checked.dialog_rows} dialogs", checked.dialog_rows * _DIALOG
        dialogs = broadcasts.of_size(what, lookups.dialogs, size)
    return MessageSource(messages, lookups, context, broadcasts, is_exact, dialog_hash, dialogs)


def compile_messages(
    source: MessageSource,
    *,
    decide: DecideKeys | None = None,
    are_held: bool = False,
) -> RoutePlan:
    """Return the plan of messages. The driver decides their keys, or workers if they are too many.

    ``decide`` decides the keys of an instance if a choice needs more than the result of `decide_keys`. With
    ``are_held``, few messages are not read from a table, and two outputs need their choices.
    """
    found = _find_keys(source) if isinstance(source.lookups.checked, CheckedInputs) else None
    if found is None:
        tables = _open_tables(source)
        if tables is not None:
            return _decide_by_workers(source, tables)
        found = _collect_keys(source)
    return _decide_in_driver(source, *found, decide or decide_keys, are_held=are_held)


def _find_keys(source: MessageSource) -> tuple[TableColumns, KeyCounts] | None:
    """Find the keys of messages by one pass over them, or return None if they are too many for the driver."""
    if source.lookups.checked.read_frames is None:
        return _collect_keys(source)
    with source.context.clock.stage("keys") as tally:
        collected = collect_few(source.keys(), source.lookups.frame_cache.limits.driver_rows)
        if collected is None:
            return None
        keys, counts = _count(collected, source)
        tally.rows = counts.rows_read
        return keys, counts


def _collect_keys(source: MessageSource) -> tuple[TableColumns, KeyCounts]:
    """Find the keys of messages, however many they are: one pass over them, a hash aggregate."""
    with source.context.clock.stage("keys") as tally:
        keys, counts = _count(collect(source.keys()), source)
        tally.rows = counts.rows_read
        return keys, counts


def _count(collected: TableColumns, source: MessageSource) -> tuple[TableColumns, KeyCounts]:
    read, valid = sum(collected.values["rows"]), sum(collected.values["valid"])
    return collected.where("valid"), KeyCounts(read, valid, source.is_exact)


def _open_tables(source: MessageSource) -> Mapping[str, DataFrame] | None:
    """Return the tables of the configuration for workers, or None if the session has none."""
    checked = source.lookups.checked
    if isinstance(checked, DistributedInputs):
        return checked.frames
    return None if checked.read_frames is None else prepare_frames(checked.read_frames, source.context.notes)


def _decide_by_workers(source: MessageSource, tables: Mapping[str, DataFrame]) -> RoutePlan:
    with source.context.clock.stage("plan") as tally:
        plan = decide_by_instance(source, tables)
        tally.rows = plan.name_count
    checks_rows = may_reject(source, plan.counts)

    def choose(source: MessageSource) -> DataFrame:
        return results.choose_by_names(source, plan.names, checks_rows=checks_rows)

    return _with_requests(RoutePlan(source, plan.counts, plan.decided, choose(source)), choose)


def _decide_in_driver(
    source: MessageSource, keys: TableColumns, counts: KeyCounts, decide: DecideKeys, *, are_held: bool
) -> RoutePlan:
    clock, options, frame_cache = source.context.clock, source.options, source.lookups.frame_cache
    with clock.stage("plan") as tally:
        instances = source.lookups.held.instances_for(keys.values["key_service"])
        decided = as_frames(keys, decide(keys, instances), source.lookups.spark, frame_cache)
        tally.rows = len(keys)
    # To open a table takes longer than to read few rows, and each pass would open it anew.
    are_few = counts.rows_read <= frame_cache.limits.held_rows
    if are_few and not (counts.is_exact or are_held):
        # Whether messages are rejected is looked for in all of them.
        source = replace(source, messages=frame_cache.store(source.messages))
    fits = decided.size <= source.broadcasts.limit
    if not fits:
        source.context.notes.append(
            f"the routing plan takes {decided.size} bytes, over broadcast_limit:"
            " the names in messages are shuffled to join it (shuffled hash join)"
        )
    has_strays = counts.rows_valid < counts.rows_read or options.may_change
    checks_rows, names = may_reject(source, counts), None
    if not (fits and source.names_fit):
        names = results.decide_names(source, decided, checks_rows=checks_rows, fits=fits)

    def choose(source: MessageSource) -> DataFrame:
        if names is None:
            keyed = source.resolvable(checks_rows=checks_rows, checks_scopes=has_strays)
            choices = results.choose(keyed, decided, source.dialog_hash, fits=fits)
        else:
            choices = results.choose_by_names(source, names, checks_rows=checks_rows)
        return frame_cache.store(choices) if are_few and (decided.uses.may_ask or are_held) else choices

    return _with_requests(RoutePlan(source, counts, decided, choose(source)), choose)


def _with_requests(plan: RoutePlan, choose: Callable[[MessageSource], DataFrame]) -> RoutePlan:
    """Add the requests that messages open or wait for. ``choose`` returns the choices of messages that wait."""
    if not plan.decided.uses.may_ask:
        return plan
    with plan.source.context.clock.stage("requests"):
        requests = find_requests(plan)
        if requests.fit:
            return replace(plan, requests=requests)
        source = replace(plan.source, waiting=find_waiting(plan, requests))
        return replace(plan, source=source, choices=choose(source), requests=requests)
