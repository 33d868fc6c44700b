"""Random estates, decided without Spark: every row is that of the tests' own resolver."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.random_estates import AS_OF, Decider, assert_agrees
from tests.unit.judged_messages import decide_by_planner
from tests.unit.test_local_engine import decide_locally

_DECIDERS = [
    pytest.param(decide_by_planner, False, id="planner"),
    pytest.param(decide_locally, True, id="local engine"),
]


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
@pytest.mark.parametrize(("decider", "is_whole"), _DECIDERS)
def test_random_estates_agree(decider: Decider, is_whole: bool, as_of: datetime | None) -> None:
    assert_agrees(decider, as_of, is_whole=is_whole)
