"""The seconds of stages within each other."""

from __future__ import annotations

import time

from routing.run_context import Progress, StageClock


def test_nested_stages_have_their_own_seconds() -> None:
    reported = list[Progress]()
    clock = StageClock(reported.append)
    begun = time.monotonic()
    with clock.stage("outer"):
        time.sleep(0.02)
        with clock.stage("inner"):
            time.sleep(0.1)
    with clock.stage("later"):
        time.sleep(0.01)
    whole = time.monotonic() - begun
    assert clock.seconds["inner"] >= 0.1
    assert clock.seconds["outer"] >= 0.02
    # Nothing is counted twice.
    assert sum(clock.seconds.values()) <= whole
    assert [(one.stage, one.seconds is None) for one in reported] == [
        ("outer", True),
        ("inner", True),
        ("inner", False),
        ("outer", False),
        ("later", True),
        ("later", False),
    ]
