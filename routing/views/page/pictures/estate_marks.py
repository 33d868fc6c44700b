"""The marks of the estate's picture: boxes, curves, names, and what ends where, each for the rows of its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from routing.terms import NOT_KNOWN, JsonObject
from routing.views.page.pictures import picture_theme
from routing.views.page.pictures.estate_layout import (
    BOX,
    GUTTER,
    LANE,
    LEGEND,
    NodeLayout,
    NodeSpot,
    as_wide_as,
)
from routing.views.page.report_network import NetworkEdge

Mark = JsonObject
_SIZE = 12
_COLOUR = {"scale": "colour", "field": "outcome"}
_GLYPH = {"scale": "glyph", "field": "outcome"}
# A tick, two bars, a cross, a question mark: outcomes are told apart without colours too.
_GLYPHS = {
    "DELIVERED": "M-.95,.05l.35,-.35l.4,.4l.8,-.9l.37,.33l-1.15,1.3z",
    "DELAYED": "M-.7,-.9h.5v1.8h-.5zM.2,-.9h.5v1.8h-.5z",
    "DROPPED": "M-.9,-.55l.35,-.35l.55,.55l.55,-.55l.35,.35l-.55,.55l.55,.55l-.35,.35l-.55,-.55l-.55,.55l-.35,-.35"
    "l.55,-.55z",
    NOT_KNOWN: "M-.15,.55h.4v.4h-.4zM-.6,-.4a.62,.6 0 1 1 .85,.55v.2h-.4v-.5a.25,.25 0 1 0 -.1,-.45z",
}
_LINE = "M-1.4,-.3h2.8v.6h-2.8z"


def drawn(palette: picture_theme.PicturePalette) -> list[Mark]:
    """List all marks, lower ones first: curves between boxes run behind the boxes on their way."""
    return [
        *_curves("estate_across"),
        _boxes(palette),
        *_curves("estate_inside"),
        *_numbers(palette),
        _names(palette),
        *_ends("estate_delivered", shade=0),
        *_ends("estate_stopped", shade=0.2),
        *_legend(),
    ]


def scales(palette: picture_theme.PicturePalette) -> list[Mark]:
    """Return the colour and the glyph of each outcome."""
    glyphs = [_GLYPHS.get(outcome, _LINE) for outcome in palette.outcomes]
    outcome_scale = {"type": "ordinal", "domain": list(palette.outcomes)}
    return [
        {"name": "colour", **outcome_scale, "range": list(palette.outcomes.values())},
        {"name": "glyph", **outcome_scale, "range": glyphs},
    ]


def _vega_mark(data: str, kind: str, name: str, **channels: Any) -> Mark:
    """Return a mark for each row of a data set; plain values are the same for all rows.

    A screen reader is given the description of the picture and its table instead.
    """
    update = {key: value if isinstance(value, dict) else {"value": value} for key, value in channels.items()}
    return {"type": kind, "name": name, "aria": False, "from": {"data": data}, "encode": {"update": update}}


def _field(name: str, offset: float = 0) -> Mark:
    # To a text, an offset of 0 is a letter more.
    return {"field": name, "offset": offset} if offset else {"field": name}


def _boxes(palette: picture_theme.PicturePalette) -> Mark:
    return _vega_mark(
        "estate_boxes",
        "rect",
        "estate_box",
        x=_field("x"),
        y=_field("y"),
        width=BOX,
        height=_field("height"),
        cornerRadius=7,
        fill=palette.paper,
        stroke=palette.line,
        strokeWidth=1.5,
        strokeDash={"signal": "datum.kind === 'INSTANCE' ? [] : [4, 3]"},
    )


def _curves(data: str) -> list[Mark]:
    """Draw curves, each with a tip that says where it goes."""
    tooltip = _field("told")
    curve = _vega_mark(
        data,
        "path",
        f"{data}_curve",
        path=_field("path"),
        stroke=_COLOUR,
        strokeWidth=_field("thick"),
        strokeOpacity=0.55,
        tooltip=tooltip,
    )
    curve["encode"]["hover"] = {"strokeOpacity": {"value": 1}}
    tip = {"x": _field("tip_x"), "y": _field("tip_y"), "angle": _field("tip_angle"), "shape": "triangle"}
    size = {"signal": "40 + 14 * datum.thick"}
    return [curve, _vega_mark(data, "symbol", f"{data}_tip", **tip, size=size, fill=_COLOUR, tooltip=tooltip)]


def _numbers(palette: picture_theme.PicturePalette) -> list[Mark]:
    """Return the numbers on the curves; around each, what lies beneath is covered."""
    place = {"x": _field("number_x"), "y": _field("number_y"), "align": "center", "tooltip": _field("told")}
    number = {**place, **_words("number"), "text": {"signal": "isValid(datum.number_x) ? datum.number : ''"}}
    halo = {"stroke": palette.paper, "strokeWidth": 4, "strokeJoin": "round"}
    return [
        _vega_mark("estate_across", "text", "estate_halo", **number, **halo),
        _vega_mark("estate_across", "text", "estate_number", **number),
    ]


def _words(field: str) -> Mark:
    return {"text": _field(field), "baseline": "middle", "fontSize": _SIZE}


def _names(palette: picture_theme.PicturePalette) -> Mark:
    is_faint = "datum.is_idle || datum.kind === 'ADDRESS'"
    return _vega_mark(
        "estate_names",
        "text",
        "estate_name",
        x=_field("name_x"),
        y=_field("middle"),
        **_words("name"),
        limit=_field("name_width"),
        ellipsis="…",
        fontWeight={"signal": "datum.kind === 'INSTANCE' ? 600 : 400"},
        fill={"signal": f"{is_faint} ? '{palette.soft}' : '{palette.ink}'"},
        tooltip=_field("told"),
    )


def _ends(data: str, shade: float) -> list[Mark]:
    """Draw messages that ended at a node beside its name: glyph and number, shaded where somebody should look."""
    there = {"y": _field("y"), "tooltip": _field("told")}
    pill = {"x": _field("x"), "width": _field("width"), "yc": _field("y"), "height": 17, "cornerRadius": 8.5}
    glyph = {"x": _field("x", 11), "shape": _GLYPH, "size": 80, "fill": _COLOUR}
    return [
        _vega_mark(data, "rect", f"{data}_pill", **pill, fill=_COLOUR, fillOpacity=shade, tooltip=_field("told")),
        _vega_mark(data, "symbol", f"{data}_glyph", **glyph, **there),
        _vega_mark(data, "text", f"{data}_number", **_words("number"), x=_field("x", 19), **there),
    ]


def _legend() -> list[Mark]:
    glyph = {"shape": _GLYPH, "size": 100, "fill": _COLOUR}
    return [
        _vega_mark("estate_legend", "symbol", "estate_legend_glyph", **glyph, x=_field("x"), y=LEGEND / 2),
        _vega_mark(
            "estate_legend", "text", "estate_legend_words", **_words("words"), x=_field("x", 13), y=LEGEND / 2
        ),
    ]


# The curves along which messages are drawn from node to node, and where on them a number can stand.


MOST = 160
"""So many edges are drawn, the largest; the table has them all."""
_MOST_NUMBERS = 30
_TIP = 5
_PORT, _APART = 4, 6
_LETTER, _LINE_HEIGHT = 7.2, 15
# How far along its curve a number may stand, the best first.
_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)

Point = tuple[float, float]


class PictureArea(NamedTuple):
    """A rectangle of the picture, y counted downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: PictureArea) -> bool:
        """Return True if the two have more in common than an edge."""
        is_beside = self.left < other.right and other.left < self.right
        return is_beside and self.top < other.bottom and other.top < self.bottom


