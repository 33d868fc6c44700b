"""The page of a report: its tables hold the numbers, its texts stay texts, it loads nothing and stays small."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from routing.advice.remedy import EstateTrouble, Remedy, RemedyPlace, TroubleKind
from routing.engines.traffic_tables import TimePoint
from routing.views.page import message_cells
from routing.views.page.facts import (
    BalancedInstance,
    DialogBalance,
    MessageFlow,
    MessageSeries,
    NeverPicked,
    Report,
)
from routing.views.page.report_answer import state_limit
from routing.views.page.report_page import render
from tests.report_samples import (
    BILLING,
    EDGE,
    HOSTILE,
    HUB,
    LONG,
    SPOKE,
    STOCK,
    at,
    bare_report,
    huge_report,
    sample_report,
)

MEGABYTE = 1_000_000


class Page(HTMLParser):
    """A page as a browser without JavaScript shows it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: dict[str, list[list[str]]] = {}
        self.captions: dict[str, str] = {}
        self.more: dict[str, str] = {}
        self.headings: list[tuple[str, str]] = []
        self.scripts: list[tuple[Mapping[str, str | None], str]] = []
        self.styles: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self._table = self._place = ""
        self._row: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag in ("wbr", "meta"):
            return
        self._open.append(tag)
        if tag == "table":
            self._table = attributes.get("id") or "plain"
            self.tables[self._table] = []
        elif tag == "tr":
            # What is hidden is for the filter.
            self._row = [] if "hidden" in attributes else self.tables[self._table]
            self._row.append([])
        elif tag in ("td", "th"):
            self._row[-1].append("")
        elif tag in ("script", "style"):
            (self.scripts.append((attributes, "")) if tag == "script" else self.styles.append(""))
        elif re.fullmatch("h[1-6]", tag):
            self.headings.append((tag, ""))
        elif tag == "p":
            self._place = (
                (attributes.get("id") or "").removesuffix("-more")
                if "more" in (attributes.get("class") or "")
                else ""
            )

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._place = ""
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
            return
        if inside == "style":
            self.styles[-1] += data
            return
        self.text += data
        if any(tag in self._open for tag in ("td", "th")):
            self._row[-1][-1] += data
        elif "caption" in self._open:
            self.captions[self._table] = self.captions.get(self._table, "") + data
        elif any(tag in self._open for tag in ("h1", "h2", "h3")):
            self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)
        elif self._place:
            self.more[self._place] = self.more.get(self._place, "") + data

    def rows(self, table: str) -> list[list[str]]:
        """The rows of a table below its head."""
        return self.tables[table][1:]


@pytest.fixture(scope="module")
def text() -> str:
    return render(sample_report())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


@pytest.fixture(scope="module")
def huge() -> str:
    return render(huge_report())


def data_of(page: Page) -> dict[str, Any]:
    [held] = [body for kind, body in page.scripts if kind.get("id") == "data"]
    return dict(json.loads(held))


def shown(name: str) -> str:
    """Return a hostile name in its readable form, without characters that change the text direction."""
    return re.sub("[\u202a-\u202e\u2066-\u2069]", "\ufffd", name)


