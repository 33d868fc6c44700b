"""A small estate as Delta tables, and configurations that read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.frames import Tables, frame_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from routing import Config

Row = dict[str, Any]
SALES, STOCK, STORE = (f"0000000{n}-aaaa-bbbb-cccc-000000000000" for n in (1, 2, 3))
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")


def conversation(number: int) -> str:
    """A conversation id."""
    return f"C0{number:06d}-1111-2222-3333-444444444444"


def message(number: int, service: str, **columns: Any) -> Row:
    """A message of database Sales on hub at noon."""
    return {
        "message_id": f"m{number}",
        "conversation_id": conversation(number),
        "is_initiator": True,
        "message_sequence_number": number,
        "enqueue_time": "2026-01-05T12:00:00Z",
        "instance_name": "hub",
        "database_name": "Sales",
        "to_service_name": service,
        **columns,
    }


def route(name: str, service: str | None, address: str, **columns: Any) -> Row:
    """A route of database Sales on hub."""
    fixed = {"instance_name": "hub", "database_name": "Sales", "name": name}
    return {**fixed, "remote_service_name": service, "address": address, **columns}


def small_estate() -> Tables:
    """One instance, three databases; two messages are to be rejected, one asks for a route."""
    guids = {"Sales": SALES, "Stock": STOCK, "Store": STORE}
    return {
        "instances": [{"instance_name": "hub", "is_message_forwarding_enabled": True}],
        "databases": [
            {"instance_name": "hub", "name": name, "database_id": 5, "service_broker_guid": guid}
            for name, guid in guids.items()
        ],
        "services": [
            {"instance_name": "hub", "database_name": name, "name": "//stock"} for name in ("Stock", "Store")
        ],
        "routes": [
            route("Stock", "//stock", "LOCAL", broker_instance=STOCK),
            route("Store", "//stock", "LOCAL", broker_instance=STORE),
            route("Far", "//far", "TCP://far.example:4022", mirror_address="tcp://mirror.example:4022"),
            route("Ask", "SQL/ServiceBroker/BrokerConfiguration", "LOCAL"),
        ],
        "messages": [
            message(1, "//stock"),
            message(2, "//stock"),
            message(3, "//far"),
            message(4, "//nowhere"),
            message(5, "//stock", database_name=None, hops_remaining=3),
            message(6, "//stock", conversation_id="no guid"),
            message(7, "//stock", instance_name="spoke"),
        ],
        "dialogs": [
            {
                "instance_name": "hub",
                "database_name": "Sales",
                "conversation_id": conversation(number),
                "is_initiator": True,
                "far_broker_instance": STORE,
            }
            for number in (2, 9)
        ],
        "route_requests": [
            {
                "instance_name": "hub",
                "database_name": "Sales",
                "service_name": "//elsewhere",
                "requested_at": "2026-01-05T11:00:00Z",
                "message_id": "m0",
            }
        ],
    }


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
    """The same without Spark, by delta-rs; each table in two files, as what grows has several, or so many.

    Each file is a commit, added to what is there.
    """
    from deltalake import write_deltalake

    from routing.schemas import TABLES
    from tests.frames import arrow_of

    for key, rows in tables.items():
        for number in range(files):
            write_deltalake(str(folder / key), arrow_of(rows[number::files], TABLES[key]), mode="append")
    return folder


def save_job(tables: Tables, folder: Path) -> Path:
    """Return a configuration's file in a folder, over an estate stored there."""
    file = folder / "job.yaml"
    file.write_text(config_text(save_estate(tables, folder / "in"), folder / "out"), encoding="utf-8")
    return file


def config_text(inputs: Path, outputs: Path, **tables: Path | None) -> str:
    """A configuration as YAML; ``tables`` replaces the locations of inputs, None leaves one out."""
    from routing.schemas import TABLES

    found: dict[str, Path | None] = {key: inputs / key for key in TABLES if (inputs / key).exists()}
    return yaml.safe_dump(
        {
            "tables": {key: str(path) for key, path in {**found, **tables}.items() if path is not None},
            "output": {key: str(outputs / key) for key in OUTPUTS},
        }
    )


def config_of(inputs: Path, outputs: Path, *overrides: str, **tables: Path | None) -> Config:
    """The same, loaded."""
    import routing

    file = str(outputs / "config.yaml")
    return routing.load_config(file, overrides, text=config_text(inputs, outputs, **tables))


def written(folder: Path) -> list[str]:
    """Every file under a folder with its size: equal before and after where nothing was written."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(f"{path.relative_to(folder)} {path.stat().st_size}" for path in files)
