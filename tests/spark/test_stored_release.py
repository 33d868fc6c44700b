"""Runs continue from tables that releases wrote (`tests.store_release`), by path and by catalog name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from tests.store_release import OUTPUTS, STORED_BY_0_2_0, STORED_BY_0_3_0

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing import Config

pytestmark = pytest.mark.long
NOW = datetime(2026, 1, 7, 20, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Release:
    """The tables of a release, and the reasons in them by message and attempt.

    ``second`` are those of the full run and the incremental one. ``third`` are those of the run that was killed.
    ``owner`` is the conversation for which the first request was made, if the release stored it.
    """

    tables: Path
    second: dict[tuple[str, int], str]
    third: dict[tuple[str, int], str]
    waiting: set[tuple[str, int]]
    owner: str | None


DECIDED_ONCE = {
    ("c0000001", 1): "LOCAL_SERVICE",
    ("c0000002", 1): "MIRROR_ADDRESS",
    ("c0000003", 1): "ROUTE_REQUESTED",
    ("c0000004", 1): "NO_ROUTE",
    ("c0000005", 1): "NETWORK_ADDRESS",
    ("c0000006", 1): "NO_ROUTE",
}
# The decisions of the third run by this release. Those on delayed messages are unchanged.
AGAIN = {("c0000008", 1): "NETWORK_ADDRESS", ("c0000009", 1): "ROUTE_REQUESTED"}
RELEASES = (
    # This release wrote a row for each attempt, but no owner of a request, so nobody waits for it.
    Release(
        STORED_BY_0_2_0,
        {**DECIDED_ONCE, ("c0000003", 2): "NO_ROUTE", ("c0000004", 2): "NO_ROUTE"},
        {("c0000003", 3): "NO_ROUTE", ("c0000004", 3): "NO_ROUTE", ("c0000006", 2): "NO_ROUTE", **AGAIN},
        {("c0000003", 2), ("c0000004", 2), ("c0000006", 1), ("c0000009", 1)},
        None,
    ),
    Release(
        STORED_BY_0_3_0,
        DECIDED_ONCE,
        AGAIN,
        {("c0000003", 1), ("c0000004", 1), ("c0000006", 1), ("c0000009", 1)},
        "c0000003",
    ),
)


@pytest.fixture(params=RELEASES, ids=lambda release: release.tables.name)
def release(request: pytest.FixtureRequest) -> Release:
    stored: Release = request.param
    return stored


@pytest.fixture
def folder(tmp_path: Path, release: Release) -> Path:
    return Path(shutil.copytree(release.tables, tmp_path / "moved"))


@pytest.fixture
def catalog(spark: SparkSession, folder: Path, release: Release) -> Iterator[str]:
    """Create the tables and the view of a catalog with their names."""
    name = release.tables.name
    spark.sql(f"CREATE SCHEMA {name}")
    for table in (folder / "in" / "messages", *(folder / "catalog" / key for key in OUTPUTS)):
        spark.sql(f"CREATE TABLE {name}.{table.name} USING DELTA LOCATION '{table}'")
    spark.sql((folder / "catalog" / "current_routes.sql").read_text(encoding="utf-8"))
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def _reasons(frame: DataFrame) -> dict[tuple[str, int], str]:
    rows = frame.select("message_id", "attempt", "reason").collect()
    return {(row["message_id"][:8], row["attempt"]): row["reason"] for row in rows}


def _last(reasons: dict[tuple[str, int], str]) -> dict[tuple[str, int], str]:
    last = dict(sorted(reasons))
    return {key: reason for key, reason in reasons.items() if last[key[0]] == key[1]}


def _waiting(frame: DataFrame) -> set[tuple[str, int]]:
    return {(row["message_id"][:8], row["attempt"]) for row in frame.select("message_id", "attempt").collect()}


def _read(spark: SparkSession, config: Config, key: str) -> DataFrame:
    return spark.read.format("delta").load(config.output[key].text)


def test_the_killed_run_is_rolled_back_and_repeated(spark: SparkSession, folder: Path, release: Release) -> None:
    config = routing.load_config(str(folder / "job.yaml"))
    assert _reasons(routing.current_routes(spark, config)) == _last(release.second)
    assert _reasons(routing.read_run(spark, config, "first").resolved_routes).keys() == {
        (f"c000000{number}", 1) for number in (1, 2, 3, 4)
    }
    assert _reasons(_read(spark, config, "resolved_routes")) == release.second | release.third
    # A scheduler retries with the id of the killed run.
    done = routing.run(spark, config, run_id="third", now=NOW)
    assert sorted(note.split()[0] for note in done.notes if "was brought back to version" in note) == [
        "output.new_route_requests",
        "output.pending_messages",
        "output.resolved_routes",
    ]
    assert _reasons(_read(spark, config, "resolved_routes")) == release.second | AGAIN
    assert _waiting(_read(spark, config, "pending_messages")) == release.waiting
    assert [note for note in done.notes if note.startswith("1 route request on record has no ended_at")]
    asked = _read(spark, config, "new_route_requests").select("message_id", "conversation_id", "is_initiator")
    assert {(row[0][:8], row[1] and row[1][:8], row[2]) for row in asked.collect()} == {
        ("c0000003", release.owner, None if release.owner is None else True),
        ("c0000009", "c0000009", True),
    }
    [rejected] = _read(spark, config, "rejected_messages").collect()
    assert (rejected["message_id"][:8], rejected["reasons"]) == ("c0000007", ["UNKNOWN_DATABASE"])
    routing.run(spark, routing.load_config(str(folder / "job.yaml"), ["resolve.mode=full"]), run_id="fourth")
    assert {attempt for _, attempt in _reasons(_read(spark, config, "resolved_routes"))} == {1}


def test_the_view_of_a_catalog_is_replaced(
    spark: SparkSession, catalog: str, folder: Path, release: Release
) -> None:
    """The view shows the first run, because the second one counts but was killed before it replaced the view."""
    config = routing.load_config(str(folder / "catalog.yaml"))
    assert {row["run_id"] for row in spark.table(f"{catalog}.current_routes").collect()} == {"first"}
    done = routing.run(spark, config, run_id="third", now=NOW)
    assert [note for note in done.notes if "no ended_at" not in note] == []
    shown = _reasons(spark.table(f"{catalog}.current_routes"))
    assert shown == _last(release.second | AGAIN)
    assert _waiting(spark.table(f"{catalog}.pending_messages")) == release.waiting
