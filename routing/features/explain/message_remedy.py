"""What to do about one message: the remedy that `check` knows for its reason, by the estate around it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from routing.features.check.remedies import remedy_of
from routing.features.check.stuck_groups import MessageRemedy, NearMisses, StuckGroup
from routing.features.explain.judging import JudgedQuestion
from routing.features.near_differences import likeness
from routing.plan.checked_inputs import instances_of
from routing.rules.estate import SqlInstance
from routing.rules.resolving import Verdict
from routing.tables.table_columns import TableColumns
from routing.terms import MSDB, Outcome

_STAYS = frozenset([Outcome.DELAYED, Outcome.DROPPED])


@dataclass(frozen=True)
class RemedyFacts:
    """The facts of the estate for the remedy of a message.

    ``instances`` are all that are known, with services of nearly the name of the message's, and with the routes
    that it meets. ``addresses`` are an instance's addresses as written. ``services_in_use`` are names like that of
    the message's service to which stored messages are sent.
    """

    instances: Mapping[str, SqlInstance] = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    services_in_use: Collection[str] = frozenset()

    @classmethod
    def of_columns(
        cls, tables: Mapping[str, TableColumns], service: str, services_in_use: Collection[str]
    ) -> RemedyFacts:
        """Return the facts from columns of instances, databases, services and routes, without faults."""
        alike = {name for name in set(tables["services"].values["name"]) if _is_like(name, service)}
        named = tables["instances"].rows("instance_name", "addresses")
        return cls(
            instances_of({**tables, "services": tables["services"].naming("name", alike)}),
            {name: [address for address in addresses or () if address] for name, addresses in named},
            frozenset(services_in_use),
        )


def find_spellings(names: Collection[str | None], service: str) -> list[str]:
    """Return the names that differ from that of a service in case, blanks or slashes alone."""
    return sorted(name for name in set(names) if name != service and name is not None and _is_like(name, service))


def _is_like(name: str | None, service: str) -> bool:
    return name is not None and likeness(name) == likeness(service)


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
