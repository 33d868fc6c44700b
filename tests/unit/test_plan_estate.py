"""What is made of a whole estate, for messages to some services."""

from __future__ import annotations

from routing.plan.checked_inputs import network_of
from routing.schemas import TABLES
from routing.tables.table_columns import TableColumns
from tests.unit.rules.by_rules import Row


def _columns(**rows: list[Row]) -> dict[str, TableColumns]:
    keys = ("routes", "databases", "services", "instances", "route_requests")
    return {key: TableColumns.of_rows(rows.get(key, []), TABLES[key]) for key in keys}


def test_what_is_known_of_an_instance_hangs_on_no_service() -> None:
    """Of `gate` a route is known for another service, which becomes no object; of `far` its endpoint alone."""
    network = network_of(
        _columns(
            instances=[
                {"instance_name": "gate", "is_message_forwarding_enabled": None, "addresses": None},
                {"instance_name": "far", "is_message_forwarding_enabled": True, "addresses": ["tcp://far:4022"]},
                {"instance_name": "hub", "is_message_forwarding_enabled": None, "addresses": None},
            ],
            databases=[{"instance_name": "hub", "name": "Stock", "service_broker_guid": "id"}],
            routes=[
                {
                    "instance_name": "gate",
                    "database_name": "msdb",
                    "name": "R",
                    "remote_service_name": "Other",
                    "address": "LOCAL",
                }
            ],
        ),
        {"Stock"},
    )
    assert {name: one.is_only_addressed for name, one in network.instances.items()} == {
        "gate": False,
        "far": True,
        "hub": False,
    }
    assert network.instances["gate"].routes == {}
