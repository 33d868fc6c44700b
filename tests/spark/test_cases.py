"""Every worked case, one test each. Cases with the same decision time are resolved in one Spark run."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.frames import frames, load_cases, merged, moment, prefixed, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core
CASES = load_cases()


def _prefix(number: int) -> str:
    return f"case{number}/"


@cache
def _run(spark: SparkSession, as_of: str | None) -> dict[str, list[dict[str, Any]]]:
    import routing

    numbers = [n for n, case in enumerate(CASES) if case.get("as_of") == as_of]
    tables = merged([prefixed(CASES[n]["tables"], _prefix(n)) for n in numbers])
    done = routing.resolve(spark, frames(spark, tables), as_of=moment(as_of))
    return {
        "resolved_routes": rows_of(done.resolved_routes),
        "new_route_requests": rows_of(done.new_route_requests),
        "rejected_messages": rows_of(done.rejected_messages),
    }


def _of_case(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    prefix = _prefix(number)
    return [
        {**row, "instance_name": row["instance_name"].removeprefix(prefix)}
        for row in rows
        if (row["instance_name"] or "").startswith(prefix)
    ]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{c['file']}: {c['case']}" for c in CASES])
def test_case(spark: SparkSession, number: int) -> None:
    case = CASES[number]
    done = {key: _of_case(rows, number) for key, rows in _run(spark, case.get("as_of")).items()}
    resolved = {row["message_id"]: row for row in done["resolved_routes"]}
    expected = case["expect"]
    for row in expected["resolved_routes"]:
        got = resolved[row["message_id"]]
        assert {name: got[name] for name in row} == {name: moment(value) for name, value in row.items()}
    rejected = sorted(row["message_id"] for row in done["rejected_messages"])
    assert rejected == sorted(expected.get("rejected_messages", []))
    every = sorted(row["message_id"] for row in case["tables"]["messages"])
    assert sorted([*resolved, *rejected]) == every
    if "new_route_requests" in expected:
        wanted = [{k: moment(v) for k, v in row.items()} for row in expected["new_route_requests"]]
        names = {name for row in wanted for name in row}
        got_requests = [{k: row[k] for k in names & row.keys()} for row in done["new_route_requests"]]
        key = lambda row: (row["requested_at"], row["message_id"])  # noqa: E731
        trimmed = [
            {k: got[k] for k in want}
            for got, want in zip(sorted(got_requests, key=key), sorted(wanted, key=key), strict=True)
        ]
        assert trimmed == sorted(wanted, key=key)
