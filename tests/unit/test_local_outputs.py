"""The local engine commits the same operations as the log in memory, which is explored in all states."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from routing.config import TableLocation
from routing.delta.job_outputs import CommitMark
from routing.delta.ledger import LocalOutputs
from routing.delta.local_tables import LocalTable
from routing.delta.opening import LocalOpener
from routing.runs.local_runs import TableRows
from routing.schemas import NEW_ROUTE_REQUESTS, RUNS
from routing.tables.arrow_rows import table_of
from routing.tables.read_rows import read_rows
from tests.estate_rows import small_estate
from tests.frames import moment
from tests.log_in_memory import run_mark
from tests.log_operations import KEY, A, B, LogInMemory, assert_like_the_log_in_memory, back_to
from tests.stored import config_of, save_estate

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


def _outputs(folder: Path) -> LocalOutputs:
    inputs = save_estate({**small_estate(), "messages": small_estate()["messages"][:1]}, folder / "in", files=1)
    return LocalOutputs(LocalOpener(), config_of(inputs, folder / "out"))


class OnDisk:
    """The operations on a table of delta-rs. Rows are texts."""

    def __init__(self, tables: LocalOutputs) -> None:
        self.tables = tables
        self.location = tables.config.output[KEY]

    def write(self, rows: frozenset[str], commit_mark: CommitMark, *, adds: bool) -> None:
        fixed = dict.fromkeys(("instance_name", "database_name", "service_name", "body", "run_id"), "x")
        at = moment("2026-01-05T12:00:00Z")
        told = [{**fixed, "requested_at": at, "message_id": row} for row in sorted(rows)]
        made = [table_of(told, NEW_ROUTE_REQUESTS.optional())] if told else []
        self.tables.put(KEY, TableRows(lambda: made), commit_mark, adds=adds)

    def by_hand(self, operation: str) -> None:
        table = DeltaTable(self.location.text)
        if operation == "OPTIMIZE":
            table.optimize.compact()
        else:
            table.alter.set_table_properties({"delta.checkpointInterval": "10"})

    def restore_by_hand(self, version: int) -> None:
        DeltaTable(self.location.text).restore(version)

    def rows(self) -> frozenset[str]:
        return frozenset(_messages(self.location))


def _messages(location: TableLocation) -> list[str]:
    rows: Any = LocalOpener().open_at(f"output.{KEY}", location)
    return list(rows.to_table(columns=["message_id"])["message_id"].to_pylist())


def test_operation_by_operation(tmp_path: Path) -> None:
    assert_like_the_log_in_memory(OnDisk(_outputs(tmp_path)), LogInMemory(creates_first=True), first=1)


def _run_row(run_id: str, number: int) -> dict[str, Any]:
    texts = {field.name: "{}" for field in RUNS if str(field.kind) == "string"}
    maps: dict[str, Any] = {field.name: {} for field in RUNS if str(field.kind).startswith("map")}
    counts = {field.name: 0 for field in RUNS if str(field.kind) == "bigint"}
    at = NOON + timedelta(seconds=number)
    return {**texts, **maps, **counts, "run_id": run_id, "started_at": at, "finished_at": at}


@pytest.mark.parametrize(
    ("turn", "since", "is_recorded"),
    [(6, None, False), (7, None, False), (8, None, True), (7, 0, True), (1, 5, True)],
    ids=["an earlier turn", "the same turn", "the next turn", "a turn since a version", "since another version"],
)
def test_a_run_order_is_recorded_once(tmp_path: Path, turn: int, since: int | None, is_recorded: bool) -> None:
    tables = _outputs(tmp_path)
    assert tables.record(_run_row("a", 1), A, 7)
    assert tables.record(_run_row("b", 2), B, turn, since) is is_recorded
    rows = LocalOpener().open_at("output.runs", tables.config.output["runs"])
    assert [row["run_id"] for row in read_rows(rows, RUNS, last_by=("run_id",))] == ["b", "a"][not is_recorded :]


def test_a_concurrent_run_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run commits between the check of turns and the commit. The commit fails and turns are checked again."""
    import deltalake

    tables, other = _outputs(tmp_path), _outputs(tmp_path)
    assert tables.record(_run_row("first", 0), A, 1)
    came: list[bool] = []
    properties = deltalake.CommitProperties

    def between(**options: Any) -> Any:
        if not came:
            came.append(True)
            assert other.record(_run_row("other", 1), B, 2)
        return properties(**options)

    # They are made after the look at turns, and right before the commit.
    monkeypatch.setattr(deltalake, "CommitProperties", between)
    assert not tables.record(_run_row("late", 2), run_mark("late"), 2)


def test_a_completed_restore_is_not_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on = OnDisk(_outputs(tmp_path))
    on.write(frozenset({"m1"}), A, adds=False)
    on.write(frozenset({"m2"}), B, adds=False)
    was_restored = LocalTable.restore

    def fail_afterwards(self: LocalTable, *arguments: Any) -> None:
        was_restored(self, *arguments)
        raise OSError("Input/output error")

    monkeypatch.setattr(LocalTable, "restore", fail_afterwards)
    on.tables.restore(KEY, 1, back_to(1))
    assert on.rows() == {"m1"}
    assert on.tables.notes == [
        f"output.{KEY}: version 3 is written, but deltalake failed after the commit: Input/output error"
    ]
