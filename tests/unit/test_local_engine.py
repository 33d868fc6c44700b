"""Full runs without Spark on worked cases and random estates, from tables to tables."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import routing
from routing.delta.opening import LocalOpener
from routing.runs.local_runs import local_engine
from routing.runs.running import run_by
from routing.schemas import OUTPUTS
from routing.tables.read_rows import read_rows
from tests.frames import Tables, load_cases, moment
from tests.random_estates import RUN_ID, Decided, assert_few_agree, assert_same
from tests.stored import config_of, save_estate

RESULTS = ("resolved_routes", "new_route_requests", "rejected_messages")


def run_on(
    folder: Path, tables: Tables, *overrides: str, files: int = 2, rows_at_once: int | None = None
) -> routing.Run:
    """Store tables and resolve them with ``rows_at_once`` as the batch size."""
    config = config_of(save_estate(tables, folder / "in", files), folder / "out", *overrides)
    if rows_at_once is None:
        return routing.resolve_local(config, run_id=RUN_ID)
    return run_by(local_engine(LocalOpener(), rows_at_once=rows_at_once), config, run_id=RUN_ID)


def written(folder: Path, key: str) -> list[dict[str, Any]]:
    """The rows of an output."""
    from routing.config import TableLocation

    rows = LocalOpener().open_at(f"output.{key}", TableLocation(str(folder / "out" / key)))
    return read_rows(rows, OUTPUTS[key])


def decide_locally(
    tables: Tables, as_of: datetime | None, files: int = 2, rows_at_once: int | None = None
) -> Decided:
    """The rows of a run by the local engine, from tables to tables."""
    overrides = [] if as_of is None else [f"resolve.as_of={as_of.isoformat()}"]
    with TemporaryDirectory() as made:
        folder = Path(made)
        done = run_on(folder, tables, *overrides, files=files, rows_at_once=rows_at_once)
        decided = Decided(*(written(folder, key) for key in RESULTS))
    counts = (done.row["rows_read"], done.row["rows_rejected"], done.row["engine"])
    assert counts == (len(tables["messages"]), len(decided.rejected_messages), "local")
    return decided


def test_small_batches_give_the_same_decisions() -> None:
    assert_few_agree(partial(decide_locally, files=5, rows_at_once=151), None)


CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=[f"{case['file']}: {case['case']}" for case in CASES])
def test_worked_case(tmp_path: Path, case: dict[str, Any]) -> None:
    tables, expected, as_of = case["tables"], case["expect"], case.get("as_of")
    overrides = [] if as_of is None else [f"resolve.as_of={as_of}"]
    tables = {**{key: [] for key in ("routes", "databases", "services", "instances")}, **tables}
    run_on(tmp_path, tables, *overrides, files=1)
    resolved = {row["message_id"]: row for row in written(tmp_path, "resolved_routes")}
    for row in expected["resolved_routes"]:
        mine = resolved[row["message_id"]]
        assert {name: mine[name] for name in row} == {name: moment(value) for name, value in row.items()}
    if "new_route_requests" in expected:
        wanted = [{n: moment(v) for n, v in row.items()} for row in expected["new_route_requests"]]
        names = set(wanted[0]) if wanted else {"message_id"}
        opened = [{n: row[n] for n in names} for row in written(tmp_path, "new_route_requests")]
        assert_same(opened, wanted, "new_route_requests")
    rejected = [row["message_id"] for row in written(tmp_path, "rejected_messages")]
    assert sorted(rejected) == sorted(expected.get("rejected_messages", []))
