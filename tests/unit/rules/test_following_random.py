"""The rules follow every message of random networks as the tests' own walk does, by walks and by plans."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from routing.rules.pathing import PathWithReturn as FoundPath
from tests.reference.networks import random_network
from tests.reference.paths import own_paths
from tests.reference.ways import Path, Way
from tests.unit.rules import followed
from tests.unit.rules.by_rules import Tables
from tests.unit.rules.followed import Followed, Sent

NETWORKS, MESSAGES, SEED = 200, 24, 20260105
ENDINGS = {"DELIVERED", "DELAYED", "DROPPED", "LEFT_ESTATE", "LOOP", "NOT_KNOWN", "TOO_MANY_WAYS"}


@cache
def _networks() -> tuple[Tables, ...]:
    rng = random.Random(SEED)
    return tuple(random_network(rng, MESSAGES) for _ in range(NETWORKS))


@cache
def _own_paths() -> tuple[list[Path], ...]:
    return tuple(own_paths(tables) for tables in _networks())


def _pairs() -> Iterator[tuple[Followed, followed.Sent, dict[str, Any]]]:
    for tables, paths in zip(_networks(), _own_paths(), strict=True):
        by_rules = Followed(tables)
        for message, path in zip(by_rules.sent(), paths, strict=True):
            yield by_rules, message, followed.own_path(path)


@pytest.mark.parametrize(
    ("find", "share"),
    [
        pytest.param(Followed.walked, 1.0, id="a walk for each message"),
        pytest.param(Followed.planned, 0.7, id="plans of keys, but for messages that wait or are over"),
    ],
)
def test_walks_and_plans_agree_with_the_reference(
    find: Callable[[Followed, Sent], FoundPath | None], share: float
) -> None:
    traces = [(find(by_rules, message), message.row, path) for by_rules, message, path in _pairs()]
    paths = [(followed.path(one, row), row, path) for one, row, path in traces if one is not None]
    differing = [(row, got, path) for got, row, path in paths if got != path]
    assert not differing, (len(differing), differing[0])
    assert len(paths) >= NETWORKS * MESSAGES * share


def _goes_beside(way: Way) -> bool:
    """Return whether a path leads by a loopback name from one instance of a machine to another."""
    places = [*(hop.instance for hop in way.hops), way.instance]
    loopback = ("localhost", ".:")
    return any(
        any(name in (hop.address or "") for name in loopback) and there not in (None, hop.instance)
        for hop, there in zip(way.hops, places[1:], strict=True)
    )


def test_the_networks_have_all_cases() -> None:
    """Each end in both directions, and each combined result, occurs several times."""
    ends: Counter[str] = Counter()
    back: Counter[str | None] = Counter()
    seen_cases: Counter[str] = Counter()
    for path in (path for paths in _own_paths() for path in paths):
        there = path.there
        ends.update(way.end for way in there.ways)
        back[path.back_end] += 1
        seen_cases["multiple targets"] += there.multiple_targets
        seen_cases["ways differ"] += not there.ways_agree
        seen_cases["several ways"] += len(there.ways) > 1
        seen_cases["picked past the first hop"] += any(hop.step == 3 for way in there.ways for hop in way.hops[1:])
        seen_cases["came back"] += any(hop.rerouted_from is not None for hop in there.ways[0].hops)
        seen_cases["mirror"] += any(hop.reason == "MIRROR_ADDRESS" for way in there.ways for hop in way.hops)
        seen_cases["transport"] += any(hop.reason == "TRANSPORT_ADDRESS" for way in there.ways for hop in way.hops)
        seen_cases["asked past the first hop"] += any(hop.step == 4 for way in there.ways for hop in way.hops[1:])
        seen_cases["hops ran out"] += any(way.reason == "HOP_LIMIT" and len(way.hops) > 1 for way in there.ways)
        seen_cases["beside, on one machine"] += any(_goes_beside(way) for way in there.ways)
        seen_cases["four hops"] += any(len(way.hops) > 3 for way in there.ways)
    sys.stdout.write(f"ways end {dict(ends)}\nreplies end {dict(back)}\n{dict(seen_cases)}\n")
    assert min(ends.values()) > 100
    assert ends.keys() == ENDINGS - {"TOO_MANY_WAYS"}
    assert set(back) >= ENDINGS - {"TOO_MANY_WAYS"}
    assert min(seen_cases.values()) > 20, seen_cases
