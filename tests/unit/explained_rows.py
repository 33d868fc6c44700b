"""Messages of plain rows, explained: no session, no stored tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from routing.advice.question_remedies import advise_on_question
from routing.cases import judged_questions as judging
from routing.cases.background import MessageBackground, OtherInstances, find_gap, status_of
from routing.cases.judged_questions import (
    KnownTables,
    QuestionedMessage,
    RemedyFacts,
    follow_question,
    judge_question,
)
from routing.cases.observed_statuses import newest_of_rows
from routing.cases.questions import QuestionError
from routing.schemas import INPUTS, KEPT, RESOLVED_ROUTES, ColumnKind, Schema
from routing.tables.table_columns import TableColumns
from routing.views.explain.explaining import Explanation, answer
from tests.frames import Tables, moment
from tests.random_estates import RUN_ID, Decided
from tests.reference.messages import as_written
from tests.unit.rules.by_rules import micros

Row = dict[str, Any]


def columns_of_rows(rows: list[Row], schema: Schema) -> TableColumns:
    """Convert rows to the columns of a table. Missing values are null."""

    kinds = {field.name: field.kind for field in schema}

    def value(row: Row, name: str) -> Any:
        found = row.get(name)
        return micros(moment(found)) if kinds[name] == ColumnKind.TIMESTAMP else found

    return TableColumns({name: [value(row, name) for row in rows] for name in schema.names})


class KnownRows:
    """Tables of rows, read once for many questions. ``asked`` counts the reads of other messages."""

    def __init__(self, tables: Tables) -> None:
        schemas = {**INPUTS, **KEPT}
        self.columns = {key: columns_of_rows(tables.get(key) or [], schema) for key, schema in schemas.items()}
        self.rows = list(self.columns["messages"].dicts())
        self.asked = 0
        others = OtherInstances(lambda: self.known.network.instances)
        self.known = KnownTables.of_columns(self.columns, self.chunks, others)

    def chunks(self, instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
        """The messages of an instance for a service, in one chunk."""
        self.asked += 1
        mine = [row for row in self.rows if (row["instance_name"], row["to_service_name"]) == (instance, service)]
        messages = TableColumns({name: [row[name] for row in mine] for name in INPUTS["messages"].names})
        yield {"messages": messages, "dialogs": self.columns["dialogs"]}

    def explain(self, row: Row, *, is_described: bool = False, as_of: int | None = None) -> Explanation:
        """The explanation of a message row."""
        [read] = columns_of_rows([row], INPUTS["messages"]).dicts()
        here = {key: found.naming("instance_name", [row["instance_name"]]) for key, found in self.columns.items()}
        newest = newest_of_rows(here["observed_routing"].naming("message_id", [row["message_id"]]).dicts(), read)
        background = MessageBackground(find_gap(here), None if newest is None else status_of(newest))
        service = read["to_service_name"]
        used = {row["to_service_name"] for row in self.rows if row["to_service_name"] != service}
        judged, followed = judge_question(QuestionedMessage(read, is_described, as_of), self.known), None
        if judged.may_leave:
            followed = follow_question(judged, self.known.network)

        def read_facts() -> RemedyFacts:
            return RemedyFacts.of_columns(self.columns, {service}, used)

        remedies = advise_on_question(judged, followed, read_facts, None)
        return replace(answer(judged, self.known, background), remedies=remedies, followed=followed)


class ExplainDecider:
    """Decides messages as explain does, asserts that paths agree with verdicts, and stores the paths' facts."""

    def __init__(self) -> None:
        self.items: set[str] = set()
        self.steps: set[tuple[int | None, bool]] = set()

    def __call__(self, tables: Tables, as_of: datetime | None) -> Decided:
        """Return the verdicts of an estate and the rejected messages, without the opened requests."""
        known_rows, resolved, rejected = KnownRows(tables), list[Row](), list[Row]()
        for row in tables["messages"]:
            try:
                explained = known_rows.explain(row, as_of=micros(as_of))
            except QuestionError as error:
                rejected.append({"message_id": as_written(row["message_id"]), "reasons": _reasons_of(error)})
                continue
            [verdict] = map(dict, explained.verdict)
            assert (list(verdict), verdict["run_id"]) == (RESOLVED_ROUTES.names, judging.RUN_ID)
            resolved.append({**verdict, "run_id": RUN_ID})
            self._see_path(list(explained.steps), verdict)
        return Decided(resolved, None, rejected, is_whole=False)

    def _see_path(self, path: list[Mapping[str, Any]], verdict: Row) -> None:
        """Assert that the facts of the path agree with the verdict."""
        assert [row["position"] for row in path] == list(range(1, len(path) + 1))
        last = path[-1]
        outcome = ("OUTCOME", verdict["outcome"], verdict["reason"])
        assert (last["item"], last["outcome"], last["reason"]) == outcome
        came_back = [row["name"] for row in path if row["finding"] == "CAME_BACK"]
        assert came_back == [name for name in [verdict["rerouted_from"]] if name is not None]
        _assert_search_agrees(path, verdict, search=1 + len(came_back))
        self.items.update(row["item"] for row in path)
        self.steps.add((verdict["matching_step"], bool(came_back)))


def _reasons_of(error: QuestionError) -> list[str]:
    """Return the codes of a rejected message. No other problem may prevent an explanation."""
    rejected = re.match(r"the message would be rejected: ([A-Z0-9_, ]+)", str(error))
    reasons = rejected[1].strip().split(", ") if rejected else []
    assert str(error) == str(QuestionError.rejected(reasons))
    return reasons


def _assert_search_agrees(path: list[Mapping[str, Any]], verdict: Row, search: int) -> None:
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
