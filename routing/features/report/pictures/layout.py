"""Where nodes stand: an instance is a box, its name above its databases, each with what ends there beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routing.features.report.pictures import box_columns, theme
from routing.features.report.report_network import NetworkNode, NodeKind, ReportNetwork
from routing.render.wording import printable
from routing.terms import Outcome

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
    arranged = box_columns.arrange(heights, _between(network))
    tops = box_columns.tops(arranged, heights)
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
    order = list(reversed(theme.OUTCOMES))
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
