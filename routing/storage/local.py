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
    if not _is_installed():
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


def find_id(location: Location) -> str | None:
    """The id of a table with a log on this disk, which is another one for a table made anew; None: ask Spark."""
    if find_log(location) is None or not _is_installed():
        return None
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return str(DeltaTable(location.text, without_files=True).metadata().id)
    except DeltaError:
        return None


def _is_installed() -> bool:
    return find_spec("deltalake") is not None and find_spec("pyarrow") is not None


def dataset_of(folder: str, table: DeltaTable) -> pyarrow.dataset.Dataset:
    """The rows of an open table, read when they are asked for; times of Spark's files are microseconds."""
    from pyarrow.dataset import ParquetReadOptions
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    options: Any = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    # By the file system that delta-rs brings, written in Python, every third process aborts as it ends
    # (delta-rs issue 2184).
    files = SubTreeFileSystem(folder, LocalFileSystem())
    return table.to_pyarrow_dataset(filesystem=files, parquet_read_options=options)
