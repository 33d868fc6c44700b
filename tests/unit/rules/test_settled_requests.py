"""When no later message can open a request any more."""

from __future__ import annotations

import pytest

from routing.rules.requesting import Request, Scope

NOON = (12, "m5")

# What is on record, whether a message has opened one at 11, and whether all is settled at noon.
TABLE: list[tuple[list[Request], bool, bool]] = [
    ([], False, False),
    ([], True, True),
    ([Request(11, "m")], False, True),
    ([Request(11, "m", 13)], False, False),
    ([Request(11, "m", 13)], True, True),
    ([Request(11, "m", 11), Request(12, "m4")], False, True),
    ([Request(12, "m5")], False, False),
    ([Request(12, "m6"), Request(13, "m")], False, False),
]


@pytest.mark.parametrize(("record", "is_opened", "expected"), TABLE)
def test_settled(record: list[Request], is_opened: bool, expected: bool) -> None:
    scope = Scope(tuple(record))
    if is_opened:
        scope.opened = Request(11, "m")
    assert scope.is_settled(*NOON) is expected
    assert scope.all() == (*record, *([Request(11, "m")] if is_opened else []))
