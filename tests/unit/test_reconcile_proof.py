"""Some simulated days of each fault, with the cause named (`make reconcile-proof` has many)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import pytest

from tests.simulated.day import RETRIES, play
from tests.simulated.estate import build
from tests.simulated.faults import FAULTS, Case, case, misspelt
from tests.simulated.proof import Row, compare_causes, find_causes

# With this seed few days are thrown away before one has the fault.
SEED = 3


@lru_cache
def _reconciled(fault: str, seed: int) -> tuple[Case, list[Row]]:
    """Return a day with a fault and the named causes. Tests must not change it."""
    simulated = case(fault, seed)
    return simulated, find_causes(simulated, fault, seed)


@pytest.mark.parametrize("seed", [SEED, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("fault", list(FAULTS))
def test_only_the_simulated_fault_is_named(fault: str, seed: int) -> None:
    proved = compare_causes(*_reconciled(fault, seed), fault, seed)
    assert (proved.is_named, proved.others) == (fault != "none", ())


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "none"])
def test_a_proof_can_fail(fault: str) -> None:
    """Where the object that is named is another one, or the instance is."""
    simulated, causes = _reconciled(fault, SEED)
    for other in (replace(simulated, words=("nothing of this name",)), replace(simulated, instance="elsewhere")):
        proved = compare_causes(other, causes, fault, SEED)
        assert not proved.is_named
        assert proved.others


def test_messages_continue_until_they_end() -> None:
    rng = random.Random(1)
    day = play(rng, build(rng), 300)
    sent = {row["conversation_id"] for row in day.tables["messages"]}
    assert {hop.row["conversation_id"] for hop, _ in day.done} == sent
    # Of each conversation one hop more than there are moves to another place or try.
    tries = Counter(hop.tried for hop, row in day.done if row["outcome"] == "DELAYED")
    assert max(tries) == len(RETRIES)
    assert all(row["outcome"] for _, row in day.done)
    assert sum(row["outcome"] == "DELIVERED" for _, row in day.done) > 100


def test_balance_is_by_another_hash_than_that_of_the_project() -> None:
    """As often as chance has it the pick is the one of the project's hash, of two ids about every other time."""
    from tests.reference.resolver import resolve

    rng = random.Random(3)
    tables = build(rng)
    while not any(row["broker_instance"] for row in tables["routes"]):
        tables = build(rng)
    day = play(rng, tables, 800)
    ours = {row["message_id"]: row for row in resolve(day.tables).resolved_routes}
    picked = [
        (row["broker_instance"], ours[hop.row["message_id"]]["broker_instance"])
        for hop, row in day.done
        if row["matching_step"] == 3 and hop.row["database_name"] is not None
    ]
    assert len(picked) > 20
    assert 0.25 < sum(one == other for one, other in picked) / len(picked) < 0.75


def test_a_slip_changes_the_length_by_at_most_one() -> None:
    rng = random.Random(1)
    slips = {misspelt(rng, "//corp/Orders") for _ in range(200)}
    assert "//corp/Orders" not in slips
    assert {"//corp/Orders ", "//corp/Orders/"} < slips
    assert all(abs(len(slip) - len("//corp/Orders")) <= 1 for slip in slips)
