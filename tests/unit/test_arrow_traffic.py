"""The Arrow engine's operations on traffic, for tables and for files in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routing.engines.arrow.arrow_traffic import ArrowTraffic
from routing.engines.traffic_tables import TrafficTable, open_traffic
from routing.schemas import RESOLVED_ROUTES, Schema
from tests.frames import arrow_of
from tests.traffic_operations import (
    OPERATIONS,
    ROWS,
    Operation,
    Row,
    check,
    check_asking_order,
    check_doubtful_rows,
    check_empty,
)

pytest.importorskip("pyarrow")
PARTS = 3


def open_in_memory(rows: list[Row], schema: Schema, key: str | None) -> TrafficTable:
    return open_traffic(arrow_of(rows, schema), key)


def open_files(folder: Path, rows: list[Row], schema: Schema, key: str | None) -> TrafficTable:
    """Open a dataset of several files."""
    from pyarrow import dataset, parquet

    folder.mkdir()
    for part in range(PARTS):
        parquet.write_table(arrow_of(rows[part::PARTS], schema), folder / f"{part}.parquet", row_group_size=2)
    return open_traffic(dataset.dataset(folder), key)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_traffic_operations_give_the_expected_rows(operation: Operation, tmp_path: Path) -> None:
    check(operation, open_in_memory(ROWS, RESOLVED_ROUTES, None))
    check(operation, open_files(tmp_path / "rows", ROWS, RESOLVED_ROUTES, None))
    # As where there are millions: what waits is reduced again and again.
    check(operation, ArrowTraffic.of(arrow_of(ROWS, RESOLVED_ROUTES), rows_waiting=1))
    check_empty(operation, open_in_memory([], RESOLVED_ROUTES, None))
    check_empty(operation, open_files(tmp_path / "none", [], RESOLVED_ROUTES, None))


@pytest.mark.parametrize("place", ["memory", "files"])
@pytest.mark.parametrize("check_all", [check_asking_order, check_doubtful_rows])
def test_inputs_are_read_in_the_required_order(place: str, check_all: Any, tmp_path: Path) -> None:
    folders = iter(range(9))

    def open_table(rows: list[Row], schema: Schema, key: str | None) -> TrafficTable:
        if place == "memory":
            return open_in_memory(rows, schema, key)
        return open_files(tmp_path / str(next(folders)), rows, schema, key)

    check_all(open_table)
