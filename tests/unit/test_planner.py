"""Timelines for one time and all times, and the planner's memory of keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from routing.plan.planner import Planner
from routing.rules.deciding import ConcerningRoutes, Decision, RoutingKey
from routing.rules.estate import AddressKind, EstateRoute, SqlInstance
from tests.reference.estates import draw_estates
from tests.unit.rules.by_rules import instances_of
from tests.unit.rules.made import NOWHERE, OWN, B, decide_at, instance, key_of, route

VERSIONS = 5_000


def _versions(count: int) -> SqlInstance:
    """An instance with so many versions of one route, each in force for a microsecond."""
    versions = [
        EstateRoute("any", None, None, start, start + 1, f"tcp://h{start}:1", None, AddressKind.NETWORK)
        for start in range(count)
    ]
    return SqlInstance("hub", routes={"Orders": {None: tuple(versions)}})


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times for which decisions are made."""
    times: list[int] = []
    decide = ConcerningRoutes.decide

    def counted(self: ConcerningRoutes, t: int) -> tuple[Decision, ...]:
        times.append(t)
        return decide(self, t)

    monkeypatch.setattr(ConcerningRoutes, "decide", counted)
    monkeypatch.setattr(ConcerningRoutes, "decide_all", lambda self: pytest.fail("all times are decided"))
    return times


def test_one_time_decides_only_its_interval(made: list[int]) -> None:
    hub = _versions(VERSIONS)
    timeline = Planner().timeline(key_of(hub), hub)
    intervals = [timeline.at(t) for t in (7, 7, 4_000, 7)]
    assert [(one.valid_from, one.valid_to) for one in intervals] == [(7, 8), (7, 8), (4_000, 4_001), (7, 8)]
    assert made == [7, 4_000]
    assert intervals[0] is intervals[1] is intervals[3]


@pytest.mark.parametrize(
    ("t", "bounds"),
    [(-1, (None, 0)), (0, (0, 1)), (2, (2, 3)), (3, (3, None)), (10**18, (3, None))],
    ids=["before all", "the first moment", "inside", "the end of the last", "long after"],
)
def test_an_interval_ends_where_a_version_changes(t: int, bounds: tuple[int | None, int | None]) -> None:
    hub = _versions(3)
    one = Planner().at(key_of(hub), hub, t)
    assert (one.valid_from, one.valid_to) == bounds


def test_one_time_equals_the_sweep_over_all_times() -> None:
    rng, compared = random.Random(20260105), 0
    for tables in draw_estates(rng, 20, 5):
        for hub in instances_of(tables).values():
            service = rng.choice([*hub.holders, "//nobody"])
            key = RoutingKey.of_names(hub, rng.choice([None, *hub.databases]), service, None, is_initiator=True)
            timeline = Planner().timeline(key, hub)
            for whole in timeline.intervals():
                t = whole.valid_from if whole.valid_from is not None else (whole.valid_to or 0) - 1
                assert timeline.at(t) == whole
                assert whole.choices == decide_at(key, hub, t)
                compared += 1
    assert compared > 50


@pytest.mark.parametrize(
    ("is_exact", "is_shared"), [(False, True), (True, False)], ids=["what counts", "the key itself"]
)
def test_equivalent_keys_share_a_timeline_unless_exact(is_exact: bool, is_shared: bool) -> None:
    hub = instance({"Orders": [route("any")]})
    decisions = Planner(is_exact=is_exact)
    one, other = (decisions.timeline(key_of(hub, broker=broker), hub) for broker in ("nobody's", "no one's"))
    assert (one is other) is is_shared
    assert decisions.timeline(key_of(hub, broker=B), hub) is not one


def test_unknown_names_need_no_memory() -> None:
    hub = instance({"Orders": [route("any")]})
    decisions = Planner(most_keys=10)
    for number in range(95):
        decisions.timeline(key_of(hub, service=f"//invented/{number}"), hub)
    memories = [one for one in vars(decisions).values() if isinstance(one, dict)]
    assert len(memories) == 2
    assert all(len(one) <= 10 for one in memories)


class CountedRoute(EstateRoute):
    """A route that counts how often any such route was asked for its broker instance."""

    reads = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "broker":
            CountedRoute.reads += 1
        return super().__getattribute__(name)


def _bound_routes(side: int, address: str) -> Iterator[CountedRoute]:
    """Return the same number of routes for each of some services, each with its own broker instance."""
    for number in range(side * side):
        names = f"{number:06}", f"//s/{number // side}", f"{number:08x}-0000-4000-8000-000000000000"
        yield CountedRoute(*names, None, None, address, None, AddressKind.NETWORK)


@pytest.mark.parametrize(
    ("there", "database"),
    [("tcp://far:1", "app"), (OWN, "app"), ("tcp://far:1", None)],
    ids=["sent on", "back to msdb", "arrived"],
)
def test_a_bound_message_reads_no_routes_of_other_broker_instances(there: str, database: str | None) -> None:
    side = 40
    routes = {"app": [*_bound_routes(side, there)], "msdb": [*_bound_routes(side, "tcp://far:1")]}
    hub = instance(routes, databases=[("app", None, None), ("msdb", None, None)], forwards=True)
    CountedRoute.reads = 0
    timelines = Planner()
    for one_route in routes["msdb"]:
        assert one_route.service is not None
        for broker in (one_route.broker, NOWHERE):
            key = RoutingKey.of_names(hub, database, one_route.service, broker, is_initiator=True)
            [one] = timelines.at(key, hub, 0).choices
            assert one.last.route_name == (None if broker == NOWHERE else one_route.name)
    assert CountedRoute.reads < 40 * side * side


@pytest.mark.parametrize("there", ["tcp://far:1", OWN], ids=["sent on", "back to msdb"])
def test_an_open_message_reads_each_route_of_its_service_few_times(there: str) -> None:
    side = 40
    routes = {"app": [*_bound_routes(side, there)], "msdb": [*_bound_routes(side, "tcp://far:1")]}
    hub = instance(routes, databases=[("app", None, None), ("msdb", None, None)], forwards=True)
    CountedRoute.reads = 0
    for number in range(side):
        key = RoutingKey.of_names(hub, "app", f"//s/{number}", None, is_initiator=True)
        choices = Planner().at(key, hub, 0).choices
        assert [one.last.route_name for one in choices] == [f"{number * side + n:06}" for n in range(side)]
    assert CountedRoute.reads < 40 * side * side
