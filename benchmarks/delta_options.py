"""How the comparators outside Spark write Delta: with the table settings of the package."""

from __future__ import annotations

from deltalake import WriterProperties

from routing.delta.spark_tables import properties_of

CONFIGURATION = properties_of("resolved_routes")


def properties() -> WriterProperties:
    """zstd, as the package writes."""
    return WriterProperties(compression="ZSTD")
