"""Repeating an import of release 0.2.0 adds nothing and rewrites nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.config import TableLocation
from tests.imports import KEYS, rows_at
from tests.store_release import STORED_BY_0_2_0

pytest.importorskip("deltalake")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORED_BY_0_2_0, tmp_path / "moved"))


def rows_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table, with the newer columns that have values."""
    stored_rows = {key: rows_at(TableLocation(str(folder / "in" / key))) for key in KEYS}
    filled = {
        key: [{name: value for name, value in row.items() if value is not None} for row in rows]
        for key, rows in stored_rows.items()
    }
    return {key: sorted(rows, key=repr) for key, rows in filled.items()}


@pytest.mark.parametrize(
    ("arguments", "unchanged"),
    [
        pytest.param(["catalog", "wednesday"], {"messages": 4, "observed_routing": 4}, id="the-last-export"),
        pytest.param(["events", "events.jsonl"], {"observed_routing": 3}, id="events"),
        pytest.param(
            ["tsql", "tuesday.sql", "--instance", "SHOP", "--scripted-at", "2026-01-06T09:00:00Z"],
            {},
            id="a-script",
        ),
    ],
)
def test_importing_the_same_again_changes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], unchanged: dict[str, int]
) -> None:
    before = rows_of(folder)
    kind, source, *rest = arguments
    line = ["import", kind, str(folder / "exported" / source), *rest, "--config", str(folder / "job.yaml")]
    assert cli.main([*line, "--format", "json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert {key: counts for key, counts in written.items() if key in ("messages", "observed_routing")} == {
        key: {"unchanged": count} for key, count in unchanged.items()
    }
    assert not any(set(counts) - {"unchanged"} for counts in written.values())
    assert rows_of(folder) == before


def test_the_next_import_finds_the_stored_messages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A later export of messages that wait: their observations carry the ids that 0.2.0 gave them."""
    before = rows_of(folder)
    line = ["import", "catalog", str(folder / "exported" / "thursday"), "--config", str(folder / "job.yaml")]
    assert cli.main(line) == 0
    capsys.readouterr()
    after = rows_of(folder)
    new = [row for row in after["observed_routing"] if row not in before["observed_routing"]]
    old_ids = {row["message_id"] for row in before["messages"]}
    assert any(row["message_id"] in old_ids for row in new)
    assert {row["message_id"] for row in new} <= {row["message_id"] for row in after["messages"]}
    added = {row["message_id"] for row in after["messages"]} - old_ids
    assert added
    assert all(row_id.count(":") == 3 for row_id in added)
    assert all(row_id.count(":") == 2 for row_id in old_ids)
