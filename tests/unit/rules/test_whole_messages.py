"""The rules decide every message of random estates as the tests' own resolver does."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pytest

from tests.reference.estates import random_estate
from tests.reference.resolver import resolve as reference
from tests.unit.rules.by_rules import columns, resolved

ESTATES, MESSAGES, SEED = 150, 60, 20260105
AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)


def _differences(estate: dict[str, Any], as_of: datetime | None) -> list[Any]:
    expected = reference(estate, as_of)
    rejected = [
        {name: row[name] for name in row if name in estate["messages"][0]} for row in expected.rejected_messages
    ]
    sound = [row for row in estate["messages"] if not any(_same(row, other) for other in rejected)]
    assert len(sound) == len(expected.resolved_routes)
    got = resolved({**estate, "messages": sound}, as_of)
    differences = []
    for place, row in enumerate(expected.resolved_routes):
        mine = columns(got[place])
        theirs = {name: row[name] or None if name == "alternative_routes" else row[name] for name in mine}
        if mine != theirs:
            differences.append((sound[place], mine, theirs))
    return differences


def _same(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(row.get(name) == value for name, value in other.items())


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_the_rules_agree_with_the_tests_own_resolver(as_of: datetime | None) -> None:
    rng = random.Random(SEED)
    for number in range(ESTATES):
        differences = _differences(random_estate(rng, MESSAGES, f"e{number}/"), as_of)
        assert not differences, differences[:2]
