"""Which boxes stand in which column, and in which order, so that most of what flows goes to the right.

Boxes are few and the search is greedy and without chance: the same boxes always stand in the same places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

GAP = 26
"""Between two boxes of a column, in pixels."""
_MOST_COLUMNS = 4
_ROUNDS = 12
# What it costs to stand badly: beside each other in one column, one column further than need be, against the main
# direction; and how much an uneven column weighs.
_BESIDE, _FURTHER, _BACKWARDS, _UNEVEN = 2.0, 1.2, 0.35, 0.4

Weights = Mapping[tuple[str, str], int]


def arrange(heights: Mapping[str, float], weights: Weights) -> list[list[str]]:
    """Columns of boxes from left to right, each from top to bottom.

    ``heights`` of all boxes in pixels, the most important first; ``weights``: messages from box to box.
    """
    pull = _pull(heights, weights)
    column_of = _assign(heights, pull)
    columns = [[box for box in heights if column_of[box] == column] for column in range(_MOST_COLUMNS)]
    return _ordered([column for column in columns if column], heights, pull)


def tops(columns: Sequence[Sequence[str]], heights: Mapping[str, float]) -> dict[str, float]:
    """Where each box begins: the boxes of a column below each other, each column in the middle of the height."""
    whole = max((_height(column, heights) for column in columns), default=0)
    found = {}
    for column in columns:
        top = (whole - _height(column, heights)) / 2
        for box in column:
            found[box] = top
            top += heights[box] + GAP
    return found


def _height(column: Sequence[str], heights: Mapping[str, float]) -> float:
    return sum(heights[box] for box in column) + GAP * (len(column) - 1)


def _pull(boxes: Mapping[str, float], weights: Weights) -> dict[str, dict[str, tuple[float, float]]]:
    """How strongly each box is tied to each other one: by what it sends, by what comes; 0 to 1."""
    largest = max(weights.values(), default=1)
    found: dict[str, dict[str, tuple[float, float]]] = {box: {} for box in boxes}
    for (source, target), messages in weights.items():
        strength = sqrt(messages / largest)
        found[source][target] = (strength, found[source].get(target, (0.0, 0.0))[1])
        found[target][source] = (found[target].get(source, (0.0, 0.0))[0], strength)
    return found


def _assign(heights: Mapping[str, float], pull: Mapping[str, Mapping[str, tuple[float, float]]]) -> dict[str, int]:
    """The column of each box: each is put where it costs least, the first first, then moved while that helps."""
    fair = max(sum(heights.values()) / _MOST_COLUMNS, *heights.values(), 1.0)
    # From the middle outwards, since the first box is the one that most others are tied to.
    choices = sorted(range(_MOST_COLUMNS), key=lambda column: abs(column - _MOST_COLUMNS / 2 + 0.9))
    placed: dict[str, int] = {}

    def cost(box: str, column: int) -> float:
        taken = sum(heights[other] for other, where in placed.items() if where == column and other != box)
        ties = ((there, placed[other]) for other, there in pull[box].items() if other in placed and other != box)
        return _UNEVEN * (taken / fair) ** 2 + sum(
            sends * _step(where - column) + comes * _step(column - where) for (sends, comes), where in ties
        )

    for _ in range(_ROUNDS):
        before = dict(placed)
        for box in heights:
            placed[box] = min(choices, key=lambda column: cost(box, column))
        if placed == before:
            break
    return placed


def _step(columns: int) -> float:
    """What it costs that messages go so many columns to the right."""
    if columns == 0:
        return _BESIDE
    return (abs(columns) - 1) * _FURTHER + (_BACKWARDS if columns < 0 else 0.0)


def _ordered(
    columns: list[list[str]], heights: Mapping[str, float], pull: Mapping[str, Mapping[str, tuple[float, float]]]
) -> list[list[str]]:
    """The same columns, boxes moved up and down towards what they are tied to, so that fewer edges cross."""
    for _ in range(_ROUNDS):
        for number, column in enumerate(columns):
            begin = tops(columns, heights)
            middle = {box: begin[box] + heights[box] / 2 for box in begin}
            columns[number] = sorted(column, key=lambda box: _wish(box, middle, pull[box]))
    return columns


def _wish(box: str, middle: Mapping[str, float], ties: Mapping[str, tuple[float, float]]) -> float:
    """How far down a box would like to be: the mean of what it is tied to; where it is, if that is nothing."""
    weight = sum(sends + comes for sends, comes in ties.values())
    whole = sum(middle[other] * (sends + comes) for other, (sends, comes) in ties.items())
    return whole / weight if weight else middle[box]
