"""All findings that look at one route row, folded into one select."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing import text
from routing.analysis.lint import addresses, refused
from routing.analysis.lint.estate import Estate, host
from routing.analysis.lint.finding import exploded
from routing.joining import bounded


def route_rows(estate: Estate) -> DataFrame:
    """SBR001 to SBR009, SBR011, SBR015, SBR016, SBR029 to SBR032, SBR036, SBR037."""
    known = _with_surroundings(estate)
    lasts = F.coalesce(estate.now < F.least("valid_to", "lifetime"), F.lit(True))
    row = refused.RouteRow(
        name=F.col("name"),
        service=F.col("service"),
        broker=F.col("broker"),
        address=F.col("address"),
        mirror=F.col("mirror"),
        compared=F.col("compared"),
        is_current=lasts,
        now=estate.now,
    )
    return exploded(known, [*refused.checks(row), *addresses.checks(row, estate.days)])


def _with_surroundings(estate: Estate) -> DataFrame:
    """Route rows with what is known of their instance, their address and their service's name.

    The right sides are aggregates with one row a key, so the joins keep the number of rows; a doubled row of
    instances doubles findings, which are made distinct in the end.
    """
    rows = estate.tables["routes"].withColumns(
        {
            "service": text.empty_as_null(F.col("remote_service_name")),
            "broker": text.broker_id(F.col("broker_instance")),
            "mirror": text.empty_as_null(F.col("mirror_address")),
            "compared": text.comparable_address(F.col("address")),
            "host": host(F.col("address")),
            "folded": text.comparable_address(F.col("remote_service_name")),
        }
    )
    own = estate.settings.instances.select("instance_name", "own_addresses", "databases")
    place = F.struct("instance_name", "is_forwarding", "brokers")
    places = estate.places.groupBy(F.col("address").alias("compared")).agg(F.collect_list(place).alias("places"))
    # An address without a port says nothing of the endpoint's.
    ports = F.collect_set(F.when(F.col("port") != "", F.col("port"))).alias("ports")
    services = estate.tables["services"].select("name", text.comparable_address(F.col("name")).alias("folded"))
    return (
        rows.join(bounded(own), "instance_name", how="left")
        .join(bounded(places), "compared", how="left")
        .join(bounded(estate.places.groupBy("host").agg(ports)), "host", how="left")
        .join(
            bounded(services.groupBy("folded").agg(F.collect_set("name").alias("nearly"))),
            "folded",
            how="left",
        )
    )
