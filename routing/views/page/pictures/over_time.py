"""Draw messages over time: their endings, and the stuck messages of single services."""

from __future__ import annotations

from collections import Counter

import altair as alt

from routing.render.wording import count
from routing.rules.timeline import SECOND, moment_of
from routing.terms import ReadRow
from routing.views.page.facts import STUCK, MessageSeries
from routing.views.page.pictures import bar_pictures, picture_theme
from routing.views.page.pictures.bar_pictures import largest

STRIPS = 8
_HEIGHT = 220
_STRIP = 72
"""The distance between strips in pixels. Words are above the middle of a strip, and bars start at its base."""
_WORDS, _BASE, _TALL = -24, 30, 40
# Hours of the day, the day at midnight, and years for long series.
_TICK = (
    "utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') :"
    " utcdayofyear(datum.value) > 1 ? utcFormat(datum.value, '%-d %b') : utcFormat(datum.value, '%Y')"
)
_WHEN = "utcFormat(datum.at, '%Y-%m-%d %H:%M')"


def outcomes_over_time(series: MessageSeries) -> picture_theme.Picture:
    """Draw stacked bars: the endings of the messages in each step of time.

    The data set ``rows`` has a row for each step and outcome, with the columns at and until (milliseconds since
    1970, UTC), outcome and messages.
    """
    rows = time_rows(series)
    counted = alt.Axis(
        format=",d", tickMinStep=1, tickCount=4, **picture_theme.above(f"messages in {_span(series.seconds)}")
    )
    chart = (
        alt.Chart(picture_theme.named(rows))
        .transform_calculate(when=_WHEN)
        .mark_bar(binSpacing=0, orient="vertical")
    )
    picture = picture_theme.outcome_order(chart).encode(
        x=_times(series),
        x2="until:T",
        y=alt.Y("messages:Q", axis=counted, stack="zero"),
        color=picture_theme.outcome_colour([row["outcome"] for row in rows], offset=30),
        order="order:Q",
        tooltip=[_FROM, alt.Tooltip("outcome:N"), bar_pictures.MESSAGES],
    )
    words = f"Stacked bars: messages in steps of {_span(series.seconds)}, by where they end, times in UTC."
    return picture_theme.dressed(picture.properties(height=_HEIGHT), words)


def time_rows(series: MessageSeries) -> list[ReadRow]:
    """Return the rows of `outcomes_over_time`."""
    counted: Counter[tuple[int, str]] = Counter()
    for point in series.points:
        counted[point.at, point.end] += point.messages
    return [
        {**_step(at, series), "outcome": outcome, "messages": messages}
        for (at, outcome), messages in sorted(counted.items())
    ]


def delays_by_service(series: MessageSeries) -> picture_theme.Picture:
    """Draw a strip for each service: its stuck messages over time on their own scale, with the highest number.

    The `STRIPS` services with most stuck messages are drawn. The data set ``rows`` has the columns place (number
    of the strip from 0), service, at and until (milliseconds since 1970, UTC) and messages, in the order of
    places.
    """
    strips = bar_pictures.on_lanes(delay_rows(series)).transform_joinaggregate(
        highest="max(messages)", groupby=["place"]
    )
    tall = f"{_TALL} * datum.messages / datum.highest"
    mark_def = alt.MarkDef(type="bar", orient="vertical", binSpacing=0, style="trouble")
    mark_def.height, mark_def.yOffset = alt.ExprRef(tall), alt.ExprRef(f"{_BASE} - {tall} / 2")
    bars = bar_pictures.marked(strips.transform_calculate(when=_WHEN), mark_def).encode(
        x=_times(series), x2="until:T", tooltip=[alt.Tooltip("service:N"), _FROM, bar_pictures.MESSAGES]
    )
    whole = strips.transform_aggregate(highest="max(messages)", groupby=["place", "service"])
    base = bar_pictures.marked(whole, alt.MarkDef(type="rule", style="base", yOffset=_BASE))
    named = bar_pictures.names(whole, "service", room=110, cut="start", dy=_WORDS)
    text_mark = alt.MarkDef(type="text", style="number", align="right", dy=_WORDS)
    at_most = bar_pictures.marked(
        whole.transform_calculate(words="'at most ' + format(datum.highest, ',')"), text_mark
    )
    numbered = at_most.encode(x=alt.value("width"), text="words:N")
    words = f"Strips: stuck messages in steps of {_span(series.seconds)}, one strip a service, times in UTC."
    return bar_pictures.dressed([base, bars, named, numbered], words, step=_STRIP)


def delay_rows(series: MessageSeries) -> list[ReadRow]:
    """Return the rows of `delays_by_service`."""
    stuck = [
        (point.service, point)
        for point in series.points
        # Services that are not separated have no strip.
        if point.end in STUCK and point.service is not None
    ]
    largest_places = largest(((service, point.messages) for service, point in stuck), STRIPS, None)
    counted: Counter[tuple[int, int]] = Counter()
    for service, point in stuck:
        if service in largest_places.place:
            counted[largest_places.place[service], point.at] += point.messages
    return [
        {"place": place, "service": largest_places.labels[place], **_step(at, series), "messages": messages}
        for (place, at), messages in sorted(counted.items())
    ]


_FROM = alt.Tooltip("when:N", title="from (UTC)")


def _step(at: int, series: MessageSeries) -> ReadRow:
    return {"at": at // 1000, "until": at // 1000 + series.seconds * 1000}


def _times(series: MessageSeries) -> alt.X:
    """Return an axis over the whole series, even if the chart is narrowed to a service."""
    axis = alt.Axis(
        labelExpr=_TICK,
        tickCount=alt.ExprRef("max(2, width / 90)"),
        labelOverlap=True,
        labelFlush=True,
        grid=False,
    )
    if not series.points:
        return alt.X("at:T", axis=axis, title="UTC", scale=alt.Scale(type="utc"))
    ends = [min(point.at for point in series.points), max(point.at for point in series.points)]
    ends[1] += series.seconds * SECOND
    scale = alt.Scale(type="utc", domain=[end // 1000 for end in ends], nice=False, padding=0)
    return alt.X("at:T", axis=axis, title=_days(*ends), scale=scale)


def _days(first: int, end: int) -> str:
    # Steps may begin before the year 1, and end after the year 9999.
    days = list(dict.fromkeys(str(moment_of(time).date()) for time in (first, end - 1)))
    return f"{' to '.join(days)}, UTC"


def _span(seconds: int) -> str:
    sizes = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
    word = next(word for word, size in sizes.items() if seconds % size == 0)
    return count(seconds // sizes[word], word)
