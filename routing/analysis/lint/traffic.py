"""Findings that messages and dialogs show: routes that nobody uses, dialogs that were torn apart."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import exploded, found
from routing.terms import MSDB, MatchingStep

ROUTE = ("instance_name", "database_name", "name")


def used_routes(resolved: DataFrame) -> DataFrame:
    """The routes that messages used: instance_name, database_name, name; distinct.

    ``resolved`` has the columns of ``resolved_routes``. A route is used where a message reports it, where it
    led the message back to its own instance (rerouted_from), and where it is one of alternative_routes: the
    transport may take any of these.
    """
    here = F.coalesce("database_name", F.lit(MSDB))
    there = F.when(F.col("rerouted_from").isNotNull(), MSDB).otherwise(here)
    # Few messages differ in these; what follows is as small as the configuration.
    few = resolved.select(
        "instance_name", "database_name", "route_name", "rerouted_from", "alternative_routes"
    ).distinct()
    rest = F.coalesce("alternative_routes", F.array().cast(few.schema["alternative_routes"].dataType))

    def route(database: str, name: str) -> Column:
        return F.struct(F.col(database).alias("database_name"), F.col(name).alias("name"))

    placed = few.withColumns({"here": here, "there": there})
    others = F.transform(
        rest, lambda r: F.struct(F.col("there").alias("database_name"), r["route_name"].alias("name"))
    )
    all_of_them = F.concat(F.array(route("there", "route_name"), route("here", "rerouted_from")), others)
    return (
        placed.select("instance_name", F.explode(all_of_them).alias("route"))
        .select("instance_name", "route.database_name", "route.name")
        .where(F.col("name").isNotNull())
        .distinct()
    )


def coverage(routes: DataFrame, used: DataFrame) -> DataFrame:
    """How many routes messages used: instance_name, routes, used; versions of a route are one.

    ``routes`` is the conformed table, ``used`` what `used_routes` gives.
    """
    marked = used.withColumn("is_used", F.lit(True))
    # used is distinct, so the join keeps the number of routes.
    judged = routes.select(*ROUTE).distinct().join(marked, list(ROUTE), how="left")
    return judged.groupBy("instance_name").agg(F.count(F.lit(1)).alias("routes"), F.count("is_used").alias("used"))


def unused(estate: Estate, used: DataFrame) -> DataFrame:
    """SBR028: no message used the route, in any version."""
    routes = estate.tables["routes"].select(*ROUTE).distinct().join(used, list(ROUTE), how="left_anti")
    return exploded(routes, [found("SBR028", F.lit(True), F.col("name"), "no message used it")])


def changed_picks(resolved: DataFrame) -> DataFrame:
    """SBR039: messages of one open dialog were balanced to different broker ids; a row a scope and service."""
    dialog = ("instance_name", "database_name", "to_service_name", "conversation_id", "is_initiator")
    changed = (
        resolved.where(F.col("matching_step") == int(MatchingStep.BALANCED))
        .groupBy(*dialog)
        .agg(F.min("broker_instance").alias("least"), F.max("broker_instance").alias("most"))
        .where(F.col("least") != F.col("most"))
    )
    rows = changed.groupBy(
        "instance_name",
        F.coalesce("database_name", F.lit(MSDB)).alias("database_name"),
        F.col("to_service_name").alias("service"),
    ).agg(F.count(F.lit(1)).alias("dialogs"), F.min("conversation_id").alias("first"))
    message = "the set of broker ids changed before the acknowledgement: dialogs %s, such as %s"
    count = F.col("dialogs").cast("string")
    return exploded(rows, [found("SBR039", F.lit(True), F.col("service"), message, count, F.col("first"))])


def torn_groups(estate: Estate) -> DataFrame:
    """SBR038: dialogs of one conversation group to one service are bound to different ids; a row a service.

    A dialog is bound to the id that it was acknowledged with, else to the one that BEGIN DIALOG named.
    """
    acknowledged = F.when(
        F.col("acknowledged_at") <= estate.now, text.broker_id(F.col("acknowledged_broker_instance"))
    )
    bound = F.coalesce(acknowledged, text.broker_id(F.col("far_broker_instance")))
    group = ("instance_name", "database_name", "far_service", "conversation_group_id")
    torn = (
        estate.tables["dialogs"]
        .where(F.col("is_initiator") & (F.col("far_service") != "") & (F.col("conversation_group_id") != ""))
        .groupBy(*group)
        .agg(F.min(bound).alias("least"), F.max(bound).alias("most"))
        .where(F.col("least") != F.col("most"))
    )
    rows = torn.groupBy("instance_name", "database_name", "far_service").agg(
        F.count(F.lit(1)).alias("groups"), F.min("conversation_group_id").alias("first")
    )
    message = "conversation groups are bound to different broker ids: %s, such as %s"
    count = F.col("groups").cast("string")
    return exploded(rows, [found("SBR038", F.lit(True), F.col("far_service"), message, count, F.col("first"))])
