"""Which routes match a message, step by step: rule book, section 2."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.rules import matching
from routing.rules.estate import IMPLIED_LOCAL, EstateRoute, by_name
from routing.rules.matching import STEPS, UNNAMED, MatchKey, RouteMatch, routes_naming, routes_to_search
from routing.terms import MatchingStep
from tests.unit.rules.made import ASKS, B, C, D, instance, names, route

parametrize = pytest.mark.parametrize
ROUTES = {
    "S": route("S", "S"),
    "S/B": route("S/B", "S", B),
    "S/C": route("S/C", "S", C),
    "any": route("any"),
    "any/B": route("any/B", None, B),
    "T": route("T", "T"),
    "T/B": route("T/B", "T", B),
    "s": route("s", "s"),
    "S+": route("S+", "S "),
    "ask": route("ask", ASKS),
    "ask/B": route("ask/B", ASKS, B),
    "implied": IMPLIED_LOCAL,
}
OPEN, BOUND, NAMELESS, NAMELESS_BOUND = (
    MatchKey("S", None),
    MatchKey("S", B),
    MatchKey(None, None),
    MatchKey(None, B),
)
ASKING, ASKING_BOUND = MatchKey(ASKS, None), MatchKey(ASKS, B)


# By route, one mark for each message: a digit for the step, a dot where it matches in none.
@parametrize(
    ("name", "steps"),
    [
        #          open to S, bound to B, no name, no name and bound, asking, asking and bound
        ("S", "22...."),
        ("S/B", "31...."),
        ("S/C", "3....."),
        ("any", "555555"),
        ("any/B", "......"),
        ("T", "......"),
        ("T/B", "......"),
        ("s", "......"),
        ("S+", "......"),
        ("ask", "444422"),
        ("ask/B", "444431"),
        ("implied", ".6.6.6"),
    ],
)
def test_the_step_of_a_route(name: str, steps: str) -> None:
    messages = (OPEN, BOUND, NAMELESS, NAMELESS_BOUND, ASKING, ASKING_BOUND)
    found = [matching.step_of(message, ROUTES[name]) for message in messages]
    assert "".join("." if step is None else str(int(step)) for step in found) == steps


# By step, which routes it matches, the other steps left aside.
@parametrize(
    ("matches", "message", "expected"),
    [
        (matching.names_service, OPEN, "S S/B S/C"),
        (matching.names_service, NAMELESS, ""),
        (matching.broker_instance, OPEN, ""),
        (matching.broker_instance, BOUND, "S/B"),
        (matching.broker_instance, MatchKey("S", D), ""),
        (matching.broker_instance, NAMELESS_BOUND, ""),
        (matching.service, OPEN, "S"),
        (matching.service, BOUND, "S"),
        (matching.service, NAMELESS, ""),
        (matching.balanced, OPEN, "S/B S/C"),
        (matching.balanced, BOUND, ""),
        (matching.balanced, NAMELESS, ""),
        (matching.route_request, OPEN, "ask ask/B"),
        (matching.route_request, NAMELESS_BOUND, "ask ask/B"),
        (matching.any_service, OPEN, "any"),
        (matching.any_service, NAMELESS_BOUND, "any"),
        (matching.service_of_this_instance, OPEN, ""),
        (matching.service_of_this_instance, BOUND, "implied"),
    ],
)
def test_matches_of_a_step(
    matches: Callable[[MatchKey, EstateRoute], bool], message: MatchKey, expected: str
) -> None:
    assert [name for name, one in ROUTES.items() if matches(message, one)] == expected.split()


# Of these routes the search takes those named after the step; a star where step 4 was met before.
@parametrize(
    ("message", "routes", "expected"),
    [
        (BOUND, "", "7"),
        (OPEN, "implied", "7"),
        (OPEN, "T any/B s", "7"),
        (BOUND, "implied", "6 implied"),
        (BOUND, "any implied", "5 any"),
        (BOUND, "ask implied", "6* implied"),
        (BOUND, "ask any implied", "5* any"),
        (OPEN, "ask", "7*"),
        (OPEN, "ask any ask/B", "5* any"),
        (OPEN, "S/B ask any", "3 S/B"),
        (OPEN, "S/C S/B", "3 S/C S/B"),
        (OPEN, "S S/B S/C ask any", "2 S"),
        (BOUND, "S/C ask any", "5* any"),
        (BOUND, "S S/B S/C ask any implied", "1 S/B"),
        (BOUND, "S S/C ask any implied", "2 S"),
        (NAMELESS, "S S/B any", "5 any"),
        (NAMELESS_BOUND, "S S/B", "7"),
        # A message for the BrokerConfiguration service itself asks like any other.
        (ASKING, "ask ask/B", "2 ask"),
        (MatchKey(ASKS, C), "ask/B any", "5* any"),
    ],
)
def test_the_first_step_with_a_match_ends_the_search(message: MatchKey, routes: str, expected: str) -> None:
    step, *found = expected.split()
    match = matching.search(message, [ROUTES[name] for name in routes.split()])
    assert (f"{int(match.step)}{'*' if match.asks else ''}", match.routes) == (
        step,
        tuple(ROUTES[name] for name in found),
    )


def test_two_routes_of_a_step_match_in_the_order_given() -> None:
    some = [route(name, "S") for name in "bac"]
    assert names(matching.search(OPEN, some).routes) == ["b", "a", "c"]


def test_the_order_of_the_steps() -> None:
    assert [int(step.number) for step in STEPS] == [1, 2, 3, 4, 5, 6]
    every = list(MatchingStep)
    assert [int(step) for step in every] == [0, 1, 2, 3, 4, 5, 6, 7]
    for step in every:
        for other in every:
            assert matching.comes_before(step, other) is (int(step) < int(other))


def test_step_3_picks_between_the_broker_instances_of_routes() -> None:
    twice = (route("1", "S", D), route("2", "S", B.upper()), route("3", "S", B), route("4", "S", C))
    of_d, of_b, of_c = twice[:1], twice[1:3], twice[3:]
    assert matching.picks(RouteMatch(MatchingStep.BALANCED, twice, asks=False)) == [
        (B, of_b),
        (C, of_c),
        (D, of_d),
    ]
    assert matching.picks(RouteMatch(MatchingStep.BALANCED, of_b, asks=False)) == [(B, of_b)]
    for step in MatchingStep:
        if step is not MatchingStep.BALANCED:
            assert matching.picks(RouteMatch(step, twice, asks=False)) == [(None, twice)]


@parametrize(
    ("database", "service", "broker", "expected_names"),
    [
        ("Orders", None, None, "any any/B ask ask/C"),
        ("Orders", "S", None, "S S/B S/C any any/B ask ask/C"),
        ("Orders", "S", B, "S S/B any any/B ask ask/C"),
        ("Orders", "S", D, "S any any/B ask ask/C"),
        ("Orders", "S", UNNAMED, "S any any/B ask ask/C"),
        ("Orders", "T", C, "any any/B ask ask/C"),
        ("Orders", "T", B, "T/B any any/B ask ask/C"),
        ("Orders", "s", None, "any any/B ask ask/C"),
        ("Orders", "S ", None, "any any/B ask ask/C"),
        # Any message may ask for a route, whatever the route names besides.
        ("Orders", ASKS, None, "any any/B ask ask/C"),
        ("Orders", ASKS, D, "any any/B ask ask/C"),
        ("orders", "S", None, ""),
    ],
)
def test_the_routes_to_search_for_a_message(
    database: str, service: str | None, broker: str | None, expected_names: str
) -> None:
    names_to_search = ["T/B", "S/C", "any", "ask", "S/B", "any/B", "S"]
    hub = instance({"Orders": [*(ROUTES[name] for name in names_to_search), route("ask/C", ASKS, C)]})
    assert names(routes_to_search(MatchKey(service, broker), hub, database)) == expected_names.split()


def test_versions_of_a_route_are_in_order() -> None:
    versions = [route("a", None, None, f"tcp://h:{n}", None, n, n + 1) for n in (5, 2, 8)]
    first = route("a", None, None, "tcp://h:1", None, None, 2)
    found = routes_to_search(MatchKey(None, None), instance({"Orders": [*versions, first]}), "Orders")
    assert [one.live_from for one in found] == [None, 2, 5, 8]


def test_every_route_that_matches_is_among_those_to_search() -> None:
    written_routes = [one for one in ROUTES.values() if not one.is_implied]
    hub, matched = instance({"Orders": written_routes}), 0
    for service in (None, "S", "T", "s", "S ", ASKS, "nobody's"):
        for broker in (None, UNNAMED, B, C, D):
            message = MatchKey(service, broker)
            found = [one for one in written_routes if matching.step_of(message, one) is not None]
            searched = routes_to_search(message, hub, "Orders")
            assert [one for one in searched if one in found] == sorted(found, key=by_name), message
            named = [one for one in found if one.service == service is not None]
            assert [*routes_naming(message, hub, "Orders")] == sorted(named, key=by_name), message
            matched += len(found)
    assert matched > 100


# A mark after the name: > from 5 on, < until 5, none: always in force.
@parametrize(
    ("message", "routes", "expected"),
    [
        (OPEN, "", ""),
        (NAMELESS, "S any/B any", "any"),
        (OPEN, "T s any/B S/B any", "S/B"),
        (OPEN, "S S/B ask any", "S"),
        (OPEN, "S> S/B ask any", "S> S/B"),
        (OPEN, "S> S/B< ask> any", "S> S/B< ask> any"),
        (OPEN, "S< ask any", "S< ask any"),
        # Step 4 ends nothing: one finds a request pending, and goes on.
        (OPEN, "ask any", "ask any"),
        (BOUND, "S/B S any", "S/B"),
        (BOUND, "S/B< S any", "S/B< S"),
        (BOUND, "S/C any", "any"),
    ],
)
def test_the_routes_that_can_concern_a_message(message: MatchKey, routes: str, expected: str) -> None:
    bounded_routes = [_bounded(name) for name in routes.split()]
    assert names(matching.concerning(message, bounded_routes)) == expected.split()


def _bounded(name: str) -> EstateRoute:
    bare = ROUTES[name.rstrip("<>")]
    start, end = (5 if name.endswith(">") else None), (5 if name.endswith("<") else None)
    return route(name, bare.service, bare.broker, valid_from=start, valid_to=end)
