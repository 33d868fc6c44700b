"""The document estates of the demo come out as the worked cases say."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from routing.demo.example_estates import document_estates
from tests.reference.resolver import resolve

# Checked line by line against the worked cases.
GOLDEN = Path(__file__).parent.parent / "golden" / "demo_estates.txt"


def joined() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for estate in document_estates():
        for name, rows in estate.tables.items():
            tables.setdefault(name, []).extend(rows)
    return tables


def line(row: dict[str, Any]) -> str:
    """Write instance, message, step, route, target, outcome, reason, broker instance and other routes."""
    parts = [
        row["instance_name"],
        row["message_id"],
        row["matching_step"],
        row["route_name"],
        row["destination_database"] or row["address"],
        row["outcome"],
        row["reason"],
        row["broker_instance"],
        ", ".join(other["route_name"] for other in row["alternative_routes"] or ()) or None,
    ]
    return " | ".join("-" if part is None else str(part) for part in parts)


def test_estates_share_no_instance_and_have_few_messages() -> None:
    estates = document_estates()
    names = [row["instance_name"] for estate in estates for row in estate.tables["instances"]]
    assert len(set(names)) == len(names)
    assert len({estate.title for estate in estates}) == len(estates)
    assert all(2 <= len(estate.tables["messages"]) <= 6 for estate in estates)


def test_all_estates_in_one_run_equal_the_worked_cases() -> None:
    resolution = resolve(joined())
    assert [line(row) for row in resolution.resolved_routes] == GOLDEN.read_text(encoding="utf-8").splitlines()
    assert resolution.rejected_messages == []


def test_route_requests_of_the_dynamic_routing_estate() -> None:
    requests = resolve(joined()).new_route_requests
    assert [(row["instance_name"], row["message_id"], row["requested_at"]) for row in requests] == [
        ("dynamic-routing/host1", "first-asks", datetime(2026, 1, 5, 10, tzinfo=timezone.utc)),
        ("dynamic-routing/host1", "other-service-asks", datetime(2026, 1, 5, 10, 0, 2, tzinfo=timezone.utc)),
        ("dynamic-routing/host1", "lifetime-over-asks", datetime(2026, 1, 5, 11, tzinfo=timezone.utc)),
    ]
