"""Small estates with broker instances that compete for a service's open dialogs, or never get one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from routing.demo.drafting import EstateDraft
from routing.rules.timeline import micros_of
from routing.schemas import INPUTS
from routing.tables.table_columns import TableColumns
from routing.views.report.dialog_balance import InstanceChoice, find_choices

NOW = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
TABLES = ("instances", "databases", "services", "routes")


def estate() -> EstateDraft:
    """Return Sales on `one`, and Stock on `two` and `three` with different ids."""
    draft = EstateDraft()
    for instance, database, service in (("one", "Sales", "Order"), ("two", "Stock", "S"), ("three", "Stock", "S")):
        draft.instance(instance, f"tcp://{instance}:4022")
        draft.database(instance, database, f"id-{instance}", service)
    return draft


def to(draft: EstateDraft, name: str, broker: str | None, address: str = "tcp://two:4022", **more: object) -> None:
    draft.route("one", "Sales", name, address, "S", broker, **more)


def choices(draft: EstateDraft, at: datetime = NOW) -> list[InstanceChoice]:
    columns = {key: TableColumns.of_rows(draft.tables[key], INPUTS[key]) for key in TABLES}
    return find_choices(columns, micros_of(at))


def only(draft: EstateDraft, at: datetime = NOW) -> InstanceChoice:
    [choice] = choices(draft, at)
    return choice


def never(choice: InstanceChoice) -> list[tuple[str, str, str]]:
    return [(one.broker_instance, one.route, one.why) for one in choice.never]


def even(draft: EstateDraft) -> None:
    to(draft, "R2", "id-two")
    to(draft, "R3", "id-three", "tcp://three:4022")


def one_of_nobody(draft: EstateDraft) -> None:
    to(draft, "R2", "id-two")
    to(draft, "R9", "id-of-nobody")


def shadowed(draft: EstateDraft) -> None:
    even(draft)
    to(draft, "Plain", None)


def expired(draft: EstateDraft) -> None:
    to(draft, "R2", "id-two")
    to(draft, "R3", "id-three", lifetime=NOW - HOUR)


def expired_beside_another(draft: EstateDraft) -> None:
    even(draft)
    to(draft, "Old", "id-three", lifetime=NOW - HOUR)


def not_yet(draft: EstateDraft) -> None:
    to(draft, "R2", "id-two")
    to(draft, "R3", "id-three", valid_from=NOW + HOUR)


def all_expired(draft: EstateDraft) -> None:
    for name, broker in (("R2", "id-two"), ("R3", "id-three")):
        to(draft, name, broker, lifetime=NOW)


def equal(draft: EstateDraft) -> None:
    even(draft)
    to(draft, "Same", "id-two", "TCP://TWO:4022/")


def later_tier(draft: EstateDraft) -> None:
    even(draft)
    to(draft, "Mirrored", "id-two", "tcp://far:4022", mirror_address="tcp://mirror:4022")


def in_turn(draft: EstateDraft) -> None:
    even(draft)
    to(draft, "Second", "id-two", "tcp://two-again:4022")


def comes_back(draft: EstateDraft) -> None:
    even(draft)
    to(draft, "R1", "id-one", "tcp://localhost:4022")


def broker_off(draft: EstateDraft) -> None:
    even(draft)
    draft.tables["databases"][0]["is_broker_enabled"] = False


def spelt_otherwise(draft: EstateDraft) -> None:
    to(draft, "R2", "ID-two")
    to(draft, "R3", "{id-three}")


Owners = dict[str, "str | None"]
There = Callable[[EstateDraft], None]
BOTH: Owners = {"id-three": "three.Stock", "id-two": "two.Stock"}
TWO: Owners = {"id-two": "two.Stock"}
ALL = [("id-three", "R3", "{}"), ("id-two", "R2", "{}")]


def every(why: str) -> list[tuple[str, str, str]]:
    return [(broker, route, why) for broker, route, _ in ALL]


# What is there, the ids that compete with their owners, the others.
TRUTH: list[tuple[There, Owners, list[tuple[str, str, str]]]] = [
    (even, BOTH, []),
    (spelt_otherwise, BOTH, []),
    (one_of_nobody, {"id-of-nobody": None, **TWO}, []),
    (shadowed, {}, every("SHADOWED")),
    (expired, TWO, [("id-three", "R3", "EXPIRED")]),
    (expired_beside_another, BOTH, []),
    (all_expired, {}, every("EXPIRED")),
    (not_yet, TWO, [("id-three", "R3", "NOT_YET_VALID")]),
    (equal, BOTH, [("id-two", "Same", "DOUBLED")]),
    (later_tier, BOTH, [("id-two", "R2", "DOUBLED")]),
    # The transport may use any route of the tier.
    (in_turn, BOTH, []),
    (comes_back, BOTH, [("id-one", "R1", "COMES_BACK")]),
    (broker_off, {}, every("BROKER_DISABLED")),
]


@pytest.mark.parametrize(("there", "ids", "others"), TRUTH, ids=[case[0].__name__ for case in TRUTH])
def test_competing_ids_are_found(there: There, ids: Owners, others: list[tuple[str, str, str]]) -> None:
    draft = estate()
    there(draft)
    choice = only(draft)
    assert choice.scope == ("one", "Sales", "S")
    assert list(choice.owners.items()) == list(ids.items())
    assert never(choice) == others


WORDS: dict[There, str] = {
    shadowed: "open dialogs take 'Plain', which names the service and no broker instance",
    expired: "it expired at 2026-01-05T09:00:00Z",
    not_yet: "it is not valid before 2026-01-05T11:00:00Z",
    equal: "'R2' names the same id, which has one share, and the same address",
    later_tier: "'Mirrored' names the same id, which has one share, and is used before this one",
    broker_off: "the broker of 'Sales' is off: its routes are not searched",
}


@pytest.mark.parametrize("there", WORDS, ids=[there.__name__ for there in WORDS])
def test_an_id_that_does_not_compete_has_its_reason(there: There) -> None:
    draft = estate()
    there(draft)
    assert only(draft).never[0].words == WORDS[there]


def test_routes_with_one_id_give_no_choice() -> None:
    draft = estate()
    to(draft, "R2", "id-two")
    to(draft, "Also", "ID-TWO", "tcp://two-again:4022")
    # No service: such a route matches in no step. Another one's service, another database's route: not for S.
    draft.route("one", "Sales", "NoService", "tcp://three:4022", None, "id-three")
    draft.route("one", "Sales", "Other", "tcp://three:4022", "T", "id-three")
    draft.route("one", "Elsewhere", "R3", "tcp://three:4022", "S", "id-three")
    assert choices(draft) == []


def test_several_owners_of_one_id_are_all_named() -> None:
    draft = estate()
    even(draft)
    draft.database("three", "Copy", "ID-two")
    assert only(draft).owners == {"id-three": "three.Stock", "id-two": "three.Copy, two.Stock"}


def test_arriving_messages_are_balanced_by_msdb() -> None:
    draft = estate()
    for name, broker in (("R2", "id-two"), ("R3", "id-three")):
        draft.route("one", "msdb", name, "tcp://two:4022", "S", broker)
    choice = only(draft)
    assert choice.scope == ("one", "msdb", "S")
    assert choice.owners == BOTH


def test_messages_of_msdb_to_its_own_instance_come_back() -> None:
    draft = estate()
    for name, broker, address in (("R1", "id-one", "tcp://one:4022"), ("R2", "id-two", "tcp://two:4022")):
        draft.route("one", "msdb", name, address, "S", broker)
    choice = only(draft)
    assert (choice.owners, never(choice)) == (TWO, [("id-one", "R1", "COMES_BACK")])


def test_unlisted_instances_and_unnamed_routes_are_ignored() -> None:
    draft = estate()
    for name, broker in (("R2", "id-two"), ("R3", "id-three")):
        draft.route("nowhere", "Sales", name, "tcp://two:4022", "S", broker)
    to(draft, "R2", "id-two")
    to(draft, "R3", "id-three")
    draft.tables["routes"][-1]["name"] = None
    assert choices(draft) == []


def micros(*hours: int) -> tuple[int, ...]:
    return tuple(micros_of(NOW + hour * HOUR) for hour in hours)


def test_a_choice_spans_the_time_with_the_same_ids() -> None:
    draft = estate()
    to(draft, "R2", "id-two")
    # R3 moves to another server two hours before: the ids stay the same; it ends one hour after.
    to(draft, "R3", "id-three", valid_from=NOW - 3 * HOUR, valid_to=NOW - 2 * HOUR)
    to(draft, "R3", "id-three", "tcp://three:4022", valid_from=NOW - 2 * HOUR, lifetime=NOW + HOUR)
    assert only(draft).bounds == micros(-3, 1)
    # Before R3 and once it has expired one id is left.
    assert only(draft, NOW - 4 * HOUR).bounds == (None, *micros(-3))
    late = only(draft, NOW + HOUR)
    assert (late.bounds, late.owners) == ((*micros(1), None), TWO)
    # The last moment before, and the first of it.
    assert only(draft, NOW - 3 * HOUR).bounds == micros(-3, 1)
    assert only(draft, NOW + HOUR - timedelta(microseconds=1)).bounds == micros(-3, 1)


def test_a_route_without_an_id_ends_the_time_in_which_ids_compete() -> None:
    draft = estate()
    even(draft)
    to(draft, "Plain", None, valid_from=NOW - 2 * HOUR, valid_to=NOW - HOUR)
    assert only(draft).bounds == (*micros(-1), None)
    during = only(draft, NOW - 2 * HOUR)
    assert (during.bounds, during.owners) == (micros(-2, -1), {})
    assert [one.why for one in during.never] == ["SHADOWED", "SHADOWED"]


def test_expired_versions_do_not_count() -> None:
    draft = estate()
    even(draft)
    # The database was restored: its route had another id until an hour ago.
    draft.route("one", "Sales", "R4", "tcp://two:4022", "S", "id-old", valid_to=NOW - HOUR)
    choice = only(draft)
    assert (choice.bounds, never(choice)) == ((*micros(-1), None), [])


def test_without_bounds_ids_always_compete() -> None:
    draft = estate()
    even(draft)
    # What is not searched for S changes nothing.
    draft.route("one", "Sales", "Any", "tcp://far:4022", valid_from=NOW - HOUR)
    draft.route("one", "Sales", "Other", "tcp://far:4022", "T", "id-two", valid_from=NOW - HOUR)
    assert only(draft).bounds == (None, None)
