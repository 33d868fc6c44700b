"""The joint end of a path (D17): partners of one route, several routes, later hops and the return path."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from routing.rules.following import HopPath, MessageTrace, PathHop
from routing.rules.judging import judge_path
from routing.terms import Ending, MatchingStep, Outcome, Reason


class Case(NamedTuple):
    """Paths in both directions as words, their joint end, and the instances of ignored paths."""

    there: list[str]
    back: list[str]
    end: str
    spared: list[str]


def _parse_path(text: str) -> HopPath:
    """Read a path such as "a Route b, b Route2 c: DELIVERED", with the instance and the route of each hop."""
    legs, ending = text.split(": ")
    hops, at = [], ""
    for leg in legs.split(", "):
        start, *sent = leg.split(" ")
        if sent:
            route, at = sent
            hops.append(_hop(start, route, f"tcp://{at}:4022", Outcome.SENT, Reason.NETWORK_ADDRESS))
    if ending in ("DELIVERED", "DELAYED", "DROPPED"):
        hops.append(_hop(at, None, None, Outcome(ending), Reason.LOCAL_SERVICE))
    database = "Sales" if at == "a" else "Stock"
    instance = None if ending == "LEFT_ESTATE" else at
    return HopPath(tuple(hops), Ending(ending), None, instance, database if ending == "DELIVERED" else None)


def _hop(instance: str, route: str | None, address: str | None, outcome: Outcome, reason: Reason) -> PathHop:
    return PathHop(instance, "msdb", MatchingStep.SERVICE, route, address, outcome, reason)


@pytest.mark.parametrize(
    ("there", "back", "end", "spared"),
    [
        # Partners of a mirrored route: the one that delivers counts, and the other is named.
        Case(["a M b: DELIVERED", "a M c: DROPPED"], ["b R a: DELIVERED"], "DELIVERED", ["c"]),
        Case(["a M c: DROPPED", "a M b: DELIVERED"], ["b R a: DELIVERED"], "DELIVERED", ["c"]),
        Case(["a M b: LEFT_ESTATE", "a M c: DROPPED"], [], "NOT_KNOWN", ["c"]),
        Case(["a M b: LEFT_ESTATE", "a M c: DELIVERED"], ["c R a: DELIVERED"], "DELIVERED", []),
        Case(["a M b: DELAYED", "a M c: DROPPED"], [], "DELAYED", []),
        # Several routes: each must arrive.
        Case(["a R1 b: DELIVERED", "a R2 c: DROPPED"], ["b R a: DELIVERED"], "DROPPED", []),
        Case(["a R1 b: DELIVERED", "a R2 c: LEFT_ESTATE"], ["b R a: DELIVERED"], "NOT_KNOWN", []),
        # A partner without a way back does not deliver.
        Case(["a M b: DELIVERED", "a M c: DELIVERED"], ["b R d: DROPPED", "c R a: DELIVERED"], "DELIVERED", ["b"]),
        Case(["a M b: DELIVERED", "a M c: DROPPED"], ["b R d: DROPPED"], "NO_RETURN_PATH", []),
        # On the way back, and at a later hop.
        Case(["a R b: DELIVERED"], ["b M a: DELIVERED", "b M d: DELAYED"], "DELIVERED", ["d"]),
        Case(["a R b: DELIVERED"], ["b M d: LEFT_ESTATE", "b M e: DELAYED"], "NOT_KNOWN", ["e"]),
        Case(["a R b: DELIVERED"], ["b R1 a: DELIVERED", "b R2 d: DELAYED"], "NO_RETURN_PATH", []),
        Case(["a R b, b M c: DELIVERED", "a R b, b M d: DROPPED"], ["c R a: DELIVERED"], "DELIVERED", ["d"]),
        Case(["a R b, b R1 c: DELIVERED", "a R b, b R2 d: DROPPED"], ["c R a: DELIVERED"], "DROPPED", []),
    ],
)
def test_a_trace_has_the_joint_end_of_its_paths(
    there: list[str], back: list[str], end: str, spared: list[str]
) -> None:
    returns = [_parse_path(path_text) for path_text in back]

    def reply(delivered: HopPath) -> MessageTrace | None:
        ways = tuple(one for one in returns if one.hops[0].instance_name == delivered.instance)
        return MessageTrace(ways) if ways else None

    judged = judge_path(MessageTrace(tuple(map(_parse_path, there))), ("a", "Sales"), reply)
    assert judged.end == end
    assert [one.hop_path.instance for one in judged.spared_paths] == spared


def test_a_path_of_one_hop_ends_with_its_decision() -> None:
    for outcome in ("DELIVERED", "DELAYED", "DROPPED"):
        hop = _hop("a", None, None, Outcome(outcome), Reason.LOCAL_SERVICE)
        trace = MessageTrace((HopPath((hop,), Ending(outcome), None, "a", "Sales"),))
        assert judge_path(trace, ("a", "Sales"), lambda _: None).end == outcome


def test_the_end_of_a_cut_path_is_known_only_if_it_fails() -> None:
    trace = MessageTrace((_parse_path("a R b: DELIVERED"),), is_cut=True)
    assert (
        judge_path(trace, ("a", "Sales"), lambda _: MessageTrace((_parse_path("b R a: DELIVERED"),))).end
        == "NOT_KNOWN"
    )
    trace = MessageTrace((_parse_path("a R b: DROPPED"),), is_cut=True)
    assert judge_path(trace, ("a", "Sales"), lambda _: None).end == "DROPPED"
