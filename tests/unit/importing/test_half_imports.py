"""An import that is ended after any of its commits is completed by the next one, whichever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.half_imports import SCENARIOS, tell_differences, tell_differences_of_completing

pytest.importorskip("deltalake")


# An export and a script; names are exchanged in the test below as well. The others take long.
AT_ONCE = ("a changed export", "a route that toggles")
ROWS = [pytest.param(name, marks=[] if name in AT_ONCE else [pytest.mark.long]) for name in SCENARIOS]


@pytest.mark.parametrize("name", ROWS)
def test_any_next_import_completes_a_half_import(name: str, tmp_path: Path) -> None:
    assert tell_differences(SCENARIOS[name], tmp_path) == []


def test_an_import_that_is_ended_while_it_completes_another_is_completed_too(tmp_path: Path) -> None:
    assert tell_differences_of_completing(SCENARIOS["names are exchanged"], tmp_path) == []
