"""The first lines of `explain`: the outcome in a sentence, the remedy, and the statements without the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import routing
from routing import cli
from routing.advice.remedy import Confidence
from routing.advice.trouble_catalogue import REASONS
from routing.importing.tsql.script_reader import read_script
from routing.importing.tsql.script_statements import AlterRoute, CreateRoute
from routing.render.text import write_sql, write_text
from routing.terms import Reason
from routing.views.explain.explain_document import make_document, state_nothing_to_run, write_explanation
from routing.views.explain.explaining import Explanation
from routing.views.trace import tracing
from routing.views.trace.tracing import write_trace
from tests import estate_rows
from tests.check_texts import lines_to_run
from tests.estate_rows import database, instance, message, observation, route, service, small_estate
from tests.frames import Tables, arrow, load_cases, merged, prefixed
from tests.hostile import NAMES
from tests.stored import save_job
from tests.unit.explained_rows import KnownRows

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
WIDE = 10_000
CASES = [case for case in load_cases() if case.get("as_of") is None]


def estate(
    routes: Sequence[dict[str, Any]] = (), services: Sequence[tuple[str, str, str]] = (), **asked: Any
) -> Tables:
    """Return two instances with routes and services. At noon, hub sends message m1 for //stock from Sales."""
    return estate_rows.estate(
        instances=[instance(name, f"tcp://{name}:4022") for name in ("hub", "far")],
        databases=[database("Sales", "sales"), database("Stock", "stock", instance_name="far")],
        services=[service(place, name, instance_name=where) for where, place, name in services],
        routes=list(routes),
        messages=[message(1, "//stock", **asked)],
    )


def explained(tables: Tables, **more: Any) -> Explanation:
    return routing.explain(arrow({"services": [], "routes": [], **tables, **more}), routing.StoredMessage("m1"))


def answer(done: Explanation) -> str:
    return write_text(make_document(done), width=WIDE).split("\n")[0]


@pytest.mark.parametrize(
    ("asked", "more", "waits"),
    [
        pytest.param({}, {}, "", id="nothing tells that it still waits"),
        pytest.param({"observed_at": "2026-01-05T20:48:00Z"}, {}, " since 8 h 48 min", id="it was seen later"),
        pytest.param(
            {},
            {"observed_routing": [observation(1, "2026-01-08T12:00:00Z")]},
            " since 3 d",
            id="an import saw it in the queue",
        ),
        pytest.param(
            {},
            {"observed_routing": [observation(1, "2026-01-08T12:00:00Z", "CLASSIFY_EVENT", message_id=None)]},
            "",
            id="an event tells of one moment",
        ),
    ],
)
def test_since_when_a_message_waits(asked: dict[str, Any], more: dict[str, Any], waits: str) -> None:
    done = explained(estate(**asked), **more)
    assert answer(done) == (
        f"DELAYED: no route of 'Sales' leads to service '//stock'; it stays in the transmission queue{waits}."
    )


