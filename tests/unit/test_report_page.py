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

from routing.views.page import message_cells
from routing.views.page.facts import (
    BalancedInstance,
    DialogBalance,
    MessageFlow,
    MessageSeries,
    NeverPicked,
    Report,
    TimePoint,
)
from routing.views.page.page_tables import shorten_age
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
    """What a browser without JavaScript makes of a page."""

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
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        self._open.append(tag)
        if tag == "table":
            self._table = found["id"] or ""
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self.tables[self._table][-1].append("")
        elif tag in ("script", "style"):
            (self.scripts.append((found, "")) if tag == "script" else self.styles.append(""))
        elif re.fullmatch("h[1-6]", tag):
            self.headings.append((tag, ""))
        elif tag == "p":
            self._place = (
                (found.get("id") or "").removesuffix("-more") if "more" in (found.get("class") or "") else ""
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
            self.tables[self._table][-1][-1] += data
        elif "caption" in self._open:
            self.captions[self._table] = self.captions.get(self._table, "") + data
        elif self._open and self._open[-1] in ("h1", "h2", "h3"):
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
    """A hostile name as it is to be read: what could turn the direction of text is replaced."""
    return re.sub("[\u202a-\u202e\u2066-\u2069]", "\ufffd", name)


def test_the_head_says_what_was_looked_at(page: Page) -> None:
    assert "1,895 messages read, 1,892 resolved, 3 rejected" in page.text
    assert "3 messages were rejected: their fate is not told here." in page.text
    assert "Ages are told as of 2026-01-06T09:00:00Z." in page.text


def test_messages_by_outcome(text: str) -> None:
    tiles = re.findall(r'data-outcome="(\w+)">.*?<strong>([\d,]+)</strong>.*?share">([^<]+)<', text, re.DOTALL)
    assert tiles == [
        ("DELIVERED", "1,320", "69.8 %"),
        ("SENT", "340", "18.0 %"),
        ("FORWARDED", "60", "3.2 %"),
        ("DELAYED", "158", "8.4 %"),
        ("DROPPED", "9", "0.5 %"),
        ("NOT_KNOWN", "5", "0.3 %"),
    ]


def test_messages_over_time(page: Page) -> None:
    outcomes = ["DELIVERED", "SENT", "FORWARDED", "DELAYED", "DROPPED", "NOT_KNOWN"]
    assert page.tables["times"] == [
        ["From", *outcomes, "Messages"],
        ["2026-01-05 06:00", "300", "140", "0", "6", "0", "0", "446"],
        ["2026-01-05 07:00", "558", "0", "60", "0", "2", "0", "620"],
        ["2026-01-05 08:00", "62", "200", "0", "100", "0", "0", "362"],
        ["2026-01-05 09:00", "400", "0", "0", "0", "0", "0", "400"],
        ["2026-01-05 10:00", "0", "0", "0", "52", "7", "0", "59"],
        ["2026-01-05 11:00", "0", "0", "0", "0", "0", "5", "5"],
    ]


def test_messages_by_instance_and_service(page: Page) -> None:
    script, quotes, right_to_left, emoji, long = map(shown, HOSTILE)
    assert page.rows("services") == [
        [HUB, STOCK, "1,200", "0", "0", "0", "0", "0", "1,200"],
        [HUB, BILLING, "0", "340", "0", "45", "0", "0", "385"],
        [SPOKE, script, "0", "0", "0", "101", "0", "0", "101"],
        [EDGE, emoji, "62", "0", "0", "0", "0", "0", "62"],
        [HUB, right_to_left, "0", "0", "60", "0", "0", "0", "60"],
        [SPOKE, right_to_left, "58", "0", "0", "0", "2", "0", "60"],
        [EDGE, long, "0", "0", "0", "12", "0", "0", "12"],
        [EDGE, quotes, "0", "0", "0", "0", "7", "0", "7"],
        [EDGE, STOCK, "0", "0", "0", "0", "0", "5", "5"],
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


def test_services_with_most_waiting_messages_and_since_when(page: Page) -> None:
    assert page.rows("stuck") == [
        [shown(HOSTILE[0]), SPOKE, "Pay & Co", "SERVICE_NOT_FOUND", "101", "2026-01-02 03:04", "4 d 5 h"],
        [BILLING, HUB, "Shop", "NO_ROUTE", "45", "2026-01-04 21:30", "1 d 11 h"],
        [LONG, EDGE, "Orders", "BROKER_DISABLED", "12", "2026-01-05 10:00", "23 h"],
    ]


def test_the_estate_in_numbers(page: Page) -> None:
    rows = {tuple(row[:3]): row[3] for row in page.rows("estate")}
    assert rows[f"{HUB}.Shop", f"{HUB}.Stock", "DELIVERED"] == "1,200"
    assert rows[f"{HUB}.Shop", "tcp://billing.example.org:4022", "SENT"] == "340"
    assert rows[HUB, SPOKE, "FORWARDED"] == "60"
    assert rows[f"{HUB}.Shop", "(stops here)", "DELAYED"] == "45"
    assert rows[EDGE, "(stops here)", "DROPPED"] == "7"
    assert len(rows) == 11


def test_balance(page: Page) -> None:
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


def test_what_sql_server_did_beside_what_the_routes_say() -> None:
    page = Page(render(sample_report()))
    assert page.rows("observed-classes") == [
        [HUB, "1,200", "0", "30", "9", "0"],
        [SPOKE, "0", "70", "0", "0", "0"],
    ]
    # 1,270 of 1,300 that say anything.
    assert "97.7 % of what was observed matches the routes." in page.text
    assert [row[:3] for row in page.rows("observed-causes")] == [[HUB, "ROUTE_CHANGED", "30"]]
    assert [row[:8] for row in page.rows("contradictions")] == [
        [HUB, "Shop", STOCK, "SENT", "\N{EN DASH}", "DELAYED", "NO_ROUTE", "20"],
        [HUB, "\N{EN DASH}", BILLING, "DELAYED", "9796", "DELIVERED", "LOCAL_SERVICE", "10"],
    ]
    assert "observed-classes" not in Page(render(bare_report())).tables


def test_hostile_names_are_texts(text: str, page: Page) -> None:
    assert [kind.get("type") for kind, _ in page.scripts] == ["application/json", None, None]
    assert not any(tag == "img" or any(name.startswith("on") for name in found) for tag, found in page.tags)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    names = data_of(page)["names"]
    assert {shown(name) for name in HOSTILE} <= set(names)
    assert "<" not in page.scripts[0][1]


def test_nothing_is_loaded(page: Page) -> None:
    for tag, found in page.tags:
        assert not {"src", "srcset", "data", "action", "poster"} & set(found), tag
        assert (found.get("href") or "#").startswith("#")
    assert not any("url(" in style or "@import" in style for style in page.styles)
    [policy] = [found["content"] for _, found in page.tags if found.get("http-equiv") == "Content-Security-Policy"]
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
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))


