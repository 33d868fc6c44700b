"""From a configuration and messages to a job: their keys, what is decided for these, each choice, and requests.

The one room that acts on the messages before anything is written: it collects their distinct routing keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame

from routing.config import size_in_bytes
from routing.messages import results
from routing.messages.dialog_hash import choose_implementation
from routing.messages.job import Dialogs, Job, KeyPass, Source
from routing.messages.keying import OF_INSTANCE, OF_TEXTS, Keying
from routing.messages.lookups import Lookups, look_into
from routing.messages.openers import find_requests
from routing.messages.plan_frames import PreparedPlan, RoutingPlan, as_plan
from routing.plan.checked import Checked
from routing.plan.estate import network_of
from routing.plan.keys import TEXTS, KeyCounts
from routing.plan.options import Options
from routing.plan.rows import DecidedKeys, decide_keys, follow_keys
from routing.rules.estate import Instance
from routing.storage import keeping
from routing.storage.columns import Columns
from routing.storage.frames import collect
from routing.storage.joining import Broadcasts, Side

# The sizes of a dialog and of a conversation's id in memory, roughly.
_DIALOG, _CONVERSATION = 350, 150
DecideKeys = Callable[[Columns, Mapping[str, Instance]], DecidedKeys]
"""Decides for distinct keys of `keys.KEY`, by the instances that they name."""


class StageRows(Protocol):
    """How many rows a stage is about."""

    rows: int | None


class StageClock(Protocol):
    """Times the stages of a run."""

    def stage(self, name: str) -> AbstractContextManager[StageRows]:
        """Time what is done inside."""


def compile_messages(
    messages: DataFrame,
    checked: Checked,
    options: Options,
    keeper: keeping.Keeper,
    clock: StageClock,
    *,
    keying: Keying = OF_INSTANCE,
    lookups: Lookups | None = None,
    notes: list[str] | None = None,
    decide: DecideKeys = decide_keys,
) -> Job:
    """Return the job of conformed messages: the one way from tables without a fault to a plan.

    What ``keeper`` is given must stay until the frames of the job have been read; ``notes`` grows until then.
    ``lookups`` are those of ``checked``, where they are known already. ``decide`` decides for the keys of an
    instance, where a choice is to hold more than what `decide_keys` finds.
    """
    if lookups is None:
        with clock.stage("lookups"):
            lookups = look_into(messages.sparkSession, checked, keeper, is_wide=keying.is_wide)
    with clock.stage("keys") as tally:
        source, broadcasts = _source(messages, lookups, options, notes, keying)
        # One pass over the messages, a hash aggregate.
        found = collect(source.keys(is_exact=keying.is_exact))
        read, valid = sum(found.values["rows"]), sum(found.values["valid"])
        counts = KeyCounts(found.where("valid"), read, valid, keying.is_exact)
        tally.rows = read
    with clock.stage("plan") as tally:
        plan = plan_of(counts, checked, is_wide=keying.is_wide, decide=decide).on(lookups.spark, keeper)
        tally.rows = len(counts.keys)
        counted = KeyPass(source, broadcasts, counts, options.may_change)
    return with_plan(counted, plan, options, keeper, clock)


def with_keys(
    counts: KeyCounts, messages: DataFrame, lookups: Lookups, options: Options, notes: list[str] | None = None
) -> KeyPass:
    """Return messages whose keys (`keys.KEY`) have been found without Spark; ``notes`` as above."""
    keying = OF_INSTANCE if counts.texts is None else OF_TEXTS
    source, broadcasts = _source(messages, lookups, options, notes, keying)
    source = replace(source, is_folded=counts.is_folded)
    return KeyPass(source, broadcasts, counts, options.may_change)


def _source(
    messages: DataFrame, lookups: Lookups, options: Options, notes: list[str] | None, keying: Keying
) -> tuple[Source, Broadcasts]:
    dialog_hash = choose_implementation(messages.sparkSession, options.dialog_hash)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit), [] if notes is None else notes)
    dialogs = _size_dialogs(lookups, broadcasts)
    source = Source(messages, lookups, dialogs, options.as_of, keying, dialog_hash)
    return replace(source, conversations=_size_conversations(lookups, broadcasts)), broadcasts


def plan_of(
    counts: KeyCounts, checked: Checked, *, is_wide: bool = False, decide: DecideKeys = decide_keys
) -> PreparedPlan:
    """Decide for keys on the driver: those of `keys.KEY` or, where ``is_wide``, of `keys.PATH_KEY`.

    The plan is keyed by whatever messages look it up. ``decide`` as `compile_messages` has it.
    """
    keys = counts.keys
    if is_wide:
        services = {*keys.values["key_service"], *keys.values["key_from"]}
        return as_plan(keys, follow_keys(keys, network_of(checked.settings, services)))
    decided = decide(keys, checked.instances_for(keys.values["key_service"]))
    if counts.texts is None:
        return as_plan(keys, decided)
    numbers = [decided.numbers[place] for place in counts.texts.keys]
    return as_plan(counts.texts.rows, replace(decided, key=TEXTS, numbers=numbers))


def with_plan(
    counted: KeyPass, plan: RoutingPlan, options: Options, keeper: keeping.Keeper, clock: StageClock
) -> Job:
    """Return the job of a plan, with the requests that messages open or wait for."""
    broadcasts = counted.broadcasts
    fits = plan.size <= broadcasts.limit
    if not fits:
        broadcasts.notes.append(
            f"the routing plan takes {plan.size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )
    messages = counted.source.resolvable(checks_rows=counted.may_reject, checks_scopes=counted.has_strays)
    choices = results.choose(messages, plan, counted.source.dialog_hash, fits=fits)
    job = Job(counted, plan, choices, options, keeper)
    if not job.may_ask:
        return job
    with clock.stage("requests"):
        return replace(job, requests=find_requests(job))


def _size_dialogs(lookups: Lookups, broadcasts: Broadcasts) -> Dialogs | None:
    """The dialogs that matter, if there are any."""
    dialogs, count = lookups.dialogs, lookups.checked.dialog_rows
    if dialogs is None:
        return None
    return Dialogs(broadcasts.of_size(f"{count} dialogs", dialogs, count * _DIALOG), lookups.checked.ending > 0)


def _size_conversations(lookups: Lookups, broadcasts: Broadcasts) -> Side | None:
    """The conversations whose requests are on record, if there are any."""
    if not lookups.waiting_conversations:
        return None
    size = len(lookups.waiting_conversations) * _CONVERSATION
    return broadcasts.of_size("the conversations of requests on record", lookups.conversations, size)
