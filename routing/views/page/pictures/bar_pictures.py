"""Draw horizontal bars in lanes, with the name above each bar and the number at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import altair as alt

from routing.terms import NOT_KNOWN, JsonObject, Outcome, PathEnd, ReadRow
from routing.views.page.facts import STUCK, DialogBalance, MessageFlow
from routing.views.page.pictures import picture_theme

if TYPE_CHECKING:
    from routing.views.diff.diffing import Diff

STEP = 40
"""The distance between lanes in pixels. Positions in a lane are pixels from its middle."""
ABOVE, BELOW = -9, 9
THICK = 11
MESSAGES = alt.Tooltip("messages:Q", format=",")

_CUT = " (bar not to scale)"
_PALER = alt.condition("datum.others", alt.value(0.5), alt.value(1))

Cut = Literal["start", "end"]
"""The side on which a long name is cut. Names of services often begin with the same text."""


def on_lanes(rows: Sequence[ReadRow]) -> alt.Chart:
    """Return a chart over the data set ``rows`` with a lane for each ``place``, in the order of the rows."""
    # Lanes are identified by number, because names from the data may look alike.
    lane = alt.Y("place:O", axis=None, sort=None, scale=alt.Scale(paddingInner=0, paddingOuter=0))
    return alt.Chart(picture_theme.named(rows)).encode(y=lane)


def measured(lanes: alt.Chart, field: str, name: str) -> alt.Chart:
    """Return lanes with ``length``, the value of the field, and ``label``, the name above the bar.

    The bar of all others is never longer than the largest lane. If it is cut, its parts keep their proportions and
    its label mentions the cut.
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


def draw_bars(lanes: alt.Chart, field: str, room: int | str, style: str = "bar") -> alt.Chart:
    """Return a bar for each lane with the length of the field, and ``room`` pixels beside the longest bar.

    The bar of all others is paler. ``style`` is one of the theme's.
    """
    mark_def = alt.MarkDef(type="bar", height=THICK, yOffset=BELOW, style=style)
    longest = alt.ExprRef(f"max(60, width - ({room}))")
    along = alt.X(f"{field}:Q", axis=None, scale=alt.Scale(nice=False, zero=True, rangeMax=longest))
    return marked(lanes, mark_def).encode(x=along, opacity=_PALER)


def names(lanes: alt.Chart, field: str, room: int = 0, cut: Cut = "end", dy: int = ABOVE) -> alt.Chart:
    """Return the name of each lane above its bar, cut at the picture's width less ``room`` pixels."""
    # Fonts differ from reader to reader.
    limit = alt.ExprRef(f"max(40, 0.8 * width - {room})")
    # Only the position depends on the direction. The browser writes each letter in its own direction.
    mark_def = alt.MarkDef(type="text", style="name", dy=dy, limit=limit, dir="rtl" if cut == "start" else "ltr")
    return marked(lanes, mark_def).encode(x=alt.value(0), text=f"{field}:N")


def draw_numbers(lanes: alt.Chart, words: str, end: str) -> alt.Chart:
    """Draw an expression's text beside each lane's bar, at its ``end``."""
    written = lanes.transform_calculate(words=words, end=end)
    mark_def = alt.MarkDef(type="text", style="number", dy=BELOW, dx=6)
    return marked(written, mark_def).encode(x="end:Q", text="words:N")


def dressed(layers: Sequence[alt.Chart], description: str, step: int = STEP) -> picture_theme.Picture:
    """Return the layers as one picture, as high as its lanes are many."""
    return picture_theme.dressed(alt.layer(*layers).properties(height=alt.Step(step)), description)


def marked(lanes: alt.Chart, mark_def: alt.MarkDef) -> alt.Chart:
    """Return the lanes with a mark. Unlike some ``mark_…`` methods, it accepts expressions as properties."""
    copied = lanes.copy()
    copied.mark = mark_def
    return copied


@dataclass(frozen=True)
class LargestPlaces:
    """The places of a picture: ``labels`` in their order, ready to be shown, and the place of each name."""

    labels: Sequence[str]
    place: Mapping[str, int]
    others_place: int | None = None
    """The place of all others together."""

    def named(self, field: str, place: int) -> JsonObject:
        """Begin a row: place, the label in the field, and True if it is the sum of all others."""
        return {"place": place, field: self.labels[place], "others": place == self.others_place}


