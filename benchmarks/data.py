"""Benchmark tables of any size, made by Spark itself: the same arguments give the same rows.

An instance has `DATABASES` databases and msdb. Each scope's routes: one LOCAL route for any service, then in
turn a route by service name, four routes of a balanced service, and one with a mirror. A tenth of the messages
ask for services that nothing names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

DATABASES = 4
_SCOPES = DATABASES + 1
_DAY = 1_767_571_200  # 2026-01-05T00:00:00Z
_MESSAGES_A_DIALOG = 10
_BALANCED = 4


@dataclass(frozen=True)
class Shape:
    """What the data looks like.

    network: share of arrivals from the network. bound: share of messages with their own broker id.
    dialogs: rows of the dialogs table as a share of messages; acknowledged: share of these that are
    acknowledged, the others are bound by BEGIN DIALOG. changes: route versions that change in the day on the
    first instance. asking: share of instances with a BrokerConfiguration route.
    """

    messages: int = 10_000_000
    routes: int = 120_000
    instances: int = 200
    keys: int = 45_000
    network: float = 0.2
    bound: float = 0.2
    dialogs: float = 0.01
    acknowledged: float = 0.5
    changes: int = 0
    asking: float = 0.0


def _guid(number: Column, salt: str) -> Column:
    digest = F.md5(F.concat(F.lit(salt), number.cast("string")))
    cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return F.concat_ws("-", *(F.substring(digest, start, length) for start, length in cuts))


def _share(number: Column, salt: int, share: float) -> Column:
    """Whether a row is among a share of all, decided by a hash of its number."""
    return F.pmod(F.xxhash64(number, F.lit(salt)), F.lit(10_000)) < int(share * 10_000)


def _instance(number: Column) -> Column:
    return F.format_string("server-%04d", number)


def _database(number: Column) -> Column:
    return F.when(number == DATABASES, F.lit("msdb")).otherwise(F.format_string("app_%d", number))


def _service(number: Column) -> Column:
    return F.format_string("//example.net/service/%05d", number)


def tables(spark: SparkSession, shape: Shape) -> dict[str, Callable[[], DataFrame]]:
    """The input tables, each as a function that makes its frame."""
    return {
        "instances": lambda: _instances(spark, shape),
        "databases": lambda: _databases(spark, shape),
        "services": lambda: _services(spark, shape),
        "routes": lambda: _routes(spark, shape),
        "messages": lambda: _messages(spark, shape),
        "dialogs": lambda: _dialogs(spark, shape),
    }


def _instances(spark: SparkSession, shape: Shape) -> DataFrame:
    name = _instance(F.col("id"))
    return spark.range(shape.instances).select(
        name.alias("instance_name"),
        (F.col("id") % 2 == 0).alias("is_message_forwarding_enabled"),
        F.array(F.concat(F.lit("tcp://"), name, F.lit(":4022"))).alias("addresses"),
    )


def _databases(spark: SparkSession, shape: Shape) -> DataFrame:
    scope = F.col("id") % _SCOPES
    return spark.range(shape.instances * _SCOPES).select(
        _instance((F.col("id") / _SCOPES).cast("int")).alias("instance_name"),
        _database(scope).alias("name"),
        _guid(F.col("id"), "database").alias("service_broker_guid"),
    )


def _services(spark: SparkSession, shape: Shape) -> DataFrame:
    """Ten services a database, counted down from the last of the names that routes use."""
    rows = spark.range(shape.instances * DATABASES * 10)
    instance = (F.col("id") / (DATABASES * 10)).cast("int")
    return rows.select(
        _instance(instance).alias("instance_name"),
        _database((F.col("id") / 10).cast("int") % DATABASES).alias("database_name"),
        _service((F.lit(99_999) - F.col("id") % (DATABASES * 10)).cast("int")).alias("name"),
    )


def _routes(spark: SparkSession, shape: Shape) -> DataFrame:
    per_scope = max(shape.routes // (shape.instances * _SCOPES), 2)
    rows = spark.range(shape.instances * _SCOPES * per_scope)
    scope = (F.col("id") / per_scope).cast("int")
    number = F.col("id") % per_scope
    place = number % (_BALANCED + 2)
    group = (number / (_BALANCED + 2)).cast("int") * 3
    is_balanced = (place > 0) & (place <= _BALANCED)
    service = group + F.when(place == 0, 0).when(is_balanced, 1).otherwise(2)
    is_any = number == 0
    plain = rows.select(
        _instance((scope / _SCOPES).cast("int")).alias("instance_name"),
        _database(scope % _SCOPES).alias("database_name"),
        F.format_string("route_%05d", number).alias("name"),
        F.when(~is_any, _service(service.cast("int"))).alias("remote_service_name"),
        F.when(is_balanced & ~is_any, _guid(service * 10 + place, "remote")).alias("broker_instance"),
        F.when(is_any, F.lit("LOCAL"))
        .otherwise(F.format_string("tcp://far-%03d.example.net:4022", (F.col("id") % 500)))
        .alias("address"),
        F.when((place == _BALANCED + 1) & ~is_any, F.lit("tcp://mirror.example.net:4022")).alias("mirror_address"),
        F.lit(None).cast("timestamp").alias("valid_from"),
        F.lit(None).cast("timestamp").alias("valid_to"),
    )
    return _asking(spark, shape, _changing(spark, shape, plain))


def _changing(spark: SparkSession, shape: Shape, routes: DataFrame) -> DataFrame:
    """With ``changes``: the routes by name of app_0 on server-0000 change their address in turn all day."""
    if not shape.changes:
        return routes
    step = 86_400 // shape.changes
    start = F.timestamp_seconds(F.lit(_DAY) + F.col("id") * step)
    versions = spark.range(shape.changes).select(
        F.lit("server-0000").alias("instance_name"),
        F.lit("app_0").alias("database_name"),
        F.lit("changing").alias("name"),
        _service(F.lit(3)).alias("remote_service_name"),
        F.lit(None).cast("string").alias("broker_instance"),
        F.format_string("tcp://moving-%04d.example.net:4022", F.col("id")).alias("address"),
        F.lit(None).cast("string").alias("mirror_address"),
        start.alias("valid_from"),
        F.timestamp_seconds(F.lit(_DAY) + (F.col("id") + 1) * step).alias("valid_to"),
    )
    taken = (
        (F.col("instance_name") == "server-0000")
        & (F.col("database_name") == "app_0")
        & F.coalesce(F.col("remote_service_name") == _service(F.lit(3)), F.lit(False))
    )
    return routes.where(~taken).unionByName(versions)


def _asking(spark: SparkSession, shape: Shape, routes: DataFrame) -> DataFrame:
    """With ``asking``: that share of the instances has a BrokerConfiguration route in app_0."""
    count = int(shape.instances * shape.asking)
    if not count:
        return routes
    nothing = F.lit(None)
    return routes.unionByName(
        spark.range(count).select(
            _instance(F.col("id")).alias("instance_name"),
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


def _key(shape: Shape) -> tuple[Column, Column, Column]:
    """(instance, scope, service) numbers of a message: all messages of a dialog share them."""
    dialog = (F.col("id") / _MESSAGES_A_DIALOG).cast("bigint")
    key = F.pmod(F.xxhash64(dialog, F.lit(7)), F.lit(shape.keys))
    instance = key % shape.instances
    scope = (key / shape.instances).cast("int") % DATABASES
    service = (key / (shape.instances * DATABASES)).cast("int")
    return instance.cast("int"), scope, service


def _messages(spark: SparkSession, shape: Shape) -> DataFrame:
    number = F.col("id")
    dialog = (number / _MESSAGES_A_DIALOG).cast("bigint")
    instance, scope, service = _key(shape)
    conversation = _guid(dialog, "conversation")
    held = F.lit(99_999) - (scope * 10 + service % 10)
    asked = (
        F.when(_share(dialog, 1, 0.1), F.concat(F.lit("unknown/"), (dialog % 1000).cast("string")))
        .when(_share(dialog, 2, 0.3), _service(held.cast("int")))
        .otherwise(_service(service.cast("int")))
    )
    is_network = _share(dialog, 3, shape.network)
    is_bound = _share(dialog, 4, shape.bound)
    return spark.range(0, shape.messages, 1, 16).select(
        F.concat(conversation, F.lit(":I:"), (number % _MESSAGES_A_DIALOG).cast("string")).alias("message_id"),
        conversation.alias("conversation_id"),
        F.lit(True).alias("is_initiator"),
        (number % _MESSAGES_A_DIALOG).alias("message_sequence_number"),
        F.timestamp_seconds(F.lit(_DAY) + number * 86_400 / shape.messages).alias("enqueue_time"),
        _instance(instance).alias("instance_name"),
        F.when(~is_network, _database(scope)).alias("database_name"),
        asked.alias("to_service_name"),
        F.when(is_bound, _guid(service * 10 + 1 + dialog % _BALANCED, "remote")).alias("to_broker_instance"),
        F.when(is_network, (number % 12).cast("int")).alias("hops_remaining"),
    )


def _dialogs(spark: SparkSession, shape: Shape) -> DataFrame:
    """Rows for the first dialogs of every stretch, so that they spread over the day."""
    rows = int(shape.messages * shape.dialogs)
    every = max(shape.messages // _MESSAGES_A_DIALOG // max(rows, 1), 1)
    dialog = F.col("row") * every
    instance, scope, service = _key(shape)
    broker = _guid(service * 10 + 1 + dialog % _BALANCED, "remote")
    is_acknowledged = _share(dialog, 5, shape.acknowledged)
    return (
        spark.range(rows)
        .withColumnRenamed("id", "row")
        .withColumn("id", F.col("row") * every * _MESSAGES_A_DIALOG)
        .select(
            _instance(instance).alias("instance_name"),
            _database(scope).alias("database_name"),
            _guid(dialog, "conversation").alias("conversation_id"),
            F.lit(True).alias("is_initiator"),
            F.when(~is_acknowledged, broker).alias("far_broker_instance"),
            F.when(is_acknowledged, F.timestamp_seconds(F.lit(_DAY + 43_200))).alias("acknowledged_at"),
            F.when(is_acknowledged, broker).alias("acknowledged_broker_instance"),
        )
    )
