"""Cells and moments by numbers of names, as the page holds them: each name stands there once.

Numbers are in the order of the names, so that whoever sorts by them sorts alike, in Python and in the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.analysis.report.cells import Cell, Cube, Moment, Names
from routing.show import printable

NOTHING = -1
"""The number of what has no name (null)."""
LONGEST_NAME = 256
_BY_NUMBER = {"instance": "", "service": "", "database": "", "reason": "", "source": "node ", "target": "node "}


def shown(text: str, longest: int = LONGEST_NAME) -> str:
    """A text of the data as the page shows it: printable, cut where it is longer than a name of SQL Server can be."""
    return printable(text if len(text) <= longest else f"{text[:longest]}…")


@dataclass(frozen=True)
class Coded:
    """``names`` by number; ``cells`` and ``moments`` have numbers in the columns of `_BY_NUMBER`, all else as it is."""

    names: Sequence[str]
    cells: Sequence[Mapping[str, Any]]
    moments: Sequence[Mapping[str, Any]]

    def numbers_of(self, column: str) -> list[int]:
        """The different numbers in a column of the cells, in their order."""
        return sorted({cell[column] for cell in self.cells})


def coded(cube: Cube, nodes: Mapping[str, str]) -> Coded:
    """The cells of a cube by numbers; ``nodes`` are titles of the estate's nodes by id."""
    labels = _labels(cube, nodes)
    # What stands for many comes last, among equals the order is that of what is shown.
    order = sorted(labels, key=lambda key: (key[1] is None, labels[key], str(key[1]), key[0]))
    numbers = {key: number for number, key in enumerate(order)}
    return Coded(
        [labels[key] for key in order],
        [_numbered(cell, numbers) for cell in cube.cells],
        [_numbered(moment, numbers) for moment in cube.moments],
    )


_Key = tuple[str, "str | None"]


def _labels(cube: Cube, nodes: Mapping[str, str]) -> dict[_Key, str]:
    """What is shown for each name."""
    labels: dict[_Key, str] = {("node ", node): shown(title) for node, title in nodes.items()}
    for cell in cube.cells:
        for text in (cell.instance, cell.service, cell.database, cell.reason):
            if text is not None:
                labels["", text] = shown(text)
    for kind, names in (("instance", cube.instances), ("service", cube.services)):
        if names.others:
            labels[kind, None] = _others(kind, names)
    return labels


def _others(kind: str, names: Names) -> str:
    what = f"{kind}{'' if names.others == 1 else 's'}"
    return f"{names.others:,} other {what}" if names.told else f"all {names.others:,} {what}"


def _numbered(row: Cell | Moment, numbers: Mapping[_Key, int]) -> dict[str, Any]:
    return {
        name: _number(name, value, numbers) if name in _BY_NUMBER else value
        for name, value in row._asdict().items()
    }


def _number(column: str, value: str | None, numbers: Mapping[_Key, int]) -> int:
    if value is None:
        return numbers.get((column, None), NOTHING)
    return numbers[_BY_NUMBER[column], value]
