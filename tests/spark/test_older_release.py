"""Tables that release 0.1.0 wrote, stored as it left them: a first run, new messages, and a run that was killed.

The estate, and what one clean run makes of it, are those of `tests.crash.estate`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing import cli
from tests.crash.estate import NOW, OUTCOMES, WRITTEN, Case, run_ids, state, write_config
from tests.frames import rows_of
from tests.hooks import Killed, hooked, kill, once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long
STORED = Path(__file__).parents[1] / "stored_by_0_1_0"
NEW_COLUMNS = ["table_ids", "commit_identities"]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    for part in ("in", "out"):
        shutil.copytree(STORED / part, tmp_path / "case" / part)
    return write_config(tmp_path / "case")


def _outcomes(spark: SparkSession, case: Case) -> dict[tuple[str, int], str]:
    rows = state(spark, case)["resolved_routes"]
    return {(row["message_id"], row["attempt"]): row["reason"] for row in rows if row["run_id"] == "later"}


def _operations(spark: SparkSession, case: Case, key: str) -> list[str]:
    history = spark.sql(f"DESCRIBE HISTORY delta.`{case.folder / 'out' / key}`")
    return [row["operation"] for row in history.orderBy("version").collect()]


def _runs(spark: SparkSession, case: Case) -> list[dict[str, Any]]:
    return sorted(rows_of(spark.read.format("delta").load(str(case.folder / "out" / "runs"))), key=_finished)


def _finished(row: dict[str, Any]) -> Any:
    return row["finished_at"]


def test_it_is_read_as_it_is(spark: SparkSession, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", "first", "--config", str(case.file)]) == 0
    assert "0.1.0" in capsys.readouterr().out
    left = routing.current_routes(spark, case.config())
    assert {row["run_id"] for row in left.select("run_id").collect()} == {"first"}
    assert routing.read_run(spark, case.config(), "first").resolved_routes.count() == 5


def test_killed_taken_back_and_given_its_new_columns(spark: SparkSession, case: Case) -> None:
    """First a run of today is killed as well, so that two different unfinished runs are to be taken back."""
    with hooked(once("after pending_messages", kill)), pytest.raises(Killed):
        routing.run(spark, case.config(), run_id="killed", now=NOW)
    assert run_ids(spark, case) == ["first"]
    done = routing.run(spark, case.config(), run_id="later", now=NOW)
    assert [note for note in done.notes if "trusted this once" in note] != []
    assert [note for note in done.notes if "was brought back to version 0" in note] != []
    assert _outcomes(spark, case) == OUTCOMES
    first, later = _runs(spark, case)
    assert [first[name] for name in NEW_COLUMNS] == [None, None]
    assert set(later["table_ids"]) == {"messages", "runs", *WRITTEN}
    assert set(later["commit_identities"]) == {"messages", *WRITTEN}
    # One commit each: a column is never added by a commit of its own.
    assert _operations(spark, case, "runs") == ["WRITE", "WRITE"]
    assert _operations(spark, case, "resolved_routes") == [
        "WRITE",
        "WRITE",
        "RESTORE",
        "WRITE",
        "RESTORE",
        "WRITE",
    ]
    again = routing.run(spark, case.config(), run_id="again", now=NOW.replace(hour=15))
    assert [note for note in again.notes if "trusted" in note or "brought back" in note] == []


def test_a_type_that_differs_is_still_refused(spark: SparkSession, case: Case) -> None:
    from routing.errors import OutputError

    path = str(case.folder / "out" / "rejected_messages")
    frame = spark.read.format("delta").load(path)
    changed = frame.withColumn("hops_remaining", frame["hops_remaining"].cast("string"))
    changed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    with pytest.raises(OutputError, match="column hops_remaining is string, not bigint"):
        routing.run(spark, case.config("resolve.mode=full"))
