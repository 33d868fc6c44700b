"""Small frames as rows of the driver: the same rows, and a frame of too many rows as it was."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from routing import keeping
from tests.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUTE = {"instance_name": "hub", "database_name": "Sales", "name": "R", "address": "LOCAL"}
# In the hour that New York's clocks, the tests' session zone, show twice.
TWICE = datetime(2026, 11, 1, 6, 30, 0, 123456, tzinfo=timezone.utc)
ROUTES: list[dict[str, Any]] = [{**ROUTE, "valid_from": TWICE}, {**ROUTE, "name": "S"}]
INSTANCES: list[dict[str, Any]] = [
    {"instance_name": "hub", "is_message_forwarding_enabled": True, "addresses": ["tcp://hub:4022"]},
    {"instance_name": "spoke", "is_message_forwarding_enabled": None, "addresses": None},
    {"instance_name": "third", "is_message_forwarding_enabled": None, "addresses": []},
]


def _whole(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    return [{name: row.get(name) for name in names} for row in rows]


def test_what_is_held_is_what_was_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA
    from routing.schemas import ROUTES as ROUTES_SCHEMA

    monkeypatch.setattr(keeping, "HELD_ROWS", 2)
    frames = {
        "routes": frame_of(spark, ROUTES, ROUTES_SCHEMA).coalesce(1),
        "instances": frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1),
    }
    held = keeping.held_together(frames)
    assert list(held) == ["routes", "instances"]
    assert keeping.rows_of(held["routes"]) == _whole(ROUTES, ROUTES_SCHEMA.names)
    # Two rows are as many as are held.
    assert held["instances"] is frames["instances"]
    assert (held["routes"] is frames["routes"]) is not keeping.has_arrow()
    with keeping.Keeper() as keeper:
        kept = keeper.keep_together(frames)
        assert keeping.rows_of(kept["instances"]) == _whole(INSTANCES, INSTANCES_SCHEMA.names)
        assert keeping.rows_of(kept["routes"]) == _whole(ROUTES, ROUTES_SCHEMA.names)
        assert [frame is kept["instances"] for frame in keeper.frames] == [True]
        assert kept["instances"].storageLevel.useMemory
    assert not keeper.frames
    assert not frames["instances"].storageLevel.useMemory


def test_a_failure_lets_go_of_what_was_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.schemas import INSTANCES as INSTANCES_SCHEMA

    monkeypatch.setattr(keeping, "HELD_ROWS", 2)
    frame = frame_of(spark, INSTANCES, INSTANCES_SCHEMA).coalesce(1)

    def work() -> None:
        with keeping.Keeper() as keeper:
            assert keeper.keep(frame).storageLevel.useMemory
            raise LookupError

    with pytest.raises(LookupError):
        work()
    assert not frame.storageLevel.useMemory


def test_at_once_keeps_the_order_and_tells_what_failed(spark: SparkSession) -> None:
    assert keeping.at_once(spark, lambda n: n * n, [3, 1, 2]) == [9, 1, 4]
    assert keeping.at_once(spark, str, []) == []
    with pytest.raises(ZeroDivisionError):
        keeping.at_once(spark, lambda n: 1 // n, [1, 0])