def test_what_was_not_asked_for_is_left_out() -> None:
    page = Page(render(bare_report()))
    assert list(page.tables) == ["services", "reasons", "stuck", "estate"]
    assert page.rows("services")[0] == [HUB, STOCK, "1,200", "0", "0", "0", "0", "0", "1,200"]
    assert "What is not known" not in page.text


def test_a_report_of_no_message() -> None:
    page = Page(render(Report("0 messages", (), 0, (), (), MessageSeries(300, ()), (), None, None, None)))
    assert page.rows("services") == [["none"]]
    assert "No service is balanced among several broker instances." in page.text


def test_lists_are_bounded(huge: str) -> None:
    page = Page(huge)
    assert len(huge.encode()) < 3 * MEGABYTE
    assert all(len(rows) <= 201 for rows in page.tables.values())
    assert page.more["findings"] == "and 1,800 more"
    assert page.more["coverage"] == "and 1,800 more"
    # 2,000 sentences, and two of what is folded; five are shown.
    assert re.search(r"What is not known.*?1,997 more", page.text, re.DOTALL)


def test_a_huge_report_has_all_messages_in_its_cells(huge: str) -> None:
    data = data_of(Page(huge))
    places = {name: data["cells"]["columns"].index(name) for name in ("messages", "outcome", "instance")}
    rows = data["cells"]["rows"]
    # 2,000 instances with 1 + 2 + … + 20 messages each, a quarter of the numbers 3, 7, 11, 15 and 19 delayed.
    assert sum(row[places["messages"]] for row in rows) == 2_000 * 210
    delayed = data["words"].index("DELAYED")
    assert sum(row[places["messages"]] for row in rows if row[places["outcome"]] == delayed) == 2_000 * 55
    assert sum(row[-1] for row in data["moments"]["rows"]) == 2_000 * 210
    others = data["others"]["instance"]
    named = {row[places["instance"]] for row in rows} - {others["name"]}
    assert len(named) + others["count"] == 2_000
    # Whatever has a name is told whole.
    for instance in sorted(named)[:3]:
        assert sum(row[places["messages"]] for row in rows if row[places["instance"]] == instance) == 210


