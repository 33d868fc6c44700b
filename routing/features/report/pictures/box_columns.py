"""Which boxes stand in which column, and in which order, so that most of what flows goes to the right.

Boxes are few and the search is greedy and without chance: the same boxes always stand in the same places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

GAP = 24
"""Between two boxes of a column, in pixels."""
_WIDTHS = (1, 2, 3, 4)
"""So many columns there may be."""
_LOW = 320.0
"""Columns no higher need not be even."""
_ROUNDS = 12
# What it costs to stand badly: beside each other in one column, a column further apart than need be, against the
# main direction. What uneven columns cost, and one column more.
_BESIDE, _FURTHER, _BACKWARDS, _UNEVEN, _WIDER = 2.0, 1.2, 0.35, 1.2, 0.3

Weights = Mapping[tuple[str, str], int]
Ties = Mapping[str, Mapping[str, tuple[float, float]]]
"""How strongly a box is tied to each other one, by what it sends there and by what comes from there: 0 to 1."""


def arrange(heights: Mapping[str, float], weights: Weights) -> list[list[str]]:
    """Arrange boxes in columns from left to right, each from top to bottom.

    ``heights`` of all boxes in pixels, the most important first; ``weights``: messages from box to box.
    """
    ties = _tie(heights, weights)
    orders = [_walk(boxes, ties) for boxes in ([*heights], [*heights][::-1])]
    assigned = [_assign(order, choices, heights, ties) for choices in _choices() for order in orders]
    column_of = min(assigned, key=lambda placed: _whole_cost(placed, heights, ties))
    columns = [[box for box in heights if column_of[box] == column] for column in range(_WIDTHS[-1])]
    return _ordered([column for column in columns if column], heights, ties)


def _choices() -> list[list[int]]:
    """Return the columns that there may be, and in which order they are thought of for the first box.

    From the middle outwards, since most others are tied to it; and from the right.
    """
    outwards = [sorted(range(width), key=lambda column: abs(2 * column - width + 1.5)) for width in _WIDTHS]
    return [*outwards, *([*range(width)][::-1] for width in _WIDTHS)]


def tops(columns: Sequence[Sequence[str]], heights: Mapping[str, float]) -> dict[str, float]:
    """Return the top of each box: the boxes of a column below each other, each column in the middle."""
    whole = max((_height(column, heights) for column in columns), default=0)
    top_by_box = {}
    for column in columns:
        top = (whole - _height(column, heights)) / 2
        for box in column:
            top_by_box[box] = top
            top += heights[box] + GAP
    return top_by_box


def _height(column: Sequence[str], heights: Mapping[str, float]) -> float:
    return sum(heights[box] for box in column) + GAP * (len(column) - 1)


def _tie(boxes: Iterable[str], weights: Weights) -> Ties:
    largest = max(weights.values(), default=1)
    ties: dict[str, dict[str, tuple[float, float]]] = {box: {} for box in boxes}
    for (source, target), messages in weights.items():
        strength = sqrt(messages / largest)
        ties[source][target] = (strength, ties[source].get(target, (0.0, 0.0))[1])
        ties[target][source] = (ties[target].get(source, (0.0, 0.0))[0], strength)
    return ties


def _walk(boxes: Sequence[str], ties: Ties) -> list[str]:
    """Return the boxes in an order in which the next is the one that is tied most to those before it."""
    left, pull, ordered = list(boxes), dict.fromkeys(boxes, 0.0), []
    while left:
        box = max(left, key=lambda one: pull[one])
        left.remove(box)
        ordered.append(box)
        for other, (sends, comes) in ties[box].items():
            pull[other] += sends + comes
    return ordered


def _assign(
    order: Iterable[str], choices: Sequence[int], heights: Mapping[str, float], ties: Ties
) -> dict[str, int]:
    """Return the column of each box: each is put where it costs least, in order, then moved while that helps."""
    fair = _fair(heights)
    placed: dict[str, int] = {}

    def cost(box: str, column: int) -> float:
        column_height = sum(heights[other] for other, where in placed.items() if where == column and other != box)
        # What the square of the column's height grows by.
        uneven = heights[box] * (heights[box] + 2 * column_height) / fair**2
        placed_ties = ((there, placed[other]) for other, there in ties[box].items() if other in placed)
        return _UNEVEN * uneven + sum(
            sends * _step(where - column) + comes * _step(column - where) for (sends, comes), where in placed_ties
        )

    for _ in range(_ROUNDS):
        before = dict(placed)
        for box in order:
            placed[box] = min(choices, key=lambda column: cost(box, column))
        if placed == before:
            break
    return placed


def _whole_cost(placed: Mapping[str, int], heights: Mapping[str, float], ties: Ties) -> float:
    columns = sorted(set(placed.values()))
    uneven = (sum(heights[box] for box, where in placed.items() if where == column) for column in columns)
    return (
        _UNEVEN * sum((height / _fair(heights)) ** 2 for height in uneven)
        + _WIDER * len(columns)
        + sum(sends * _step(placed[to] - placed[box]) for box in placed for to, (sends, _) in ties[box].items())
    )


def _fair(heights: Mapping[str, float]) -> float:
    """Return the height of equal columns; that of the highest box where none can be lower."""
    return max([sum(heights.values()) / _WIDTHS[-1], *heights.values(), _LOW])


def _step(columns: int) -> float:
    """Return the cost of messages that go so many columns to the right."""
    if columns == 0:
        return _BESIDE
    return (abs(columns) - 1) * _FURTHER + (_BACKWARDS if columns < 0 else 0.0)


def _ordered(columns: list[list[str]], heights: Mapping[str, float], ties: Ties) -> list[list[str]]:
    """Move boxes up and down their columns towards those they are tied to, so that fewer edges cross."""
    for _ in range(_ROUNDS):
        for number, column in enumerate(columns):
            begin = tops(columns, heights)
            middle = {box: begin[box] + heights[box] / 2 for box in begin}
            columns[number] = sorted(column, key=lambda box: _wish(box, middle, ties[box]))
    return columns


def _wish(box: str, middle: Mapping[str, float], ties: Mapping[str, tuple[float, float]]) -> float:
    """Return the height that suits a box: the mean of the boxes that it is tied to, its own without any."""
    weight = sum(sends + comes for sends, comes in ties.values())
    whole = sum(middle[other] * (sends + comes) for other, (sends, comes) in ties.items())
    return whole / weight if weight else middle[box]
