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
from routing.demo import build
from tests.platforms.browser import NARROW, ROOT, WIDE, Browser
from tests.platforms.looks import faults
from tests.platforms.screenshot import write_demo_page
from tests.platforms.shown_page import choose, open_all, table, tiles, wait_for_script
from tests.reference.paths import path_rows

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
    """Return the stored rows of each message, read independently, and its end by the tests' own walk."""
    from deltalake import DeltaTable

    out = demo.parent / "sbroute-demo" / "out"
    rows = DeltaTable(str(out / "resolved_routes")).to_pyarrow_dataset().to_table()
    walked = {(one["instance_name"], one["message_id"]): one for one in path_rows(build.input_rows())}
    ends = [
        _end_of(row, walked[row["instance_name"], row["message_id"]])
        for row in rows.select(["instance_name", "message_id", "outcome", "reason"]).to_pylist()
    ]
    for name, values in zip(("ending", "why"), zip(*ends, strict=True), strict=True):
        rows = rows.append_column(name, pyarrow.array(values, pyarrow.string()))
    return rows


def _end_of(row: dict[str, Any], path: dict[str, Any]) -> tuple[str, str | None]:
    """Where a message ends and why: at its own instance, or by its path as far as that is known."""
    if row["outcome"] not in ("SENT", "FORWARDED"):
        return row["outcome"], row["reason"]
    if path["outcome"] in ("LEFT_ESTATE", "NOT_KNOWN", "TOO_MANY_WAYS"):
        return "NOT_KNOWN", None
    return path["outcome"], "ROUTING_LOOP" if path["outcome"] == "LOOP" else path["reason"]


def formatted(number: int) -> str:
    return f"{number:,}"


def counted(rows: pyarrow.Table, *by: str) -> dict[tuple[Any, ...], int]:
    """How many rows have these values."""
    return dict(Counter(zip(*(rows[name].to_pylist() for name in by), strict=True)))


def only(rows: pyarrow.Table, **values: str) -> pyarrow.Table:
    for name, value in values.items():
        rows = rows.filter(pc.equal(rows[name], value))
    return rows


def assert_shown(shown: Browser, rows: pyarrow.Table) -> None:
    """Assert that tiles and tables show the counts of these rows, each with the end of its message."""
    endings = {ending: formatted(count) for (ending,), count in counted(rows, "ending").items()}
    assert {ending: count for ending, count in tiles(shown).items() if count != "0"} == endings
    services = counted(rows, "instance_name", "to_service_name")
    listed = table(shown, "services", "Instance", "To service", "Messages")
    assert {(*key, formatted(count)) for key, count in services.items()} >= set(listed)
    assert [row[-1] for row in listed] == [
        formatted(count) for count in sorted(services.values(), reverse=True)[:SHOWN]
    ]
    assert shown.texts("#services-more") == [f"and {len(services) - SHOWN} more"][: len(services) > SHOWN]
    stuck = rows.filter(pc.invert(pc.is_in(rows["ending"], pyarrow.array(["DELIVERED", "NOT_KNOWN"]))))
    reasons = [(*key, formatted(count)) for key, count in counted(stuck, "ending", "why").items()]
    assert sorted(table(shown, "reasons", "Ending", "Reason", "Messages")) == sorted(reasons)
    times: Counter[int] = Counter(
        int(at.timestamp()) // QUARTER * QUARTER for at in rows["decided_at"].to_pylist()
    )
    assert table(shown, "times", "From", "Messages") == [
        (minute(at), formatted(times[at])) for at in sorted(times)
    ]
    assert sorted(table(shown, "stuck", *STUCK)) == sorted(waiting(stuck))


STUCK = ("To service", "Instance", "Database", "Ending", "Reason", "Messages", "Waiting since (UTC)")


def waiting(rows: pyarrow.Table) -> list[tuple[str, ...]]:
    """Return the stuck messages and the time of the first one."""
    by = ["to_service_name", "instance_name", "database_name", "ending", "why"]
    groups = rows.group_by(by).aggregate([("message_id", "count"), ("enqueue_time", "min")]).to_pylist()
    return [
        (
            *(row[name] if row[name] is not None else "(over the network)" for name in by),
            formatted(row["message_id_count"]),
            f"{row['enqueue_time_min']:%Y-%m-%d %H:%M}",
        )
        for row in groups
    ]


def minute(at: int) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M}"


def test_the_numbers_are_those_of_the_tables(shown: Browser, demo: Path, stored: pyarrow.Table) -> None:
    shown.open(demo)
    wait_for_script(shown)
    open_all(shown)
    assert stored.num_rows == 12_050
    assert_shown(shown, stored)


def test_the_numbers_of_a_filter_are_those_of_the_tables(
    shown: Browser, demo: Path, stored: pyarrow.Table
) -> None:
    shown.open(demo)
    wait_for_script(shown)
    choose(shown, instance=EAST)
    assert_shown(shown, only(stored, instance_name=EAST))
    choose(shown, service=LABELS, outcome="DELAYED")
    rows = only(stored, instance_name=EAST, to_service_name=LABELS, ending="DELAYED")
    assert rows.num_rows > 100
    assert_shown(shown, rows)


@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (NARROW, True)])
def test_the_page_has_no_faults(shown: Browser, demo: Path, width: int, dark: bool) -> None:
    shown.open(demo, width=width, dark=dark)
    wait_for_script(shown)
    shown.picture(SCREENSHOTS / f"demo-{width}-{'dark' if dark else 'light'}.png")
    # To judge the colours of all its cells takes a while: once is enough, for those of test_browser are the same.
    assert faults(shown, without=["color-contrast"] if dark else []) == {}


def test_the_printed_demo_has_few_pages_and_every_remedy(shown: Browser, demo: Path) -> None:
    shown.open(demo)
    shown.show_as(medium="print")
    assert shown.printed().count(b"/Type /Page\n") <= 8
    every = (
        "return [...document.querySelectorAll('article p:not([hidden]), #rules tr:not([hidden])')]"
        ".filter(one => !one.checkVisibility())"
        ".map(one => one.textContent)"
    )
    assert shown.ask(every) == []
    assert len(shown.texts("#problems article")) == len(table(shown, "reasons", "Reason"))
    shown.show_as()


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
    wait_for_script(shown)
    shown.picture(SCREENSHOTS / f"check-{width}-{'dark' if dark else 'light'}.png")
    assert faults(shown) == {}
    # As conf/examples/README.md tells it: of two queues, four messages to //billing have waited since morning.
    # Two of the four that are sent wait for a connection that SQL Server cannot make.
    assert tiles(shown) == {"DELIVERED": "2", "DELAYED": "4", "CONNECTION_FAILS": "2"}
    billing = ("//billing", "SHOP", "Orders", "DELAYED", "SERVICE_NOT_FOUND", "4", "2026-01-05 09:12")
    assert billing in table(shown, "stuck", *STUCK)
    choose(shown, instance="STOCK")
    assert table(shown, "services", "Instance", "To service", "Messages") == [("STOCK", "//orders", "1")]
    assert table(shown, "stuck", *STUCK) == []
