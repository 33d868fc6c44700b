"""The page of a report in Chromium: `make test-browser`. Numbers are those of tests/report_samples.py, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.views.page import report_page
from routing.views.page.facts import MessageFlow, MessageSeries, Report, TimePoint
from tests import report_samples as samples
from tests.platforms.browser import NARROW, ROOT, WIDE, Browser
from tests.platforms.looks import faults, made_of_text, stands_out
from tests.platforms.shown_page import bars, choose, clear, hues, open_all, settle, table, tiles, words

SCREENSHOTS = ROOT / "build" / "screenshots"
HUB, SPOKE, EDGE, STOCK, BILLING = samples.HUB, samples.SPOKE, samples.EDGE, samples.STOCK, samples.BILLING
# As every command prints it: what turns the direction of writing is replaced.
PAY = "//pay\ufffdgnp.exe\ufffd\ufffd\u05e9\u05dc\u05d5\u05dd\ufffd"
PAPER = ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
SERVICES, REASONS = ("Instance", "To service", "Messages"), ("Outcome", "Reason", "Messages")
STUCK = ("To service", "Instance", "Database", "Messages", "Waiting since (UTC)", "For")
ESTATE = ("From", "To", "Outcome", "Messages")
OUTCOMES = ("DELIVERED", "SENT", "FORWARDED", "DELAYED", "DROPPED", "NOT_KNOWN")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "sample.html"
    file.write_text(report_page.render(samples.sample_report()), encoding="utf-8")
    return file


def times(shown: Browser) -> list[tuple[str, ...]]:
    """The hours, and what was decided in them."""
    return [(at[-5:], *numbers) for at, *numbers in table(shown, "times", "From", *OUTCOMES, "Messages")]


def heights(shown: Browser) -> list[tuple[str, int]]:
    """The bars of outcomes over time, from left to right: an outcome, and the messages that the height tells."""
    found = sorted(bars(shown, "times-picture"), key=lambda bar: (bar.x, -bar.y))
    outcomes = hues(shown)
    whole = sum(int(tile.replace(",", "")) for tile in tiles(shown).values())
    point = whole / sum(bar.height for bar in found) if found else 0
    return [(outcomes[bar.hue], round(bar.height * point)) for bar in found]


def everything(shown: Browser) -> list[object]:
    """What the filter may change."""
    grids = ("times", "services", "reasons", "stuck", "estate")
    heads = [shown.texts(f"#{name} thead th") for name in grids]
    tables = [table(shown, name, *of) for name, of in zip(grids, heads, strict=True)]
    pictures = [f"{name}-picture" for name in ("times", "instances", "reasons", "stuck", "delays", "estate")]
    drawn = [(sorted(words(shown, name)), bars(shown, name)) for name in pictures]
    return [tiles(shown), tables, drawn]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_is_in_anybodys_way(shown: Browser, sample: Path, width: int, dark: bool) -> None:
    """No error, no request, nothing over the edge or cut off, nothing that axe-core has found."""
    shown.open(sample, width=width, dark=dark)
    settle(shown)
    shown.picture(SCREENSHOTS / f"sample-{width}-{'dark' if dark else 'light'}.png")
    open_all(shown)
    assert faults(shown) == {}


def test_the_numbers_of_all(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    assert tiles(shown) == dict(zip(OUTCOMES, ("1,320", "340", "60", "158", "9", "5"), strict=True))
    assert times(shown) == [
        ("06:00", "300", "140", "0", "6", "0", "0", "446"),
        ("07:00", "558", "0", "60", "0", "2", "0", "620"),
        ("08:00", "62", "200", "0", "100", "0", "0", "362"),
        ("09:00", "400", "0", "0", "0", "0", "0", "400"),
        ("10:00", "0", "0", "0", "52", "7", "0", "59"),
        ("11:00", "0", "0", "0", "0", "0", "5", "5"),
    ]
    assert table(shown, "services", *SERVICES) == [
        (HUB, STOCK, "1,200"),
        (HUB, BILLING, "385"),
        (SPOKE, samples.SCRIPT, "101"),
        (EDGE, samples.EMOJI, "62"),
        (HUB, PAY, "60"),
        (SPOKE, PAY, "60"),
        (EDGE, samples.LONG, "12"),
        (EDGE, samples.QUOTES, "7"),
        (EDGE, STOCK, "5"),
    ]
    assert table(shown, "reasons", *REASONS, "SQL Server’s numbers") == [
        ("DELAYED", "SERVICE_NOT_FOUND", "101", "9796"),
        ("DELAYED", "NO_ROUTE", "45", "9793, 9750"),
        ("DELAYED", "BROKER_DISABLED", "12", "28012, 28013"),
        ("DROPPED", "FORWARDING_DISABLED", "7", "9792"),
        ("DROPPED", "BROKER_INSTANCE_NOT_FOUND", "2", "9795"),
    ]
    assert table(shown, "stuck", *STUCK) == [
        (samples.SCRIPT, SPOKE, "Pay & Co", "101", "2026-01-02 03:04", "4 d 5 h"),
        (BILLING, HUB, "Shop", "45", "2026-01-04 21:30", "1 d 11 h"),
        (samples.LONG, EDGE, "Orders", "12", "2026-01-05 10:00", "23 h"),
    ]


FILTERS = {
    "an instance": (
        {"instance": SPOKE},
        {"DELIVERED": "58", "DELAYED": "101", "DROPPED": "2"},
        [("06:00", "1"), ("07:00", "60"), ("08:00", "100")],
        [(SPOKE, samples.SCRIPT, "101"), (SPOKE, PAY, "60")],
        [("DELAYED", "SERVICE_NOT_FOUND", "101"), ("DROPPED", "BROKER_INSTANCE_NOT_FOUND", "2")],
        [samples.SCRIPT],
    ),
    "a service": (
        {"service": STOCK},
        {"DELIVERED": "1,200", "NOT_KNOWN": "5"},
        [("06:00", "300"), ("07:00", "500"), ("09:00", "400"), ("11:00", "5")],
        [(HUB, STOCK, "1,200"), (EDGE, STOCK, "5")],
        [],
        [],
    ),
    "an outcome": (
        {"outcome": "DELAYED"},
        {"DELAYED": "158"},
        [("06:00", "6"), ("08:00", "100"), ("10:00", "52")],
        [(SPOKE, samples.SCRIPT, "101"), (HUB, BILLING, "45"), (EDGE, samples.LONG, "12")],
        [
            ("DELAYED", "SERVICE_NOT_FOUND", "101"),
            ("DELAYED", "NO_ROUTE", "45"),
            ("DELAYED", "BROKER_DISABLED", "12"),
        ],
        [samples.SCRIPT, BILLING, samples.LONG],
    ),
    "all three": (
        {"instance": HUB, "service": BILLING, "outcome": "SENT"},
        {"SENT": "340"},
        [("06:00", "140"), ("08:00", "200")],
        [(HUB, BILLING, "340")],
        [],
        [],
    ),
    "a name that is no markup": (
        {"service": samples.SCRIPT},
        {"DELAYED": "101"},
        [("06:00", "1"), ("08:00", "100")],
        [(SPOKE, samples.SCRIPT, "101")],
        [("DELAYED", "SERVICE_NOT_FOUND", "101")],
        [samples.SCRIPT],
    ),
    "what no message fits": ({"instance": HUB, "service": samples.EMOJI}, {}, [], [], [], []),
}


@pytest.mark.parametrize("what", FILTERS)
def test_the_filter(shown: Browser, sample: Path, what: str) -> None:
    asked, outcomes, hours, services, reasons, stuck = FILTERS[what]
    shown.open(sample)
    settle(shown)
    open_all(shown)
    before = everything(shown)
    choose(shown, **asked)
    assert {outcome: number for outcome, number in tiles(shown).items() if number != "0"} == outcomes
    assert [(row[0], row[-1]) for row in times(shown)] == hours
    assert table(shown, "services", *SERVICES) == services
    assert table(shown, "reasons", *REASONS) == reasons
    assert [row[0] for row in table(shown, "stuck", *STUCK)] == stuck
    assert made_of_text(shown) == []
    assert shown.complaints() == []
    clear(shown)
    assert everything(shown) == before


def test_the_pictures_of_all(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    settle(shown)
    # The lowest first.
    assert heights(shown) == [
        *(("DELAYED", 6), ("SENT", 140), ("DELIVERED", 300)),
        *(("DROPPED", 2), ("FORWARDED", 60), ("DELIVERED", 558)),
        *(("DELAYED", 100), ("SENT", 200), ("DELIVERED", 62)),
        ("DELIVERED", 400),
        *(("DROPPED", 7), ("DELAYED", 52)),
        ("NOT_KNOWN", 5),
    ]
    assert {HUB, "1,645", SPOKE, "161", EDGE, "86"} <= set(words(shown, "instances-picture"))
    assert words(shown, "reasons-picture")[:5] == [
        "SERVICE_NOT_FOUND",
        "NO_ROUTE",
        "BROKER_DISABLED",
        "FORWARDING_DISABLED",
        "BROKER_INSTANCE_NOT_FOUND",
    ]
    assert {"101", "45", "12", "7", "2", "1,200", "340", "62", "60", "58", "5"} <= set(
        words(shown, "estate-picture")
    )


def test_the_filter_changes_the_pictures(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    settle(shown)
    choose(shown, instance=SPOKE)
    assert heights(shown) == [("DELAYED", 1), ("DROPPED", 2), ("DELIVERED", 58), ("DELAYED", 100)]
    assert words(shown, "instances-picture")[:2] == [SPOKE, "161"]
    reasons = words(shown, "reasons-picture")
    assert reasons[:2] == ["SERVICE_NOT_FOUND", "BROKER_INSTANCE_NOT_FOUND"]
    assert [reason.split()[0] for reason in reasons[2:4]] == ["101", "2"]
    assert words(shown, "stuck-picture")[0] == samples.SCRIPT
    assert sorted(filter(str.isdecimal, words(shown, "estate-picture"))) == ["101", "2", "58"]
    choose(shown, instance=HUB, outcome="SENT")
    assert heights(shown) == [("SENT", 140), ("SENT", 200)]
    assert words(shown, "instances-picture")[:2] == [HUB, "340"]
    assert bars(shown, "reasons-picture") == bars(shown, "stuck-picture") == []


def test_names_stay_text(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    settle(shown)
    open_all(shown)
    assert made_of_text(shown) == []
    read = shown.texts("td, th")
    for name in (samples.SCRIPT, samples.QUOTES, samples.EMOJI, PAY):
        assert name in read
    assert shown.ask("return document.scripts.length") == 3


def test_without_scripts(shown: Browser, sample: Path) -> None:
    """Every table is there, whole; what would do nothing is not."""
    shown.open(sample)
    open_all(shown)
    names = shown.ask("return [...document.querySelectorAll('table')].map(one => one.id)")
    heads = {name: shown.texts(f"#{name} thead th") for name in names}
    before = {name: table(shown, name, *heads[name]) for name in names}
    assert len(names) >= 13
    assert all(before.values())
    shown.open(sample, scripts=False)
    open_all(shown)
    assert {name: table(shown, name, *heads[name]) for name in names} == before
    assert shown.texts("select, button, figure, output") == []
    assert (stands_out(shown), made_of_text(shown), shown.complaints(), shown.requests()) == ([], [], [], [])


def test_printed(shown: Browser, sample: Path) -> None:
    shown.open(sample, dark=True)
    settle(shown)
    assert shown.texts("select") != []
    shown.show_as(dark=True, medium="print")
    assert shown.texts("select, button, nav") == []
    assert shown.ask("return getComputedStyle(document.body).backgroundColor") in PAPER
    boxes = (
        "return [...document.querySelectorAll('.scroll')].filter(box => box.scrollHeight > box.clientHeight + 1)"
    )
    assert shown.ask(f"{boxes}.map(box => box.textContent.trim().slice(0, 40))") == []
    printed = shown.printed()
    assert 4 <= printed.count(b"/Type /Page\n") <= 12
    assert shown.ask("return [...document.querySelectorAll('details')].every(one => one.open)")
    shown.show_as()


def test_a_page_of_little(shown: Browser, tmp_path: Path) -> None:
    file = tmp_path / "bare.html"
    file.write_text(report_page.render(samples.bare_report()), encoding="utf-8")
    shown.open(file, width=NARROW)
    settle(shown)
    assert faults(shown) == {}
    assert tiles(shown)["DELIVERED"] == "1,320"


def test_a_page_of_much(shown: Browser, tmp_path: Path) -> None:
    """Each of 300 instances: 45 delivered, 50 sent, 55 delayed, 60 dropped."""
    file = tmp_path / "huge.html"
    file.write_text(report_page.render(samples.huge_report(300)), encoding="utf-8")
    shown.open(file, width=NARROW)
    settle(shown)
    assert tiles(shown) == {"DELIVERED": "13,500", "SENT": "15,000", "DELAYED": "16,500", "DROPPED": "18,000"}
    open_all(shown)
    assert len(table(shown, "services", *SERVICES)) == 200
    assert shown.texts("#services-more")[0].startswith("and ")
    # To judge the colours of so many cells takes a minute; those of the sample's cells are the same.
    assert faults(shown, without=["color-contrast"]) == {}


def test_what_is_not_told_apart_over_time(shown: Browser, tmp_path: Path) -> None:
    """Of 1,200 services 200 are told together on the page, and all but two over time."""
    of_one = ("DELAYED", "NO_ROUTE", None, None, None)
    flows = [
        MessageFlow("A", "D", f"s{number:04}", *of_one, 2 if number < 600 else 1, 0) for number in range(1_200)
    ]
    told = (("s0000", 2), ("s1199", 1), (None, 1_797))
    noon = samples.at("2026-01-05T12:00")
    series = MessageSeries(300, [TimePoint(noon, "A", service, "DELAYED", messages) for service, messages in told])
    file = tmp_path / "wide.html"
    file.write_text(report_page.render(Report("", (), 0, flows, (), series)), encoding="utf-8")
    shown.open(file)
    settle(shown)
    open_all(shown)
    assert {"s0000", "at most 2"} <= set(words(shown, "delays-picture"))
    assert len(bars(shown, "delays-picture")) == 1
    choose(shown, service="200 other services")
    assert tiles(shown) == {"DELAYED": "200"}
    assert table(shown, "times", "Messages") == [("1",)]
    assert shown.texts("#not-over-time")[0].startswith("199 of these messages ")
    assert bars(shown, "delays-picture") == []
