"""The curves along which messages are drawn from node to node, and where on them a number can stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from routing.features.report.pictures.layout import BOX, GUTTER, LANE, NodeLayout, NodeSpot, as_wide_as
from routing.features.report.report_network import NetworkEdge

MOST = 160
"""So many edges are drawn, the largest; the table has them all."""
_MOST_NUMBERS = 30
_TIP = 5
_PORT, _APART = 4, 6
_LETTER, _LINE = 7.2, 15
# How far along its curve a number may stand, the best first.
_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)

Point = tuple[float, float]
Area = tuple[float, float, float, float]


@dataclass(frozen=True)
class EdgeCurve:
    """The curve of an edge: start, two points that bend it, end. ``is_rightwards``: how its end points.

    ``is_inside``: it stays in a box, where its number stands beside the name. ``number`` is where that of another
    one stands, None where there is no room.
    """

    edge: NetworkEdge
    points: tuple[Point, Point, Point, Point]
    is_rightwards: bool
    is_inside: bool = False
    number: Point | None = None

    @property
    def path(self) -> str:
        """The curve as SVG has it."""
        start, *bends = (f"{x:.1f},{y:.1f}" for x, y in self.points)
        return f"M{start}C{' '.join(bends)}"


def curves_of(edges: Sequence[NetworkEdge], layout: NodeLayout) -> list[EdgeCurve]:
    """Return the curves of the largest edges, the largest first."""
    drawn = list(_apart(_curve_of(edge, layout.spots) for edge in edges[:MOST]))
    occupied = [(spot.x, spot.y, spot.x + BOX, spot.y + spot.height) for spot in layout.spots.values()]
    return list(_numbered(drawn, occupied))


def _apart(drawn: Iterable[EdgeCurve]) -> Iterator[EdgeCurve]:
    """Yield the ways, those of several outcomes between the same two nodes below each other."""
    seen: Counter[tuple[str, str]] = Counter()
    for curve in drawn:
        down = _APART * seen[curve.edge.source, curve.edge.target]
        seen[curve.edge.source, curve.edge.target] += 1
        begin, leave, reach, end = ((x, y + down) for x, y in curve.points)
        yield replace(curve, points=(begin, leave, reach, end))


def _curve_of(edge: NetworkEdge, spots: Mapping[str, NodeSpot]) -> EdgeCurve:
    source, target = spots[edge.source], spots[edge.target]
    if source.box == target.box:
        return _inside(edge, source, target)
    if source.column == target.column:
        return _bow(edge, source, target)
    return _across(edge, source, target)


def _inside(edge: NetworkEdge, source: NodeSpot, target: NodeSpot) -> EdgeCurve:
    """Draw a curve within an instance: a bow in the left of its box, wider the further it goes."""
    edge_of_lane = source.x + LANE - _TIP
    bow = edge_of_lane - min(LANE - 8, 14 + abs(target.middle - source.middle) / 8) * 1.25
    # A database that sends to itself: a small loop.
    apart = 8 if source is target else 0
    begin, end = source.middle - apart, target.middle + apart
    points = ((edge_of_lane + _TIP - 2, begin), (bow, begin), (bow, end), (edge_of_lane, end))
    return EdgeCurve(edge, points, is_rightwards=True, is_inside=True)


def _bow(edge: NetworkEdge, source: NodeSpot, target: NodeSpot) -> EdgeCurve:
    """Draw a curve to another box of the same column: a bow at its right."""
    x, begin, end = source.x + BOX, source.middle + _PORT, target.middle - _PORT
    bow = x + min(GUTTER * 0.62, 30 + abs(end - begin) / 8)
    return EdgeCurve(edge, ((x, begin), (bow, begin), (bow, end), (x + _TIP, end)), is_rightwards=False)


def _across(edge: NetworkEdge, source: NodeSpot, target: NodeSpot) -> EdgeCurve:
    """Draw a curve to another column: from the side that faces it to the side that faces back."""
    is_rightwards = target.column > source.column
    begin = (source.x + BOX * is_rightwards, source.middle + _PORT)
    end = (target.x + BOX * (not is_rightwards) + (-_TIP if is_rightwards else _TIP), target.middle - _PORT)
    reach = (end[0] - begin[0]) * 0.5
    return EdgeCurve(edge, (begin, (begin[0] + reach, begin[1]), (end[0] - reach, end[1]), end), is_rightwards)


def _numbered(drawn: Iterable[EdgeCurve], occupied: list[Area]) -> Iterator[EdgeCurve]:
    """Yield the ways with places for numbers where none covers a box or another number, the largest first."""
    left = _MOST_NUMBERS
    for curve in drawn:
        number_point = None if curve.is_inside or not left else _free(curve, occupied)
        if number_point is not None:
            left -= 1
            occupied.append(_area(curve, number_point))
        yield replace(curve, number=number_point)


def _free(curve: EdgeCurve, occupied: Sequence[Area]) -> Point | None:
    """Return the first place on a curve where its number covers nothing."""
    for along in _PLACES:
        point = _at(curve.points, along)
        area = _area(curve, point)
        if not any(_overlap(area, other) for other in occupied):
            return point
    return None


def _at(points: tuple[Point, Point, Point, Point], along: float) -> Point:
    """Return the point of a cubic Bézier curve."""
    back = 1 - along
    shares = (back**3, 3 * back**2 * along, 3 * back * along**2, along**3)
    x, y = (sum(share * point[axis] for share, point in zip(shares, points, strict=True)) for axis in (0, 1))
    return x, y


def _area(curve: EdgeCurve, point: Point) -> Area:
    half = (_LETTER * len(as_wide_as(curve.edge.messages)) + 4) / 2
    return point[0] - half, point[1] - _LINE / 2, point[0] + half, point[1] + _LINE / 2


def _overlap(one: Area, other: Area) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
