"""Messages by instance, by reason and by service, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import altair as alt

from routing.features.report.facts import STUCK, MessageFlow
from routing.features.report.pictures import bar_lanes, theme
from routing.features.report.pictures.bar_lanes import Row
from routing.features.report.pictures.largest import largest
from routing.terms import NOT_KNOWN, Outcome

INSTANCES = 20
REASONS = 20
SERVICES = 12
_PHONE = 480
"""Narrower than so many pixels there is less room for words."""


def outcomes_by_instance(flows: Sequence[MessageFlow]) -> theme.Picture:
    """Draw stacked bars: messages of each instance by outcome, the `INSTANCES` largest, others together.

    Rows of the data set ``rows``: place (number of the lane, from 0 on), instance, others (whether this is all
    others together), outcome, messages; a row for each outcome of the instance, in the order of places.
    """
    rows = instance_rows(flows)
    base = bar_lanes.measured(bar_lanes.on_lanes(rows), "messages", "instance")
    bars = theme.outcome_order(bar_lanes.bars(base, "length", room=90)).encode(
        color=theme.outcome_colour([row["outcome"] for row in rows]),
        order="order:Q",
        tooltip=[alt.Tooltip("instance:N"), alt.Tooltip("outcome:N"), bar_lanes.MESSAGES],
    )
    whole = base.transform_aggregate(
        messages="sum(messages)", length="sum(length)", groupby=["place", "label", "others"]
    )
    named = bar_lanes.names(whole, "label")
    numbered = bar_lanes.numbers(whole, "format(datum.messages, ',')", end="datum.length")
    return bar_lanes.dressed(
        [bars, named, numbered], "Bars: the messages of each instance by outcome, most first."
    )


def instance_rows(flows: Sequence[MessageFlow]) -> list[Row]:
    """Return the rows of `outcomes_by_instance`."""
    largest_places = largest(((flow.instance, flow.messages) for flow in flows), INSTANCES, "other instances")
    counted: Counter[tuple[int, str]] = Counter()
    for flow in flows:
        counted[largest_places.place[flow.instance], flow.outcome] += flow.messages
    return [
        {**largest_places.named("instance", place), "outcome": outcome, "messages": messages}
        for (place, outcome), messages in sorted(counted.items())
    ]


def reasons_of_trouble(flows: Sequence[MessageFlow]) -> theme.Picture:
    """Draw bars: the messages delayed and dropped, by reason, the number beside the bar.

    Rows of the data set ``rows``: place, reason, others, outcome (DELAYED or DROPPED), messages.
    """
    base = bar_lanes.measured(bar_lanes.on_lanes(reason_rows(flows)), "messages", "reason")
    bars = bar_lanes.bars(base, "length", room=130).encode(
        color=theme.outcome_colour(),
        tooltip=[alt.Tooltip("reason:N"), alt.Tooltip("outcome:N"), bar_lanes.MESSAGES],
    )
    named = bar_lanes.names(base, "label")
    words = "format(datum.messages, ',') + ' ' + lower(datum.outcome)"
    numbered = bar_lanes.numbers(base, words, end="datum.length")
    return bar_lanes.dressed(
        [bars, named, numbered], "Bars: the messages delayed and dropped by reason, most first."
    )


def reason_rows(flows: Sequence[MessageFlow]) -> list[Row]:
    """Return the rows of `reasons_of_trouble`: of each of the two outcomes the `REASONS` with most messages."""
    rows: list[Row] = []
    for outcome in STUCK:
        counted = [(flow.reason or NOT_KNOWN, flow.messages) for flow in flows if flow.outcome == outcome]
        largest_places = largest(counted, REASONS, "other reasons")
        messages: Counter[int] = Counter()
        for reason, number in counted:
            messages[largest_places.place[reason]] += number
        rows += [
            {**largest_places.named("reason", place), "outcome": outcome, "messages": messages[place]}
            for place in range(len(largest_places.labels))
        ]
    rows.sort(key=lambda row: (row["others"], -row["messages"]))
    return [{**row, "place": place} for place, row in enumerate(rows)]


def most_stuck(flows: Sequence[MessageFlow]) -> theme.Picture:
    """Draw bars: services with most delayed messages and since when, the `SERVICES` largest, others together.

    Rows of the data set ``rows``: place, service, others, messages, oldest (milliseconds since 1970, UTC).
    """
    base = bar_lanes.measured(bar_lanes.on_lanes(stuck_rows(flows)), "messages", "service")
    with_since = base.transform_calculate(since="utcFormat(datum.oldest, '%Y-%m-%d %H:%M')")
    # On a phone the day must do.
    room = f"width < {_PHONE} ? 150 : 200"
    bars = bar_lanes.bars(with_since, "length", room=room, style="trouble").encode(
        tooltip=[alt.Tooltip("service:N"), bar_lanes.MESSAGES, alt.Tooltip("since:N", title="oldest (UTC)")]
    )
    named = bar_lanes.names(base, "label", cut="start")
    since = f"(width < {_PHONE} ? utcFormat(datum.oldest, '%-d %b') : datum.since)"
    words = f"format(datum.messages, ',') + ' since ' + {since}"
    numbered = bar_lanes.numbers(with_since, words, end="datum.length")
    return bar_lanes.dressed(
        [bars, named, numbered], "Bars: the services with most delayed messages, and since when, in UTC."
    )


def stuck_rows(flows: Sequence[MessageFlow]) -> list[Row]:
    """Return the rows of `most_stuck`."""
    stuck = [flow for flow in flows if flow.outcome == Outcome.DELAYED]
    largest_places = largest(((flow.service, flow.messages) for flow in stuck), SERVICES, "other services")
    messages: Counter[int] = Counter()
    oldest: dict[int, int] = {}
    for flow in stuck:
        place = largest_places.place[flow.service]
        messages[place] += flow.messages
        oldest[place] = min(flow.oldest, oldest.get(place, flow.oldest))
    return [
        {**largest_places.named("service", place), "messages": messages[place], "oldest": oldest[place] // 1000}
        for place in range(len(largest_places.labels))
    ]
