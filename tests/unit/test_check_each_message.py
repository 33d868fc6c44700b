"""The facts that check prints for a group hold for each of its messages, by the tests' own resolver and walk."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from routing.views.check.check_json import as_object
from routing.views.check.checking import check
from tests.exported_networks import exported_network, write_network
from tests.reference.networks import Row, Tables
from tests.reference.paths import own_paths
from tests.reference.resolver import resolve
from tests.reference.ways import Path, Way

NETWORKS, MESSAGES, SEED = 50, 40, 20261125
ON_ITS_WAY = ("SENT", "FORWARDED")
FACTS = ("outcome", "reason", "route_name", "rerouted_from", "address", "destination_database")
Key = tuple[str, str]


class ComparedGroup(NamedTuple):
    """A group from the JSON output, and the results of the tests' own resolver and walk for its messages."""

    group: Row
    rows: list[Row]
    paths: list[Path]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[ComparedGroup]:
    rng = random.Random(SEED)
    found: list[ComparedGroup] = []
    for _ in range(NETWORKS):
        tables = exported_network(rng, MESSAGES)
        folder = tmp_path_factory.mktemp("network")
        write_network(folder, tables)
        if tables["messages"]:
            found += _compared(as_object(check([str(folder)])), tables)
    return found


def _compared(done: Row, tables: Tables) -> Iterator[ComparedGroup]:
    resolved = {_key(row): row for row in resolve(tables).resolved_routes}
    paths = {_key(row): path for row, path in zip(tables["messages"], own_paths(tables), strict=True)}
    counted = 0
    for group in done["groups"]:
        keys = [(group["instance_name"], message["message_id"]) for message in group["messages"]]
        counted += len(keys)
        yield ComparedGroup(group, [resolved[key] for key in keys], [paths[key] for key in keys])
    assert counted == len(tables["messages"]) == done["messages"]


def _key(row: Row) -> Key:
    return row["instance_name"], row["message_id"]


def test_facts_of_a_group_hold_for_each_message(told: list[ComparedGroup]) -> None:
    wrong = [
        ({name: group[name] for name in FACTS}, {name: row[name] for name in FACTS})
        for group, rows, _ in told
        for row in rows
        if any(group[name] != row[name] for name in FACTS)
    ]
    assert wrong == []
    assert sum(len(rows) for _, rows, _ in told) > NETWORKS * MESSAGES / 2


def test_differences_are_listed_with_counts(told: list[ComparedGroup]) -> None:
    several: Counter[str] = Counter()
    for group, rows, _ in told:
        brokers = {each["broker_instance"]: each["count"] for each in group["brokers"]}
        steps = {each["matching_step"]: each["count"] for each in group["steps"]}
        assert brokers == Counter(row["broker_instance"] for row in rows)
        assert steps == Counter(row["matching_step"] for row in rows if row["matching_step"] is not None)
        assert (list(brokers), list(steps)) == (group["broker_instances"], group["matching_steps"])
        assert group["count"] == len(rows)
        several.update({"brokers": len(brokers) > 1, "steps": len(steps) > 1})
    # It is no test where every group is alike.
    assert min(several.values()) > 5, several


def test_every_message_of_a_group_takes_the_same_path(told: list[ComparedGroup]) -> None:
    ends: Counter[str] = Counter()
    for group, rows, paths in told:
        for row, path in zip(rows, paths, strict=True):
            if row["outcome"] not in ON_ITS_WAY:
                assert group["path"] is None
                assert group["end"] == group["outcome"]
                continue
            ways = group["path"]["ways"]
            there = [way for way in ways if way["direction"] == "THERE"]
            back = [way for way in ways if way["direction"] == "BACK"]
            reference_paths = dict.fromkeys(_reference_path(way, is_return=False) for way in path.there.ways)
            assert group["path"]["is_cut"] or list(map(_shown, there)) == list(reference_paths)
            assert group["path"]["multiple_targets"] == path.there.multiple_targets
            # The tests' own walk answers from the first database alone that a way is delivered to.
            ways_back = () if path.back is None else path.back.ways
            expected = list(dict.fromkeys(_reference_path(way, is_return=True) for way in ways_back))
            assert list(map(_shown, back))[: len(expected)] == expected
            ends[group["end"]] += 1
    assert set(ends) == {"DELIVERED", "DELAYED", "DROPPED", "LOOP", "NO_RETURN_PATH", "NOT_KNOWN"}


def _shown(way: Row) -> tuple[Any, ...]:
    names = (
        "instance_name",
        "scope",
        "matching_step",
        "route_name",
        "address",
        "outcome",
        "reason",
        "rerouted_from",
    )
    hops = tuple(tuple(hop[name] for name in names) for hop in way["hops"])
    return hops, way["outcome"], way["reason"], way["instance_name"], way["database_name"], way["address"]


