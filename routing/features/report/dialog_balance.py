"""How evenly dialogs were shared out among the broker ids that compete for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from routing.features.report.chance import FEWEST, band, correct, p_value
from routing.features.report.choices import COMES_BACK, Bounds, ChoiceScope, InstanceChoice
from routing.features.report.facts import BalancedInstance, DialogBalance

Dialogs = Mapping[tuple[str, str, str, str], int]
"""How many dialogs step 3 shared out, by instance, database of the scope, service and broker id.

A row of ``resolved_routes`` counts with ``matching_step`` 3 and a ``decided_at`` in the scope's time. Its scope is
that of msdb where it has no ``database_name`` (it arrived) or has ``rerouted_from`` (it came back).
"""


def spans_of(choices: Iterable[InstanceChoice]) -> dict[tuple[str, str, str], Bounds]:
    """Return the span of ``decided_at`` in which the dialogs of each scope are counted."""
    return {choice.scope: choice.bounds for choice in choices}


def find_balances(choices: Iterable[InstanceChoice], dialogs: Dialogs) -> list[DialogBalance]:
    """Return a balance for each choice; those that chance explains least first, then those of most dialogs.

    ``dialogs`` are those that step 3 shared out in the time of their choice, each counted once. mpmath is needed.
    """
    counted: dict[ChoiceScope, dict[str, int]] = {}
    for (instance, database, service, broker), count in dialogs.items():
        counted.setdefault(ChoiceScope(instance, database, service), {})[broker] = count
    balances = [_balance(choice, counted.get(choice.scope, {})) for choice in choices]
    return sorted(_corrected(balances), key=_place)


def _balance(choice: InstanceChoice, counted: Mapping[str, int]) -> DialogBalance:
    """Return the balance of a scope, with its p-value as it is for one test."""
    counts = [counted.get(broker, 0) for broker in choice.owners]
    # Of ids whose dialogs come back msdb may show some, of those that arrived: what is left of the others is fair.
    coming_back = {one.broker_instance for one in choice.never if one.why == COMES_BACK}
    others = sorted(counted.keys() - choice.owners.keys() - coming_back)
    total = sum(counts)
    low, high = band(total, len(counts)) if counts else (0, 0)
    picks = [
        BalancedInstance(broker, owner, count, total / len(counts), float(low), float(high))
        for (broker, owner), count in zip(choice.owners.items(), counts, strict=True)
    ]
    # Where the routes say otherwise today than they did, nothing is expected of an id, and it was picked.
    picks += [BalancedInstance(broker, None, counted[broker], 0.0, 0.0, 0.0) for broker in others]
    why_not = _why_no_test(counts, others)
    since, until = choice.bounds
    return DialogBalance(
        *choice.scope,
        since,
        until,
        tuple(picks),
        choice.never,
        p_value(counts) if why_not is None else None,
        why_not,
    )


def _why_no_test(counts: Sequence[int], others: Sequence[str]) -> str | None:
    """Return the reason why chance cannot be asked; None where it can."""
    if others:
        return "dialogs got broker ids that do not compete by these routes: others were in force then"
    if not counts:
        return "no broker id has dialogs that can be counted"
    if len(counts) == 1:
        return "one broker id alone has dialogs that can be counted"
    if not any(counts):
        return "no dialog was shared out in this time"
    if sum(counts) < FEWEST * len(counts):
        dialogs = "1 dialog is" if sum(counts) == 1 else f"{sum(counts):,} dialogs are"
        return f"{dialogs} too few for {len(counts):,} broker ids: it takes {FEWEST} for each"
    return None


def _corrected(balances: Sequence[DialogBalance]) -> list[DialogBalance]:
    """Correct each p-value for the number of services that were tested."""
    tested = [balance.p_value for balance in balances if balance.p_value is not None]
    corrected_values = iter(correct(tested))
    return [one if one.p_value is None else replace(one, p_value=next(corrected_values)) for one in balances]


def _place(balance: DialogBalance) -> tuple[float, int, str, str, str]:
    dialogs = sum(pick.dialogs for pick in balance.picks)
    unlikely = 2.0 if balance.p_value is None else balance.p_value
    return (unlikely, -dialogs, balance.instance, balance.database, balance.service)
