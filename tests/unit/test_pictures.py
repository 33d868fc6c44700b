"""Pictures of a report: their rows, their drawing on the page, and that names stay data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import altair as alt
import pytest
import vl_convert

from routing.engines.traffic_tables import TimePoint
from routing.views.page import pictures
from routing.views.page.facts import (
    BalancedInstance,
    DialogBalance,
    MessageFlow,
    MessageSeries,
    Report,
)
from routing.views.page.pictures import bar_pictures, over_time, picture_theme
from routing.views.page.pictures.bar_pictures import largest

HOSTILE = "'+alert(1)+\"</script>\u202e${datum.x}"
# The mark that turns the writing round is not for a page.
HARMLESS = "'+alert(1)+\"</script>\ufffd${datum.x}"
HOUR = 3_600


def _at(hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 1, 5, hour, minute, tzinfo=timezone.utc).timestamp()) * 1_000_000


def _flow(
    service: str, outcome: str, reason: str | None, messages: int, hour: int = 9, instance: str = "HQ"
) -> MessageFlow:
    return MessageFlow(instance, "Sales", service, outcome, reason, None, None, None, messages, _at(hour))


FLOWS = (
    _flow("//a", "DELIVERED", "LOCAL_SERVICE", 12_000),
    _flow("//b", "DELIVERED", "LOCAL_SERVICE", 345),
    _flow("//b", "DELAYED", "NO_ROUTE", 1_000, hour=14),
    _flow("//b", "DELAYED", "BROKER_DISABLED", 200, hour=13),
    _flow(HOSTILE, "DELAYED", "NO_ROUTE", 30, hour=11),
    _flow("//a", "DROPPED", "HOP_LIMIT", 1_100, instance=HOSTILE),
    _flow("//a", "NOT_KNOWN", None, 7),
)
SERIES = MessageSeries(
    HOUR,
    (
        TimePoint(_at(9), "HQ", "//a", "DELIVERED", 5),
        TimePoint(_at(9), HOSTILE, "//b", "DELIVERED", 6),
        TimePoint(_at(9), "HQ", "//b", "DELAYED", 2),
        TimePoint(_at(11), "HQ", "//b", "DELAYED", 1_500),
        TimePoint(_at(11), HOSTILE, "//b", "DELAYED", 500),
        TimePoint(_at(11), "HQ", HOSTILE, "DELAYED", 3),
        # Of services that are not told apart.
        TimePoint(_at(9), None, None, "DELAYED", 900),
    ),
)
SHARED = DialogBalance(
    "HQ",
    "Sales",
    HOSTILE,
    None,
    None,
    (
        BalancedInstance("ID-1", None, 40, 50.0, 37, 63),
        BalancedInstance("ID-2", f"HQ.{HOSTILE}", 1_060, 50.0, 37, 63),
    ),
    (),
    None,
)
EIGHT, NINE, ELEVEN, NOON = (1_767_600_000_000, 1_767_603_600_000, 1_767_610_800_000, 1_767_614_400_000)

PICTURES = {
    "by instance": pictures.outcomes_by_instance(FLOWS),
    "reasons": pictures.reasons_of_trouble(FLOWS),
    "stuck": pictures.most_stuck(FLOWS),
    "over time": pictures.outcomes_over_time(SERIES),
    "delays": pictures.delays_by_service(SERIES),
    "balance": pictures.balance(SHARED),
    "estate": pictures.estate_of(Report("", (), 0, FLOWS, ())),
}
EMPTY = {
    "by instance": pictures.outcomes_by_instance([]),
    "reasons": pictures.reasons_of_trouble([]),
    "stuck": pictures.most_stuck([]),
    "over time": pictures.outcomes_over_time(MessageSeries(HOUR, [])),
    "delays": pictures.delays_by_service(MessageSeries(HOUR, [])),
    "balance": pictures.balance(DialogBalance("HQ", "Sales", "//a", None, None, (), (), None)),
    "estate": pictures.estate_of(Report("", (), 0, (), ())),
}
named = pytest.mark.parametrize("name", list(PICTURES))


def test_rows_by_instance() -> None:
    hq = {"place": 0, "instance": "HQ", "others": False}
    hostile = {"place": 1, "instance": HARMLESS, "others": False}
    assert bar_pictures.instance_rows(FLOWS) == [
        {**hq, "outcome": "DELAYED", "messages": 1_230},
        {**hq, "outcome": "DELIVERED", "messages": 12_345},
        {**hq, "outcome": "NOT_KNOWN", "messages": 7},
        {**hostile, "outcome": "DROPPED", "messages": 1_100},
    ]


def test_rows_by_reason() -> None:
    no_route = {"place": 1, "reason": "NO_ROUTE", "others": False, "outcome": "DELAYED", "messages": 1_030}
    assert bar_pictures.reason_rows(FLOWS) == [
        {"place": 0, "reason": "HOP_LIMIT", "others": False, "outcome": "DROPPED", "messages": 1_100},
        no_route,
        {"place": 2, "reason": "BROKER_DISABLED", "others": False, "outcome": "DELAYED", "messages": 200},
    ]


def test_one_reason_of_two_outcomes_has_two_lanes() -> None:
    flows = [_flow("//a", "DELAYED", None, 1), _flow("//a", "DROPPED", None, 2)]
    assert bar_pictures.reason_rows(flows) == [
        {"place": 0, "reason": "NOT_KNOWN", "others": False, "outcome": "DROPPED", "messages": 2},
        {"place": 1, "reason": "NOT_KNOWN", "others": False, "outcome": "DELAYED", "messages": 1},
    ]


def test_rows_of_stuck_messages_have_a_time() -> None:
    one_in_the_afternoon, eleven = NOON + 3_600_000, ELEVEN
    delayed = {"others": False, "outcome": "DELAYED"}
    assert bar_pictures.stuck_rows(FLOWS) == [
        {"place": 0, "service": "//b", **delayed, "messages": 1_200, "oldest": one_in_the_afternoon},
        # The oldest of all, whichever way they end.
        {"place": 1, "service": "//a", **delayed, "outcome": "DROPPED", "messages": 1_100, "oldest": NINE},
        {"place": 2, "service": HARMLESS, **delayed, "messages": 30, "oldest": eleven},
    ]


def test_services_beyond_the_limit_share_one_bar() -> None:
    flows = [_flow(f"//{n:02d}", "DELAYED", "NO_ROUTE", 87 + n, hour=8 if n == 0 else 9) for n in range(14)]
    rows = bar_pictures.stuck_rows(flows)
    assert len(rows) == 13
    delayed = {"outcome": "DELAYED"}
    assert rows[11] == {"place": 11, "service": "//02", "others": False, **delayed, "messages": 89, "oldest": NINE}
    assert rows[12] == {
        "place": 12,
        "service": "2 other services",
        "others": True,
        **delayed,
        "messages": 88 + 87,
        "oldest": EIGHT,
    }


def test_a_single_service_beyond_the_limit_is_named() -> None:
    flows = [_flow(f"//{n:02d}", "DELAYED", "NO_ROUTE", 100 - n) for n in range(13)]
    assert [row["service"] for row in bar_pictures.stuck_rows(flows)][-1] == "//12"


@pytest.mark.parametrize(
    ("counted", "most", "others", "labels", "places"),
    [
        ([], 2, "other things", [], {}),
        ([("a", 1), ("b", 1)], 1, None, ["a"], {"a": 0}),
        ([("a", 1), ("b", 3), ("a", 4)], 1, None, ["a"], {"a": 0}),
        ([("a", 1), ("b", 1)], 1, "other things", ["a", "b"], {"a": 0, "b": 1}),
        (
            [("a", 1), ("b", 2), ("c", 3)],
            1,
            "other things",
            ["c", "2 other things"],
            {"a": 1, "b": 1, "c": 0},
        ),
        # A name that reads like the others' is a place of its own.
        (
            [("2 other things", 9), ("b", 2), ("c", 3)],
            1,
            "other things",
            ["2 other things", "2 other things"],
            {"2 other things": 0, "b": 1, "c": 1},
        ),
    ],
)
def test_the_largest_names_keep_their_places(
    counted: list[tuple[str, int]], most: int, others: str | None, labels: list[str], places: dict[str, int]
) -> None:
    largest_places = largest(counted, most, others)
    assert (largest_places.labels, largest_places.place) == (labels, places)


def test_rows_over_time() -> None:
    nine = {"at": NINE, "until": NINE + 3_600_000}
    assert over_time.time_rows(SERIES) == [
        {**nine, "outcome": "DELAYED", "messages": 902},
        {**nine, "outcome": "DELIVERED", "messages": 11},
        {"at": ELEVEN, "until": NOON, "outcome": "DELAYED", "messages": 2_003},
    ]


def test_rows_of_delays() -> None:
    busy = {"place": 0, "service": "//b"}
    assert over_time.delay_rows(SERIES) == [
        {**busy, "at": NINE, "until": NINE + 3_600_000, "messages": 2},
        {**busy, "at": ELEVEN, "until": NOON, "messages": 2_000},
        {"place": 1, "service": HARMLESS, "at": ELEVEN, "until": NOON, "messages": 3},
    ]


def test_no_more_than_eight_strips() -> None:
    points = [TimePoint(_at(9), "HQ", f"//{n}", "DELAYED", 100 - n) for n in range(10)]
    assert [row["service"] for row in over_time.delay_rows(MessageSeries(HOUR, points))] == [
        f"//{n}" for n in range(8)
    ]


def test_each_broker_instance_has_a_row_with_its_band() -> None:
    band = {"expected": 50.0, "low": 37, "high": 63}
    assert bar_pictures.pick_rows(SHARED) == [
        {"place": 0, "broker": f"ID-2, HQ.{HARMLESS}", "dialogs": 1_060, **band},
        {"place": 1, "broker": "ID-1", "dialogs": 40, **band},
    ]


def test_a_balance_without_bands_is_drawn() -> None:
    pick = BalancedInstance("ID-1", None, 3, 2.5, None, None)
    svg = vl_convert.vegalite_to_svg(
        pictures.balance(DialogBalance("HQ", "Sales", "//a", None, None, (pick,), (), "too few")).to_dict()
    )
    assert {"ID-1", "3, fair 2.5"} <= set(_words(svg))
    assert "NaN" not in svg


def test_ids_furthest_from_an_even_share_are_shown() -> None:
    picks = [BalancedInstance(f"{n:02d}", None, 50 + n, 60.0, 55, 65) for n in range(21)]
    rows = bar_pictures.pick_rows(DialogBalance("HQ", "Sales", "//a", None, None, picks, (), None))
    assert [row["broker"] for row in rows] == [f"{n:02d}" for n in range(20, -1, -1) if n != 10]


# What a picture reads like; names, numbers and times as somebody sees them.
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("by instance", {"HQ", HARMLESS, "13,582", "1,100", "delivered", "delayed", "dropped", "not known"}),
        ("reasons", {"NO_ROUTE", "1,030 delayed", "1,100 dropped", "200 delayed"}),
        ("stuck", {"//b", "1,200 since 2026-01-05 13:00", "30 since 2026-01-05 11:00"}),
        ("over time", {"messages in 1 hour", "2026-01-05, UTC", "09:00", "2,000", "delivered", "delayed"}),
        ("delays", {"//b", HARMLESS, "at most 2,000", "at most 3", "2026-01-05, UTC", "09:00"}),
        ("balance", {"ID-1", "1,060, fair 50.0", "40, fair 50.0"}),
        ("estate", {"HQ", "(not known)", "13,575", "1,100", "7", "dropped"}),
    ],
)
def test_each_picture_shows_its_words(name: str, words: set[str]) -> None:
    assert words - set(_words(vl_convert.vegalite_to_svg(PICTURES[name].to_dict()))) == set()


@named
def test_the_legend_has_only_present_outcomes(name: str) -> None:
    written = _words(vl_convert.vegalite_to_svg(PICTURES[name].to_dict()))
    assert {"sent", "forwarded"} & set(written) == set()


def _words(svg: str) -> list[str]:
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    escapes = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
    return [re.sub("|".join(escapes), lambda match: escapes[match[0]], word) for word in texts]


def _vega(picture: picture_theme.Picture) -> dict[str, Any]:
    return dict(vl_convert.vegalite_to_vega(picture.to_dict()))


@named
def test_names_occur_only_in_the_data_of_a_picture(name: str) -> None:
    """Neither in an expression nor in the name of a field nor in the description: only among the rows."""
    spec = _vega(PICTURES[name])
    rows = [one.pop("values") for one in spec["data"] if "values" in one]
    assert (name in {"over time", "reasons"}) == ("alert" not in str(rows)), "the rows of the others hold the name"
    assert [text for text in _texts(spec) if "alert" in text or "</" in text] == []


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def test_a_name_in_an_expression_is_reported() -> None:
    assert [text for text in _texts({"signals": [{"update": f"datum['{HOSTILE}']"}]}) if "alert" in text] != []


@named
@pytest.mark.parametrize("width", [picture_theme.WIDE, picture_theme.NARROW])
def test_pictures_have_width_and_colours_of_the_page(name: str, width: int) -> None:
    svg = picture_theme.to_svg(PICTURES[name], None if name == "estate" else width)
    size = re.match(r'<svg [^>]*viewBox="0 0 (\d+)', svg)
    assert size is not None
    assert name == "estate" or abs(int(size[1]) - width) < 80
    assert re.search(r"(?<!, )#[0-9a-f]{6}", svg) is None, "colours of no style"
    # The policy of the page forbids styles of elements, and several pictures would have the same ids.
    assert [word for word in ("style=", " id=", "url(", "http", "<script") if word in svg] == []
    assert len(str(PICTURES[name].description)) > 40


@named
def test_times_are_utc_in_any_time_zone(name: str) -> None:
    spec = str(_vega(PICTURES[name]))
    assert "timeFormat" not in spec
    assert "'type': 'time'" not in spec
    assert name not in {"over time", "delays"} or "'type': 'utc'" in spec


@named
def test_an_empty_picture_is_drawn(name: str) -> None:
    assert picture_theme.to_svg(EMPTY[name], None).startswith("<svg")


def test_characters_that_vega_cannot_cut_are_left_out() -> None:
    flows = [_flow("\U0001f4e6" * 300, "DELAYED", "NO_ROUTE", 1)]
    assert "\ufffd" in picture_theme.to_svg(pictures.most_stuck(flows), picture_theme.NARROW)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(300, "5 minutes"), (3_600, "1 hour"), (10_800, "3 hours"), (86_400, "1 day"), (90, "90 seconds")],
)
def test_a_step_of_time_in_words(seconds: int, words: str) -> None:
    spec = pictures.outcomes_over_time(MessageSeries(seconds, SERIES.points)).to_dict()
    assert spec["encoding"]["y"]["axis"]["title"] == f"messages in {words}"


def test_the_end_of_a_series_is_exclusive() -> None:
    day = 24 * HOUR
    points = [
        TimePoint(_at(0), "HQ", "//a", "SENT", 1),
        TimePoint(_at(0) + day * 1_000_000, "HQ", "//a", "SENT", 1),
    ]
    spec = pictures.outcomes_over_time(MessageSeries(day, points)).to_dict()
    assert spec["encoding"]["x"]["title"] == "2026-01-05 to 2026-01-06, UTC"


# The numbers of WCAG 2: 4.5 for words, 3 for what is drawn.
@pytest.mark.parametrize("palette", [picture_theme.LIGHT, picture_theme.DARK], ids=["light", "dark"])
def test_colours_differ_from_the_background(palette: picture_theme.PicturePalette) -> None:
    words = {
        name: _contrast(colour, palette.paper) for name, colour in (("ink", palette.ink), ("soft", palette.soft))
    }
    drawn = {name: _contrast(colour, palette.paper) for name, colour in palette.outcomes.items()}
    assert {name: contrast for name, contrast in words.items() if contrast < 4.5} == {}
    assert {name: contrast for name, contrast in drawn.items() if contrast < 3} == {}


def test_contrast_is_computed_as_by_wcag() -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)
    assert _contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_style_sheet_has_all_colours_of_pictures() -> None:
    asked = set(re.findall(r"var\((--[a-z-]+)", str(picture_theme.config(picture_theme.by_style_sheet()))))
    light, dark = picture_theme.css().split("@media", 1)
    assert "--outcome-not-known" in asked
    assert asked - {f"--{name}" for name in re.findall(r"--([a-z-]+):", light)} == set()
    assert re.findall(r"--([a-z-]+):", light) == re.findall(r"--([a-z-]+):", dark)


def test_a_notebook_holds_pictures_as_png() -> None:
    before = alt.renderers.active
    try:
        pictures.for_notebook()
        bundle: Any = PICTURES["reasons"]._repr_mimebundle_()
    finally:
        alt.renderers.enable(before)
    shown, about = bundle
    assert list(shown) == ["image/png"]
    assert shown["image/png"].startswith(b"\x89PNG")
    assert about["image/png"]["width"] > 600


def _bar_ends(picture: picture_theme.Picture) -> list[float]:
    """Return the ends of a picture's bars from the top. A stacked bar ends with its last part."""
    svg = vl_convert.vegalite_to_svg(picture.to_dict())
    ends: dict[float, float] = {}
    for left, top, long in re.findall(r'd="M([\d.]+),([\d.]+)h([\d.]+)v11h-', svg):
        ends[float(top)] = max(ends.get(float(top), 0), float(left) + float(long))
    return [ends[top] for top in sorted(ends)]


