"""How evenly the dialogs of a service were shared out among broker ids."""

from __future__ import annotations

import altair as alt

from routing.analysis.report.facts import Balance, Pick
from routing.analysis.report.pictures import lanes, theme
from routing.analysis.report.pictures.lanes import Row
from routing.show import printable

PICKS = 20


def balance(shared: Balance) -> theme.Picture:
    """Bars: the dialogs of each broker id, a line where chance lets expect them, a band where 95 of 100 end.

    Of more than `PICKS` ids those furthest from what is expected. Rows of the data set ``rows``: place (number of
    the lane, from 0 on), broker, dialogs, expected, low, high; ids with most dialogs first.
    """
    base = lanes.on_lanes(pick_rows(shared))
    numbers = [alt.Tooltip(f"{name}:Q", format=",.4~r") for name in ("expected", "low", "high")]
    bars = lanes.bars(base, "dialogs", style="plain").encode(
        tooltip=[alt.Tooltip("broker:N"), alt.Tooltip("dialogs:Q", format=","), *numbers]
    )
    tall = lanes.THICK + 8
    band = lanes.marked(base, alt.MarkDef(type="bar", style="fair", height=tall, yOffset=lanes.BELOW))
    line = lanes.marked(base, alt.MarkDef(type="tick", style="expected", size=tall, yOffset=lanes.BELOW))
    named = lanes.names(base, "broker", room=140)
    numbered = lanes.numbers(base, "format(datum.dialogs, ',') + ', fair ' + format(datum.expected, ',.0f')")
    layers = [bars, band.encode(x="low:Q", x2="high:Q"), line.encode(x="expected:Q"), named, numbered]
    words = "Bars: the dialogs of each broker id, with the number that chance lets expect and where 95 of 100 end."
    return lanes.dressed(layers, words)


def pick_rows(shared: Balance) -> list[Row]:
    """The rows of `balance`."""
    picks = sorted(shared.picks, key=lambda pick: (-_distance(pick), pick.broker_instance))[:PICKS]
    picks.sort(key=lambda pick: (-pick.dialogs, pick.broker_instance))
    return [
        {
            "place": place,
            "broker": printable(
                pick.broker_instance if pick.owner is None else f"{pick.owner}, {pick.broker_instance}"
            ),
            "dialogs": pick.dialogs,
            "expected": pick.expected,
            "low": pick.low,
            "high": pick.high,
        }
        for place, pick in enumerate(picks)
    ]


def _distance(pick: Pick) -> float:
    """How far off, in widths of the band."""
    return abs(pick.dialogs - pick.expected) / max(pick.high - pick.low, 1.0)
