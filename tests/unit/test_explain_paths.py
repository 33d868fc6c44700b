"""The paths of worked cases and of an estate full of near misses."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from routing.cases.questions import QuestionError
from routing.render.text import write_text
from routing.rules.deciding import ConcerningRoutes, Decision
from routing.views.explain.explain_document import make_document
from routing.views.explain.explaining import Explanation
from tests.estate_rows import database, estate, message, route, service
from tests.frames import Tables, load_cases, merged, moment, prefixed
from tests.golden_texts import assert_golden
from tests.unit.explained_rows import KnownRows
from tests.unit.rules.by_rules import micros

Row = dict[str, Any]
CASES = [case for case in load_cases() if case.get("as_of") is None]
NOON, EARLIER, LATER = "2026-01-05T12:00:00Z", "2026-01-05T11:00:00Z", "2026-01-05T13:00:00Z"
ANY, BALANCED = "any dialog", "any dialog of a balanced service"


def _near_misses() -> Tables:
    """Return routes that a message for //stock with an id almost matches, and a service of 30 broker instances."""

    def far(name: str, service_name: str | None = "//stock", **columns: Any) -> Row:
        return route(name, service_name, "tcp://far:4022", **columns)

    near = estate(
        databases=[database("Sales", "sales"), database("Stock", "stock", is_broker_enabled=False)],
        services=[service("Stock", "//off")],
        routes=[
            far("A case", "//STOCK"),
            far("B blank", " //stock\t"),
            far("C slash", "//stock/"),
            far("D all", "//Stock /"),
            far("E expired", lifetime=EARLIER),
            far("F ended", valid_to=NOON),
            far("G early", valid_from=LATER),
            far("H other id", broker_instance="{X}"),
            far("I other id, expired", broker_instance="Y", lifetime=NOON),
            far("J id only", None, broker_instance="sales"),
            *(far(f"K{n:02}", f"//elsewhere/{n}") for n in range(50)),
            *(far(f"L{n:02}", "//many", lifetime=EARLIER) for n in range(33)),
            *(route(f"M{n:02}", "//balanced", "LOCAL", broker_instance=f"id{n:02}") for n in range(30)),
            route("Z any", None, "LOCAL"),
        ],
        messages=[
            message(1, "//stock", message_id="n1", to_broker_instance="SALES"),
            message(2, "//many", message_id="n2"),
            message(3, "//balanced", message_id="n3"),
            message(4, "//off", message_id="n4"),
        ],
    )
    return prefixed(near, "near/")


def _described() -> list[Row]:
    """Messages without a dialog: the outcome of one does not hang on it, that of the other does."""
    balanced = next(
        n
        for n, case in enumerate(CASES)
        if case["case"].startswith("load balancing picks a broker id by the dialog")
    )
    of_near = message(0, "//off", message_id=ANY, instance_name="near/hub")
    of_case = message(0, "TargetService", message_id=BALANCED, instance_name=f"case{balanced}/ServerA")
    described: list[Row] = [of_near, {**of_case, "database_name": "DatabaseA"}]
    return [{**row, "conversation_id": None, "message_sequence_number": None} for row in described]


class Explained:
    """Paths and verdicts by case and message id. Messages of the near misses have the case ''."""

    def __init__(self, answers: Mapping[tuple[str, str], Explanation]) -> None:
        self.verdicts: dict[tuple[str, str], Row] = {
            name: dict(*answer.verdict) for name, answer in answers.items()
        }
        self.answers = answers
        self.paths = {name: [dict(row) for row in answer.steps] for name, answer in answers.items()}


@pytest.fixture(scope="module")
def explained() -> Explained:
    """Explain every message without its own time of all cases, the near misses, and the described messages."""
    tables = merged([prefixed(case["tables"], f"case{n}/") for n, case in enumerate(CASES)] + [_near_misses()])
    known_rows, answers = KnownRows(tables), {}
    for row in tables["messages"]:
        place = row["instance_name"].split("/")[0]
        case = "" if place == "near" else CASES[int(place[4:])]["case"]
        # A message that cannot be judged has no path.
        with suppress(QuestionError):
            answers[case, row["message_id"]] = known_rows.explain(row)
    for row in _described():
        answers["", row["message_id"]] = known_rows.explain(row, is_described=True)
    return Explained(answers)


