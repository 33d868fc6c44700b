"""Draw the estate: instances as boxes that hold their databases, messages as curves between them.

A Vega specification, not Vega-Lite: places are computed here and the same each time, Vega draws. The page replaces
the data sets ``estate_edges`` and ``estate_stops``; places stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import vl_convert

from routing.render.wording import printable
from routing.terms import JsonObject, Outcome, TableRow
from routing.views.page.facts import Report
from routing.views.page.pictures import estate_marks, picture_theme
from routing.views.page.pictures.estate_layout import MARGIN, NodeLayout, lay_out, shown_name
from routing.views.page.pictures.estate_marks import MOST, EdgeCurve, curves_of
from routing.views.page.report_network import (
    NetworkEdge,
    NetworkNode,
    NetworkStop,
    NodeKind,
    ReportNetwork,
    network_of,
)

THINNEST, THICKEST = 1.25, 9
_FEW = 50
"""So many messages are no thick line, even where none is thicker."""
_CURVED = ["path", "is_inside", "tip_x", "tip_y", "tip_angle", "number_x", "number_y"]
# Vega's word, and no text of it is from outside.
_EXPRESSION = "expr"


def estate(network: ReportNetwork, palette: picture_theme.PicturePalette = picture_theme.LIGHT) -> TableRow:
    """Return the picture of a network as Vega draws it.

    Data sets that the page may replace: ``estate_edges`` with rows source, target (ids of nodes), outcome,
    messages (`edge_rows`); ``estate_stops`` with rows node, outcome, messages (`stop_rows`). What the whole
    picture has no place for is not drawn: edges that are not among its `MOST` largest, and ends that are new.
    """
    layout = lay_out(network)
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "description": description(network),
        "background": palette.paper,
        "width": layout.width,
        "height": layout.height,
        "padding": 0,
        "autosize": "none",
        "config": {"text": {"font": picture_theme.FONT, "fill": palette.ink}},
        "data": [*_places(network, layout), *_messages(network)],
        "scales": estate_marks.scales(palette),
        "marks": estate_marks.drawn(palette),
    }


def description(network: ReportNetwork) -> str:
    """Describe the picture for screen readers."""
    kinds = [node.kind for node in network.nodes]
    words = {
        NodeKind.INSTANCE: ("instance", "instances"),
        NodeKind.DATABASE: ("database", "databases"),
        NodeKind.ADDRESS: ("address outside", "addresses outside"),
    }
    counts = ((kinds.count(kind), *names) for kind, names in words.items())
    counted = ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counts)
    return (
        f"The estate: {counted}. Curves are messages between them by outcome; marks say how many were delivered,"
        " delayed or dropped where. The table has the same numbers."
    )


def edge_rows(edges: Sequence[NetworkEdge]) -> list[TableRow]:
    """Return the rows of ``estate_edges``: one for each curve, with its points, colour and tip."""
    return [asdict(edge) for edge in edges]


def stop_rows(stops: Sequence[NetworkStop]) -> list[TableRow]:
    """Return the rows of ``estate_stops``: one for each mark of messages that stop at a node."""
    return [asdict(stop) for stop in stops]


def _places(network: ReportNetwork, layout: NodeLayout) -> list[TableRow]:
    """Return the data sets that stay: nodes, boxes, curves, the room for marks, the legend."""
    titles = network.titles
    nodes = [_node_row(node, layout, titles) for node in network.nodes]
    rooms = [
        {"room": f"{one.node} {one.outcome}", "x": one.x, "y": one.y, "width": one.width} for one in layout.marks
    ]
    return [
        {"name": "estate_nodes", "values": nodes},
        {"name": "estate_boxes", "values": [row for row in nodes if row["id"] in layout.heights]},
        {"name": "estate_ways", "values": [_way_row(curve) for curve in curves_of(network.edges, layout)]},
        {"name": "estate_rooms", "values": rooms},
        {"name": "estate_legend", "values": _legend_rows(network)},
    ]


def _node_row(node: NetworkNode, layout: NodeLayout, titles: Mapping[str, str]) -> TableRow:
    spot = layout.spots[node.id]
    return {
        "id": node.id,
        "box": node.inside or node.id,
        "kind": str(node.kind),
        "name": shown_name(node, spot.name_width),
        "title": printable(titles[node.id]),
        "told": _tooltip(node, printable(titles[node.id])),
        "x": spot.x,
        "y": spot.y,
        "height": layout.heights.get(node.id, spot.height),
        "middle": spot.middle,
        "name_x": spot.name_x,
        "name_width": spot.name_width,
    }


def _tooltip(node: NetworkNode, title: str) -> str:
    """Write the tip of a node."""
    words = {
        NodeKind.INSTANCE: f"instance {title}",
        NodeKind.DATABASE: f"database {title}",
        NodeKind.ADDRESS: f"{title}, the address of no known instance, or of several",
    }
    return words.get(node.kind, title) + (f", and {node.folded:,} of its databases" if node.folded else "")


def _way_row(curve: EdgeCurve) -> TableRow:
    (tip_x, tip_y), (number_x, number_y) = curve.points[-1], curve.number or (None, None)
    return {
        "way": f"{curve.edge.source} {curve.edge.target} {curve.edge.outcome}",
        "path": curve.path,
        "is_inside": curve.is_inside,
        "tip_x": tip_x,
        "tip_y": tip_y,
        "tip_angle": 90 if curve.is_rightwards else -90,
        "number_x": number_x,
        "number_y": number_y,
    }


def _legend_rows(network: ReportNetwork) -> list[TableRow]:
    """List the legend from left to right; last, where edges are left out, the note that says so."""
    shown = {edge.outcome for edge in network.edges} | {stop.outcome for stop in network.stops}
    rows: list[TableRow] = []
    x = MARGIN + 12.0
    for outcome in reversed(picture_theme.OUTCOMES):
        if outcome in shown:
            words = outcome.lower().replace("_", " ")
            rows.append({"outcome": outcome, "words": words, "x": x})
            x += 38 + 7 * len(words)
    if len(network.edges) > MOST:
        rows.append({"outcome": None, "words": f"the {MOST} largest of {len(network.edges):,} curves", "x": x})
    return rows


def _messages(network: ReportNetwork) -> list[TableRow]:
    """Return the data sets that the page may replace, and what is drawn of them where there is a place for it."""
    largest = max([_FEW, *(edge.messages for edge in network.edges)])
    return [
        {"name": "estate_edges", "values": edge_rows(network.edges)},
        {"name": "estate_stops", "values": stop_rows(network.stops)},
        _derived("estate_drawn", "estate_edges", *_curved(largest)),
        _derived("estate_inside", "estate_drawn", _only("datum.is_inside")),
        _derived("estate_across", "estate_drawn", _only("!datum.is_inside")),
        _derived("estate_delivered", "estate_edges", *_delivered(), *_ended()),
        _derived("estate_stopped", "estate_stops", *_ended()),
        *_touched(),
    ]


def _touched() -> list[TableRow]:
    """Return the nodes; ``is_idle`` where no message begins, ends or stops, nor at a database of an instance."""
    ends = {"type": "fold", "fields": ["source", "target"], "as": ["end", "id"]}
    return [
        _derived("estate_ends", "estate_edges", ends),
        _derived("estate_stays", "estate_stops", _formula("id", "datum.node")),
        _derived(
            "estate_touched",
            ["estate_ends", "estate_stays"],
            _lookup("estate_nodes", "id", "id", ["box"], ["box"]),
        ),
        _derived(
            "estate_names",
            "estate_nodes",
            _lookup("estate_touched", "id", "id", ["id"], ["itself"]),
            _lookup("estate_touched", "box", "id", ["id"], ["within"]),
            _formula("is_idle", "!isValid(datum.itself) && !isValid(datum.within)"),
        ),
    ]


def _curved(largest: int) -> list[TableRow]:
    """Return an edge's curve, as wide as its messages are many; twice as wide is four times as many."""
    return [
        _formula("way", "datum.source + ' ' + datum.target + ' ' + datum.outcome"),
        _lookup("estate_ways", "way", "way", _CURVED, _CURVED),
        _only("isValid(datum.path)"),
        _lookup("estate_nodes", "id", "source", ["title"], ["from"]),
        _lookup("estate_nodes", "id", "target", ["title"], ["to"]),
        _formula("title", "datum.from + ' → ' + datum.to"),
        _formula("thick", f"max({THINNEST}, {THICKEST} * sqrt(datum.messages / {largest}))"),
        *_worded(),
    ]


