"""Rows as Delta tables, and configurations that read them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.frames import Tables, frame_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from routing import Config

# Where yaml has its writer in C, a tenth of the time.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")


def store(frame: DataFrame, folder: Path, mode: str = "overwrite") -> Path:
    """Write a frame as a Delta table."""
    frame.write.format("delta").mode(mode).save(str(folder))
    return folder


def store_local(table: pyarrow.Table, folder: Path) -> Path:
    """Write an Arrow table as a Delta table, without Spark."""
    from deltalake import write_deltalake

    write_deltalake(folder, table)
    return folder


def store_estate(spark: SparkSession, tables: Tables, folder: Path) -> Path:
    """Write every table of an estate into a folder, under its configuration key."""
    from routing.schemas import TABLES

    for key, rows in tables.items():
        store(frame_of(spark, rows, TABLES[key]).coalesce(1), folder / key)
    return folder


def save_estate(tables: Tables, folder: Path, files: int = 2) -> Path:
    """Save the tables with delta-rs, without Spark, in two files each by default.

    Each file is a commit, appended to existing rows.
    """
    from deltalake import write_deltalake

    from routing.schemas import TABLES
    from tests.frames import arrow_of

    for key, rows in tables.items():
        for number in range(files):
            write_deltalake(str(folder / key), arrow_of(rows[number::files], TABLES[key]), mode="append")
    return folder


def save_job(tables: Tables, folder: Path, files: int = 2) -> Path:
    """Return a configuration's file in a folder, over an estate stored there."""
    save_estate(tables, folder / "in", files)
    return job_file(folder)


def job_file(folder: Path, **tables: Path | None) -> Path:
    """Write the configuration of the tables that are stored in a folder. ``tables`` replaces some."""
    file = folder / "job.yaml"
    file.write_text(config_text(folder / "in", folder / "out", **tables), encoding="utf-8")
    return file


def job_without_tables(folder: Path, **tables: Path) -> Path:
    """Write a configuration into a folder in which no table needs to exist."""
    inputs = ("routes", "databases", "services", "instances", "messages")
    return job_file(folder, **{key: folder / "none" / key for key in inputs}, **tables)


def config_text(inputs: Path, outputs: Path, **tables: Path | None) -> str:
    """Return a configuration as YAML. ``tables`` replaces the locations of inputs, and None removes one."""
    from routing.schemas import TABLES

    locations: dict[str, Path | None] = {key: inputs / key for key in TABLES if (inputs / key).exists()}
    text: str = yaml.dump(
        {
            "tables": {key: str(path) for key, path in {**locations, **tables}.items() if path is not None},
            "output": {key: str(outputs / key) for key in OUTPUTS},
        },
        Dumper=_DUMPER,
    )
    return text


def config_of(inputs: Path, outputs: Path, *overrides: str, **tables: Path | None) -> Config:
    """The same, loaded."""
    return _load(str(outputs / "config.yaml"), overrides, config_text(inputs, outputs, **tables))


@lru_cache(maxsize=16)
def _load(file: str, overrides: tuple[str, ...], text: str) -> Config:
    """Load a configuration once for all tests, which never change it."""
    import routing

    return routing.load_config(file, overrides, text=text)


def written(folder: Path) -> list[str]:
    """Return every file under a folder with its size, to check that a command wrote nothing."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(f"{path.relative_to(folder)} {path.stat().st_size}" for path in files)
