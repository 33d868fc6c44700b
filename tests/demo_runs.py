"""The demo's tables with two runs on record, made without Spark: resolved by the tests' own resolver."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from routing import config
from routing.delta.counted_runs import release
from routing.demo import build
from routing.schemas import OUTPUTS
from tests.frames import arrow_of
from tests.reference.resolver import Resolution, resolve

BEFORE, LAST = "run-before", "run-last"
_WRITTEN = ("resolved_routes", "rejected_messages", "new_route_requests")


def store_demo_runs(folder: Path) -> Path:
    """Store the demo's tables, its outputs and its configuration file.

    The first run decided all messages as of Monday's end of business. The last run used the time of each message.
    """
    build.claim(folder)
    settings = build.settings(folder, ())
    build.write_tables(settings, None)
    rows = build.input_rows()
    evening = datetime(2026, 1, 5, 18, tzinfo=timezone.utc)
    _record(settings, resolve(rows, as_of=evening, run_id=BEFORE), BEFORE, evening, 0)
    _record(settings, resolve(rows, run_id=LAST), LAST, None, 1)
    return folder / build.CONFIG_FILE


def _record(
    settings: config.Config, resolution: Resolution, run_id: str, as_of: datetime | None, version: int
) -> None:
    """Store the outputs of a run as a full run does, and its row."""
    from deltalake import write_deltalake

    for key in _WRITTEN:
        rows = [{**row, "run_id": run_id} for row in getattr(resolution, key)]
        write_deltalake(settings.output[key].text, arrow_of(rows, OUTPUTS[key]), mode="overwrite")
    run = _row(settings, resolution, run_id, as_of, version)
    write_deltalake(settings.output["runs"].text, arrow_of([run], OUTPUTS["runs"]), mode="append")


def _row(
    settings: config.Config, resolution: Resolution, run_id: str, as_of: datetime | None, version: int
) -> dict[str, Any]:
    started = datetime(2026, 1, 6 + version, 6, tzinfo=timezone.utc)
    resolved, rejected = resolution.resolved_routes, resolution.rejected_messages
    return {
        "run_id": run_id,
        "mode": "full",
        "started_at": started,
        "finished_at": started.replace(second=42),
        "as_of": as_of,
        "input_versions": dict.fromkeys(settings.tables, 0),
        "output_versions": dict.fromkeys(_WRITTEN, version),
        "rows_read": len(resolved) + len(rejected),
        "rows_resolved": len(resolved),
        "rows_rejected": len(rejected),
        "outcome_counts": Counter(str(row["outcome"]) for row in resolved),
        "reason_counts": Counter(str(row["reason"]) for row in resolved),
        "dialog_hash": "builtin",
        "settings": settings.as_json(),
        "stage_seconds": {"read": 3.5, "keys": 9.0, "write": 20.0},
        "release": release(),
    }
