"""The estate as a picture: instances as boxes that hold their databases, messages as curves between them.

A Vega specification, not Vega-Lite: places are computed here and the same each time, Vega draws. The page replaces
the data sets ``estate_edges`` and ``estate_stops`` (`edge_rows`, `stop_rows`); places stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from routing.analysis.report.network import Edge, Kind, Network, Node, Stop
from routing.analysis.report.pictures import theme
from routing.analysis.report.pictures.layout import BOX, LEGEND, MARGIN, Layout, lay_out, shown_name
from routing.analysis.report.pictures.ways import Way, ways
from routing.show import printable

THINNEST, THICKEST = 1.25, 9
_FEW = 50
"""So many messages are no thick line, even where none is thicker."""
Row = dict[str, Any]
Spec = dict[str, Any]

_NUMBER = "datum.messages < 1e5 ? format(datum.messages, ',') : format(datum.messages, '.3s')"
_TOLD = "datum.title + ': ' + format(datum.messages, ',') + ' ' + lower(replace(datum.outcome, '_', ' '))"
# A tick, two bars, a cross, a question mark: outcomes are told apart without colours too.
_BARS = "M-.7,-.9h.5v1.8h-.5zM.2,-.9h.5v1.8h-.5z"
_CROSS = (
    "M-.9,-.55l.35,-.35l.55,.55l.55,-.55l.35,.35l-.55,.55l.55,.55l-.35,.35l-.55,-.55l-.55,.55l-.35,-.35l.55,-.55z"
)
_TICK = "M-.95,.05l.35,-.35l.4,.4l.8,-.9l.37,.33l-1.15,1.3z"
_ASK = "M-.15,.55h.4v.4h-.4zM-.6,-.4a.62,.6 0 1 1 .85,.55v.2h-.4v-.5a.25,.25 0 1 0 -.1,-.45z"
_GLYPHS = {"DELIVERED": _TICK, "DELAYED": _BARS, "DROPPED": _CROSS, theme.NOT_KNOWN: _ASK}
_LINE = "M-1.4,-.3h2.8v.6h-2.8z"
_DRAWN = ["path", "is_inside", "tip_x", "tip_y", "tip_angle", "number_x", "number_y"]


def estate(network: Network, palette: theme.Palette = theme.LIGHT) -> Spec:
    """The picture of a network as Vega draws it.

    Data sets that the page may replace: ``estate_edges`` with rows source, target (ids of nodes), outcome,
    messages; ``estate_stops`` with rows node, outcome, messages. Edges not among the largest are not drawn.
    """
    layout = lay_out(network)
    drawn = ways(network.edges, layout)
    largest = max(_FEW, *(edge.messages for edge in network.edges))
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "description": described(network),
        "background": palette.paper,
        "width": layout.width,
        "height": layout.height,
        "padding": 0,
        "autosize": "none",
        "config": {"text": {"font": theme.FONT, "fill": palette.ink}},
        "data": _data(network, layout, drawn, largest),
        "scales": [
            _scale("colour", palette.outcomes),
            _scale("glyph", {word: _glyph(word) for word in theme.OUTCOMES}),
        ],
        "marks": [
            *_edges(),
            *_boxes(palette),
            *_edges(inside=True),
            *_numbers(palette),
            *_names(palette),
            *_marks(),
            *_legend(),
        ],
    }


def described(network: Network) -> str:
    """What a screen reader says of the picture; the table beside it has the numbers."""
    kinds = [node.kind for node in network.nodes]
    counted = [
        f"{kinds.count(kind):,} {word}"
        for kind, word in ((Kind.INSTANCE, "instances"), (Kind.DATABASE, "databases"), (Kind.ADDRESS, "addresses"))
    ]
    return (
        f"The estate: {', '.join(counted)}; curves show the messages between them by outcome, marks how many were"
        " delivered, delayed or dropped where. The table has the same numbers."
    )


def edge_rows(edges: Sequence[Edge]) -> list[Row]:
    """The rows of ``estate_edges``."""
    return [asdict(edge) for edge in edges]


def stop_rows(stops: Sequence[Stop]) -> list[Row]:
    """The rows of ``estate_stops``."""
    return [asdict(stop) for stop in stops]


def _data(network: Network, layout: Layout, drawn: Sequence[Way], largest: int) -> list[Row]:
    nodes = [_node_row(node, layout, network.titles) for node in network.nodes]
    width = f"max({THINNEST}, {THICKEST} * sqrt(datum.messages / {largest}))"
    way = "datum.source + ' ' + datum.target + ' ' + datum.outcome"
    ends = "(datum.target ? datum.from + ' → ' + datum.to : datum.from)"
    delivered = [
        {"type": "filter", "expr": "datum.outcome === 'DELIVERED'"},
        {
            "type": "aggregate",
            "groupby": ["target", "outcome"],
            "ops": ["sum"],
            "fields": ["messages"],
            "as": ["messages"],
        },
        {"type": "formula", "expr": "datum.target", "as": "node"},
    ]
    at_place = [
        {"type": "formula", "expr": "datum.node + ' ' + datum.outcome", "as": "place"},
        _lookup("estate_places", "place", ["place"], ["x", "y", "width"]),
        _lookup("estate_nodes", "id", ["node"], ["title"]),
        {"type": "filter", "expr": "isValid(datum.x)"},
        {"type": "formula", "expr": _TOLD, "as": "told"},
        {"type": "formula", "expr": _NUMBER, "as": "number"},
    ]
    return [
        {"name": "estate_nodes", "values": nodes},
        {"name": "estate_ways", "values": [_way_row(way) for way in drawn]},
        {
            "name": "estate_places",
            "values": [
                {"place": f"{mark.node} {mark.outcome}", "x": mark.x, "y": mark.y, "width": mark.width}
                for mark in layout.marks
            ],
        },
        {"name": "estate_legend", "values": _legend_rows(network)},
        {"name": "estate_edges", "values": edge_rows(network.edges)},
        {"name": "estate_stops", "values": stop_rows(network.stops)},
        {
            "name": "estate_drawn",
            "source": "estate_edges",
            "transform": [
                {"type": "formula", "expr": way, "as": "way"},
                _lookup("estate_ways", "way", ["way"], _DRAWN),
                {"type": "filter", "expr": "isValid(datum.path)"},
                _lookup("estate_nodes", "id", ["source"], ["title"], ["from"]),
                _lookup("estate_nodes", "id", ["target"], ["title"], ["to"]),
                {"type": "formula", "expr": ends, "as": "title"},
                {"type": "formula", "expr": _TOLD, "as": "told"},
                {"type": "formula", "expr": _NUMBER, "as": "number"},
                {"type": "formula", "expr": width, "as": "thick"},
            ],
        },
        {
            "name": "estate_inside",
            "source": "estate_drawn",
            "transform": [{"type": "filter", "expr": "datum.is_inside"}],
        },
        {
            "name": "estate_across",
            "source": "estate_drawn",
            "transform": [{"type": "filter", "expr": "!datum.is_inside"}],
        },
        {"name": "estate_delivered", "source": "estate_edges", "transform": [*delivered, *at_place]},
        {"name": "estate_stopped", "source": "estate_stops", "transform": at_place},
    ]


def _node_row(node: Node, layout: Layout, titles: Mapping[str, str]) -> Row:
    spot = layout.spots[node.id]
    is_box = node.inside is None
    return {
        "id": node.id,
        "kind": str(node.kind),
        "name": shown_name(node),
        "title": printable(titles[node.id]),
        "x": spot.x,
        "y": spot.y,
        "height": layout.heights[node.id] if is_box else spot.height,
        "middle": spot.middle,
        "name_x": spot.name_x,
        "name_width": spot.name_width,
        "is_box": is_box,
        "is_idle": node.messages == 0,
    }


def _way_row(way: Way) -> Row:
    x, y = way.points[-1]
    row = {
        "way": f"{way.edge.source} {way.edge.target} {way.edge.outcome}",
        "path": way.path,
        "tip_x": round(x, 1),
        "tip_y": round(y, 1),
        "is_inside": way.is_inside,
        "tip_angle": 90 if way.is_rightwards else -90,
    }
    if way.number is not None:
        row |= {"number_x": round(way.number[0], 1), "number_y": round(way.number[1], 1)}
    return row


def _legend_rows(network: Network) -> list[Row]:
    shown = {edge.outcome for edge in network.edges} | {stop.outcome for stop in network.stops}
    rows: list[Row] = []
    x = MARGIN + 8.0
    for outcome in reversed(theme.OUTCOMES):
        if outcome in shown:
            words = outcome.lower().replace("_", " ")
            rows.append({"outcome": outcome, "words": words, "x": x})
            x += 34 + 7 * len(words)
    return rows


def _glyph(outcome: str) -> str:
    return _GLYPHS.get(outcome, _LINE)


def _lookup(source: str, key: str, fields: list[str], values: list[str], names: list[str] | None = None) -> Row:
    return {
        "type": "lookup",
        "from": source,
        "key": key,
        "fields": fields,
        "values": values,
        "as": names or values,
    }


def _scale(name: str, values: Mapping[str, str]) -> Row:
    return {"name": name, "type": "ordinal", "domain": list(values), "range": list(values.values())}


def _of(data: str, kind: str, name: str, **encode: Any) -> Row:
    """A mark for each row of a data set; a screen reader is given the description and the table instead."""
    return {"type": kind, "name": name, "aria": False, "from": {"data": data}, "encode": {"update": encode}}


def _field(name: str, offset: float = 0) -> Row:
    return {"field": name, "offset": offset} if offset else {"field": name}


def _boxes(palette: theme.Palette) -> list[Row]:
    box = _of(
        "estate_nodes",
        "rect",
        "estate_box",
        x=_field("x"),
        y=_field("y"),
        width={"value": BOX},
        height=_field("height"),
        cornerRadius={"value": 7},
        fill={"value": palette.paper},
        stroke={"value": palette.line},
        strokeWidth={"value": 1.5},
        strokeDash={"signal": "datum.kind === 'INSTANCE' ? [] : [4, 3]"},
        opacity={"signal": "datum.is_box ? 1 : 0"},
    )
    return [box]


def _edges(*, inside: bool = False) -> list[Row]:
    """Curves and their tips: those between boxes lie beneath the boxes, those inside of one above."""
    data = "estate_inside" if inside else "estate_across"
    colour = {"scale": "colour", "field": "outcome"}
    curve = _of(
        data,
        "path",
        f"{data}_curve",
        path=_field("path"),
        stroke=colour,
        strokeWidth=_field("thick"),
        strokeOpacity={"value": 0.55},
        tooltip=_field("told"),
    )
    tip = _of(
        data,
        "symbol",
        f"{data}_tip",
        x=_field("tip_x"),
        y=_field("tip_y"),
        angle=_field("tip_angle"),
        shape={"value": "triangle"},
        size={"signal": "40 + 14 * datum.thick"},
        fill=colour,
        tooltip=_field("told"),
    )
    return [curve, tip]


def _numbers(palette: theme.Palette) -> list[Row]:
    """The numbers on the curves, each with what lies beneath left clear around it."""
    number = {
        "x": _field("number_x"),
        "y": _field("number_y"),
        "text": {"signal": "isValid(datum.number_x) ? datum.number : ''"},
        "align": {"value": "center"},
        "baseline": {"value": "middle"},
        "fontSize": {"value": 12},
        "tooltip": _field("told"),
    }
    halo = {"stroke": {"value": palette.paper}, "strokeWidth": {"value": 4}, "strokeJoin": {"value": "round"}}
    return [
        _of("estate_across", "text", "estate_halo", **number, **halo),
        _of("estate_across", "text", "estate_number", **number),
    ]


def _names(palette: theme.Palette) -> list[Row]:
    ink = f"datum.is_idle || datum.kind === 'ADDRESS' ? '{palette.soft}' : '{palette.ink}'"
    return [
        _of(
            "estate_nodes",
            "text",
            "estate_name",
            x=_field("name_x"),
            y=_field("middle"),
            text=_field("name"),
            limit=_field("name_width"),
            ellipsis={"value": "…"},
            baseline={"value": "middle"},
            fontSize={"value": 12.5},
            fontWeight={"signal": "datum.kind === 'INSTANCE' ? 600 : 400"},
            fill={"signal": ink},
            tooltip=_field("title"),
        )
    ]


def _marks() -> list[Row]:
    return [mark for data in ("estate_delivered", "estate_stopped") for mark in _mark(data)]


def _mark(data: str) -> list[Row]:
    colour = {"scale": "colour", "field": "outcome"}
    place = {"y": _field("y"), "tooltip": _field("told")}
    return [
        _of(
            data,
            "rect",
            f"{data}_pill",
            x=_field("x"),
            width=_field("width"),
            yc=_field("y"),
            height={"value": 17},
            cornerRadius={"value": 8.5},
            fill=colour,
            fillOpacity={"value": 0 if data == "estate_delivered" else 0.2},
            tooltip=_field("told"),
        ),
        _of(
            data,
            "symbol",
            f"{data}_glyph",
            x=_field("x", 10),
            shape={"scale": "glyph", "field": "outcome"},
            size={"value": 80},
            fill=colour,
            **place,
        ),
        _of(
            data,
            "text",
            f"{data}_number",
            x={"signal": "datum.x + datum.width - 6"},
            align={"value": "right"},
            baseline={"value": "middle"},
            text=_field("number"),
            fontSize={"value": 12},
            **place,
        ),
    ]


def _legend() -> list[Row]:
    y = {"value": LEGEND / 2}
    return [
        _of(
            "estate_legend",
            "symbol",
            "estate_legend_glyph",
            x=_field("x"),
            y=y,
            shape={"scale": "glyph", "field": "outcome"},
            size={"value": 100},
            fill={"scale": "colour", "field": "outcome"},
        ),
        _of(
            "estate_legend",
            "text",
            "estate_legend_words",
            x=_field("x", 12),
            y=y,
            text=_field("words"),
            baseline={"value": "middle"},
            fontSize={"value": 12},
        ),
    ]
