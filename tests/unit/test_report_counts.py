"""Messages counted for a report from local tables, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from routing.engines.arrow.arrow_traffic import ArrowTraffic
from routing.engines.traffic_tables import BalancedTarget, TimePoint, open_traffic
from routing.schemas import RESOLVED_ROUTES
from routing.views.page.facts import MessageFlow, MessageSeries
from routing.views.report import flows
from routing.views.report.dialog_balance import count_dialogs
from routing.views.report.flows import count_all
from tests.counted_messages import (
    BALANCED,
    FLOWS,
    ROWS,
    dialogs_plainly,
    flows_plainly,
    micros,
    points_plainly,
    random_traffic,
)
from tests.frames import arrow_of
from tests.listed_messages import Row, in_files, resolved

pytest.importorskip("deltalake")
NOON = micros("2026-01-05T12:00:00Z")
HOUR = 3600


def table(rows: list[Row]) -> Any:
    return arrow_of(rows, RESOLVED_ROUTES)


def test_flows_of_the_last_attempts(tmp_path: Path) -> None:
    wanted = [MessageFlow(*flow[:-1], micros(f"2026-01-05T{flow[-1]}Z")) for flow in FLOWS]
    for stored in (table(ROWS), in_files(ROWS, tmp_path / "resolved", 3)):
        flows, series = count_all(open_traffic(stored))
        assert flows == wanted
        # All were decided at noon.
        assert series == MessageSeries(
            300,
            [
                TimePoint(NOON, "HUB", "//billing", "SENT", 1),
                TimePoint(NOON, "HUB", "//stock", "DELAYED", 5),
                TimePoint(NOON, "HUB", "//stock", "DELIVERED", 1),
                TimePoint(NOON, "HUB", "//stock", "SENT", 1),
                TimePoint(NOON, "SPOKE", "//stock", "DELIVERED", 1),
            ],
            NOON,
        )


def test_no_messages_give_no_counts(tmp_path: Path) -> None:
    for stored in (table([]), in_files([], tmp_path / "resolved")):
        assert count_all(open_traffic(stored)) == ([], MessageSeries(300, []))
        assert count_dialogs(stored, {("HUB", "Shop", "//shared"): (None, None)}) == {}


@pytest.mark.parametrize(
    ("first", "last", "seconds"),
    [
        ("2026-01-05T12:00:00Z", "2026-01-05T12:00:00Z", 300),
        # 96 steps of five minutes are eight hours; one message later they are 97.
        ("2026-01-05T00:00:00Z", "2026-01-05T07:59:59.999999Z", 300),
        ("2026-01-05T00:00:00Z", "2026-01-05T08:00:00Z", 900),
        # So are eight hours that do not begin with a step.
        ("2026-01-05T00:04:59Z", "2026-01-05T08:04:58Z", 900),
        ("2026-01-05T00:00:00Z", "2026-01-05T23:59:59Z", 900),
        ("2026-01-05T00:00:00Z", "2026-01-06T23:59:59Z", 1800),
        ("2026-01-01T00:00:00Z", "2026-01-04T23:59:59Z", HOUR),
        ("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z", 12 * HOUR),
        ("2025-01-01T00:00:00Z", "2025-12-31T00:00:00Z", 7 * 24 * HOUR),
        # Nineteen years are 248 times 28 days.
        ("2000-01-01T00:00:00Z", "2019-01-01T00:00:00Z", 3 * 28 * 24 * HOUR),
        ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", 300),
    ],
)
def test_time_steps_fit_the_picture(first: str, last: str, seconds: int) -> None:
    assert flows.choose_seconds(micros(first), micros(last)) == seconds


def test_the_whole_calendar_has_steps() -> None:
    first, last = micros("0001-01-01T00:00:00Z"), micros("9999-12-31T23:59:59Z")
    step = flows.choose_seconds(first, last) * 1_000_000
    assert step % (28 * 24 * HOUR * 1_000_000) == 0
    assert last // step - first // step < 96


def test_the_end_of_a_step_is_exclusive() -> None:
    times = ("2026-01-05T12:04:59.999999Z", "2026-01-05T12:05:00Z", "1969-12-31T23:59:59.999999Z")
    rows = [
        resolved(f"m{n}", "//a", "01:00:00", "SENT NETWORK_ADDRESS", decided_at=t) for n, t in enumerate(times)
    ]
    _, near = count_all(open_traffic(table(rows[:2])))
    assert [(point.at, point.messages) for point in near.points] == [(NOON, 1), (NOON + 300_000_000, 1)]
    _, far = count_all(open_traffic(table(rows)))
    assert far.seconds == 8 * 28 * 24 * HOUR
    assert [(point.at, point.messages) for point in far.points] == [
        (-far.seconds * 1_000_000, 1),
        (NOON // (far.seconds * 1_000_000) * far.seconds * 1_000_000, 2),
    ]


def test_many_services_are_grouped() -> None:
    rows = [
        *(resolved(f"a{n}", "//many", "01:00:00", "SENT NETWORK_ADDRESS", instance="BIG") for n in range(5)),
        *(resolved(f"b{n}", "//some", "01:00:00", "SENT NETWORK_ADDRESS", instance="BIG") for n in range(3)),
        *(resolved(f"c{n}", "//stuck", "01:00:00", "DELAYED NO_ROUTE", instance="SAD") for n in range(2)),
        *(resolved(f"d{n}", "//many", "01:00:00", "SENT NETWORK_ADDRESS", instance="SAD") for n in range(2)),
        *(resolved(f"e{n}", "//many", "01:00:00", "SENT NETWORK_ADDRESS", instance="LESS") for n in range(4)),
    ]
    _, series = count_all(open_traffic(table(rows)), most_services=1, most_instances=1)
    assert [point[1:5] for point in series.points] == [
        ("BIG", "//many", "SENT", 5),
        ("BIG", None, "SENT", 3),
        ("SAD", "//stuck", "DELAYED", 2),
        ("SAD", None, "SENT", 2),
        (None, None, "SENT", 4),
    ]


def test_dialogs_count_once() -> None:
    both = {("HUB", "Shop", "//shared"): (None, None), ("HUB", "msdb", "//shared"): (None, None)}
    dialogs_by_id = {
        ("HUB", "Shop", "//shared", "id-a"): 2,
        ("HUB", "Shop", "//shared", "id-b"): 2,
        ("HUB", "msdb", "//shared", "id-m"): 2,
    }
    assert count_dialogs(table(BALANCED), both) == dialogs_by_id
    assert count_dialogs(table(BALANCED), {("HUB", "Shop", "//other"): (None, None)}) == {}
    assert count_dialogs(table(BALANCED), {}) == {}


def test_dialogs_of_a_span_of_time() -> None:
    shop = ("HUB", "Shop", "//shared")

    def counted(since: int | None, until: int | None) -> list[int]:
        spans = {shop: (since, until), ("SPOKE", "Shop", "//shared"): (None, None)}
        dialog_counts = count_dialogs(table(BALANCED), spans)
        assert dialog_counts[BalancedTarget("SPOKE", "Shop", "//shared", "id-a")] == 1
        counts = [dialog_counts.get(BalancedTarget(*shop, broker), 0) for broker in ("id-a", "id-b")]
        assert sum(counts) + 1 == sum(dialog_counts.values())
        return counts

    second = 1_000_000
    assert counted(NOON + 2 * second, None) == [1, 2]
    assert counted(NOON + 2 * second + 1, None) == [0, 2]
    assert counted(None, NOON + 2 * second) == [1, 0]
    assert counted(NOON + second, NOON + 4 * second) == [2, 1]
    assert counted(NOON + 4 * second, NOON + 4 * second) == [0, 0]


SPANS = {
    ("HUB", "Shop", "//a"): (None, None),
    ("HUB", "msdb", "//a"): (micros("2026-01-05T12:00:00Z"), None),
    ("SPOKE", "Other", "//é"): (None, micros("2026-01-05T12:00:00Z")),
    ("hub", "msdb", "//b"): (0, micros("2026-01-06T12:00:00Z")),
    ("nowhere", "Shop", "//a"): (None, None),
}


@pytest.mark.parametrize("seed", range(6))
def test_random_messages_against_plain_python(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = random_traffic(chance, chance.choice((3, 40, 300)))
    for stored in (
        table(rows),
        in_files(rows, tmp_path / "parts", chance.randrange(1, 4)),
        in_files(rows, tmp_path / "partitions", 2, ["instance_name", "outcome"]),
    ):
        # So that sums are made on the way too.
        traffic = ArrowTraffic.of(stored, rows_waiting=20)
        flows, series = count_all(traffic)
        assert {astuple(flow)[:8]: (flow.messages, flow.oldest) for flow in flows} == flows_plainly(rows)
        points = Counter({point[:4]: point.messages for point in series.points})
        assert len(points) == len(series.points)
        assert points == points_plainly(rows, series.seconds)
        assert count_dialogs(stored, SPANS) == dialogs_plainly(rows, SPANS)
