"""When no later message can open a request any more."""

from __future__ import annotations

import pytest

from routing.rules.requesting import RequestScope, RouteRequest

NOON = (12, "m5")

# What is on record, whether a message has opened one at 11, and whether all is settled at noon.
TABLE: list[tuple[list[RouteRequest], bool, bool]] = [
    ([], False, False),
    ([], True, True),
    ([RouteRequest(11, "m")], False, True),
    ([RouteRequest(11, "m", 13)], False, False),
    ([RouteRequest(11, "m", 13)], True, True),
    ([RouteRequest(11, "m", 11), RouteRequest(12, "m4")], False, True),
    ([RouteRequest(12, "m5")], False, False),
    ([RouteRequest(12, "m6"), RouteRequest(13, "m")], False, False),
]


@pytest.mark.parametrize(("record", "is_opened", "expected"), TABLE)
def test_a_scope_is_settled_if_no_later_message_opens_a_request(
    record: list[RouteRequest], is_opened: bool, expected: bool
) -> None:
    scope = RequestScope(tuple(record))
    if is_opened:
        scope.opened = RouteRequest(11, "m")
    assert scope.is_settled(*NOON) is expected
    assert scope.all() == (*record, *([RouteRequest(11, "m")] if is_opened else []))
