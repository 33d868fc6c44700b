"""Routes that no message can take, and open routes that two instances answer."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.analysis.lint.estate import Estate, holders
from routing.analysis.lint.finding import exploded, found, listed
from routing.analysis.lint.probing import ROUTES, contested, database_of
from routing.joining import bounded
from routing.terms import LOCAL_ADDRESS, MatchingStep

_SCOPE = ("instance_name", "database_name")


def _of_routes(verdicts: DataFrame) -> DataFrame:
    asked = verdicts.where(F.col("purpose") == ROUTES)
    return asked.withColumn("database_name", database_of(F.col("key_database")))


def addresses_of(choice: Column) -> Column:
    """The addresses that the transport may use for a choice: the reported route's and the alternatives'."""
    rest = F.coalesce(choice["alternative_routes"]["address"], F.array().cast("array<string>"))
    every = F.concat(F.array(choice["address"]), rest)
    return F.array_distinct(F.array_compact(F.transform(every, text.comparable_address)))


def shadowed(estate: Estate, verdicts: DataFrame) -> DataFrame:
    """SBR027: whatever message a route matches takes another one.

    Left alone: routes that match in no step, have no address that can be used, or whose database's broker is
    off (findings of their own), and the LOCAL route for any service, which waits for services still to come.
    """
    asked = _of_routes(verdicts)
    choice = F.col("choice")
    rest = F.coalesce(choice["alternative_routes"]["route_name"], F.array().cast("array<string>"))
    names = F.array_compact(F.concat(F.array(choice["route_name"]), rest))
    used = asked.select(*_SCOPE, F.explode(names).alias("name")).distinct()
    # Of a route's own question (its service and its id) the first answer by name.
    winners = asked.groupBy(
        *_SCOPE, F.col("to_service_name").alias("service"), F.coalesce("bound_broker", F.lit("")).alias("own_id")
    ).agg(F.min(choice["route_name"]).alias("winner"))
    route = F.explode("routes").alias("route")
    routes = contested(estate).select(*_SCOPE, "service", F.coalesce("broker", F.lit("")).alias("own_id"), route)
    waits = F.col("service").isNull() & (F.col("route.kind") == LOCAL_ADDRESS)
    off = estate.tables["databases"].where(~F.col("is_broker_enabled"))
    unused = (
        routes.where(F.col("route.kind").isNotNull() & ~waits)
        .withColumn("name", F.col("route.name"))
        .join(used, [*_SCOPE, "name"], how="left_anti")
        .join(
            bounded(off.select("instance_name", F.col("name").alias("database_name"))),
            list(_SCOPE),
            how="left_anti",
        )
        .join(winners, [*_SCOPE, "service", "own_id"], how="left")
    )
    other = F.coalesce("winner", F.lit("another route for any service"))
    message = "every message that it matches takes %s"
    return exploded(unused, [found("SBR027", F.lit(True), F.col("name"), message, other)])


def open_to_several(estate: Estate, verdicts: DataFrame) -> DataFrame:
    """SBR018: routes without broker id that the transport may use in turn lead to several holders.

    Only places that the tables know can be judged; gateways do not hold the service and are no hazard.
    """
    choice = F.col("choice")
    opened = (
        _of_routes(verdicts)
        .where((choice["matching_step"] == int(MatchingStep.SERVICE)) & choice["alternative_routes"].isNotNull())
        .select(
            *_SCOPE,
            F.col("to_service_name").alias("service"),
            choice["route_name"].alias("route_name"),
            F.explode(addresses_of(choice)).alias("address"),
        )
    )
    places = estate.places.select("address", F.col("instance_name").alias("holder_instance"))
    holding = holders(estate).select("service", "holder_instance").distinct()
    targets = (
        opened.join(bounded(places), "address", how="inner")
        .join(holding, ["service", "holder_instance"], how="inner")
        .groupBy(*_SCOPE, "service", "route_name")
        .agg(F.collect_set("holder_instance").alias("targets"))
    )
    return exploded(
        targets,
        [
            found(
                "SBR018",
                F.size("targets") > 1,
                F.col("route_name"),
                "it and others without broker id lead to '%s' at %s",
                F.col("service"),
                listed(F.col("targets")),
            )
        ],
    )
