"""The routes that messages used, from local tables and without Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from routing.engines.arrow.arrow_traffic import ArrowTraffic
from routing.engines.traffic_tables import open_traffic
from routing.lint.message_rules import used_routes
from routing.schemas import RESOLVED_ROUTES
from tests.frames import arrow_of
from tests.listed_messages import Row, in_files, resolved

pytest.importorskip("deltalake")
_SENT = ("//a", "01:00:00", "SENT NETWORK_ADDRESS")


def used(name: str, *others: str | None, **columns: Any) -> Row:
    """A message that took a route, or could have taken others."""
    alternatives = [{"route_name": other, "address": "tcp://x:1", "mirror_address": None} for other in others]
    return resolved(name, *_SENT, alternative_routes=alternatives or None, **columns)


def test_routes_that_were_used(tmp_path: Path) -> None:
    rows = [
        used("m1", route_name="One"),
        used("m2", "Two", "Three", route_name="One"),
        used("m3", database_name=None, route_name="Arrived"),
        # Its own address brought it back: the second decision is one of msdb's.
        used("m4", "Later", rerouted_from="Back", route_name="Then"),
        used("m5", "Only", None),
        used("m6"),
    ]
    found = {
        *(("HUB", "Shop", name) for name in ("One", "Two", "Three", "Back", "Only")),
        *(("HUB", "msdb", name) for name in ("Arrived", "Then", "Later")),
    }
    assert used_routes(open_traffic(arrow_of(rows, RESOLVED_ROUTES))) == found
    assert used_routes(open_traffic(in_files(rows, tmp_path / "resolved", 3))) == found
    assert used_routes(open_traffic(arrow_of([], RESOLVED_ROUTES))) == set()


@pytest.mark.parametrize("seed", range(3))
def test_random_messages_against_plain_python(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    names = [None, *(f"route {number}" for number in range(60))]
    rows, expected_routes = [], set()
    for number in range(400):
        database, back, name = chance.choice((None, "Shop", "Other")), chance.choice(names), chance.choice(names)
        back = None if chance.random() < 0.7 else back
        others = chance.choices(names, k=chance.choice((0, 0, 1, 3)))
        where = {"instance": chance.choice(("HUB", "SPOKE")), "database_name": database}
        rows.append(used(f"m{number}", *others, route_name=name, rerouted_from=back, **where))
        there = "msdb" if database is None or back is not None else database
        expected_routes |= {(where["instance"], there, one) for one in (name, *others)}
        expected_routes.add((where["instance"], database or "msdb", back))
    wanted = {one for one in expected_routes if one[2] is not None}
    for stored in (arrow_of(rows, RESOLVED_ROUTES), in_files(rows, tmp_path / "resolved", 3)):
        assert used_routes(open_traffic(stored)) == wanted
        # So that groups are made on the way too.
        assert used_routes(ArrowTraffic.of(stored, rows_waiting=20)) == wanted