def _reference_path(way: Way, *, is_return: bool) -> tuple[Any, ...]:
    hops = []
    for number, hop in enumerate(way.hops):
        step = hop.step if number or is_return else None
        hops.append(
            (hop.instance, hop.scope, step, hop.route, hop.address, hop.outcome, hop.reason, hop.rerouted_from)
        )
    return tuple(hops), way.end, way.reason, way.instance, way.database, way.address


def test_the_end_is_that_of_the_worst_routes_and_the_best_partners(told: list[ComparedGroup]) -> None:
    """All of several routes must arrive. Of an address, its mirror, and instances that share it, one is enough."""
    checked = several = 0
    for group, _, paths in told:
        for path in paths:
            places = {(way.instance, way.database) for way in path.there.ways if way.end == "DELIVERED"}
            if group["path"] is None or group["path"]["is_cut"] or len(places) > 1:
                continue
            checked += 1
            several += len(path.there.ways) > 1
            home = (group["instance_name"], group["database_name"])
            assert _end(path, home) == group["end"], (path, group["end"])
    assert min(checked - 500, several - 100) > 0, (checked, several)


def _end(path: Path, home: tuple[str, str]) -> str:
    """Return the end of a message with paths to one database at most."""
    back = "NOT_KNOWN"
    if path.back is not None:
        ends = [way.end if (way.instance, way.database) == home else "ELSEWHERE" for way in path.back.ways]
        ends = [
            "NOT_KNOWN" if way.end in ("LEFT_ESTATE", "NOT_KNOWN") else end
            for way, end in zip(path.back.ways, ends, strict=True)
        ]
        back = _together(list(path.back.ways), ends)
        back = back if back in ("DELIVERED", "NOT_KNOWN") else "NO_RETURN_PATH"
    end_by_reply = {"DELIVERED": back, "LEFT_ESTATE": "NOT_KNOWN"}
    return _together(list(path.there.ways), [end_by_reply.get(way.end, way.end) for way in path.there.ways])


def _together(ways: list[Way], ends: list[str]) -> str:
    """Combine the ends of paths, by the first alternative route and then recursively."""
    if len({way.hops for way in ways}) == 1:
        # An address that is its own mirror makes two ways of one.
        return ends[0]
    hop = 0
    while len({(way.hops[hop].route, way.hops[hop].address, _met(way, hop)) for way in ways}) == 1:
        hop += 1
    by_route: dict[str | None, list[str]] = {}
    for route in dict.fromkeys(way.hops[hop].route for way in ways):
        partners: dict[tuple[str | None, str | None], tuple[list[Way], list[str]]] = {}
        for way, end in zip(ways, ends, strict=True):
            if way.hops[hop].route == route:
                partner = partners.setdefault((way.hops[hop].address, _met(way, hop)), ([], []))
                partner[0].append(way)
                partner[1].append(end)
        by_route[route] = [_together(*partner) for partner in partners.values()]
    best = [
        next((end for end in ("DELIVERED", "NOT_KNOWN") if end in all_), all_[0]) for all_ in by_route.values()
    ]
    failing = [end for end in best if end not in ("DELIVERED", "NOT_KNOWN")]
    return failing[0] if failing else "NOT_KNOWN" if "NOT_KNOWN" in best else "DELIVERED"


def _met(way: Way, number: int) -> str | None:
    return way.hops[number + 1].instance if number + 1 < len(way.hops) else way.instance


MAY_LACK = ("routes", "services", "databases")
FAILING = ("DELAYED", "DROPPED", "LOOP", "NO_RETURN_PATH")


def test_an_end_stays_the_same_with_more_exports(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where views are left out a message ends as it does with all of them, or it is not known where."""
    rng = random.Random(SEED)
    seen: Counter[tuple[bool, bool]] = Counter()
    for _ in range(NETWORKS // 2):
        tables = exported_network(rng, MESSAGES)
        # Nobody makes services in msdb, and its view is not asked for.
        tables["services"] = [row for row in tables["services"] if row["database_name"] != "msdb"]
        lacking = [(row["instance_name"], view) for row in tables["instances"] for view in MAY_LACK]
        ends = []
        for left_out in ([], [one for one in lacking if rng.random() < 0.15]):
            folder = tmp_path_factory.mktemp("network")
            write_network(folder, tables, left_out)
            results = check([str(folder)]).results if tables["messages"] else []
            ends.append(
                {(result.row["instance_name"], result.row["message_id"]): result.case.end for result in results}
            )
        whole, in_part = ends
        assert whole.keys() == in_part.keys()
        for key, end in in_part.items():
            seen[end == "NOT_KNOWN", whole[key] == "NOT_KNOWN"] += 1
            assert end in (whole[key], "NOT_KNOWN") or (end in FAILING and whole[key] in FAILING), (
                key,
                end,
                whole[key],
            )
    # It is no test where everything, or nothing, stays known.
    assert min(seen[True, False], seen[False, False]) > 100, seen
