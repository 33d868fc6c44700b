"""Explanations in random estates: related rows are enough, and requests are followed to their ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from routing.cases.judged_questions import KnownTables, QuestionedMessage, judge_question, narrow_to
from routing.cases.questions import QuestionError
from routing.views.explain.explaining import answer
from tests.frames import Tables
from tests.open_messages import CONVERSATIONS, message_to
from tests.random_estates import SEED
from tests.reference.estate_words import CONFIGURATION_SERVICE
from tests.reference.estates import draw_estates
from tests.reference.following import Network
from tests.reference.networks import random_network
from tests.reference.requests import RequestBook
from tests.unit.explained_rows import KnownRows

NETWORKS, MESSAGES = 60, 40
Row = Mapping[str, Any]


def test_irrelevant_rows_do_not_change_an_explanation() -> None:
    """The explanation is the same without the other routes and services of the instance."""
    left_out = 0
    for estate in draw_estates(random.Random(SEED), 10, MESSAGES):
        rows = KnownRows(estate)
        for row in rows.rows:
            near = narrow_to(rows.columns, row)
            left_out += len(rows.columns["routes"]) - len(near["routes"])
            asked = QuestionedMessage(row, is_described=False)
            try:
                expected = answer(judge_question(asked, rows.known), rows.known)
            except QuestionError:
                continue
            known_tables = KnownTables.of_columns(near, rows.chunks, rows.known.other_instances)
            assert answer(judge_question(asked, known_tables), known_tables) == expected
    assert left_out > 0


def test_requests_end_as_in_the_reference() -> None:
    """Every request that a message waits for, from its database to all its ends."""
    rng, endings = random.Random(SEED), Counter[str]()
    for _ in range(NETWORKS):
        tables = random_network(rng, MESSAGES)
        _let_requests_leave(rng, tables)
        known_rows, network = KnownRows(tables), Network({**tables, "route_requests": []})
        for row in tables["messages"]:
            with suppress(QuestionError):
                path = list(known_rows.explain(row).steps)
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
        place_columns = {"instance_name": row["instance_name"], "database_name": row["name"]}
        tables["services"].append({**place_columns, "name": CONFIGURATION_SERVICE})


def _end(line: Row) -> tuple[str, str | None, str | None]:
    finding = "DROPPED" if line["finding"] == "FORWARDING_NOT_KNOWN" else line["finding"]
    return finding, line["instance_name"], line["database_name"]


def _own_ends(network: Network, head: Row, at: datetime) -> Iterator[tuple[str, str | None, str | None]]:
    instance = network.instances[head["instance_name"]]
    for conversation in CONVERSATIONS:
        message = message_to(instance, head["database_name"], CONFIGURATION_SERVICE, at, conversation=conversation)
        for way in network.follow(message, RequestBook([])).ways:
            yield way.end, way.instance, way.database
