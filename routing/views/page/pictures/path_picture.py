"""Draw the path of one message from instance to instance, and the path of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import altair as alt

from routing.terms import LEAVES, NOT_KNOWN, ReadRow
from routing.views.page.facts import STUCK
from routing.views.page.pictures import bar_pictures, picture_theme

if TYPE_CHECKING:
    from routing.views.trace.tracing import TraceResult

WAYS = 6
STATIONS = 6
_STEP = 120
"""The distance between paths in pixels: a head, the instances, the line with its stations, and the events below.
"""
_HEAD, _ABOVE, _LINE, _BELOW = -46, -22, 0, 20
_EDGE = 100
_HEADS = {"THERE": "There", "BACK": "And back"}


def followed(done: TraceResult) -> picture_theme.Picture:
    """Draw lines from left to right: the instances that a message passes, and those of the answer back.

    The first `WAYS` paths are drawn, each with its first `STATIONS` stations and the number of further ones. The
    data set ``rows`` has these columns, and is ordered by the first three: place (number of the path from 0),
    head, at (number of the station from 0), instance, below (the event there), route (the next one, or None),
    outcome, is_stuck.
    """
    rows = station_rows(done.way_rows, done.hop_rows)
    last = max([1, *(row["at"] for row in rows)])
    room = (picture_theme.WIDTH - 2 * _EDGE) / last
    scale = alt.Scale(domain=[0, last], range=[_EDGE, picture_theme.WIDTH - _EDGE], nice=False)
    base = bar_pictures.on_lanes(rows).encode(x=alt.X("at:Q", axis=None, scale=scale))
    layers = [*_lines(base, room), *_stations(base), *_words(base, room)]
    words = "Lines from left to right: the stations of a message, and those of the answer back."
    return picture_theme.dressed(alt.layer(*layers).properties(height=alt.Step(_STEP)), words)


def station_rows(way_rows: Iterable[ReadRow], hops: Iterable[ReadRow]) -> list[ReadRow]:
    """Return the rows of `followed`, from rows of `TRACED_WAYS` and `TRACED_HOPS` (`result_schemas`)."""
    stations = {key: list(hop_rows) for key, hop_rows in groupby(hops, key=_way_key)}
    all_rows = list(way_rows)
    return [
        {"place": place, "head": _head(way_row, all_rows), "at": at, **station}
        for place, way_row in enumerate(all_rows[:WAYS])
        for at, station in enumerate(_cut(list(_stations_of(way_row, stations.get(_way_key(way_row), [])))))
    ]


def _way_key(row: ReadRow) -> tuple[int, str, int]:
    return row["path"], row["direction"], row["way"]


def _head(way_row: ReadRow, way_rows: Sequence[ReadRow]) -> str:
    same_direction = [row for row in way_rows if row["direction"] == way_row["direction"]]
    if len(same_direction) == 1:
        return _HEADS[way_row["direction"]]
    return f"{_HEADS[way_row['direction']]}, path {same_direction.index(way_row) + 1} of {len(same_direction)}"


def _stations_of(way_row: ReadRow, hops: Sequence[ReadRow]) -> Iterator[ReadRow]:
    for hop in hops:
        goes_on = hop["outcome"] in LEAVES
        yield {
            "instance": picture_theme.drawn_text(hop["instance_name"]),
            "below": picture_theme.drawn_text(hop["scope"]) if goes_on else _end(way_row),
            "route": picture_theme.drawn_text(hop["route_name"] or "") if goes_on else None,
            "outcome": hop["outcome"],
            "is_stuck": hop["outcome"] in STUCK,
        }
    if not hops or hops[-1]["outcome"] in LEAVES:
        # The next instance is unknown, or the message has been there before.
        place = picture_theme.drawn_text(way_row["instance_name"] or way_row["address"] or "")
        end = {"instance": place, "below": way_row["outcome"], "route": None, "outcome": NOT_KNOWN}
        yield {**end, "is_stuck": False}


def _end(way_row: ReadRow) -> str:
    if way_row["outcome"] in STUCK:
        return f"{way_row['outcome']}\n{way_row['reason']}"
    return f"{way_row['outcome']}\nto {picture_theme.drawn_text(way_row['database_name'] or '')}"


def _cut(stations: list[ReadRow]) -> list[ReadRow]:
    """Return the stations to draw. If some are left out, the last one has their number."""
    if len(stations) <= STATIONS:
        return stations
    hidden_count = len(stations) - STATIONS + 1
    return [
        *stations[: STATIONS - 1],
        {**stations[-1], "instance": f"{hidden_count} more, to {stations[-1]['instance']}"},
    ]


def _lines(base: alt.Chart, room: float) -> list[alt.Chart]:
    outgoing = base.transform_filter("datum.route !== null")
    outgoing = outgoing.transform_calculate(next="datum.at + 1", middle="datum.at + 0.5")
    line = bar_pictures.marked(outgoing, alt.MarkDef(type="rule", style="base", yOffset=_LINE))
    arrow = alt.MarkDef(
        type="point", shape="triangle-right", size=70, filled=True, opacity=1, xOffset=-14, yOffset=_LINE
    )
    name = alt.MarkDef(type="text", style="number", align="center", dy=_LINE - 11, limit=room - 60)
    return [
        line.encode(x2="next:Q"),
        bar_pictures.marked(outgoing, arrow).encode(x=alt.X("next:Q", axis=None)),
        bar_pictures.marked(outgoing, name).encode(x=alt.X("middle:Q", axis=None), text="route:N"),
    ]


def _stations(base: alt.Chart) -> list[alt.Chart]:
    disc = alt.MarkDef(type="point", filled=True, opacity=1, size=190, yOffset=_LINE)
    cross = alt.MarkDef(type="point", filled=True, opacity=1, size=260, yOffset=_LINE, shape="cross", angle=45)
    colour = picture_theme.outcome_colour()
    return [
        bar_pictures.marked(base.transform_filter("!datum.is_stuck"), disc).encode(color=colour),
        bar_pictures.marked(base.transform_filter("datum.is_stuck"), cross).encode(color=colour),
    ]


def _words(base: alt.Chart, room: float) -> list[alt.Chart]:
    head = alt.MarkDef(type="text", style="number", align="left", dy=_HEAD)
    above = alt.MarkDef(type="text", style="name", align="center", dy=_ABOVE, limit=room - 10)
    # A reason is longer than the room of many stations. The text at the last one is short.
    wide = max(room - 10, 2 * _EDGE - 20)
    below = alt.MarkDef(type="text", style="number", align="center", dy=_BELOW, limit=wide, lineBreak="\n")
    return [
        bar_pictures.marked(base.transform_filter("datum.at == 0"), head).encode(x=alt.value(0), text="head:N"),
        bar_pictures.marked(base, above).encode(text="instance:N"),
        bar_pictures.marked(base, below).encode(text="below:N"),
    ]
