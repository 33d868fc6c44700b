"""Changes since the previous run, from local tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from routing.config import Config
from routing.delta.counted_runs import open_runs
from routing.schemas import ROUTES, RUNS
from routing.views.page.facts import ReportChanges, RouteChange, WordCount
from routing.views.report.reporting import changes_since
from tests.counted_messages import micros
from tests.estate_rows import route, small_estate
from tests.frames import arrow_of
from tests.imports import no_spark
from tests.stored import config_of, save_estate
from tests.unit.test_runs_command import recorded

pytest.importorskip("deltalake")
STOCK_BEFORE = [
    route("Far", "//far", "tcp://first:1"),
    route("Ends", "//ends", "tcp://ends:1", lifetime="2026-01-06T00:00:00Z"),
    route("Stays", "//stays", "LOCAL"),
]
STOCK_NOW = [route("Far", "//far", "tcp://second:2"), *STOCK_BEFORE[1:], route("New", "//new", "LOCAL")]


def run(config: Config, name: str, day: int, version: int | None, **columns: Any) -> dict[str, Any]:
    """A row of ``runs`` of a day at noon, one hour long."""
    date = f"2026-01-{day:02d}"
    own = {"input_versions": {"routes": version}, "outcome_counts": {}, "reason_counts": {}}
    values = {**own, "settings": config.as_json(), **columns}
    return recorded(name, f"{date}T12:00:00Z", f"{date}T13:00:00Z", **values)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Routes at version 2 are those before, at version 3 those of now."""
    from deltalake import write_deltalake

    save_estate(small_estate(), tmp_path / "in")
    for rows in (STOCK_BEFORE, STOCK_NOW):
        write_deltalake(str(tmp_path / "in" / "routes"), arrow_of(rows, ROUTES), mode="overwrite")
    return config_of(tmp_path / "in", tmp_path / "out")


def changed(config: Config, *runs: dict[str, Any]) -> ReportChanges | None:
    from deltalake import write_deltalake

    write_deltalake(config.output["runs"].text, arrow_of(list(runs), RUNS), mode="overwrite")
    return _since(config)


def _since(config: Config) -> ReportChanges | None:
    opener = no_spark()
    runs = open_runs(opener, config.output["runs"])
    assert runs is not None
    return changes_since(config, opener, runs)


def changed_routes(changes: ReportChanges | None) -> list[tuple[str, str]] | None:
    assert changes is not None
    return None if changes.routes is None else [(one.change, one.route) for one in changes.routes]


def test_the_two_last_runs(config: Config) -> None:
    counts = {"outcome_counts": {"DELAYED": 4, "SENT": 5}, "reason_counts": {"NO_ROUTE": 4, "NETWORK_ADDRESS": 5}}
    later = {"outcome_counts": {"SENT": 7, "DROPPED": 2}, "reason_counts": {"HOP_LIMIT": 2, "NETWORK_ADDRESS": 7}}
    rows = [
        run(config, "now", 5, 3, **later),
        run(config, "oldest", 3, 0, outcome_counts={"SENT": 1}),
        run(config, "before", 4, 2, **counts),
    ]
    assert changed(config, *rows) == ReportChanges(
        run_id="before",
        finished_at=micros("2026-01-04T13:00:00Z"),
        is_incremental=False,
        outcomes=[WordCount("SENT", 5, 7), WordCount("DELAYED", 4, 0), WordCount("DROPPED", 0, 2)],
        reasons=[WordCount("NETWORK_ADDRESS", 5, 7), WordCount("NO_ROUTE", 4, 0), WordCount("HOP_LIMIT", 0, 2)],
        routes=(
            RouteChange(
                "hub",
                "Sales",
                "Far",
                "CHANGED",
                "address tcp://first:1 \N{RIGHTWARDS ARROW} address tcp://second:2",
            ),
            RouteChange("hub", "Sales", "New", "ADDED", "service //new, address LOCAL"),
        ),
    )


def test_the_first_run_has_no_changes(config: Config) -> None:
    assert changed(config, run(config, "only", 5, 3)) is None


def test_a_route_that_ended_between_two_runs(config: Config) -> None:
    """The table is unchanged. The time that a run decides for counts, or else its start."""
    before = run(config, "before", 5, 2)
    assert changed_routes(changed(config, before, run(config, "now", 6, 2))) == [("REMOVED", "Ends")]
    retried = {"mode": "incremental", "now": "2026-01-05T23:59:59Z"}
    changes = changed(config, before, run(config, "now", 6, 2, **retried))
    assert changes is not None
    assert (changed_routes(changes), changes.is_incremental) == ([], True)
    assert changed_routes(changed(config, before, run(config, "now", 6, 2, as_of="2026-01-05T23:59:59Z"))) == []


def test_without_the_routes_of_both_runs_no_change_is_shown(config: Config, tmp_path: Path) -> None:
    now = run(config, "now", 5, 3)
    assert changed_routes(changed(config, run(config, "before", 4, None), now)) is None
    assert changed_routes(changed(config, run(config, "before", 4, 9), now)) is None
    assert changed_routes(changed(config, now, run(config, "before", 4, 2))) is not None
    elsewhere = config_of(tmp_path / "in", tmp_path / "out", routes=tmp_path / "in" / "services")
    assert changed_routes(changed(config, run(elsewhere, "before", 4, 1), now)) is None
    # All files are gone, those of the version now too.
    for file in Path(config.tables["routes"].text).glob("*.parquet"):
        file.unlink()
    assert changed_routes(changed(config, run(config, "before", 4, 2), now)) is None
    shutil.rmtree(config.tables["routes"].text)
    assert changed_routes(changed(config, run(config, "before", 4, 2), now)) is None
