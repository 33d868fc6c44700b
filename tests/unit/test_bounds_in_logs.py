"""The bounds of a file's values in Delta's log never hide rows of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from routing.config import TableLocation
from routing.delta.opening import LocalOpener

# The log keeps the least of these values and not the greatest, whose bytes are no UTF-8.
_TEXTS = pyarrow.array([b"", b"z", b"\xff"], pyarrow.binary()).view(pyarrow.string())
CONDITIONS: dict[str, tuple[Any, int]] = {
    "equal": (pc.field("name") == "z", 1),
    "not equal": (pc.field("name") != "", 2),
    "of another column": (pc.field("place") == "a b%/\u00e9", 3),
    "of no row": (pc.field("name") == "y", 0),
}


@pytest.mark.parametrize("partition_by", [None, ["place"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("what", CONDITIONS)
def test_files_without_a_maximum_in_the_log_are_not_skipped(
    tmp_path: Path, what: str, partition_by: list[str] | None
) -> None:
    rows = pyarrow.table({"name": _TEXTS, "place": ["a b%/\u00e9"] * 3, "number": [1, 2, 3]})
    write_deltalake(str(tmp_path / "table"), rows, partition_by=partition_by)
    opened: Any = LocalOpener().open_at("tables.x", TableLocation(str(tmp_path / "table")))
    condition, count = CONDITIONS[what]
    assert opened.count_rows(filter=condition) == count
    assert opened.to_table()["number"].to_pylist() == [1, 2, 3]
    assert opened.to_table()["place"].to_pylist() == ["a b%/\u00e9"] * 3
