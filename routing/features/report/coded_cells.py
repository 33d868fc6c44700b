"""Cells and moments by numbers of names, as the page holds them: each name stands there once.

Numbers are in the order of the names, so that Python and the page sort alike by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.features.report.message_cells import UNTOLD, MessageCell, MessageMoment, ReportCube, ShownNames
from routing.render.wording import count, printable

NOTHING = -1
"""The number of what has no name (null), or is not told apart."""
LONGEST_NAME = 256
_NODE = "node"
_BY_NUMBER = {**dict.fromkeys(("instance", "service", "database", "reason"), ""), "source": _NODE, "target": _NODE}
_NOT_APART = (("instance", UNTOLD), ("service", UNTOLD))


def shown(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text of the data as the page shows it: printable, cut where it is longer than any name can be."""
    return printable(text if len(text) <= longest else f"{text[:longest]}…")


@dataclass(frozen=True)
class CodedCells:
    """``names`` by number; ``cells`` and ``moments`` have numbers in the columns of `_BY_NUMBER`.

    ``others`` tells of instance and service the number of the name that stands for many, and for how many;
    ``nodes`` the id of a node by the number of its title.
    """

    names: Sequence[str]
    cells: Sequence[Mapping[str, Any]]
    moments: Sequence[Mapping[str, Any]]
    others: Mapping[str, Mapping[str, int]]
    nodes: Mapping[int, str]


def coded(cube: ReportCube, nodes: Mapping[str, str]) -> CodedCells:
    """Return the cells of a cube by numbers; ``nodes`` are titles of the estate's nodes by id."""
    labels = _labels(cube, nodes)
    # What stands for many comes last, among equals the order is that of what is shown.
    order = sorted(labels, key=lambda key: (key[1] is None, labels[key], str(key[1]), key[0]))
    numbers = {key: number for number, key in enumerate(order)}
    return CodedCells(
        [labels[key] for key in order],
        [_numbered(cell, numbers) for cell in cube.cells],
        [_numbered(moment, numbers) for moment in cube.moments],
        {kind: {"name": numbers[kind, None], "count": names.others} for kind, names in _folded(cube)},
        {numbers[_NODE, node]: node for node in nodes},
    )


_Key = tuple[str, "str | None"]


def _labels(cube: ReportCube, nodes: Mapping[str, str]) -> dict[_Key, str]:
    """Return the label of each name."""
    labels: dict[_Key, str] = {(_NODE, node): shown(title) for node, title in nodes.items()}
    for cell in cube.cells:
        for text in (cell.instance, cell.service, cell.database, cell.reason):
            if text is not None:
                labels["", text] = shown(text)
    return labels | {(kind, None): _others(kind, names) for kind, names in _folded(cube)}


def _folded(cube: ReportCube) -> list[tuple[str, ShownNames]]:
    """List the dimensions of which some names are shown as one."""
    pairs = (("instance", cube.instances), ("service", cube.services))
    return [(kind, names) for kind, names in pairs if names.others]


def _others(kind: str, names: ShownNames) -> str:
    return count(names.others, f"other {kind}") if names.names else f"all {count(names.others, kind)}"


def _numbered(row: MessageCell | MessageMoment, numbers: Mapping[_Key, int]) -> dict[str, Any]:
    return {
        name: _number(name, value, numbers) if name in _BY_NUMBER else value
        for name, value in row._asdict().items()
    }


def _number(column: str, value: str | None, numbers: Mapping[_Key, int]) -> int:
    if value is None:
        return numbers.get((column, None), NOTHING)
    if (column, value) in _NOT_APART:
        return NOTHING
    return numbers[_BY_NUMBER[column], value]
