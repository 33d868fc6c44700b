"""From checked tables to a job: the keys of its messages, what is decided for them, and each message's choice.

The one room that acts on frames before anything is written: it collects instances and databases, the distinct
routing keys, and the routes and services that can concern these.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.config import size_in_bytes
from routing.messages import results, validate
from routing.messages.dialog_hash import IMPLEMENTATIONS
from routing.messages.job import CheckedTables, Dialogs, Job, KeyPass, Options, Source
from routing.messages.lookups import configuration, facts
from routing.messages.plan import routing_plan
from routing.sessions import session
from routing.storage import frames, keeping
from routing.storage.frames import collect
from routing.storage.joining import Broadcasts

# A dialog's size in memory, roughly.
_DIALOG = 350


def check(tables: Mapping[str, DataFrame]) -> CheckedTables:
    """Check conformed frames, and look through them meanwhile. Raises InputError."""
    # The faults come first: what else a faulty frame leads to is of no interest.
    _, known = frames.all_of(
        tables["routes"].sparkSession, lambda: validate.check_rows(tables), lambda: facts(tables)
    )
    return CheckedTables(tables, known)


def count_keys(
    known: CheckedTables, options: Options, keeper: keeping.Keeper, notes: list[str] | None = None
) -> KeyPass:
    """One pass over the messages, a hash aggregate: their keys, and how many are read and to be rejected.

    What ``keeper`` is given here must stay until the frames of the job have been read; ``notes`` grows until then.
    """
    messages = known.frames["messages"]
    if options.dialog_hash == "udf":
        session.check_udf(messages.sparkSession)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit), [] if notes is None else notes)
    # What several passes read, and is too large to be rows of the driver.
    kept = {"kept": keeper.cached} if known.facts.is_large else {}
    settings = configuration(known.frames, known.facts, **kept)
    source = Source(messages, settings, _size_dialogs(settings.dialogs, broadcasts), options.as_of)
    found = collect(source.keys())
    read, valid = sum(found.values["rows"]), sum(found.values["valid"])
    return KeyPass(source, broadcasts, found.where("valid"), read, read - valid)


def compile_job(counted: KeyPass, options: Options, keeper: keeping.Keeper) -> Job:
    """Decide for the keys of a job, on the driver."""
    source, broadcasts, keys = counted.source, counted.broadcasts, counted.keys
    instances = source.settings.instances(keys.values["key_service"])
    plan = routing_plan(source.messages.sparkSession, keys, instances, keeper)
    if plan.size > broadcasts.limit:
        broadcasts.notes.append(
            f"the routing plan takes {plan.size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )
    fits = plan.size <= broadcasts.limit
    messages = source.resolvable(may_reject=counted.rows_rejected > 0)
    choices = results.choose(messages, plan, IMPLEMENTATIONS[options.dialog_hash], fits=fits)
    return Job(counted, plan, choices, options, keeper)


def _size_dialogs(dialogs: DataFrame | None, broadcasts: Broadcasts) -> Dialogs | None:
    """The dialogs that matter, if there are any."""
    if dialogs is None:
        return None
    counts = dialogs.agg(F.count(F.lit(1)).alias("rows"), F.count("dialog_lifetime").alias("ending")).collect()[0]
    if not counts["rows"]:
        return None
    count = int(counts["rows"])
    return Dialogs(broadcasts.of_size(f"{count} dialogs", dialogs, count * _DIALOG), int(counts["ending"]) > 0)