def largest(counted: Iterable[tuple[str, int]], most: int, others_label: str | None) -> LargestPlaces:
    """Rank names by their messages, given (name, messages), and keep the first ``most``.

    All others share one more place ("12 other services"), or are left out if ``others_label`` is None.
    """
    totals: Counter[str] = Counter()
    for name, messages in counted:
        totals[name] += messages
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    # A single further name is shown, because "1 other" would take the same room.
    shown = ordered if others_label is not None and len(ordered) == most + 1 else ordered[:most]
    hidden = ordered[len(shown) :]
    labels = [picture_theme.drawn_text(name) for name in shown]
    if others_label is None or not hidden:
        return LargestPlaces(labels, {name: place for place, name in enumerate(shown)})
    places = {name: min(place, len(shown)) for place, name in enumerate(ordered)}
    return LargestPlaces([*labels, f"{len(hidden):,} {others_label}"], places, len(shown))


# Messages by instance, by reason and by service, the largest first.


INSTANCES = 20
REASONS = 20
SERVICES = 12
_PHONE = 480
"""The width in pixels below which there is less room for words."""


def outcomes_by_instance(flows: Sequence[MessageFlow]) -> picture_theme.Picture:
    """Draw stacked bars: the endings of the messages of each instance, for the `INSTANCES` largest and all others.

    The data set ``rows`` has a row for each outcome of an instance, in the order of places. Its columns are place
    (number of the lane from 0), instance, others (True for the sum of all others), outcome and messages.
    """
    rows = instance_rows(flows)
    base = measured(on_lanes(rows), "messages", "instance")
    bars = picture_theme.outcome_order(draw_bars(base, "length", room=90)).encode(
        color=picture_theme.outcome_colour([row["outcome"] for row in rows]),
        order="order:Q",
        tooltip=[alt.Tooltip("instance:N"), alt.Tooltip("outcome:N"), MESSAGES],
    )
    whole = base.transform_aggregate(
        messages="sum(messages)", length="sum(length)", groupby=["place", "label", "others"]
    )
    named = names(whole, "label")
    numbered = draw_numbers(whole, "format(datum.messages, ',')", end="datum.length")
    return dressed([bars, named, numbered], "Bars: where the messages of each instance end, most first.")


def instance_rows(flows: Sequence[MessageFlow]) -> list[ReadRow]:
    """Return the rows of `outcomes_by_instance`."""
    largest_places = largest(((flow.instance, flow.messages) for flow in flows), INSTANCES, "other instances")
    counted: Counter[tuple[int, str]] = Counter()
    for flow in flows:
        counted[largest_places.place[flow.instance], flow.end] += flow.messages
    return [
        {**largest_places.named("instance", place), "outcome": outcome, "messages": messages}
        for (place, outcome), messages in sorted(counted.items())
    ]


def reasons_of_trouble(flows: Sequence[MessageFlow]) -> picture_theme.Picture:
    """Draw bars: the stuck messages by reason, for the `REASONS` most frequent, with numbers beside the bars.

    The data set ``rows`` has the columns place, reason, others (False), outcome (the ending) and messages.
    """
    rows = reason_rows(flows)
    base = measured(on_lanes(rows), "messages", "reason")
    bars = draw_bars(base, "length", room=170).encode(
        color=picture_theme.outcome_colour(), tooltip=[alt.Tooltip("reason:N"), alt.Tooltip("outcome:N"), MESSAGES]
    )
    named = names(base, "label")
    words = "format(datum.messages, ',') + ' ' + replace(lower(datum.outcome), /_/g, ' ')"
    numbered = draw_numbers(base, words, end="datum.length")
    return dressed([bars, named, numbered], "Bars: the stuck messages by reason, most first.")


def reason_rows(flows: Sequence[MessageFlow]) -> list[ReadRow]:
    """Return the rows of `reasons_of_trouble`."""
    counted: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        if flow.end in STUCK:
            counted[flow.why or NOT_KNOWN, flow.end] += flow.messages
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:REASONS]
    return [
        {"place": place, "reason": reason, "others": False, "outcome": end, "messages": messages}
        for place, ((reason, end), messages) in enumerate(ordered)
    ]


