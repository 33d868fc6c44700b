"""Findings on databases: doubled broker ids, disabled brokers, services held twice."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.analysis.lint.estate import Estate, is_users
from routing.analysis.lint.finding import exploded, found, listed
from routing.matching import Bound, Route, any_service
from routing.terms import LOCAL_ADDRESS, MSDB


def broker_ids(estate: Estate) -> DataFrame:
    """SBR012 to SBR014: a row for each broker id that several databases have.

    One finding an id; where instances share it, it stands under the first of them by name.
    """
    databases = estate.tables["databases"].select(
        "instance_name", "name", text.broker_id(F.col("service_broker_guid")).alias("broker")
    )
    within = (
        databases.where(F.col("broker").isNotNull())
        .groupBy("instance_name", "broker")
        .agg(F.array_sort(F.collect_set("name")).alias("names"))
    )
    doubled = found(
        "SBR012",
        F.size("names") > 1,
        F.col("broker"),
        "databases %s have one broker id",
        listed(F.col("names")),
    )
    nowhere = F.lit(None).cast("string")
    # Between instances the first database by name speaks for each.
    place = F.struct("instance_name", F.get("names", F.lit(0)).alias("database"))
    across = (
        within.groupBy("broker")
        .agg(F.array_sort(F.collect_list(place)).alias("places"))
        .where(F.size("places") > 1)
        .withColumn("instance_name", F.get("places", F.lit(0))["instance_name"])
        .withColumn("database_name", F.get("places", F.lit(0))["database"])
        .withColumn("is_one_name", F.size(F.array_distinct(F.col("places")["database"])) == 1)
    )
    shown = listed(F.transform("places", lambda p: F.concat(p["instance_name"], F.lit("."), p["database"])))
    shared = [
        found("SBR013", ~F.col("is_one_name"), F.col("broker"), "databases %s have one broker id", shown),
        found("SBR014", F.col("is_one_name"), F.col("broker"), "databases %s have one broker id", shown),
    ]
    return exploded(within.withColumn("database_name", nowhere), [doubled]).unionByName(exploded(across, shared))


def disabled_brokers(estate: Estate) -> DataFrame:
    """SBR034, SBR035: a database that cannot send or receive, though it has services or routes to do so."""
    nobody = F.lit(None).cast("string")
    is_default = any_service(Bound(nobody, nobody), Route(F.col("service"), F.col("broker"))) & (
        F.col("kind") == LOCAL_ADDRESS
    )
    routed = estate.settings.routes.where(~F.coalesce(is_default, F.lit(False))).select(
        "instance_name", "database_name"
    )
    held = estate.tables["services"].where(is_users(F.col("name"))).select("instance_name", "database_name")
    in_use = routed.unionByName(held).distinct().withColumn("is_in_use", F.lit(True))
    off = (
        estate.tables["databases"]
        .where(~F.col("is_broker_enabled"))
        .select("instance_name", F.col("name").alias("database_name"))
    )
    # in_use is distinct, so the join keeps the number of databases.
    judged = off.join(in_use, ["instance_name", "database_name"], how="left")
    name, is_msdb = F.col("database_name"), F.col("database_name") == MSDB
    return exploded(
        judged,
        [
            found("SBR034", ~is_msdb & F.col("is_in_use"), name, "its services and routes do nothing"),
            found("SBR035", is_msdb, name, "messages from the network are delayed"),
        ],
    )


def doubled_services(estate: Estate) -> DataFrame:
    """SBR019: an open dialog goes to the sender's own database, else to the first by name (D5)."""
    names: Column = F.array_distinct(F.transform("holders", lambda h: h["name"]))
    several = estate.settings.holders.where(is_users(F.col("service")))
    return exploded(
        several.withColumn("database_name", F.lit(None).cast("string")),
        [found("SBR019", F.size(names) > 1, F.col("service"), "databases %s hold the service", listed(names))],
    )
