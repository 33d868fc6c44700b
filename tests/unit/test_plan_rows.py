"""The plan's rows compared with the rules for each key and time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from routing.plan.checked_inputs import instances_of as columns_as_instances
from routing.plan.key_rows import CHOICE, KEY, DecidedKeys, KeyDecider, TimelineRows, decide_keys
from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import AddressKind, Database, EstateRoute, NameAddress, ServiceHolders, SqlInstance
from routing.schemas import DATABASES, INSTANCES, ROUTES, SERVICES
from routing.tables.table_columns import TableColumns
from routing.terms import MSDB
from tests.reference.estates import draw_estates
from tests.unit.rules.by_rules import instances_of
from tests.unit.rules.made import decide_at
from tests.without import run_python

SEED, ESTATES, TWINS, KEYS = 19, 20, 8, 60
UNKNOWN = "//nobody names it"


def _row(choice: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(CHOICE.names, choice, strict=True))


def _decide(rows: Sequence[tuple[Any, ...]], instances: Mapping[str, SqlInstance]) -> DecidedKeys:
    columns = dict(zip(KEY, zip(*rows, strict=True), strict=True))
    return decide_keys(TableColumns(columns), instances)


def _decided(decision: Decision) -> dict[str, Any]:
    """Return the decided columns of a choice."""
    search = decision.last
    return {
        "outcome": str(search.end.outcome),
        "reason": str(search.end.reason),
        "matching_step": search.step,
        "route_name": search.route_name,
        "address": search.address,
        "mirror_address": search.mirror_address,
        "reads_address": search.reads_address,
        "destination_database": decision.destination,
        "broker_instance": decision.pick,
        "rerouted_from": decision.rerouted_from,
        "asks": decision.asks,
        "asks_msdb": decision.asks_again,
        "counts_hops": search.end.counts_hops,
    }


def _key_rows(instance: SqlInstance, services: list[str], brokers: list[str]) -> list[tuple[Any, ...]]:
    databases = ["", *instance.databases]
    return [
        (instance.name, database, service, broker, initiator)
        for database in databases
        for service in services
        for broker in ["", *brokers]
        for initiator in (0, 1)
    ]


def _times(instance: SqlInstance) -> list[int]:
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


def _draw_keys(rng: random.Random, instance: SqlInstance, number: int) -> list[tuple[Any, ...]]:
    """Some keys of an instance, or all."""
    routes = [r for table in instance.routes.values() for found in table.values() for r in found]
    services = sorted({r.service for r in routes if r.service} | set(instance.holders))
    brokers = sorted({r.broker for r in routes if r.broker} | set(instance.brokers))
    rows = _key_rows(instance, services, brokers)
    return rng.sample(rows, min(number, len(rows)))


def _compare(timeline: TimelineRows, row: tuple[Any, ...], instance: SqlInstance) -> int:
    """Hold a key's timeline against its decisions, at as many times as are given back."""
    _, database, service, broker, initiator = row
    key = RoutingKey.of_names(instance, database or None, service, broker or None, is_initiator=bool(initiator))
    times = _times(instance)
    for t in times:
        (choices,) = [c for a, b, c in timeline.rows if (a is None or a <= t) and (b is None or t < b)]
        expected = [_decided(decision) for decision in decide_at(key, instance, t)]
        assert [{n: _row(c)[n] for n in expected[0]} for c in choices] == expected, (key, instance, t)
    return len(times)


def _compare_uses(row: tuple[Any, ...], instance: SqlInstance) -> None:
    """Compare the uses of a plan of one key with its rows."""
    decided = _decide([row], {instance.name: instance})
    [timeline], uses = decided.timelines, decided.uses
    asks = any(_row(choice)["asks"] for _, _, choices in timeline.rows for choice in choices)
    assert (uses.asks, uses.asks_in_databases) == (asks, asks and row[1] not in ("", MSDB))
    assert uses.has_times == (len(timeline.rows) > 1)


def test_keys_that_share_a_timeline_are_decided_alike_at_every_time() -> None:
    rng, compared, shared, bounded = random.Random(SEED), 0, 0, 0
    for tables in draw_estates(rng, ESTATES, 5):
        for instance in instances_of(tables).values():
            rows = _draw_keys(rng, instance, KEYS)
            decided = _decide(rows, {instance.name: instance})
            for number, row in zip(decided.numbers, rows, strict=True):
                timeline = decided.timelines[number]
                bounded += len(timeline.rows) > 1
                compared += _compare(timeline, row, instance)
            shared += len(rows) - len(decided.timelines)
            for row in rows[:5]:
                _compare_uses(row, instance)
    assert compared > 10_000
    assert shared > 500
    assert bounded > 500


def _renamed(names: Mapping[str, Any]) -> dict[str, Any]:
    """Rename all databases but msdb."""
    return {name if name == MSDB else f"{name}'": value for name, value in names.items()}


def _twins(rng: random.Random, instance: SqlInstance) -> Iterator[SqlInstance]:
    """Instances with the very routes of another one, from which each differs in one thing or two."""
    routes = [r for table in instance.routes.values() for found in table.values() for r in found]
    addresses = frozenset(str(r.compared) for r in rng.sample(routes, min(2, len(routes))))
    ids = [r.broker for r in routes]
    databases = instance.databases
    table = rng.choice([*instance.routes.values(), {}])
    every = ServiceHolders(databases[name] for name in sorted(databases))
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


