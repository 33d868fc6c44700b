"""Resolve the comparators' subset of the rules with DuckDB and deltalake, streaming.

docs/explanation/performance.md describes the subset. The code is as users would write it. DuckDB itself reads
the Parquet files and first computes the routes of a service. The hash is computed only for messages that need it,
and the result streams into deltalake's writer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow
import xxhash
from deltalake import DeltaTable, write_deltalake

from benchmarks.delta_options import CONFIGURATION, properties

_SEED = 42
_SQL = Path(__file__).with_name("duckdb.sql")
_ROWS_A_BATCH = 200_000
_NO_DIALOGS = (
    "SELECT '' AS instance_name, '' AS database_name, '' AS conversation_id, true AS is_initiator,"
    " '' AS far_broker_instance, TIMESTAMPTZ 'epoch' AS acknowledged_at, '' AS acknowledged_broker_instance"
    " WHERE false"
)


def resolve(tables: Mapping[str, str], out: str) -> None:
    """Read Delta tables, write ``resolved_routes``."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {int(os.environ.get('SBROUTE_BENCH_THREADS', '2'))}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.create_function(
        "dialog_hash", _hashes, [duckdb.sqltype("VARCHAR")], duckdb.sqltype("BIGINT"), type="arrow"
    )
    for key in ("instances", "databases", "services", "routes", "messages", "dialogs"):
        source = _source(tables[key]) if key in tables else _NO_DIALOGS
        connection.execute(f"CREATE VIEW {key} AS {source}")
    result = connection.sql(_SQL.read_text(encoding="utf-8"))
    reader = result.to_arrow_reader(_ROWS_A_BATCH)
    write_deltalake(out, reader, mode="overwrite", writer_properties=properties(), configuration=CONFIGURATION)
    connection.close()


def _source(table: str) -> str:
    files = ", ".join(f"'{uri}'" for uri in DeltaTable(table).file_uris())
    return f"SELECT * FROM read_parquet([{files}])"


def _hashes(ids: pyarrow.ChunkedArray) -> pyarrow.Array:
    hashes = (xxhash.xxh64_intdigest(text.encode(), _SEED) for text in ids.to_pylist())
    return pyarrow.array([h - (1 << 64) if h >> 63 else h for h in hashes], pyarrow.int64())
