"""Incremental runs that skip delayed messages leave the same rows as runs that decide all of them.

The tests' own runs decide every delayed message in every run. Between the runs messages arrive or not, time moves
forward or back, and routes, dialogs and requests change.
"""

from __future__ import annotations

import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from routing.delta.opening import TableOpener
from routing.runs import retries
from routing.runs.increment import Retries
from routing.runs.pipeline import spark_engine
from routing.runs.running import run_by
from routing.schemas import TABLES
from routing.tables.cached_frames import FrameLimits
from tests.frames import Tables, frame_of, with_moments
from tests.imports import rows_at
from tests.random_estates import Row, assert_same, without_marks
from tests.reference.estate_words import MOMENTS
from tests.reference.estates import draw_estates, joined
from tests.reference.increments import Increments
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

SEED = int(os.environ.get("SBROUTE_RANDOM_SEED", "20261129"))
ESTATES = 6
SECOND = timedelta(seconds=1)
LEFT = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages")


class History:
    """One job, its tables, and the tests' own runs over the same rows."""

    def __init__(self, spark: SparkSession, folder: Path, tables: Tables, limits: FrameLimits) -> None:
        self.spark, self.folder = spark, folder
        self.engine = spark_engine(TableOpener.of_session(spark), limits)
        self.tables = {key: rows for key, rows in tables.items() if key != "messages"}
        self.new = list(tables["messages"])
        save_estate({**self.tables, "messages": []}, folder / "in", files=1)
        self.expected = Increments(self.tables)
        self.config: Config = config_of(
            folder / "in",
            folder / "out",
            "resolve.mode=incremental",
            f"output.pending_messages={folder / 'out' / 'pending_messages'}",
        )

    def replace(self, key: str, rows: list[Row]) -> None:
        """Replace the rows of a table of the configuration."""
        self.tables[key] = rows
        self.expected.configure(self.tables)
        frame = frame_of(self.spark, rows, TABLES[key]).coalesce(1)
        frame.write.format("delta").mode("overwrite").save(str(self.folder / "in" / key))

    def run(self, run_id: str, now: datetime, messages: int = 0) -> dict[str, object]:
        """Run over this number of new messages, and compare every output table."""
        part, self.new = self.new[:messages], self.new[messages:]
        if part:
            save_estate({"messages": part}, self.folder / "in", files=1)
        row = run_by(self.engine, self.config, run_id=run_id, now=now).row

        self.expected.run(part, now, run_id)
        for key in LEFT:
            assert_same(
                without_marks(rows_at(self.config.output[key])),
                getattr(self.expected, key),
                f"{key} after {run_id}",
            )
        assert row["rows_unchanged"] == self.expected.unchanged, run_id
        assert row["rows_read"] == row["rows_resolved"] + row["rows_unchanged"] + row["rows_rejected"], run_id
        return row


# With these limits, dialogs and delayed messages stay in Spark as if they were many. In the second case, the
# configuration does too.
@pytest.mark.long
@pytest.mark.parametrize(
    "limits", [FrameLimits(held_rows=3), FrameLimits(held_rows=3, driver_rows=0, part_rows=5)]
)
def test_a_random_history(
    limits: FrameLimits, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(SEED)
    tables = with_moments(joined(draw_estates(rng, ESTATES, 60)))
    history = History(spark, tmp_path, tables, limits)
    decided, choose = list[int](), retries.choose

    def counting(*arguments: object, **named: object) -> Retries:
        chosen = choose(*arguments, **named)  # type: ignore[arg-type]
        decided.append(chosen.count)
        return chosen

    monkeypatch.setattr(retries, "choose", counting)
    third = len(tables["messages"]) // 3
    history.run("first", MOMENTS[1], third)
    history.run("idle", MOMENTS[1] + SECOND)
    version = DeltaTable(history.config.output["pending_messages"].text).version()
    history.run("idle again", MOMENTS[1] + 2 * SECOND)
    assert decided[-1] == 0
    assert DeltaTable(history.config.output["pending_messages"].text).version() == version
    history.run("new", MOMENTS[3], third)
    history.run("time alone", MOMENTS[4])
    waiting = len(history.expected.pending_messages)
    history.run("few", MOMENTS[4] + SECOND, 5)
    assert 0 < decided[-1] < waiting
    waiting = len(history.expected.pending_messages)
    history.replace("routes", [row for row in history.tables["routes"] if rng.random() < 0.8])
    history.run("fewer routes", MOMENTS[4] + 2 * SECOND)
    assert decided[-1] == waiting
    history.run("back in time", MOMENTS[2], third)
    history.replace("dialogs", [row for row in history.tables["dialogs"] if rng.random() < 0.5])
    history.run("fewer dialogs", MOMENTS[5])
    ended = [
        {**request, "ended_at": MOMENTS[6] - rng.choice((0, 1)) * timedelta(hours=1)}
        for request in history.expected.new_route_requests
        if rng.random() < 0.5
    ]
    columns = TABLES["route_requests"].names
    listed = [{name: row.get(name) for name in columns} for row in ended]
    history.replace("route_requests", [*history.tables["route_requests"], *listed])
    history.run("ended requests", MOMENTS[6] - SECOND)
    history.run("requests end", MOMENTS[6])
    spark.sql(
        f"DELETE FROM delta.`{history.config.output['resolved_routes'].text}` WHERE hash(message_id) % 2 = 0"
    )
    history.expected.delete_rows({_key(row) for row in rows_at(history.config.output["resolved_routes"])})
    history.run("rows were deleted", MOMENTS[6] + SECOND)
    history.run("last", MOMENTS[7])


def _key(row: Row) -> tuple[str, str]:
    return row["instance_name"], row["message_id"]