def _with_databases(instance: SqlInstance, databases: Mapping[str, Database]) -> SqlInstance:
    """An instance with other databases of the same names, which hold the same services."""
    holders = {
        service: ServiceHolders(databases[h.name] for h in held) for service, held in instance.holders.items()
    }
    return replace(instance, databases=databases, holders=holders)


def test_keys_of_instances_that_share_a_timeline_are_decided_alike_at_every_time() -> None:
    rng, shared, apart = random.Random(SEED), 0, 0
    for tables in draw_estates(rng, TWINS, 5):
        first, *_ = instances_of(tables).values()
        twins = {twin.name: twin for twin in _twins(rng, first)}
        for _, database, *rest in _draw_keys(rng, first, KEYS // 4):
            rows = []
            for twin in twins.values():
                there = database if database in ("", *twin.databases) else f"{database}'"
                rows.append((twin.name, there, *rest))
            decided = _decide(rows, twins)
            for row, place in zip(rows, decided.numbers, strict=True):
                _compare(decided.timelines[place], row, twins[row[0]])
            numbers = set(decided.numbers)
            shared += len(twins) - len(numbers)
            apart += len(numbers) - 1
    assert shared > 250
    assert apart > 250


def test_versions_that_are_decided_alike_are_one_row() -> None:
    def version(start: int, address: str) -> EstateRoute:
        return EstateRoute(f"v{start}", None, None, start, start + 10, address, None, AddressKind.NETWORK)

    versions = (version(0, "tcp://a:1"), version(10, "tcp://a:1"), version(20, "tcp://b:1"))
    named = tuple(
        EstateRoute("same", None, None, v.live_from, v.live_to, v.address, None, v.kind) for v in versions
    )
    instance = SqlInstance("i", routes={"d": {None: named}})
    rows = _decide([("i", "d", UNKNOWN, "", 1)], {"i": instance}).timelines[0].rows
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
        "instances": TableColumns.of_rows([{"instance_name": name} for name in ("hub", "spoke")], INSTANCES),
        "databases": TableColumns.of_rows([], DATABASES),
        "services": TableColumns.of_rows([], SERVICES),
        "routes": TableColumns.of_rows([*routes, other], ROUTES),
    }
    keys = [(*scope, UNKNOWN, "", 1) for scope in (*place, ("spoke", "Stock"))]
    decided = _decide(keys, columns_as_instances(columns))
    assert decided.numbers == [0, 0, 0, 1]
    assert [_row(one.rows[0][2][0])["address"] for one in decided.timelines] == ["tcp://far:1", "tcp://further:1"]


def test_evicted_routes_are_not_reused() -> None:
    decider, key = KeyDecider(), RoutingKey("d", None, None, True, NameAddress.NONE)
    addresses = []
    for address in ("tcp://a:1", "tcp://b:1"):
        route = EstateRoute("any", None, None, None, None, address, None, AddressKind.NETWORK)
        place = decider.decide_one(key, SqlInstance("i", routes={"d": {None: (route,)}}))
        addresses.append(_row(decider.timelines[place].rows[0][2][0])["address"])
        decider.forget_routes()
    assert addresses == ["tcp://a:1", "tcp://b:1"]


def test_keys_are_decided_without_spark() -> None:
    program = "import sys, routing.plan.key_rows, routing.plan.verdicts; sys.exit('pyspark' in sys.modules)"
    assert run_python(program).returncode == 0


def test_many_versions_are_swept_once_for_all_keys() -> None:
    named = tuple(
        EstateRoute("any", None, None, start, start + 1, f"tcp://h{start}:1", None, AddressKind.NETWORK)
        for start in range(5_000)
    )
    instance = SqlInstance("i", routes={"d": {None: named}})
    keys = [("i", "d", f"//service/{n}", "", 1) for n in range(1_000)]
    started = time.process_time()
    decided = _decide(keys, {"i": instance})
    assert time.process_time() - started < 10
    assert set(decided.numbers) == {0}
    assert len(decided.timelines[0].rows) == 5_002


# A key of each of so many services and ids: no two share a timeline, as where every one is decided by itself.
_MANY_KEYS = """
import tracemalloc
from routing.plan.key_rows import KEY
from routing.plan.key_rows import decide_keys
from routing.rules.estate import Database, EstateRoute, list_instances, with_services_and_routes
from routing.tables.table_columns import TableColumns

side = 50
ids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(side)]
routes = [("hub", "d0", EstateRoute.of_row(f"r{n}", f"//s/{n}", None, f"tcp://h{n}:1", None, None, None, None))
          for n in range(side)]
databases = [("hub", Database.of_row(f"d{n}", one, True)) for n, one in enumerate(ids)]
hub = with_services_and_routes(list_instances([("hub", True, [])], databases), [], routes)
keys = [("hub", "d0", f"//s/{n}", one, 1) for n in range(side) for one in ids]
columns = TableColumns(dict(zip(KEY, zip(*keys))))
tracemalloc.start()
decided = decide_keys(columns, hub)
assert len(decided.numbers) == side * side
print(tracemalloc.get_traced_memory()[1] / side / side)
"""


def test_a_million_keys_take_less_than_two_gibibytes() -> None:
    done = run_python(_MANY_KEYS)
    assert done.returncode == 0, done.stderr
    bytes_of_a_key = float(done.stdout)
    assert 0 < bytes_of_a_key * 1_000_000 < 2 * 2**30
