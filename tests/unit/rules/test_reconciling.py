"""Observations against predictions: every pair of the table, checked by hand."""

from __future__ import annotations

import pytest

from routing.rules.reconciling import PairClass, SeenMessage, compare
from routing.rules.resolving import Verdict
from routing.terms import Outcome, Reason
from tests.unit.rules.made import B, C, route

EVENT, QUEUE, DROPPED = "CLASSIFY_EVENT", "TRANSMISSION_QUEUE", "FORWARD_DROPPED"
HOP, MIRROR, OTHER = "tcp://far:4022", "tcp://mirror:4022", "tcp://other:4022"
SENT = Verdict(C, Outcome.SENT, Reason.NETWORK_ADDRESS, address=HOP, mirror_address=MIRROR)
TIERED = Verdict(
    None, Outcome.SENT, Reason.NETWORK_ADDRESS, address=HOP, alternative_routes=(route(address=OTHER),)
)
LOCAL = Verdict(None, Outcome.DELIVERED, Reason.LOCAL_SERVICE, address="LOCAL")
FORWARDED = Verdict(None, Outcome.FORWARDED, Reason.NETWORK_ADDRESS, address=HOP)
NO_ROUTE = Verdict(None, Outcome.DELAYED, Reason.NO_ROUTE)
MSDB_OFF = Verdict(None, Outcome.DELAYED, Reason.SCOPE_BROKER_DISABLED)
OFF = Verdict(None, Outcome.DROPPED, Reason.FORWARDING_DISABLED)
NO_HOPS = Verdict(None, Outcome.DROPPED, Reason.HOP_LIMIT)
LOOP = Verdict(None, Outcome.DROPPED, Reason.ROUTING_LOOP)
A, M, X, N = PairClass.CONFIRMED, PairClass.COMPATIBLE, PairClass.CONTRADICTED, PairClass.NOT_OBSERVED


def seen(outcome: str | None, number: int | None = None, source: str = EVENT, **rest: object) -> SeenMessage:
    known = None if outcome is None else Outcome(outcome)
    return SeenMessage(source, known, number, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("told", "verdict", "expected"),
    [
        # Nothing told: a blank status, a text that is not known.
        (seen(None, source=QUEUE), SENT, M),
        (seen(None, source=QUEUE), FORWARDED, M),
        (seen(None, source=QUEUE), LOCAL, N),
        (seen(None, source=QUEUE), NO_ROUTE, N),
        (seen(None, source=QUEUE, is_unknown_text=True), SENT, N),
        # Numbers, and an event's own word beside them.
        (seen("DELAYED", 9793), NO_ROUTE, A),
        (seen("DELAYED", 9770), NO_ROUTE, M),
        (seen("DELAYED", 9793), SENT, X),
        (seen(None, 9754, QUEUE), SENT, M),
        (seen(None, 9754, QUEUE), NO_ROUTE, X),
        (seen("DELAYED", 9792), OFF, M),
        (seen("DROPPED", 9792, DROPPED), OFF, A),
        (seen("DELAYED", 15517), NO_ROUTE, N),
        # Outcomes without a number.
        (seen("SENT"), SENT, A),
        (seen("SENT"), FORWARDED, X),
        (seen("SENT"), NO_ROUTE, X),
        (seen("DELIVERED"), LOCAL, A),
        (seen("DELIVERED"), SENT, X),
        (seen("FORWARDED", source="FORWARD_SENT"), FORWARDED, A),
        (seen("DELAYED"), NO_ROUTE, M),
        (seen("DELAYED"), SENT, X),
        (seen("DROPPED", source=DROPPED), LOOP, M),
        # Where it went, and what it was bound to.
        (seen("SENT", next_hop=f" {HOP.upper()}/"), SENT, A),
        (seen("SENT", next_hop=MIRROR), SENT, A),
        (seen("SENT", next_hop=OTHER), SENT, X),
        (seen("SENT", next_hop=OTHER), TIERED, M),
        (seen("SENT", broker_instance=C), SENT, A),
        (seen("SENT", broker_instance=B), SENT, X),
        (seen("SENT", broker_instance=B), TIERED, A),
        # Hops, and the time to live.
        (seen("DROPPED", source=DROPPED, hops_remaining=0), NO_HOPS, A),
        (seen("DROPPED", source=DROPPED, hops_remaining=3), NO_HOPS, M),
        (seen("DROPPED", source=DROPPED, time_to_live_seconds=60, live_time_seconds=60), FORWARDED, M),
        (seen("DROPPED", source=DROPPED, time_to_live_seconds=60, live_time_seconds=59), FORWARDED, X),
        (seen("DROPPED", source=DROPPED, time_to_live_seconds=60), FORWARDED, X),
    ],
)
def test_each_observation_and_verdict_has_its_class(
    told: SeenMessage, verdict: Verdict, expected: PairClass
) -> None:
    assert compare(told, verdict).kind is expected


def test_another_pick_of_the_same_ids_is_compatible() -> None:
    other = Verdict(B, Outcome.SENT, Reason.NETWORK_ADDRESS, address=OTHER)
    told = seen("SENT", next_hop=OTHER, broker_instance=B)
    assert compare(told, SENT).kind is X
    assert compare(told, SENT, [SENT, other]).kind is M
    assert compare(told, SENT, [SENT, NO_ROUTE]).kind is X
    assert compare(seen("SENT", next_hop=HOP), SENT, [SENT, other]).kind is A


def test_a_disabled_broker_in_msdb_has_its_own_number() -> None:
    assert compare(seen("DELAYED", 9789), MSDB_OFF, in_msdb=True).kind is A
    assert compare(seen("DELAYED", 9789), MSDB_OFF).kind is X
