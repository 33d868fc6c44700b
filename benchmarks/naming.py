"""Names, ids and chance of the benchmark's rows: Column → Column."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from benchmarks.shape import DATABASES

DAY = 1_767_571_200  # 2026-01-05T00:00:00Z
WHOLE = 10_000


def guid(number: Column, salt: str) -> Column:
    """Return a GUID in lower case. Other salts give other ids."""
    digest = F.md5(F.concat(F.lit(salt), number.cast("string")))
    cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return F.concat_ws("-", *(F.substring(digest, start, length) for start, length in cuts))


def by_chance(number: Column, salt: int, share: float) -> Column:
    """Whether a row is among a share of all, decided by a hash of its number."""
    return F.pmod(F.xxhash64(number, F.lit(salt)), F.lit(WHOLE)) < int(share * WHOLE)


def instance_name(number: Column) -> Column:
    """The name of an instance."""
    return F.format_string("server-%04d", number)


def database_name(number: Column) -> Column:
    """Return the name of a database. The last one of an instance is msdb."""
    return F.when(number == DATABASES, F.lit("msdb")).otherwise(F.format_string("app_%d", number))


def service_name(number: Column) -> Column:
    """The name of a service."""
    return F.format_string("//example.net/service/%05d", number)
