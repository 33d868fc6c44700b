"""Every message of random estates, explained: the verdict is the tests' own resolver's, and the path agrees."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.features.explain.explaining import answer
from routing.features.explain.judging import RUN_ID, QuestionedMessage
from routing.features.explain.known_tables import KnownTables, narrow_to
from routing.features.explain.questions import QuestionError
from tests.frames import Tables
from tests.open_messages import CONVERSATIONS, message_to
from tests.random_estates import SEED, assert_same
from tests.reference.estate_words import CONFIGURATION_SERVICE
from tests.reference.estates import random_estate
from tests.reference.following import Network
from tests.reference.networks import random_network
from tests.reference.requests import RequestBook
from tests.reference.resolver import resolve
from tests.unit.explained_rows import KnownRows
from tests.unit.rules.by_rules import micros

ESTATES, MESSAGES = 60, 40
MARCH = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)
Row = Mapping[str, Any]
Answers = tuple[list[Row], list[list[Row]]]


@pytest.fixture(scope="module", params=[None, MARCH], ids=["own time", "as_of"])
def answers(request: pytest.FixtureRequest) -> Answers:
    """Verdicts and paths of every message that can be judged; each verdict is the tests' own resolver's."""
    as_of, rng = request.param, random.Random(SEED)
    verdicts: list[Row] = []
    paths: list[list[Row]] = []
    for number in range(ESTATES):
        estate = random_estate(rng, MESSAGES, f"e{number}/")
        known, theirs = KnownRows(estate), resolve(estate, as_of, run_id=RUN_ID)
        own, rejected = list[dict[str, Any]](), list[str]()
        for row in estate["messages"]:
            try:
                answer = known.explain(row, as_of=micros(as_of))
            except QuestionError as error:
                rejected.append(str(error))
                continue
            own += map(dict, answer.verdict)
            paths.append(list(answer.steps))
        assert_same(own, theirs.resolved_routes, "resolved_routes")
        assert rejected == [str(QuestionError.rejected(row["reasons"])) for row in theirs.rejected_messages]
        verdicts += own
    return verdicts, paths


def test_the_path_agrees_with_the_verdict(answers: Answers) -> None:
    """What is read off the decisions, held against the verdict."""
    verdicts, paths = answers
    for verdict, path in zip(verdicts, paths, strict=True):
        assert [row["position"] for row in path] == list(range(1, len(path) + 1))
        last = path[-1]
        told = ("OUTCOME", verdict["outcome"], verdict["reason"])
        assert (last["item"], last["outcome"], last["reason"]) == told
        came_back = [row["name"] for row in path if row["finding"] == "CAME_BACK"]
        assert came_back == [name for name in [verdict["rerouted_from"]] if name is not None]
        _assert_search_agrees(path, verdict, search=1 + len(came_back))


def _assert_search_agrees(path: list[Row], verdict: Row, search: int) -> None:
    """The search that decided: its step, its route, its database."""
    mine = [row for row in path if row["search"] == search]
    steps = {row["step"]: row["finding"] for row in mine if row["item"] == "STEP"}
    won = [step for step, finding in steps.items() if finding == "MATCHED"]
    if verdict["matching_step"] in (None, 0):
        assert steps == {}
        assert [row["finding"] for row in mine if row["item"] == "REPLY"] == ["MATCHED"] or (
            verdict["reason"] in ("DIALOG_EXPIRED", "SCOPE_BROKER_DISABLED")
        )
        return
    assert sorted(steps) == [1, 2, 3, 4, 5, 6, 7]
    assert won == [verdict["matching_step"]]
    matched = [row["name"] for row in mine if row["item"] == "ROUTE" and row["finding"] == "MATCHED"]
    if verdict["route_name"] is not None:
        assert verdict["route_name"] in matched, (verdict, mine)
    if verdict["matching_step"] == 3:
        (picked,) = (row for row in mine if row["item"] == "ID" and row["finding"] == "PICKED")
        assert picked["broker_instance"] == verdict["broker_instance"]
        assert (picked["outcome"], picked["reason"]) == (verdict["outcome"], verdict["reason"])
    located = [row["name"] for row in mine if row["item"] == "DATABASE" and row["finding"] == "LOCATED"]
    assert located == [name for name in [verdict["destination_database"]] if name is not None]


def test_every_kind_of_decision_is_among_them(answers: Answers) -> None:
    verdicts, paths = answers
    kinds = {(row["matching_step"], row["rerouted_from"] is not None) for row in verdicts}
    assert {step for step, _ in kinds} == {None, 0, 1, 2, 3, 4, 5, 6, 7}
    assert {step for step, rerouted in kinds if rerouted} >= {0, 1, 2, 5, 7}
    items = {row["item"] for path in paths for row in path}
    assert items >= {"ID", "OWN_ADDRESS", "DATABASE", "REQUEST"}


def test_what_concerns_a_message_is_enough() -> None:
    """Without the other routes and services of its instance everything that is told of it is the same."""
    rng = random.Random(SEED)
    left_out = 0
    for number in range(10):
        rows = KnownRows(random_estate(rng, MESSAGES, f"e{number}/"))
        for row in rows.rows:
            near = narrow_to(rows.columns, row)
            left_out += len(rows.columns["routes"]) - len(near["routes"])
            asked = QuestionedMessage(row, is_described=False)
            try:
                expected = answer(asked, rows.known)
            except QuestionError:
                continue
            known = KnownTables.of_columns(near, rows.chunks, rows.known.other_instances)
            assert answer(asked, known) == expected
    assert left_out > 0


def test_requests_end_where_the_tests_own_walk_ends() -> None:
    """Every request that a message waits for, from its database to all its ends."""
    rng, endings = random.Random(SEED), Counter[str]()
    for _ in range(60):
        tables = random_network(rng, MESSAGES)
        _let_requests_leave(rng, tables)
        known, network = KnownRows(tables), Network({**tables, "route_requests": []})
        for row in tables["messages"]:
            with suppress(QuestionError):
                path = list(known.explain(row).steps)
                heads = [each for each in path if each["item"] == "REQUEST_PATH"]
                if heads:
                    ends = {_end(each) for each in path if each["item"] == "REQUEST_END"}
                    at = next(each["at"] for each in path if each["item"] == "TIME")
                    assert ends == set(_own_ends(network, heads[0], at)), heads
                    endings.update(ending for ending, _, _ in ends)
    assert min(endings[one] for one in ("DELIVERED", "DELAYED", "DROPPED", "LEFT_ESTATE")) >= 5, endings


def _let_requests_leave(rng: random.Random, tables: Tables) -> None:
    names = [row["instance_name"] for row in tables["instances"]]
    asking = [row for row in tables["routes"] if row["remote_service_name"] == CONFIGURATION_SERVICE]
    for row in asking:
        row["address"] = rng.choice(["LOCAL", "tcp://partner:4022", *(f"tcp://{name}:4022" for name in names)])
    for row in rng.sample(tables["databases"], min(2, len(tables["databases"]))):
        held = {"instance_name": row["instance_name"], "database_name": row["name"]}
        tables["services"].append({**held, "name": CONFIGURATION_SERVICE})


def _end(line: Row) -> tuple[str, str | None, str | None]:
    finding = "DROPPED" if line["finding"] == "FORWARDING_NOT_KNOWN" else line["finding"]
    return finding, line["instance_name"], line["database_name"]


def _own_ends(network: Network, head: Row, at: datetime) -> Iterator[tuple[str, str | None, str | None]]:
    instance = network.instances[head["instance_name"]]
    for conversation in CONVERSATIONS:
        message = message_to(instance, head["database_name"], CONFIGURATION_SERVICE, at, conversation=conversation)
        for way in network.follow(message, RequestBook([])).ways:
            yield way.end, way.instance, way.database