def most_stuck(flows: Sequence[MessageFlow]) -> picture_theme.Picture:
    """Draw stacked bars with ages: the `SERVICES` with most stuck messages, and all others together.

    The data set ``rows`` has the columns place, service, others, outcome (the ending), messages and oldest (of the
    whole bar, in milliseconds since 1970, UTC).
    """
    rows = stuck_rows(flows)
    base = measured(on_lanes(rows), "messages", "service")
    with_since = base.transform_calculate(since="utcFormat(datum.oldest, '%Y-%m-%d %H:%M')")
    # A phone has room only for the day.
    room = f"width < {_PHONE} ? 150 : 200"
    bars = picture_theme.outcome_order(draw_bars(with_since, "length", room=room)).encode(
        color=picture_theme.outcome_colour([row["outcome"] for row in rows]),
        order="order:Q",
        tooltip=[
            *(alt.Tooltip("service:N"), alt.Tooltip("outcome:N"), MESSAGES),
            alt.Tooltip("since:N", title="oldest (UTC)"),
        ],
    )
    whole = base.transform_aggregate(
        messages="sum(messages)", length="sum(length)", groupby=["place", "label", "oldest", "others"]
    )
    named = names(whole, "label", cut="start")
    since = f"utcFormat(datum.oldest, width < {_PHONE} ? '%-d %b' : '%Y-%m-%d %H:%M')"
    numbered = draw_numbers(whole, f"format(datum.messages, ',') + ' since ' + {since}", end="datum.length")
    return dressed([bars, named, numbered], "Bars: the services with most stuck messages, and since when, in UTC.")


def stuck_rows(flows: Sequence[MessageFlow]) -> list[ReadRow]:
    """Return the rows of `most_stuck`."""
    stuck = [flow for flow in flows if flow.end in STUCK]
    largest_places = largest(((flow.service, flow.messages) for flow in stuck), SERVICES, "other services")
    messages: Counter[tuple[int, str]] = Counter()
    oldest: dict[int, int] = {}
    for flow in stuck:
        place = largest_places.place[flow.service]
        messages[place, flow.end] += flow.messages
        oldest[place] = min(flow.oldest, oldest.get(place, flow.oldest))
    return [
        {
            **largest_places.named("service", place),
            "outcome": outcome,
            "messages": number,
            "oldest": oldest[place] // 1000,
        }
        for (place, outcome), number in sorted(messages.items())
    ]


# The shares of broker instances in the dialogs of a service.


PICKS = 20


def balance(shared: DialogBalance) -> picture_theme.Picture:
    """Draw bars: the dialogs of each broker instance, with a line at the expected share and a band of fair shares.

    If there are more than `PICKS` ids, those with the largest deviations are drawn. The data set ``rows`` has the
    columns place (number of the lane from 0), broker (the id and its owner, if known), dialogs, expected, low and
    high.
    """
    base = on_lanes(pick_rows(shared))
    numbers = [alt.Tooltip(f"{name}:Q", format=",.1f") for name in ("expected", "low", "high")]
    bars = draw_bars(base, "dialogs", room=120, style="plain").encode(
        tooltip=[alt.Tooltip("broker:N"), alt.Tooltip("dialogs:Q", format=","), *numbers]
    )
    tall = THICK + 8
    band = marked(
        base.transform_filter("isValid(datum.low)"),
        alt.MarkDef(type="bar", style="fair", height=tall, yOffset=BELOW),
    )
    line = marked(base, alt.MarkDef(type="tick", style="expected", size=tall, yOffset=BELOW))
    named = names(base, "broker")
    fair = "format(datum.expected, datum.expected < 100 ? ',.1f' : ',.0f')"
    words = f"format(datum.dialogs, ',') + ', fair ' + {fair}"
    numbered = draw_numbers(base, words, end="max(datum.dialogs, datum.high)")
    layers = [bars, band.encode(x="low:Q", x2="high:Q"), line.encode(x="expected:Q"), named, numbered]
    description = "Bars: the dialogs of each broker instance, with an even share and the band of fair shares."
    return dressed(layers, description)


def pick_rows(shared: DialogBalance) -> list[ReadRow]:
    """Return the rows of `balance`."""
    picks = sorted(
        shared.picks,
        key=lambda pick: (pick.expected > 0, -abs(pick.dialogs - pick.expected), pick.broker_instance),
    )[:PICKS]
    picks.sort(key=lambda pick: (-pick.dialogs, pick.broker_instance))
    return [
        {
            "place": place,
            "broker": picture_theme.drawn_text(", ".join(filter(None, (pick.broker_instance, pick.owner)))),
            "dialogs": pick.dialogs,
            "expected": pick.expected,
            "low": pick.low,
            "high": pick.high,
        }
        for place, pick in enumerate(picks)
    ]


# The effect of a change on messages: before and after.


