"""Lists of candidates: every route that matches a key, in the order in which the rules take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pytest

from routing.plan.candidate_lists import (
    GOES_ON,
    LISTED_CANDIDATE,
    LISTED_CHOICE,
    REQUESTED,
    REQUESTED_IN_MSDB,
    CandidateLists,
)
from routing.plan.key_rows import ADDRESS_ELSEWHERE, KEY, NO_ADDRESS, OTHER_BROKER, SERVICE_FACTOR
from routing.rules import choosing, matching
from routing.rules.estate import EstateRoute, SqlInstance
from routing.tables.table_columns import TableColumns
from tests.unit.rules.made import ASKS, NOWHERE, OWN, B, C, D, instance, route

FAR, OTHER, MIRROR = "tcp://far:4022", "tcp://other:4022", "tcp://mirror:4022"
Row = dict[str, Any]


def _lists(hub: SqlInstance, *keys: tuple[Any, ...], most: int = 200) -> tuple[list[Row], list[Row]]:
    """Return the choices of keys, each of which has one row, and the candidates of all lists."""
    lists = CandidateLists(most)
    columns = dict(zip(KEY, zip(*(("hub", *key) for key in keys), strict=True), strict=True))
    decided = lists.decide_keys(TableColumns(columns), {"hub": hub})
    choices = [choice for number in decided.numbers for row in decided.timelines[number].rows for choice in row[2]]
    return (
        [dict(zip(LISTED_CHOICE.names, choice, strict=True)) for choice in choices],
        [dict(zip(LISTED_CANDIDATE.names, row, strict=True)) for row in lists.rows],
    )


def _summary(row: Row) -> str:
    """Return search, step, tier, name and the broker's first letter, with the candidate's facts."""
    broker = "-" if row["broker_instance"] is None else row["broker_instance"][0]
    words = {
        "reached": row["is_reached"],
        "picked": row["is_picked"],
        "not picked": row["is_picked"] is False,
        f"equal to {row['equal_to']}": row["is_equal"],
        "back": row["leads_back"],
        "usable": row["is_usable"],
        str(row["why_not"]): row["why_not"] is not None,
    }
    text = ", ".join(word for word, is_so in words.items() if is_so)
    return f"{row['search']} {row['matching_step']}{row['tier'] or '-'} {row['route_name']} {broker}: {text}"


def _lists_by_choice(hub: SqlInstance, key: tuple[Any, ...], which: str = GOES_ON) -> list[list[str]]:
    """Return the list of each choice of a key, or an empty list."""
    choices, rows = _lists(hub, key)
    by_list: dict[int, list[str]] = {}
    for row in rows:
        by_list.setdefault(row["candidate_list"], []).append(_summary(row))
    return [by_list.get(choice[which], []) for choice in choices]


def _key(
    service: str = "S", broker: str | None = None, database: str = "Orders", kind: int = 1
) -> tuple[Any, ...]:
    return database, service, broker or "", kind


class Case(NamedTuple):
    """Routes by database, a key, and its lists."""

    routes: Mapping[str, Iterable[EstateRoute]]
    key: tuple[Any, ...]
    lists: list[list[str]]


def _of_orders(*routes: EstateRoute) -> Mapping[str, Iterable[EstateRoute]]:
    return {"Orders": routes}


CASES = {
    "no route": Case({}, _key(), [[]]),
    "a route that matches in no step": Case(_of_orders(route("r", "T"), route("s", None, B)), _key(), [[]]),
    "steps in their order, those behind not reached": Case(
        _of_orders(
            *(route("any", address=FAR), route("open", "S", address=FAR), route("other", "S", C, FAR)),
            route("bound", "S", B, FAR),
        ),
        _key(broker=B),
        [["1 1C bound b: reached, usable", "1 2C open -: usable", "1 5C any -: usable"]],
    ),
    "an id that nothing has is no route's, and LOCAL is not for it": Case(
        _of_orders(route("any"), route("bound", "S", B, FAR)),
        _key(kind=1 + OTHER_BROKER),
        [["1 5B any -: reached, BROKER_INSTANCE_NOT_FOUND"]],
    ),
    "a tier after the other, each by name": Case(
        _of_orders(
            *(route("d", "OrderService", address="TRANSPORT"), route("c2", "OrderService", address=OTHER)),
            *(route("c1", "OrderService", address=FAR), route("b", "OrderService")),
            route("a", "OrderService", address=FAR, mirror=MIRROR),
        ),
        _key("OrderService"),
        [
            [
                "1 2A a -: reached, usable",
                "1 2B b -: reached, usable",
                "1 2C c1 -: reached, usable",
                "1 2C c2 -: reached, usable",
                "1 2D d -: reached, TRANSPORT_ADDRESS_INVALID",
            ]
        ],
    ),
    "what cannot be used comes after what can": Case(
        _of_orders(route("a", "S"), route("b", "S", address=FAR), route("c", "S", address="TRANSPORT")),
        _key(),
        [
            [
                "1 2C b -: reached, usable",
                "1 2B a -: reached, SERVICE_NOT_FOUND",
                "1 2D c -: reached, TRANSPORT_ADDRESS_INVALID",
            ]
        ],
    ),
    "an address in the name of a service that nothing names": Case(
        _of_orders(route("any", address="transport")),
        _key("", kind=1 + SERVICE_FACTOR * ADDRESS_ELSEWHERE),
        [["1 5D any -: reached, usable"]],
    ),
    "none in the name": Case(
        _of_orders(route("any", address="transport")),
        _key("", kind=1 + SERVICE_FACTOR * NO_ADDRESS),
        [["1 5D any -: reached, TRANSPORT_ADDRESS_INVALID"]],
    ),
    "equal routes after the one that stands for them": Case(
        _of_orders(
            *(route("b", "S", address=FAR), route("a", "S", address="TCP://FAR:4022/"), route("c", "S", B, FAR)),
            route("d", "S", address=OTHER),
        ),
        _key(),
        [
            [
                "1 2C a -: reached, usable",
                "1 2C d -: reached, usable",
                "1 2C b -: reached, equal to a, usable",
                "1 3C c b: not picked, usable",
            ]
        ],
    ),
    "step 3, a list for each id": Case(
        _of_orders(route("x", "S", C), route("y", "S", B, FAR), route("z", "S", B, FAR)),
        _key(),
        [
            [
                "1 3C y b: reached, picked, usable",
                "1 3C z b: reached, picked, equal to y, usable",
                "1 3B x c: reached, not picked, SERVICE_NOT_FOUND",
            ],
            [
                "1 3B x c: reached, picked, SERVICE_NOT_FOUND",
                "1 3C y b: reached, not picked, usable",
                "1 3C z b: reached, not picked, equal to y, usable",
            ],
        ],
    ),
    "LOCAL is located with the row's own id": Case(
        _of_orders(route("any"), route("c", "OrderService", C), route("x", "OrderService", NOWHERE)),
        _key("OrderService"),
        [
            [
                "1 3B c c: reached, picked, SERVICE_NOT_FOUND",
                "1 3B x f: reached, not picked, BROKER_INSTANCE_NOT_FOUND",
                "1 5B any -: usable",
            ],
            [
                "1 3B x f: reached, picked, BROKER_INSTANCE_NOT_FOUND",
                "1 3B c c: reached, not picked, SERVICE_NOT_FOUND",
                "1 5B any -: usable",
            ],
        ],
    ),
    "the LOCAL route that step 6 implies": Case(
        _of_orders(route("any", address=FAR)),
        _key("OrderService", B),
        [["1 5C any -: reached, usable", "1 6B None -: usable"]],
    ),
    "the same alone, for another id of the instance": Case(
        {}, _key("OrderService", C), [["1 6B None -: reached, SERVICE_NOT_FOUND"]]
    ),
    "none for an open message": Case({}, _key("OrderService"), [[]]),
    "step 4 is left out where no request is opened": Case(
        _of_orders(route("ask", ASKS, address=FAR), route("any", address=FAR)),
        _key(),
        [["1 5C any -: reached, usable"]],
    ),
    "a message for the service that is asked matches it by name": Case(
        _of_orders(route("ask", ASKS, address=FAR)), _key(ASKS), [["1 2C ask -: reached, usable"]]
    ),
    "a message that comes back is decided by msdb": Case(
        {"Orders": [route("back", "S", C, OWN), route("any")], "msdb": [route("in", "S", C, FAR), route("any")]},
        _key(),
        [
            [
                "2 1C in c: reached, usable",
                "2 5B any c: SERVICE_NOT_FOUND",
                "1 3C back c: reached, picked, back, usable",
                "1 5B any -: SERVICE_NOT_FOUND",
            ]
        ],
    ),
    "an arrival that would be sent back": Case(
        {"msdb": [route("back", "S", address="tcp://localhost:4022")]},
        _key(database=""),
        [["1 2C back -: reached, back, usable"]],
    ),
    "a reply searches nothing": Case(
        {"msdb": [route("any", address=FAR)]}, _key("OrderService", B, database="", kind=0), [[]]
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_candidates_of_a_key(case: Case) -> None:
    assert _lists_by_choice(instance(case.routes), case.key) == case.lists


def test_a_disabled_broker_is_not_searched() -> None:
    hub = instance(_of_orders(route("any", address=FAR)), [("Orders", B, False)])
    assert _lists_by_choice(hub, _key()) == [[]]


ASK, ANY = route("ask", ASKS, D, FAR), route("any", address=OWN)


@pytest.mark.parametrize(
    ("routes", "which", "found"),
    [
        ({"Orders": [ASK, ANY]}, REQUESTED, ["1 4- ask -: reached", "1 5C any -: back, usable"]),
        ({"Orders": [ASK, ANY]}, REQUESTED_IN_MSDB, []),
        ({"Orders": [ANY]}, REQUESTED, []),
        (
            {"Orders": [ASK, ANY], "msdb": [ASK, route("out", address=FAR)]},
            REQUESTED_IN_MSDB,
            ["2 4- ask -: reached", "2 5C out -: usable", "1 5C any -: reached, back, usable"],
        ),
        (
            {"Orders": [ASK, ANY], "msdb": [ASK, route("out", address=FAR)]},
            GOES_ON,
            ["2 5C out -: reached, usable", "1 5C any -: reached, back, usable"],
        ),
    ],
    ids=["in its own scope", "nothing to ask in msdb", "nothing to ask", "in msdb", "where all is pending"],
)
def test_a_message_that_waits_for_a_route(
    routes: Mapping[str, Iterable[EstateRoute]], which: str, found: list[str]
) -> None:
    assert _lists_by_choice(instance(routes), _key(), which) == [found]


def test_later_routes_are_candidates_in_their_time() -> None:
    lasting, timed = route("lasting", "S", address=FAR), route("timed", address=FAR, valid_from=5, valid_to=9)
    lists = CandidateLists()
    key = dict(zip(KEY, [[one] for one in ("hub", *_key())], strict=True))
    decided = lists.decide_keys(TableColumns(key), {"hub": instance(_of_orders(lasting, timed))})
    [timeline] = decided.timelines
    numbers = [choices[0][LISTED_CHOICE.names.index(GOES_ON)] for _, _, choices in timeline.rows]
    assert [(start, end) for start, end, _ in timeline.rows] == [(None, 5), (5, 9), (9, None)]
    assert numbers == [0, 1, 0]
    names = [(row[0], row[LISTED_CANDIDATE.names.index("route_name")]) for row in lists.rows]
    assert names == [(0, "lasting"), (1, "lasting"), (1, "timed")]


def test_a_long_list_is_cut_and_has_its_length() -> None:
    mirrored = [route(f"z{n}", "S", address=f"tcp://a{n}:1", mirror=MIRROR) for n in range(3)]
    others = [route(f"a{n}", "S", address=f"tcp://b{n}:1") for n in range(10)]
    [choice], rows = _lists(instance(_of_orders(*others, *mirrored)), _key(), most=5)
    assert [row["route_name"] for row in rows] == ["z0", "z1", "z2", "a0", "a1"]
    assert {(row["candidate_list"], row["candidates_total"]) for row in rows} == {(choice[GOES_ON], 13)}


def test_keys_with_equal_candidates_share_a_list() -> None:
    routes = {database: [route("any", address=FAR)] for database in ("Orders", "Parts")}
    choices, rows = _lists(instance(routes), _key(), _key(database="Parts"), _key("", kind=1))
    assert [choice[GOES_ON] for choice in choices] == [0, 0, 0]
    assert len(rows) == 1


def test_a_swap_of_tiers_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, key = (
        instance(_of_orders(route("b", "OrderService"), route("c", "OrderService", address=FAR))),
        "OrderService",
    )
    assert _lists_by_choice(hub, _key(key)) == [["1 2B b -: reached, usable", "1 2C c -: reached, usable"]]
    monkeypatch.setattr(choosing, "TIERS", tuple(reversed(choosing.TIERS)))
    assert _lists_by_choice(hub, _key(key)) == [["1 2C c -: reached, usable", "1 2B b -: reached, usable"]]


def test_a_swap_of_steps_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = instance(_of_orders(route("any", address=FAR), route("open", "S", address=FAR)))
    assert _lists_by_choice(hub, _key()) == [["1 2C open -: reached, usable", "1 5C any -: usable"]]
    steps = tuple(reversed(matching.STEPS))
    monkeypatch.setattr(matching, "STEPS", steps)
    monkeypatch.setattr(matching, "_PLACE", {step.number: number for number, step in enumerate(steps)})
    assert _lists_by_choice(hub, _key()) == [["1 5C any -: reached, usable", "1 2C open -: usable"]]
