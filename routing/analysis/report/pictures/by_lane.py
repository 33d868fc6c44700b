"""Messages by instance, by reason and by service, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import altair as alt

from routing.analysis.report.facts import Flow
from routing.analysis.report.pictures import lanes, theme
from routing.analysis.report.pictures.lanes import Row
from routing.analysis.report.pictures.largest import largest
from routing.terms import Outcome

INSTANCES = 20
REASONS = 20
SERVICES = 12


def outcomes_by_instance(flows: Sequence[Flow]) -> theme.Picture:
    """Stacked bars: the messages of each instance by outcome, the `INSTANCES` largest, all others together.

    Rows of the data set ``rows``: place (number of the lane, from 0 on), instance, outcome, messages; a row for
    each outcome that the instance has, in the order of the places.
    """
    rows = instance_rows(flows)
    base = lanes.on_lanes(rows)
    bars = theme.outcome_order(lanes.bars(base)).encode(
        color=theme.outcome_colour([row["outcome"] for row in rows]),
        order="order:Q",
        tooltip=[alt.Tooltip("instance:N"), alt.Tooltip("outcome:N"), lanes.MESSAGES],
    )
    whole = base.transform_aggregate(messages="sum(messages)", groupby=["place", "instance"])
    named = lanes.names(whole, "instance", room=100)
    numbered = lanes.numbers(whole, "format(datum.messages, ',')")
    return lanes.dressed([bars, named, numbered], "Bars: the messages of each instance by outcome, most first.")


def instance_rows(flows: Sequence[Flow]) -> list[Row]:
    """The rows of `outcomes_by_instance`."""
    found = largest(((flow.instance, flow.messages) for flow in flows), INSTANCES, "other instances")
    counted: Counter[tuple[int, str]] = Counter()
    for flow in flows:
        counted[found.place[flow.instance], flow.outcome] += flow.messages
    return [
        {"place": place, "instance": found.labels[place], "outcome": outcome, "messages": messages}
        for (place, outcome), messages in sorted(counted.items())
    ]


def reasons_of_trouble(flows: Sequence[Flow]) -> theme.Picture:
    """Bars: the messages delayed and dropped, by reason, the number beside the bar.

    Rows of the data set ``rows``: place, reason, outcome (DELAYED or DROPPED), messages; in the order of places.
    """
    base = lanes.on_lanes(reason_rows(flows))
    bars = lanes.bars(base).encode(
        color=theme.outcome_colour(),
        tooltip=[alt.Tooltip("reason:N"), alt.Tooltip("outcome:N"), lanes.MESSAGES],
    )
    named = lanes.names(base, "reason", room=130)
    numbered = lanes.numbers(base, "format(datum.messages, ',') + ' ' + lower(datum.outcome)")
    return lanes.dressed([bars, named, numbered], "Bars: the messages delayed and dropped by reason, most first.")


def reason_rows(flows: Sequence[Flow]) -> list[Row]:
    """The rows of `reasons_of_trouble`: of each of the two outcomes the `REASONS` with most messages."""
    rows: list[Row] = []
    for outcome in (Outcome.DELAYED, Outcome.DROPPED):
        counted = [(flow.reason or theme.NOT_KNOWN, flow.messages) for flow in flows if flow.outcome == outcome]
        found = largest(counted, REASONS, "other reasons")
        messages: Counter[int] = Counter()
        for reason, number in counted:
            messages[found.place[reason]] += number
        rows += [
            {"reason": label, "outcome": str(outcome), "messages": messages[place]}
            for place, label in enumerate(found.labels)
        ]
    rows.sort(key=lambda row: -row["messages"])
    return [{"place": place, **row} for place, row in enumerate(rows)]


def most_stuck(flows: Sequence[Flow]) -> theme.Picture:
    """Bars: the services with most delayed messages and since when, the `SERVICES` largest, all others together.

    Rows of the data set ``rows``: place, service, messages, oldest (milliseconds since 1970, UTC); in the order of
    the places.
    """
    base = lanes.on_lanes(stuck_rows(flows))
    told = base.transform_calculate(since="utcFormat(datum.oldest, '%Y-%m-%d %H:%M')")
    bars = lanes.bars(told, style="trouble").encode(
        tooltip=[alt.Tooltip("service:N"), lanes.MESSAGES, alt.Tooltip("since:N", title="oldest (UTC)")]
    )
    named = lanes.names(base, "service", room=190)
    numbered = lanes.numbers(told, "format(datum.messages, ',') + ' since ' + datum.since")
    return lanes.dressed(
        [bars, named, numbered], "Bars: the services with most delayed messages, and since when, in UTC."
    )


def stuck_rows(flows: Sequence[Flow]) -> list[Row]:
    """The rows of `most_stuck`."""
    stuck = [flow for flow in flows if flow.outcome == Outcome.DELAYED]
    found = largest(((flow.service, flow.messages) for flow in stuck), SERVICES, "other services")
    messages: Counter[int] = Counter()
    oldest: dict[int, int] = {}
    for flow in stuck:
        place = found.place[flow.service]
        messages[place] += flow.messages
        oldest[place] = min(flow.oldest, oldest.get(place, flow.oldest))
    return [
        {"place": place, "service": label, "messages": messages[place], "oldest": oldest[place] // 1000}
        for place, label in enumerate(found.labels)
    ]