class BezierPoints(NamedTuple):
    """A cubic Bézier curve: its start, two points that bend it, its end."""

    start: Point
    leave: Point
    reach: Point
    end: Point

    def down(self, by: float) -> BezierPoints:
        """Return the curve further down."""
        return BezierPoints(*((x, y + by) for x, y in self))

    def at(self, along: float) -> Point:
        """Return the point that lies along the curve, from 0 at its start to 1 at its end."""
        back = 1 - along
        shares = (back**3, 3 * back**2 * along, 3 * back * along**2, along**3)
        x, y = (sum(share * point[axis] for share, point in zip(shares, self, strict=True)) for axis in (0, 1))
        return x, y


@dataclass(frozen=True)
class EdgeCurve:
    """The curve of an edge. ``is_rightwards``: how its end points.

    ``is_inside``: it stays in a box, where its number stands beside the name. ``number`` is where that of another
    one stands, None where there is no room.
    """

    edge: NetworkEdge
    points: BezierPoints
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
    spots = layout.spots.values()
    occupied = [PictureArea(spot.x, spot.y, spot.x + BOX, spot.y + spot.height) for spot in spots]
    return list(_numbered(drawn, occupied))


def _apart(drawn: Iterable[EdgeCurve]) -> Iterator[EdgeCurve]:
    """Yield the ways, those of several outcomes between the same two nodes below each other."""
    seen: Counter[tuple[str, str]] = Counter()
    for curve in drawn:
        down = _APART * seen[curve.edge.source, curve.edge.target]
        seen[curve.edge.source, curve.edge.target] += 1
        yield replace(curve, points=curve.points.down(down))


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
    points = BezierPoints((edge_of_lane + _TIP - 2, begin), (bow, begin), (bow, end), (edge_of_lane, end))
    return EdgeCurve(edge, points, is_rightwards=True, is_inside=True)


