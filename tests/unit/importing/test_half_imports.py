"""An import that is ended after any of its commits is completed by the next one, whichever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.half_imports import SCENARIOS, tell_differences

pytest.importorskip("deltalake")


@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_comes_next_completes_it(name: str, tmp_path: Path) -> None:
    assert tell_differences(SCENARIOS[name], tmp_path) == []
