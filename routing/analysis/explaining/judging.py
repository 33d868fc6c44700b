"""Questions judged by the very code of `resolve`: its job, with a plan that keeps what led to each choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing import compiling, requests, resolving
from routing import keys as routing_keys
from routing.dialog_hash import IMPLEMENTATIONS
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


def judged(
    frames: Mapping[str, DataFrame],
    questions: DataFrame,
    options: compiling.Options,
) -> Judged:
    """Judge questions against conformed and checked tables.

    ``questions`` has the columns of messages and `MARKS`; the messages of ``frames`` are those that may ask
    for a route before them (rule book, section 5).
    """
    known = questions.withColumn(
        "conversation_id", F.when(F.col("any_dialog"), ZERO_GUID).otherwise(F.col("conversation_id"))
    )
    messages = known.unionByName(frames["messages"], allowMissingColumns=True)
    job = _job({**frames, "messages": messages}, options)
    opened = job.opened()
    if opened is not None:
        opened = job.keep(opened)
    chosen = _with_openers(job, job.chosen().where(F.col("question").isNotNull()), opened)
    every = _every_choice(job)
    possible = job.keep(_possible(job, every, opened))
    counted = possible.groupBy("question").agg(F.count("*").alias("choices"))
    # question numbers the questions, so the joins keep their number.
    traced = (
        chosen.join(counted, "question", how="left")
        .join(_acknowledged(job), "question", how="left")
        .withColumn("undecided", F.col("any_dialog") & (F.col("choices") > 1))
    )
    return Judged(
        job,
        traced=job.keep(traced),
        verdicts=job.keep(_verdicts(job, questions, opened, possible)),
        possible=possible,
        requests=None if opened is None else _known_requests(job, opened),
    )


def _job(frames: Mapping[str, DataFrame], options: compiling.Options) -> compiling.Compiled:
    """The job of `compiling.compiled` with a traced plan; messages are few, so nothing is counted beforehand."""
    settings, uses = compiling.prepare(frames)
    dialogs = None
    if settings.dialogs is not None:
        # Where messages may ask for routes all dialogs of the instance are here, else those of the questions.
        dialogs = compiling.Dialogs(settings.dialogs, fit=not uses.requests, end=True)
    job = compiling.Compiled(frames["messages"], settings, uses, dialogs, options)
    # Not counted, but not ruled out: every message is checked.
    job.rows_rejected = 1
    keys = job.keyed(job.valid()).select(*routing_keys.KEY).distinct()
    job.plan = job.keep(routing_plan(keys, settings, uses, traced=True))
    return job


def _with_openers(job: compiling.Compiled, messages: DataFrame, opened: DataFrame | None) -> DataFrame:
    if opened is None:
        return messages.withColumns({"opens": F.lit(False), "opens_in_msdb": F.lit(False)})
    return resolving.with_openers(messages, opened, in_msdb=job.uses.own_addresses)


def _every_choice(job: compiling.Compiled) -> DataFrame:
    """The questions with each choice of their key and time, of which the dialog hash takes one."""
    whole = F.array(F.struct(F.col("choices").alias("every")))
    every = resolving.chosen(
        job.keyed(job.valid()).where(F.col("question").isNotNull()),
        job.plan.withColumn("choices", whole),
        IMPLEMENTATIONS[job.options.dialog_hash],
        versions=job.uses.versions,
    )
    return every.withColumn("choice", F.explode("choice.every"))


def _possible(job: compiling.Compiled, every: DataFrame, opened: DataFrame | None) -> DataFrame:
    """The verdict for every choice.

    A choice that comes back and asks in msdb is held against the requests on record and those that messages
    really open.
    """
    if opened is not None:
        asking = requests.asking_in_scope(every)
        if job.uses.own_addresses:
            asking = asking.unionByName(requests.asking_in_msdb(every))
        request = F.struct("requested_at", "message_id", "ended_at")
        record = _known_requests(job, opened).groupBy("instance_name", "database_name", "service")
        opened = requests.openers(asking, record.agg(F.collect_list(request).alias("requests")))
    rows = resolving.resolved_routes(
        _with_openers(job, every, opened),
        job.options.run_id,
        F.col("question"),
        may_expire=job.dialogs is not None and job.dialogs.end,
        may_ask=opened is not None,
        transport=job.uses.transport,
    )
    return _numbered(rows)


def _numbered(resolved: DataFrame) -> DataFrame:
    """Rows of resolved_routes with their question, which takes the way through it as the attempt."""
    numbered = resolved.where("attempt IS NOT NULL").withColumns(
        {"question": F.col("attempt"), "attempt": F.lit(1)}
    )
    return numbered.select("question", *RESOLVED_ROUTES.names)


def _verdicts(
    job: compiling.Compiled, questions: DataFrame, opened: DataFrame | None, possible: DataFrame
) -> DataFrame:
    open_questions = questions.where("any_dialog").select("question")
    resolved = _numbered(job.resolved(opened, attempt=F.col("question")))
    agreed = [
        F.when(F.size(F.collect_set(F.struct(name))) == 1, F.first(name)).alias(name)
        for name in RESOLVED_ROUTES.names
    ]
    merged = possible.join(open_questions, "question", how="left_semi").groupBy("question").agg(*agreed)
    nothing = F.lit(None).cast("string")
    return resolved.join(open_questions, "question", how="left_anti").unionByName(
        merged.withColumn("conversation_id", nothing)
    )


def _acknowledged(job: compiling.Compiled) -> DataFrame:
    """The id that each question is bound to when the dialog's far_broker_instance is left out."""
    messages = job.valid().where(F.col("question").isNotNull())
    rows = None
    if job.dialogs is not None:
        rows = job.dialogs.rows.withColumn("far_broker", F.lit(None).cast("string"))
    bound = routing_keys.bound(messages, rows, broadcast=job.dialogs is None or job.dialogs.fit)
    return bound.select("question", F.col("bound_broker").alias("acknowledged"))


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
