"""A value that is longer than its column in SQL Server was never there."""

from __future__ import annotations

import csv
from datetime import datetime, timezone
from pathlib import Path

import pytest

from routing.importing.catalog import CatalogExport, StandIns, read_export

HUB = StandIns("hub", "Shop", datetime(2026, 1, 5, 12, tzinfo=timezone.utc))
GUID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"
ROWS = {
    "routes": {"name": "r", "address": "LOCAL"},
    "databases": {"name": "d", "service_broker_guid": GUID},
    "services": {"name": "s"},
    "service_broker_endpoints": {"endpoint_id": "1"},
    "tcp_endpoints": {"endpoint_id": "1"},
    "conversation_endpoints": {"conversation_handle": GUID, "conversation_id": GUID, "is_initiator": "1"},
    "transmission_queue": {
        "conversation_handle": GUID,
        "to_service_name": "//s",
        "from_service_name": "//f",
        "enqueue_time": "2026-01-05 10:00:00",
        "message_sequence_number": "0",
    },
}
LENGTHS = [
    ("routes", "name", 128),
    ("routes", "remote_service_name", 256),
    ("routes", "broker_instance", 128),
    ("routes", "address", 256),
    ("routes", "mirror_address", 256),
    ("routes", "database_name", 128),
    ("databases", "name", 128),
    ("databases", "instance_name", 256),
    ("services", "name", 128),
    ("service_broker_endpoints", "machine_name", 256),
    ("service_broker_endpoints", "full_name", 512),
    ("service_broker_endpoints", "listener_names", 2000),
    ("tcp_endpoints", "ip_address", 45),
    ("conversation_endpoints", "far_service", 256),
    ("conversation_endpoints", "far_broker_instance", 128),
    ("transmission_queue", "to_service_name", 256),
    ("transmission_queue", "from_service_name", 256),
    ("transmission_queue", "to_broker_instance", 128),
    # The queries cut it at 3,900.
    ("transmission_queue", "transmission_status", 4000),
]


def read(tmp_path: Path, view: str, column: str, value: str) -> CatalogExport:
    row = {**ROWS[view], column: value}
    with (tmp_path / f"{view}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([row.keys(), row.values()])
    return read_export([str(tmp_path)], HUB)


@pytest.mark.parametrize(("view", "column", "longest"), LENGTHS)
def test_a_text_as_long_as_its_column_and_one_longer(tmp_path: Path, view: str, column: str, longest: int) -> None:
    text = ("//" if column == "address" else "").ljust(longest, "x")
    export = read(tmp_path, view, column, text)
    assert ([row[column] for row in export.rows[view]], export.rejected) == ([text], [])
    export = read(tmp_path, view, column, f"{text}x")
    (why,) = export.rejected
    assert f"{column}: it has {longest + 1:,} characters, and SQL Server's column holds {longest:,}" in why
    assert export.rows[view] == []


def test_every_text_has_its_length() -> None:
    from routing.importing.catalog import VIEWS
    from routing.importing.catalog.views import CellKind

    every = ((view.name, column) for view in VIEWS.values() for column in view.columns if not column.is_evidence)
    texts = {(view, column.name) for view, column in every if column.kind is CellKind.TEXT}
    assert texts <= {(view, column) for view, column, _ in LENGTHS}


def test_a_character_outside_the_first_plane_counts_twice(tmp_path: Path) -> None:
    assert read(tmp_path, "services", "name", "\U0001f600" * 64).rejected == []
    (why,) = read(tmp_path, "services", "name", "\U0001f600" * 64 + "x").rejected
    assert "it has 129 characters" in why


def test_a_name_of_twenty_million_characters(tmp_path: Path) -> None:
    (why,) = read(tmp_path, "routes", "remote_service_name", "x" * 20_000_000).rejected
    assert why == (
        f"{tmp_path}/routes.csv, row 2: remote_service_name: it has 20,000,000 characters, and SQL Server's"
        " column holds 256 (r)"
    )
