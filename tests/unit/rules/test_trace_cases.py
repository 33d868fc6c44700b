"""The rules follow every worked case of tracing as its page says, there and back."""

from __future__ import annotations

from typing import Any

import pytest

from routing.plan.paths import PathPlanner
from routing.rules import hashing
from routing.rules.following import HopPath, PathHop, TracedMessage, follow
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, PathWithReturn, trace_back
from routing.rules.requesting import InstanceRequests
from routing.rules.resolving import NO_DIALOG, RoutedMessage
from tests.frames import load_trace_cases, moment
from tests.unit.rules import by_rules
from tests.unit.rules.by_rules import Row
from tests.unit.rules.made import decide_now

CASES = load_trace_cases()
_NAMES = {
    "instance": "instance_name",
    "scope": "scope",
    "step": "matching_step",
    "route": "route_name",
    "address": "address",
    "outcome": "outcome",
    "reason": "reason",
}


def _hop(hop: PathHop) -> Row:
    row = {name: getattr(hop, attribute) for name, attribute in _NAMES.items()}
    return {
        **row,
        "outcome": str(hop.outcome),
        "reason": str(hop.reason),
        "step": hop.matching_step and int(hop.matching_step),
    }


def _path_row(way: HopPath, like: Row) -> Row:
    row: Row = {
        "end": str(way.ending),
        "reason": None if way.reason is None else str(way.reason),
        "instance": way.instance,
        "database": way.database,
        "address": way.address,
        "hops": [_hop(hop) for hop in way.hops],
    }
    assert not {name for name in row.keys() - like.keys() if row[name] is not None}
    return {name: row[name] for name in like}


def _path(case: dict[str, Any]) -> PathWithReturn:
    """The path of a case by one walk."""
    network = EstateNetwork(by_rules.instances_of(case["tables"]))
    ask = case["ask"]
    t = by_rules.micros(moment(case["at"])) or 0
    instance, conversation = network.instances[ask["instance"]], ask["conversation_id"]
    message = RoutedMessage(
        "m", conversation, True, t, instance.name, ask["database"], ask["service"], None, ask.get("hops_remaining")
    )
    verdict = by_rules.resolve(message, NO_DIALOG, instance, InstanceRequests())
    errand = TracedMessage(ServiceAddress.of_name(ask["service"]), True, t, hashing.dialog_id_hash(conversation))
    done = follow(network, decide_now, errand, instance, verdict, ask["database"], message.hops_remaining)
    return trace_back(network, decide_now, _sender(case, network), done.trace, t)[0]


def _sender(case: dict[str, Any], network: EstateNetwork) -> PathSender:
    ask = case["ask"]
    return PathSender(
        network.instances[ask["instance"]], ask["database"], True, ServiceAddress.of_name(ask["from_service"])
    )


def _planned_path(case: dict[str, Any]) -> PathWithReturn:
    """The path of a case as the plan of all messages of its key has it."""
    network, ask = EstateNetwork(by_rules.instances_of(case["tables"])), case["ask"]
    to = ServiceAddress.of_name(ask["service"])
    t = by_rules.micros(moment(case["at"])) or 0
    timeline = PathPlanner(network).timeline(_sender(case, network), to, None)
    for row in timeline.intervals((ask.get("hops_remaining"),)):
        if (row.valid_from is None or row.valid_from <= t) and (row.valid_to is None or t < row.valid_to):
            [path] = row.pick(hashing.dialog_id_hash(ask["conversation_id"])).paths
            return path
    raise AssertionError("no time of the plan holds this one")


@pytest.mark.parametrize("find", [_path, _planned_path], ids=["walk", "plan"])
@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_case(case: dict[str, Any], find: Any) -> None:
    path = find(case)
    assert [_path_row(way, like) for way, like in zip(path.there.hop_paths, case["ways"], strict=True)] == case[
        "ways"
    ]
    assert path.there.ways_agree is case["ways_agree"]
    assert path.there.has_multiple_targets is case["multiple_targets"]
    assert path.judged.end == case["joint_ending"]
    if "back" in case:
        assert path.back is not None
        ways_back = zip(path.back.hop_paths, case["back"], strict=True)
        assert [_path_row(way, like) for way, like in ways_back] == case["back"]


def test_all_cases_are_read() -> None:
    assert len(CASES) == 12
    assert sum("back" in case for case in CASES) == 3
