"""More paths or picks than the limit: messages by walks, by plans, and by the tests' own walk."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from routing.rules.pathing import PathWithReturn
from tests.estate_rows import Row, database, instance, route, service
from tests.reference import estate_words as words
from tests.reference import ways
from tests.reference.dialog_hash import xxhash64
from tests.reference.paths import own_paths
from tests.unit.rules import followed
from tests.unit.rules.by_rules import Tables
from tests.unit.rules.followed import Followed

_MESSAGE = {
    "message_id": "m",
    "conversation_id": words.CONVERSATIONS[3],
    "is_initiator": True,
    "enqueue_time": words.NOON,
    "observed_at": None,
    "instance_name": "a",
    "database_name": "Sales",
    "to_service_name": "//t/stock",
    "to_broker_instance": None,
    "hops_remaining": None,
    "from_service_name": None,
}


def _layers(*widths: int, **columns: Any) -> Tables:
    """Return sender `a`, layers of forwarders with open routes to all of the next layer, and the targets."""
    tables: Tables = {key: [] for key in ("instances", "databases", "services", "routes", "messages", "dialogs")}
    layers = [["a"], *([f"l{n}-{m:02d}" for m in range(width)] for n, width in enumerate(widths)), []]
    for layer, following in pairwise(layers):
        for name in layer:
            tables["instances"].append(instance(name, f"tcp://{name}:4022", is_message_forwarding_enabled=True))
            scope = "Sales" if name == "a" else "msdb"
            for target in following:
                tables["routes"].append(_route(name, scope, target, f"tcp://{target}:4022"))
            if not following:
                tables["routes"].append(_route(name, "msdb", "Here", "LOCAL"))
                tables["services"].append(service("Stock", "//t/stock", instance_name=name))
                scope = "Stock"
            guid = "id-one" if columns.get("one_target") else f"id-{name}"
            tables["databases"].append(database(scope, guid, instance_name=name))
    tables["messages"].append({**_MESSAGE, "hops_remaining": columns.get("hops")})
    return {**tables, "route_requests": []}


def _route(where: str, scope: str, name: str, address: str, broker: str | None = None) -> Row:
    return route(name, "//t/stock", address, instance_name=where, database_name=scope, broker_instance=broker)


def _only(tables: Tables) -> tuple[ways.Path, PathWithReturn, PathWithReturn]:
    """The one message's path by the tests' own walk, by the rules' and by their plan."""
    [path] = own_paths(tables)
    by_rules = Followed(tables)
    [message] = by_rules.sent()
    planned = by_rules.planned(message)
    assert planned is not None
    return path, by_rules.walked(message), planned


@pytest.mark.parametrize(("widths", "is_cut"), [((10, 10), False), ((10, 10, 1), False), ((101,), True)])
@pytest.mark.parametrize("one_target", [True, False])
def test_paths_after_the_hundredth_are_cut(widths: tuple[int, ...], is_cut: bool, one_target: bool) -> None:
    tables = _layers(*widths, one_target=one_target)
    path, walked, planned = _only(tables)
    assert walked == planned
    assert followed.path(walked, _MESSAGE) == followed.own_path(path)
    assert len(walked.there.hop_paths) == 100
    assert walked.there.ending == ("TOO_MANY_WAYS" if is_cut else "DELIVERED")
    assert walked.there.has_multiple_targets is (not one_target and widths[-1] > 1)
    assert walked.there.ways_agree is (widths[-1] == 1)


def test_too_many_paths_that_agree_so_far_decide_nothing() -> None:
    """Ten times twenty forwarders give two hundred paths to one target."""
    path, walked, planned = _only(_layers(10, 20, 1))
    assert walked == planned
    assert path.there.ways_agree is walked.there.ways_agree is None
    assert (walked.there.ending, walked.there.has_multiple_targets) == ("TOO_MANY_WAYS", False)


def _balancing(*counts: int) -> Tables:
    """Return sender `a` with open routes to forwarders. Each balances between several ids of its own target."""
    tables = _layers(len(counts), 1)
    tables["routes"] = [row for row in tables["routes"] if row["name"] != "l1-00"]
    for number, count in enumerate(counts):
        tables["routes"] += [
            _route(f"l0-{number:02d}", "msdb", f"R{one:02d}", "tcp://l1-00:4022", f"id-{one:02d}")
            for one in range(count)
        ]
    tables["databases"] += [
        database(f"Db{one:02d}", f"id-{one:02d}", instance_name="l1-00") for one in range(max(counts))
    ]
    tables["services"] += [
        service(f"Db{one:02d}", "//t/stock", instance_name="l1-00") for one in range(max(counts))
    ]
    return tables


@pytest.mark.parametrize("counts", [(2, 3), (7, 11, 12), (4, 6, 9)])
def test_forwarders_that_balance_each_by_itself(counts: tuple[int, ...]) -> None:
    for conversation in words.CONVERSATIONS[:4]:
        tables = _balancing(*counts)
        tables["messages"][0]["conversation_id"] = conversation
        path, walked, planned = _only(tables)
        assert walked == planned
        assert followed.path(walked, _MESSAGE) == followed.own_path(path)
        picked = {xxhash64(conversation) % count for count in counts}
        assert {way.database for way in walked.there.hop_paths} == {f"Db{one:02d}" for one in picked}
        assert walked.there.has_multiple_targets is (len(picked) > 1)


def test_more_picks_than_the_limit_end_as_too_many_paths() -> None:
    """7 times 11 times 13 are 1001."""
    path, walked, planned = _only(_balancing(7, 11, 13))
    assert path.there.end == walked.there.ending == planned.there.ending == "TOO_MANY_WAYS"
    assert followed.path(walked, _MESSAGE) == followed.own_path(path)


def test_the_pick_of_one_dialog_hides_no_other_pick() -> None:
    """One of two ids has too many paths to see the next forwarder, and the other has few."""
    tables = _layers(2, 1)
    routes = [row for row in tables["routes"] if row["instance_name"] == "a"]
    tables["routes"] = [row for row in tables["routes"] if row["instance_name"] == "l1-00"] + routes
    many = [f"tcp://far-{number:03d}:4022" for number in range(120)]
    tables["routes"] += [_route("l0-00", "msdb", address, address, "id-0") for address in many]
    tables["routes"] += [_route("l0-00", "msdb", "One", "tcp://l1-00:4022", "id-1")]
    for number in range(3):
        tables["routes"].append(_route("l0-01", "msdb", f"R{number}", "tcp://l1-00:4022", f"id-{number}"))
        tables["databases"].append(
            {"instance_name": "l1-00", "name": f"Db{number}", "service_broker_guid": f"id-{number}"}
        )
        tables["services"].append({"instance_name": "l1-00", "database_name": f"Db{number}", "name": "//t/stock"})
    ends = set()
    for conversation in (f"d0000000-0000-4000-8000-{number:012d}" for number in range(40)):
        tables["messages"][0]["conversation_id"] = conversation
        path, walked, planned = _only(tables)
        assert followed.path(walked, _MESSAGE) == followed.own_path(path)
        assert walked == planned
        ends.add((str(walked.there.ending), walked.there.hop_paths[-1].database))
    assert ends == {("TOO_MANY_WAYS", None), *(("DELIVERED", f"Db{number}") for number in range(3))}
