"""Questions that a configuration must answer, put to the routing plan as if they were messages.

The plan is the one that `resolve` joins its messages with, so that a finding on what becomes of a message
holds no rule of its own.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import keys as routing_keys
from routing.analysis.lint.estate import Estate, holders, is_users
from routing.configuration import FROM_NETWORK, Features
from routing.joining import bounded
from routing.plan import routing_plan
from routing.terms import BROKER_CONFIGURATION_SERVICE, MSDB, NETWORK_KIND

# Why a question is asked: for routes; for what arrives; where a route can be asked for; for replies.
ROUTES, ARRIVALS, ASKING, RETURNS = "routes", "arrivals", "asking", "returns"
# Names that no table holds: they stand for all that nothing names (keys.py).
_NO_SERVICE, _NO_SERVICE_WITH_ADDRESS = "\x00", "tcp://\x01.invalid:1/\x00"
_NO_BROKER = "\x00"
_ASKED = (
    "purpose",
    "instance_name",
    "key_database",
    "to_service_name",
    "bound_broker",
    "is_initiator",
    "by_instance",
    "by_database",
    "by_name",
)
# Routes are those of one moment, so that nothing changes in time; an own address is a finding of its own row.
_USES = Features(versions=False, own_addresses=False, transport=True, requests=True, requests_twice=False)


def verdicts(estate: Estate) -> DataFrame:
    """What becomes of every question: a row for each choice that the plan has for it.

    Columns: those of `_ASKED`, `keys.KEY`, and choice (see `plan.CHOICE`). by_instance, by_database, by_name:
    for arrivals a route that leads here, null where none does; for replies the initiator's database and service.
    """
    asked = routing_keys.in_scope(_questions(estate), estate.settings)
    keyed = routing_keys.keyed(asked, estate.settings, transport=True).drop("own_addresses")
    plan = routing_plan(keyed.select(*routing_keys.KEY).distinct(), estate.settings, _USES)
    # A key has one row in a plan without times, so the join keeps the number of questions.
    joined = keyed.join(plan.drop("valid_from", "valid_to"), list(routing_keys.KEY), how="inner")
    return joined.withColumn("choice", F.explode("choices")).drop("choices")


def scope(database: Column) -> Column:
    """The key_database of a scope: msdb's routes are for arrivals."""
    return F.when(database == MSDB, FROM_NETWORK).otherwise(database)


def database_of(scope_key: Column) -> Column:
    """The database whose routes a key_database searches."""
    return F.when(scope_key == FROM_NETWORK, MSDB).otherwise(scope_key)


def _questions(estate: Estate) -> DataFrame:
    parts = (_for_routes(estate), _for_arrivals(estate), _for_asking(estate), _for_returns(estate))
    return reduce(DataFrame.unionByName, parts).where(F.col("instance_name").isNotNull())


def _question(rows: DataFrame, purpose: str, **columns: Column) -> DataFrame:
    nothing = F.lit(None).cast("string")
    given = {"purpose": F.lit(purpose), "is_initiator": F.lit(True), **columns}
    return rows.select(*(given.get(name, nothing).alias(name) for name in _ASKED))


def contested(estate: Estate) -> DataFrame:
    """Routes that share service and broker id with another one of their scope, a row each group.

    Columns: instance_name, database_name, service, broker, routes (array of struct name, kind). A route that
    is alone answers every message that is bound to its id (or, without one, to an id that nothing names), so
    that only these can stand in another's shade. Routes that match in no step (D3) are left out.
    """
    return (
        estate.settings.routes.where("service IS NOT NULL OR broker IS NULL")
        .groupBy("instance_name", "database_name", "service", "broker")
        .agg(F.collect_list(F.struct("name", "kind")).alias("routes"))
        .where(F.size("routes") > 1)
    )


def _for_routes(estate: Estate) -> DataFrame:
    """Messages that contested routes and those of msdb could match: open, bound to their id, to another id.

    A route for any service is asked with names that nothing names, with and without an address in them.
    """
    nothing = F.lit(None).cast("string")
    unnamed = F.array(F.lit(_NO_SERVICE), F.lit(_NO_SERVICE_WITH_ADDRESS))
    names = F.when(F.col("service").isNull(), unnamed).otherwise(F.array("service"))
    ids = F.array_distinct(F.array(nothing, F.lit(_NO_BROKER), F.col("broker")))
    columns = ("instance_name", "database_name", "service", "broker")
    in_msdb = estate.settings.routes.where(F.col("database_name") == MSDB)
    routes = (
        in_msdb.where("service IS NOT NULL OR broker IS NULL")
        .select(*columns)
        .unionByName(contested(estate).select(*columns))
        .select("instance_name", "database_name", F.explode(names).alias("service"), ids.alias("ids"))
    )
    rows = routes.withColumn("broker", F.explode("ids")).select(*columns).distinct()
    return _question(
        rows,
        ROUTES,
        instance_name=F.col("instance_name"),
        key_database=scope(F.col("database_name")),
        to_service_name=F.col("service"),
        bound_broker=F.col("broker"),
    )


