"""How the comparators outside Spark write Delta: with the table settings of the package."""

from __future__ import annotations

from deltalake import WriterProperties

CONFIGURATION = {"delta.dataSkippingStatsColumns": "message_id,instance_name,outcome,decided_at"}


def properties() -> WriterProperties:
    """zstd, as the package writes."""
    return WriterProperties(compression="ZSTD")
