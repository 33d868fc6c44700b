"""How evenly the dialogs of a service were shared out among broker ids."""

from __future__ import annotations

import altair as alt

from routing.features.report.facts import BalancedInstance, DialogBalance
from routing.features.report.pictures import bar_lanes, theme
from routing.features.report.pictures.bar_lanes import Row
from routing.render.wording import printable

PICKS = 20


def balance(shared: DialogBalance) -> theme.Picture:
    """Draw bars: the dialogs of each broker id, a line at the expected share, a band where 95 of 100 choices end.

    Of more than `PICKS` ids those furthest from what is expected. Rows of the data set ``rows``: place (number of
    the lane, from 0 on), broker (the id and, where known, whose it is), dialogs, expected, low, high.
    """
    base = bar_lanes.on_lanes(pick_rows(shared))
    numbers = [alt.Tooltip(f"{name}:Q", format=",.1f") for name in ("expected", "low", "high")]
    bars = bar_lanes.bars(base, "dialogs", room=120, style="plain").encode(
        tooltip=[alt.Tooltip("broker:N"), alt.Tooltip("dialogs:Q", format=","), *numbers]
    )
    tall = bar_lanes.THICK + 8
    band = bar_lanes.marked(base, alt.MarkDef(type="bar", style="fair", height=tall, yOffset=bar_lanes.BELOW))
    line = bar_lanes.marked(base, alt.MarkDef(type="tick", style="expected", size=tall, yOffset=bar_lanes.BELOW))
    named = bar_lanes.names(base, "broker")
    fair = "format(datum.expected, datum.expected < 100 ? ',.1f' : ',.0f')"
    words = f"format(datum.dialogs, ',') + ', fair ' + {fair}"
    numbered = bar_lanes.numbers(base, words, end="max(datum.dialogs, datum.high)")
    layers = [bars, band.encode(x="low:Q", x2="high:Q"), line.encode(x="expected:Q"), named, numbered]
    what = "Bars: the dialogs of each broker id, with the number that chance lets expect and where 95 of 100 end."
    return bar_lanes.dressed(layers, what)


def pick_rows(shared: DialogBalance) -> list[Row]:
    """Return the rows of `balance`."""
    picks = sorted(shared.picks, key=lambda pick: (-_distance(pick), pick.broker_instance))[:PICKS]
    picks.sort(key=lambda pick: (-pick.dialogs, pick.broker_instance))
    return [
        {
            "place": place,
            "broker": printable(", ".join(filter(None, (pick.broker_instance, pick.owner)))),
            "dialogs": pick.dialogs,
            "expected": pick.expected,
            "low": pick.low,
            "high": pick.high,
        }
        for place, pick in enumerate(picks)
    ]


def _distance(pick: BalancedInstance) -> float:
    """Return the distance from the band, in widths of the band."""
    return abs(pick.dialogs - pick.expected) / max(pick.high - pick.low, 1.0)
