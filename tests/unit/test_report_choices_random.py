"""Random estates: the ids that compete are those that the tests' own resolver gives to dialogs, and no others."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from datetime import datetime
from typing import Any

from routing.features.report.dialog_balance import (
    ChoiceScope,
    InstanceChoice,
    find_balances,
    find_choices,
    spans_of,
)
from routing.features.report.flows import count_dialogs
from routing.schemas import INPUTS, RESOLVED_ROUTES
from routing.tables.table_columns import TableColumns
from routing.tables.times import micros_of
from tests.frames import arrow_of
from tests.reference.estates import random_estate
from tests.reference.resolver import resolve as reference

ESTATES, MESSAGES, DIALOGS, SEED = 120, 40, 40, 20260105
TABLES = ("instances", "databases", "services", "routes")
Row = dict[str, Any]


def choices(estate: dict[str, Any], at: datetime) -> dict[ChoiceScope, InstanceChoice]:
    columns = {key: TableColumns.of_rows(estate[key], INPUTS[key]) for key in TABLES}
    return {choice.scope: choice for choice in find_choices(columns, micros_of(at))}


def scope_of(row: Row) -> ChoiceScope:
    searched = "msdb" if row["database_name"] is None or row["rerouted_from"] else row["database_name"]
    return ChoiceScope(row["instance_name"], searched, row["to_service_name"])


def balanced(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["matching_step"] == 3]


def like(rng: random.Random, row: Row) -> list[Row]:
    """Open messages of new dialogs, sent when and where another one was decided."""
    names = ("instance_name", "database_name", "to_service_name")
    ids = [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(DIALOGS)]
    sent = {"is_initiator": True, "enqueue_time": row["decided_at"], **{name: row[name] for name in names}}
    return [{**dict.fromkeys(INPUTS["messages"].names), **sent, **_ids(each)} for each in ids]


def _ids(each: str) -> Row:
    return {"message_id": each, "conversation_id": each}


def test_what_competes_is_what_dialogs_get() -> None:
    rng = random.Random(SEED)
    seen: Counter[str] = Counter()
    for number in range(ESTATES):
        estate = random_estate(rng, MESSAGES, f"e{number}/")
        for row in balanced(reference(estate, None).resolved_routes)[:3]:
            scope = scope_of(row)
            choice = choices(estate, row["decided_at"]).get(scope)
            if choice is None:
                # All routes of the scope have one id.
                continue
            sent = {**estate, "messages": like(rng, row)}
            sent_on = [each for each in balanced(reference(sent, None).resolved_routes) if scope_of(each) == scope]
            # Those that come back to msdb itself are told apart there, those that arrive are not.
            lost = {one.broker_instance for one in choice.never if one.why == "COMES_BACK"}
            assert {each["broker_instance"] for each in sent_on} - lost == choice.owners.keys(), (number, scope)
            seen.update(len(choice.owners) * [f"{len(choice.owners)} ids"])
            seen.update(one.why for one in choice.never)
    assert seen["2 ids"] > 20, seen
    assert {"EXPIRED", "NOT_YET_VALID", "DOUBLED"} <= seen.keys(), seen


def test_the_dialogs_of_a_balance_are_those_that_were_shared_out_in_its_time() -> None:
    rng = random.Random(SEED + 1)
    told = 0
    for number in range(ESTATES):
        estate = random_estate(rng, 3 * MESSAGES, f"e{number}/")
        rows = reference(estate, None).resolved_routes
        if not balanced(rows):
            continue
        last = max(row["decided_at"] for row in rows)
        found = choices(estate, last)
        dialogs = count_dialogs(arrow_of(rows, RESOLVED_ROUTES), spans_of(found.values()))
        for one in find_balances(found.values(), dialogs):
            scope = ChoiceScope(one.instance, one.database, one.service)
            since, until = (-(2**63) if one.since is None else one.since, one.until or 2**63)
            got = {
                (row["broker_instance"], row["conversation_id"])
                for row in balanced(rows)
                if scope_of(row) == scope and since <= micros_of(row["decided_at"]) < until
            }
            lost = {never.broker_instance for never in one.never if never.why == "COMES_BACK"}
            expected = Counter(broker for broker, _ in got if broker not in lost)
            assert {pick.broker_instance: pick.dialogs for pick in one.picks if pick.dialogs} == expected
            # Nothing but what competes was picked.
            assert [pick for pick in one.picks if pick.dialogs and not pick.expected] == []
            told += len(expected)
    assert told > 50, told