def brief(line: Mapping[str, Any]) -> str:
    """Return a line in short form: search and step, item, finding, subject and reason."""
    place = "-" if line["search"] is None else str(line["search"])
    place += "" if line["step"] is None else f".{line['step']}"
    about = line["name"] or line["database_name"] or line["broker_instance"]
    rest = [about, "+".join(line["reasons"] or ()), line["reason"]]
    if line["item"] in ("OTHER_ROUTES", "OTHER_IDS"):
        rest.append(str(line["count"]))
    return " ".join([place, line["item"], line["finding"], *(part for part in rest if part)])


def test_near_misses(explained: Explained) -> None:
    path = explained.paths["", "n1"]
    assert [brief(line) for line in path] == [
        "- MESSAGE STORED n1 INITIATOR",
        "- TIME ENQUEUED",
        "- BROKER_INSTANCE MESSAGE sales",
        "1 SCOPE SENT_HERE Sales",
        "1 BROKER ENABLED Sales",
        "1.1 STEP NO_MATCH sales",
        "1.1 ROUTE NO_MATCH H other id OTHER_BROKER_INSTANCE",
        "1.1 ROUTE NO_MATCH I other id, expired OTHER_BROKER_INSTANCE+EXPIRED",
        "1.2 STEP NO_MATCH sales",
        "1.2 ROUTE NO_MATCH A case NAME_CASE",
        "1.2 ROUTE NO_MATCH B blank NAME_BLANKS",
        "1.2 ROUTE NO_MATCH C slash NAME_SLASH",
        "1.2 ROUTE NO_MATCH D all NAME_CASE+NAME_BLANKS+NAME_SLASH",
        "1.2 ROUTE NO_MATCH E expired EXPIRED",
        "1.2 ROUTE NO_MATCH F ended EXPIRED",
        "1.2 ROUTE NO_MATCH G early NOT_YET_VALID",
        "1.3 STEP NO_MATCH sales",
        "1.4 STEP NO_MATCH sales",
        "1.5 STEP MATCHED sales",
        "1.5 ROUTE MATCHED Z any",
        "1.5 ROUTE NO_MATCH J id only NO_SERVICE_NAME",
        "1.6 STEP NOT_REACHED sales",
        "1.7 STEP NOT_REACHED sales",
        # 50 for other services, 33 for //many, 30 for //balanced.
        "1 OTHER_ROUTES OTHER 113",
        "1 TIER NOT_USABLE B SERVICE_NOT_FOUND",
        "1 LOCATION NOT_LOCATED sales SERVICE_NOT_FOUND",
        "- OUTCOME DECIDED Z any SERVICE_NOT_FOUND",
    ]
    by_name = {line["name"]: line for line in path if line["item"] == "ROUTE"}
    hours = {name: line["at"].hour for name, line in by_name.items() if line["at"] is not None}
    assert hours == {"E expired": 11, "F ended": 12, "G early": 13, "I other id, expired": 12}
    assert [line["position"] for line in path] == list(range(1, len(path) + 1))


def test_long_lists_are_cut(explained: Explained) -> None:
    many = [brief(line) for line in explained.paths["", "n2"]]
    assert sum(line.startswith("1.2 ROUTE NO_MATCH L") for line in many) == 20
    assert "1.2 OTHER_ROUTES MORE 13" in many
    path = explained.paths["", "n3"]
    ids = [line for line in path if line["item"] == "ID"]
    assert [line["finding"] for line in ids] == ["PICKED"] + 19 * ["OTHER"]
    assert "1.3 OTHER_IDS MORE 10" in [brief(line) for line in path]
    assert ids[0]["broker_instance"] == explained.verdicts["", "n3"]["broker_instance"]
    routes = [line for line in path if line["item"] == "ROUTE" and line["step"] == 3]
    assert [line["finding"] for line in routes] == ["MATCHED"] + 19 * ["NOT_PICKED"]
    assert "1.3 OTHER_ROUTES MORE 10" in [brief(line) for line in path]
    # 50 for other services, 33 for //many, 9 that name //stock or nearly so, and the one with an id only.
    others = next(line for line in path if line["item"] == "OTHER_ROUTES" and line["finding"] == "OTHER")
    assert others["count"] == 50 + 33 + 9 + 1


