"""Incremental runs over one set of tables: new messages, retries, failed runs, and a full run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.errors import InputError, StorageError
from tests.estate_rows import (
    ASK,
    SALES,
    STOCK,
    conversation,
    database,
    endpoint,
    instance,
    message,
    route,
    service,
)
from tests.frames import rows_of
from tests.hooks import Killed, hooked, kill, once
from tests.imports import rows_at
from tests.stored import OUTPUTS, config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

Table = list[dict[str, Any]]


def _at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 5, hour, minute, tzinfo=timezone.utc)


def _time(text: str) -> str:
    return f"2026-01-05T{text}:00Z"


ROUTES = [
    route("Stock", "//stock", "LOCAL"),
    route("Far", "//far", "TCP://far.example:4022"),
    route("Ask", ASK, "LOCAL", lifetime=_time("14:30")),
    # //late has no route until 14:30.
    route("Late", "//late", "TCP://late.example:4022", valid_from=_time("14:30")),
]
ESTATE = {
    "instances": [instance()],
    "databases": [database("Sales", SALES), database("Stock", STOCK)],
    "services": [service("Stock", "//stock")],
    "routes": ROUTES,
    "dialogs": [endpoint(5, lifetime=_time("14:15"))],
    "messages": [
        message(1, "//stock"),
        message(2, "//far"),
        message(3, "//late", observed_at=_time("12:30")),
        message(4, "//late", enqueue_time=_time("12:45")),
        message(5, "//never"),
        message(6, "//late", database_name=None),
        # The second of these three is kept for its sequence number, because the third is faulty.
        message(7, "//far", message_sequence_number=9),
        message(7, "//stock", message_sequence_number=8, conversation_id=conversation(7)),
        message(7, "//stock", message_sequence_number=1, database_name="Nowhere"),
        message(8, "//far", conversation_id="no guid"),
    ],
}
SECOND = [
    message(9, "//late", enqueue_time=_time("13:30")),
    # The ids of m1 (delivered), m3 (delayed) and m2 (now also faulty) are stored. A rejected id may come again.
    message(1, "//far"),
    message(3, "//far"),
    message(2, "//far", conversation_id="no guid"),
    message(8, "//far"),
]


def _config(folder: Path, *overrides: str) -> Config:
    return config_of(
        folder / "in",
        folder / "out",
        f"output.pending_messages={folder / 'out' / 'pending_messages'}",
        "resolve.mode=incremental",
        *overrides,
    )


def _tables(config: Config) -> dict[str, Table]:
    """Return the rows of the output tables, read without Spark."""
    return {key: rows_at(config.output[key]) for key in (*OUTPUTS, "pending_messages")}


@dataclass
class Story:
    """The state after each run."""

    config: Config
    first: dict[str, Table]
    failed: dict[str, Table]
    second: dict[str, Table]
    notes: tuple[str, ...]
    rows: list[dict[str, Any]]


@dataclass
class LaterStory:
    """The state after two more runs, and the rows of all runs."""

    third: dict[str, Table]
    idle: dict[str, Table]
    current: Table
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("story")
    save_estate(ESTATE, folder / "in", files=1)
    config = _config(folder)
    runs = [routing.run(spark, config, run_id="first", now=_at(13))]
    first = _tables(config)
    save_estate({"messages": SECOND}, folder / "in", files=1)
    # This rewrites all files, but adds no row.
    spark.sql(f"OPTIMIZE delta.`{folder / 'in' / 'messages'}`")
    with hooked(once("before runs", kill)), pytest.raises(Killed):
        routing.run(spark, config, run_id="killed", now=_at(13, 45))
    failed = _tables(config)
    assert {row["message_id"]: row["attempt"] for row in rows_of(routing.current_routes(spark, config))} == (
        dict.fromkeys(["m1", "m2", "m3", "m4", "m5", "m6", "m7"], 1)
    )
    runs.append(routing.run(spark, config, run_id="second", now=_at(14)))
    return Story(config, first, failed, _tables(config), runs[1].notes, [run.row for run in runs])


@pytest.fixture(scope="module")
def later(spark: SparkSession, story: Story) -> LaterStory:
    config = story.config
    runs = [routing.run(spark, config, run_id="third", now=_at(15))]
    third = _tables(config)
    # Nothing is new and nothing is delayed.
    runs.append(routing.run(spark, config, run_id="idle", now=_at(16)))
    current = rows_of(routing.current_routes(spark, config))
    return LaterStory(third, _tables(config), current, [*story.rows, *(run.row for run in runs)])


def _decided(rows: Table, run_id: str) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return time, result and route of each message and attempt."""
    return {
        (row["message_id"], row["attempt"]): (row["decided_at"], row["outcome"], row["reason"], row["route_name"])
        for row in rows
        if row["run_id"] == run_id
    }