def _delivered() -> list[TableRow]:
    """Sum the messages delivered at each node, from wherever."""
    summed = {"ops": ["sum"], "fields": ["messages"], "as": ["messages"]}
    return [
        _only(f"datum.outcome === '{Outcome.DELIVERED}'"),
        {"type": "aggregate", "groupby": ["target", "outcome"], **summed},
        _formula("node", "datum.target"),
    ]


def _ended() -> list[TableRow]:
    """Return the room of what ended at a node."""
    room = ["x", "y", "width"]
    return [
        _formula("room", "datum.node + ' ' + datum.outcome"),
        _lookup("estate_rooms", "room", "room", room, room),
        _only("isValid(datum.x)"),
        _lookup("estate_nodes", "id", "node", ["title"], ["title"]),
        *_worded(),
    ]


def _worded() -> list[TableRow]:
    """Return the number as it is written, and its tip."""
    outcome = "lower(replace(datum.outcome, '_', ' '))"
    return [
        _formula("number", "format(datum.messages, datum.messages < 1e5 ? ',' : '.3s')"),
        _formula("told", f"datum.title + ': ' + format(datum.messages, ',') + ' ' + {outcome}"),
    ]


def _derived(name: str, source: str | list[str], *steps: TableRow) -> TableRow:
    return {"name": name, "source": source, "transform": list(steps)}


def _formula(name: str, formula: str) -> TableRow:
    return {"type": "formula", "as": name, _EXPRESSION: formula}


def _only(condition: str) -> TableRow:
    return {"type": "filter", _EXPRESSION: condition}


def _lookup(source: str, key: str, field: str, values: Sequence[str], names: Sequence[str]) -> TableRow:
    return {"type": "lookup", "from": source, "key": key, "fields": [field], "values": values, "as": names}


# The estate as a picture for notebooks: what Vega draws, as an image.


# For screens that have twice the pixels.
_SCALE = 2


@dataclass(frozen=True)
class DrawnPicture:
    """A specification of Vega that a notebook shows as PNG, drawn here without a network."""

    spec: JsonObject

    def _repr_png_(self) -> tuple[bytes, JsonObject]:
        """Return the image for IPython, and the size at which to show it."""
        drawn = vl_convert.vega_to_png(dict(self.spec), scale=_SCALE)
        return drawn, {name: self.spec[name] for name in ("width", "height")}


def estate_of(report: Report) -> DrawnPicture:
    """Draw instances and databases as nodes, messages between them by outcome, and where messages stop."""
    return DrawnPicture(estate(network_of(report.flows, report.places)))
