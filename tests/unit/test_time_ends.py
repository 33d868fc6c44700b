"""Messages of the first and the last times that there are, and of times that Python has no word for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.cli import main
from routing.schemas import TABLES
from tests import exported
from tests.estate_rows import (
    STORE,
    Tables,
    endpoint,
    message,
    observation,
    request,
    route,
    small_estate,
)
from tests.stored import save_job

FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
_YEAR = 366 * 86_400 * 1_000_000


def job_of(folder: Path, *, beyond: bool) -> Path:
    """Store an estate with times at both ends of the range, or fifty years outside."""
    ends = (FIRST, LAST)
    tables: Tables = small_estate()
    services = ("//stock", "//far", "//nowhere", "//new")
    tables["messages"] = [message(n, services[n // 2], enqueue_time=ends[n % 2]) for n in range(8)]
    tables["routes"].append(route("New", "//new", "tcp://new:4022", valid_from=FIRST, lifetime=LAST))
    tables["dialogs"] = [endpoint(n, far_broker_instance=STORE, lifetime=ends[n % 2]) for n in range(4)]
    tables["route_requests"] = [request("//nowhere", requested_at=FIRST)]
    tables["observed_routing"] = [
        observation(n, ends[n % 2], error_number=9791, status_text="x", is_initiator=True) for n in range(6)
    ]
    job = save_job(tables, folder)
    for key in tables if beyond else ():
        _move_apart(folder / "in" / key, [field.name for field in TABLES[key] if str(field.kind) == "timestamp"])
    return job


def _move_apart(table: Path, names: list[str]) -> None:
    import pyarrow.compute as pc
    from deltalake import DeltaTable, write_deltalake

    rows = DeltaTable(str(table)).to_pyarrow_table()
    for place, name in enumerate(rows.column_names):
        if name in names:
            micros = rows[name].cast("int64")
            later = pc.if_else(pc.greater(micros, 0), pc.add(micros, 50 * _YEAR), pc.subtract(micros, 50 * _YEAR))
            rows = rows.set_column(place, name, later.cast(rows.schema.field(name).type))
    write_deltalake(str(table), rows, mode="overwrite")


@pytest.mark.parametrize("beyond", [False, True], ids=["the ends", "beyond them"])
def test_commands_accept_extreme_times(beyond: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, page = job_of(tmp_path, beyond=beyond), tmp_path / "report.html"

    def run(*words: Any) -> str:
        status = main([*map(str, words), "--config", str(job)])
        printed = capsys.readouterr()
        assert status == 0, (words, printed.err)
        return printed.out

    run("resolve", "--engine", "local")
    for now in (("--now", FIRST), ("--now", LAST)):
        run("report", "--out", page, *now)
        assert "0001-01-01 to 9999-12-31, UTC" in page.read_text(encoding="utf-8")
        listed = json.loads(run("messages", "--format", "json", *now))
        assert {row["enqueue_time"] for row in listed["messages"]} == {FIRST, LAST}
    for number, at in enumerate([(), (), ("--at", LAST), ("--at", FIRST)]):
        run("explain", "--message-id", f"m{number}", *at)
        run("trace", "--message-id", f"m{number}", *at)
    run("trace", "--all", "--set", f"output.message_paths={tmp_path / 'paths'}")
    run("reconcile")
    run("lint")
    run("diff", "--at", FIRST, "--against-time", LAST)


@pytest.mark.parametrize("exported_at", [FIRST, exported.AT, LAST])
def test_check_accepts_extreme_times(exported_at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends = [time.rstrip("Z")[:23] for time in (FIRST, LAST)]
    exported.export(
        tmp_path,
        at=exported_at,
        databases=[exported.database("Sales", "00000001")],
        routes={"Sales": [exported.route(f"r{n}", f"//{n}", "tcp://x:1", lifetime=ends[n]) for n in (0, 1)]},
        services={"Sales": [{"name": "//from"}]},
        conversation_endpoints={"Sales": [exported.endpoint(n, lifetime=ends[n % 2]) for n in range(3)]},
        transmission_queue={"Sales": [exported.waiting(n, f"//{n}", enqueue_time=ends[n % 2]) for n in range(3)]},
    )
    script = tmp_path / "fix.sql"
    script.write_text(
        "CREATE ROUTE n WITH SERVICE_NAME='//2', LIFETIME=4000000000, ADDRESS='LOCAL'", encoding="utf-8"
    )
    for words in (["--all"], ["--format", "json"], ["--html", str(tmp_path / "a.html")], ["--then", str(script)]):
        for at in ([], ["--at", FIRST], ["--at", LAST]):
            status = main(["check", str(tmp_path / "SHOP"), *words, *at])
            assert status == 0, (words, at, capsys.readouterr().err)
