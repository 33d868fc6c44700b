"""Messages that an incremental run delays must be in ``pending_messages`` before the run is recorded."""

from __future__ import annotations

from collections import Counter

import pytest

from routing.runs.run_work import InternalError, PendingCounts, ResolvedGroup, check_pending

# By outcome, reason and database; what came over the network is not tried again.
RESOLVED = Counter(
    {
        ResolvedGroup("DELAYED", "NO_ROUTE", "Sales"): 1,
        ResolvedGroup("DELAYED", "ROUTE_REQUESTED", "Sales"): 2,
        ResolvedGroup("DELAYED", "NO_ROUTE", "Stock"): 2,
        ResolvedGroup("DELAYED", "NO_ROUTE", None): 7,
        ResolvedGroup("SENT", "NETWORK_ADDRESS", "Sales"): 5,
    }
)


def _check(pending: int) -> None:
    check_pending(PendingCounts(decided=pending, withheld=2, older=3, quarantined=4, next_due_at=None), RESOLVED)


def test_every_delayed_message_of_a_database_is_pending() -> None:
    _check(5)


@pytest.mark.parametrize("pending", [0, 4, 6, 12])
def test_a_wrong_number_of_pending_messages_is_a_fault(pending: int) -> None:
    with pytest.raises(InternalError) as caught:
        _check(pending)
    assert str(caught.value) == (
        f"5 messages were delayed, but pending_messages has {pending}; the run is not recorded"
    )
