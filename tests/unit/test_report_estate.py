"""The estate as a picture: where boxes stand, what is drawn, and that data stays data."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
import vl_convert

from routing.views.page.facts import EstateInstance, MessageFlow
from routing.views.page.pictures import picture_theme
from routing.views.page.pictures.estate_layout import BOX, arrange, lay_out
from routing.views.page.pictures.estate_marks import MOST, curves_of
from routing.views.page.pictures.estate_picture import edge_rows, estate, stop_rows
from routing.views.page.report_network import ReportNetwork, network_of
from tests.hostile import NAMES
from tests.unit.test_report_network import FLOWS, HUB, SPOKE, crowd, flow

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("weights", "columns"),
    [
        ({}, [["a", "b", "c"]]),
        ({("a", "b"): 9}, [["a", "c"], ["b"]]),
        ({("b", "a"): 9}, [["b"], ["a", "c"]]),
        # As far as it goes, to the right.
        ({("a", "b"): 9, ("b", "c"): 9}, [["a"], ["b"], ["c"]]),
        ({("c", "b"): 9, ("b", "a"): 9}, [["c"], ["b"], ["a"]]),
        # There and back: the larger part goes to the right.
        ({("a", "b"): 9, ("b", "a"): 4}, [["a", "c"], ["b"]]),
        ({("a", "b"): 4, ("b", "a"): 9}, [["b"], ["a", "c"]]),
        # From the middle to both sides is no further than to one.
        ({("a", "b"): 9, ("a", "c"): 9}, [["a"], ["b", "c"]]),
    ],
)
def test_the_main_flow_goes_to_the_right(weights: Mapping[tuple[str, str], int], columns: list[list[str]]) -> None:
    found = arrange({"a": 60.0, "b": 60.0, "c": 60.0}, weights)
    assert [sorted(column) for column in found] == columns


def test_boxes_of_a_column_stand_beside_what_they_are_tied_to() -> None:
    heights = dict.fromkeys(("a", "b", "c", "x", "y", "z"), 60.0)
    left, right = arrange(heights, {("a", "z"): 9, ("b", "y"): 9, ("c", "x"): 9})
    assert [("abc".index(box), "zyx".index(other)) for box, other in zip(left, right, strict=True)] in (
        [(0, 0), (1, 1), (2, 2)],
        [(2, 2), (1, 1), (0, 0)],
    )


def drawn(picture: Mapping[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(vl_convert.vega_to_svg(json.dumps(picture)))


def texts(svg: ElementTree.Element, mark: str) -> list[str]:
    """What stands in the marks of a name, in order; nothing is no text."""
    groups = [one for one in svg.iter(f"{SVG}g") if mark in one.get("class", "").split()]
    assert len(groups) == 1
    return [one.text for one in groups[0].iter(f"{SVG}text") if one.text]


def faint(svg: ElementTree.Element) -> list[str]:
    """The names that stand back."""
    found = [one for one in svg.iter(f"{SVG}text") if one.text and one.get("fill") == picture_theme.LIGHT.soft]
    return sorted(one.text or "" for one in found)


def replaced(picture: Mapping[str, Any], **rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The picture with other rows in its data sets, as the page's filter has it."""
    data = [{**one, "values": rows[one["name"]]} if one["name"] in rows else one for one in picture["data"]]
    assert {one["name"] for one in data} >= set(rows)
    return {**picture, "data": data}


def test_what_is_drawn() -> None:
    svg = drawn(estate(network_of(FLOWS, (HUB, SPOKE))))
    assert sorted(texts(svg, "estate_name")) == ["Pay", "Shop", "Stock", "far:4022", "hub", "spoke"]
    # Between boxes; what is delivered inside of one has its number beside the name.
    assert sorted(texts(svg, "estate_number")) == ["120", "5"]
    assert sorted(texts(svg, "estate_delivered_number")) == ["110", "50"]
    assert sorted(texts(svg, "estate_stopped_number")) == ["3", "7"]
    assert texts(svg, "estate_legend_words") == ["delivered", "sent", "delayed", "dropped"]


