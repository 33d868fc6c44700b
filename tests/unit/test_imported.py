"""The last import of tables without a history, and notes on earlier decisions."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from routing.delta.import_times import newest_after, newest_of, taken_as_now
from routing.importing.catalog.views import VIEWS

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
AT = 1_767_614_400_000_000
HOUR = 3_600_000_000


def row(instance: str | None, view: str, hours: int | None, database: str | None = None) -> dict[str, Any]:
    at = None if hours is None else NOON + timedelta(hours=hours)
    return {"instance_name": instance, "database_name": database, "view_or_file": view, "exported_at": at}


@pytest.mark.parametrize(
    ("rows", "newest"),
    [
        ([], {}),
        ([row("a", "databases", 0)], {"a": AT}),
        ([row("a", "services", 0, "Shop"), row("a", "databases", -1)], {"a": AT}),
        ([row("a", "service_broker_endpoints", -1), row("a", "tcp_endpoints", 1)], {"a": AT + HOUR}),
        ([row("a", "hub.sql", 0), row("b", "fix.sql", 1, "Shop")], {"a": AT, "b": AT + HOUR}),
        # Routes have a history; messages and dialogs are no configuration.
        ([row("a", "routes", 1, "Shop"), row("a", "databases", 0)], {"a": AT}),
        ([row("a", view, 1, "Shop") for view in ("routes", "conversation_endpoints", "transmission_queue")], {}),
        ([row(None, "databases", 0), row("a", "databases", None)], {}),
    ],
)
def test_the_newest_import_by_instance(rows: list[dict[str, Any]], newest: dict[str, int]) -> None:
    assert newest_of(rows) == newest


@pytest.mark.parametrize(
    ("exported", "imported", "hours"),
    [(48, 0, 0), (1, 0, 1), (0, 2, 0), (48, None, 48)],
    ids=["not come when it was imported", "an hour at most", "imported later", "an older table"],
)
def test_the_newest_import_is_found_with_times_in_the_future(
    exported: int, imported: int | None, hours: int
) -> None:
    at = None if imported is None else NOON + timedelta(hours=imported)
    assert newest_of([{**row("a", "databases", exported), "imported_at": at}]) == {"a": AT + hours * HOUR}


def test_every_view_is_counted_or_has_a_history() -> None:
    counted = {name for name, view in VIEWS.items() if not view.evidence and newest_of([row("a", name, 0)])}
    assert counted == {"databases", "services", "service_broker_endpoints", "tcp_endpoints"}


@pytest.mark.parametrize(
    ("instance", "t", "after"),
    [("a", AT - 1, AT), ("a", AT, None), ("a", AT + 1, None), ("b", AT - 1, None), (None, AT - 1, None)],
)
def test_only_an_import_after_the_decision_is_found(instance: str | None, t: int, after: int | None) -> None:
    assert newest_after({"a": AT}, instance, t) == after


def test_the_note_on_later_imports_is_bounded() -> None:
    expected = "the decisions are older than the newest import of databases, services or instances of %s: their"
    rest = " current state is used, because only routes have a history"
    assert taken_as_now({"b": AT, "a": AT + HOUR}) == (
        expected % "a (2026-01-05T13:00:00Z), b (2026-01-05T12:00:00Z)" + rest
    )
    many = taken_as_now({f"{number}" * 1000: AT for number in range(7)})
    assert many.count("Z)") == 5
    assert " and 2 more: their" in many
    assert len(many) < 1000
