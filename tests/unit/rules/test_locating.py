"""The destination of a message, or the reason for having none: rule book, sections 1 and 4."""

from __future__ import annotations

from itertools import combinations

import pytest

from routing.rules.estate import Database, ServiceHolders, SqlInstance
from routing.rules.locating import DestinationLocation, has_id, is_reply, list_influential_holders, locate
from routing.terms import Reason
from tests.unit.rules.made import NOWHERE, B, C, D

parametrize = pytest.mark.parametrize
# One without an id, and one whose broker is off.
LISTED = {
    one.name: one
    for one in (
        Database("Aged", D, False),
        Database("Bare", None, True),
        Database("Orders", B, True),
        Database("Parts", C, True),
    )
}
HUB = SqlInstance("hub", databases=LISTED)
NO_SERVICE, DISABLED = Reason.SERVICE_NOT_FOUND, Reason.BROKER_DISABLED
NO_BROKER = Reason.BROKER_INSTANCE_NOT_FOUND


@parametrize(
    ("is_from_network", "is_initiator", "broker", "expected"),
    [
        (True, False, B, True),
        (True, False, D, True),
        (True, False, NOWHERE, False),
        (True, False, None, False),
        (True, True, B, False),
        (False, False, B, False),
        (False, True, B, False),
    ],
)
def test_a_reply_from_outside(
    is_from_network: bool, is_initiator: bool, broker: str | None, expected: bool
) -> None:
    assert is_reply(HUB, broker, is_from_network=is_from_network, is_initiator=is_initiator) is expected


@parametrize(
    ("database", "broker", "expected"),
    [
        ("Orders", None, True),
        ("Orders", B, True),
        ("Orders", C, False),
        ("Bare", None, True),
        ("Bare", B, False),
    ],
)
def test_databases_match_broker_ids(database: str, broker: str | None, expected: bool) -> None:
    assert has_id(LISTED[database], broker) is expected


@parametrize(
    ("holders", "sender", "broker", "expected"),
    [
        # Nobody holds the service.
        ([], None, None, DestinationLocation(None, NO_SERVICE)),
        ([], "Orders", None, DestinationLocation(None, NO_SERVICE)),
        ([], "Orders", C, DestinationLocation(None, NO_SERVICE)),
        ([], "Orders", NOWHERE, DestinationLocation(None, NO_BROKER)),
        # Open: the sender if it holds it, else the first by name (D5).
        (["Orders", "Parts"], "Parts", None, DestinationLocation("Parts", None)),
        (["Orders", "Parts"], "Bare", None, DestinationLocation("Orders", None)),
        (["Orders", "Parts"], None, None, DestinationLocation("Orders", None)),
        (["Bare", "Parts"], "Orders", None, DestinationLocation("Bare", None)),
        # Bound: the database with the id, the sender or not.
        (["Orders", "Parts"], "Orders", C, DestinationLocation("Parts", None)),
        (["Orders", "Parts"], None, C, DestinationLocation("Parts", None)),
        (["Bare", "Parts"], "Bare", C, DestinationLocation("Parts", None)),
        (["Orders"], "Orders", C, DestinationLocation(None, NO_SERVICE)),
        (["Orders"], "Orders", NOWHERE, DestinationLocation(None, NO_BROKER)),
        (["Bare"], None, B, DestinationLocation(None, NO_SERVICE)),
        # Whose broker is off is passed over, and said so where no other is left.
        (["Aged", "Orders"], None, None, DestinationLocation("Orders", None)),
        (["Aged", "Orders"], "Aged", None, DestinationLocation("Orders", None)),
        (["Aged"], None, None, DestinationLocation(None, DISABLED)),
        (["Aged"], "Aged", D, DestinationLocation(None, DISABLED)),
        (["Aged", "Orders"], None, D, DestinationLocation(None, DISABLED)),
        (["Aged"], None, B, DestinationLocation(None, NO_SERVICE)),
        (["Aged"], None, NOWHERE, DestinationLocation(None, NO_BROKER)),
    ],
)
def test_a_message_is_located_in_its_destination(
    holders: list[str], sender: str | None, broker: str | None, expected: DestinationLocation
) -> None:
    assert locate(HUB, ServiceHolders(LISTED[name] for name in holders), sender, broker) == expected


def test_two_databases_of_one_id() -> None:
    """A doubled id is for lint to tell: the first holder by name that is able has it (D5)."""
    twins = ServiceHolders([Database("A", B, False), Database("B", B, True), Database("C", B, True)])
    hub = SqlInstance("hub", databases={one.name: one for one in twins})
    assert locate(hub, twins, "C", B) == DestinationLocation("B", None)
    assert locate(hub, twins, "C", None) == DestinationLocation("C", None)


_ASKED = [None, "Aged", "Orders", "Stock", "Unlisted"]


@pytest.mark.parametrize("broker", [None, B, C, D, NOWHERE])
@pytest.mark.parametrize("sender", _ASKED)
def test_a_holder_is_influential_if_the_location_differs_with_it(sender: str | None, broker: str | None) -> None:
    """For each set of holders, compare the locations with and without each candidate."""
    for size in range(len(LISTED) + 1):
        for held in combinations(sorted(LISTED.values(), key=lambda one: one.name), size):
            location = locate(HUB, ServiceHolders(held), sender, broker)
            expected = []
            for candidate in LISTED.values():
                widened = sorted({*held, candidate}, key=lambda one: one.name)
                if locate(HUB, ServiceHolders(widened), sender, broker) != location:
                    expected.append(candidate)
            asked = LISTED.values(), ServiceHolders(held), sender, broker
            assert list_influential_holders(HUB, *asked) == expected
