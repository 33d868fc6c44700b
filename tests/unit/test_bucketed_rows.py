"""Rows in buckets by the hash of a text: each text in one of them, and no file left behind."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pyarrow
import pytest

from routing.engines.arrow.bucketed_rows import find_buckets, join_small, open_buckets

TEXTS = [
    "c0000001-0000-4000-8000-000000000000",
    "C0000001-0000-4000-8000-00000000000F",
    "{c0000001-0000-4000-8000-000000000000}",
    "",
    "no guid",
    None,
]


def test_equal_texts_have_one_bucket() -> None:
    many = pyarrow.array([f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(5_000)], "string")
    buckets_found = find_buckets([many], 16).to_pylist()
    assert set(buckets_found) == set(range(16))
    assert max(buckets_found.count(bucket) for bucket in range(16)) < 2 * 5_000 / 16
    upper = pyarrow.array([text.upper() for text in many.to_pylist()])
    assert find_buckets([upper], 16).to_pylist() == buckets_found
    several = find_buckets([pyarrow.array(TEXTS, "string")], 7).to_pylist()
    assert all(0 <= bucket < 7 for bucket in several)
    assert several[3] == several[5]


@pytest.mark.parametrize("rows_of_one", [1, 100], ids=["in files", "in memory"])
def test_all_rows_are_read_back(rows_of_one: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = pyarrow.table({"id": pyarrow.array(TEXTS, "string"), "number": range(len(TEXTS))})
    with open_buckets(len(rows), rows_of_one) as buckets:
        assert buckets.count == (6 if rows_of_one == 1 else 1)
        kept = buckets.open("some")
        for _ in range(2):
            kept.add(rows, "id")
        kept.close()
        parts = [kept.read(bucket) for bucket in range(buckets.count)]
        assert (len(list(tmp_path.iterdir())) > 0) == (rows_of_one == 1)
    numbers = [sorted(one["number"].to_pylist()) for one in parts if one is not None]
    assert sorted(number for some in numbers for number in some) == sorted([*range(6)] * 2)
    # Each text is in one bucket.
    assert all(len(some) % 2 == 0 and some[::2] == some[1::2] for some in numbers)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows_of_one", [1, 100], ids=["in files", "in memory"])
def test_parts_come_in_their_order(rows_of_one: int) -> None:
    with open_buckets(2, rows_of_one) as buckets:
        rows, objects = buckets.open("some"), buckets.open_objects("other")
        for number in range(5):
            rows.add_to(0, pyarrow.table({"number": [number, number]}))
        rows.close()
        objects.store(0, {"a": PurePath("b")})
        assert [part["number"].to_pylist() for part in rows.read_parts(0)] == [[n, n] for n in range(5)]
        joined = [part["number"].to_pylist() for part in rows.read_parts(0, 3)]
        assert joined == [[0, 0, 1, 1], [2, 2, 3, 3], [4, 4]]
        assert list(rows.read_parts(1)) == []
        assert (objects.load(0), objects.load(1)) == ({"a": PurePath("b")}, None)


@dataclass
class MeasuredTable:
    """A table of one row and ten bytes that counts how often it is measured."""

    measured: int = 0

    def __len__(self) -> int:
        self.measured += 1
        return 1

    @property
    def nbytes(self) -> int:
        self.measured += 1
        return 10


@pytest.mark.parametrize(
    ("rows", "size", "lengths"),
    [(4, None, [4, 4, 1]), (4, 1000, [4, 4, 1]), (4, 30, [3, 3, 3]), (100, 50, [5, 4])],
)
def test_each_of_many_small_tables_is_measured_once(
    rows: int, size: int | None, lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time grows with the square of their number."""
    monkeypatch.setattr(pyarrow, "concat_tables", list)
    tables = [MeasuredTable() for _ in range(9)]
    joined: list[Any] = list(join_small(tables, rows, size))
    assert [len(part) for part in joined] == lengths
    assert all(table.measured <= 2 for table in tables)


def test_equal_services_of_an_instance_have_one_bucket() -> None:
    instances, services = ["a", "b"] * 50, [f"//s{number // 2}" for number in range(100)]
    rows = pyarrow.table({"instance": [*instances, *instances], "service": [*services, *services]})
    buckets_found = find_buckets(
        [rows["instance"].combine_chunks(), rows["service"].combine_chunks()], 8
    ).to_pylist()
    assert buckets_found[:100] == buckets_found[100:]
    assert set(buckets_found) == set(range(8))
    # One service of two instances is in two.
    assert buckets_found[0] != buckets_found[1]


def test_an_interrupted_command_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupted() -> None:
        with open_buckets(10, 1) as buckets:
            rows = buckets.open("some")
            rows.add(pyarrow.table({"id": pyarrow.array(TEXTS, "string")}), "id")
            assert len(list(tmp_path.iterdir())) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
