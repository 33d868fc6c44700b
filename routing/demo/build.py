"""Build the example estates as Delta tables and a configuration beside them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routing.config import Config, load
from routing.demo.day import generate_day
from routing.demo.estates import document_estates
from routing.errors import ContractError, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFIG_FILE = "demo.yaml"
_MADE = frozenset({CONFIG_FILE, "data", "out"})
_MARK = "# Made by sbroute demo; the folder's content is replaced when demo runs again.\n"
LINE = ("message", "service", "step", "route", "address or database", "outcome", "reason")
Row = Mapping[str, object]


def check(folder: Path) -> None:
    """Refuse a folder that holds anything that an earlier demo did not make. Raises ContractError."""
    found = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    mark = folder / CONFIG_FILE
    ours = mark.is_file() and mark.read_text(encoding="utf-8", errors="replace").startswith(_MARK)
    if (folder.exists() and not folder.is_dir()) or (found and (not ours or not found <= _MADE)):
        raise ContractError(
            f"{quoted(folder)} holds what sbroute demo did not make", "name another folder with --out"
        )


def settings(folder: Path, overrides: Sequence[str]) -> Config:
    """The configuration of the demo's tables, as `claim` writes it beside them.

    Raises ConfigError, and ContractError where ``overrides`` would have it write anywhere else.
    """
    for override in overrides:
        key = override.partition("=")[0]
        if key.partition(".")[0] in ("tables", "output"):
            raise ContractError(f"--set {key}: demo makes its own tables, and writes nothing beside them")
    return load(str(folder / CONFIG_FILE), overrides, _text())


def _text() -> str:
    from routing.schemas import INPUTS, OUTPUTS

    lines = [_MARK, "tables:\n", *(f"  {key}: data/{key}\n" for key in INPUTS)]
    lines += ["output:\n", *(f"  {key}: out/{key}\n" for key in OUTPUTS)]
    return "".join(lines)


def claim(folder: Path) -> None:
    """Clear a checked folder of what an earlier demo made, and write the configuration."""
    for name in ("data", "out"):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
    # Last, for it says whose folder this is.
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_text(_text(), encoding="utf-8")


def write_tables(spark: SparkSession, config: Config) -> dict[str, int]:
    """The input tables of the document estates and of the generated day; rows written per table."""
    from routing.schemas import INPUTS
    from routing.storage import frames, tables

    parts = [*(estate.tables for estate in document_estates()), generate_day()]
    rows = {key: [row for part in parts for row in part.get(key, ())] for key in INPUTS}

    def store(key: str) -> None:
        # Rejected messages are part of the day, so that required columns may be null here.
        frame = frames.frame_of(spark, rows[key], INPUTS[key].optional())
        tables.overwrite(frame.coalesce(1), key, config.tables[key], "demo")

    frames.at_once(spark, store, list(INPUTS))
    return {key: len(found) for key, found in rows.items()}


def document_lines(resolved: DataFrame) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """For each document estate its title and a line a message: service, step, route, place, outcome, reason."""
    from pyspark.sql import functions as F

    estates = document_estates()
    instances = _instances(estate.tables for estate in estates)
    rows = {
        (row["instance_name"], row["message_id"]): row
        for row in resolved.where(F.col("instance_name").isin(instances)).collect()
    }
    shown = []
    for estate in estates:
        found = (rows[m["instance_name"], m["message_id"]] for m in estate.tables["messages"])
        shown.append((estate.title, [_line(row) for row in found]))
    return shown


def _line(row: Any) -> tuple[Any, ...]:
    place = row["destination_database"] or row["address"]
    return (
        row["message_id"],
        row["to_service_name"],
        row["matching_step"],
        row["route_name"],
        place,
        row["outcome"],
        row["reason"],
    )


def day_counts(resolved: DataFrame) -> list[tuple[str, str, int]]:
    """Messages of the generated day by outcome and reason, most first."""
    from pyspark.sql import functions as F

    documents = _instances(estate.tables for estate in document_estates())
    counted = (
        resolved.where(~F.col("instance_name").isin(documents))
        .groupBy("outcome", "reason")
        .agg(F.count(F.lit(1)).alias("messages"))
        .orderBy(F.desc("messages"), "outcome", "reason")
    )
    return [tuple(row) for row in counted.collect()]


def _instances(many: Iterable[Mapping[str, Iterable[Row]]]) -> list[str]:
    return [str(row["instance_name"]) for tables in many for row in tables["instances"]]


def what_next(config: Config, run: Mapping[str, Any]) -> str:
    """What to try once the demo is on the screen."""
    return (
        f"{run['rows_read']:,} messages read = {run['rows_resolved']:,} resolved + {run['rows_rejected']:,}"
        f" rejected; the tables are Delta, described in {config.file}.\n"
        "Next:\n"
        f"  sbroute resolve --config {config.file}\n"
        f"  sbroute resolve --config {config.file} --as-of 2026-01-05T18:00:00Z\n"
        f"  sbroute resolve --config {config.file} --format json\n"
        "then write a configuration for your own tables (see conf/README.md)."
    )
