"""The oracle agrees with the worked cases, and with itself over random estates."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from .cases import Case, read_cases
from .cells import Cell
from .estate_words import MOMENTS
from .estates import (
    Tables,
    joined,
    random_estate,
    reachable_cells,
    reachable_rerouted_cells,
)
from .resolver import Resolution, resolve

CASES = read_cases()
REQUEST_KEY = ("instance_name", "database_name", "service_name", "requested_at", "message_id")


def picked_columns(row: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    return {column: row[column] for column in like}


def estates(seed: int, count: int, n_messages: int = 60) -> Iterator[Tables]:
    rng = random.Random(seed)
    for number in range(count):
        yield random_estate(rng, n_messages, prefix=f"e{number}-")


def bag(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


def bags(resolution: Resolution) -> tuple[Counter[str], Counter[str], Counter[str]]:
    return (
        bag(resolution.resolved_routes),
        bag(resolution.new_route_requests),
        bag(resolution.rejected_messages),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_worked_case(case: Case) -> None:
    resolution = resolve(case.tables, case.as_of)
    rows = {row["message_id"]: row for row in resolution.resolved_routes}
    expected = case.expect.get("resolved_routes", [])
    assert [picked_columns(rows[row["message_id"]], row) for row in expected] == expected

    rejected = [row["message_id"] for row in resolution.rejected_messages]
    assert rejected == case.expect.get("rejected_messages", [])
    assert len(rows) + len(rejected) == len(case.tables["messages"])

    if "new_route_requests" in case.expect:
        requests = sorted(case.expect["new_route_requests"], key=lambda row: row["message_id"])
        opened = sorted(resolution.new_route_requests, key=lambda row: row["message_id"])
        assert len(opened) == len(requests)
        listed = [picked_columns(row, like) for row, like in zip(opened, requests, strict=True)]
        assert listed == requests


def test_all_case_files_are_read() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_reachable_decision_is_reached_and_no_other() -> None:
    cells, rerouted_cells = reachable_cells(), reachable_rerouted_cells()
    reached: Counter[Cell] = Counter()
    rerouted: Counter[Cell] = Counter()
    for number, estate in enumerate(estates(seed=11, count=6000)):
        for cell, again in resolve(estate).cells():
            reached[cell] += 1
            if again:
                rerouted[cell] += 1
        all_reached = set(reached) >= cells and set(rerouted) >= rerouted_cells
        if all_reached and number >= 400:  # enough to find impossible decisions
            break
    assert set(reached) == cells
    assert set(rerouted) == rerouted_cells


def test_messages_are_never_lost() -> None:
    for estate in estates(seed=2, count=100):
        resolution = resolve(estate)
        assert len(resolution.resolved_routes) + len(resolution.rejected_messages) == 60
        assert len(resolution.tiers) == len(resolution.resolved_routes)
        assert all(row["reasons"] for row in resolution.rejected_messages)


@pytest.mark.parametrize("as_of", [None, MOMENTS[4]])
def test_resolving_again_with_the_requests_on_record_changes_nothing(as_of: Any) -> None:
    opened = 0
    for estate in estates(seed=3, count=100):
        first = resolve(estate, as_of)
        recorded = {tuple(row[key] for key in REQUEST_KEY) for row in estate["route_requests"]}
        new = [row for row in first.new_route_requests if tuple(row[key] for key in REQUEST_KEY) not in recorded]
        opened += len(new)
        again = {**estate, "route_requests": estate["route_requests"] + new}
        assert bags(resolve(again, as_of)) == bags(first)
    assert opened > 30


def test_the_order_of_the_rows_does_not_matter() -> None:
    rng = random.Random(4)
    for estate in estates(seed=4, count=100):
        shuffled = {table: rng.sample(rows, len(rows)) for table, rows in estate.items()}
        assert bags(resolve(shuffled)) == bags(resolve(estate))


def test_joined_estates_are_resolved_independently() -> None:
    separate_estates = list(estates(seed=5, count=20))
    together = bags(resolve(joined(separate_estates)))
    apart = [bags(resolve(estate)) for estate in separate_estates]
    for table in range(3):
        assert together[table] == sum((resolution[table] for resolution in apart), Counter())


def test_times_without_a_zone_are_utc() -> None:
    for estate in estates(seed=6, count=50):
        naive = {
            table: [
                {k: v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for k, v in row.items()} for row in rows
            ]
            for table, rows in estate.items()
        }
        resolution, other = resolve(estate), resolve(naive)
        assert bag(resolution.resolved_routes) == bag(other.resolved_routes)
        assert bag(resolution.new_route_requests) == bag(other.new_route_requests)


def test_the_namespace_and_the_run_id_are_arguments() -> None:
    estate = next(e for e in estates(seed=9, count=50) if resolve(e).new_route_requests)
    resolution = resolve(estate, namespace="urn:x", run_id="r7")
    assert all('xmlns="urn:x"' in row["body"] for row in resolution.new_route_requests)
    rows = resolution.resolved_routes + resolution.new_route_requests + resolution.rejected_messages
    assert {row["run_id"] for row in rows} == {"r7"}
    assert {row["attempt"] for row in resolution.resolved_routes} == {1}