FIRST = {
    ("m1", 1): (_at(12), "DELIVERED", "LOCAL_SERVICE", "Stock"),
    ("m2", 1): (_at(12), "SENT", "NETWORK_ADDRESS", "Far"),
    # m3 is decided before m4, so it asks for //late first.
    ("m3", 1): (_at(12, 30), "DELAYED", "ROUTE_REQUESTED", None),
    ("m4", 1): (_at(12, 45), "DELAYED", "NO_ROUTE", None),
    ("m5", 1): (_at(12), "DELAYED", "ROUTE_REQUESTED", None),
    ("m6", 1): (_at(12), "DELAYED", "NO_ROUTE", None),
    ("m7", 1): (_at(12), "DELIVERED", "LOCAL_SERVICE", "Stock"),
}


def _reasons(rows: Table, run_id: str) -> list[tuple[Any, ...]]:
    return sorted(
        (row["message_id"], row["message_sequence_number"], tuple(row["reasons"]))
        for row in rows
        if row["run_id"] == run_id
    )


def _pending(rows: Table) -> dict[str, tuple[Any, ...]]:
    return {
        row["message_id"]: (row["attempt"], row["last_decided_at"], row["last_reason"], row["run_id"])
        for row in rows
    }


def test_the_first_run_takes_every_message(story: Story) -> None:
    assert _decided(story.first["resolved_routes"], "first") == FIRST
    assert len(story.first["resolved_routes"]) == len(FIRST)
    assert _reasons(story.first["rejected_messages"], "first") == [
        ("m7", 1, ("UNKNOWN_DATABASE", "DUPLICATE_MESSAGE_ID")),
        ("m7", 9, ("DUPLICATE_MESSAGE_ID",)),
        ("m8", 8, ("CONVERSATION_ID_NOT_A_GUID",)),
    ]
    # m6 came over the network, so its sender tries again.
    assert _pending(story.first["pending_messages"]) == {
        "m3": (1, _at(12, 30), "ROUTE_REQUESTED", "first"),
        "m4": (1, _at(12, 45), "NO_ROUTE", "first"),
        "m5": (1, _at(12), "ROUTE_REQUESTED", "first"),
    }
    waiting = next(row for row in story.first["pending_messages"] if row["message_id"] == "m3")
    assert (waiting["observed_at"], waiting["conversation_id"]) == (_at(12, 30), conversation(3))


def test_a_run_that_was_killed_left_rows_that_do_not_count(story: Story) -> None:
    assert {row["run_id"] for row in story.failed["resolved_routes"]} == {"first", "killed"}
    assert {row["run_id"] for row in story.failed["runs"]} == {"first"}


def test_the_next_run_rolls_back_rows_of_a_killed_run(story: Story) -> None:
    for key in ("resolved_routes", "rejected_messages", "new_route_requests", "pending_messages"):
        assert "killed" not in {row["run_id"] for row in story.second[key]}, key
    assert any("output.resolved_routes held rows of a run that does not count" in note for note in story.notes)


