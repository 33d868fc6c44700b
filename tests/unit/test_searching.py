"""Keys that Arrow looks for in a stored table: which are held, and which come to the search at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.tables.read_rows import find_held, read_keys

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

NAMES = {"instance_name": "Instance_Name", "message_id": "message_id"}
STORED = [
    ("hub", "m1", "SENT"),
    ("hub", "m1", "SENT"),
    ("far", "m2", "SENT"),
    (None, "m3", "SENT"),
    ("hub", None, "SENT"),
    ("hub", "é", "SENT"),
    ("", "m5", "SENT"),
]


def _table(rows: list[tuple[str | None, ...]], *names: str) -> pyarrow.Table:
    import pyarrow

    columns = zip(*rows, strict=True)
    return pyarrow.table(
        {name: pyarrow.array(column, pyarrow.string()) for name, column in zip(names, columns, strict=True)}
    )


@pytest.fixture
def stored(tmp_path: Path) -> pyarrow.dataset.Dataset:
    """The rows in two files, in columns of which one is spelled otherwise."""
    import pyarrow.dataset
    import pyarrow.parquet

    rows = _table(list(STORED), "Instance_Name", "message_id", "outcome")
    for number, part in enumerate((rows.slice(0, 3), rows.slice(3))):
        pyarrow.parquet.write_table(part, tmp_path / f"{number}.parquet")
    return pyarrow.dataset.dataset(tmp_path)


def _pairs(keys: pyarrow.Table) -> list[tuple[str, str]]:
    return sorted(zip(keys["instance_name"].to_pylist(), keys["message_id"].to_pylist(), strict=True))


def test_a_key_is_held_where_a_row_has_both_of_its_texts(stored: pyarrow.dataset.Dataset) -> None:
    wanted = [
        ("hub", "m1"),
        # Each of the two stands there, but not together; the others differ by case, or by how they are composed.
        ("hub", "m2"),
        ("far", "m1"),
        ("Far", "m2"),
        ("hub", "M1"),
        ("hub", "e\u0301"),
        ("hub", "é"),
        ("", "m5"),
        ("hub", "m3"),
    ]
    held = find_held(stored, _table(list(wanted), "instance_name", "message_id"))
    assert _pairs(held) == [("", "m5"), ("hub", "m1"), ("hub", "é")]


def test_nothing_is_held_where_nothing_is_asked_or_stored(stored: pyarrow.dataset.Dataset) -> None:
    keys = _table([("hub", "m1")], "instance_name", "message_id")
    assert find_held(stored, keys.slice(0, 0)).num_rows == 0
    assert find_held(stored.schema.empty_table(), keys).num_rows == 0


def test_keys_are_read_as_often_as_they_stand_there_and_never_in_part(stored: pyarrow.dataset.Dataset) -> None:
    keys = read_keys(stored, NAMES, 1_000_000)
    assert keys is not None
    assert _pairs(keys) == [("", "m5"), ("far", "m2"), ("hub", "m1"), ("hub", "m1"), ("hub", "é")]
    assert read_keys(stored, NAMES, 20) is None
