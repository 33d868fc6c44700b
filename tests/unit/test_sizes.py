"""When tables are known to hold little, before there is a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.config import TableLocation
from routing.delta.table_details import LITTLE, are_small


def table(folder: Path, size: int) -> TableLocation:
    (folder / "_delta_log").mkdir(parents=True)
    with (folder / "part.parquet").open("wb") as file:
        file.truncate(size)
    return TableLocation(str(folder))


@pytest.mark.parametrize(
    ("read", "written", "expected"), [(LITTLE, 0, True), (LITTLE, 1, False), (1, LITTLE, False), (1, 1, True)]
)
def test_what_counts_is_the_sum_of_all(read: int, written: int, expected: bool, tmp_path: Path) -> None:
    inputs, outputs = [table(tmp_path / "in", read)], [table(tmp_path / "out", written)]
    assert are_small(inputs, outputs) is expected


def test_what_is_not_on_this_disk_may_be_of_any_size(tmp_path: Path) -> None:
    here, missing = table(tmp_path / "in", 1), TableLocation(str(tmp_path / "none"))
    assert are_small([here], [missing])
    # A path of HDFS, say.
    assert not are_small([here, missing], [])
    assert not are_small([here, TableLocation("s3://bucket/in")], [])
    assert not are_small([here], [TableLocation("main.out.runs", is_name=True)])
