"""The plan's rows beside what the rules say of each key and each time by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from routing.messages.plan import CHOICE, Planner
from routing.messages.timelines import Timeline
from routing.rules.deciding import Decision, Key, decide_at
from routing.rules.estate import Database, Instance, Kind, Route
from routing.schemas import DATABASES, INSTANCES, ROUTES, SERVICES
from routing.storage.columns import Columns
from routing.storage.columns import instances_of as columns_as_instances
from routing.terms import MSDB
from tests.reference.estates import random_estate
from tests.unit.rules.by_rules import instances_of
from tests.without import run_python

SEED, ESTATES, KEYS = 19, 60, 60
UNKNOWN = "//nobody names it"


def _row(choice: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(CHOICE, choice, strict=True))


def _decided(decision: Decision) -> dict[str, Any]:
    """What a choice says of most columns."""
    leg = decision.last
    return {
        "outcome": str(leg.end.outcome),
        "reason": str(leg.end.reason),
        "matching_step": leg.step,
        "route_name": leg.route_name,
        "address": leg.address,
        "mirror_address": leg.mirror_address,
        "reads_address": leg.reads_address,
        "destination_database": decision.destination,
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


def _draw_keys(rng: random.Random, instance: Instance, number: int) -> list[tuple[Any, ...]]:
    """Some keys of an instance, or all."""
    routes = [r for table in instance.routes.values() for found in table.values() for r in found]
    services = sorted({r.service for r in routes if r.service} | set(instance.holders))
    brokers = sorted({r.broker for r in routes if r.broker} | instance.brokers)
    rows = _key_rows(instance, services, brokers)
    return rng.sample(rows, min(number, len(rows)))


def _compare(timeline: Timeline, row: tuple[Any, ...], instance: Instance) -> int:
    """Hold a key's timeline against its decisions, at as many times as are given back."""
    _, database, service, broker, initiator = row
    key = Key.of_names(instance, database or None, service, broker or None, is_initiator=bool(initiator))
    times = _times(instance)
    for t in times:
        (found,) = [c for a, b, c in timeline.rows if (a is None or a <= t) and (b is None or t < b)]
        expected = [_decided(decision) for decision in decide_at(key, instance, t)]
        assert [{n: _row(c)[n] for n in expected[0]} for c in found] == expected, (key, instance, t)
    asks = any(_row(choice)["asks"] for _, _, choices in timeline.rows for choice in choices)
    assert timeline.uses.asks_in_databases == (asks and database not in ("", MSDB))
    return len(times)


def test_keys_that_share_a_timeline_are_decided_alike_at_every_time() -> None:
    rng, compared, shared, bounded = random.Random(SEED), 0, 0, 0
    for number in range(ESTATES):
        for instance in instances_of(random_estate(rng, 5, f"e{number}/")).values():
            rows = _draw_keys(rng, instance, KEYS)
            planner = Planner({instance.name: instance})
            for row in rows:
                timeline = planner.timelines[planner.number(row)]
                bounded += len(timeline.rows) > 1
                compared += _compare(timeline, row, instance)
            shared += len(rows) - len(planner.timelines)
    assert compared > 10_000
    assert shared > 500
    assert bounded > 500


def _renamed(names: Mapping[str, Any]) -> dict[str, Any]:
    """By database, whose names are others then, but for msdb."""
    return {name if name == MSDB else f"{name}'": value for name, value in names.items()}


def _twins(rng: random.Random, instance: Instance) -> Iterator[Instance]:
    """Instances with the very routes of another one, from which each differs in one thing or two."""
    routes = [r for table in instance.routes.values() for found in table.values() for r in found]
    addresses = frozenset(str(r.compared) for r in rng.sample(routes, min(2, len(routes))))
    ids = [r.broker for r in routes]
    databases = instance.databases
    table = rng.choice([*instance.routes.values(), {}])
    every = tuple(databases[name] for name in sorted(databases))
    others = {
        "same": instance,
        "forwarding": replace(instance, is_forwarding=not instance.is_forwarding),
        "elsewhere": replace(instance, own_addresses=frozenset()),
        "there": replace(instance, own_addresses=addresses),
        "databases": replace(instance, routes=_renamed(instance.routes), databases=_renamed(databases)),
        "arrivals": replace(instance, routes={n: r for n, r in instance.routes.items() if n != MSDB}),
        "nothing": replace(instance, holders={}),
        "alike": replace(
            instance,
            routes=dict.fromkeys([*databases, MSDB], table),
            holders=dict.fromkeys(instance.holders, every),
        ),
    }
    for off in databases:
        enabled = {name: replace(one, is_enabled=name != off) for name, one in databases.items()}
        others[f"off {off}"] = _with_databases(instance, enabled)
        numbered = {**databases, off: replace(databases[off], broker=rng.choice(ids))}
        others[f"id {off}"] = _with_databases(instance, numbered)
    for name, other in others.items():
        yield replace(other, name=f"{instance.name}/{name}")


def _with_databases(instance: Instance, databases: Mapping[str, Database]) -> Instance:
    """An instance with other databases of the same names, which hold the same services."""
    holders = {service: tuple(databases[h.name] for h in held) for service, held in instance.holders.items()}
    return replace(instance, databases=databases, holders=holders)


def test_keys_of_instances_that_share_a_timeline_are_decided_alike_at_every_time() -> None:
    rng, shared, apart = random.Random(SEED), 0, 0
    for number in range(ESTATES // 4):
        first, *_ = instances_of(random_estate(rng, 5, f"e{number}/")).values()
        twins = {twin.name: twin for twin in _twins(rng, first)}
        planner = Planner(twins)
        for _, database, *rest in _draw_keys(rng, first, KEYS // 4):
            numbers = set()
            for twin in twins.values():
                there = database if database in ("", *twin.databases) else f"{database}'"
                row = (twin.name, there, *rest)
                numbers.add(planner.number(row))
                _compare(planner.timelines[planner.number(row)], row, twin)
            shared += len(twins) - len(numbers)
            apart += len(numbers) - 1
    assert shared > 500
    assert apart > 500


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


def test_equal_rows_of_routes_are_decided_once_wherever_they_are() -> None:
    place = [("hub", "Orders"), ("hub", "Parts"), ("spoke", "Orders")]
    routes = [
        {"instance_name": instance, "database_name": database, "name": "far", "address": "tcp://far:1"}
        for instance, database in place
    ]
    other = {**routes[-1], "database_name": "Stock", "address": "tcp://further:1"}
    columns = {
        "instances": Columns.of_rows([{"instance_name": name} for name in ("hub", "spoke")], INSTANCES),
        "databases": Columns.of_rows([], DATABASES),
        "services": Columns.of_rows([], SERVICES),
        "routes": Columns.of_rows([*routes, other], ROUTES),
    }
    planner = Planner(columns_as_instances(columns))
    numbers = [planner.number((*scope, UNKNOWN, "", 1)) for scope in (*place, ("spoke", "Stock"))]
    assert numbers == [0, 0, 0, 1]
    assert [_row(one.rows[0][2][0])["address"] for one in planner.timelines] == ["tcp://far:1", "tcp://further:1"]


def test_keys_are_decided_without_spark() -> None:
    program = "import sys, routing.messages.plan; sys.exit('pyspark' in sys.modules)"
    assert run_python(program).returncode == 0


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