def named_routes(estate: Estate) -> DataFrame:
    """Routes to other places, by service name: by_instance, by_database, by_name, service, broker, address."""
    return estate.settings.routes.where((F.col("kind") == NETWORK_KIND) & F.col("service").isNotNull()).select(
        F.col("instance_name").alias("by_instance"),
        F.col("database_name").alias("by_database"),
        F.col("name").alias("by_name"),
        "service",
        "broker",
        F.col("same_address.address").alias("address"),
    )


def _leading(estate: Estate) -> DataFrame:
    """Named routes with the other instances whose address they have (instance_name)."""
    places = estate.places.select("instance_name", "address")
    led = named_routes(estate).join(bounded(places), "address", how="inner")
    return led.where(F.col("instance_name") != F.col("by_instance"))


def _for_arrivals(estate: Estate) -> DataFrame:
    """What others route here, and every service that is here; the first route by name speaks for all."""
    by = F.struct("by_instance", "by_database", "by_name")
    led = _leading(estate).select("instance_name", "service", "broker", by.alias("by"))
    nobody = F.lit(None).cast(led.schema["by"].dataType)
    held = estate.settings.holders.where(is_users(F.col("service"))).select(
        "instance_name", "service", F.lit(None).cast("string").alias("broker"), nobody.alias("by")
    )
    first = led.unionByName(held).groupBy("instance_name", "service", "broker").agg(F.min("by").alias("by"))
    return _question(
        first,
        ARRIVALS,
        instance_name=F.col("instance_name"),
        key_database=F.lit(FROM_NETWORK),
        to_service_name=F.col("service"),
        bound_broker=F.col("broker"),
        by_instance=F.col("by.by_instance"),
        by_database=F.col("by.by_database"),
        by_name=F.col("by.by_name"),
    )


def _for_asking(estate: Estate) -> DataFrame:
    """The services of an instance, asked in each scope that has a BrokerConfiguration route."""
    asking = (
        estate.settings.routes.where(F.col("service") == BROKER_CONFIGURATION_SERVICE)
        .select("instance_name", "database_name")
        .distinct()
    )
    held = estate.settings.holders.where(is_users(F.col("service"))).select("instance_name", "service")
    return _question(
        held.join(bounded(asking), "instance_name", how="inner"),
        ASKING,
        instance_name=F.col("instance_name"),
        key_database=scope(F.col("database_name")),
        to_service_name=F.col("service"),
    )


def _for_returns(estate: Estate) -> DataFrame:
    """A reply to each service of a database that sends here by a named route, bound to that database's id.

    Who a route leads to is known where it is pinned to an id, or its address is the holder's own.
    """
    sending = named_routes(estate).where(F.col("by_database") != MSDB)
    held = holders(estate).withColumnRenamed("holder_instance", "instance_name")
    pinned = sending.where(F.col("broker").isNotNull()).join(
        held.withColumnRenamed("holder_broker", "broker"), ["service", "broker"], how="inner"
    )
    opened = _leading(estate).where(F.col("broker").isNull() & (F.col("by_database") != MSDB))
    open_ends = opened.join(held.drop("holder_broker"), ["service", "instance_name"], how="inner")
    columns = ["by_instance", "by_database", "instance_name", "holder_database"]
    ends = pinned.select(*columns).unionByName(open_ends.select(*columns)).distinct()
    initiators = (
        holders(estate)
        .where(is_users(F.col("service")))
        .select(
            F.col("holder_instance").alias("by_instance"),
            F.col("holder_database").alias("by_database"),
            F.col("service").alias("by_name"),
            "holder_broker",
        )
    )
    return _question(
        ends.where(F.col("by_instance") != F.col("instance_name")).join(
            initiators.where(F.col("holder_broker").isNotNull()), ["by_instance", "by_database"], how="inner"
        ),
        RETURNS,
        instance_name=F.col("instance_name"),
        key_database=F.col("holder_database"),
        to_service_name=F.col("by_name"),
        bound_broker=F.col("holder_broker"),
        is_initiator=F.lit(False),
        by_instance=F.col("by_instance"),
        by_database=F.col("by_database"),
        by_name=F.col("by_name"),
    )