def test_the_page_begins_with_the_answer_and_ends_with_its_sources(page: Page) -> None:
    answer = "167 of 1,892 messages are stuck; it is not known where 405 messages end."
    assert page.headings[0] == ("h1", answer)
    places = [
        page.text.index(words)
        for words in (
            answer,
            "The oldest stuck message was enqueued at 2026-01-02T03:04:00Z, 4 d 6 h ago.",
            "1. DELAYED SERVICE_NOT_FOUND: 101 messages from instance 'spoke.example.com'",
            "3 messages were rejected: their fate is not told here.",
            "1,895 messages read, 1,892 resolved, 3 rejected",
            "Ages are as of 2026-01-06T09:00:00Z.",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("outcome", "ending", "is_open"),
    [("SENT", "DELIVERED", True), ("SENT", "DROPPED", False), ("DELIVERED", None, False)],
)
def test_the_answer_says_if_acknowledgements_are_not_followed(
    outcome: str, ending: str | None, is_open: bool
) -> None:
    place = (None, None, None, None)
    flow = MessageFlow("hub", "Sales", "//far", outcome, *place, messages=1, oldest=0, ending=ending)
    shown = dataclasses.replace(bare_report(), flows=(flow,))
    assert ("trace --all" in state_limit(shown)) == is_open
    # `check` follows them.
    assert state_limit(dataclasses.replace(shown, answer="Nothing.")) == ""


def test_each_sentence_ends_once(text: str) -> None:
    assert (
        re.findall(r"[^.<>]{0,40}\.\.(?!\.)[^.<>]{0,10}", re.sub(r"(?s)<(script|style)\b.*?</\1>", "", text)) == []
    )


def test_tiles_show_where_messages_end(text: str) -> None:
    tiles = re.findall(r'data-outcome="(\w+)">.*?<strong>([\d,]+)</strong>.*?share">([^<]+)<', text, re.DOTALL)
    assert tiles == [
        ("DELIVERED", "1,320", "69.8 %"),
        ("DELAYED", "158", "8.4 %"),
        ("DROPPED", "9", "0.5 %"),
        # Where messages end that were sent or forwarded nothing says.
        ("NOT_KNOWN", "405", "21.4 %"),
    ]


def test_messages_over_time(page: Page) -> None:
    assert page.tables["times"] == [
        ["From", "DELIVERED", "DELAYED", "DROPPED", "NOT_KNOWN", "Messages"],
        ["2026-01-05 06:00", "300", "6", "0", "140", "446"],
        ["2026-01-05 07:00", "558", "0", "2", "60", "620"],
        ["2026-01-05 08:00", "62", "100", "0", "200", "362"],
        ["2026-01-05 09:00", "400", "0", "0", "0", "400"],
        ["2026-01-05 10:00", "0", "52", "7", "0", "59"],
        ["2026-01-05 11:00", "0", "0", "0", "5", "5"],
    ]


def test_messages_by_instance_and_service(page: Page) -> None:
    script, quotes, right_to_left, emoji, long = map(shown, HOSTILE)
    assert page.rows("services") == [
        [HUB, STOCK, "1,200", "0", "0", "0", "1,200"],
        [HUB, BILLING, "0", "45", "0", "340", "385"],
        [SPOKE, script, "0", "101", "0", "0", "101"],
        [EDGE, emoji, "62", "0", "0", "0", "62"],
        [HUB, right_to_left, "0", "0", "0", "60", "60"],
        [SPOKE, right_to_left, "58", "0", "2", "0", "60"],
        [EDGE, long, "0", "12", "0", "0", "12"],
        [EDGE, quotes, "0", "0", "7", "0", "7"],
        [EDGE, STOCK, "0", "0", "0", "5", "5"],
    ]


def test_reasons_with_numbers_and_what_to_do(page: Page) -> None:
    rows = page.rows("reasons")
    assert [row[:3] for row in rows] == [
        ["DELAYED", "SERVICE_NOT_FOUND", "101"],
        ["DELAYED", "NO_ROUTE", "45"],
        ["DELAYED", "BROKER_DISABLED", "12"],
        ["DROPPED", "FORWARDING_DISABLED", "7"],
        ["DROPPED", "BROKER_INSTANCE_NOT_FOUND", "2"],
    ]
    assert [row[3].partition(",")[0] for row in rows] == ["9796", "9793", "28012", "9792", "9795"]
    assert all(len(row[4]) > 20 for row in rows)


def test_services_with_most_stuck_messages_and_since_when(page: Page) -> None:
    assert [[*row[:3], *row[5:]] for row in page.rows("stuck")] == [
        [shown(HOSTILE[0]), SPOKE, "Pay & Co", "101", "2026-01-02 03:04", "4 d 6 h"],
        [BILLING, HUB, "Shop", "45", "2026-01-04 21:30", "1 d 12 h"],
        [LONG, EDGE, "Orders", "12", "2026-01-05 10:00", "23 h"],
        [shown(HOSTILE[1]), EDGE, "(over the network)", "7", "2026-01-05 10:15", "22 h 45 min"],
        [shown(HOSTILE[2]), SPOKE, "(over the network)", "2", "2026-01-05 07:30", "1 d 2 h"],
    ]


def test_the_estate_in_numbers_and_as_a_matrix_that_leads_to_them(text: str, page: Page) -> None:
    rows = {tuple(row[:3]): row[3] for row in page.rows("estate")}
    assert rows == {
        (HUB, HUB, "DELIVERED"): "1,200",
        (HUB, "tcp://billing.example.org:4022", "NOT_KNOWN"): "340",
        (HUB, SPOKE, "NOT_KNOWN"): "60",
        (HUB, HUB, "DELAYED"): "45",
        (SPOKE, SPOKE, "DELIVERED"): "58",
        (SPOKE, SPOKE, "DELAYED"): "101",
        (SPOKE, SPOKE, "DROPPED"): "2",
        (EDGE, EDGE, "DELIVERED"): "62",
        (EDGE, EDGE, "DELAYED"): "12",
        (EDGE, EDGE, "DROPPED"): "7",
        (EDGE, "(not known)", "NOT_KNOWN"): "5",
    }
    links = set(re.findall(r'href="#(estate-\d+)"', text))
    assert len(links) == len({key[:2] for key in rows})
    assert links <= {attributes.get("id") for tag, attributes in page.tags if tag == "tr"}


def test_every_chart_has_a_title_and_every_table_can_be_sorted(text: str, page: Page) -> None:
    assert text.count("<figure") == text.count("<figcaption><b>") > 6
    heads = [attributes for tag, attributes in page.tags if tag == "th" and attributes.get("scope") == "col"]
    assert text.count('<button type="button" disabled>') == len(heads)
    assert {attributes["aria-sort"] for attributes in heads if "aria-sort" in attributes} == {
        "ascending",
        "descending",
    }


def test_names_break_after_some_signs_only(text: str) -> None:
    assert "a-<wbr>very-<wbr>long-<wbr>name" in text
    assert "//example.<wbr>com/<wbr>stock" in text


def test_only_unfair_balances_are_open(page: Page) -> None:
    parts = [attributes.get("class") for tag, attributes in page.tags if tag == "details"]
    assert parts.count("part") == 1
    assert [title for level, title in page.headings if level == "h3"][-2:] == [
        f"{STOCK} from {HUB}.Shop",
        f"{shown(HOSTILE[3])} from {EDGE}.Orders",
    ]


def test_balances_are_shown_with_their_bands(page: Page) -> None:
    ids = [f"{number}0000000-0000-4000-8000-00000000000{number}" for number in range(1, 6)]
    assert page.rows("balance-0") == [
        [ids[0], f"{HUB}.Stock", "48", "50.0", "37 to 63", "in the band"],
        [ids[1], f"{SPOKE}.Stock", "52", "50.0", "37 to 63", "in the band"],
        [ids[2], "–", "80", "50.0", "37 to 63", "above the band"],
        [ids[3], f"{EDGE}.{HOSTILE[0]}", "20", "50.0", "37 to 63", "below the band"],
    ]
    assert page.rows("balance-0-never")[0][:3] == [ids[4], HOSTILE[1], "EXPIRED"]
    assert "Unfair: 2 shares of 4 outside the band." in page.text
    assert "No band: the expected number of dialogs is below 5." in page.text


def test_findings_coverage_and_changes(page: Page) -> None:
    assert [row[:2] for row in page.rows("findings")] == [
        ["error", "SBR012"],
        ["warning", "SBR028"],
        ["info", "SBR030"],
    ]
    assert page.rows("coverage") == [[EDGE, "3", "0", "3"], [HUB, "12", "9", "3"], [SPOKE, "4", "4", "0"]]
    assert "Messages used 13 of 19 routes (68.4 %)." in page.text
    assert page.rows("outcomes-before")[2] == ["DELAYED", "0", "101", "+101"]
    assert page.rows("reasons-before")[3] == ["HOP_LIMIT", "3", "0", "-3"]
    assert [row[:4] for row in page.rows("routes")] == [
        ["CHANGED", HUB, "Shop", "Bill"],
        ["ADDED", SPOKE, "Pay & Co", HOSTILE[1]],
        ["REMOVED", EDGE, "Orders", "Gone"],
    ]


def test_the_page_compares_outcomes_with_sql_server() -> None:
    page = Page(render(sample_report()))
    assert page.rows("observed-classes") == [
        [HUB, "1,200", "0", "30", "9", "0"],
        [SPOKE, "0", "70", "0", "0", "0"],
    ]
    # 1,270 of 1,300 that say anything.
    assert "97.7 % of the observed episodes match the routes." in page.text
    assert [row[:3] for row in page.rows("observed-causes")] == [[HUB, "ROUTE_CHANGED", "30"]]
    assert [row[:8] for row in page.rows("contradictions")] == [
        [HUB, "Shop", STOCK, "SENT", "\N{EN DASH}", "DELAYED", "NO_ROUTE", "20"],
        [HUB, "\N{EN DASH}", BILLING, "DELAYED", "9796", "DELIVERED", "LOCAL_SERVICE", "10"],
    ]
    assert "observed-classes" not in Page(render(bare_report())).tables


def test_hostile_names_are_texts(text: str, page: Page) -> None:
    assert [kind.get("type") for kind, _ in page.scripts] == ["application/json", None]
    assert not any(
        tag == "img" or any(name.startswith("on") for name in attributes) for tag, attributes in page.tags
    )
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    assert {shown(name) for name in HOSTILE} <= {cell for row in page.rows("services") for cell in row}
    assert "<" not in page.scripts[0][1]


def test_the_page_loads_nothing(page: Page) -> None:
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "data", "action", "poster"} & set(attributes), tag
        assert (attributes.get("href") or "#").startswith("#")
    assert not any("url(" in style or "@import" in style for style in page.styles)
    [policy] = [
        attributes["content"]
        for _, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for part in (*page.styles, *(body for kind, body in page.scripts if "type" not in kind)):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" in policy


def test_headings_are_in_order_and_tables_have_captions(page: Page) -> None:
    levels = [int(level[1]) for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert set(page.captions) == set(page.tables)
    assert all(head for rows in page.tables.values() for head in rows[0])
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_optional_sections_are_left_out() -> None:
    page = Page(render(bare_report()))
    assert list(page.tables) == ["services", "reasons", "stuck", "estate"]
    assert page.rows("services")[0] == [HUB, STOCK, "1,200", "0", "0", "0", "1,200"]
    assert "What is not known" not in page.text


def test_a_report_of_no_message() -> None:
    page = Page(render(Report("0 messages", (), 0, (), (), MessageSeries(300, ()), (), None, None, None)))
    assert page.rows("services") == [["none"]]
    assert "No service is balanced among several broker instances." in page.text


def test_troubles_other_than_messages_are_listed() -> None:
    place = RemedyPlace("HUB", "Orders")
    remedy = Remedy(place, "Queue 'Q' of service '//a' is off.", ("Turn it on.",), "ALTER QUEUE [Q];", True)
    trouble = EstateTrouble(TroubleKind.QUEUE_OFF, "queue 'Q' is off", 7, remedy)
    page = Page(render(dataclasses.replace(bare_report(), troubles=[trouble])))
    assert "Beside the messages" in page.text
    assert "QUEUE_OFF: queue 'Q' is off ('HUB', database 'Orders')" in page.text
    assert "ALTER QUEUE [Q];" in page.text


def test_lists_are_bounded(huge: str) -> None:
    page = Page(huge)
    assert len(huge.encode()) < 3 * MEGABYTE
    # The rows of the matrix are those of its cells.
    assert all(len(rows) <= 201 for name, rows in page.tables.items() if name != "estate")
    assert page.more["findings"] == "and 1,800 more"
    assert page.more["coverage"] == "and 1,800 more"
    # 2,000 sentences, and two of what is folded; five are shown.
    assert re.search(r"What is not known.*?1,997 more", page.text, re.DOTALL)


def cells_of(page: Page, kind: str = "cells") -> list[tuple[int, int, str, int]]:
    """The cells of a page: number of instance and service, ending, messages."""
    data = data_of(page)
    return [(row[0], row[1], data["endings"][row[2]], row[3]) for row in data[kind]["rows"]]


def test_a_huge_report_has_all_messages_in_its_cells(huge: str) -> None:
    page = Page(huge)
    cells = cells_of(page)
    # 2,000 instances with 1 + 2 + … + 20 messages each; of the numbers 3, 7, 11, 15 and 19 are delayed.
    assert sum(cell[3] for cell in cells) == 2_000 * 210
    assert sum(messages for _, _, ending, messages in cells if ending == "DELAYED") == 2_000 * 55
    assert sum(cell[3] for cell in cells_of(page, "moments")) == 2_000 * 210
    offered = dict(re.findall(r'<option value="(\d+)">(instance-[^<]*|[\d,]+ other instances)</option>', huge))
    folded = [name for name in offered.values() if name.endswith(" other instances")]
    assert len(offered) - 1 + int(folded[0].split()[0].replace(",", "")) == 2_000
    # Whatever has a name is told whole.
    for number in [number for number, name in offered.items() if name.startswith("instance-")][:3]:
        assert sum(messages for instance, _, _, messages in cells if instance == int(number)) == 210


def test_rows_are_the_sums_of_their_cells(text: str) -> None:
    """The numbers of a row are the sums of its cells, in each table that the filter works on."""
    page = Page(text)
    data = data_of(page)
    for kind in ("cells", "moments"):
        for place, name in enumerate(data[kind]["tables"]):
            sums: dict[int, int] = {}
            for row in data[kind]["rows"]:
                if row[4 + place] >= 0:
                    sums[row[4 + place]] = sums.get(row[4 + place], 0) + row[3]
            column = page.tables[name][0].index("Messages")
            numbers = [int(row[column].replace(",", "")) for row in page.rows(name)]
            assert numbers == [sums[number] for number in range(len(numbers))], name


def test_grouped_rows_are_not_counted_twice_over_time() -> None:
    # Of 1,200 services two are told apart over time, and on the page not all by name.
    flows = [
        MessageFlow("A", None, f"s{n:04}", "DELAYED", None, None, None, None, 2 if n < 600 else 1, 0)
        for n in range(1_200)
    ]
    points = [
        TimePoint(0, "A", "s0000", "DELAYED", 2),
        TimePoint(0, "A", "s1199", "DELAYED", 1),
        TimePoint(0, "A", None, "DELAYED", 1_797),
    ]
    text = render(Report("", (), 0, flows, (), MessageSeries(300, points)))
    offered = {
        name: int(number) for number, name in re.findall(r'<option value="(\d+)">(s[^<]*|\d+ other [^<]*)<', text)
    }
    [others] = [number for name, number in offered.items() if "other" in name]
    messages_by_service = {service: messages for _, service, _, messages in cells_of(Page(text), "moments")}
    assert messages_by_service == {offered["s0000"]: 2, others: 1, -1: 1_797}


def wide_report(name: str, many: int) -> Report:
    """A report of many names that are as long and as hostile as may be."""
    names = [f"{name}{number}" for number in range(many)]
    ends = ("DELAYED", "NO_ROUTE")
    flows = [
        *(MessageFlow(one, one, one, "DELAYED", "NO_ROUTE", one, one, None, 1, 0) for one in names),
        *(
            MessageFlow(one, one, one, "SENT", "NETWORK_ADDRESS", one, one, None, 1, 0, *ends, one)
            for one in names
        ),
    ]
    points = [TimePoint(number * 300_000_000, one, one, "DELAYED", 1) for number, one in enumerate(names)]
    picks = [BalancedInstance(one, one, 1, 1.0, 0, 2) for one in names]
    never = [NeverPicked(one, one, "EXPIRED", one) for one in names]
    balances = [DialogBalance(one, one, one, None, None, picks, never, None) for one in names[:20]]
    finding = {"code": "X", "severity": "error", "message": name * 9, "advice": name * 9, "error_number": None}
    sample_findings = sample_report().findings
    assert sample_findings is not None
    rows = tuple({**finding, "instance_name": one, "database_name": one, "object": one} for one in names)
    findings = dataclasses.replace(sample_findings, rows=rows)
    return Report(name * 9, names, 0, flows, (), MessageSeries(300, points), balances, findings)


# The bounds of lists and names are held by the tests beside it.
@pytest.mark.long
def test_a_page_with_as_many_cells_and_moments_as_may_be_is_small() -> None:
    # 100 instances send to 8 services with three endings: 2,400 cells, and over time 25,000 moments of them.
    fates = ("DELIVERED LOCAL", "DELAYED NO_ROUTE", "DROPPED HOP_LIMIT")
    start, huge = at("2026-01-05T00:00"), huge_report()
    flows, points = [], []
    for place in range(2_400):
        name, service = f"instance-{place % 100:03}.example", f"//example/{place // 300:02}"
        outcome, reason = fates[place // 100 % 3].split()
        messages, oldest = 1_000_000 + place * 701, start + place * 61_000_000
        flows.append(MessageFlow(name, "Sales", service, outcome, reason, "r", None, None, messages, oldest))
        if place < 1_250:
            steps = (start + step * 3_600_000_000 for step in range(20))
            points += [TimePoint(moment, name, service, outcome, messages // 20) for moment in steps]
    text = render(dataclasses.replace(huge, flows=flows, series=MessageSeries(3_600, points)))
    page = Page(text)
    assert (len(cells_of(page)), len(cells_of(page, "moments"))) == (2_400, message_cells.MOST_MOMENTS)
    assert len(text.encode()) < 3 * MEGABYTE


@pytest.mark.parametrize("sign", ["<", pytest.param("\U0001f600", marks=pytest.mark.long)])
def test_a_page_of_the_worst_names_is_small(sign: str) -> None:
    assert len(render(wide_report(sign * 300, 2_000)).encode()) < 3 * MEGABYTE


def test_equal_looking_names_are_distinguished() -> None:
    flows: Sequence[MessageFlow] = [
        MessageFlow(
            "A", "D", f"\u202e{sign}", "SENT", "NETWORK_ADDRESS", "R", "tcp://x:1", None, 1, at("2026-01-05T00:00")
        )
        for sign in "\u202e\u202d"
    ]
    page = Page(render(Report("", (), 0, flows, ())))
    assert page.rows("services") == [["A", "\ufffd\ufffd", "1", "1"], ["A", "\ufffd\ufffd", "1", "1"]]
