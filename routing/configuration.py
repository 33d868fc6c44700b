"""The configuration tables as the rules read them: comparable ids and addresses, one row where one counts.

Frames of this room are small (they grow with the configuration, never with the messages) and are broadcast;
but not the dialogs and the requests on record, which grow with the traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.joining import bounded
from routing.terms import (
    BROKER_CONFIGURATION_SERVICE,
    LOCAL_ADDRESS,
    LOOPBACK_HOSTS,
    MSDB,
    NETWORK_KIND,
    TRANSPORT_ADDRESS,
)

# The database_name of the scope for what arrives over the network; no database has an empty name.
FROM_NETWORK = ""


@dataclass(frozen=True)
class Configuration:
    """What a run knows besides its messages.

    routes: instance_name, database_name, name, service, broker, live_from, live_to, address,
        mirror_address, kind (LOCAL, TRANSPORT, NETWORK), same_address (what equal routes share).
    instances: instance_name, is_forwarding, own_addresses (comparable text), databases (array of struct
        name, broker, is_enabled).
    scopes: instance_name, database_name (FROM_NETWORK for arrivals), own_addresses.
    holders: instance_name, service, holders (array of struct name, broker, is_enabled; by name).
    services: instance_name, service: every service that a route or a database of the instance names.
    brokers: instance_name, broker: every broker id that a route or a database of the instance names.
    requests: instance_name, database_name, service, requests (array of struct requested_at, message_id,
        ended_at); None where no request is on record.
    dialogs: the dialogs that can matter, None where there are none.
    """

    routes: DataFrame
    instances: DataFrame
    scopes: DataFrame
    holders: DataFrame
    services: DataFrame
    brokers: DataFrame
    requests: DataFrame | None
    dialogs: DataFrame | None


@dataclass(frozen=True)
class Features:
    """What a configuration makes use of; a part of the plan that nothing needs is not built.

    versions: a route has a lifetime or a version bound. own_addresses: a route may lead to its own instance.
    transport: a route reads its address from the service name. requests: a scope has a BrokerConfiguration
    route. requests_twice: so have a database and msdb of one
    instance, and a message may meet both.
    """

    versions: bool
    own_addresses: bool
    transport: bool
    requests: bool
    requests_twice: bool


def _as_it_is(frame: DataFrame) -> DataFrame:
    return frame


def configuration(
    tables: Mapping[str, DataFrame], kept: Callable[[DataFrame], DataFrame] = _as_it_is
) -> Configuration:
    """The rules' view of conformed and validated input tables.

    ``kept`` is applied to the frames that grow with the routes and are read by several passes.
    """
    databases = _databases(tables["databases"])
    instances = _instances(tables["instances"], databases)
    routes = kept(_routes(tables["routes"]))
    services = tables["services"]
    return Configuration(
        routes=routes,
        instances=instances,
        scopes=_scopes(instances),
        holders=_holders(services, databases),
        services=kept(_named(routes, "service", services.select("instance_name", F.col("name").alias("service")))),
        brokers=kept(_named(routes, "broker", databases.select("instance_name", "broker"))),
        requests=_requests(tables["route_requests"]) if "route_requests" in tables else None,
        dialogs=_dialogs(tables["dialogs"]) if "dialogs" in tables else None,
    )


def features(settings: Configuration) -> DataFrame:
    """One row with the fields of `Features`, and the number of routes."""
    asks = F.col("service") == BROKER_CONFIGURATION_SERVICE
    has_bounds = F.col("live_from").isNotNull() | F.col("live_to").isNotNull()
    is_own = F.array_contains("own_addresses", F.col("same_address.address"))
    may_be_own = (F.col("kind") == TRANSPORT_ADDRESS) | F.coalesce(is_own, F.lit(False))
    in_msdb = F.col("database_name") == MSDB
    own = settings.instances.select("instance_name", "own_addresses")
    # instance_name is the key of instances.
    per_instance = (
        settings.routes.join(bounded(own), "instance_name", how="left")
        .groupBy("instance_name")
        .agg(
            F.bool_or(has_bounds).alias("versions"),
            F.bool_or(may_be_own).alias("own_addresses"),
            F.bool_or(F.col("kind") == TRANSPORT_ADDRESS).alias("transport"),
            F.bool_or(asks).alias("requests"),
            F.bool_or(asks & in_msdb).alias("msdb_asks"),
            F.bool_or(asks & ~in_msdb).alias("database_asks"),
            F.count(F.lit(1)).alias("routes"),
        )
    )
    twice = F.col("own_addresses") & F.col("msdb_asks") & F.col("database_asks")
    return per_instance.agg(
        *(
            F.coalesce(F.bool_or(flag), F.lit(False)).alias(name)
            for name, flag in (
                ("versions", F.col("versions")),
                ("own_addresses", F.col("own_addresses")),
                ("transport", F.col("transport")),
                ("requests", F.col("requests")),
                ("requests_twice", twice),
            )
        ),
        F.coalesce(F.sum("routes"), F.lit(0)).alias("routes"),
    )


def _databases(databases: DataFrame) -> DataFrame:
    return databases.select(
        "instance_name",
        "name",
        text.broker_id(F.col("service_broker_guid")).alias("broker"),
        F.coalesce("is_broker_enabled", F.lit(True)).alias("is_enabled"),
    )


def _instances(instances: DataFrame, databases: DataFrame) -> DataFrame:
    listed = databases.groupBy("instance_name").agg(
        F.collect_list(F.struct("name", "broker", "is_enabled")).alias("databases")
    )
    none = F.array().cast(listed.schema["databases"].dataType)
    return (
        instances.select(
            "instance_name",
            F.coalesce("is_message_forwarding_enabled", F.lit(False)).alias("is_forwarding"),
            _own_addresses(F.col("addresses")).alias("own_addresses"),
        )
        .join(bounded(listed), "instance_name", how="left")
        .withColumn("databases", F.coalesce("databases", none))
    )


def _own_addresses(addresses: Column) -> Column:
    """The addresses of an instance as they are compared, loopback names with its ports included."""
    given = F.filter(F.coalesce(addresses, F.array().cast("array<string>")), lambda a: a != "")
    own = F.transform(given, text.comparable_address)
    ports = F.filter(F.transform(own, text.port), lambda port: port != "")
    hosts = F.array(*(F.lit(f"tcp://{host}:") for host in LOOPBACK_HOSTS))
    loopback = F.flatten(F.transform(ports, lambda port: F.transform(hosts, lambda host: F.concat(host, port))))
    return F.array_union(own, loopback)


def _routes(routes: DataFrame) -> DataFrame:
    mirror = text.empty_as_null(F.col("mirror_address"))
    kind = (
        F.when(text.is_local(F.col("address")), LOCAL_ADDRESS)
        .when(text.is_transport(F.col("address")), TRANSPORT_ADDRESS)
        .when(text.is_tcp(F.col("address")), NETWORK_KIND)
    )
    same = F.struct(
        text.comparable_address(F.col("address")).alias("address"),
        text.comparable_address(mirror).alias("mirror_address"),
    )
    ever = F.col("live_from").isNull() | F.col("live_to").isNull() | (F.col("live_from") < F.col("live_to"))
    return routes.select(
        "instance_name",
        "database_name",
        "name",
        text.empty_as_null(F.col("remote_service_name")).alias("service"),
        text.broker_id(F.col("broker_instance")).alias("broker"),
        F.col("valid_from").alias("live_from"),
        F.least("valid_to", "lifetime").alias("live_to"),
        "address",
        mirror.alias("mirror_address"),
        kind.alias("kind"),
        same.alias("same_address"),
    ).where(ever)


def _scopes(instances: DataFrame) -> DataFrame:
    """Every scope that a message of a known instance and database can have."""
    names = F.array_append(F.transform("databases", lambda d: d["name"]), FROM_NETWORK)
    return instances.select("instance_name", F.explode(names).alias("database_name"), "own_addresses")


def _holders(services: DataFrame, databases: DataFrame) -> DataFrame:
    listed = databases.withColumnRenamed("name", "database_name")
    holder = F.struct(F.col("database_name").alias("name"), "broker", "is_enabled")
    return (
        services.join(bounded(listed), ["instance_name", "database_name"], how="inner")
        .groupBy("instance_name", F.col("name").alias("service"))
        .agg(F.sort_array(F.collect_list(holder)).alias("holders"))
    )


def _named(routes: DataFrame, column: str, held: DataFrame) -> DataFrame:
    named = routes.select("instance_name", column).unionByName(held)
    return named.where(F.col(column).isNotNull()).distinct()


def _requests(requests: DataFrame) -> DataFrame:
    request = F.struct("requested_at", "message_id", "ended_at")
    return requests.groupBy("instance_name", "database_name", F.col("service_name").alias("service")).agg(
        F.collect_list(request).alias("requests")
    )


def _dialogs(dialogs: DataFrame) -> DataFrame:
    """Only dialogs that can change a decision: bound, acknowledged, or with an end."""
    acknowledged = text.broker_id(F.col("acknowledged_broker_instance"))
    rows = dialogs.select(
        "instance_name",
        "database_name",
        text.conversation_id(F.col("conversation_id")).alias("conversation_id"),
        "is_initiator",
        F.col("lifetime").alias("dialog_lifetime"),
        F.when(F.col("acknowledged_at").isNotNull(), acknowledged).alias("acknowledged_broker"),
        "acknowledged_at",
        text.broker_id(F.col("far_broker_instance")).alias("far_broker"),
    )
    return rows.where("dialog_lifetime IS NOT NULL OR acknowledged_broker IS NOT NULL OR far_broker IS NOT NULL")
