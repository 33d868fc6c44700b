"""The worked cases, read from YAML into tables and expected rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

CASES_FOLDER = Path(__file__).resolve().parent.parent / "cases"
TIME_COLUMNS = frozenset(
    {
        "lifetime",
        "valid_from",
        "valid_to",
        "enqueue_time",
        "observed_at",
        "acknowledged_at",
        "requested_at",
        "ended_at",
        "decided_at",
    }
)


@dataclass(frozen=True)
class Case:
    """One worked case: input tables, the time of the run if it sets one, and the expected rows."""

    name: str
    tables: dict[str, list[dict[str, Any]]]
    as_of: datetime | None
    expect: dict[str, list[Any]]


def moment(text: str) -> datetime:
    """Read a time of a case, which ends in Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        column: moment(value) if column in TIME_COLUMNS and value is not None else value
        for column, value in row.items()
    }


def read_cases(folder: Path = CASES_FOLDER) -> list[Case]:
    """Read every case of a folder, in the order of files and of cases in them."""
    cases: list[Case] = []
    for file in sorted(folder.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text(encoding="utf-8"))["cases"]:
            as_of = case.get("as_of")
            expect = {
                table: [row if isinstance(row, str) else _row(row) for row in rows]
                for table, rows in case["expect"].items()
            }
            cases.append(
                Case(
                    name=f"{file.stem}: {case['case']}",
                    tables={t: [_row(row) for row in rows] for t, rows in case["tables"].items()},
                    as_of=None if as_of is None else moment(as_of),
                    expect=expect,
                )
            )
    return cases
