"""Pictures of a change and of a message's path: their content, their limits, and that names stay data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import vl_convert

import routing
from routing.views.page import pictures
from routing.views.page.pictures.bar_pictures import CHANGED_SERVICES, change_rows
from routing.views.page.pictures.path_picture import STATIONS, WAYS, station_rows
from tests.estate_rows import small_estate
from tests.frames import arrow

HOSTILE = "'+alert(1)+\"</script>\u202e${datum.x}"
HARMLESS = "'+alert(1)+\"</script>\ufffd${datum.x}"
_ENDS = ("outcome", "reason")


def _key(service: str, before: str, after: str, messages: int, instance: str = "HQ") -> Mapping[str, Any]:
    """Return changed messages. ``before`` and ``after`` are outcome and reason."""
    verdicts = {"before": before.split(), "after": after.split()}
    ends = {
        f"{name}_{side}": word for side, both in verdicts.items() for name, word in zip(_ENDS, both, strict=True)
    }
    leaves = {side: both[0] == "SENT" for side, both in verdicts.items()}
    endings = {
        f"ending{part}_{side}": None if leaves[side] else word
        for side, both in verdicts.items()
        for part, word in zip(("", "_reason"), both, strict=True)
    }
    endings |= {f"ending_{side}": "NOT_KNOWN" for side in verdicts if leaves[side]}
    return {"instance_name": instance, "to_service_name": service, **ends, **endings, "messages": messages}


OFF, HERE, AWAY = "DELAYED BROKER_DISABLED", "DELIVERED LOCAL_SERVICE", "SENT NETWORK_ADDRESS"
KEYS = [
    _key("//a", OFF, HERE, 12),
    _key("//a", "DROPPED BROKER_DISABLED", HERE, 9),
    _key("//b", "DELAYED SCOPE_BROKER_DISABLED", AWAY, 1_000),
    _key("//b", "DELAYED NO_ROUTE", AWAY, 500),
    _key("//a", OFF, HERE, 1, instance=HOSTILE),
]


def test_each_service_has_a_bar_before_and_after() -> None:
    names = ("place", "service", "side", "outcome", "messages", "words")
    assert [tuple(row[name] for name in names) for row in change_rows(KEYS)] == [
        # Of several reasons none is told.
        (0, "//b on HQ", "before", "DELAYED", 1_500, "1,500 DELAYED"),
        (0, "//b on HQ", "after", "SENT", 1_500, "1,500 SENT: NETWORK_ADDRESS"),
        (1, "//a on HQ", "before", "DELAYED", 12, "12 DELAYED, 9 DROPPED: BROKER_DISABLED"),
        (1, "//a on HQ", "before", "DROPPED", 9, "12 DELAYED, 9 DROPPED: BROKER_DISABLED"),
        (1, "//a on HQ", "after", "DELIVERED", 21, "21 DELIVERED: LOCAL_SERVICE"),
        (2, f"//a on {HARMLESS}", "before", "DELAYED", 1, "1 DELAYED: BROKER_DISABLED"),
        (2, f"//a on {HARMLESS}", "after", "DELIVERED", 1, "1 DELIVERED: LOCAL_SERVICE"),
    ]
    assert change_rows([]) == []


def test_services_beyond_the_limit_share_a_place() -> None:
    rows = change_rows(_key(f"//{number:04}", OFF, HERE, 5) for number in range(1_000))
    assert len(rows) == 2 * (CHANGED_SERVICES + 1)
    assert rows[-1] == {
        "place": CHANGED_SERVICES,
        "service": "990 other services",
        "side": "after",
        "outcome": "DELIVERED",
        "messages": 4_950,
        "words": "4,950 DELIVERED: LOCAL_SERVICE",
    }


def _way_row(outcome: str, reason: str | None = None, direction: str = "THERE", way: int = 1, **end: str) -> Any:
    where = {"instance_name": None, "database_name": None, "address": None, **end}
    return {"path": 1, "direction": direction, "way": way, "outcome": outcome, "reason": reason, **where}


def _hop(
    instance: str, scope: str, outcome: str, route: str | None, direction: str = "THERE", way: int = 1
) -> Any:
    place = {"instance_name": instance, "scope": scope, "outcome": outcome, "route_name": route}
    return {"path": 1, "direction": direction, "way": way, **place}


def test_stations_of_a_path_and_of_a_reply_that_is_delayed() -> None:
    ways = [
        _way_row("DELIVERED", "LOCAL_SERVICE", instance_name="b", database_name=HOSTILE),
        _way_row("DELAYED", "NO_ROUTE", "BACK", instance_name="b"),
    ]
    hops = [
        _hop("a", "Shop", "SENT", HOSTILE),
        _hop("b", "msdb", "DELIVERED", "AutoCreatedLocal"),
        _hop("b", "Stock", "DELAYED", None, "BACK"),
    ]
    names = ("place", "head", "at", "instance", "below", "route", "outcome", "is_stuck")
    assert [tuple(row[name] for name in names) for row in station_rows(ways, hops)] == [
        (0, "There", 0, "a", "Shop", HARMLESS, "SENT", False),
        (0, "There", 1, "b", f"DELIVERED\nto {HARMLESS}", None, "DELIVERED", False),
        (1, "And back", 0, "b", "DELAYED\nNO_ROUTE", None, "DELAYED", True),
    ]
    assert station_rows([], []) == []


@pytest.mark.parametrize(
    ("way", "last"),
    [
        (_way_row("LEFT_ESTATE", address="tcp://far.example:4022"), ("tcp://far.example:4022", "LEFT_ESTATE")),
        (_way_row("LOOP", instance_name="a"), ("a", "LOOP")),
        (_way_row("NOT_KNOWN", instance_name="b"), ("b", "NOT_KNOWN")),
    ],
)
def test_a_path_may_end_outside_the_estate(way: Any, last: tuple[str, str]) -> None:
    [first, end] = station_rows([way], [_hop("a", "Shop", "SENT", "Far")])
    assert (first["route"], end["route"], end["is_stuck"]) == ("Far", None, False)
    assert (end["instance"], end["below"], end["outcome"]) == (*last, "NOT_KNOWN")


def test_many_paths_and_stops_are_cut() -> None:
    ways = [_way_row("DROPPED", "HOP_LIMIT", way=way, instance_name="i8") for way in range(1, 21)]
    hops = [
        _hop(f"i{hop}", "msdb", "FORWARDED" if hop < 8 else "DROPPED", "Next", way=way)
        for way in range(1, 21)
        for hop in range(9)
    ]
    rows = station_rows(ways, hops)
    assert len(rows) == WAYS * STATIONS
    assert [row["instance"] for row in rows[:STATIONS]] == ["i0", "i1", "i2", "i3", "i4", "4 more, to i8"]
    assert (rows[0]["head"], rows[-1]["head"]) == ("There, path 1 of 20", "There, path 6 of 20")


def test_results_of_diff_and_trace_are_drawn() -> None:
    tables = arrow(small_estate())
    script = routing.Scripts.of_text("USE Sales; DROP ROUTE Far;", "hub")
    changed = pictures.before_and_after(routing.diff(tables, script))
    followed = pictures.followed(routing.trace(tables, routing.StoredMessage("m3")))
    for picture, words in ((changed, "//far on hub"), (followed, "LEFT_ESTATE")):
        svg = vl_convert.vegalite_to_svg(picture.to_dict())
        assert words in svg
        assert "<script" not in svg
    assert "1 of 7 messages change, 1 for the worse." in str(changed.to_dict()["description"])


def test_names_are_only_data() -> None:
    """A text that Vega would read as an expression occurs only as the text of a row."""
    tables = small_estate()
    for key in ("databases", "services", "routes", "messages", "dialogs", "route_requests", "instances"):
        tables[key] = [
            {**row, "instance_name": HOSTILE if row["instance_name"] == "hub" else row["instance_name"]}
            for row in tables[key]
        ]
    arrow_tables = arrow(tables)
    done = routing.diff(arrow_tables, routing.Scripts.of_text("USE Sales; DROP ROUTE Far;", HOSTILE))
    traced = routing.trace(arrow_tables, routing.StoredMessage("m3"))
    for picture in (pictures.before_and_after(done), pictures.followed(traced)):
        spec = picture.to_dict()
        rows = spec["layer"][0]["data"]["values"]
        assert HARMLESS in str(rows) or "alert(1)" in str(rows)
        for layer in spec["layer"]:
            assert "alert(1)" not in str({**layer, "data": None})
