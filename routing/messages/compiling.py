"""From a configuration and messages to a job: their keys, what is decided for these, and each message's choice.

The one room that acts on the messages before anything is written: it collects their distinct routing keys.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from routing.config import size_in_bytes
from routing.messages import results
from routing.messages.dialog_hash import IMPLEMENTATIONS, check_packages
from routing.messages.job import Dialogs, Job, KeyPass, Options, Source
from routing.messages.key_columns import TEXTS
from routing.messages.keying import OF_INSTANCE, OF_TEXTS, KeyCounts, Keying
from routing.messages.lookups import Lookups
from routing.messages.path_plan import follow_keys
from routing.messages.plan import decide_keys
from routing.messages.timelines import Plan, Prepared, as_plan
from routing.messages.validate import Checked
from routing.sessions import session
from routing.storage import keeping
from routing.storage.frames import collect
from routing.storage.joining import Broadcasts

# A dialog's size in memory, roughly.
_DIALOG = 350


def count_keys(
    messages: DataFrame,
    lookups: Lookups,
    options: Options,
    notes: list[str] | None = None,
    keying: Keying = OF_INSTANCE,
    *,
    is_exact: bool = False,
) -> KeyPass:
    """One pass over the messages, a hash aggregate: their keys, and how many are read.

    ``is_exact``: how many are to be rejected is counted too. ``notes`` grows until the frames of the job have been
    read.
    """
    source, broadcasts = _source(messages, lookups, options, notes, keying)
    found = collect(source.keys(is_exact=is_exact))
    read, valid = sum(found.values["rows"]), sum(found.values["valid"])
    counts = KeyCounts(found.where("valid"), read, valid, is_exact)
    return KeyPass(source, broadcasts, counts, options.may_change)


def with_keys(
    counts: KeyCounts, messages: DataFrame, lookups: Lookups, options: Options, notes: list[str] | None = None
) -> KeyPass:
    """Messages whose keys (`key_columns.KEY`) have been found without Spark; ``notes`` as above."""
    keying = OF_INSTANCE if counts.texts is None else OF_TEXTS
    source, broadcasts = _source(messages, lookups, options, notes, keying)
    source = replace(source, is_folded=counts.is_folded)
    return KeyPass(source, broadcasts, counts, options.may_change)


def _source(
    messages: DataFrame, lookups: Lookups, options: Options, notes: list[str] | None, keying: Keying
) -> tuple[Source, Broadcasts]:
    if options.dialog_hash == "udf":
        check_packages()
        session.check_udf(messages.sparkSession)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit), [] if notes is None else notes)
    return Source(messages, lookups, _size_dialogs(lookups, broadcasts), options.as_of, keying), broadcasts


def compile_job(counted: KeyPass, options: Options, keeper: keeping.Keeper) -> Job:
    """Decide for the keys of a job, on the driver."""
    lookups = counted.source.lookups
    plan = plan_of(counted.counts, lookups.checked).on(lookups.spark, keeper)
    return with_plan(counted, plan, options, keeper)


def plan_of(counts: KeyCounts, checked: Checked) -> Prepared:
    """Decide for keys (`key_columns.KEY`); the plan is keyed by whatever messages look it up."""
    decided = decide_keys(counts.keys, checked.instances_for(counts.keys.values["key_service"]))
    if counts.texts is None:
        return as_plan(counts.keys, decided)
    numbers = [decided.numbers[place] for place in counts.texts.keys]
    return as_plan(counts.texts.rows, replace(decided, key=TEXTS, numbers=numbers))


def compile_paths(counted: KeyPass, options: Options, keeper: keeping.Keeper) -> Job:
    """Follow the keys of a job (`path_keying.OF_ESTATE`) there and back, on the driver."""
    source, keys = counted.source, counted.counts.keys
    services = {*keys.values["key_service"], *keys.values["key_from"]}
    network = source.lookups.network(services)
    plan = as_plan(keys, follow_keys(keys, network)).on(source.lookups.spark, keeper)
    return with_plan(counted, plan, options, keeper)


def with_plan(counted: KeyPass, plan: Plan, options: Options, keeper: keeping.Keeper) -> Job:
    """The job of a plan."""
    broadcasts = counted.broadcasts
    fits = plan.size <= broadcasts.limit
    if not fits:
        broadcasts.notes.append(
            f"the routing plan takes {plan.size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )
    messages = counted.source.resolvable(checks_rows=counted.may_reject, checks_scopes=counted.has_strays)
    choices = results.choose(messages, plan, IMPLEMENTATIONS[options.dialog_hash], fits=fits)
    return Job(counted, plan, choices, options, keeper)


def _size_dialogs(lookups: Lookups, broadcasts: Broadcasts) -> Dialogs | None:
    """The dialogs that matter, if there are any."""
    dialogs, count = lookups.dialogs, lookups.checked.dialog_rows
    if dialogs is None:
        return None
    return Dialogs(broadcasts.of_size(f"{count} dialogs", dialogs, count * _DIALOG), lookups.checked.ending > 0)
