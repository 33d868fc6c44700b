"""Readers always get exactly one complete run, while runs work, are killed and start again.

They read with Python, the catalog's view, and SQL in two statements, after each commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from tests.crash.estate import NOW, before
from tests.estate_rows import message
from tests.hooks import Hook, Killed, hooked, once
from tests.stored import save_estate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing import Config, Run

pytestmark = pytest.mark.long
KEYS = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages", "runs")
Rows = frozenset[tuple[str, int, str]]


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[str]:
    """Create a schema of the session's catalog, and drop it afterwards."""
    spark.sql("CREATE SCHEMA readers")
    yield "readers"
    spark.sql("DROP SCHEMA readers CASCADE")


def _rows(frame: DataFrame) -> Rows:
    return frozenset((r[0], r[1], r[2]) for r in frame.select("message_id", "attempt", "run_id").collect())


def _last_attempts(rows: Rows) -> Rows:
    return frozenset(r for r in rows if r[1] == max(other[1] for other in rows if other[0] == r[0]))


class Readers:
    """Reads in three ways, and compares each result with the recorded run at that moment."""

    def __init__(self, spark: SparkSession, config: Config, catalog: str) -> None:
        self.spark, self.config, self.catalog = spark, config, catalog
        self.moments: list[str] = []
        self.seen: set[Rows] = set()
        self.shown: Rows = frozenset()

    def is_current(self) -> bool:
        """Return whether the view showed the run that counts when it was last read."""
        return self.shown == _last_attempts(self.counting())

    def counting(self) -> Rows:
        """Return the last recorded run with the two statements of docs/how-to/read-results.md."""
        [row] = self.spark.sql(
            f"SELECT output_versions['resolved_routes'] AS version FROM {self.catalog}.runs"
            " ORDER BY finished_at DESC LIMIT 1"
        ).collect()
        return _rows(
            self.spark.sql(f"SELECT * FROM {self.catalog}.resolved_routes VERSION AS OF {row['version']}")
        )

    def read(self, moment: str) -> None:
        """Read in all three ways. The view may still show the previous recorded run."""
        rows = self.counting()
        assert len({(r[0], r[1]) for r in rows}) == len(rows)
        assert _rows(routing.current_routes(self.spark, self.config)) == _last_attempts(rows), moment
        self.shown = _rows(self.spark.table(f"{self.catalog}.current_routes"))
        self.seen.add(_last_attempts(rows))
        assert self.shown in self.seen, moment
        self.moments.append(moment)

    def killing(self, at: str) -> Hook:
        """Return a hook that reads at each moment and ends the run at one."""

        def hook(moment: str) -> None:
            self.at(moment)
            if moment == at:
                raise Killed

        return hook

    def at(self, moment: str) -> None:
        """Read if a table that readers use has just been committed."""
        first, *_, key = moment.split()
        if first in ("after", "restored") and key in ("resolved_routes", "runs"):
            self.read(moment)


def test_readers_always_get_one_counting_run(spark: SparkSession, catalog: str, tmp_path: Path) -> None:

    case = before(spark, tmp_path / "case", run_first=False)
    named = [f"output.{key}={catalog}.{key}" for key in KEYS]
    full = case.config(*named, "resolve.mode=full")
    incremental = case.config(*named)
    routing.run(spark, full, run_id="full 1")
    readers = Readers(spark, full, catalog)
    readers.read("after the first")
    assert readers.is_current()
    save_estate({"messages": [message(31, "//far")]}, case.folder / "in", files=1)
    for at in ("after resolved_routes", "after runs"):
        with hooked(readers.killing(at)), pytest.raises(Killed):
            routing.run(spark, full, run_id=f"full, killed {at}")
    # The last run was killed after it counted, so the view shows the earlier run until the next start.
    assert not readers.is_current()
    with hooked(once("before new_route_requests", lambda: readers.read("at the next start"))):
        routing.run(spark, full, run_id="full 2")
    assert readers.moments[-1] == "at the next start"
    readers.read("after the second")
    assert readers.is_current()
    save_estate({"messages": [message(32, "//far")]}, case.folder / "in", files=1)
    with hooked(readers.killing("before runs")), pytest.raises(Killed):
        routing.run(spark, incremental, run_id="added, killed", now=NOW)
    with hooked(readers.at):
        routing.run(spark, incremental, run_id="added", now=NOW)
    readers.read("at the end")
    assert readers.is_current()
    assert {"after resolved_routes", "restored resolved_routes", "after runs"} <= set(readers.moments)
    assert {r[2] for r in readers.counting()} == {"full 2", "added"}


