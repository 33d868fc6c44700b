"""lint's findings over what was read, and which of them bear on messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from routing.features.check.grouping import MessageGroup
from routing.features.check.message_results import CheckedEstate
from routing.features.lint.catalogue import BY_CODE, Severity
from routing.features.lint.lint_finding import LintFinding
from routing.features.lint.lint_tables import READ
from routing.features.lint.linting import find_all
from routing.features.repository.file_knowledge import FileKnowledge
from routing.rules.ways import PathHop
from routing.schemas import INPUTS
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, Reason

_LOST_REQUESTS = "SBR043"
_OF_BROKERS = ("SBR012", "SBR013", "SBR014")
_Place = tuple[str | None, str | None, str | None]
_WORST_FIRST = {severity: place for place, severity in enumerate(Severity)}


class LintFindings(NamedTuple):
    """lint's findings, the worst first: those that stand, and those that rest on what was not read."""

    certain: Sequence[LintFinding]
    uncertain: Sequence[LintFinding]


def find_findings(estate: CheckedEstate) -> LintFindings:
    """Return all findings, as of the newest time at which messages are decided."""
    rows = estate.evidence.rows
    columns = {key: TableColumns.of_rows(rows[key], INPUTS[key]) for key in READ if key in rows}
    findings = find_all(columns, max(estate.times.values()))
    ordered = sorted(findings, key=lambda one: (_WORST_FIRST[severity_of(one)], *(str(part) for part in one)))
    file_knowledge = FileKnowledge(estate.knowledge)
    certain: list[LintFinding] = []
    uncertain: list[LintFinding] = []
    for one in ordered:
        (uncertain if file_knowledge.gaps_behind(one) else certain).append(one)
    return LintFindings(certain, uncertain)


def severity_of(one: LintFinding) -> Severity:
    """Return the rank of a finding's severity."""
    return BY_CODE[one.code].severity


class BearingFindings:
    """lint's findings by what they are about, except those that every instance has as installed."""

    def __init__(self, findings: LintFindings) -> None:
        every = (*findings.certain, *findings.uncertain)
        self._findings = [one for one in every if not BY_CODE[one.code].is_default]
        self._uncertain = set(findings.uncertain)
        self._by_place: dict[_Place, list[int]] = defaultdict(list)
        self._by_broker: dict[str, list[int]] = defaultdict(list)
        self._by_group: dict[int, list[LintFinding]] = {}
        for number, one in enumerate(self._findings):
            self._by_place[one.instance_name, one.database_name, one.object].append(number)
            if one.code == _LOST_REQUESTS:
                # What waits for a route has no route of its own to be known by.
                self._by_place[one.instance_name, one.database_name, BROKER_CONFIGURATION_SERVICE].append(number)
            if one.code in _OF_BROKERS and one.object is not None:
                # It stands under the first of the databases that have the id.
                self._by_broker[one.object].append(number)

    def on(self, group: MessageGroup) -> list[LintFinding]:
        """Return the findings about what messages meet on their path and back, the worst first.

        What rests on views that were not read stands where all is known of why messages are stuck.
        """
        if id(group) not in self._by_group:
            self._by_group[id(group)] = list(self._bearing_on(group))
        return self._by_group[id(group)]

    def _bearing_on(self, group: MessageGroup) -> Iterator[LintFinding]:
        numbers = {number for place in set(_places(group)) for number in self._by_place.get(place, ())}
        numbers |= {number for broker in _brokers(group) for number in self._by_broker.get(broker, ())}
        for one in (self._findings[number] for number in sorted(numbers)):
            # Where a message is known to wait for a route, where its request goes may still not be.
            if one not in self._uncertain or (_is_known(group) and one.code != _LOST_REQUESTS):
                yield one


def _is_known(group: MessageGroup) -> bool:
    """Return True if all that decides was read of messages that are stuck, at home or on their path."""
    if group.path is None:
        return group.verdict is not None and not group.first.is_on_its_way
    return group.is_failing and not group.path.gaps


def _places(group: MessageGroup) -> Iterator[_Place]:
    """Yield instance, database and name of everything that the messages meet or just miss, there and back."""
    for miss in group.near:
        yield from ((miss.instance, miss.database, name) for name in (miss.name, miss.service))
    row = group.first.row
    databases = {None, row["database_name"], group.first.scope}
    yield from ((row["instance_name"], database, name) for database, name in product(databases, _names(group)))
    for one in () if group.path is None else group.path.all_ways:
        services = {row["to_service_name"], row.get("from_service_name")}
        for hop in one.hop_path.hops:
            if hop.reason is Reason.ROUTE_REQUESTED:
                yield hop.instance_name, hop.scope, BROKER_CONFIGURATION_SERVICE
            met = {None, hop.scope, *_databases_at(hop)}
            names = {*met, *services, hop.route_name, hop.address, hop.rerouted_from, *group.brokers}
            yield from ((hop.instance_name, database, name) for database, name in product(met, names))


def _databases_at(hop: PathHop) -> Iterator[str]:
    """Yield the database that sends, and those that hold the service at a hop."""
    decision = None if hop.verdict is None else hop.verdict.decision
    if decision is not None:
        yield decision.first.scope
        yield from (holder.name for holder in decision.last.holders)


def _brokers(group: MessageGroup) -> set[str]:
    """Return the broker ids that the messages are bound to, and their acknowledgements."""
    back = (hop.verdict for one in group.path.back for hop in one.hop_path.hops) if group.path is not None else ()
    ids = (None if verdict is None else verdict.broker_instance for verdict in back)
    return {broker for broker in (*group.brokers, *ids) if broker is not None}


def _names(group: MessageGroup) -> set[str | None]:
    """Return the names that these messages meet; None stands for the whole database or instance."""
    row, verdict = group.first.row, group.verdict
    names = {None, row["to_service_name"], row["database_name"], *group.brokers}
    if verdict is not None:
        names |= {verdict.route_name, verdict.address, verdict.rerouted_from, verdict.destination_database}
        if verdict.reason is Reason.ROUTE_REQUESTED:
            names.add(BROKER_CONFIGURATION_SERVICE)
    return names


def count_severities(findings: Iterable[LintFinding]) -> Counter[str]:
    """Write the number of findings of each severity, the worst first."""
    counts = Counter(str(severity_of(one)) for one in findings)
    return Counter({str(severity): counts[str(severity)] for severity in Severity if counts[str(severity)]})
