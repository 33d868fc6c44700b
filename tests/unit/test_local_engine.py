"""Full runs without Spark: worked cases and random estates, from tables to tables, as the tests' own resolver."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import routing
from routing.rules.text import UndecodedText
from routing.schemas import OUTPUTS
from routing.storage.stored import read_rows
from tests.frames import Tables, load_cases, moment
from tests.reference.estates import joined, random_estate
from tests.reference.resolver import resolve as reference
from tests.stored import config_of, save_estate
from tests.unit.test_not_utf8 import spoil_messages

AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)
RESULTS = ("resolved_routes", "new_route_requests", "rejected_messages")
SEED, ESTATES = 20260105, 100


def run_on(folder: Path, tables: Tables, *overrides: str, files: int = 2) -> routing.Run:
    """Store tables, and resolve them."""
    inputs = save_estate(tables, folder / "in", files)
    return routing.resolve_local(config_of(inputs, folder / "out", *overrides), run_id="local")


def written(folder: Path, key: str) -> list[dict[str, Any]]:
    """The rows of an output."""
    from routing.config import Location
    from routing.storage.local_opening import LocalOpener

    rows = LocalOpener().open_at(f"output.{key}", Location(str(folder / "out" / key)))
    return read_rows(rows, OUTPUTS[key])


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(one)) for name, one in value.items()))
    return str(value) if isinstance(value, UndecodedText) else value


def assert_same(got: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Both hold the same rows, however often each stands there."""
    mine, theirs = (Counter(map(_hashable, rows)) for rows in (got, expected))
    assert sorted((mine - theirs).elements(), key=repr)[:3] == sorted((theirs - mine).elements(), key=repr)[:3]


def _assert_agrees(folder: Path, tables: Tables, as_of: datetime | None, *, files: int = 2) -> None:
    overrides = [] if as_of is None else [f"resolve.as_of={as_of.isoformat()}"]
    done = run_on(folder, tables, *overrides, files=files)
    expected = reference(tables, as_of=as_of, run_id="local")
    for key in RESULTS:
        assert_same(written(folder, key), getattr(expected, key))
    assert done.row["rows_read"] == len(tables["messages"])
    assert done.row["rows_rejected"] == len(expected.rejected_messages)
    assert done.row["engine"] == "local"


def _estates(count: int, seed: int = SEED) -> Tables:
    rng = random.Random(seed)
    return joined([random_estate(rng, 60, f"e{number}/") for number in range(count)])


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_random_estates_agree(tmp_path: Path, as_of: datetime | None) -> None:
    _assert_agrees(tmp_path, _estates(ESTATES), as_of)


def test_batches_of_few_rows_are_decided_like_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from routing.engines.arrow import resolving

    monkeypatch.setattr(resolving, "ROWS_AT_ONCE", 7)
    _assert_agrees(tmp_path, _estates(12, 7), None, files=5)


def test_texts_that_are_no_utf8_are_set_aside(tmp_path: Path) -> None:
    rng = random.Random(8)
    tables = spoil_messages(rng, joined([random_estate(rng, 60, f"e{number}/") for number in range(20)]))
    _assert_agrees(tmp_path, tables, None)


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
        assert_same([{n: row[n] for n in names} for row in written(tmp_path, "new_route_requests")], wanted)
    rejected = [row["message_id"] for row in written(tmp_path, "rejected_messages")]
    assert sorted(rejected) == sorted(expected.get("rejected_messages", []))