@pytest.mark.parametrize(
    ("tables", "sql"),
    [
        pytest.param(
            estate([route("Any", None, "LOCAL")], [("far", "Stock", "//stock")]),
            "",
            id="another instance holds the service, and its full name is not known",
        ),
        pytest.param(
            estate(
                [route("Any", None, "LOCAL"), route("O", "//other", "tcp://far:4022")],
                [("far", "Stock", "//stock")],
            ),
            "USE [Sales];\nCREATE ROUTE [Route to //stock] WITH SERVICE_NAME = N'//stock', ADDRESS = N'tcp://far:4022';",
            id="another instance holds the service",
        ),
        pytest.param(
            estate([route("R", "//STOCK", "tcp://far:4022")], [("far", "Stock", "//stock")]),
            "USE [Sales];\nALTER ROUTE [R] WITH SERVICE_NAME = N'//stock';",
            id="a route differs in case, and nothing needs it as it is",
        ),
        pytest.param(
            {
                **estate([route("R", "//STOCK", "tcp://far:4022")], [("far", "Stock", "//stock")]),
                "messages": [message(1, "//stock"), message(2, "//STOCK")],
            },
            "USE [Sales];\nCREATE ROUTE [Route to //stock] WITH SERVICE_NAME = N'//stock', ADDRESS = N'tcp://far:4022';",
            id="other messages are sent to the service that the route names",
        ),
        pytest.param(
            estate(
                [route("R", "//STOCK", "tcp://far:4022")],
                [("far", "Stock", "//stock"), ("far", "Stock", "//STOCK")],
            ),
            "USE [Sales];\nCREATE ROUTE [Route to //stock 0539af18] WITH SERVICE_NAME = N'//stock', ADDRESS = N'tcp://far:4022';",
            id="another instance holds the service that the route names",
        ),
        pytest.param(
            estate([route("R", "//stock", "tcp://far:4022")]), "", id="it is sent: there is nothing to run"
        ),
    ],
)
def test_the_recommended_statement(tables: Tables, sql: str) -> None:
    done = explained(tables)
    written = write_sql(make_document(done), state_nothing_to_run(done))
    assert "\n".join(lines_to_run(written)) == sql
    assert written.startswith((":on error exit\n", "-- There is nothing to run."))


def test_explain_trace_and_their_json_have_the_same_remedy() -> None:
    estates = [
        estate([route("R", "//STOCK", "tcp://far:4022")]),
        estate([route("Any", None, "LOCAL")], [("far", "Stock", "//stock")]),
        estate([route("Any", None, "LOCAL")]),
        estate([route("R", "//stock", "tcp://far:4022")]),
    ]
    places = [*[("hub", "Sales")] * 3, ("far", "msdb")]
    keys = {"instance_name", "database_name", "cause", "actions", "advice", "statement", "statement_is_complete"}
    for tables, place in zip(estates, places, strict=True):
        done = explained(tables)
        traced = routing.trace(arrow({"services": [], "routes": [], **tables}), routing.StoredMessage("m1"))
        told, traced_told = json.loads(write_explanation(done)), json.loads(write_trace(traced))
        assert told["remedies"] == traced_told["remedies"]
        [remedy] = told["remedies"]
        assert set(remedy) == keys | {"risk", "confidence"}
        assert told["advice"] == remedy["advice"] == " ".join([remedy["cause"], *remedy["actions"]])
        assert (remedy["instance_name"], remedy["database_name"]) == place
        assert told["end"] == traced_told["paths"][0]["end"]
        for document in (make_document(done), tracing.make_document(traced)):
            text = write_text(document, width=WIDE)
            assert all(sentence in text for sentence in (remedy["cause"], *remedy["actions"]))
            assert remedy["statement"].split("\n")[-1] in text
    sent = explained(estate([route("R", "//stock", "tcp://elsewhere:4022")]))
    assert sent.remedies == ()
    assert json.loads(write_explanation(sent))["advice"] == REASONS[Reason.NETWORK_ADDRESS].advice


def test_a_mirror_address_elsewhere_makes_an_address_certain() -> None:
    """Its host is short, but a route of another instance has it too."""
    pair = route("Pair", "//other", "tcp://gone:4022", instance_name="far", database_name="Stock")
    for mirror, confidence in ((None, Confidence.TO_BE_CHECKED), ("tcp://FAR:4022", Confidence.CERTAIN)):
        tables = estate(
            [route("Any", None, "LOCAL"), {**pair, "mirror_address": mirror}], [("far", "Stock", "//stock")]
        )
        traced = routing.trace(arrow(tables), routing.StoredMessage("m1"))
        assert explained(tables).remedies == traced.remedies
        [remedy] = traced.remedies
        assert remedy.confidence is confidence


def test_a_fault_in_a_row_of_another_instance_stops_no_explanation() -> None:
    tables = estate(services=[("far", "Stock", "//stock")])
    tables["databases"] = [*(tables["databases"] or []), {"instance_name": "far", "name": None}]
    done = explained(tables)
    # Nothing of that instance counts but its own row.
    assert done.remedy is not None
    assert done.remedy.text.startswith("No known database holds service '//stock'")


