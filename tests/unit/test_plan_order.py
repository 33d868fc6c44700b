"""Swapping two neighbours of `STEPS` or `TIERS` changes every user of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pytest

from routing.plan.key_rows import CHOICE, KEY, decide_keys
from routing.plan.paths import PathPlanner
from routing.plan.planner import Planner
from routing.plan.verdicts import MessageJudge
from routing.rules import choosing, matching
from routing.rules.estate import EstateRoute, SqlInstance
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender
from routing.rules.resolving import NO_DIALOG
from routing.tables.table_columns import TableColumns
from tests.unit.rules.made import ASKS, B, C, instance, key_of, message, route

FAR, MIRRORED = "tcp://far:4022", "tcp://mirror:4022"
NAMED = "tcp://named:4022/S"
Said = tuple[int | None, bool, str | None]
"""The matching step, whether step 4 is met before, and the reported route."""


class Order(NamedTuple):
    """Routes of a database, a message from it, and its decisions by the rules' order and the swapped order."""

    routes: Iterable[EstateRoute]
    service: str
    broker: str | None
    said: Said
    otherwise: Said


def _named(name: str, broker: str | None = None, address: str = FAR, mirror: str | None = None) -> EstateRoute:
    return route(name, "S", broker, address, mirror)


ANY, ASK = route("any", address=FAR), route("ask", ASKS, address=FAR)
STEPS = [
    Order([_named("bound", B), _named("open")], "S", B, (1, False, "bound"), (2, False, "open")),
    Order([_named("open"), _named("picked", C)], "S", None, (2, False, "open"), (3, False, "picked")),
    Order([_named("picked", C), ASK], "S", None, (3, False, "picked"), (3, True, "picked")),
    Order([ASK, ANY], "S", None, (5, True, "any"), (5, False, "any")),
    Order([ANY], "OrderService", B, (5, False, "any"), (6, False, None)),
]
LOCAL, NETWORK = route("local", "OrderService"), route("network", "OrderService", address=FAR)
MIRROR = route("mirrored", "OrderService", address=FAR, mirror=MIRRORED)
ELSEWHERE, READ = route("network", NAMED, address=FAR), route("read", NAMED, address="TRANSPORT")
TIERS = [
    Order([MIRROR, LOCAL], "OrderService", None, (2, False, "mirrored"), (2, False, "local")),
    Order([LOCAL, NETWORK], "OrderService", None, (2, False, "local"), (2, False, "network")),
    Order([ELSEWHERE, READ], NAMED, None, (2, False, "network"), (2, False, "read")),
]
ASKED = ("timeline", "plan", "verdict", "path")


def _all_decisions(order: Order) -> Mapping[str, Said]:
    """Return the decision on one message from a timeline, a plan row, a verdict and a path."""
    hub = instance({"Orders": order.routes})
    key, network = key_of(hub, service=order.service, broker=order.broker), EstateNetwork({"hub": hub})
    [decision] = Planner().at(key, hub, 10).choices
    sent = message(order.service, broker=order.broker)
    judge = MessageJudge(network)
    verdict = judge.keyed(sent, NO_DIALOG).verdict_of(decision, None)
    sender, to = PathSender(hub, "Orders", True), ServiceAddress.of_name(order.service)
    [found] = PathPlanner(network).timeline(sender, to, order.broker).at(10, (None,)).choices
    hop = found.paths[0].there.hop_paths[0].hops[0]
    answers = (
        (decision.last.step, decision.asks, decision.last.route_name),
        _planned(order, hub),
        (verdict.matching_step, judge.keyed(sent, NO_DIALOG).decision(sent).asks, verdict.route_name),
        (hop.matching_step, found.decision.asks, hop.route_name),
    )
    return dict(zip(ASKED, answers, strict=True))


def _planned(order: Order, hub: SqlInstance) -> Said:
    row = ("hub", "Orders", order.service, order.broker or "", 1)
    columns = TableColumns({name: [value] for name, value in zip(KEY, row, strict=True)})
    [timeline] = decide_keys(columns, {"hub": hub}).timelines
    [(_, _, [choice])] = timeline.rows
    told = dict(zip(CHOICE.names, choice, strict=True))
    return told["matching_step"], told["asks"], told["route_name"]


@pytest.mark.parametrize("place", range(len(STEPS)), ids=[f"steps {n} and {n + 1}" for n in range(1, 6)])
def test_swapping_two_steps_changes_the_decision(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    order = STEPS[place]
    assert _all_decisions(order) == dict.fromkeys(ASKED, order.said)
    steps = list(matching.STEPS)
    steps[place : place + 2] = reversed(steps[place : place + 2])
    monkeypatch.setattr(matching, "STEPS", tuple(steps))
    monkeypatch.setattr(matching, "_PLACE", {step.number: number for number, step in enumerate(steps)})
    assert _all_decisions(order) == dict.fromkeys(ASKED, order.otherwise)


@pytest.mark.parametrize("place", range(len(TIERS)), ids=["A and B", "B and C", "C and D"])
def test_swapping_two_tiers_changes_the_decision(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    order = TIERS[place]
    assert _all_decisions(order) == dict.fromkeys(ASKED, order.said)
    tiers = list(choosing.TIERS)
    tiers[place : place + 2] = reversed(tiers[place : place + 2])
    monkeypatch.setattr(choosing, "TIERS", tuple(tiers))
    assert _all_decisions(order) == dict.fromkeys(ASKED, order.otherwise)


def test_every_pair_of_neighbours_is_tried() -> None:
    assert (len(STEPS), len(TIERS)) == (len(matching.STEPS) - 1, len(choosing.TIERS) - 1)
