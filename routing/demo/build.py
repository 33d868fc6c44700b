"""Build the example estates as Delta tables and a configuration beside them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from routing.config import BESIDE, Config, load
from routing.delta.local_tables import write_new
from routing.demo.demo_day import generate_day
from routing.demo.drafting import Tables
from routing.demo.example_estates import document_estates
from routing.errors import ContractError, OutputError, StorageError, quote
from routing.schemas import INPUTS, OUTPUTS, RESOLVED_ROUTES, Schema
from routing.tables.arrow_rows import table_of
from routing.tables.read_rows import read_rows
from routing.terms import TableRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.delta.opening import TableOpener

CONFIG_FILE = "demo.yaml"
_MADE = frozenset({CONFIG_FILE, "data", "out"})
_MARK = "# Made by sbroute demo; the folder's content is replaced when demo runs again.\n"
_READ = {"instance_name", "message_id", "to_service_name", "matching_step", "route_name", "address"}
_READ |= {"destination_database", "outcome", "reason"}
_SHOWN = Schema(tuple(field for field in RESOLVED_ROUTES if field.name in _READ))


def check(folder: Path) -> None:
    """Refuse a folder that cannot be written, or holds anything that an earlier demo did not make.

    Raises ContractError.
    """
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if nearest != folder and not nearest.is_dir():
        raise OutputError.folder_not_writable(str(folder), f"{quote(nearest)} is not a folder")
    if not os.access(nearest, os.R_OK | os.W_OK | os.X_OK) and nearest.is_dir():
        raise OutputError.folder_not_writable(str(folder), f"{quote(nearest)} does not allow it")
    entries = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    config_file = folder / CONFIG_FILE
    ours = config_file.is_file() and config_file.read_text(encoding="utf-8", errors="replace").startswith(_MARK)
    if (folder.exists() and not folder.is_dir()) or (entries and (not ours or not entries <= _MADE)):
        raise ContractError(
            f"{quote(folder)} holds what sbroute demo did not make", "name another folder with --out"
        )


def settings(folder: Path, overrides: Sequence[str]) -> Config:
    """Return the configuration of the demo's tables, as `claim` writes it beside them.

    Raises ConfigError, and ContractError where ``overrides`` would have it write anywhere else.
    """
    for override in overrides:
        key = override.partition("=")[0]
        if key.partition(".")[0] in ("tables", "output"):
            raise ContractError(f"--set {key}: demo makes its own tables, and writes nothing beside them")
    return load(str(folder / CONFIG_FILE), overrides, _text())


def _text() -> str:
    lines = [_MARK, "tables:\n", *(f"  {key}: data/{key}\n" for key in INPUTS)]
    lines += ["output:\n", *(f"  {key}: out/{key}\n" for key in (*OUTPUTS, *BESIDE))]
    return "".join(lines)


def claim(folder: Path) -> None:
    """Clear a checked folder of what an earlier demo made, and write the configuration. Raises OutputError."""
    try:
        for name in ("data", "out"):
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
        # Last, for it says whose folder this is.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG_FILE).write_text(_text(), encoding="utf-8")
    except OSError as error:
        raise OutputError.folder_not_writable(str(folder), error.strerror or str(error)) from error


def by_deltalake(opener: TableOpener, config: Config) -> bool:
    """Return True if the input tables are made without Spark, which takes some seconds less."""
    return all(opener.open_to_write(config.tables[key], None) is None for key in INPUTS)


def input_rows() -> Tables:
    """Return the rows of every input table: the document estates and the generated day."""
    parts = [*(estate.tables for estate in document_estates()), generate_day()]
    return {key: [row for part in parts for row in part.get(key, ())] for key in INPUTS}


def write_tables(config: Config, spark: SparkSession | None) -> None:
    """Write the input tables of the document estates and of the generated day, by Spark or by delta-rs."""
    rows = input_rows()
    # Rejected messages are part of the day, so that required columns may be null here.
    schemas = {key: schema.optional() for key, schema in INPUTS.items()}
    if spark is None:
        for key in INPUTS:
            write_new(config.tables[key], table_of(rows[key], schemas[key]))
        return
    from routing.delta import spark_tables
    from routing.tables import frames

    def store(key: str) -> None:
        frame = frames.frame_of(spark, rows[key], schemas[key])
        spark_tables.overwrite(frame.coalesce(1), key, config.tables[key], "demo")

    frames.at_once(spark, store, list(INPUTS))


def read_resolved(opener: TableOpener, config: Config, version: int) -> list[TableRow]:
    """Return the resolved messages, in the columns that are shown or counted. Raises StorageError."""
    location = config.output["resolved_routes"]
    opened = opener.find("output.resolved_routes", location, version)
    if opened is None:
        raise StorageError.failed(f"reading output.resolved_routes at {location}", "the table is gone")
    return read_rows(opened.rows, _SHOWN)
