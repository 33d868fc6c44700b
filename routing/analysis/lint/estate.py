"""What all findings look at: the conformed tables, the rules' view of them, and who has which address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.configuration import Configuration, configuration
from routing.terms import LOOPBACK_HOSTS

# Every database of SQL Server holds services of these; nobody routes to them.
_SYSTEM_SERVICES = "http://schemas.microsoft.com/SQL/"


@dataclass(frozen=True)
class Estate:
    """Conformed, not validated tables at one moment.

    settings: the rules' view; its routes are those in force at ``now``.
    places: address (comparable text, no loopback), host, port, instance_name, is_forwarding, brokers (array).
    days: how soon an end of a lifetime is near.
    """

    tables: Mapping[str, DataFrame]
    settings: Configuration
    places: DataFrame
    now: Column
    days: int


def estate_of(tables: Mapping[str, DataFrame], now: datetime, days: int) -> Estate:
    """The estate at a moment; ``tables`` are conformed, ``now`` has a zone."""
    moment = F.lit(now)
    whole = configuration(tables)
    starts = F.col("live_from").isNull() | (F.col("live_from") <= moment)
    lasts = F.col("live_to").isNull() | (moment < F.col("live_to"))
    settings = replace(whole, routes=whole.routes.where(starts & lasts))
    return Estate(tables, settings, _places(settings.instances), moment, days)


def _places(instances: DataFrame) -> DataFrame:
    addresses = instances.select(
        "instance_name",
        "is_forwarding",
        F.array_compact(F.transform("databases", lambda d: d["broker"])).alias("brokers"),
        F.explode("own_addresses").alias("address"),
    )
    with_host = addresses.withColumns({"host": host(F.col("address")), "port": text.port(F.col("address"))})
    return with_host.where(~F.col("host").isin(*LOOPBACK_HOSTS))


def host(address: Column) -> Column:
    """The host of a tcp address, as two are compared."""
    bare = F.regexp_replace(text.comparable_address(address), r"\Atcp://", "")
    return F.regexp_replace(bare, r":[0-9]{1,5}\z", "")


def is_users(service: Column) -> Column:
    """A service that somebody made, not one that every database holds."""
    return ~service.startswith(_SYSTEM_SERVICES)


def holders(estate: Estate) -> DataFrame:
    """Who holds what, a row each: service, holder_instance, holder_database, holder_broker."""
    return estate.settings.holders.select(
        F.col("service"),
        F.col("instance_name").alias("holder_instance"),
        F.explode("holders").alias("holder"),
    ).select(
        "service",
        "holder_instance",
        F.col("holder.name").alias("holder_database"),
        F.col("holder.broker").alias("holder_broker"),
    )
