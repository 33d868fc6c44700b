"""Modules hold one concept each, so none is very long."""

from __future__ import annotations

from pathlib import Path

import routing

HOUSE = Path(routing.__file__).parent
MOST_LINES = 550


def test_no_module_is_too_long() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in HOUSE.rglob("*.py")}
    assert lines
    assert {str(path.relative_to(HOUSE)): number for path, number in lines.items() if number > MOST_LINES} == {}
