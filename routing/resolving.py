"""Messages × plan → resolved routes: narrow, broadcast joins only, no shuffle of messages."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text, validate
from routing.configuration import Configuration
from routing.dialog_hash import DialogHash
from routing.keys import KEY
from routing.schemas import REJECTED_MESSAGES, RESOLVED_ROUTES
from routing.terms import MSDB, MatchingStep, Outcome, Reason

_FROM_PLAN = ("route_name", "address", "mirror_address", "destination_database", "alternative_routes")


def chosen(
    keyed: DataFrame, plan: DataFrame, dialog_hash: DialogHash, *, versions: bool, broadcast: bool = True
) -> DataFrame:
    """Keyed messages with their choice (column ``choice``, see `plan.CHOICE`).

    A key and a time have one row in the plan, so the join keeps the number of messages. The dialog-ID hash
    takes one of the choices (sections 2.3 and 6). ``versions`` false: the plan has no bounds.
    """
    renamed = plan.withColumnsRenamed({**{name: f"plan_{name}" for name in KEY}, "valid_from": "plan_from"})
    side = F.broadcast(renamed) if broadcast else renamed.hint("shuffle_hash")
    same_key = [F.col(name) == F.col(f"plan_{name}") for name in KEY]
    t = F.col("decided_at")
    in_time = [
        F.col("plan_from").isNull() | (F.col("plan_from") <= t),
        F.col("valid_to").isNull() | (t < F.col("valid_to")),
    ]
    joined = keyed.join(side, reduce(Column.__and__, same_key + (in_time if versions else [])), how="left")
    count = F.size("choices")
    bucket = F.when(count == 1, F.lit(0)).otherwise(
        F.pmod(dialog_hash(F.col("conversation_id")), count).cast("int")
    )
    return joined.withColumn("choice", F.get("choices", bucket)).drop("choices")


def with_openers(messages: DataFrame, opened: DataFrame | None, *, in_msdb: bool) -> DataFrame:
    """Chosen messages with what becomes of step 4: columns opens (in the scope) and opens_in_msdb.

    ``opened`` holds the messages that open a request (`requests.openers`), distinct, so the joins keep the
    number of messages; ``in_msdb`` whether any may do so after coming back to its instance.
    """
    if opened is None:
        return messages.withColumns({"opens": F.lit(False), "opens_in_msdb": F.lit(False)})
    scope = F.coalesce("database_name", F.lit(MSDB))
    first = _opens(messages, opened, F.when(F.col("choice.asks"), scope), "opens")
    if not in_msdb:
        return first.withColumn("opens_in_msdb", F.lit(False))
    return _opens(first, opened, F.when(F.col("choice.asks_msdb"), MSDB), "opens_in_msdb")


def _opens(messages: DataFrame, opened: DataFrame, database: Column, name: str) -> DataFrame:
    marked = opened.withColumnRenamed("ask_database", "asks_in").withColumn(name, F.lit(True))
    on = ["instance_name", "asks_in", "to_service_name", "decided_at", "message_id"]
    joined = messages.withColumn("asks_in", database).join(F.broadcast(marked), on, how="left")
    return joined.withColumn(name, F.coalesce(name, F.lit(False))).drop("asks_in")


def resolved_routes(messages: DataFrame, run_id: str, attempt: Column) -> DataFrame:
    """The rows of ``resolved_routes``, one for each valid message (rule book, all sections).

    ``messages`` has the columns of `keys.keyed`, choice, opens and opens_in_msdb.
    """
    choice = F.col("choice")
    is_expired = F.col("is_expired")
    asks_here = F.col("opens") & ~is_expired
    asks_msdb = F.col("opens_in_msdb") & ~is_expired & ~asks_here
    asks = asks_here | asks_msdb
    stands = ~is_expired & ~asks
    no_hops = choice["counts_hops"] & F.coalesce(F.col("hops_remaining") <= 0, F.lit(False))
    picked = F.when(stands | asks_msdb, choice["broker_instance"])
    name_address = text.address_in_name(F.col("to_service_name"))
    values = {
        "to_broker_instance": F.col("named_broker"),
        "broker_instance": F.coalesce(picked, F.col("bound_broker")),
        "outcome": F.when(is_expired, str(Outcome.DROPPED))
        .when(asks, str(Outcome.DELAYED))
        .when(no_hops, str(Outcome.DROPPED))
        .when(stands, choice["outcome"]),
        "reason": F.when(is_expired, str(Reason.DIALOG_EXPIRED))
        .when(asks, str(Reason.ROUTE_REQUESTED))
        .when(no_hops, str(Reason.HOP_LIMIT))
        .when(stands, choice["reason"]),
        "matching_step": F.when(asks, F.lit(int(MatchingStep.ROUTE_REQUEST))).when(
            stands, choice["matching_step"]
        ),
        **{name: F.when(stands, choice[name]) for name in _FROM_PLAN},
        "rerouted_from": F.when(stands | asks_msdb, choice["rerouted_from"]),
        "run_id": F.lit(run_id),
        "attempt": attempt,
    }
    # All TRANSPORT routes of a step are one route, so that no alternative reads its address from a name.
    reads_name = stands & choice["reads_address"]
    values["address"] = F.when(reads_name, name_address).otherwise(values["address"])
    return messages.select(
        *(values.get(f.name, F.col(f.name)).cast(f.dataType).alias(f.name) for f in RESOLVED_ROUTES)
    )


def rejected_messages(messages: DataFrame, settings: Configuration, run_id: str) -> DataFrame:
    """The rows of ``rejected_messages``: conformed messages that cannot be resolved, as read, with reasons."""
    database = F.coalesce(text.empty_as_null(F.col("database_name")), F.lit(""))
    instances = settings.instances.select("instance_name", F.lit(True).alias("instance_is_known"))
    scopes = settings.scopes.select(
        "instance_name", F.col("database_name").alias("key_database"), F.lit(True).alias("database_is_known")
    )
    # Instances and scopes are distinct, so the joins keep the number of messages.
    known = (
        messages.withColumn("key_database", database)
        .join(F.broadcast(instances), "instance_name", how="left")
        .join(F.broadcast(scopes), ["instance_name", "key_database"], how="left")
    )
    codes = validate.message_faults(F.col("instance_is_known").isNotNull(), F.col("database_is_known").isNotNull())
    reasons = F.array_compact(F.array(*codes))
    values = {"reasons": F.col("reasons"), "run_id": F.lit(run_id)}
    return (
        known.withColumn("reasons", reasons)
        .where(F.size("reasons") > 0)
        .select(*(values.get(f.name, F.col(f.name)).cast(f.dataType).alias(f.name) for f in REJECTED_MESSAGES))
    )