def test_what_is_not_told_apart_over_time_is_none_of_the_others() -> None:
    # Of 1,200 services two are told apart over time, and on the page not all by name.
    flows = [
        MessageFlow("A", None, f"s{n:04}", "SENT", None, None, None, None, 2 if n < 600 else 1, 0)
        for n in range(1_200)
    ]
    points = [
        TimePoint(0, "A", "s0000", "SENT", 2),
        TimePoint(0, "A", "s1199", "SENT", 1),
        TimePoint(0, "A", None, "SENT", 1_797),
    ]
    data = data_of(Page(render(Report("", (), 0, flows, (), MessageSeries(300, points)))))
    columns = data["moments"]["columns"]
    found = {row[columns.index("service")]: row[columns.index("messages")] for row in data["moments"]["rows"]}
    others = data["others"]["service"]
    assert others["count"] == 200
    assert found == {data["names"].index("s0000"): 2, others["name"]: 1, -1: 1_797}


def wide_report(name: str, many: int) -> Report:
    """A report of many names that are as long and as hostile as may be."""
    names = [f"{name}{number}" for number in range(many)]
    flows = [MessageFlow(one, one, one, "DELAYED", "NO_ROUTE", one, one, None, 1, 0) for one in names]
    points = [TimePoint(number * 300_000_000, one, one, "DELAYED", 1) for number, one in enumerate(names)]
    picks = [BalancedInstance(one, one, 1, 1.0, 0, 2) for one in names]
    never = [NeverPicked(one, one, "EXPIRED", one) for one in names]
    balances = [DialogBalance(one, one, one, None, None, picks, never, None) for one in names[:20]]
    told = {"code": "X", "severity": "error", "message": name * 9, "advice": name * 9, "error_number": None}
    found = sample_report().findings
    assert found is not None
    rows = tuple({**told, "instance_name": one, "database_name": one, "object": one} for one in names)
    findings = dataclasses.replace(found, rows=rows)
    return Report(name * 9, names, 0, flows, (), MessageSeries(300, points), balances, findings)


# The bounds of lists and names are held by the tests beside it.
@pytest.mark.long
def test_a_page_with_as_many_cells_and_moments_as_may_be_is_small() -> None:
    # 100 instances send to 24 services with five outcomes: 12,000 cells, and over time 25,000 moments of them.
    fates = ("DELIVERED LOCAL", "SENT ADDRESS", "FORWARDED ADDRESS", "DELAYED NO_ROUTE", "DROPPED HOP_LIMIT")
    start, huge = at("2026-01-05T00:00"), huge_report()
    names = [f"instance-{number:03}.{'long-name.' * 6}example.com" for number in range(100)]
    flows, points = [], []
    for place in range(12_000):
        name, service = names[place % 100], f"//example.com/{'long-name/' * 6}{place // 500:02}"
        outcome, reason = fates[place // 100 % 5].split()
        messages, address = 1_000_000 + place * 701, f"tcp://{names[place % 97]}:4022"
        oldest = start + place * 61_000_000
        flows.append(MessageFlow(name, "Sales", service, outcome, reason, "r", address, None, messages, oldest))
        if place < 1_250:
            steps = (start + step * 3_600_000_000 for step in range(20))
            points += [TimePoint(moment, name, service, outcome, messages // 20) for moment in steps]
    full = dataclasses.replace(huge, flows=flows, series=MessageSeries(3_600, points))
    text = render(full)
    data = data_of(Page(text))
    held = len(data["cells"]["rows"]), len(data["moments"]["rows"])
    assert held == (12_000, 25_000) == (message_cells.MOST_CELLS, message_cells.MOST_MOMENTS)
    assert len(text.encode()) < 3 * MEGABYTE


@pytest.mark.parametrize("sign", ["<", "\U0001f600"])
def test_a_page_of_the_worst_names_is_small(sign: str) -> None:
    assert len(render(wide_report(sign * 300, 2_000)).encode()) < 3 * MEGABYTE


def test_equal_looking_names_are_told_apart() -> None:
    flows: Sequence[MessageFlow] = [
        MessageFlow(
            "A", "D", f"\u202e{sign}", "SENT", "NETWORK_ADDRESS", "R", "tcp://x:1", None, 1, at("2026-01-05T00:00")
        )
        for sign in "\u202e\u202d"
    ]
    page = Page(render(Report("", (), 0, flows, ())))
    assert page.rows("services") == [["A", "\ufffd\ufffd", "1", "1"], ["A", "\ufffd\ufffd", "1", "1"]]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h"),
        (3_659, "1 h"),
        (90_061, "1 d 1 h"),
        (86_400 * 400 + 59, "400 d"),
        (-61, "-1 min 1 s"),
    ],
)
def test_ages(seconds: int, told: str) -> None:
    assert shorten_age(seconds) == told
