"""Messages × plan → resolved routes: narrow, and no shuffle of messages as long as all sides can be broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages import ids
from routing.messages.dialog_hash import DialogHash
from routing.messages.job import Job
from routing.messages.keying import look_up
from routing.messages.rejecting import add_reasons
from routing.messages.timelines import TIMELINE, Plan
from routing.schemas import REJECTED_MESSAGES, RESOLVED_ROUTES
from routing.storage.conform import in_shape, no_rows
from routing.storage.joining import Side, side_of
from routing.terms import MSDB, MatchingStep, Outcome, Reason

CHOSEN = (
    "broker_instance",
    "outcome",
    "reason",
    "matching_step",
    "route_name",
    "address",
    "mirror_address",
    "destination_database",
    "alternative_routes",
    "rerouted_from",
)

UNSEEN = (
    "a message has a routing key that the first pass over the messages did not see: they changed while the run was"
    " at work"
)


def choose(
    keyed: DataFrame, plan: Plan, dialog_hash: DialogHash, *, fits: bool, is_rejected: Column | None = None
) -> DataFrame:
    """Keyed messages with their choice (column ``choice``, such as `plan.CHOICE`).

    Those that are rejected, where any still is among them, have none.

    A key has one timeline, and that one row for a time, so the joins keep the number of messages. The dialog-ID
    hash takes one of the choices (sections 2.3 and 6). ``fits``: the plan is broadcast.
    """
    on: Sequence[str] = plan.key
    if plan.keys is not None:
        numbers = side_of(plan.keys, fits=fits)
        keyed, on = look_up(keyed, numbers.with_hint(), plan.key, shuffled=not fits), [TIMELINE]
    side = side_of(plan.rows.withColumnRenamed("valid_from", "plan_from"), fits=fits)
    t = F.col("decided_at")
    starts = F.col("plan_from").isNull() | (F.col("plan_from") <= t)
    ends = F.col("valid_to").isNull() | (t < F.col("valid_to"))
    in_time = starts & ends if plan.uses.has_times else None
    joined = _refuse_unseen(look_up(keyed, side.with_hint(), on, in_time, shuffled=not fits), is_rejected)
    count = F.size("choices")
    bucket = F.when(count == 1, F.lit(0)).otherwise(
        F.pmod(dialog_hash(F.col("conversation_id")), count).cast("int")
    )
    return joined.withColumn("choice", F.get("choices", bucket)).drop("choices")


def _refuse_unseen(joined: DataFrame, is_rejected: Column | None) -> DataFrame:
    """The same messages; a pass that meets one whose key is not in the plan fails, and commits nothing.

    The pass that counted the keys did not see it, since what has no versions may change between two passes.
    """
    is_known = F.col("choices").isNotNull()
    may_pass = is_known if is_rejected is None else is_known | is_rejected
    return joined.withColumn("choices", F.when(may_pass, F.col("choices")).otherwise(F.raise_error(F.lit(UNSEEN))))


def add_openers(messages: DataFrame, opened: Side, *, in_msdb: bool) -> DataFrame:
    """Chosen messages with what becomes of step 4: columns opens (in the scope) and opens_in_msdb.

    ``opened`` holds the messages that open a request (`openers.openers`), distinct, so the joins keep the
    number of messages; ``in_msdb`` whether any may do so after coming back to its instance.
    """
    scope = F.coalesce("database_name", F.lit(MSDB))
    first = _add_opener(messages, opened, F.when(F.col("choice.asks"), scope), "opens")
    if not in_msdb:
        return first.withColumn("opens_in_msdb", F.lit(False))
    return _add_opener(first, opened, F.when(F.col("choice.asks_msdb"), MSDB), "opens_in_msdb")


def _add_opener(messages: DataFrame, opened: Side, database: Column, name: str) -> DataFrame:
    marked = opened.with_hint().withColumnRenamed("ask_database", "asks_in").withColumn(name, F.lit(True))
    on = ["instance_name", "asks_in", "to_service_name", "decided_at", "message_id"]
    joined = look_up(messages.withColumn("asks_in", database), marked, on, shuffled=not opened.fits)
    return joined.withColumn(name, F.coalesce(name, F.lit(False))).drop("asks_in")


def resolved_routes(job: Job, openers: Side | None, attempt: Column | None = None) -> DataFrame:
    """The rows of ``resolved_routes``, one for each message to be resolved (rule book, all sections).

    ``openers`` as `openers.find_openers` gives them; ``attempt`` is 1 where it is not given.
    """
    messages, values = decide(job, job.choices, openers)
    values |= {"to_broker_instance": F.col("named_broker"), "run_id": F.lit(job.options.run_id)}
    values["attempt"] = F.lit(1) if attempt is None else attempt
    return in_shape(messages, RESOLVED_ROUTES, values)


def decide(job: Job, chosen: DataFrame, openers: Side | None) -> tuple[DataFrame, dict[str, Column]]:
    """Chosen messages, and of them the values of `CHOSEN`: what is decided.

    The plan's choice stands but for three things that are a message's own: its hops, a request that it opens (step
    4), and the end of its dialog, which comes before all else. What cannot happen in this job is left out.
    """
    messages, uses, dialogs = chosen, job.plan.uses, job.source.dialogs
    if openers is not None:
        messages = add_openers(messages, openers, in_msdb=uses.asks_msdb)
    choice = F.col("choice")
    values = {name: choice[name] for name in CHOSEN}
    values["broker_instance"] = F.coalesce(choice["broker_instance"], F.col("bound_broker"))
    if uses.reads_addresses:
        in_name = ids.address_in_name(F.col("to_service_name"))
        values["address"] = F.when(choice["reads_address"], in_name).otherwise(choice["address"])
    no_hops = choice["counts_hops"] & (F.col("hops_remaining") <= 0)
    values["outcome"] = F.when(no_hops, str(Outcome.DROPPED)).otherwise(values["outcome"])
    values["reason"] = F.when(no_hops, str(Reason.HOP_LIMIT)).otherwise(values["reason"])
    if openers is not None:
        values = _unless_asking(values)
    if dialogs is not None and dialogs.end:
        values = _unless(F.col("is_expired"), values, Outcome.DROPPED, Reason.DIALOG_EXPIRED)
        values["broker_instance"] = F.when(F.col("is_expired"), F.col("bound_broker")).otherwise(
            values["broker_instance"]
        )
    return messages, values


def _unless_asking(values: dict[str, Column]) -> dict[str, Column]:
    """The values with ROUTE_REQUESTED for messages that open a request.

    One that does so in msdb keeps the id picked before and the route that led it back.
    """
    here, in_msdb = F.col("opens"), F.col("opens_in_msdb")
    asked = _unless(here | in_msdb, values, Outcome.DELAYED, Reason.ROUTE_REQUESTED)
    step = int(MatchingStep.ROUTE_REQUEST)
    asked["matching_step"] = F.when(here | in_msdb, F.lit(step)).otherwise(values["matching_step"])
    asked["broker_instance"] = F.when(here, F.col("bound_broker")).otherwise(values["broker_instance"])
    asked["rerouted_from"] = F.when(~here, values["rerouted_from"])
    return asked


def _unless(is_other: Column, values: dict[str, Column], outcome: Outcome, reason: Reason) -> dict[str, Column]:
    """The values where a message goes the plan's way; else this outcome and reason, and no route at all."""
    stands = {name: F.when(~is_other, value) for name, value in values.items()}
    stands["outcome"] = F.when(is_other, str(outcome)).otherwise(values["outcome"])
    stands["reason"] = F.when(is_other, str(reason)).otherwise(values["reason"])
    return stands


def rejected_messages(job: Job) -> DataFrame:
    """The rows of ``rejected_messages``: messages that cannot be resolved, as read, with reasons.

    Where there can be none, the messages are not read again.
    """
    messages = job.source.messages
    if not job.counted.may_reject:
        return no_rows(messages.sparkSession, REJECTED_MESSAGES)
    faulty = add_reasons(messages, job.source.lookups.scopes).where(F.size("reasons") > 0)
    return in_shape(faulty, REJECTED_MESSAGES, {"run_id": F.lit(job.options.run_id)})
