"""The objects of a whole estate for messages to some services."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from routing.plan.checked_inputs import CheckedInputs, GrowingEstate
from routing.rules.estate import SqlInstance
from routing.schemas import TABLES
from routing.tables.table_columns import TableColumns
from tests import estate_rows
from tests.unit.rules.by_rules import Row


def _columns(**rows: list[Row]) -> dict[str, TableColumns]:
    keys = ("routes", "databases", "services", "instances", "route_requests")
    return {key: TableColumns.of_rows(rows.get(key, []), TABLES[key]) for key in keys}


def test_an_instance_is_known_independent_of_services() -> None:
    """Of `gate` only a route for another service is known, of `far` only its endpoint."""
    columns = _columns(
        instances=[
            estate_rows.instance("gate"),
            estate_rows.instance("far", "tcp://far:4022", is_message_forwarding_enabled=True),
            estate_rows.instance("hub"),
        ],
        databases=[estate_rows.database("Stock")],
        routes=[estate_rows.route("R", "Other", "LOCAL", instance_name="gate", database_name="msdb")],
    )
    network = CheckedInputs(columns).network_for({"Stock"})
    assert {name: one.is_only_addressed for name, one in network.instances.items()} == {
        "gate": False,
        "far": True,
        "hub": False,
    }
    assert network.instances["gate"].routes == {}


def _of_random_estate(rng: random.Random) -> dict[str, list[Row]]:
    """Services and routes of all kinds in two databases of two instances."""
    names = [f"//s/{number}" for number in range(12)]
    places = [{"instance_name": i, "database_name": d} for i in ("hub", "spoke") for d in ("Orders", "msdb")]
    routed = [*names, "", None, "SQL/ServiceBroker/BrokerConfiguration"]
    return {
        "instances": [{"instance_name": name} for name in ("hub", "spoke")],
        "databases": [{"instance_name": one["instance_name"], "name": one["database_name"]} for one in places],
        "services": [{**rng.choice(places), "name": name} for name in names],
        "routes": [
            {
                **rng.choice(places),
                "name": f"r{number}",
                "remote_service_name": rng.choice(routed),
                "address": "tcp://far:1",
            }
            for number in range(60)
        ],
    }


@pytest.mark.parametrize("most", [0, 20, 1_000])
def test_an_estate_grows_by_the_services_asked_for(most: int) -> None:
    rng, dropped = random.Random(5), 0
    for _ in range(20):
        rows = _of_random_estate(rng)
        estate = GrowingEstate(CheckedInputs(_columns(**rows)), most)
        for _ in range(6):
            services = rng.sample([f"//s/{number}" for number in range(12)], 3)
            before = estate.instances
            dropped += estate.add(services)
            for name, instance in estate.instances.items():
                _assert_known(instance, rows, services)
                if before[name].routes == instance.routes and before[name].holders == instance.holders:
                    # Nothing that was computed for it is computed anew.
                    assert before[name] is instance or most < 1_000
    assert (dropped > 0) is (most < 1_000)


def _assert_known(instance: SqlInstance, rows: Mapping[str, list[Row]], services: list[str]) -> None:
    """Compare an instance's objects for some services, and for any service, with the rows."""
    own = {key: [row for row in rows[key] if row.get("instance_name") == instance.name] for key in rows}
    for database in ("Orders", "msdb"):
        routes = [row for row in own["routes"] if row["database_name"] == database]
        for service in services:
            named = {row["name"] for row in routes if row["remote_service_name"] == service}
            assert {route.name for route in instance.naming(database, service)} == named
        unnamed = {row["name"] for row in routes if not (row["remote_service_name"] or "").startswith("//")}
        assert {route.name for route in instance.unnamed(database)} == unnamed
    for service in services:
        holders = {row["database_name"] for row in own["services"] if row["name"] == service}
        assert {holder.name for holder in instance.holders_of(service)} == holders
    assert instance.has_routes is bool(own["routes"])


def test_a_growing_estate_keeps_its_route_objects() -> None:
    """Earlier decisions refer to these objects."""
    rows = _of_random_estate(random.Random(7))
    estate = GrowingEstate(CheckedInputs(_columns(**rows)))
    services = [f"//s/{number}" for number in range(12)]
    estate.add(services[:6])
    before = estate.instances
    assert not estate.add(services)
    for name, instance in before.items():
        for database in ("Orders", "msdb"):
            for service in services[:6]:
                kept = zip(
                    instance.naming(database, service),
                    estate.instances[name].naming(database, service),
                    strict=True,
                )
                assert all(one is other for one, other in kept)