def other_notes(done: Run) -> list[str]:
    """Return the notes of a run, except the one on the estate's requests, which never end."""
    return [note for note in done.notes if " no ended_at: " not in note]


def test_an_unsupported_view_is_noted_once(
    spark: SparkSession, catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routing.tables import sql_statements

    def refuse(*_: object) -> None:
        raise RuntimeError("views are not supported")

    case = before(spark, tmp_path / "case", run_first=False)
    config = case.config(*(f"output.{key}={catalog}.{key}" for key in KEYS))
    expected = "the view `readers`.`current_routes` {}: views are not supported"
    with monkeypatch.context() as patch:
        patch.setattr(sql_statements, "show_version", refuse)
        assert other_notes(routing.run(spark, config, run_id="one", now=NOW)) == [
            expected.format("cannot be made")
        ]
        assert other_notes(routing.run(spark, config, run_id="two", now=NOW)) == []
    assert other_notes(routing.run(spark, config, run_id="three", now=NOW)) == []
    assert spark.table(f"{catalog}.current_routes").count() > 0
    # An existing view that cannot be replaced is stale after a run that adds rows, and that run notes this.
    save_estate({"messages": [message(33, "//far")]}, case.folder / "in", files=1)
    with monkeypatch.context() as patch:
        patch.setattr(sql_statements, "show_version", refuse)
        four = routing.run(spark, config, run_id="four", now=NOW.replace(hour=20))
    version = four.row["output_versions"]["resolved_routes"]
    assert other_notes(four) == [expected.format(f"still shows its old version, not version {version}")]


def test_a_foreign_view_stays_unchanged(spark: SparkSession, catalog: str, tmp_path: Path) -> None:
    """Each of two jobs in one schema replaces the view that it created or names, and no other."""
    note = f"`{catalog}`.`current_routes` does not select from output.resolved_routes and is left as it is"
    case = before(spark, tmp_path / "case", run_first=False)

    def job(name: str, *more: str) -> Config:
        return case.config(*(f"output.{key}={catalog}.{name}_{key}" for key in KEYS), "resolve.mode=full", *more)

    def shown(view: str) -> set[str]:
        return {row["run_id"] for row in spark.table(f"{catalog}.{view}").select("run_id").collect()}

    spark.sql(f"CREATE VIEW {catalog}.current_routes AS SELECT 1 AS one")
    [told] = other_notes(routing.run(spark, job("a"), run_id="a1"))
    assert told == f"{note}: name another view by output.current_routes"
    assert spark.table(f"{catalog}.current_routes").columns == ["one"]
    spark.sql(f"DROP VIEW {catalog}.current_routes")
    assert other_notes(routing.run(spark, job("a"), run_id="a2")) == []
    # A view of another job's table is not replaced, even if its version number is the same.
    [told] = other_notes(routing.run(spark, job("b"), run_id="b1"))
    assert told.startswith(note)
    assert shown("current_routes") == {"a2"}
    assert other_notes(routing.run(spark, job("b", f"output.current_routes={catalog}.of_b"), run_id="b2")) == []
    assert (shown("current_routes"), shown("of_b")) == ({"a2"}, {"b2"})
