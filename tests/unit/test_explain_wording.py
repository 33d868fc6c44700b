"""Lines of a path as sentences: every finding has one, and numbers and advice are those of the rule book."""

from __future__ import annotations

import ast
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import routing
from routing.advice.trouble_catalogue import error_number
from routing.result_schemas import EXPLAINED_STEPS
from routing.views.explain import path_sentences
from tests.golden_texts import assert_golden

AT = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)


def line(item: str, finding: str, **values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(EXPLAINED_STEPS.names), "item": item, "finding": finding, **values}


LINES = [
    line("MESSAGE", "STORED", name="m 1", database_name="Sales", service_name="//S ", reason="INITIATOR"),
    line("MESSAGE", "DESCRIBED", name="described", service_name="//S\n", reason="TARGET"),
    *(line("TIME", finding, at=AT) for finding in ("AS_OF", "ASKED", "OBSERVED", "ENQUEUED")),
    line("BROKER_INSTANCE", "OPEN"),
    line("BROKER_INSTANCE", "MESSAGE", broker_instance="id"),
    line("BROKER_INSTANCE", "ACKNOWLEDGEMENT", broker_instance="id", at=AT.replace(microsecond=5)),
    line("BROKER_INSTANCE", "FAR_BROKER_INSTANCE", broker_instance="id"),
    line("ACKNOWLEDGEMENT", "LATER", broker_instance="id", at=AT),
    line("DIALOG", "EXPIRED", at=AT),
    line("IMPORT", "LATER", name="SQL01", at=AT),
    line("INSTANCE", "ONLY_NAME", name="SQL\x1b[2J01"),
    line("INSTANCE", "ONLY_ROUTES", name="SQL01"),
    line("SCOPE", "SENT_HERE", database_name="Sales"),
    line("SCOPE", "ARRIVED", database_name="msdb"),
    line("SCOPE", "CAME_BACK", database_name="msdb", name="R", address="tcp://hub:4022"),
    line("REPLY", "MATCHED", broker_instance="id"),
    line("REPLY", "SENT_BY_INITIATOR"),
    line("REPLY", "OPEN"),
    line("REPLY", "NOT_HERE", broker_instance="id"),
    line("BROKER", "ENABLED", database_name="Sales"),
    line("BROKER", "DISABLED", database_name="Sales"),
    *(line("STEP", "MATCHED", step=step, broker_instance="id") for step in range(1, 8)),
    *(line("STEP", "NO_MATCH", step=step, broker_instance="id") for step in (1, 3, 6)),
    *(line("STEP", "NO_MATCH", step=step) for step in (1, 2, 3, 4, 5, 6)),
    line("STEP", "NOT_REACHED", step=7),
    line("STEP", "PENDING", step=4),
    line("STEP", "MATCHED", step=4, name="m1"),
    line("ROUTE", "MATCHED", name="R", address="LOCAL"),
    line(
        "ROUTE",
        "EQUAL",
        name="R",
        service_name="S",
        broker_instance="id",
        address="tcp://a",
        mirror_address="tcp://b",
    ),
    line("ROUTE", "NOT_PICKED", name="R", address="LOCAL"),
    line("ROUTE", "LATER", name="R", address="LOCAL"),
    line("ROUTE", "NO_MATCH", name="R", address="LOCAL", reasons=["NAME_CASE", "NAME_BLANKS", "NAME_SLASH"]),
    line("ROUTE", "NO_MATCH", name="R", address="LOCAL", reasons=["OTHER_BROKER_INSTANCE", "EXPIRED"], at=AT),
    line("ROUTE", "NO_MATCH", name="R", address="LOCAL", reasons=["NOT_YET_VALID"], at=AT),
    line("ROUTE", "NO_MATCH", name="R", address="LOCAL", reasons=["NO_SERVICE_NAME"]),
    line("OTHER_ROUTES", "OTHER", count=1),
    line("OTHER_ROUTES", "OTHER", count=12345),
    line("OTHER_ROUTES", "MORE", count=2),
    line(
        "ID", "PICKED", broker_instance="a", outcome="SENT", reason="NETWORK_ADDRESS", name="R", address="tcp://a"
    ),
    line("ID", "OTHER", broker_instance="b", outcome="DELAYED", reason="BROKER_DISABLED", name="R"),
    line("ID", "POSSIBLE", broker_instance="c", outcome="DELIVERED", reason="LOCAL_SERVICE", database_name="D"),
    line("OTHER_IDS", "MORE", count=3),
    line("OTHER_IDS", "MORE", count=1),
    line("REQUEST", "OPEN", name="m0", valid_from=AT),
    line("REQUEST", "ENDED", name="m0", valid_from=AT, valid_to=AT),
    line("REQUEST_PATH", "FOLLOWED", instance_name="hub", database_name="Sales", service_name="S", count=1),
    line("REQUEST_PATH", "FOLLOWED", instance_name="hub", database_name="Sales", service_name="S", count=2),
    line("REQUEST_PATH", "LOST", instance_name="hub", database_name="Sales", service_name="S", count=1),
    line(
        "REQUEST_HOP",
        "SENT",
        instance_name="hub",
        database_name="Sales",
        step=2,
        name="Ask",
        address="tcp://a",
        outcome="SENT",
        reason="NETWORK_ADDRESS",
    ),
    line("REQUEST_HOP", "FORWARDED", step=5, name="On", address="tcp://b", outcome="FORWARDED"),
    line("REQUEST_HOP", "DELIVERED", step=5, name="R", address="LOCAL", outcome="DELIVERED"),
    line("REQUEST_HOP", "DELAYED", step=7, outcome="DELAYED", reason="NO_ROUTE"),
    line("REQUEST_HOP", "DROPPED", outcome="DROPPED", reason="SCOPE_BROKER_DISABLED"),
    line("REQUEST_END", "DELIVERED", instance_name="hub", database_name="Desk"),
    line("REQUEST_END", "LEFT_ESTATE", address="tcp://a"),
    *(
        line("REQUEST_END", finding, instance_name="hub")
        for finding in ("DELAYED", "DROPPED", "LOOP", "NOT_KNOWN", "FORWARDING_NOT_KNOWN", "TOO_MANY_WAYS")
    ),
    line("TIER", "USED", name="A", routes=["R", "S"], count=2),
    line("TIER", "NOT_USABLE", name="B", routes=["R"], count=21, reason="SERVICE_NOT_FOUND"),
    line("TIER", "NOT_REACHED", name="D", routes=["R"], count=1),
    line("LOCATION", "LOCATED", database_name="D"),
    line("LOCATION", "NOT_LOCATED", service_name="S", count=0, reason="SERVICE_NOT_FOUND"),
    line("LOCATION", "NOT_LOCATED", service_name="S", broker_instance="id", count=2, reason="BROKER_DISABLED"),
    line("LOCATION", "NOT_LOCATED", service_name="S", count=1, reason="BROKER_DISABLED"),
    line("DATABASE", "LOCATED", name="D", broker_instance="id"),
    *(line("DATABASE", finding, name="D") for finding in ("OTHER_BROKER_INSTANCE", "DISABLED", "NOT_FIRST")),
    line("FORWARDING", "ON"),
    line("FORWARDING", "OFF"),
    line("FORWARDING", "NOT_KNOWN"),
    line("HOPS", "NO_LIMIT"),
    line("HOPS", "LEFT", count=3),
    line("HOPS", "LEFT", count=1),
    line("HOPS", "NONE_LEFT", count=0),
    line("OWN_ADDRESS", "LOOP", name="R", address="tcp://hub:4022"),
    line("OWN_ADDRESS", "COMES_BACK", name="R", address="tcp://hub:4022"),
    line("OUTCOME", "DEPENDS_ON_DIALOG"),
    line(
        "OUTCOME",
        "DECIDED",
        outcome="SENT",
        reason="MIRROR_ADDRESS",
        name="R",
        address="tcp://a",
        mirror_address="tcp://b",
    ),
    line("OUTCOME", "DECIDED", outcome="DROPPED", reason="DIALOG_EXPIRED"),
    line("STATUS", "AGREES", at=AT, error_number=9793, status_text="The target service name could not be found."),
    line(
        "STATUS",
        "COMPATIBLE",
        at=AT,
        error_number=9754,
        status_text="a\x1b[31m\n\u202eb",
        why="The transport failed.",
    ),
    line("STATUS", "CONTRADICTS", at=AT, error_number=9795, why="SQL Server itself routed it otherwise."),
    line("STATUS", "SAYS_NOTHING", at=AT, status_text="Gestört.", why="A text that this project does not know."),
    line("STATUS", "SAYS_NOTHING", at=AT, why="Not tried yet, or sent and not acknowledged."),
]


