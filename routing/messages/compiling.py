"""From a configuration and messages to a job: their keys, what is decided for these, and each message's choice.

The one room that acts on the messages before anything is written: it collects their distinct routing keys.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from routing.config import size_in_bytes
from routing.messages import results
from routing.messages.dialog_hash import IMPLEMENTATIONS, check_packages
from routing.messages.job import Dialogs, Job, KeyPass, Options, Source
from routing.messages.keying import OF_INSTANCE, Keying
from routing.messages.lookups import Lookups
from routing.messages.path_plan import follow_keys
from routing.messages.plan import decide_keys
from routing.messages.timelines import Plan, as_plan
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
) -> KeyPass:
    """One pass over the messages, a hash aggregate: their keys, and how many are read and to be rejected.

    ``notes`` grows until the frames of the job have been read.
    """
    if options.dialog_hash == "udf":
        check_packages()
        session.check_udf(messages.sparkSession)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit), [] if notes is None else notes)
    source = Source(messages, lookups, _size_dialogs(lookups, broadcasts), options.as_of, keying)
    found = collect(source.keys())
    read, valid = sum(found.values["rows"]), sum(found.values["valid"])
    return KeyPass(source, broadcasts, found.where("valid"), read, read - valid, options.may_change)


def compile_job(counted: KeyPass, options: Options, keeper: keeping.Keeper) -> Job:
    """Decide for the keys of a job, on the driver."""
    source, keys = counted.source, counted.keys
    instances = source.lookups.instances(keys.values["key_service"])
    plan = as_plan(source.lookups.spark, keys, decide_keys(keys, instances), keeper)
    return _choose(counted, plan, options, keeper)


def compile_paths(counted: KeyPass, options: Options, keeper: keeping.Keeper) -> Job:
    """Follow the keys of a job (`path_keying.OF_ESTATE`) there and back, on the driver."""
    source, keys = counted.source, counted.keys
    services = {*keys.values["key_service"], *keys.values["key_from"]}
    network = source.lookups.network(services)
    plan = as_plan(source.lookups.spark, keys, follow_keys(keys, network), keeper)
    return _choose(counted, plan, options, keeper)


def _choose(counted: KeyPass, plan: Plan, options: Options, keeper: keeping.Keeper) -> Job:
    """The job of a plan."""
    broadcasts = counted.broadcasts
    fits = plan.size <= broadcasts.limit
    if not fits:
        broadcasts.notes.append(
            f"the routing plan takes {plan.size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )
    messages = counted.source.resolvable(may_reject=counted.may_reject)
    choices = results.choose(messages, plan, IMPLEMENTATIONS[options.dialog_hash], fits=fits)
    return Job(counted, plan, choices, options, keeper)


def _size_dialogs(lookups: Lookups, broadcasts: Broadcasts) -> Dialogs | None:
    """The dialogs that matter, if there are any."""
    dialogs, count = lookups.dialogs, lookups.checked.dialog_rows
    if dialogs is None:
        return None
    return Dialogs(broadcasts.of_size(f"{count} dialogs", dialogs, count * _DIALOG), lookups.checked.ending > 0)
