"""Place the nodes of the picture: an instance is a box, its name above its databases, their ends beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from routing.render.wording import printable
from routing.terms import Outcome
from routing.views.page.pictures import picture_theme
from routing.views.page.report_network import NetworkNode, NodeKind, ReportNetwork

# Which boxes stand in which column, and in which order, so that most of what flows goes to the right.
#
# Boxes are few and the search is greedy and without chance: the same boxes always stand in the same places.


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


def box_tops(columns: Sequence[Sequence[str]], heights: Mapping[str, float]) -> dict[str, float]:
    """Return the top of each box: the boxes of a column below each other, each column in the middle."""
    whole = max((_column_height(column, heights) for column in columns), default=0)
    top_by_box = {}
    for column in columns:
        top = (whole - _column_height(column, heights)) / 2
        for box in column:
            top_by_box[box] = top
            top += heights[box] + GAP
    return top_by_box


def _column_height(column: Sequence[str], heights: Mapping[str, float]) -> float:
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
            begin = box_tops(columns, heights)
            middle = {box: begin[box] + heights[box] / 2 for box in begin}
            columns[number] = sorted(column, key=lambda box: _wish(box, middle, ties[box]))
    return columns


def _wish(box: str, middle: Mapping[str, float], ties: Mapping[str, tuple[float, float]]) -> float:
    """Return the height that suits a box: the mean of the boxes that it is tied to, its own without any."""
    weight = sum(sends + comes for sends, comes in ties.values())
    whole = sum(middle[other] * (sends + comes) for other, (sends, comes) in ties.items())
    return whole / weight if weight else middle[box]


BOX, GUTTER, MARGIN, LEGEND = 216, 96, 6, 34
"""Widths of a box, of the space between columns and around all; the height of the legend. In pixels."""
LANE = 32
"""The left of a box, where messages that stay in the instance are drawn."""
NAME, DATABASE, MARKS = 30, 26, 20
"""The heights of an instance's name, of a database, and of marks that need a line of their own."""
_MARK, _LETTER, _EDGE = 28, 7.0, 8
_WIDEST = 15
_SHOWN = 22
"""So many letters of a name are worth a line of their own."""
_SCHEME = "tcp://"

Ended = Sequence[tuple[str, int]]
"""The outcomes of messages that end at a node, and how many, in the order of their marks."""


@dataclass(frozen=True)
class NodeSpot:
    """The place of a node: the name of an instance, or a row in its box. ``middle`` is the height of its name."""

    node: NetworkNode
    box: str
    column: int
    x: float
    y: float
    height: float
    name_x: float
    name_width: float

    @property
    def middle(self) -> float:
        """Where edges meet the node: the middle of the line that has its name."""
        return self.y + (NAME if self.node.inside is None else DATABASE) / 2


@dataclass(frozen=True)
class OutcomeMark:
    """Room for the number of messages that end at a node with an outcome; a filter makes numbers smaller only."""

    node: str
    outcome: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class NodeLayout:
    """The places of all nodes and marks by id, and the size of the picture in pixels."""

    spots: Mapping[str, NodeSpot]
    marks: Sequence[OutcomeMark]
    heights: Mapping[str, float]
    width: float
    height: float


def as_wide_as(messages: int) -> str:
    """Return a text no narrower than the picture writes a number, or a smaller one: 1,204, or 99,999 for 1.20M."""
    return f"{min(messages, 99_999):,}"