def test_sentences_equal_their_golden_file() -> None:
    assert_golden("explain_sentences.txt", "\n".join(path_sentences.sentence(each) for each in LINES))


def test_every_item_has_a_sentence() -> None:
    assert {each["item"] for each in LINES} == set(path_sentences._SENTENCES)


def test_every_word_of_the_path_has_a_sentence() -> None:
    """This page has exactly the capital words that the modules of the path write."""
    rooms = Path(routing.__file__).parent
    written: set[str] = set()
    for room in (
        "views/explain/explaining.py",
        "views/explain/route_lines.py",
        "cases/background.py",
        "cases/judged_questions.py",
    ):
        for node in ast.walk(ast.parse((rooms / room).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isupper():
                written.add(node.value)
    words = {value for each in LINES for value in each.values() if isinstance(value, str)}
    words |= {reason for each in LINES for reason in each["reasons"] or ()} | {"OTHER_SERVICE"}
    assert {word for word in written if re.fullmatch("[A-Z_]{2,}", word)} <= words


@pytest.mark.parametrize(
    ("reason", "scope", "number"),
    [
        ("NO_ROUTE", "Sales", 9793),
        ("ROUTE_REQUESTED", "Sales", 9770),
        ("SERVICE_NOT_FOUND", "msdb", 9796),
        ("BROKER_INSTANCE_NOT_FOUND", "Sales", 9795),
        ("FORWARDING_DISABLED", "msdb", 9792),
        ("SCOPE_BROKER_DISABLED", "Sales", 9791),
        ("SCOPE_BROKER_DISABLED", "msdb", 9789),
        ("BROKER_DISABLED", "Sales", 28012),
        ("HOP_LIMIT", "msdb", None),
        ("LOCAL_SERVICE", "Sales", None),
        (None, "Sales", None),
    ],
)
def test_reasons_have_their_error_numbers(reason: str | None, scope: str, number: int | None) -> None:
    assert error_number(reason, scope) == number


def test_every_line_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-Z_]+) \| (.*) \|$", page, re.MULTILINE))
    assert set(rows) == set(path_sentences._SENTENCES)
    for each in LINES:
        words = [each["finding"], *(each["reasons"] or ())]
        assert set(words) <= set(re.findall("[A-Z_]{2,}", rows[each["item"]])), each["item"]
