"""The choice of tables for deltalake. Spark reads tables that deltalake cannot read correctly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routing.config import TableLocation
from routing.delta.local_tables import UnreadableTable, open_local
from routing.delta.opening import TableOpener
from routing.errors import ContractError
from routing.schemas import SERVICES
from routing.tables.read_rows import count_by_files
from routing.tables.table_columns import by_engine
from tests.frames import arrow_of
from tests.stored import store_local

pytest.importorskip("deltalake")
ROW = {"instance_name": "HUB", "database_name": "db", "name": "s"}


def stored(folder: Path) -> Path:
    return store_local(arrow_of([ROW], SERVICES), folder)


def change_log(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Have something of each action in a table's only commit be otherwise."""
    log = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        change(action)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")


@pytest.mark.parametrize("root", ["file:{}", "file://{}", "{}"])
def test_a_table_with_files_elsewhere_needs_spark(root: str, tmp_path: Path) -> None:
    """A shallow clone, say: its log names the files of another table."""
    other, clone = stored(tmp_path / "other"), stored(tmp_path / "clone")

    def name_the_others(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["path"] = root.format(next(other.glob("*.parquet")))

    change_log(clone, name_the_others)
    assert open_local(TableLocation(str(clone))) == UnreadableTable("files of it lie elsewhere")


@pytest.mark.parametrize(
    ("kind", "is_read"), [("char(5)", False), ("array<char(5)>", False), ("varchar(5)", True)]
)
def test_text_of_a_fixed_length_needs_spark(kind: str, is_read: bool, tmp_path: Path) -> None:
    """Spark fills it up with blanks as it is read, so that a name is another one."""

    def say(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = {"__CHAR_VARCHAR_TYPE_STRING": kind}
            action["metaData"]["schemaString"] = json.dumps(schema)

    folder = stored(tmp_path)
    change_log(folder, say)
    opened = open_local(TableLocation(str(folder)))
    assert is_read == (
        opened != UnreadableTable("a column has texts of a fixed length, which are filled up with blanks")
    )


def test_a_session_starts_once() -> None:
    steps = list[str]()

    @contextmanager
    def waiting() -> Iterator[None]:
        steps.append("waiting")
        yield
        steps.append("started")

    def start() -> Any:
        steps.append("starting")
        return SimpleNamespace()

    opener = TableOpener(start, waiting=waiting)
    assert steps == []
    assert opener.spark is opener.spark
    assert steps == ["waiting", "starting", "started"]


def test_given_tables_must_be_of_one_engine() -> None:
    frame, table = SimpleNamespace(sparkSession=None), arrow_of([ROW], SERVICES)

    def pick(**tables: Any) -> str:
        return by_engine(tables, spark=lambda: "Spark", arrow=lambda: "Arrow")

    assert (pick(messages=frame, dialogs=frame), pick(messages=table), pick()) == ("Spark", "Arrow", "Arrow")
    with pytest.raises(ContractError, match=r"^messages, dialogs are not of one kind \(give DataFrames for all"):
        pick(messages=frame, dialogs=table)
    # Spark would have to read them all.
    assert count_by_files(frame) is None
