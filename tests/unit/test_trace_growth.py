"""How the work of tracing all messages grows with an estate: counted by the addresses that are looked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from routing.engines.arrow.traced_batches import ArrowPaths
from routing.rules.network import EstateNetwork
from tests.estate_rows import Row, Tables, estate, instance, message, route
from tests.frames import arrow
from tests.random_estates import AS_OF, assert_same
from tests.reference.paths import path_rows

Links = dict[int, list[int]]
SERVICE = "//anything"


def circle(n: int) -> Links:
    """Each forwards to the next one, the last one to the first."""
    return {place: [(place + 1) % n] for place in range(n)}


def chain(n: int) -> Links:
    """Each forwards to the next one, the last one out of the estate."""
    return {place: [place + 1] for place in range(n)}


def circles_that_meet(n: int) -> Links:
    """The first instance is on two circles, and may forward into either."""
    half = n // 2
    links = {place: [place + 1] for place in range(n)}
    return links | {0: [1, half], half - 1: [0], n - 1: [0]}


def circle_with_mirrors(n: int) -> Links:
    """Each forwards to the next one, or to its mirror, the one after it."""
    return {place: [(place + 1) % n, (place + 2) % n] for place in range(n)}


SHAPES = pytest.mark.parametrize("shape", [circle, chain, circles_that_meet, circle_with_mirrors])


def tables_of(links: Links) -> Tables:
    """Return forwarders, and messages that arrive at each: without a limit, and with few and many hops left."""
    n = len(links)
    hops = [None, 0, 3, n - 1, n + 5]
    return estate(
        instances=[
            instance(f"i{place}", _address(place), is_message_forwarding_enabled=True) for place in range(n)
        ],
        databases=[],
        routes=[_route(place, *to) for place, to in links.items()],
        messages=[
            message(
                number,
                SERVICE,
                instance_name=f"i{number % n}",
                database_name=None,
                hops_remaining=hops[number // n],
                enqueue_time=AS_OF,
            )
            for number in range(n * len(hops))
        ],
    )


def _address(place: int) -> str:
    return f"tcp://i{place}.example:4022"


def _route(place: int, to: int, mirror: int | None = None) -> Row:
    mirrored = {} if mirror is None else {"mirror_address": _address(mirror)}
    return route("Next", None, _address(to), instance_name=f"i{place}", database_name="msdb", **mirrored)


@SHAPES
def test_paths_equal_the_reference(shape: Callable[[int], Links]) -> None:
    tables = tables_of(shape(12))
    expected = path_rows(tables)
    assert max(len(row["hops"]) for row in expected) >= 6
    rows = [row for batch in ArrowPaths.of(arrow(tables), None).tables() for row in batch.to_pylist()]
    assert_same(rows, expected, "message_paths")


def trace_all(tables: Tables) -> None:
    """Follow all messages by the local engine."""
    assert sum(map(len, ArrowPaths.of(arrow(tables), None).tables())) == len(tables["messages"])


@SHAPES
def test_steps_are_linear_in_the_path(shape: Callable[[int], Links], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    owners = EstateNetwork.owners

    def count(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        return owners(*args)

    monkeypatch.setattr(EstateNetwork, "owners", count)

    def steps_of_a_message(n: int) -> float:
        nonlocal steps
        steps = 0
        tables = tables_of(shape(n))
        trace_all(tables)
        return steps / len(tables["messages"])

    assert 0 < steps_of_a_message(48) <= 6 * steps_of_a_message(12)
