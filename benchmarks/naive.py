"""Resolve like a textbook: one broadcast join of the routes, ranking windows and a Python UDF.

It uses only the columns of ``resolved_routes`` from the package. docs/explanation/performance.md lists the rules
that it leaves out. The benchmark's data never needs them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

MSDB = "msdb"
_SEED = 42


def dialog_hash(conversation_id: str) -> int:
    """The dialog-ID hash: xxhash64 with seed 42, as a signed 64-bit integer."""
    import xxhash

    hashed: int = xxhash.xxh64_intdigest(conversation_id.encode(), _SEED)
    return hashed - (1 << 64) if hashed >> 63 else hashed


def resolved_routes(tables: Mapping[str, DataFrame], schema: StructType) -> DataFrame:
    """The rows of ``resolved_routes`` (its ``schema``), one a message."""
    messages = _bind(tables["messages"], tables.get("dialogs"))
    ranked = _best_route(_picked(_matched(messages, tables["routes"])))
    located = _located(ranked, tables["services"], tables["databases"])
    forwards = tables["instances"].select("instance_name", "is_message_forwarding_enabled")
    joined = located.join(F.broadcast(forwards), "instance_name", how="left")
    values = {
        **_decided(),
        "decided_at": F.col("enqueue_time"),
        "run_id": F.lit("naive"),
        "attempt": F.lit(1),
    }
    nothing = ("alternative_routes", "rerouted_from")
    values.update((name, F.lit(None)) for name in nothing)
    return joined.select(*(values.get(f.name, F.col(f.name)).cast(f.dataType).alias(f.name) for f in schema))


def _bind(messages: DataFrame, dialogs: DataFrame | None) -> DataFrame:
    """Section 0: the scope, and the broker instance that a message is bound to (column ``bound``)."""
    scoped = messages.withColumn("scope", F.coalesce("database_name", F.lit(MSDB)))
    scoped = scoped.withColumn("hash", F.udf(dialog_hash, "bigint", useArrow=False)("conversation_id"))
    if dialogs is None:
        return scoped.withColumn("bound", F.col("to_broker_instance"))
    ends = ["instance_name", "database_name", "conversation_id", "is_initiator"]
    ids = ["far_broker_instance", "acknowledged_at", "acknowledged_broker_instance"]
    joined = scoped.join(F.broadcast(dialogs.select(*ends, *ids)), ends, how="left")
    acknowledged = F.when(F.col("acknowledged_at") <= F.col("enqueue_time"), F.col("acknowledged_broker_instance"))
    bound = F.coalesce("to_broker_instance", acknowledged, "far_broker_instance")
    return joined.withColumn("bound", bound).drop(*ids)


def _matched(messages: DataFrame, routes: DataFrame) -> DataFrame:
    """Return every route of the scope that matches a message (section 2), with its step.

    A message without such a route has one row.
    """
    route = routes.select(
        F.col("instance_name").alias("route_instance"),
        F.col("database_name").alias("route_scope"),
        F.col("name").alias("route_name"),
        "remote_service_name",
        F.col("broker_instance").alias("route_broker"),
        "address",
        "mirror_address",
    )
    of_scope = (F.col("instance_name") == F.col("route_instance")) & (F.col("scope") == F.col("route_scope"))
    names_service = F.col("remote_service_name") == F.col("to_service_name")
    fits_broker = (
        F.col("route_broker").isNull() | F.col("bound").isNull() | (F.col("route_broker") == F.col("bound"))
    )
    is_any = F.col("remote_service_name").isNull() & F.col("route_broker").isNull()
    step = (
        F.when(F.col("route_name").isNull(), 7)
        .when(is_any, 5)
        .when(F.col("route_broker").isNull(), 2)
        .when(F.col("bound").isNull(), 3)
        .otherwise(1)
    )
    on = of_scope & ((names_service & fits_broker) | is_any)
    return messages.join(F.broadcast(route), on, how="left").withColumn("step", step)


def _picked(matched: DataFrame) -> DataFrame:
    """Return the matches of each message's first step. In step 3 the hash picks their broker instance."""
    message = Window.partitionBy("message_id")
    first = matched.withColumn("first_step", F.min("step").over(message)).where("step = first_step")
    numbered = first.withColumn("place", F.dense_rank().over(message.orderBy("route_broker")) - 1)
    counted = numbered.withColumn("places", F.max("place").over(message) + 1)
    return counted.where((F.col("step") != 3) | (F.col("place") == F.pmod("hash", "places")))


