"""Forwarding loops: messages that go from instance to instance and never arrive."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.probing import ProbeAnswers, owners_of
from routing.rules import text
from routing.rules.matching import UNNAMED
from routing.terms import MSDB, Outcome

Edge = tuple[str, str]
"""From an instance to one that it forwards to."""
ForwardingTargets = dict["str | None", dict[str, set[str]]]
"""Where instances forward what is bound to an id (None: open, UNNAMED: to any other), by instance."""


@dataclass
class InstanceNames:
    """The names that an instance knows: all other services, or ids, are alike to it."""

    services: set[str | None] = field(default_factory=set)
    brokers: set[str | None] = field(default_factory=set)


def loops(estate: LintEstate, probe_answers: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR026: one finding a service and set of instances, under the first of them by name."""
    by_service, rest = _forwarding_targets(estate, probe_answers)
    for service, of_service in by_service.items():
        asked = {here for by_instance in of_service.values() for here in by_instance}
        for broker in of_service:
            edges = _reach(asked, _forwarding(broker, of_service, asked, rest))
            yield from _around(service, asked, edges)
    for by_instance in (rest.get(None, {}), rest.get(UNNAMED, {})):
        edges = [(here, there) for here, others in by_instance.items() for there in others]
        yield from _around("any other service", by_instance, edges)


def _around(service: str, asked: Iterable[str], edges: list[Edge]) -> Iterator[LintFinding]:
    """Yield the finding on a service; where only ways for any service go round, the finding for these says so."""
    circles = _circles(edges)
    instances = sorted({here for here, _ in circles})
    if not set(asked).isdisjoint(instances):
        sentence = "messages for it go round between %s"
        yield finding("SBR026", (instances[0], MSDB), service, sentence, list_names(instances))


def _forwarding_targets(
    estate: LintEstate, probe_answers: ProbeAnswers
) -> tuple[dict[str, ForwardingTargets], ForwardingTargets]:
    """Collect where each instance sends arrivals for each service that it names, and for any other."""
    names = _names(estate)
    by_service: dict[str, ForwardingTargets] = {}
    rest: ForwardingTargets = {}
    for verdict in probe_answers.arriving:
        here, _, service, broker = verdict.asked
        instance_names = names[here]
        of_service = (
            by_service.setdefault(service, {})
            if service is not None and service in instance_names.services
            else rest
        )
        bound_broker = broker if broker is None or broker in instance_names.brokers else UNNAMED
        targets = of_service.setdefault(bound_broker, {}).setdefault(here, set())
        for search in verdict.searches:
            if search.end.outcome is Outcome.FORWARDED:
                targets.update(owners_of(estate, search, verdict.asked))
    return by_service, rest


def _names(estate: LintEstate) -> Mapping[str | None, InstanceNames]:
    """Return the names in the routes (of any version), the services and the databases of each instance."""
    names_by_instance: dict[str | None, InstanceNames] = defaultdict(InstanceNames)
    for name, instance in estate.instances.items():
        names_by_instance[name].brokers.update(instance.brokers)
    routes = estate.tables["routes"].rows("instance_name", "remote_service_name", "broker_instance")
    for instance_name, service, broker in routes:
        names_by_instance[instance_name].services.add(service)
        names_by_instance[instance_name].brokers.add(text.broker_id(broker))
    for instance_name, service in estate.tables["services"].rows("instance_name", "name"):
        names_by_instance[instance_name].services.add(service)
    return names_by_instance


def _forwarding(
    broker: str | None, of_service: ForwardingTargets, asked: set[str], rest: ForwardingTargets
) -> Callable[[str], set[str]]:
    """Return the function from an instance to those it forwards a message to, for a service and an id.

    An instance that does not name the service sends it on as any other, one that does not name the id as bound
    to any other.
    """
    other = None if broker is None else UNNAMED

    def forwards(here: str) -> set[str]:
        if here not in asked:
            return rest.get(other, {}).get(here, set())
        bound_broker = broker if here in of_service[broker] else other
        return of_service.get(bound_broker, {}).get(here, set())

    return forwards


def _reach(starts: Iterable[str], forwards: Callable[[str], set[str]]) -> list[Edge]:
    """Return the ways that a message from any of the instances can go."""
    seen, edges = set(starts), []
    ahead = list(seen)
    while ahead:
        here = ahead.pop()
        for there in forwards(here):
            edges.append((here, there))
            if there not in seen:
                seen.add(there)
                ahead.append(there)
    return edges


def _circles(edges: list[Edge]) -> list[Edge]:
    """Remove edges with nothing before or nothing after them, again and again; return the rest."""
    forward = _prune(edges)
    return [(here, there) for there, here in _prune([(there, here) for here, there in forward])]


def _prune(edges: list[Edge]) -> list[Edge]:
    """Return the edges that are left when those with nothing after are taken away, again and again."""
    before: dict[str, list[str]] = {}
    for here, there in edges:
        before.setdefault(there, []).append(here)
    after = Counter(here for here, _ in edges)
    ends = [there for there in before if not after[there]]
    while ends:
        for here in before.get(ends.pop(), ()):
            after[here] -= 1
            if not after[here]:
                ends.append(here)
    return [(here, there) for here, there in edges if after[here] and after[there]]