def test_the_second_run_decides_new_messages_and_retries_delayed_ones(story: Story) -> None:
    rows = story.second["resolved_routes"]
    assert _decided(rows, "first") == FIRST
    assert _decided(rows, "second") == {
        ("m8", 1): (_at(12), "SENT", "NETWORK_ADDRESS", "Far"),
        # m3's request of the first run is on record.
        ("m9", 1): (_at(13, 30), "DELAYED", "NO_ROUTE", None),
    }
    assert _reasons(story.second["rejected_messages"], "second") == [
        ("m1", 1, ("DUPLICATE_MESSAGE_ID",)),
        ("m2", 2, ("CONVERSATION_ID_NOT_A_GUID", "DUPLICATE_MESSAGE_ID")),
        ("m3", 3, ("DUPLICATE_MESSAGE_ID",)),
    ]
    # The decisions on m3, m4 and m5 are unchanged: their conversations wait, or no route exists.
    assert _pending(story.second["pending_messages"]) == {
        "m3": (1, _at(12, 30), "ROUTE_REQUESTED", "first"),
        "m4": (1, _at(12, 45), "NO_ROUTE", "first"),
        "m5": (1, _at(12), "ROUTE_REQUESTED", "first"),
        "m9": (1, _at(13, 30), "NO_ROUTE", "second"),
    }


@pytest.mark.long
def test_the_third_run_decides_delayed_messages_again(later: LaterStory) -> None:
    assert _decided(later.third["resolved_routes"], "third") == {
        ("m3", 2): (_at(15), "SENT", "NETWORK_ADDRESS", "Late"),
        ("m4", 2): (_at(15), "SENT", "NETWORK_ADDRESS", "Late"),
        ("m5", 2): (_at(15), "DROPPED", "DIALOG_EXPIRED", None),
        ("m9", 2): (_at(15), "SENT", "NETWORK_ADDRESS", "Late"),
    }
    assert later.third["pending_messages"] == []


@pytest.mark.long
def test_a_run_without_anything_to_do_records_itself(later: LaterStory) -> None:
    assert {row["run_id"] for row in later.idle["runs"]} == {"first", "second", "third", "idle"}
    assert {key: rows for key, rows in later.idle.items() if key != "runs"} == {
        key: rows for key, rows in later.third.items() if key != "runs"
    }


REQUESTS = [("m3", _at(12, 30)), ("m5", _at(12))]


def _requests(tables: dict[str, Table]) -> list[tuple[Any, ...]]:
    return sorted((row["message_id"], row["requested_at"]) for row in tables["new_route_requests"])


@pytest.mark.long
def test_requests_are_opened_once(later: LaterStory) -> None:
    assert _requests(later.third) == REQUESTS


@pytest.mark.long
def test_current_routes_has_the_last_row_of_each_message(later: LaterStory) -> None:
    last = {row["message_id"]: (row["attempt"], row["outcome"]) for row in later.current}
    assert len(later.current) == len(last) == 9
    assert last == {
        "m1": (1, "DELIVERED"),
        "m2": (1, "SENT"),
        "m3": (2, "SENT"),
        "m4": (2, "SENT"),
        "m5": (2, "DROPPED"),
        "m6": (1, "DELAYED"),
        "m7": (1, "DELIVERED"),
        "m8": (1, "SENT"),
        "m9": (2, "SENT"),
    }


ROWS_OF_RUNS = [
    ("first", "incremental", _at(13), 10, 7, 0, 3),
    # Five new rows, and three that are tried again.
    ("second", "incremental", _at(14), 8, 2, 3, 3),
    ("third", "incremental", _at(15), 4, 4, 0, 0),
    ("idle", "incremental", _at(16), 0, 0, 0, 0),
]


def _assert_rows_of_runs(rows: list[dict[str, Any]]) -> None:
    names = ("run_id", "mode", "now", "rows_read", "rows_resolved", "rows_unchanged", "rows_rejected")
    assert [tuple(row[name] for name in names) for row in rows] == ROWS_OF_RUNS[: len(rows)]
    assert {"new messages", "duplicates"} <= set(rows[1]["stage_seconds"])
    assert [row["input_versions"]["messages"] for row in rows] == [0, 2, 2, 2][: len(rows)]
    assert [row["finished_at"] for row in rows] == sorted(row["finished_at"] for row in rows)