# Case, message, and lines that its path must hold, in this order.
NOTABLE: list[tuple[str, str, list[str]]] = [
    (
        "example 2, network route to a specific service",
        "here-orderparts-case",
        [
            "- BROKER_INSTANCE OPEN",
            "1 SCOPE SENT_HERE AdventureWorks2008R2",
            "1.2 STEP NO_MATCH",
            "1.2 ROUTE NO_MATCH OrderPartsRoute NAME_CASE",
            "1.5 STEP MATCHED",
            "1.5 ROUTE MATCHED AutoCreatedLocal",
            "1 TIER NOT_USABLE B SERVICE_NOT_FOUND",
            "1 LOCATION NOT_LOCATED SERVICE_NOT_FOUND",
            "- OUTCOME DECIDED AutoCreatedLocal SERVICE_NOT_FOUND",
        ],
    ),
    (
        "example 2, network route to a specific service",
        "here-orderparts",
        [
            "1.2 STEP MATCHED",
            "1.2 ROUTE MATCHED OrderPartsRoute",
            "1.5 STEP NOT_REACHED",
            "1.5 ROUTE LATER AutoCreatedLocal",
            "1 TIER USED C",
            "- OUTCOME DECIDED OrderPartsRoute NETWORK_ADDRESS",
        ],
    ),
    (
        "one request at a time for a service",
        "m1",
        [
            "1.4 STEP MATCHED",
            "1.4 ROUTE MATCHED ConfigurationRoute",
            "1.5 STEP NOT_REACHED",
            "1.5 ROUTE LATER AutoCreatedLocal",
            "- OUTCOME DECIDED ROUTE_REQUESTED",
        ],
    ),
    (
        "one request at a time for a service",
        "m2",
        ["1.4 STEP PENDING", "1.4 REQUEST OPEN m1", "1.5 STEP MATCHED", "1.5 ROUTE MATCHED AutoCreatedLocal"],
    ),
    (
        "once a request has ended the next message asks again",
        "m2",
        ["1.4 STEP MATCHED", "1.4 REQUEST ENDED m0", "- OUTCOME DECIDED ROUTE_REQUESTED"],
    ),
    (
        "a route that the configuration service created works until its lifetime ends",
        "m2",
        ["1.2 STEP NO_MATCH", "1.2 ROUTE NO_MATCH Created EXPIRED", "1.4 STEP MATCHED"],
    ),
    (
        "load balancing picks a broker id by the dialog id, not by chance",
        "m1",
        [
            "1.1 STEP NO_MATCH",
            "1.3 STEP MATCHED",
            "1.3 ROUTE MATCHED LoadBalancingRoute1",
            "1.3 ROUTE NOT_PICKED LoadBalancingRoute2",
            "1.3 ID PICKED LoadBalancingRoute1 NETWORK_ADDRESS",
            "1.3 ID OTHER LoadBalancingRoute2 NETWORK_ADDRESS",
            "1 TIER USED C",
        ],
    ),
    (
        "the first acknowledgement locks the broker id from its own time on",
        "m1",
        ["- BROKER_INSTANCE OPEN", "- ACKNOWLEDGEMENT LATER databasec", "1.3 STEP MATCHED"],
    ),
    (
        "the first acknowledgement locks the broker id from its own time on",
        "m1-at-ack",
        [
            "- BROKER_INSTANCE ACKNOWLEDGEMENT databasec",
            "1.1 STEP MATCHED databasec",
            "1.1 ROUTE MATCHED LoadBalancingRoute2",
            "1.1 ROUTE NO_MATCH LoadBalancingRoute1 OTHER_BROKER_INSTANCE",
        ],
    ),
    (
        "high availability, all routes of one broker id go to the transport",
        "reply-no-hops",
        [
            "1.0 REPLY NOT_HERE databasea",
            "1 FORWARDING ON",
            "1 HOPS NONE_LEFT",
            "- OUTCOME DECIDED ForwardingReturnRoute HOP_LIMIT",
        ],
    ),
    (
        "high availability, all routes of one broker id go to the transport",
        "reply-at-gateway",
        ["1 FORWARDING ON", "1 HOPS LEFT"],
    ),
    (
        "an address of this very instance is routed again as if it came from outside",
        "reroute",
        [
            "1.2 ROUTE MATCHED ToMyself",
            "1 TIER USED C",
            "1 OWN_ADDRESS COMES_BACK ToMyself",
            "2 SCOPE CAME_BACK ToMyself",
            "2.0 REPLY SENT_BY_INITIATOR",
            "2 BROKER ENABLED msdb",
            "2.5 ROUTE MATCHED AutoCreatedLocal",
            "2 TIER USED B",
            "2 LOCATION LOCATED Parts",
            "2 DATABASE LOCATED Parts",
            "- OUTCOME DECIDED AutoCreatedLocal LOCAL_SERVICE",
        ],
    ),
    (
        "an address of this very instance is routed again as if it came from outside",
        "loop",
        [
            "1 OWN_ADDRESS COMES_BACK Loop",
            "2.2 ROUTE MATCHED LoopAgain",
            "2 FORWARDING ON",
            "2 HOPS NO_LIMIT",
            "2 OWN_ADDRESS LOOP LoopAgain",
            "- OUTCOME DECIDED LoopAgain ROUTING_LOOP",
        ],
    ),
    (
        "an address of this very instance is routed again as if it came from outside",
        "loop-outside",
        ["1 SCOPE ARRIVED msdb", "1 OWN_ADDRESS LOOP LoopAgain", "- OUTCOME DECIDED LoopAgain ROUTING_LOOP"],
    ),
    (
        "a broker id without a service name matches nothing, and an expired dialog goes nowhere",
        "id-only",
        [
            "1.5 ROUTE NO_MATCH IdOnly NO_SERVICE_NAME",
            "1.6 STEP NO_MATCH",
            "1.7 STEP MATCHED",
        ],
    ),
    (
        "the sending database's own service comes first, then the others by name",
        "from-disabled",
        ["1 BROKER DISABLED Archive", "- OUTCOME DECIDED SCOPE_BROKER_DISABLED"],
    ),
    (
        "the sending database's own service comes first, then the others by name",
        "from-outside-bound",
        ["1 LOCATION LOCATED Parts", "1 DATABASE OTHER_BROKER_INSTANCE Orders", "1 DATABASE LOCATED Parts"],
    ),
    (
        "the sending database's own service comes first, then the others by name",
        "to-disabled",
        ["1 TIER NOT_USABLE B BROKER_DISABLED", "1 DATABASE DISABLED Archive"],
    ),
    (
        "two databases with one broker id, and a reply",
        "reply",
        ["1.0 REPLY MATCHED", "1 LOCATION LOCATED Alpha", "1 DATABASE LOCATED Alpha", "1 DATABASE NOT_FIRST Beta"],
    ),
    (
        "two databases with one broker id, and a reply",
        "not-a-reply",
        ["1.0 REPLY SENT_BY_INITIATOR", "1 BROKER DISABLED msdb"],
    ),
    (
        "TRANSPORT reads the address from the service name, after LOCAL",
        "by-name",
        ["1 TIER NOT_USABLE B SERVICE_NOT_FOUND", "1 TIER USED D", "- OUTCOME DECIDED ByName TRANSPORT_ADDRESS"],
    ),
    (
        "TRANSPORT reads the address from the service name, after LOCAL",
        "local-first",
        ["1 TIER USED B", "1 TIER NOT_REACHED D", "1 LOCATION LOCATED Parts"],
    ),
    (
        "only TRANSPORT, and the name holds no address",
        "no-address",
        ["1 TIER NOT_USABLE D TRANSPORT_ADDRESS_INVALID"],
    ),
    (
        "a broker id with no matching route finds a service in this instance",
        "step-6-wrong-id",
        ["1.6 STEP MATCHED", "1 LOCATION NOT_LOCATED", "1 DATABASE OTHER_BROKER_INSTANCE Parts"],
    ),
    (
        "one route spelt twice, an address in a name, and a dialog acknowledged without an id",
        "spelt-twice",
        [
            "- BROKER_INSTANCE FAR_BROKER_INSTANCE",
            "1.2 ROUTE MATCHED A-first",
            "1.2 ROUTE EQUAL B-second",
            "1 TIER USED C",
        ],
    ),
    (
        "one route spelt twice, an address in a name, and a dialog acknowledged without an id",
        "own-by-name",
        ["1 TIER USED D", "1 OWN_ADDRESS COMES_BACK ByName", "2 SCOPE CAME_BACK ByName"],
    ),
    (
        "a message seen still waiting is decided at that time",
        "waiting",
        ["- TIME OBSERVED", "1.2 ROUTE MATCHED Far", "1.2 ROUTE NO_MATCH Far EXPIRED"],
    ),
    (
        "route versions and as_of",
        "before",
        ["1.2 ROUTE MATCHED Far", "1.2 ROUTE NO_MATCH Far NOT_YET_VALID"],
    ),
]


