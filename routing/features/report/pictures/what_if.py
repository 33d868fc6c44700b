"""What a change does to messages: before it and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import altair as alt

from routing.features.report.pictures import bar_lanes, theme
from routing.features.report.pictures.bar_lanes import Row
from routing.features.report.pictures.largest import largest

if TYPE_CHECKING:
    from routing.features.diff.diffing import Diff

SERVICES = 10
_STEP = 80
"""Pixels from service to service: a line with its name, a bar before, a bar after."""
_NAME, _BARS = -26, {"before": -4, "after": 18}
_LEFT, _RIGHT = 56, 300
"""Pixels for the words at both ends of a bar."""


def before_and_after(done: Diff) -> theme.Picture:
    """Draw two bars for each service whose messages change: their outcomes before, and after.

    The `SERVICES` with most of them, all others together. Rows of the data set ``rows``: place (number of the
    service, from 0 on), service, side (before or after), outcome, messages, and words (what the whole bar says).
    """
    base = bar_lanes.on_lanes(change_rows(done.keys))
    name = alt.MarkDef(type="text", style="name", dy=_NAME, limit=theme.WIDTH)
    named = bar_lanes.marked(base.transform_aggregate(groupby=["place", "service"]), name)
    layers = [named.encode(x=alt.value(0), text="service:N")]
    for before_or_after, offset in _BARS.items():
        layers += _bar(base.transform_filter(alt.datum.side == before_or_after), before_or_after, offset)
    words = (
        f"Bars, before and after, by outcome: {done.changed:,} of {done.compared:,} messages change,"
        f" {done.worse:,} for the worse."
    )
    return theme.dressed(alt.layer(*layers).properties(height=alt.Step(_STEP)), words)


def change_rows(keys: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the rows of `before_and_after`, from rows of `schemas.KEY_CHANGES`."""
    named = [(f"{key['to_service_name']} on {key['instance_name']}", key) for key in keys]
    largest_places = largest(((name, key["messages"]) for name, key in named), SERVICES, "other services")
    counted: dict[tuple[int, str], Counter[tuple[str, str]]] = {}
    for name, key in named:
        for before_or_after in _BARS:
            verdict = (key[f"outcome_{before_or_after}"], key[f"reason_{before_or_after}"])
            counted.setdefault((largest_places.place[name], before_or_after), Counter())[verdict] += key[
                "messages"
            ]
    return [
        {"place": place, "service": largest_places.labels[place], "side": before_or_after, **row}
        for place in range(len(largest_places.labels))
        for before_or_after in _BARS
        for row in _segments(counted[place, before_or_after])
    ]


def _segments(verdicts: Counter[tuple[str, str]]) -> list[Row]:
    """Return the parts of a bar by outcome, most messages first, each with the words of the whole."""
    outcomes: Counter[str] = Counter()
    for (outcome, _), messages in verdicts.items():
        outcomes[outcome] += messages
    ordered = sorted(outcomes.items(), key=lambda item: (-item[1], item[0]))
    reasons = {reason for _, reason in verdicts}
    words = ", ".join(f"{messages:,} {outcome}" for outcome, messages in ordered)
    # Several reasons would not fit; the comparison's own text has them.
    words += f": {min(reasons)}" if len(reasons) == 1 else ""
    return [{"outcome": outcome, "messages": messages, "words": words} for outcome, messages in ordered]


def _bar(base: alt.Chart, before_or_after: str, offset: int) -> list[alt.Chart]:
    """Return one bar of each service, the word before it and the words behind it."""
    ends = [_LEFT, theme.WIDTH - _RIGHT]
    along = alt.X("messages:Q", axis=None, scale=alt.Scale(range=ends, nice=False, zero=True))
    bar = bar_lanes.marked(base, alt.MarkDef(type="bar", height=bar_lanes.THICK, yOffset=offset))
    bar = theme.outcome_order(bar).encode(x=along, color=theme.outcome_colour(), order="order:Q")
    whole = base.transform_aggregate(messages="sum(messages)", groupby=["place", "words"])
    words_mark = alt.MarkDef(type="text", style="number", align="left", dx=8, dy=offset, limit=_RIGHT - 8)
    head = alt.MarkDef(type="text", style="number", align="left", dy=offset)
    return [
        bar,
        bar_lanes.marked(whole, words_mark).encode(x=alt.X("messages:Q", axis=None), text="words:N"),
        bar_lanes.marked(whole, head).encode(x=alt.value(0), text=alt.value(before_or_after)),
    ]