def _instances(*counts: int) -> list[MessageFlow]:
    return [
        _flow("//a", outcome, "NO_ROUTE", number, instance=f"i{place:03d}")
        for place, count in enumerate(counts)
        for outcome, number in (("DELIVERED", count - 1), ("DELAYED", 1))
    ]


@pytest.mark.parametrize(
    ("counts", "share", "words"),
    [
        pytest.param([100] * 20 + [10] * 4, 0.4, "4 other instances", id="fewer than the largest"),
        pytest.param([100] * 20 + [99] * 40, 1.0, "40 other instances (bar not to scale)", id="many more"),
    ],
)
def test_other_instances_share_one_bar(counts: list[int], share: float, words: str) -> None:
    """Its scale is the largest other bar. If the others have more in total, the bar is cut and labelled."""
    picture = pictures.outcomes_by_instance(_instances(*counts))
    largest, *_, others = _bar_ends(picture)
    assert others == pytest.approx(share * largest, rel=0.01)
    written = _words(vl_convert.vegalite_to_svg(picture.to_dict()))
    assert words in written
    assert f"{sum(counts[20:]):,}" in written


def test_other_services_that_wait_have_a_bar() -> None:
    flows = [_flow(f"//{n:02d}", "DELAYED", "NO_ROUTE", 50) for n in range(30)]
    largest, *_, others = _bar_ends(pictures.most_stuck(flows))
    assert others == pytest.approx(largest)
