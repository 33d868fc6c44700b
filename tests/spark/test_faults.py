"""Faults found in plain columns are those that Spark finds in the same rows."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from tests.frames import Tables, frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS, SEED = 400, 20260105
# No capitals outside ASCII: of these Spark folds some.
_TEXTS = ("a", "A", "b, c", "", None, "%s", "x" * 99 + "\U0001f600é")
_IDS = ("id", " {} ", "{ID}", "00000000-0000-0000-0000-000000000000", "{", "", None)
_ADDRESSES = ("LOCAL", " transport/", "tcp://far:4022", "TCP://[::1]", "far", "tcp://:1", "tcp://x y", "", None)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES = (
    *(None, None, _EPOCH, _EPOCH - timedelta(microseconds=1), _EPOCH + timedelta(days=20_000, milliseconds=120)),
    datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc),
)


def _value(rng: random.Random, name: str, kind: str) -> Any:
    if kind == "array<string>":
        return rng.choice((None, [], rng.sample(_ADDRESSES, 3)))
    if kind == "timestamp":
        return rng.choice(_TIMES)
    if kind == "boolean":
        return rng.choice((True, False, None))
    if kind == "int":
        return rng.choice((1, None))
    if "address" in name:
        return rng.choice(_ADDRESSES)
    return rng.choice(_IDS if "broker" in name else _TEXTS)


def random_tables() -> Tables:
    """Rows with faults of all kinds, many keys doubled."""
    from routing.schemas import INPUTS, KEYS

    rng = random.Random(SEED)
    return {
        key: [{f.name: _value(rng, f.name, str(f.kind)) for f in INPUTS[key]} for _ in range(ROWS)] for key in KEYS
    }


@pytest.fixture
def _utc(spark: SparkSession) -> Iterator[None]:
    """Spark casts a time to text in the session's zone."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.usefixtures("_utc")
def test_faults_are_those_that_spark_finds(spark: SparkSession) -> None:
    from routing.messages import validate
    from routing.schemas import KEYS
    from routing.storage.conform import conform
    from routing.storage.faults import findings
    from routing.storage.inputs import columns_of

    tables = {key: frame for key, frame in frames(spark, random_tables()).items() if key in KEYS}
    expected = validate.findings({key: conform(frame, key) for key, frame in tables.items()}).collect()
    got = findings({key: columns_of(frame, key) for key, frame in tables.items()})
    assert len(expected) > ROWS
    assert Counter(tuple(fault) for fault in got) == Counter(tuple(row) for row in expected)
