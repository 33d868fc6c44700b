"""Compile tables to a job: the keys of their messages, the decisions on these, each choice, and requests.

The one room that acts on the messages before anything is written: it collects their distinct routing keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import Column, DataFrame

from routing.config import size_in_bytes
from routing.messages import results, validate
from routing.messages.dialog_hash import choose_implementation
from routing.messages.job import DialogJoin, KeyPass, MessageSource, PreparedPlan, ResolveJob, RoutingPlan, as_plan
from routing.messages.keying import OF_INSTANCE, OF_TEXTS, MessageKeying
from routing.messages.lookups import RunLookups, look_into
from routing.messages.openers import find_requests
from routing.plan.checked_inputs import CheckedInputs, ResolveOptions
from routing.plan.key_rows import TEXTS, DecidedKeys, KeyCounts, decide_keys
from routing.rules.estate import SqlInstance
from routing.tables.cached_frames import BroadcastBudget, FrameCache
from routing.tables.frames import collect
from routing.tables.given_tables import take_tables
from routing.tables.spark_forms import conform
from routing.tables.table_columns import Table, TableColumns

# The size of a dialog in memory, roughly.
_DIALOG = 350
DecideKeys = Callable[[TableColumns, Mapping[str, SqlInstance]], DecidedKeys]
"""Decides for distinct keys of `key_rows.KEY`, by the instances that they name."""


class StageRows(Protocol):
    """The number of rows of a stage."""

    rows: int | None


class StageClock(Protocol):
    """Times the stages of a run."""

    def stage(self, name: str) -> AbstractContextManager[StageRows]:
        """Measure the block's time."""


@dataclass(frozen=True)
class KnownKeys:
    """The keys of messages (`key_rows.KEY`), found without Spark, and the plan of what was decided for them."""

    counts: KeyCounts
    plan: RoutingPlan


def compile_tables(
    tables: Mapping[str, Table],
    options: ResolveOptions,
    frame_cache: FrameCache,
    clock: StageClock,
    *,
    more_columns: Callable[[], Mapping[str, Column]] = dict,
    keying: MessageKeying = OF_INSTANCE,
    decide: DecideKeys = decide_keys,
) -> ResolveJob:
    """Validate tables and compile their messages (`compile_messages`), which get ``more_columns``.

    Raises InputError where a table is missing or breaks its contract.
    """
    tables = take_tables(tables, in_spark=True)
    with clock.stage("validate"):
        inputs = validate.read(tables, frame_cache.limits)
        checked = validate.check(inputs)
    messages = conform(tables["messages"], "messages")
    columns = more_columns()
    if columns:
        messages = messages.withColumns(dict(columns))
    return compile_messages(messages, checked, options, frame_cache, clock, keying=keying, decide=decide)


def compile_messages(
    messages: DataFrame,
    checked: CheckedInputs,
    options: ResolveOptions,
    frame_cache: FrameCache,
    clock: StageClock,
    *,
    keying: MessageKeying = OF_INSTANCE,
    lookups: RunLookups | None = None,
    known_keys: KnownKeys | None = None,
    notes: list[str] | None = None,
    decide: DecideKeys = decide_keys,
) -> ResolveJob:
    """Return the job of conformed messages: the one way from tables without a fault to a plan.

    What ``frame_cache`` is given must stay until the frames of the job have been read; ``notes`` grows until then.
    ``lookups`` are those of ``checked``, and ``known_keys`` the keys of an instance, where they are known already.
    ``decide`` decides for the keys of an instance, where a choice is to hold more than what `decide_keys` finds.
    """
    if known_keys is not None:
        keying = OF_INSTANCE if known_keys.counts.texts is None else OF_TEXTS
    with clock.stage("lookups"):
        if lookups is None:
            lookups = look_into(messages.sparkSession, checked, frame_cache)
        limit, notes = size_in_bytes(options.broadcast_limit), [] if notes is None else notes
        broadcasts = BroadcastBudget(limit, notes, frame_cache.limits.task_bytes)
        source = _source(messages, lookups, options, broadcasts, keying)
    if known_keys is None:
        with clock.stage("keys") as tally:
            counts = _count_keys(source)
            tally.rows = counts.rows_read
        with clock.stage("plan") as tally:
            prepared = plan_of(counts, checked, frame_cache.limits.held_rows, decide=decide)
            tally.rows = len(counts.keys)
            known_keys = KnownKeys(counts, prepared.on(lookups.spark, frame_cache))
    counts = known_keys.counts
    # To open a table takes longer than to read few rows, and each pass would open it anew.
    are_few = counts.rows_read <= frame_cache.limits.held_rows
    if are_few and not counts.is_exact:
        # Whether messages are rejected is looked for in all of them.
        source = replace(source, messages=frame_cache.store(messages))
    job = _choose(KeyPass(source, broadcasts, counts, options.may_change), known_keys.plan, options, frame_cache)
    if not job.may_ask:
        return job
    if are_few:
        job = replace(job, choices=frame_cache.store(job.choices))
    with clock.stage("requests"):
        return replace(job, requests=find_requests(job))


def _source(
    messages: DataFrame,
    lookups: RunLookups,
    options: ResolveOptions,
    broadcasts: BroadcastBudget,
    keying: MessageKeying,
) -> MessageSource:
    """Choose how messages are joined with dialogs that matter, and with conversations of requests on record."""
    checked, dialogs = lookups.checked, None
    dialog_hash = choose_implementation(lookups.spark, options.dialog_hash)
    if lookups.dialogs is not None:
        what, size = f"{checked.dialog_rows} dialogs", checked.dialog_rows * _DIALOG
        dialogs = DialogJoin(broadcasts.of_size(what, lookups.dialogs, size), checked.ending > 0)
    return MessageSource(messages, lookups, dialogs, options.as_of, keying, dialog_hash)


def _count_keys(source: MessageSource) -> KeyCounts:
    """Find the keys of messages: one pass over them, a hash aggregate."""
    is_exact = source.keying.is_exact
    collected = collect(source.keys(is_exact=is_exact))
    read, valid = sum(collected.values["rows"]), sum(collected.values["valid"])
    return KeyCounts(collected.where("valid"), read, valid, is_exact)


def plan_of(
    counts: KeyCounts,
    checked: CheckedInputs,
    held_rows: int,
    *,
    decide: DecideKeys = decide_keys,
) -> PreparedPlan:
    """Decide for keys of `key_rows.KEY` on the driver; the plan is keyed by whatever messages look it up.

    ``held_rows`` as `job.as_plan` has it, ``decide`` as `compile_messages` has it.
    """
    keys = counts.keys
    decided = decide(keys, checked.instances_for(keys.values["key_service"]))
    if counts.texts is not None:
        keys, numbers = counts.texts.rows, [decided.numbers[place] for place in counts.texts.keys]
        decided = replace(decided, key=TEXTS, numbers=numbers)
    return as_plan(keys, decided, held_rows)


def _choose(counted: KeyPass, plan: RoutingPlan, options: ResolveOptions, frame_cache: FrameCache) -> ResolveJob:
    """Return the job of a plan, before it is known who asks for routes."""
    broadcasts = counted.broadcasts
    fits = plan.size <= broadcasts.limit
    if not fits:
        broadcasts.notes.append(
            f"the routing plan takes {plan.size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )
    keyed = counted.resolvable()
    choices = results.choose(keyed, plan, counted.source.dialog_hash, fits=fits)
    return ResolveJob(counted, plan, choices, options, frame_cache)