def _bow(edge: NetworkEdge, source: NodeSpot, target: NodeSpot) -> EdgeCurve:
    """Draw a curve to another box of the same column: a bow at its right."""
    x, begin, end = source.x + BOX, source.middle + _PORT, target.middle - _PORT
    bow = x + min(GUTTER * 0.62, 30 + abs(end - begin) / 8)
    points = BezierPoints((x, begin), (bow, begin), (bow, end), (x + _TIP, end))
    return EdgeCurve(edge, points, is_rightwards=False)


def _across(edge: NetworkEdge, source: NodeSpot, target: NodeSpot) -> EdgeCurve:
    """Draw a curve to another column: from the side that faces it to the side that faces back."""
    is_rightwards = target.column > source.column
    begin = (source.x + BOX * is_rightwards, source.middle + _PORT)
    end = (target.x + BOX * (not is_rightwards) + (-_TIP if is_rightwards else _TIP), target.middle - _PORT)
    reach = (end[0] - begin[0]) * 0.5
    points = BezierPoints(begin, (begin[0] + reach, begin[1]), (end[0] - reach, end[1]), end)
    return EdgeCurve(edge, points, is_rightwards)


def _numbered(drawn: Iterable[EdgeCurve], occupied: list[PictureArea]) -> Iterator[EdgeCurve]:
    """Yield the ways with places for numbers where none covers a box or another number, the largest first."""
    left = _MOST_NUMBERS
    for curve in drawn:
        number_point = None if curve.is_inside or not left else _free(curve, occupied)
        if number_point is not None:
            left -= 1
            occupied.append(_area(curve, number_point))
        yield replace(curve, number=number_point)


def _free(curve: EdgeCurve, occupied: Sequence[PictureArea]) -> Point | None:
    """Return the first place on a curve where its number covers nothing."""
    for along in _PLACES:
        point = curve.points.at(along)
        area = _area(curve, point)
        if not any(area.overlaps(other) for other in occupied):
            return point
    return None


def _area(curve: EdgeCurve, point: Point) -> PictureArea:
    half = (_LETTER * len(as_wide_as(curve.edge.messages)) + 4) / 2
    return PictureArea(point[0] - half, point[1] - _LINE_HEIGHT / 2, point[0] + half, point[1] + _LINE_HEIGHT / 2)
