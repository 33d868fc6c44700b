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


def observed(outcome: str | None, number: int | None = None, source: str = EVENT, **rest: object) -> SeenMessage:
    word = None if outcome is None else Outcome(outcome)
    return SeenMessage(source, word, number, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("observed_message", "verdict", "expected"),
    [
        # Nothing told: a blank status, a text that is not known.
        (observed(None, source=QUEUE), SENT, M),
        (observed(None, source=QUEUE), FORWARDED, M),
        (observed(None, source=QUEUE), LOCAL, N),
        (observed(None, source=QUEUE), NO_ROUTE, N),
        (observed(None, source=QUEUE, is_unknown_text=True), SENT, N),
        # Numbers, and an event's own word beside them.
        (observed("DELAYED", 9793), NO_ROUTE, A),
        (observed("DELAYED", 9770), NO_ROUTE, M),
        (observed("DELAYED", 9793), SENT, X),
        (observed(None, 9754, QUEUE), SENT, M),
        (observed(None, 9754, QUEUE), NO_ROUTE, X),
        (observed("DELAYED", 9792), OFF, M),
        (observed("DROPPED", 9792, DROPPED), OFF, A),
        (observed("DELAYED", 15517), NO_ROUTE, N),
        # Outcomes without a number.
        (observed("SENT"), SENT, A),
        (observed("SENT"), FORWARDED, X),
        (observed("SENT"), NO_ROUTE, X),
        (observed("DELIVERED"), LOCAL, A),
        (observed("DELIVERED"), SENT, X),
        (observed("FORWARDED", source="FORWARD_SENT"), FORWARDED, A),
        (observed("DELAYED"), NO_ROUTE, M),
        (observed("DELAYED"), SENT, X),
        (observed("DROPPED", source=DROPPED), LOOP, M),
        # Where it went, and what it was bound to.
        (observed("SENT", next_hop=f" {HOP.upper()}/"), SENT, A),
        (observed("SENT", next_hop=MIRROR), SENT, A),
        (observed("SENT", next_hop=OTHER), SENT, X),
        (observed("SENT", next_hop=OTHER), TIERED, M),
        (observed("SENT", broker_instance=C), SENT, A),
        (observed("SENT", broker_instance=B), SENT, X),
        (observed("SENT", broker_instance=B), TIERED, A),
        # Hops, and the time to live.
        (observed("DROPPED", source=DROPPED, hops_remaining=0), NO_HOPS, A),
        (observed("DROPPED", source=DROPPED, hops_remaining=3), NO_HOPS, M),
        (observed("DROPPED", source=DROPPED, time_to_live_seconds=60, live_time_seconds=60), FORWARDED, M),
        (observed("DROPPED", source=DROPPED, time_to_live_seconds=60, live_time_seconds=59), FORWARDED, X),
        (observed("DROPPED", source=DROPPED, time_to_live_seconds=60), FORWARDED, X),
    ],
)
def test_each_observation_and_verdict_has_its_class(
    observed_message: SeenMessage, verdict: Verdict, expected: PairClass
) -> None:
    assert compare(observed_message, verdict).kind is expected


def test_another_pick_of_the_same_ids_is_compatible() -> None:
    other = Verdict(B, Outcome.SENT, Reason.NETWORK_ADDRESS, address=OTHER)
    observed_message = observed("SENT", next_hop=OTHER, broker_instance=B)
    assert compare(observed_message, SENT).kind is X
    assert compare(observed_message, SENT, [SENT, other]).kind is M
    assert compare(observed_message, SENT, [SENT, NO_ROUTE]).kind is X
    assert compare(observed("SENT", next_hop=HOP), SENT, [SENT, other]).kind is A


def test_a_disabled_broker_in_msdb_has_its_own_number() -> None:
    assert compare(observed("DELAYED", 9789), MSDB_OFF, in_msdb=True).kind is A
    assert compare(observed("DELAYED", 9789), MSDB_OFF).kind is X
