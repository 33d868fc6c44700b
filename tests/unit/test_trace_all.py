"""The paths of all messages without Spark, as a stored table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.config import Config, ConfigError
from routing.errors import OutputError
from routing.runs.run_work import WrittenPaths
from routing.schemas import MESSAGE_PATHS
from routing.views.trace.paths_table import write_path_table
from tests.estate_rows import small_estate
from tests.frames import Tables, arrow
from tests.imports import no_spark
from tests.random_estates import AS_OF, assert_same, networks
from tests.reference.paths import path_rows
from tests.stored import config_of, save_estate, store_local

Row = dict[str, Any]


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Some networks: `test_random_estates` traces as many as it takes to end in every way."""
    return networks(4)


def _config(tables: Tables, folder: Path, *overrides: str) -> Config:
    save_estate(tables, folder)
    return config_of(folder, folder, *(overrides or [f"output.message_paths={folder / 'paths'}"]))


def _stored(folder: Path) -> list[Row]:
    from deltalake import DeltaTable

    rows: list[Row] = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return rows


def test_a_table_is_created_and_replaced(tables: Tables, tmp_path: Path) -> None:
    settings = _config(tables, tmp_path)
    expected = path_rows(tables)
    done = write_path_table(settings, no_spark())
    assert isinstance(done, WrittenPaths)
    assert (done.read, done.traced) == (len(tables["messages"]), len(expected))
    assert_same(_stored(tmp_path / "paths"), expected, "message_paths")
    again = write_path_table(settings, no_spark(), as_of=AS_OF)
    assert isinstance(again, WrittenPaths)
    assert again.version == done.version + 1
    assert_same(_stored(tmp_path / "paths"), path_rows(tables, AS_OF), "message_paths")
    log = tmp_path / "paths" / "_delta_log" / f"{again.version:020d}.json"
    [commit_info] = [
        json.loads(line)["commitInfo"] for line in log.read_text().splitlines() if "commitInfo" in line
    ]
    commit_mark = json.loads(commit_info["userMetadata"])
    assert (commit_mark["command"], commit_mark["as_of"]) == ("trace --all", "2026-03-01T13:00:00+00:00")
    assert commit_mark["input_versions"]["messages"] == 1


def test_a_table_of_an_older_release_gains_columns(tables: Tables, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    from routing.schemas import Schema
    from routing.tables.arrow_rows import arrow_schema

    settings = _config(tables, tmp_path)
    older = Schema(tuple(field for field in MESSAGE_PATHS if field.name not in ("final_address", "joint_ending")))
    DeltaTable.create(str(tmp_path / "paths"), arrow_schema(older.optional()))
    assert isinstance(write_path_table(settings, no_spark()), WrittenPaths)
    assert_same(_stored(tmp_path / "paths"), path_rows(tables), "message_paths")


def test_no_messages_make_an_empty_table(tmp_path: Path) -> None:
    done = write_path_table(_config({**small_estate(), "messages": []}, tmp_path), no_spark())
    assert isinstance(done, WrittenPaths)
    assert (done.read, done.rejected, done.outcomes) == (0, 0, {})
    assert _stored(tmp_path / "paths") == []


def test_other_files_at_the_output_are_kept(tmp_path: Path) -> None:
    settings = _config(small_estate(), tmp_path)
    (tmp_path / "paths").mkdir()
    (tmp_path / "paths" / "file").touch()
    with pytest.raises(OutputError, match="is not empty and is not a Delta table"):
        write_path_table(settings, no_spark())
    (tmp_path / "paths" / "file").unlink()
    store_local(arrow(small_estate())["services"], tmp_path / "paths")
    with pytest.raises(OutputError, match="is a table with another schema"):
        write_path_table(settings, no_spark())


def test_the_output_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no output\.message_paths"):
        write_path_table(config_of(save_estate(small_estate(), tmp_path), tmp_path), no_spark())
