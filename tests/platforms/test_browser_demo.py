"""The demo's page in Chromium: the numbers that it shows are those of the tables, counted here by Arrow alone."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as pc
import pytest

from routing import cli
from tests.platforms.browser import NARROW, ROOT, WIDE, Browser
from tests.platforms.looks import faults
from tests.platforms.screenshot import write_demo_page
from tests.platforms.shown_page import choose, open_all, settle, table, tiles, words

SCREENSHOTS = ROOT / "build" / "screenshots"
EAST, LABELS = "depot-east", "//larkfield.example/Shipping/Labels"
QUARTER = 15 * 60
SHOWN = 200


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the demo's last run."""
    return write_demo_page(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def stored(demo: Path) -> pyarrow.Table:
    """What is stored of each message, as it is read by nobody but this test."""
    from deltalake import DeltaTable

    return (
        DeltaTable(str(demo.parent / "sbroute-demo" / "out" / "resolved_routes")).to_pyarrow_dataset().to_table()
    )


def told(number: int) -> str:
    return f"{number:,}"


def counted(rows: pyarrow.Table, *by: str) -> dict[tuple[Any, ...], int]:
    """How many rows have these values."""
    return dict(Counter(zip(*(rows[name].to_pylist() for name in by), strict=True)))


def only(rows: pyarrow.Table, **values: str) -> pyarrow.Table:
    for name, value in values.items():
        rows = rows.filter(pc.equal(rows[name], value))
    return rows


def assert_told(shown: Browser, rows: pyarrow.Table) -> None:
    """Tiles and tables show the counts of these rows."""
    outcomes = {outcome: told(count) for (outcome,), count in counted(rows, "outcome").items()}
    assert {outcome: count for outcome, count in tiles(shown).items() if count != "0"} == outcomes
    services = counted(rows, "instance_name", "to_service_name")
    listed = table(shown, "services", "Instance", "To service", "Messages")
    assert {(*key, told(count)) for key, count in services.items()} >= set(listed)
    assert [row[-1] for row in listed] == [
        told(count) for count in sorted(services.values(), reverse=True)[:SHOWN]
    ]
    assert shown.texts("#services-more") == [f"and {len(services) - SHOWN} more"][: len(services) > SHOWN]
    stuck = rows.filter(pc.is_in(rows["outcome"], pyarrow.array(["DELAYED", "DROPPED"])))
    reasons = [(*key, told(count)) for key, count in counted(stuck, "outcome", "reason").items()]
    assert sorted(table(shown, "reasons", "Outcome", "Reason", "Messages")) == sorted(reasons)
    times: Counter[int] = Counter(
        int(at.timestamp()) // QUARTER * QUARTER for at in rows["decided_at"].to_pylist()
    )
    assert table(shown, "times", "From", "Messages") == [(minute(at), told(times[at])) for at in sorted(times)]
    assert sorted(table(shown, "stuck", *STUCK)) == sorted(waiting(only(rows, outcome="DELAYED")))


STUCK = ("To service", "Instance", "Database", "Reason", "Messages", "Waiting since (UTC)")


def waiting(rows: pyarrow.Table) -> list[tuple[str, ...]]:
    """Messages that wait, and since when the first of them does."""
    by = ["to_service_name", "instance_name", "database_name", "reason"]
    groups = rows.group_by(by).aggregate([("message_id", "count"), ("enqueue_time", "min")]).to_pylist()
    return [
        (
            *(row[name] if row[name] is not None else "(over the network)" for name in by),
            told(row["message_id_count"]),
            f"{row['enqueue_time_min']:%Y-%m-%d %H:%M}",
        )
        for row in groups
    ]


def minute(at: int) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M}"


def test_the_numbers_are_those_of_the_tables(shown: Browser, demo: Path, stored: pyarrow.Table) -> None:
    shown.open(demo)
    settle(shown)
    open_all(shown)
    assert stored.num_rows == 12_050
    assert_told(shown, stored)


def test_the_numbers_of_a_filter_are_those_of_the_tables(
    shown: Browser, demo: Path, stored: pyarrow.Table
) -> None:
    shown.open(demo)
    settle(shown)
    choose(shown, instance=EAST)
    assert_told(shown, only(stored, instance_name=EAST))
    choose(shown, service=LABELS, outcome="DELAYED")
    rows = only(stored, instance_name=EAST, to_service_name=LABELS, outcome="DELAYED")
    assert rows.num_rows > 100
    assert_told(shown, rows)
    assert told(rows.num_rows) in words(shown, "estate-picture")


@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (NARROW, True)])
def test_nothing_is_in_anybodys_way(shown: Browser, demo: Path, width: int, dark: bool) -> None:
    shown.open(demo, width=width, dark=dark)
    settle(shown)
    shown.picture(SCREENSHOTS / f"demo-{width}-{'dark' if dark else 'light'}.png")
    # To judge the colours of all its cells takes a while: once is enough, for those of test_browser are the same.
    assert faults(shown, without=["color-contrast"] if dark else []) == {}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a check of the example files, from no tables at all."""
    file = tmp_path_factory.mktemp("check") / "check.html"
    examples = [str(ROOT / "conf" / "examples" / name) for name in ("exports", "scripts/hub.sql")]
    assert cli.main(["check", *examples, "--html", str(file)]) == 0
    return file


@pytest.mark.parametrize(("width", "dark"), [(WIDE, True), (NARROW, False)])
def test_the_page_of_a_check(shown: Browser, checked: Path, width: int, dark: bool) -> None:
    shown.open(checked, width=width, dark=dark)
    settle(shown)
    shown.picture(SCREENSHOTS / f"check-{width}-{'dark' if dark else 'light'}.png")
    assert faults(shown) == {}
    # As conf/examples/README.md tells it: of two queues, four messages to //billing have waited since morning.
    assert tiles(shown) == {"SENT": "4", "DELAYED": "4"}
    waiting = [("//billing", "SHOP", "Orders", "SERVICE_NOT_FOUND", "4", "2026-01-05 09:12")]
    assert table(shown, "stuck", *STUCK) == waiting
    choose(shown, instance="STOCK")
    assert table(shown, "services", "Instance", "To service", "Messages") == [("STOCK", "//orders", "1")]
    assert table(shown, "stuck", *STUCK) == []