def _best_route(matches: DataFrame) -> DataFrame:
    """Section 3: mirrored routes before LOCAL ones before addresses, then by name."""
    is_local = F.col("address") == "LOCAL"
    tier = F.when(F.col("mirror_address").isNotNull(), 1).when(is_local, 2).otherwise(3)
    order = Window.partitionBy("message_id").orderBy(tier, "route_name")
    broker = F.coalesce("bound", F.when(F.col("step") == 3, F.col("route_broker")))
    best = matches.withColumn("rank", F.row_number().over(order)).where("rank = 1")
    return best.withColumn("broker_instance", broker)


def _located(ranked: DataFrame, services: DataFrame, databases: DataFrame) -> DataFrame:
    """Section 4: the databases of the instance that hold the service, and whether one has the broker instance."""
    listed_databases = databases.select(
        "instance_name", F.col("name").alias("database_name"), F.lower("service_broker_guid").alias("guid")
    )
    holders = services.join(F.broadcast(listed_databases), ["instance_name", "database_name"], how="inner")
    holders = holders.select("instance_name", F.col("name").alias("to_service_name"), "database_name", "guid")
    open_ones = holders.groupBy("instance_name", "to_service_name").agg(
        F.min("database_name").alias("first_holder"), F.collect_set("database_name").alias("all_holders")
    )
    bound_ones = holders.groupBy("instance_name", "to_service_name", F.col("guid").alias("broker_instance")).agg(
        F.min("database_name").alias("bound_holder")
    )
    ids = listed_databases.select("instance_name", F.col("guid").alias("broker_instance")).distinct()
    service = ["instance_name", "to_service_name"]
    return (
        ranked.join(F.broadcast(open_ones), service, how="left")
        .join(F.broadcast(bound_ones), [*service, "broker_instance"], how="left")
        .join(
            F.broadcast(ids.withColumn("is_here", F.lit(True))), ["instance_name", "broker_instance"], how="left"
        )
    )


def _decided() -> dict[str, Column]:
    """Outcome, reason and destination by the chosen route, the place and the hops."""
    from_network, is_local = F.col("database_name").isNull(), F.col("address") == "LOCAL"
    is_open, has_route = F.col("broker_instance").isNull(), F.col("route_name").isNotNull()
    sender_holds = F.array_contains("all_holders", F.col("database_name"))
    open_holder = F.when(sender_holds, F.col("database_name")).otherwise(F.col("first_holder"))
    holder = F.when(is_open, open_holder).otherwise(F.col("bound_holder"))
    forwards = F.col("is_message_forwarding_enabled")
    no_hops = F.col("hops_remaining") <= 0
    not_located = F.when(~is_open & F.col("is_here").isNull(), "BROKER_INSTANCE_NOT_FOUND").otherwise(
        "SERVICE_NOT_FOUND"
    )
    sent = F.when(F.col("mirror_address").isNotNull(), "MIRROR_ADDRESS").otherwise("NETWORK_ADDRESS")
    outcome = (
        F.when(~has_route, "DELAYED")
        .when(is_local & holder.isNotNull(), "DELIVERED")
        .when(is_local & from_network, "DROPPED")
        .when(is_local, "DELAYED")
        .when(~from_network, "SENT")
        .when(~forwards | no_hops, "DROPPED")
        .otherwise("FORWARDED")
    )
    reason = (
        F.when(~has_route, "NO_ROUTE")
        .when(is_local & holder.isNotNull(), "LOCAL_SERVICE")
        .when(is_local, not_located)
        .when(from_network & ~forwards, "FORWARDING_DISABLED")
        .when(from_network & no_hops, "HOP_LIMIT")
        .otherwise(sent)
    )
    return {
        "outcome": outcome,
        "reason": reason,
        "matching_step": F.col("step"),
        "destination_database": F.when(is_local, holder),
        # Where a LOCAL route leads nowhere, no tier is usable and no address is reported.
        "address": F.when(~is_local | holder.isNotNull(), F.col("address")),
    }