CHANGED_SERVICES = 10
_STEP = 80
"""Pixels from service to service: a line with its name, a bar before, a bar after."""
_NAME, _BARS = -26, {"before": -4, "after": 18}
_LEFT, _RIGHT = 56, 300
"""Pixels for the words at both ends of a bar."""


def before_and_after(done: Diff) -> picture_theme.Picture:
    """Draw two bars for each service with changes: the outcomes before and after.

    The `SERVICES` with most changes are drawn, and all others together. The data set ``rows`` has the columns
    place (number of the service from 0), service, side (before or after), outcome, messages, and words (the label
    of the bar).
    """
    base = on_lanes(change_rows(done.keys))
    name = alt.MarkDef(type="text", style="name", dy=_NAME, limit=picture_theme.WIDTH)
    named = marked(base.transform_aggregate(groupby=["place", "service"]), name)
    layers = [named.encode(x=alt.value(0), text="service:N")]
    for before_or_after, offset in _BARS.items():
        layers += _bar(base.transform_filter(alt.datum.side == before_or_after), before_or_after, offset)
    words = (
        f"Bars, before and after, by outcome: {done.changed:,} of {done.compared:,} messages change,"
        f" {done.worse:,} for the worse."
    )
    return picture_theme.dressed(alt.layer(*layers).properties(height=alt.Step(_STEP)), words)


# Endings with the colour of an outcome. Their reasons differ.
_COLOURED = {str(PathEnd.LOOP): str(Outcome.DROPPED), str(PathEnd.NO_RETURN_PATH): str(Outcome.DELAYED)}


def change_rows(keys: Iterable[ReadRow]) -> list[ReadRow]:
    """Return the rows of `before_and_after`, from rows of `result_schemas.KEY_CHANGES`."""
    named = [(f"{key['to_service_name']} on {key['instance_name']}", key) for key in keys]
    largest_places = largest(((name, key["messages"]) for name, key in named), CHANGED_SERVICES, "other services")
    counted: dict[tuple[int, str], Counter[tuple[str, str]]] = {}
    for name, key in named:
        for before_or_after in _BARS:
            # The end of the messages if it is known, otherwise the outcome at their own instance.
            columns = "outcome", "reason"
            if key[f"ending_{before_or_after}"] != PathEnd.NOT_KNOWN:
                columns = "ending", "ending_reason"
            end, reason = (key[f"{name}_{before_or_after}"] for name in columns)
            verdict = _COLOURED.get(end, end), reason or end
            counted.setdefault((largest_places.place[name], before_or_after), Counter())[verdict] += key[
                "messages"
            ]
    return [
        {"place": place, "service": largest_places.labels[place], "side": before_or_after, **row}
        for place in range(len(largest_places.labels))
        for before_or_after in _BARS
        for row in _segments(counted[place, before_or_after])
    ]


def _segments(verdicts: Counter[tuple[str, str]]) -> list[ReadRow]:
    """Return the parts of a bar by outcome, most messages first, each with the words of the whole."""
    outcomes: Counter[str] = Counter()
    for (outcome, _), messages in verdicts.items():
        outcomes[outcome] += messages
    ordered = sorted(outcomes.items(), key=lambda item: (-item[1], item[0]))
    reasons = {reason for _, reason in verdicts}
    words = ", ".join(f"{messages:,} {outcome}" for outcome, messages in ordered)
    # Several reasons would not fit. The text of the comparison has them.
    words += f": {min(reasons)}" if len(reasons) == 1 else ""
    return [{"outcome": outcome, "messages": messages, "words": words} for outcome, messages in ordered]


def _bar(base: alt.Chart, before_or_after: str, offset: int) -> list[alt.Chart]:
    ends = [_LEFT, picture_theme.WIDTH - _RIGHT]
    along = alt.X("messages:Q", axis=None, scale=alt.Scale(range=ends, nice=False, zero=True))
    bar = marked(base, alt.MarkDef(type="bar", height=THICK, yOffset=offset))
    bar = picture_theme.outcome_order(bar).encode(x=along, color=picture_theme.outcome_colour(), order="order:Q")
    whole = base.transform_aggregate(messages="sum(messages)", groupby=["place", "words"])
    words_mark = alt.MarkDef(type="text", style="number", align="left", dx=8, dy=offset, limit=_RIGHT - 8)
    head = alt.MarkDef(type="text", style="number", align="left", dy=offset)
    return [
        bar,
        marked(whole, words_mark).encode(x=alt.X("messages:Q", axis=None), text="words:N"),
        marked(whole, head).encode(x=alt.value(0), text=alt.value(before_or_after)),
    ]
