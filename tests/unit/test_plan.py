"""The plan's rows beside what the rules say of each key and each time by itself."""

from __future__ import annotations

import random
from typing import Any

from routing.messages.plan import CHOICE, Planner
from routing.rules.deciding import Decision, Key, decide_at
from routing.rules.estate import Instance, Kind, Route
from tests.reference.estates import random_estate
from tests.unit.rules.by_rules import instances_of

SEED, ESTATES, KEYS = 19, 60, 60
UNKNOWN = "//nobody names it"


def _row(choice: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(CHOICE, choice, strict=True))


def _decided(decision: Decision) -> dict[str, Any]:
    """What a choice says of some columns."""
    leg = decision.last
    return {
        "outcome": str(leg.end.outcome),
        "reason": str(leg.end.reason),
        "route_name": leg.route_name,
        "address": leg.address,
        "broker_instance": decision.pick,
        "rerouted_from": decision.rerouted_from,
        "asks": decision.asks,
        "asks_msdb": decision.asks_again,
        "counts_hops": leg.end.counts_hops,
    }


def _key_rows(instance: Instance, services: list[str], brokers: list[str]) -> list[tuple[Any, ...]]:
    databases = ["", *instance.databases]
    return [
        (instance.name, database, service, broker, initiator)
        for database in databases
        for service in services
        for broker in ["", *brokers]
        for initiator in (0, 1)
    ]


def _times(instance: Instance) -> list[int]:
    """Every bound of a route, and a moment before each."""
    bounds = {
        bound
        for table in instance.routes.values()
        for routes in table.values()
        for route in routes
        for bound in (route.live_from, route.live_to)
        if bound is not None
    }
    return sorted({0} | bounds | {bound - 1 for bound in bounds})


def test_keys_that_share_a_timeline_are_decided_alike_at_every_time() -> None:
    rng, compared, shared, bounded = random.Random(SEED), 0, 0, 0
    for number in range(ESTATES):
        for instance in instances_of(random_estate(rng, 5, f"e{number}/")).values():
            routes = [r for table in instance.routes.values() for found in table.values() for r in found]
            services = sorted({r.service for r in routes if r.service} | set(instance.holders))
            brokers = sorted({r.broker for r in routes if r.broker} | instance.brokers)
            rows = _key_rows(instance, services, brokers)
            planner = Planner({instance.name: instance})
            for row in rng.sample(rows, min(KEYS, len(rows))):
                timeline = planner.timelines[planner.number(row)]
                bounded += len(timeline.rows) > 1
                _, database, service, broker, initiator = row
                key = Key.of_names(
                    instance, database or None, service, broker or None, is_initiator=bool(initiator)
                )
                for t in _times(instance):
                    (found,) = [c for a, b, c in timeline.rows if (a is None or a <= t) and (b is None or t < b)]
                    expected = [_decided(decision) for decision in decide_at(key, instance, t)]
                    assert [{n: _row(c)[n] for n in expected[0]} for c in found] == expected, (key, t)
                    compared += 1
            shared += min(KEYS, len(rows)) - len(planner.timelines)
    assert compared > 10_000
    assert shared > 500
    assert bounded > 500


def test_versions_that_are_decided_alike_are_one_row() -> None:
    def version(start: int, address: str) -> Route:
        return Route(f"v{start}", None, None, start, start + 10, address, None, Kind.NETWORK)

    versions = (version(0, "tcp://a:1"), version(10, "tcp://a:1"), version(20, "tcp://b:1"))
    named = tuple(Route("same", None, None, v.live_from, v.live_to, v.address, None, v.kind) for v in versions)
    instance = Instance("i", routes={"d": {None: named}})
    planner = Planner({"i": instance})
    rows = planner.timelines[planner.number(("i", "d", UNKNOWN, "", 1))].rows
    assert [(start, end, _row(choices[0])["address"]) for start, end, choices in rows] == [
        (None, 0, None),
        (0, 20, "tcp://a:1"),
        (20, 30, "tcp://b:1"),
        (30, None, None),
    ]


def test_thousands_of_versions_are_swept_once_for_a_thousand_keys() -> None:
    named = tuple(
        Route("any", None, None, start, start + 1, f"tcp://h{start}:1", None, Kind.NETWORK)
        for start in range(5_000)
    )
    instance = Instance("i", routes={"d": {None: named}})
    planner = Planner({"i": instance})
    numbers = {planner.number(("i", "d", f"//service/{n}", "", 1)) for n in range(1_000)}
    assert numbers == {0}
    assert len(planner.timelines[0].rows) == 5_002