@pytest.mark.parametrize(("case", "message", "lines"), NOTABLE, ids=[f"{c}: {m}" for c, m, _ in NOTABLE])
def test_a_worked_case(explained: Explained, case: str, message: str, lines: list[str]) -> None:
    path = [brief(line) for line in explained.paths[case, message]]
    rest = iter(path)
    # A line may go on after what is listed: the id that the message is bound to.
    missing = [line for line in lines if not any(f"{got} ".startswith(f"{line} ") for got in rest)]
    assert not missing, path


def test_an_expired_dialog_ends_the_path(explained: Explained) -> None:
    case = "a broker id without a service name matches nothing, and an expired dialog goes nowhere"
    assert [brief(line) for line in explained.paths[case, "expired"]] == [
        "- MESSAGE STORED expired INITIATOR",
        "- TIME ENQUEUED",
        "- BROKER_INSTANCE OPEN",
        "- DIALOG EXPIRED",
        "- OUTCOME DECIDED DIALOG_EXPIRED",
    ]


def test_without_a_dialog_every_id_is_listed(explained: Explained) -> None:
    path, verdict = explained.paths["", BALANCED], explained.verdicts["", BALANCED]
    lines = [brief(line) for line in path]
    assert "1.3 ID POSSIBLE LoadBalancingRoute1 NETWORK_ADDRESS" in lines
    assert "1.3 ID POSSIBLE LoadBalancingRoute2 NETWORK_ADDRESS" in lines
    assert [line["broker_instance"] for line in path if line["item"] == "ID"] == ["databaseb", "databasec"]
    # Nothing of what hangs on the dialog is told as if it were known.
    assert {line["item"] for line in path if line["step"] is None} == {
        "MESSAGE",
        "TIME",
        "BROKER_INSTANCE",
        "SCOPE",
        "BROKER",
        "OUTCOME",
    }
    assert (verdict["outcome"], verdict["reason"], verdict["matching_step"]) == ("SENT", "NETWORK_ADDRESS", 3)
    assert (verdict["broker_instance"], verdict["route_name"], verdict["conversation_id"]) == (None, None, None)


