"""Forwarding loops: messages that go from instance to instance and never arrive."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.probing import ProbeAnswers, owners_of
from routing.rules import text
from routing.rules.deciding import UNNAMED
from routing.terms import MSDB, Outcome

Edge = tuple[str, str]
"""From an instance to one that it forwards to."""
Ways = dict["str | None", dict[str, set[str]]]
"""Where instances forward what is bound to an id (None: open, UNNAMED: to any other), by instance."""


@dataclass
class InstanceNames:
    """The names that an instance knows: all other services, or ids, are alike to it."""

    services: set[str | None] = field(default_factory=set)
    brokers: set[str | None] = field(default_factory=set)


def loops(estate: LintEstate, given: ProbeAnswers) -> Iterator[LintFinding]:
    """Find SBR026: one finding a service and set of instances, under the first of them by name."""
    ways, rest = _ways(estate, given)
    for service, own in ways.items():
        asked = {here for by_instance in own.values() for here in by_instance}
        for broker in own:
            edges = _reach(asked, _forwarding(broker, own, asked, rest))
            yield from _around(service, asked, edges)
    for by_instance in (rest.get(None, {}), rest.get(UNNAMED, {})):
        edges = [(here, there) for here, others in by_instance.items() for there in others]
        yield from _around("any other service", by_instance, edges)


def _around(service: str, asked: Iterable[str], edges: list[Edge]) -> Iterator[LintFinding]:
    """Yield the finding on a service; where only ways for any service go round, the finding for these says so."""
    circles = _circles(edges)
    instances = sorted({here for here, _ in circles})
    if not set(asked).isdisjoint(instances):
        said = "messages for it go round between %s"
        yield finding("SBR026", (instances[0], MSDB), service, said, list_names(instances))


def _ways(estate: LintEstate, given: ProbeAnswers) -> tuple[dict[str, Ways], Ways]:
    """Collect where each instance sends arrivals for each service that it names, and for any other."""
    names = _names(estate)
    ways: dict[str, Ways] = {}
    rest: Ways = {}
    for verdict in given.arriving:
        here, _, service, broker = verdict.asked
        own = names[here]
        of_service = ways.setdefault(service, {}) if service is not None and service in own.services else rest
        bound = broker if broker is None or broker in own.brokers else UNNAMED
        targets = of_service.setdefault(bound, {}).setdefault(here, set())
        for leg in verdict.legs:
            if leg.end.outcome is Outcome.FORWARDED:
                targets.update(owners_of(estate, leg, verdict.asked))
    return ways, rest


def _names(estate: LintEstate) -> Mapping[str | None, InstanceNames]:
    """Return the names in the routes (of any version), the services and the databases of each instance."""
    found: dict[str | None, InstanceNames] = defaultdict(InstanceNames)
    for name, instance in estate.instances.items():
        found[name].brokers.update(instance.brokers)
    routes = estate.tables["routes"].rows("instance_name", "remote_service_name", "broker_instance")
    for instance_name, service, broker in routes:
        found[instance_name].services.add(service)
        found[instance_name].brokers.add(text.broker_id(broker))
    for instance_name, service in estate.tables["services"].rows("instance_name", "name"):
        found[instance_name].services.add(service)
    return found


def _forwarding(broker: str | None, own: Ways, asked: set[str], rest: Ways) -> Callable[[str], set[str]]:
    """Return the function from an instance to those it forwards a message to, for a service and an id.

    An instance that does not name the service sends it on as any other, one that does not name the id as bound
    to any other.
    """
    other = None if broker is None else UNNAMED

    def forwards(here: str) -> set[str]:
        if here not in asked:
            return rest.get(other, {}).get(here, set())
        bound = broker if here in own[broker] else other
        return own.get(bound, {}).get(here, set())

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
