"""Questions judged by the very code of `resolve`: its job, with a plan that keeps what led to each choice."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing import compiling, requests, resolving
from routing import keys as routing_keys
from routing.config import size_in_bytes
from routing.dialog_hash import IMPLEMENTATIONS
from routing.joining import Broadcasts, Side, bounded, side_of
from routing.keeping import Keeper
from routing.plan import routing_plan
from routing.schemas import RESOLVED_ROUTES
from routing.terms import ZERO_GUID

# What a questions frame has besides the columns of messages. any_dialog: no conversation is given, so every
# broker id that step 3 may pick is told.
MARKS = ("question", "is_described", "any_dialog")


@dataclass(frozen=True)
class Judged:
    """What the questions come to; each frame has the column question.

    traced: the message as the rules read it, its choice with the trace, opens, opens_in_msdb, acknowledged
        (the broker id that it would have without the dialog's far_broker_instance) and undecided (the dialog
        decides, and is not given); one row a question.
    verdicts: the columns of resolved_routes, null where they depend on a dialog that is not given; one row a
        question that can be judged.
    possible: the same for every broker id that a dialog may get; at least one row a question.
    requests: instance_name, database_name, service, requested_at, message_id, ended_at: on record, and those
        that other messages open; None where no scope asks for routes.
    """

    job: compiling.Compiled
    traced: DataFrame
    verdicts: DataFrame
    possible: DataFrame
    requests: DataFrame | None


def judged(tables: compiling.Checked, questions: DataFrame, options: compiling.Options, keeper: Keeper) -> Judged:
    """Judge questions against checked tables.

    ``questions`` has the columns of messages and `MARKS`; the messages of ``tables`` are those that may ask
    for a route before them (rule book, section 5). A query has its price, however small, so there are few: the
    questions as the rules read them, the plan, the requests that messages open, and the choices.
    """
    known = questions.withColumn(
        "conversation_id", F.when(F.col("any_dialog"), ZERO_GUID).otherwise(F.col("conversation_id"))
    )
    messages = known.unionByName(tables.frames["messages"], allowMissingColumns=True)
    job = _job(tables, messages, options, keeper)
    keyed = keeper.keep(_keyed(job))
    # Other messages matter only where routes are asked for.
    asking = job.keyed(job.valid()) if job.uses.requests else keyed
    keys = asking.select(*routing_keys.KEY).distinct()
    job.plan = keeper.keep(routing_plan(keys, job.settings, job.uses, traced=True))
    opened = job.opened()
    every = _every_choice(job, keyed)
    counted = every.groupBy("question").agg(F.count("*").alias("choices"))
    # question numbers the questions, so the join keeps their number.
    chosen = _chosen(job, keyed, job.plan).join(counted, "question", how="left")
    both = keeper.keep_together(
        {"chosen": _with_openers(job, chosen, opened), "every": _openers_of_all(job, every, opened)}
    )
    traced = both["chosen"].withColumn("undecided", F.col("any_dialog") & (F.col("choices") > 1))
    return Judged(
        job,
        traced=traced,
        verdicts=_verdicts(job, traced, both["every"]),
        possible=_resolved(job, both["every"]),
        requests=None if opened is None else _known_requests(job, opened.rows),
    )


def _job(
    tables: compiling.Checked, messages: DataFrame, options: compiling.Options, keeper: Keeper
) -> compiling.Compiled:
    """The job of `compiling.compiled`, its plan still to be made; messages are few, so none are counted."""
    settings, uses = tables.settings, tables.uses
    dialogs = None
    if settings.dialogs is not None:
        # Where messages may ask for routes all dialogs of the instance are here, else those of the questions.
        dialogs = compiling.Dialogs(side_of(settings.dialogs, fits=not uses.requests), end=True)
    broadcasts = Broadcasts(size_in_bytes(options.broadcast_limit))
    return compiling.Compiled(messages, settings, uses, dialogs, options, keeper, broadcasts)


def _keyed(job: compiling.Compiled) -> DataFrame:
    """The questions that can be judged, bound and keyed.

    acknowledged is the id that each is bound to when the dialog's far_broker_instance is left out.
    """
    valid = job.valid().where(F.col("question").isNotNull())
    side = None
    if job.dialogs is not None:
        side = job.dialogs.side
        side = replace(side, rows=side.rows.withColumn("far_broker", F.lit(None).cast("string")))
    bound = routing_keys.bound(routing_keys.in_dialog(valid, side))
    acknowledged = bound.select("question", F.col("bound_broker").alias("acknowledged"))
    # question numbers the questions, so the join keeps their number.
    return job.keyed(valid).join(bounded(acknowledged), "question", how="left")


def _chosen(job: compiling.Compiled, keyed: DataFrame, plan: DataFrame) -> DataFrame:
    return resolving.chosen(keyed, plan, IMPLEMENTATIONS[job.options.dialog_hash], versions=job.uses.versions)


def _every_choice(job: compiling.Compiled, keyed: DataFrame) -> DataFrame:
    """The questions with each choice of their key and time, of which the dialog hash takes one."""
    whole = F.array(F.struct(F.col("choices").alias("every")))
    every = _chosen(job, keyed, job.plan.withColumn("choices", whole))
    return every.withColumn("choice", F.explode("choice.every"))


def _with_openers(job: compiling.Compiled, messages: DataFrame, opened: Side | None) -> DataFrame:
    if opened is None:
        return messages.withColumns({"opens": F.lit(False), "opens_in_msdb": F.lit(False)})
    return resolving.with_openers(messages, opened, in_msdb=job.uses.own_addresses)


def _openers_of_all(job: compiling.Compiled, every: DataFrame, opened: Side | None) -> DataFrame:
    """Every choice with what becomes of step 4.

    A choice that comes back and asks in msdb is held against the requests on record and those that messages
    really open.
    """
    if opened is not None:
        asking = requests.asking_in_scope(every)
        if job.uses.own_addresses:
            asking = asking.unionByName(requests.asking_in_msdb(every))
        request = F.struct("requested_at", "message_id", "ended_at")
        grouped = _known_requests(job, opened.rows).groupBy("instance_name", "database_name", "service")
        record = job.keeper.keep(grouped.agg(F.collect_list(request).alias("requests")))
        known = job.broadcasts.side("the requests on record", record)
        # As many as the questions' choices, at most.
        opened = side_of(requests.openers(asking, known), fits=True)
    return _with_openers(job, every, opened)


def _resolved(job: compiling.Compiled, messages: DataFrame) -> DataFrame:
    """The rows of resolved_routes with their question, which takes the way through them as the attempt."""
    rows = resolving.resolved_routes(
        messages,
        job.options.run_id,
        F.col("question"),
        may_expire=job.dialogs is not None and job.dialogs.end,
        may_ask=job.uses.requests,
        transport=job.uses.transport,
    )
    numbered = rows.withColumns({"question": F.col("attempt"), "attempt": F.lit(1)})
    return numbered.select("question", *RESOLVED_ROUTES.names)


def _verdicts(job: compiling.Compiled, traced: DataFrame, every: DataFrame) -> DataFrame:
    """One row a question; where no dialog is given, what all choices agree in."""
    agreed = [
        F.when(F.size(F.collect_set(F.struct(name))) == 1, F.first(name)).alias(name)
        for name in RESOLVED_ROUTES.names
    ]
    merged = _resolved(job, every.where("any_dialog")).groupBy("question").agg(*agreed)
    nothing = F.lit(None).cast("string")
    return _resolved(job, traced.where("NOT any_dialog")).unionByName(
        merged.withColumn("conversation_id", nothing)
    )


def _known_requests(job: compiling.Compiled, opened: DataFrame) -> DataFrame:
    """The requests on record, and those that messages open without being on record."""
    columns = ("instance_name", "database_name", "service", "requested_at", "message_id", "ended_at")
    new = opened.select(
        "instance_name",
        F.col("ask_database").alias("database_name"),
        F.col("to_service_name").alias("service"),
        F.col("decided_at").alias("requested_at"),
        "message_id",
        F.lit(None).cast("timestamp").alias("ended_at"),
    )
    if job.settings.requests is None:
        return new
    record = job.settings.requests.withColumn("request", F.explode("requests")).select(
        *columns[:3], *(F.col(f"request.{name}").alias(name) for name in columns[3:])
    )
    return record.unionByName(new.join(record, list(columns[:5]), how="left_anti"))
