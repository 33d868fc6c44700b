"""Find the remedy for one message of the tables."""

from __future__ import annotations

from collections.abc import Callable

from routing.advice.remedies import remedy_of
from routing.advice.remedy import MessageRemedy
from routing.advice.stuck_groups import StuckGroup
from routing.cases.judged_questions import JudgedQuestion, RemedyFacts
from routing.cases.near_misses import NearMisses
from routing.rules.resolving import Verdict
from routing.terms import MSDB, Outcome

_STAYS = frozenset([Outcome.DELAYED, Outcome.DROPPED])


def find_remedy(judged: JudgedQuestion, read_facts: Callable[[], RemedyFacts]) -> MessageRemedy | None:
    """Find the remedy for a message; None where it leaves its instance rightly, or its dialog decides.

    The facts are read only where the message stays or is dropped.
    """
    verdicts = [verdict for _, verdict in judged.possible] if judged.is_undecided else [judged.verdict]
    if not all(verdict.outcome in (*_STAYS, Outcome.DELIVERED) for verdict in verdicts):
        return None
    facts = read_facts() if any(verdict.outcome in _STAYS for verdict in verdicts) else RemedyFacts()
    near = NearMisses(facts.instances)
    [remedy, *others] = {remedy_of(_stuck(judged, verdict, facts, near)) for verdict in verdicts}
    return None if others else remedy


def _stuck(judged: JudgedQuestion, verdict: Verdict, facts: RemedyFacts, near: NearMisses) -> StuckGroup:
    message, decision = judged.message, verdict.decision
    scope = message.database or MSDB if decision is None else decision.last.scope
    where = message.instance, scope, message.service, verdict.broker_instance
    return StuckGroup(
        instances=facts.instances,
        addresses=facts.addresses,
        instance=message.instance,
        database=message.database,
        scope=scope,
        service=message.service,
        broker=verdict.broker_instance,
        verdict=verdict,
        near=near.of(*where, message.t),
        services_in_use=facts.services_in_use,
        from_service=judged.asked.row["from_service_name"] or None,
    )