def test_an_unknown_dialog_may_not_matter(explained: Explained) -> None:
    path, verdict = explained.paths["", ANY], explained.verdicts["", ANY]
    stored = [brief(line) for line in explained.paths["", "n4"]]
    assert [brief(line) for line in path][1:] == ["- TIME ASKED", *stored[2:]]
    assert (verdict["outcome"], verdict["reason"]) == ("DELAYED", "BROKER_DISABLED")


def test_every_case_comes_out_as_expected(explained: Explained) -> None:
    for case in CASES:
        for row in case["expect"]["resolved_routes"]:
            verdict = explained.verdicts[case["case"], row["message_id"]]
            outcomes = {
                name: row[name] for name in ("outcome", "reason", "matching_step", "route_name") if name in row
            }
            assert {name: verdict[name] for name in outcomes} == outcomes


def test_paths_as_text(explained: Explained) -> None:
    """Near misses and the first case of each outcome are whole, other cases have only their answer."""
    whole = [("", asked) for asked in ("n1", "n3", BALANCED)]
    by_outcome = {explained.verdicts[case, asked]["outcome"]: (case, asked) for case, asked, _ in NOTABLE[::-1]}
    texts = []
    for case, asked in dict.fromkeys([*whole, *((case, asked) for case, asked, _ in NOTABLE)]):
        text = write_text(make_document(explained.answers[case, asked]))
        is_whole = (case, asked) in (*whole, *by_outcome.values())
        shown = text if is_whole else text.partition("\n\nmessage ")[0]
        texts.append(f"# {case or 'near misses'}: {asked}\n{shown}")
    assert_golden("explain_paths.txt", "\n\n".join(texts))


def test_an_explanation_decides_only_for_the_time_of_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A route with thousands of versions takes as long as one with a few: no other time is decided."""
    start = moment(NOON)
    assert start is not None
    times = [start + timedelta(seconds=number) for number in range(2_001)]
    versions = [
        route("far", None, f"tcp://h{number}:1", valid_from=begin, valid_to=end)
        for number, (begin, end) in enumerate(pairwise(times))
    ]
    asked = message(1, "//far", enqueue_time=times[700])
    known_rows = KnownRows(estate(routes=versions, messages=[asked]))
    decided = list[int]()
    decide = ConcerningRoutes.decide

    def count(self: ConcerningRoutes, t: int) -> tuple[Decision, ...]:
        decided.append(t)
        return decide(self, t)

    with monkeypatch.context() as patched:
        patched.setattr(ConcerningRoutes, "decide", count)
        patched.setattr(ConcerningRoutes, "decide_span", lambda *_: pytest.fail("a whole timeline is decided"))
        explained = known_rows.explain(asked)
    [verdict] = explained.verdict
    assert verdict["address"] == "tcp://h700:1"
    assert set(decided) == {micros(times[700])}
    assert len(decided) < 10
