"""Local Delta tables without a JVM, by delta-rs (`deltalake`): what it reads rightly, and nothing else.

Tables of reader version 1 are read, by way of Arrow's datasets. Whatever a later version brings (deletion vectors,
column mapping, further types) is left out there without a word, or is an error; and delta-rs's own readers give
wrong times for the years 1 and 9999 in files that Spark wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routing.config import Location
from routing.storage.commits import is_local

if TYPE_CHECKING:
    import pyarrow.dataset
    from deltalake import DeltaTable

_READER = 1


@dataclass(frozen=True)
class Unfit:
    """Why a table is not read by delta-rs."""

    why: str


def find_log(location: Location) -> Path | None:
    """The log of a Delta table that stands at a local path on this machine's disk; None where none does."""
    log = Path(location.text, "_delta_log")
    return log if is_local(location) and log.is_dir() else None


def open_local(location: Location, version: int | None = None) -> DeltaTable | Unfit:
    """A table with a log on this disk, at a version or the newest, or why delta-rs does not read it rightly."""
    if find_spec("deltalake") is None or find_spec("pyarrow") is None:
        return Unfit("deltalake is not installed")
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(location.text, version=version)
    except DeltaError:
        # Spark says what is wrong with it, if anything is.
        return Unfit("deltalake cannot open it")
    reader = table.protocol().min_reader_version
    return table if reader == _READER else Unfit(f"its reader version is {reader}")


def dataset_of(table: DeltaTable) -> pyarrow.dataset.Dataset:
    """The rows of an open table, read when they are asked for; times of Spark's files are microseconds."""
    from pyarrow.dataset import ParquetReadOptions

    options: Any = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    return table.to_pyarrow_dataset(parquet_read_options=options)