def test_the_rows_of_runs(story: Story) -> None:
    _assert_rows_of_runs(story.rows)
    # m3 and m5 asked in the first run, and are tried again in the second.
    assert _requests(story.second) == REQUESTS


@pytest.mark.long
def test_the_rows_of_later_runs(later: LaterStory) -> None:
    assert len(later.rows) == len(ROWS_OF_RUNS)
    _assert_rows_of_runs(later.rows)


def test_read_run_gives_the_rows_of_that_run(spark: SparkSession, story: Story) -> None:
    second = routing.read_run(spark, story.config, "second")
    assert _decided(rows_of(second.resolved_routes), "second") == _decided(
        story.second["resolved_routes"], "second"
    )
    assert {row["run_id"] for row in rows_of(second.rejected_messages)} == {"second"}


def test_a_delayed_message_is_doubled_at_any_distance(spark: SparkSession, tmp_path: Path) -> None:
    """`duplicates_within` limits the search among decided messages, never among delayed ones."""
    save_estate({**ESTATE, "messages": [message(2, "//far"), message(11, "//never")]}, tmp_path / "in", files=1)
    config = _config(tmp_path, "resolve.duplicates_within=1 day")
    routing.run(spark, config, run_id="first")
    later = "2026-03-05T12:00:00Z"
    new = [message(number, "//never", enqueue_time=later) for number in (2, 11, 12)]
    save_estate({"messages": new}, tmp_path / "in", files=1)
    second = routing.run(spark, config, run_id="second").row
    left = _tables(config)
    assert _reasons(left["rejected_messages"], "second") == [("m11", 11, ("DUPLICATE_MESSAGE_ID",))]
    assert (second["rows_read"], second["rows_rejected"]) == (4, 1)
    assert sorted(row["message_id"] for row in left["pending_messages"]) == ["m11", "m12", "m2"]


@pytest.mark.long
def test_incremental_runs_continue_after_a_full_run(spark: SparkSession, tmp_path: Path) -> None:
    """A full run gives rows of attempt 1, and incremental runs continue from it. An UPDATE needs another one."""
    estate = {**ESTATE, "messages": [*ESTATE["messages"], *SECOND]}
    save_estate(estate, tmp_path / "in", files=1)
    config = _config(tmp_path)
    routing.run(spark, _config(tmp_path, "resolve.mode=full"), run_id="full")
    from_full = rows_at(config.output["resolved_routes"])
    # A full run does not look for duplicate ids. Other messages have the decisions of their first attempt.
    singles = {key: row for key, row in _decided(from_full, "full").items() if key[0] in ("m4", "m5", "m6", "m9")}
    assert singles == {
        **{key: FIRST[key] for key in FIRST if key[0] in ("m4", "m5", "m6")},
        ("m9", 1): (_at(13, 30), "DELAYED", "NO_ROUTE", None),
    }
    after = routing.run(spark, config, run_id="after", now=_at(14))
    left = _tables(config)
    assert (after.row["rows_read"], after.row["rows_unchanged"]) == (4, 4)
    assert _decided(left["resolved_routes"], "after") == {}
    assert set(_pending(left["pending_messages"])) == {"m3", "m4", "m5", "m9"}
    spark.sql(f"UPDATE delta.`{config.tables['messages'].text}` SET hops_remaining = 1 WHERE message_id = 'm2'")
    with pytest.raises(
        InputError, match=r"version 1 of '.*' is neither an append nor a delete \(UPDATE\)"
    ) as caught:
        routing.run(spark, config, now=_at(15, 30))
    assert caught.value.exit_code == 2
    assert _tables(config) == left


def test_a_second_run_at_the_same_time_is_refused(spark: SparkSession, story: Story) -> None:
    from routing.delta.run_lock import only_run

    with only_run(story.config.output["runs"], "other"), pytest.raises(StorageError) as caught:
        routing.run(spark, story.config)
    assert caught.value.exit_code == 3
    assert "another run is at work on these tables: run 'other'" in str(caught.value)
