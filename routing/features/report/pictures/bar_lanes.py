"""Horizontal bars, one lane each: the name above its bar and the number at its end, on a phone and on a wall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from routing.features.report.pictures import theme

STEP = 40
"""Pixels from lane to lane; what stands in a lane is placed by pixels from its middle."""
ABOVE, BELOW = -9, 9
THICK = 11
MESSAGES = alt.Tooltip("messages:Q", format=",")

_CUT = " (bar not to scale)"
_PALER = alt.condition("datum.others", alt.value(0.5), alt.value(1))

Row = Mapping[str, Any]
Cut = Literal["start", "end"]
"""Where a long name is cut: names of services often begin alike."""


def on_lanes(rows: Sequence[Row]) -> alt.Chart:
    """Return a chart over the data set ``rows`` with a lane for each ``place``, in the order of the rows."""
    # What tells lanes apart is their number: names come from the data and may look alike.
    lane = alt.Y("place:O", axis=None, sort=None, scale=alt.Scale(paddingInner=0, paddingOuter=0))
    return alt.Chart(theme.named(rows)).encode(y=lane)


def measured(lanes: alt.Chart, field: str, name: str) -> alt.Chart:
    """Return lanes with ``length``, which is the field's value, and ``label``, the name that stands above the bar.

    All others together may dwarf the largest lane: their bar is then as long as that one's, its parts in
    proportion, and its label says so.
    """
    lane_length = "datum.others ? 0 : datum.whole"
    is_cut = "datum.others && datum.largest > 0 && datum.whole > datum.largest"
    return (
        lanes.transform_joinaggregate(whole=f"sum({field})", groupby=["place"])
        .transform_calculate(own=lane_length)
        .transform_joinaggregate(largest="max(own)")
        .transform_calculate(is_cut=is_cut)
        .transform_calculate(
            length=f"datum.is_cut ? datum.{field} * datum.largest / datum.whole : datum.{field}",
            label=f"datum.{name} + (datum.is_cut ? '{_CUT}' : '')",
        )
    )


def bars(lanes: alt.Chart, field: str, room: int | str, style: str = "bar") -> alt.Chart:
    """Return a bar for each lane, as long as the field says; ``room`` pixels are left beside the longest.

    That of all others together is paler. ``style`` is one of the theme's.
    """
    mark_def = alt.MarkDef(type="bar", height=THICK, yOffset=BELOW, style=style)
    longest = alt.ExprRef(f"max(60, width - ({room}))")
    along = alt.X(f"{field}:Q", axis=None, scale=alt.Scale(nice=False, zero=True, rangeMax=longest))
    return marked(lanes, mark_def).encode(x=along, opacity=_PALER)


def names(lanes: alt.Chart, field: str, room: int = 0, cut: Cut = "end", dy: int = ABOVE) -> alt.Chart:
    """Return the name of each lane above its bar, cut at the picture's width less ``room`` pixels."""
    limit = alt.ExprRef(f"max(40, width - {room})")
    # Nothing else depends on the direction: the browser writes each letter as it is written.
    mark_def = alt.MarkDef(type="text", style="name", dy=dy, limit=limit, dir="rtl" if cut == "start" else "ltr")
    return marked(lanes, mark_def).encode(x=alt.value(0), text=f"{field}:N")


def numbers(lanes: alt.Chart, words: str, end: str) -> alt.Chart:
    """Draw an expression's text beside each lane's bar, which ends where ``end`` says."""
    written = lanes.transform_calculate(words=words, end=end)
    mark_def = alt.MarkDef(type="text", style="number", dy=BELOW, dx=6)
    return marked(written, mark_def).encode(x="end:Q", text="words:N")


def dressed(layers: Sequence[alt.Chart], description: str, step: int = STEP) -> theme.Picture:
    """Return the layers as one picture, as high as its lanes are many."""
    return theme.dressed(alt.layer(*layers).properties(height=alt.Step(step)), description)


def marked(lanes: alt.Chart, mark_def: alt.MarkDef) -> alt.Chart:
    """Return the lanes with a mark whose properties may be expressions, which ``mark_…`` do not all take."""
    copied = lanes.copy()
    copied.mark = mark_def
    return copied