def test_numbers_are_short() -> None:
    flows = [flow("hub/Shop", "SENT", f"tcp://far{n}:1", n) for n in (1_204, 99_999, 1_234_567)]
    assert sorted(texts(drawn(estate(network_of(flows, ()))), "estate_number")) == ["1,204", "1.23M", "99,999"]


def test_the_page_replaces_messages_and_places_stay() -> None:
    network = network_of(FLOWS, (HUB, SPOKE))
    part = network_of([FLOWS[1], FLOWS[3]], (HUB, SPOKE))
    titles = {title: node for node, title in network.titles.items()}
    edges = [{"source": titles["hub.Shop"], "target": titles["spoke"], "outcome": "SENT", "messages": 20}]
    stops = [{"node": titles["spoke"], "outcome": "DROPPED", "messages": 2}]
    assert (len(part.edges), len(part.stops)) == (1, 1)
    picture = estate(network)
    svg = drawn(replaced(picture, estate_edges=edges, estate_stops=stops))
    assert texts(svg, "estate_name") == texts(drawn(picture), "estate_name")
    assert texts(svg, "estate_number") == ["20"]
    assert texts(svg, "estate_delivered_number") == []
    assert texts(svg, "estate_stopped_number") == ["2"]
    # Where no message is any more stands back, as what is outside always does.
    assert faint(drawn(picture)) == ["far:4022"]
    assert faint(svg) == ["Pay", "Stock", "far:4022"]
    # What there is no place for is left out, and nothing else with it.
    strange = [*edges, {"source": "n00", "target": "n00", "outcome": "FORWARDED", "messages": 9}]
    assert texts(drawn(replaced(picture, estate_edges=strange)), "estate_number") == ["20"]


def test_rows_for_the_page() -> None:
    network = network_of(FLOWS[2:4], ())
    spoke, pay = network.ends_of(FLOWS[2])
    assert edge_rows(network.edges) == [{"source": spoke, "target": pay, "outcome": "DELIVERED", "messages": 110}]
    assert stop_rows(network.stops) == [{"node": spoke, "outcome": "DROPPED", "messages": 3}]


def test_any_name_stays_text() -> None:
    """Long names are cut, and whole where the mouse tells them; nothing of a name becomes an element."""
    flows = [flow("hub/Shop", "DELIVERED", name) for name in NAMES]
    picture = estate(network_of(flows, [EstateInstance(name, (), ()) for name in NAMES]))
    svg = drawn(picture)
    assert {one.tag.removeprefix(SVG) for one in svg.iter()} <= {
        "svg",
        "g",
        "path",
        "text",
        "rect",
        "defs",
        "clipPath",
    }
    shown = texts(svg, "estate_name")
    assert sum(text.endswith("…") for text in shown) >= 2
    assert any(text.startswith("\U0001f600\u00e9\u5b57\u00df\U0001f600") and text.endswith("…") for text in shown)
    assert "[red]a[/red] [link=x] <b>b</b> &amp; <![CDATA[c]]> <script> :smile:" not in shown
    nodes = next(one["values"] for one in picture["data"] if one["name"] == "estate_nodes")
    told = "database hub.[red]a[/red] [link=x] <b>b</b> &amp; <![CDATA[c]]> <script> :smile:"
    assert told in [row["told"] for row in nodes]
    assert "\x1b" not in json.dumps(nodes, ensure_ascii=False)


def big() -> ReportNetwork:
    """A hundred instances, with all that can end in one."""
    flows, places = crowd(100)
    more = [
        flow(f"i{n:03d}", outcome, None, 99_999)
        for n in range(9)
        for outcome in ("DELAYED", "DROPPED", "NOT_KNOWN", "DELIVERED")
    ]
    return network_of([*flows, *more], places)


def everybody() -> ReportNetwork:
    """Twelve instances whose databases all send to each other, and a little from elsewhere."""
    sides = range(12)
    pairs = [(one, two) for one in sides for two in sides if one != two]
    sent = [flow(f"i{one}/Db", "SENT", f"tcp://i{two}:1", 99_999 - 100 * one - two) for one, two in pairs]
    passed_on = [flow(f"i{one}", "SENT", f"tcp://i{two}:1", 1) for one, two in pairs]
    return network_of(
        sent + passed_on, [EstateInstance(f"i{one}", (f"tcp://i{one}:1",), ("Db",)) for one in sides]
    )


