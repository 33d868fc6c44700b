"""The page's advice on a reason: SQL Server's numbers and the remedy."""

from __future__ import annotations

import pytest

from routing.terms import Reason
from routing.views.page.report_page import advice_of

# As the rule book's table has them, that of the event first.
NUMBERS = {
    "NO_ROUTE": (9793, 9750),
    "ROUTE_REQUESTED": (9770,),
    "SERVICE_NOT_FOUND": (9796,),
    "BROKER_INSTANCE_NOT_FOUND": (9795,),
    "FORWARDING_DISABLED": (9792,),
    "SCOPE_BROKER_DISABLED": (9791, 9789),
    "BROKER_DISABLED": (28012, 28013),
    "TRANSPORT_ADDRESS_INVALID": (),
    "HOP_LIMIT": (),
    "ROUTING_LOOP": (),
    "DIALOG_EXPIRED": (8489,),
    "LOCAL_SERVICE": (),
    "NETWORK_ADDRESS": (),
    "MIRROR_ADDRESS": (),
    "TRANSPORT_ADDRESS": (),
}


@pytest.mark.parametrize("reason", [str(reason) for reason in Reason])
def test_every_reason_has_its_numbers_and_advice(reason: str) -> None:
    numbers, words = advice_of(reason)
    assert numbers == NUMBERS[reason]
    assert words.endswith(".")


def test_the_advice_equals_that_of_explain() -> None:
    words = "Enable MESSAGE_FORWARDING on the Service Broker endpoint, or correct the msdb route."
    assert advice_of("FORWARDING_DISABLED") == ((9792,), words)
