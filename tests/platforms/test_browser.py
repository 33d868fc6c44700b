"""The page of a report in Chromium: `make test-browser`. Numbers are those of tests/report_samples.py, by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from routing.engines.traffic_tables import TimePoint
from routing.views.page import report_page
from routing.views.page.facts import STUCK as STUCK_ENDINGS
from routing.views.page.facts import MessageFlow, MessageSeries, Report
from tests import report_samples as samples
from tests.platforms.browser import NARROW, ROOT, WIDE, Browser
from tests.platforms.looks import faults, made_of_text, stands_out
from tests.platforms.shown_page import choose, clear, open_all, table, tiles, wait_for_script, words

SCREENSHOTS = ROOT / "build" / "screenshots"
HUB, SPOKE, EDGE, STOCK, BILLING = samples.HUB, samples.SPOKE, samples.EDGE, samples.STOCK, samples.BILLING
# As every command prints it: what turns the direction of writing is replaced.
PAY = "//pay\ufffdgnp.exe\ufffd\ufffd\u05e9\u05dc\u05d5\u05dd\ufffd"
PAPER = ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
SERVICES, REASONS = ("Instance", "To service", "Messages"), ("Ending", "Reason", "Messages")
STUCK = ("To service", "Instance", "Database", "Messages", "Waiting since (UTC)", "For")
ENDINGS = ("DELIVERED", "DELAYED", "DROPPED", "NOT_KNOWN")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "sample.html"
    file.write_text(report_page.render(samples.sample_report()), encoding="utf-8")
    return file


def times(shown: Browser) -> list[tuple[str, ...]]:
    """Return the hours and the counts of their decisions."""
    return [(at[-5:], *numbers) for at, *numbers in table(shown, "times", "From", *ENDINGS, "Messages")]


def everything(shown: Browser) -> list[object]:
    """Return everything that the filter may change."""
    grids = ("times", "services", "reasons", "stuck", "estate")
    heads = [shown.texts(f"#{name} thead th") for name in grids]
    tables = [table(shown, name, *of) for name, of in zip(grids, heads, strict=True)]
    return [tiles(shown), tables, shown.texts("figure")]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_page_has_no_faults(shown: Browser, sample: Path, width: int, dark: bool) -> None:
    """There is no error, request, overflow, cut text or finding of axe-core."""
    shown.open(sample, width=width, dark=dark)
    wait_for_script(shown)
    shown.picture(SCREENSHOTS / f"sample-{width}-{'dark' if dark else 'light'}.png")
    open_all(shown)
    assert faults(shown) == {}


def test_unfiltered_page_shows_all_counts(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    assert tiles(shown) == dict(zip(ENDINGS, ("1,320", "158", "9", "405"), strict=True))
    assert times(shown) == [
        ("06:00", "300", "6", "0", "140", "446"),
        ("07:00", "558", "0", "2", "60", "620"),
        ("08:00", "62", "100", "0", "200", "362"),
        ("09:00", "400", "0", "0", "0", "400"),
        ("10:00", "0", "52", "7", "0", "59"),
        ("11:00", "0", "0", "0", "5", "5"),
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
        (samples.SCRIPT, SPOKE, "Pay & Co", "101", "2026-01-02 03:04", "4 d 6 h"),
        (BILLING, HUB, "Shop", "45", "2026-01-04 21:30", "1 d 12 h"),
        (samples.LONG, EDGE, "Orders", "12", "2026-01-05 10:00", "23 h"),
        (samples.QUOTES, EDGE, "(over the network)", "7", "2026-01-05 10:15", "22 h 45 min"),
        (PAY, SPOKE, "(over the network)", "2", "2026-01-05 07:30", "1 d 2 h"),
    ]


FILTERS = {
    "an instance": (
        {"instance": SPOKE},
        {"DELIVERED": "58", "DELAYED": "101", "DROPPED": "2"},
        [("06:00", "1"), ("07:00", "60"), ("08:00", "100")],
        [(SPOKE, samples.SCRIPT, "101"), (SPOKE, PAY, "60")],
        [("DELAYED", "SERVICE_NOT_FOUND", "101"), ("DROPPED", "BROKER_INSTANCE_NOT_FOUND", "2")],
        [samples.SCRIPT, PAY],
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
        {"instance": HUB, "service": BILLING, "outcome": "NOT_KNOWN"},
        {"NOT_KNOWN": "340"},
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
    wait_for_script(shown)
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


def summed(flows: Iterable[MessageFlow], *names: str) -> dict[tuple[str, ...], str]:
    """The messages of flows by some of their fields, as tables show them."""
    counts: Counter[tuple[str, ...]] = Counter()
    for flow in flows:
        counts[tuple(str(getattr(flow, name)) for name in names)] += flow.messages
    return {key: f"{number:,}" for key, number in counts.items()}


def test_each_filter_shows_the_counts_that_python_computes(shown: Browser, tmp_path: Path) -> None:
    """Of every instance, service and ending: tiles, rows of tables and the columns of endings."""
    flows = [
        MessageFlow(
            *(
                f"i{place % 4}",
                "D",
                f"//s{place % 7}",
                outcome,
                reason,
                None,
                None,
                None,
                place * 37 + 1,
                0,
                ending,
            ),
            *(reason, f"i{place % 3}"),
        )
        for place, (outcome, reason, ending) in enumerate(
            [
                ("SENT", "NO_ROUTE", "DELAYED"),
                ("DELIVERED", "LOCAL_SERVICE", None),
                ("FORWARDED", "HOP_LIMIT", "DROPPED"),
                ("SENT", "ROUTING_LOOP", "LOOP"),
                ("DELAYED", "BROKER_DISABLED", None),
                ("SENT", "LOCAL_SERVICE", "DELIVERED"),
            ]
            * 12
        )
    ]
    file = tmp_path / "filtered.html"
    file.write_text(report_page.render(Report("", (), 0, flows, ())), encoding="utf-8")
    shown.open(file)
    everything = {
        "instance": ("instance", {flow.instance for flow in flows}),
        "service": ("service", {flow.service for flow in flows}),
        "outcome": ("end", {flow.end for flow in flows}),
    }
    for name, (attribute, values) in everything.items():
        for value in sorted(values):
            choose(shown, **{name: value})
            left = [flow for flow in flows if getattr(flow, attribute) == value]
            shown_counts = {ending: number for ending, number in tiles(shown).items() if number != "0"}
            assert shown_counts == {key[0]: number for key, number in summed(left, "end").items()}
            rows = table(shown, "services", "Instance", "To service", "Messages")
            assert {row[:2]: row[2] for row in rows} == summed(left, "instance", "service")
            stuck = [flow for flow in left if flow.end in STUCK_ENDINGS]
            rows = table(shown, "reasons", "Ending", "Reason", "Messages")
            assert {row[:2]: row[2] for row in rows} == summed(stuck, "end", "why")
            rows = table(shown, "stuck", "To service", "Instance", "Ending", "Reason", "Messages")
            assert {row[:4]: row[4] for row in rows} == summed(stuck, "service", "instance", "end", "why")
            assert sum(int(row[0].replace(",", "")) for row in table(shown, "estate", "Messages")) == sum(
                flow.messages for flow in left
            )
            for ending in {flow.end for flow in flows}:
                column = {row[:2]: row[2] for row in table(shown, "services", "Instance", "To service", ending)}
                counts = summed([flow for flow in left if flow.end == ending], "instance", "service")
                assert column == dict.fromkeys(column, "0") | counts
            assert shown.texts("#filtered-sections figure") == []
        clear(shown)
    assert len(shown.texts("#filtered-sections figure")) == 4


def test_charts_equal_those_that_python_draws(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    written = shown.ask("return document.documentElement.innerHTML.match(/<svg/g).length")
    assert {HUB, "1,645", SPOKE, "161", EDGE, "86"} <= set(words(shown, "instances-picture"))
    assert words(shown, "reasons-picture")[:2] == ["SERVICE_NOT_FOUND", "NO_ROUTE"]
    assert {"1,245", "340", "60", "161", "81", "5"} <= set(words(shown, "estate-picture"))
    shown.open(sample, scripts=False)
    assert shown.ask("return document.documentElement.innerHTML.match(/<svg/g).length") == written
    shown.open(sample, width=400)
    assert {HUB, "1,645"} <= set(words(shown, "instances-picture"))


def test_a_cell_of_the_matrix_leads_to_its_rows(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    [target] = shown.ask(
        "const cell = [...document.querySelectorAll('#estate-picture .wide a')]"
        ".find(one => one.innerHTML.includes('tcp://billing'));"
        "cell.dispatchEvent(new MouseEvent('click', { bubbles: true }));"
        "return new Promise(done => setTimeout(() => done("
        "[[...document.querySelector(':target').cells].map(one => one.textContent)]), 200));"
    )
    assert target == [HUB, "tcp://billing.example.org:4022", "NOT_KNOWN", "340"]


def test_tables_are_sorted_by_a_click_and_by_a_key(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    sorted_by = "return [...document.querySelectorAll('#services thead th')].map(one => one.ariaSort).join()"
    by_messages = table(shown, "services", *SERVICES)
    shown.click("#services th:nth-child(2) button")
    by_service = table(shown, "services", *SERVICES)
    assert [row[1].lower() for row in by_service] != [row[1].lower() for row in by_messages]
    assert sorted(by_service) == sorted(by_messages)
    assert shown.ask(sorted_by).split(",")[:2] == ["", "ascending"]
    shown.ask("document.querySelector('#services th:last-child button').focus();")
    shown.press("Enter")
    assert table(shown, "services", *SERVICES) == by_messages
    assert shown.ask(sorted_by).endswith(",descending")
    shown.press("Enter")
    numbers = [int(row[2].replace(",", "")) for row in table(shown, "services", *SERVICES)]
    assert numbers == sorted(numbers)
    shown.click("#findings th:nth-child(2) button")
    assert [row[0] for row in table(shown, "findings", "Code")] == ["SBR012", "SBR028", "SBR030"]


@pytest.mark.parametrize("width", [400, 1400, 1920])
def test_every_number_is_visible(shown: Browser, sample: Path, width: int) -> None:
    """On a large screen and on a phone, no table exceeds its place and all texts are complete."""
    shown.open(sample, width=width)
    open_all(shown)
    assert stands_out(shown) == []
    beyond = (
        "return [...document.querySelectorAll('td, tbody th')].filter(cell => cell.checkVisibility()"
        " && !cell.classList.contains('name')"
        " && cell.getBoundingClientRect().right > window.innerWidth).map(cell => cell.textContent)"
    )
    assert shown.ask(beyond) == []
    boxes = (
        "return [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)"
        ".map(box => box.querySelector('table').id)"
    )
    assert shown.ask(boxes) == []


def test_hostile_names_stay_text(shown: Browser, sample: Path) -> None:
    shown.open(sample)
    wait_for_script(shown)
    open_all(shown)
    assert made_of_text(shown) == []
    read = shown.texts("td, th")
    for name in (samples.SCRIPT, samples.QUOTES, samples.EMOJI, PAY):
        assert name in read
    assert shown.ask("return document.scripts.length") == 2


def test_the_page_works_without_scripts(shown: Browser, sample: Path) -> None:
    """All tables are complete, and controls without effect are hidden."""
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
    assert shown.texts("select, button:enabled, output") == []
    assert len(shown.texts("figure")) > 5
    assert (stands_out(shown), made_of_text(shown), shown.complaints(), shown.requests()) == ([], [], [], [])


def test_the_printed_page_is_complete(shown: Browser, sample: Path) -> None:
    shown.open(sample, dark=True)
    wait_for_script(shown)
    assert shown.texts("select") != []
    shown.show_as(dark=True, medium="print")
    assert shown.texts("select, form button, nav") == []
    assert shown.ask("return getComputedStyle(document.body).backgroundColor") in PAPER
    boxes = (
        "return [...document.querySelectorAll('.scroll')].filter(box => box.scrollHeight > box.clientHeight + 1)"
    )
    assert shown.ask(f"{boxes}.map(box => box.textContent.trim().slice(0, 40))") == []
    printed = shown.printed()
    assert 2 <= printed.count(b"/Type /Page\n") <= 8
    shown.show_as()


def test_a_small_page_has_no_faults(shown: Browser, tmp_path: Path) -> None:
    file = tmp_path / "bare.html"
    file.write_text(report_page.render(samples.bare_report()), encoding="utf-8")
    shown.open(file, width=NARROW)
    wait_for_script(shown)
    assert faults(shown) == {}
    assert tiles(shown)["DELIVERED"] == "1,320"


def test_a_large_page(shown: Browser, tmp_path: Path) -> None:
    """Each of 300 instances has 45 delivered, 50 sent, 55 delayed and 60 dropped messages."""
    file = tmp_path / "huge.html"
    file.write_text(report_page.render(samples.huge_report(300)), encoding="utf-8")
    shown.open(file, width=NARROW)
    wait_for_script(shown)
    assert tiles(shown) == {"DELIVERED": "13,500", "DELAYED": "16,500", "DROPPED": "18,000", "NOT_KNOWN": "15,000"}
    open_all(shown)
    assert len(table(shown, "services", *SERVICES)) == 200
    assert shown.texts("#services-more")[0].startswith("and ")
    # To judge the colours of so many cells takes a minute; those of the sample's cells are the same.
    assert faults(shown, without=["color-contrast"]) == {}


def test_services_that_are_grouped_over_time(shown: Browser, tmp_path: Path) -> None:
    """The page groups 200 of 1,200 services, and all but two over time."""
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
    wait_for_script(shown)
    open_all(shown)
    assert {"s0000", "at most 2"} <= set(words(shown, "delays-picture"))
    choose(shown, service="200 other services")
    assert tiles(shown) == {"DELAYED": "200"}
    assert table(shown, "times", "Messages") == [("1",)]
    assert shown.texts("#not-over-time")[0].startswith("199 of these messages ")