@pytest.mark.parametrize("network", [network_of(FLOWS, (HUB, SPOKE)), network_of(*crowd(20)), big(), everybody()])
def test_nothing_covers_another(network: ReportNetwork) -> None:
    """Boxes are apart, rows lie one below the other in their box, marks and numbers in the picture."""
    layout = lay_out(network)
    boxes = [(layout.spots[box], height) for box, height in layout.heights.items()]
    for (one, height), (two, other) in combinations(boxes, 2):
        assert one.x != two.x or one.y + height < two.y or two.y + other < one.y
        assert one.x == two.x or abs(one.x - two.x) > BOX
    rows = sorted((spot.box, spot.y, spot.y + spot.height) for spot in layout.spots.values())
    assert all(one[0] != two[0] or one[2] <= two[1] for one, two in pairwise(rows))
    for mark in layout.marks:
        spot = layout.spots[mark.node]
        assert spot.x <= mark.x
        assert mark.x + mark.width <= spot.x + BOX
        assert spot.y <= mark.y - 8 < mark.y + 8 <= spot.y + spot.height
    for left, right in pairwise(sorted(layout.marks, key=lambda one: (one.node, one.y, one.x))):
        assert (left.node, left.y) != (right.node, right.y) or left.x + left.width < right.x
    numbers = [
        (*way.number, 3.5 * len(f"{way.edge.messages:,}"))
        for way in curves_of(network.edges, layout)
        if way.number is not None
    ]
    assert numbers
    for x, y, half in numbers:
        assert 0 < x - half < x + half < layout.width
        assert 7 < y < layout.height - 7
        assert not any(s.x - half < x < s.x + BOX + half and s.y < y < s.y + height for s, height in boxes)
    for (one_x, one_y, half), (two_x, two_y, other) in combinations(numbers, 2):
        assert abs(one_y - two_y) >= 14 or abs(one_x - two_x) >= half + other


def test_the_order_of_what_is_given_does_not_matter() -> None:
    flows, places = crowd(40)
    once = estate(network_of(flows, places))
    random.Random(1).shuffle(flows)
    random.Random(2).shuffle(places)
    assert estate(network_of(flows, places)) == once


def test_more_curves_than_one_can_see_are_not_drawn() -> None:
    """The picture says so."""
    network = everybody()
    assert (len(network.edges), MOST) == (264, 160)
    picture = estate(network)
    svg = drawn(picture)
    assert texts(svg, "estate_legend_words") == ["sent", "the 160 largest of 264 curves"]
    curves = [one for one in svg.iter(f"{SVG}g") if one.get("class", "").endswith("_curve")]
    assert sum(len(list(one.iter(f"{SVG}path"))) for one in curves) == 160


def test_colours_are_those_of_the_palette() -> None:
    network = network_of(FLOWS, (HUB, SPOKE))
    dark, page = (
        drawn(estate(network, palette)) for palette in (picture_theme.DARK, picture_theme.by_style_sheet())
    )
    fills = {one.get("fill") for one in dark.iter()} | {one.get("stroke") for one in dark.iter()}
    assert {
        picture_theme.DARK.ink,
        picture_theme.DARK.paper,
        picture_theme.DARK.outcomes["SENT"],
        picture_theme.DARK.outcomes["DROPPED"],
    } <= fills
    assert not set(picture_theme.LIGHT.outcomes.values()) & fills
    assert all(one.get("fill", "var(").startswith(("var(", "none")) for one in page.iter(f"{SVG}text"))


def test_a_screen_reader_is_told_what_the_picture_is() -> None:
    picture = estate(network_of(FLOWS, (HUB, SPOKE)))
    assert picture["description"] == (
        "The estate: 2 instances, 3 databases, 1 address outside. Curves are messages between them by outcome;"
        " marks say how many were delivered, delayed or dropped where. The table has the same numbers."
    )
    assert all(mark["aria"] is False for mark in picture["marks"])


@pytest.mark.parametrize("flows", [[], [flow("hub/Shop", "DELAYED")]])
def test_few_or_none(flows: list[MessageFlow]) -> None:
    png = vl_convert.vega_to_png(json.dumps(estate(network_of(flows, ()))))
    assert png.startswith(b"\x89PNG")
