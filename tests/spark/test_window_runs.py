"""Runs over a window of time replace its rows, and incremental runs continue as before."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.errors import ContractError
from tests.estate_rows import message, small_estate
from tests.frames import with_moments
from tests.imports import rows_at
from tests.random_estates import assert_same, without_marks
from tests.reference.estate_words import MOMENTS
from tests.reference.estates import draw_estates, joined
from tests.reference.increments import Increments
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config
    from tests.random_estates import Row

SEED = 20261130
WINDOW = (MOMENTS[1], MOMENTS[4])
LEFT = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages")


def _config(folder: Path, *overrides: str) -> Config:
    pending = f"output.pending_messages={folder / 'out' / 'pending_messages'}"
    return config_of(folder / "in", folder / "out", pending, *overrides)


def _window(first: datetime, end: datetime) -> list[str]:
    return [
        "resolve.mode=window",
        f"resolve.window_from={first.isoformat()}",
        f"resolve.window_to={end.isoformat()}",
    ]


def _assert_left(config: Config, expected: Increments, after: str) -> None:
    for key in LEFT:
        assert_same(without_marks(rows_at(config.output[key])), getattr(expected, key), f"{key} after {after}")


def _tables(messages: int) -> tuple[dict[str, list[Row]], list[Row]]:
    tables = with_moments(joined(draw_estates(random.Random(SEED), 4, messages)))
    return {**tables, "messages": []}, tables["messages"]


@pytest.mark.long
def test_a_window_between_incremental_runs(spark: SparkSession, tmp_path: Path) -> None:
    tables, messages = _tables(60)
    half = len(messages) // 2
    save_estate({**tables, "messages": messages[:half]}, tmp_path / "in", files=1)
    config = _config(tmp_path, "resolve.mode=incremental")
    expected = Increments(tables)
    for run_id, now in (("first", MOMENTS[2]), ("second", MOMENTS[5])):
        routing.run(spark, config, run_id=run_id, now=now)
        expected.run(messages[:half] if run_id == "first" else [], now, run_id)
    # These messages are new to the next incremental run, and the run over the window does not read them.
    save_estate({"messages": messages[half:]}, tmp_path / "in", files=1)
    done = routing.run(spark, _config(tmp_path, *_window(*WINDOW)), run_id="window")
    expected.run_window(*WINDOW, "window")
    _assert_left(config, expected, "the window")
    assert (done.row["mode"], done.row["window_from"], done.row["window_to"]) == ("window", *WINDOW)
    assert done.row["rows_read"] == done.row["rows_resolved"] + done.row["rows_rejected"] > 0
    last = routing.run(spark, config, run_id="last", now=MOMENTS[6])
    expected.run(messages[half:], MOMENTS[6], "last")
    _assert_left(config, expected, "the last")
    assert last.row["rows_unchanged"] == expected.unchanged


@pytest.mark.long
def test_a_window_after_a_full_run(spark: SparkSession, tmp_path: Path) -> None:
    """Messages that wait outside the window are tried again by the next run, as are those within it."""
    tables, messages = _tables(40)
    # A full run accepts duplicate ids, so they are removed.
    messages = list({(row["instance_name"], row["message_id"]): row for row in messages}.values())
    save_estate({**tables, "messages": messages}, tmp_path / "in", files=1)
    routing.run(spark, _config(tmp_path), run_id="full")
    expected = Increments(tables)
    expected.run(messages, MOMENTS[0], "full")
    routing.run(spark, _config(tmp_path, *_window(*WINDOW)), run_id="window")
    expected.run_window(*WINDOW, "window")
    config = _config(tmp_path, "resolve.mode=incremental")
    _assert_left(config, expected, "the window")
    routing.run(spark, config, run_id="last", now=MOMENTS[6])
    expected.run([], MOMENTS[6], "last")
    _assert_left(config, expected, "the last")


@pytest.mark.long
def test_an_id_that_waits_without_its_last_row_is_not_new(spark: SparkSession, tmp_path: Path) -> None:
    """The row was deleted, and only a run over another window has counted since, so it was not written again."""
    rows = {**small_estate(), "messages": [message(1, "//nowhere")]}
    save_estate(rows, tmp_path / "in", files=1)
    config = _config(tmp_path, "resolve.mode=incremental")
    routing.run(spark, config, run_id="first", now=MOMENTS[1])
    assert [row["message_id"] for row in rows_at(config.output["pending_messages"])] == ["m1"]
    spark.sql(f"DELETE FROM delta.`{config.output['resolved_routes'].text}`")
    elsewhere = (MOMENTS[1] + timedelta(days=100), MOMENTS[1] + timedelta(days=101))
    routing.run(spark, _config(tmp_path, *_window(*elsewhere)), run_id="window")
    save_estate({"messages": [message(1, "//nowhere"), message(2, "//nowhere")]}, tmp_path / "in", files=1)
    for run_id in ("again", "last"):
        routing.run(spark, config, run_id=run_id, now=MOMENTS[2])
    assert sorted(row["message_id"] for row in rows_at(config.output["pending_messages"])) == ["m1", "m2"]
    [rejected] = rows_at(config.output["rejected_messages"])
    assert (rejected["message_id"], rejected["reasons"]) == ("m1", ["DUPLICATE_MESSAGE_ID"])


@pytest.mark.parametrize(
    ("overrides", "fault"),
    [
        (["resolve.mode=window"], "resolve.window_from must be a time before resolve.window_to"),
        (_window(MOMENTS[4], MOMENTS[4]), "resolve.window_from must be a time before resolve.window_to"),
        (
            [*_window(*WINDOW), "resolve.as_of=2026-01-05"],
            "resolve.as_of cannot be used with resolve.mode: window",
        ),
        ([*_window(*WINDOW)[1:]], "resolve.window_from and resolve.window_to need resolve.mode: window"),
    ],
)
def test_windows_that_are_refused(overrides: list[str], fault: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=fault):
        _config(tmp_path, *overrides)


def test_a_window_before_any_run(spark: SparkSession, tmp_path: Path) -> None:
    tables, messages = _tables(4)
    save_estate({**tables, "messages": messages}, tmp_path / "in", files=1)
    with pytest.raises(ContractError, match="no run is recorded") as caught:
        routing.run(spark, _config(tmp_path, *_window(MOMENTS[0], MOMENTS[0] + timedelta(days=1))))
    assert caught.value.exit_code == 2
