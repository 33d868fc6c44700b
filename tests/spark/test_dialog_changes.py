"""An incremental run decides only those delayed messages again whose dialogs have changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.delta.opening import TableOpener
from routing.errors import InputError
from routing.messages import validate
from routing.runs import retries
from routing.runs.increment import Retries
from routing.runs.pipeline import spark_engine
from routing.runs.running import run_by
from routing.schemas import DIALOGS
from routing.tables.cached_frames import FrameLimits
from tests.estate_rows import conversation, endpoint, message, small_estate
from tests.frames import frame_of
from tests.imports import rows_at
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix]
LATER = "2026-01-05T23:00:00Z"


class Job:
    """A job whose dialogs are in a table by path or by name. It counts the messages and dialogs of its runs."""

    def __init__(self, spark: SparkSession, folder: Path, table: str | None, patch: pytest.MonkeyPatch) -> None:
        self.spark, self.hour = spark, 12
        estate = small_estate()
        estate["dialogs"] = [endpoint(number) for number in (3, 4, 5, 9)]
        estate["messages"] = [message(number, f"//nowhere{number}") for number in (3, 4, 5)] + [
            message(1, "//stock")
        ]
        save_estate(estate, folder / "in", files=1)
        pending = f"output.pending_messages={folder / 'out' / 'pending_messages'}"
        named = [] if table is None else [f"tables.dialogs=spark_catalog.{table}"]
        self.config = config_of(folder / "in", folder / "out", "resolve.mode=incremental", pending, *named)
        self.table = f"delta.`{folder / 'in' / 'dialogs'}`"
        if table is not None:
            feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
            spark.sql(f"CREATE TABLE {table} USING delta {feed} AS SELECT * FROM {self.table}")
            self.table = table
        # With this limit, dialogs and delayed messages stay in Spark, as if they were many.
        self.engine = spark_engine(TableOpener.of_session(spark), FrameLimits(held_rows=0))
        self.decided, self.surveyed = 0, 0
        choose, check = retries.choose, validate.check

        def choosing(*arguments: Any) -> Retries:
            chosen = choose(*arguments)
            self.decided = chosen.count
            return chosen

        def checking(inputs: validate.InputTables, **options: Any) -> Any:
            reduced = options.get("reduced")
            self.surveyed = (inputs.frame if reduced is None else reduced).count()  # type: ignore[union-attr]
            return check(inputs, **options)

        patch.setattr(retries, "choose", choosing)
        patch.setattr(validate, "check", checking)

    def run(self) -> tuple[int, int]:
        """Run an hour later. Return how many messages were tried again, and how many dialogs were read."""
        self.hour, self.decided, self.surveyed = self.hour + 1, 0, 0
        now = datetime(2026, 1, 5, self.hour, tzinfo=timezone.utc)
        row = run_by(self.engine, self.config, run_id=f"at {self.hour}", now=now).row
        assert row["rows_read"] == row["rows_resolved"] + row["rows_unchanged"] + row["rows_rejected"]
        return self.decided, self.surveyed

    def write(self, mode: str, *rows: dict[str, Any]) -> None:
        """Append or overwrite dialogs."""
        frame = frame_of(self.spark, list(rows), DIALOGS).coalesce(1)
        writer = frame.write.format("delta").mode(mode)
        if self.table.startswith("delta."):
            writer.save(self.config.tables["dialogs"].text)
        else:
            writer.saveAsTable(self.table)

    def do(self, statement: str) -> None:
        """Run a statement, in which ``{t}`` is the table."""
        self.spark.sql(statement.format(t=self.table)).collect()

    def outcomes(self) -> dict[str, str]:
        """Return the last decision of each message."""
        rows = sorted(rows_at(self.config.output["resolved_routes"]), key=lambda row: row["attempt"])
        return {row["message_id"]: row["reason"] for row in rows}


@pytest.fixture(
    params=[None, pytest.param("spark_changes.dialogs", marks=pytest.mark.long)], ids=["by path", "by name"]
)
def job(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Job]:
    """Return a job that has run once."""
    spark.sql("CREATE SCHEMA spark_changes")
    try:
        started_job = Job(spark, tmp_path, request.param, monkeypatch)
        assert started_job.run() == (0, 4)
        yield started_job
    finally:
        spark.sql("DROP SCHEMA spark_changes CASCADE")


def test_only_messages_of_changed_dialogs_are_decided_again(job: Job) -> None:
    assert job.run() == (0, 0)
    # These settings change no decision.
    within = replace(job.config.resolve, duplicates_within="7 days", broadcast_limit="1GB")
    job.config = replace(job.config, resolve=within)
    assert job.run() == (0, 0)
    # First a dialog without messages changes, then that of a delayed message, which has ended before this run.
    job.write("append", endpoint(10))
    assert job.run() == (0, 1)
    job.do(f"UPDATE {{t}} SET lifetime = '2026-01-05T11:00:00Z' WHERE conversation_id = '{conversation(4)}'")
    before = job.outcomes()
    decided, surveyed = job.run()
    assert (decided, surveyed) == (1, 1)
    assert {**before, "m4": "DIALOG_EXPIRED"} == job.outcomes()
    # Rewritten rows are not a change.
    job.do("OPTIMIZE {t}")
    assert job.run() == (0, 0)
    job.do(f"DELETE FROM {{t}} WHERE conversation_id = '{conversation(9)}'")
    assert job.run() == (0, 0)
    # The whole table is replaced, but only one dialog differs.
    job.write("overwrite", endpoint(3), endpoint(5, lifetime=LATER), endpoint(4, lifetime="2026-01-05T11:00:00Z"))
    decided, _ = job.run()
    assert decided == 1
    assert job.outcomes()["m5"] == before["m5"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (endpoint(9, lifetime=LATER), "2 rows have this key"),
        (endpoint(11, conversation_id=None), "conversation_id is missing"),
        (endpoint(12, is_initiator=None), "is_initiator is missing"),
    ],
    ids=["doubled", "no id", "no side"],
)
def test_changed_dialogs_are_validated(job: Job, fault: dict[str, Any], expected: str) -> None:
    """This also applies if no message belongs to their conversation."""
    job.write("append", fault)
    with pytest.raises(InputError, match=expected):
        job.run()
    with pytest.raises(InputError, match=expected):
        job.run()
    job.do("DELETE FROM {t} WHERE lifetime IS NOT NULL OR conversation_id IS NULL OR is_initiator IS NULL")
    assert job.run()[0] == 0


@pytest.mark.long
def test_dialogs_of_a_new_table_are_validated_as_a_whole(job: Job) -> None:
    if job.table.startswith("delta."):
        shutil.rmtree(job.config.tables["dialogs"].text)
    else:
        job.do("DROP TABLE {t}")
    job.write("append", endpoint(9), endpoint(9))
    with pytest.raises(InputError, match="2 rows have this key"):
        job.run()
