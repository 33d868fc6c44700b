"""Which routes differ between two times, in words."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from routing.demo.drafting import EstateDraft
from routing.rules.timeline import micros_of
from routing.schemas import ROUTES
from routing.tables.table_columns import TableColumns
from routing.views.configuration_changes import describe_route_changes

NOW = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def columns(*routes: tuple[str, str, str | None], **more: object) -> TableColumns:
    draft = EstateDraft()
    for name, address, broker in routes:
        draft.route("one", "Sales", name, address, "S", broker, **more)
    return TableColumns.of_rows(draft.tables["routes"], ROUTES)


def altered(
    before: TableColumns, after: TableColumns, between: timedelta = timedelta()
) -> dict[str, tuple[str, str]]:
    changes = describe_route_changes(before, after, micros_of(NOW - between), micros_of(NOW))
    assert {(one.instance, one.database) for one in changes} <= {("one", "Sales")}
    return {one.route: (one.change, one.words) for one in changes}


def test_added_dropped_and_altered_routes_are_listed() -> None:
    before = columns(("Same", "LOCAL", None), ("Gone", "LOCAL", "id"), ("Other", "tcp://old:1", None))
    after = columns(("Same", "LOCAL", None), ("New", "tcp://new:1", None), ("Other", "tcp://new:1", "id"))
    assert altered(before, after) == {
        "Gone": ("REMOVED", "service S, broker id, address LOCAL"),
        "New": ("ADDED", "service S, address tcp://new:1"),
        "Other": (
            "CHANGED",
            "broker -, address tcp://old:1 \N{RIGHTWARDS ARROW} broker id, address tcp://new:1",
        ),
    }


def test_a_route_that_expires_between_the_times_is_removed() -> None:
    routes = columns(("Short", "LOCAL", None), lifetime=NOW - DAY)
    removed = ("REMOVED", "service S, address LOCAL, lifetime 2026-01-04T10:00:00Z")
    assert altered(routes, routes, 2 * DAY) == {"Short": removed}
    assert altered(routes, routes) == {}
