"""Make benchmark tables of any size with Spark. The same arguments give the same rows.

An instance has `DATABASES` databases and msdb. Each scope has one LOCAL route for any service. Then these repeat:
a route by service name, four routes of a balanced service, and one with a mirror.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.naming import DAY, database_name, guid, instance_name, service_name
from benchmarks.shape import BALANCED, DATABASES, SCOPES, Shape
from benchmarks.traffic import dialogs, messages

__all__ = ["Shape", "tables"]


def tables(spark: SparkSession, shape: Shape) -> dict[str, Callable[[], DataFrame]]:
    """The input tables, each as a function that makes its frame."""
    return {
        "instances": lambda: _instances(spark, shape),
        "databases": lambda: _databases(spark, shape),
        "services": lambda: _services(spark, shape),
        "routes": lambda: _routes(spark, shape),
        "messages": lambda: messages(spark, shape),
        "dialogs": lambda: dialogs(spark, shape),
    }


def _instances(spark: SparkSession, shape: Shape) -> DataFrame:
    name = instance_name(F.col("id"))
    return spark.range(shape.instances).select(
        name.alias("instance_name"),
        (F.col("id") % 2 == 0).alias("is_message_forwarding_enabled"),
        F.array(F.concat(F.lit("tcp://"), name, F.lit(":4022"))).alias("addresses"),
    )


def _databases(spark: SparkSession, shape: Shape) -> DataFrame:
    scope = F.col("id") % SCOPES
    return spark.range(shape.instances * SCOPES).select(
        instance_name((F.col("id") / SCOPES).cast("int")).alias("instance_name"),
        database_name(scope).alias("name"),
        guid(F.col("id"), "database").alias("service_broker_guid"),
    )


def _services(spark: SparkSession, shape: Shape) -> DataFrame:
    """Ten services a database, counted down from the last of the names that routes use."""
    rows = spark.range(shape.instances * DATABASES * 10)
    instance = (F.col("id") / (DATABASES * 10)).cast("int")
    return rows.select(
        instance_name(instance).alias("instance_name"),
        database_name((F.col("id") / 10).cast("int") % DATABASES).alias("database_name"),
        service_name((F.lit(99_999) - F.col("id") % (DATABASES * 10)).cast("int")).alias("name"),
    )


def _routes(spark: SparkSession, shape: Shape) -> DataFrame:
    per_scope = shape.routes_a_scope
    rows = spark.range(shape.instances * SCOPES * per_scope)
    scope = (F.col("id") / per_scope).cast("int")
    number = F.col("id") % per_scope
    place = number % (BALANCED + 2)
    group = (number / (BALANCED + 2)).cast("int") * 3
    is_balanced = (place > 0) & (place <= BALANCED)
    service = group + F.when(place == 0, 0).when(is_balanced, 1).otherwise(2)
    is_any = number == 0
    plain = rows.select(
        instance_name((scope / SCOPES).cast("int")).alias("instance_name"),
        database_name(scope % SCOPES).alias("database_name"),
        F.format_string("route_%05d", number).alias("name"),
        F.when(~is_any, service_name(service.cast("int"))).alias("remote_service_name"),
        F.when(is_balanced & ~is_any, guid(service * 10 + place, "remote")).alias("broker_instance"),
        F.when(is_any, F.lit("LOCAL"))
        .otherwise(F.format_string("tcp://far-%03d.example.net:4022", (F.col("id") % 500)))
        .alias("address"),
        F.when((place == BALANCED + 1) & ~is_any, F.lit("tcp://mirror.example.net:4022")).alias("mirror_address"),
        F.lit(None).cast("timestamp").alias("valid_from"),
        F.lit(None).cast("timestamp").alias("valid_to"),
    )
    return _asking(spark, shape, _changing(spark, shape, plain))


def _changing(spark: SparkSession, shape: Shape, routes: DataFrame) -> DataFrame:
    """With ``changes``: the routes by name of app_0 on server-0000 change their address in turn all day."""
    if not shape.changes:
        return routes
    step = 86_400 // shape.changes
    start = F.timestamp_seconds(F.lit(DAY) + F.col("id") * step)
    versions = spark.range(shape.changes).select(
        F.lit("server-0000").alias("instance_name"),
        F.lit("app_0").alias("database_name"),
        F.lit("changing").alias("name"),
        service_name(F.lit(3)).alias("remote_service_name"),
        F.lit(None).cast("string").alias("broker_instance"),
        F.format_string("tcp://moving-%04d.example.net:4022", F.col("id")).alias("address"),
        F.lit(None).cast("string").alias("mirror_address"),
        start.alias("valid_from"),
        F.timestamp_seconds(F.lit(DAY) + (F.col("id") + 1) * step).alias("valid_to"),
    )
    changing = (
        (F.col("instance_name") == "server-0000")
        & (F.col("database_name") == "app_0")
        & F.coalesce(F.col("remote_service_name") == service_name(F.lit(3)), F.lit(False))
    )
    return routes.where(~changing).unionByName(versions)


def _asking(spark: SparkSession, shape: Shape, routes: DataFrame) -> DataFrame:
    """With ``asking``: that share of the instances has a BrokerConfiguration route in app_0."""
    count = int(shape.instances * shape.asking)
    if not count:
        return routes
    nothing = F.lit(None)
    return routes.unionByName(
        spark.range(count).select(
            instance_name(F.col("id")).alias("instance_name"),
            F.lit("app_0").alias("database_name"),
            F.lit("configuration").alias("name"),
            F.lit("SQL/ServiceBroker/BrokerConfiguration").alias("remote_service_name"),
            nothing.cast("string").alias("broker_instance"),
            F.lit("tcp://config.example.net:4022").alias("address"),
            nothing.cast("string").alias("mirror_address"),
            nothing.cast("timestamp").alias("valid_from"),
            nothing.cast("timestamp").alias("valid_to"),
        )
    )
