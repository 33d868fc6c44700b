"""Compile messages to a plan: their keys, the decisions for these, each message's choice, and requests.

Only this module and `distributed_plan` read the messages before the outputs are written, to find the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pyspark.sql import Column, DataFrame

from routing.messages import results, validate
from routing.messages.distributed_plan import decide_by_instance
from routing.messages.lookups import build_lookups
from routing.messages.openers import find_requests, find_waiting
from routing.messages.route_plan import MessageSource, RoutePlan, as_frames
from routing.messages.setting_frames import DistributedInputs, open_settings, prepare_frames
from routing.plan.checked_inputs import CheckedTables
from routing.plan.key_rows import DecidedKeys, KeyCounts, PlanUses, decide_keys
from routing.rules.estate import SqlInstance
from routing.run_context import RunContext
from routing.tables.cached_frames import FrameCache
from routing.tables.frames import collect, collect_few
from routing.tables.given_tables import take_tables
from routing.tables.spark_forms import conform
from routing.tables.table_columns import Table, TableColumns

DecideKeys = Callable[[TableColumns, Mapping[str, SqlInstance]], DecidedKeys]
"""Decides distinct keys with the columns `key_rows.KEY`, with the instances that they name."""


def compile_tables(
    tables: Mapping[str, Table],
    context: RunContext,
    frame_cache: FrameCache,
    *,
    more_columns: Callable[[], Mapping[str, Column]] = dict,
    is_exact: bool = False,
    decide: DecideKeys = decide_keys,
) -> RoutePlan:
    """Validate tables, and compile their messages, which get ``more_columns``.

    If counts need not be exact, workers may decide. Raises InputError if a table is missing or breaks its
    contract.
    """
    tables = take_tables(tables, in_spark=True)
    messages = conform(tables["messages"], "messages")
    read_frames = None if is_exact else partial(open_settings, tables, messages.sparkSession)
    with context.clock.stage("validate"):
        inputs = validate.read(tables, frame_cache.limits, read_frames, context.notes)
        checked = validate.check(inputs)
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
        lookups = build_lookups(messages.sparkSession, checked, frame_cache, context)
    return MessageSource(messages, lookups, context, is_exact)


def compile_messages(
    source: MessageSource,
    *,
    decide: DecideKeys = decide_keys,
    are_held: bool = False,
) -> RoutePlan:
    """Return the plan of messages. The driver decides their keys, or workers if they are too many.

    ``decide`` decides the keys of an instance if a choice needs more than the result of `decide_keys`. With
    ``are_held``, the messages are stored already if they are few, and two outputs need their choices.
    """
    checked, limits = source.lookups.checked, source.lookups.frame_cache.limits
    if isinstance(checked, DistributedInputs):
        return _decide_by_workers(source, checked.frames, are_held=are_held)
    read_frames, counted_keys = source.lookups.in_driver.read_frames, None
    if read_frames is not None:
        counted_keys = _find_keys(source, lambda keys: collect_few(keys, limits.driver_rows))
        tables = None if counted_keys is not None else prepare_frames(read_frames, source.context.notes)
        if tables is not None:
            return _decide_by_workers(source, tables, are_held=are_held)
    if counted_keys is None:
        counted_keys = _find_keys(source, collect)
    return _decide_in_driver(source, counted_keys, decide, are_held=are_held)


_Collected = TypeVar("_Collected", TableColumns, TableColumns | None)


def _find_keys(source: MessageSource, collect_keys: Callable[[DataFrame], _Collected]) -> _Collected:
    """Find and count the keys of messages by one hash aggregate over them."""
    with source.context.clock.stage("keys") as tally:
        collected = collect_keys(source.keys())
        if collected is not None:
            tally.rows = sum(collected.values["rows"])
        return collected


def _decide_by_workers(source: MessageSource, tables: Mapping[str, DataFrame], *, are_held: bool) -> RoutePlan:
    with source.context.clock.stage("plan") as tally:
        names, uses, counts, tally.rows = decide_by_instance(source, tables)

    def choose(source: MessageSource) -> DataFrame:
        return results.choose_by_names(source, names, checks_rows=True)

    return _make_plan(_hold_few(source, counts, are_held=are_held), counts, uses, choose, are_held=are_held)


def _decide_in_driver(
    source: MessageSource, counted_keys: TableColumns, decide: DecideKeys, *, are_held: bool
) -> RoutePlan:
    read, valid = sum(counted_keys.values["rows"]), sum(counted_keys.values["valid"])
    keys, counts = counted_keys.where("valid"), KeyCounts(read, valid, source.is_exact)
    with source.context.clock.stage("plan") as tally:
        instances = source.lookups.in_driver.instances_for(keys.values["key_service"])
        decided = as_frames(keys, decide(keys, instances), source.lookups.spark, source.lookups.frame_cache)
        tally.rows = len(keys)
    source = _hold_few(source, counts, are_held=are_held)
    fits = decided.size <= source.broadcasts.limit
    if not fits:
        source.context.notes.append(
            f"the routing plan takes {decided.size} bytes, over broadcast_limit:"
            " the names in messages are shuffled to join it (shuffled hash join)"
        )
    has_strays = counts.rows_valid < counts.rows_read or source.options.may_change
    checks_rows, names = source.may_reject(counts), None
    if not (fits and source.names_fit):
        names = results.decide_names(source, decided, checks_rows=checks_rows, fits=fits)

    def choose(source: MessageSource) -> DataFrame:
        if names is not None:
            return results.choose_by_names(source, names, checks_rows=checks_rows)
        keyed = source.resolvable(checks_rows=checks_rows, checks_scopes=has_strays)
        return results.choose(keyed, decided, source.lookups.dialog_hash, fits=fits)

    return replace(_make_plan(source, counts, decided.uses, choose, are_held=are_held), decided=decided)


def _are_few(source: MessageSource, counts: KeyCounts) -> bool:
    """Return whether opening the table of the messages in each pass takes longer than reading them."""
    return counts.rows_read <= source.lookups.frame_cache.limits.held_rows


def _hold_few(source: MessageSource, counts: KeyCounts, *, are_held: bool) -> MessageSource:
    """Store the messages if they are few, including those to be rejected."""
    if are_held or counts.is_exact or not _are_few(source, counts):
        return source
    return replace(source, messages=source.lookups.frame_cache.store(source.messages))


def _make_plan(
    source: MessageSource,
    counts: KeyCounts,
    uses: PlanUses,
    choose: Callable[[MessageSource], DataFrame],
    *,
    are_held: bool,
) -> RoutePlan:
    """Return the plan of messages with their choices, and the requests that they open or wait for."""
    frame_cache, is_stored = source.lookups.frame_cache, _are_few(source, counts) and (uses.may_ask or are_held)

    def choices_of(source: MessageSource) -> DataFrame:
        choices = choose(source)
        return frame_cache.store(choices) if is_stored else choices

    plan = RoutePlan(source, counts, uses, choices_of(source))
    if not uses.may_ask:
        return plan
    with source.context.clock.stage("requests"):
        requests = find_requests(plan)
        if requests.fit:
            return replace(plan, requests=requests)
        waiting = replace(source, waiting=find_waiting(plan, requests))
        return replace(plan, source=waiting, choices=choices_of(waiting), requests=requests)
