"""The comparators outside Spark against rows worked out by hand. `make bench` installs their packages."""

from __future__ import annotations

from datetime import timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.bench_estate import EXPECTED, TABLES

for package in ("deltalake", "duckdb", "polars", "xxhash"):
    pytest.importorskip(package, reason="only make bench installs all of these")

_OPTIONAL = {
    "routes": ("broker_instance", "mirror_address"),
    "dialogs": ("far_broker_instance", "acknowledged_at", "acknowledged_broker_instance"),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The estate as Delta tables."""
    import pyarrow
    from deltalake import write_deltalake

    folder = tmp_path_factory.mktemp("estate")
    where = {}
    for key, rows in TABLES.items():
        names = list(dict.fromkeys([*(name for row in rows for name in row), *_OPTIONAL.get(key, ())]))
        columns = {name: [row.get(name) for row in rows] for name in names}
        arrays = {name: pyarrow.array(values, _type(name)) for name, values in columns.items()}
        where[key] = str(folder / key)
        write_deltalake(where[key], pyarrow.table(arrays))
    return where


def _type(name: str) -> Any:
    import pyarrow

    times = ("enqueue_time", "acknowledged_at")
    if name in times:
        return pyarrow.timestamp("us", "UTC")
    return {
        "is_initiator": pyarrow.bool_(),
        "is_message_forwarding_enabled": pyarrow.bool_(),
        "hops_remaining": pyarrow.int32(),
        "message_sequence_number": pyarrow.int64(),
    }.get(name, pyarrow.string())


def _result(engine: str, tables: dict[str, str], out: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    import_module(f"benchmarks.with_{engine}").resolve(tables, str(out))
    rows: list[dict[str, Any]] = DeltaTable(str(out)).to_pyarrow_table().to_pylist()
    for row in rows:
        assert row.pop("run_id") == engine
        for name in ("enqueue_time", "decided_at"):
            row[name] = row[name].astimezone(timezone.utc)
    return sorted(rows, key=lambda row: str(row["message_id"]))


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_every_rule_of_the_subset(engine: str, stored: dict[str, str], tmp_path: Path) -> None:
    assert _result(engine, stored, tmp_path / "out") == EXPECTED
