"""Horizontal bars, one lane each: the name above its bar and the number at its end, on a phone and on a wall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from routing.analysis.report.pictures import theme

STEP = 40
"""Pixels from lane to lane; what stands in a lane is placed by pixels from its middle."""
ABOVE, BELOW = -9, 9
THICK = 11
MESSAGES = alt.Tooltip("messages:Q", format=",")

Row = Mapping[str, Any]


def on_lanes(rows: Sequence[Row]) -> alt.Chart:
    """A chart over the data set ``rows`` with a lane for each ``place``, in the order of the rows."""
    # What tells lanes apart is their number: names come from the data and may look alike.
    lane = alt.Y("place:O", axis=None, sort=None, scale=alt.Scale(paddingInner=0, paddingOuter=0))
    return alt.Chart(theme.named(rows)).encode(y=lane)


def bars(lanes: alt.Chart, messages: str = "messages", style: str | None = None) -> alt.Chart:
    """A bar a lane, as long as the field says; ``style`` is one of the theme's."""
    along = alt.X(f"{messages}:Q", axis=None, scale=alt.Scale(nice=False, zero=True))
    mark = alt.MarkDef(type="bar", height=THICK, yOffset=BELOW, style=style or "bar")
    return marked(lanes, mark).encode(x=along)


def names(lanes: alt.Chart, field: str, room: int, dy: int = ABOVE) -> alt.Chart:
    """The name of a lane above its bar, cut where it would run into the ``room`` pixels of the number."""
    mark = alt.MarkDef(type="text", style="name", dy=dy, limit=alt.ExprRef(f"max(40, width - {room})"))
    return marked(lanes, mark).encode(x=alt.value(0), text=f"{field}:N")


def numbers(lanes: alt.Chart, words: str, dy: int = ABOVE) -> alt.Chart:
    """What an expression over the lane's row says, at the right end above its bar."""
    written = marked(lanes.transform_calculate(words=words), alt.MarkDef(type="text", style="number", dy=dy))
    return written.encode(x=alt.value("width"), text="words:N")


def dressed(layers: Sequence[alt.Chart], description: str, step: int = STEP) -> theme.Picture:
    """The layers as one picture, as high as its lanes are many."""
    return theme.dressed(alt.layer(*layers).properties(height=alt.Step(step)), description)


def marked(lanes: alt.Chart, mark: alt.MarkDef) -> alt.Chart:
    """The lanes with a mark whose properties may be expressions, which ``mark_…`` do not all take."""
    copied = lanes.copy()
    copied.mark = mark
    return copied
