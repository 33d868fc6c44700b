"""Forwarding loops: messages that go from instance to instance and never arrive.

What an instance forwards is read from the routing plan. The instances of one service and broker id are few, so
that they stand in one array, and loops are found without joining a table with itself.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import exploded, found, listed
from routing.analysis.lint.probing import ARRIVALS, ROUTES
from routing.analysis.lint.shadows import addresses_of
from routing.configuration import FROM_NETWORK
from routing.joining import bounded
from routing.terms import MSDB, Outcome

# A chain of forwarders is cut from both ends in each round: one of up to twice as many is told from a loop.
_ROUNDS = 64
_OPEN, _OTHER = "", "\x00"
_EDGES = "array<struct<id:string,here:string,there:string>>"


def loops(estate: Estate, verdicts: DataFrame) -> DataFrame:
    """SBR026: one finding a service and set of instances, under the first of them by name."""
    hops = _hops(estate, verdicts)
    named = (
        hops.where("service != ''")
        .groupBy("service")
        .agg(*_gathered(), F.collect_set(F.struct("id", "here")).alias("known"))
        .where(F.size("edges") > 0)
    )
    # One row, also where nothing is forwarded for any service.
    rest = hops.where("service = ''").agg(F.collect_set(_edge()).alias("rest"))
    named = named.crossJoin(bounded(rest)).select("service", "edges", "known", "rest", F.col("ids"))
    by_id = named.withColumn("id", F.explode("ids")).withColumn("own", _own_edges())
    whole = by_id.select("service", "own", F.concat("own", _rest_edges()).alias("edges"))
    anything = rest.select(F.lit("any other service").alias("service"), F.col("rest").alias("own"))
    anything = anything.withColumn("id", F.explode(F.array(F.lit(_OPEN), F.lit(_OTHER))))
    anything = anything.withColumn("own", F.filter("own", lambda e: e["id"] == F.col("id")))
    every = whole.unionByName(anything.select("service", "own", F.col("own").alias("edges")))
    left = every.withColumn("left", _circles(F.col("edges")))
    # Where only the edges for any service go round, the finding for these says so.
    is_own = F.exists("left", lambda e: F.array_contains("own", e))
    around = left.where(is_own).select(
        "service", F.array_sort(F.array_distinct(F.col("left")["here"])).alias("instances")
    )
    rows = around.distinct().select(
        F.get("instances", F.lit(0)).alias("instance_name"),
        F.lit(MSDB).alias("database_name"),
        "service",
        "instances",
    )
    message = "messages for it go round between %s"
    return exploded(rows, [found("SBR026", F.lit(True), F.col("service"), message, listed(F.col("instances")))])


def _hops(estate: Estate, verdicts: DataFrame) -> DataFrame:
    """Where each instance sends what arrives: service ('' for any other), id, here, there (null: not on)."""
    choice = F.col("choice")
    is_other = F.col("bound_broker").isNotNull() & (F.col("key_broker") == "")
    arriving = verdicts.where(
        (F.col("key_database") == FROM_NETWORK) & F.col("purpose").isin(ARRIVALS, ROUTES)
    ).select(
        F.col("key_service").alias("service"),
        F.when(is_other, F.lit(_OTHER)).otherwise(F.col("key_broker")).alias("id"),
        F.col("instance_name").alias("here"),
        F.explode_outer(F.when(choice["outcome"] == str(Outcome.FORWARDED), addresses_of(choice))).alias(
            "address"
        ),
    )
    places = estate.places.select("address", F.col("instance_name").alias("there"))
    return arriving.join(bounded(places), "address", how="left")


def _edge() -> Column:
    return F.when(F.col("there").isNotNull(), F.struct("id", "here", "there"))


def _gathered() -> list[Column]:
    return [F.collect_set(_edge()).alias("edges"), F.collect_set("id").alias("ids")]


def _own_edges() -> Column:
    """The edges of an id: those for it, and those for any other id of instances that do not know this one."""

    def counts(edge: Column) -> Column:
        pair = F.struct(F.col("id").alias("id"), edge["here"].alias("here"))
        is_other = (F.col("id") != _OPEN) & (edge["id"] == _OTHER) & ~F.array_contains("known", pair)
        return (edge["id"] == F.col("id")) | is_other

    return F.filter("edges", counts).cast(_EDGES)


def _rest_edges() -> Column:
    """The edges for any service of instances that do not know this one."""
    wanted = F.when(F.col("id") == _OPEN, _OPEN).otherwise(_OTHER)
    here = F.col("known")["here"]
    return F.filter("rest", lambda e: (e["id"] == wanted) & ~F.array_contains(here, e["here"])).cast(_EDGES)


def _circles(edges: Column) -> Column:
    """The edges that are left when those with nothing before or nothing after are taken away, again and again."""

    def pruned(left: Column, _: Column) -> Column:
        starts, ends = left["here"], left["there"]
        return F.filter(left, lambda e: F.array_contains(starts, e["there"]) & F.array_contains(ends, e["here"]))

    rounds = F.sequence(F.lit(1), F.greatest(F.least(F.size(edges), F.lit(_ROUNDS)), F.lit(1)))
    return F.aggregate(rounds, edges.cast(_EDGES), pruned)