def all_explanations() -> dict[str, Explanation]:
    """Every message of the worked cases that can be judged."""
    tables = merged([prefixed(case["tables"], f"case{n}-") for n, case in enumerate(CASES)])
    known_rows, found = KnownRows(tables), {}
    for row in tables["messages"] or []:
        try:
            found[f"{row['instance_name']} {row['message_id']}"] = known_rows.explain(row)
        except routing.RoutingError:
            continue
    return found


def test_every_answer_begins_with_its_outcome_and_every_statement_is_one() -> None:
    explanations = all_explanations()
    assert len(explanations) > 100
    statements = 0
    for name, done in explanations.items():
        [verdict] = done.verdict
        assert answer(done).startswith(f"{verdict['outcome']}: "), name
        assert answer(done).endswith("."), name
        written = write_sql(make_document(done), state_nothing_to_run(done))
        assert written.startswith((":on error exit\n", "-- There is nothing to run.")), name
        statements += assert_runs(written)
    assert statements > 0


def assert_runs(sql: str) -> int:
    """Return the number of routing statements in a text. The importer must understand everything but comments."""
    code = "\n".join(lines_to_run(sql))
    server = re.search(r"^:CONNECT (.*)$", sql, re.MULTILINE)
    instance = None if server is None else server[1]
    script = read_script(sql, file="x.sql", scripted_at=NOON, database="master", instance=instance)
    assert [problem.why for problem in script.problems if not problem.counted] == []
    routes = [one for one in script.statements if isinstance(one, AlterRoute | CreateRoute)]
    assert len(routes) == len(re.findall(r"^(?:CREATE|ALTER) ROUTE ", code, re.MULTILINE))
    return len(routes)


@pytest.mark.parametrize("name", [one for one in NAMES if "\x00" not in one], ids=repr)
def test_hostile_names_change_no_statement(name: str) -> None:
    tables = estate([route(f"{name}R", "//STOCK", "tcp://far:4022"), route("B", f"{name}//stock", "LOCAL")])
    tables["messages"] = [message(1, name), {**message(1, "//stock"), "message_id": "m2"}]
    for asked in ("m1", "m2"):
        done = routing.explain(arrow(tables), routing.StoredMessage(asked))
        sql = write_sql(make_document(done), state_nothing_to_run(done))
        assert all(character.isprintable() or character == "\n" for character in sql)
        assert not any(line.startswith(("USE ", "ALTER ", "CREATE ")) and "$(" in line for line in sql.split("\n"))
        assert all(line.startswith(("USE [", "ALTER ROUTE [", "CREATE ROUTE [")) for line in lines_to_run(sql))
        assert_runs(sql)
        text = write_text(make_document(done), width=80)
        assert all(character.isprintable() or character == "\n" for character in text)


@pytest.fixture(scope="module")
def config_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_job(small_estate(), tmp_path_factory.mktemp("job")))


@pytest.mark.parametrize(
    "option", [[], ["--color", "always", "--width", "20"]], ids=["plain", "narrow and coloured"]
)
def test_statements_are_neither_wrapped_nor_coloured(
    option: list[str], config_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["--instance", "hub", "--database", "Sales", "--service", "//nowhere", "--format", "sql", *option]
    assert cli.main(["explain", "--config", config_file, *line]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert lines_to_run(out) == []
    assert "\n-- USE [Sales];\n-- CREATE ROUTE [Route to //nowhere]" in out
    assert "put a value into each place" in out


def test_a_message_in_transit_needs_no_statement(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--config", config_file, "--message-id", "m3", "--format", "sql"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("-- There is nothing to run. SENT: route 'Far' of 'Sales' sends it to")
    assert all(text.startswith("-- ") for text in out.splitlines())


def test_the_answer_is_the_same_by_configuration(config_file: str, tmp_path: Path) -> None:
    tables = estate([route("Any", None, "LOCAL")], [("far", "Stock", "//stock")])
    file = save_job(tables, tmp_path)
    assert (
        routing.explain(routing.load_config(str(file)), routing.StoredMessage("m1")).remedy
        == explained(tables).remedy
    )
