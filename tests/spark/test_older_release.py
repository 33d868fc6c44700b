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
from tests.estate_rows import message
from tests.frames import frame_of, rows_of
from tests.hooks import Killed, hooked, kill, once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long
STORED = Path(__file__).parents[1] / "stored_by_0_1_0"
NEW_COLUMNS = ["table_ids", "commit_identities"]
AS_READ = ("rejected_messages", "pending_messages")
"""The outputs that hold what was read of messages, which has more columns now."""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    for part in ("in", "out"):
        shutil.copytree(STORED / part, tmp_path / "case" / part)
    return write_config(tmp_path / "case")


def _outcomes(case: Case) -> dict[tuple[str, int], str]:
    rows = state(case)["resolved_routes"]
    return {(row["message_id"], row["attempt"]): row["reason"] for row in rows if row["run_id"] == "later"}


def _operations(spark: SparkSession, case: Case, key: str) -> list[str]:
    history = spark.sql(f"DESCRIBE HISTORY delta.`{case.folder / 'out' / key}`")
    return [row["operation"] for row in history.orderBy("version").collect()]


def _having_senders(spark: SparkSession, case: Case) -> list[str]:
    """Which outputs have the column of the sending service."""
    frames = {key: spark.read.format("delta").load(str(case.folder / "out" / key)) for key in AS_READ}
    return [key for key, frame in frames.items() if "from_service_name" in frame.columns]


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
    assert _having_senders(spark, case) == []
    with hooked(once("after pending_messages", kill)), pytest.raises(Killed):
        routing.run(spark, case.config(), run_id="killed", now=NOW)
    assert _having_senders(spark, case) == [*AS_READ]
    assert run_ids(case) == ["first"]
    done = routing.run(spark, case.config(), run_id="later", now=NOW)
    assert [note for note in done.notes if "trusted this once" in note] != []
    assert [note for note in done.notes if "was brought back to version 0" in note] != []
    assert _outcomes(case) == OUTCOMES
    # What the killed run had made of the tables' columns went with its rows, and came again.
    assert _having_senders(spark, case) == [*AS_READ]
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


def test_messages_that_say_their_sender_are_added(spark: SparkSession, case: Case) -> None:
    """The input table gains the column, as an import adds it; what is rejected or waits keeps it as read."""
    from routing.schemas import MESSAGES

    new = [
        message(21, "//nowhere", from_service_name="//shop"),
        message(22, "//far", conversation_id="no guid", from_service_name="//Shop "),
    ]
    rows = frame_of(spark, new, MESSAGES).coalesce(1)
    target = str(case.folder / "in" / "messages")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").save(target)
    for run_id, hour in (("later", 14), ("last", 15)):
        routing.run(spark, case.config(), run_id=run_id, now=NOW.replace(hour=hour))
        pending, rejected = (
            {row["message_id"]: row["from_service_name"] for row in state(case)[key]}
            for key in ("pending_messages", "rejected_messages")
        )
        assert pending == {"m4": None, "m12": None, "m14": None, "m21": "//shop"}
        assert rejected == {"m1": None, "m6": None, "m7": None, "m13": None, "m22": "//Shop "}


def test_a_type_that_differs_is_still_refused(spark: SparkSession, case: Case) -> None:
    from routing.errors import OutputError

    path = str(case.folder / "out" / "rejected_messages")
    frame = spark.read.format("delta").load(path)
    changed = frame.withColumn("hops_remaining", frame["hops_remaining"].cast("string"))
    changed.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    with pytest.raises(OutputError, match="column hops_remaining is string, not bigint"):
        routing.run(spark, case.config("resolve.mode=full"))