def shown_name(node: NetworkNode, width: float) -> str:
    """Return a node's name as it is written in the picture, which has no room for what all addresses begin with.

    An instance some of whose databases are not drawn says how many: ``hub +3``.
    """
    name = printable(node.name.removeprefix(_SCHEME) if node.kind is NodeKind.ADDRESS else node.name)
    # Vega cuts what is too long, but by halves of the letters that UTF-16 writes as two.
    most = int(width // _WIDEST)
    cut = f"{name[:most]}…" if len(name) > most and max(name) > "\uffff" else name
    return f"{cut} +{node.folded:,}" if node.folded else cut


def lay_out(network: ReportNetwork) -> NodeLayout:
    """Return the places of the nodes of a network."""
    ended = _ended(network)
    inside: dict[str, list[NetworkNode]] = {node.id: [node] for node in network.nodes if node.inside is None}
    for node in network.nodes:
        if node.inside is not None:
            inside[node.inside].append(node)
    heights = {box: sum(_height(node, ended[node.id]) for node in nodes) for box, nodes in inside.items()}
    arranged = arrange(heights, _between(network))
    tops = box_tops(arranged, heights)
    spots, marks = {}, []
    for number, column in enumerate(arranged):
        for box in column:
            y = tops[box] + LEGEND + MARGIN
            for node in inside[box]:
                spots[node.id], node_marks = _place(node, box, number, y, ended[node.id])
                marks += node_marks
                y += spots[node.id].height
    width = max(len(arranged), 1) * (BOX + GUTTER) - GUTTER + 2 * MARGIN + _overhang(network, spots, len(arranged))
    return NodeLayout(
        spots,
        marks,
        heights,
        width,
        max((spot.y + spot.height for spot in spots.values()), default=LEGEND) + MARGIN,
    )


def _ended(network: ReportNetwork) -> dict[str, Ended]:
    """Count the messages that end at each node, by outcome."""
    counts_by_node: dict[str, Counter[str]] = {node.id: Counter() for node in network.nodes}
    for edge in network.edges:
        if edge.outcome == Outcome.DELIVERED:
            counts_by_node[edge.target][edge.outcome] += edge.messages
    for stop in network.stops:
        counts_by_node[stop.node][stop.outcome] += stop.messages
    order = list(reversed(picture_theme.OUTCOMES))
    return {
        node: sorted(counts.items(), key=lambda item: order.index(item[0]))
        for node, counts in counts_by_node.items()
    }


def _between(network: ReportNetwork) -> dict[tuple[str, str], int]:
    """Count messages from box to box."""
    box = {node.id: node.inside or node.id for node in network.nodes}
    messages_between: Counter[tuple[str, str]] = Counter()
    for edge in network.edges:
        if box[edge.source] != box[edge.target]:
            messages_between[box[edge.source], box[edge.target]] += edge.messages
    return messages_between


def _mark_width(messages: int) -> float:
    return _MARK + _LETTER * len(as_wide_as(messages))


def _lines(node: NetworkNode, ended: Ended) -> list[list[tuple[str, float]]]:
    """Break the marks of a node, outcome and width, into lines: beside its name where they fit, else below it."""
    marks = [(outcome, _mark_width(messages)) for outcome, messages in ended]
    if _width(marks) + _LETTER * min(len(node.name) + 1, _SHOWN) <= BOX - LANE - _EDGE:
        return [marks]
    lines: list[list[tuple[str, float]]] = [[], []]
    for sized_mark in marks:
        if _width([*lines[-1], sized_mark]) > BOX - _EDGE:
            lines.append([])
        lines[-1].append(sized_mark)
    return lines


def _width(marks: Sequence[tuple[str, float]]) -> float:
    return sum(width for _, width in marks)


def _height(node: NetworkNode, ended: Ended) -> float:
    return (NAME if node.inside is None else DATABASE) + MARKS * (len(_lines(node, ended)) - 1)


def _place(node: NetworkNode, box: str, column: int, y: float, ended: Ended) -> tuple[NodeSpot, list[OutcomeMark]]:
    x: float = MARGIN + column * (BOX + GUTTER)
    lines = _lines(node, ended)
    # Nothing stays in an address, whose names are long.
    name_x = x + (_EDGE if node.kind is NodeKind.ADDRESS else LANE)
    name_width = x + BOX - _width(lines[0]) - name_x - _EDGE
    spot = NodeSpot(node, box, column, x, y, _height(node, ended), name_x, name_width)
    marks = []
    for number, line in enumerate(lines):
        right = x + BOX - _EDGE + 4
        for outcome, width in reversed(line):
            right -= width
            marks.append(OutcomeMark(node.id, outcome, right, spot.middle + MARKS * number, width - 4))
    return spot, marks


def _overhang(network: ReportNetwork, spots: Mapping[str, NodeSpot], number: int) -> float:
    """Return the room at the right for edges between boxes of the last column, which bend there."""
    ends = ((spots[edge.source], spots[edge.target]) for edge in network.edges)
    return GUTTER * 0.75 * any(one.box != two.box and one.column == two.column == number - 1 for one, two in ends)
