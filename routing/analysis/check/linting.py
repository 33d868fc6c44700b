"""lint's findings over what was read, and which of them bear on messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import product

from routing.analysis.check.deciding import Estate
from routing.analysis.check.grouping import Group
from routing.analysis.lint.catalogue import BY_CODE, Severity
from routing.analysis.lint.finding import Found
from routing.analysis.lint.linting import find_all
from routing.analysis.lint.reading import READ
from routing.schemas import INPUTS
from routing.storage.columns import Columns

_Place = tuple[str | None, str | None, str | None]
_WORST_FIRST = {severity: place for place, severity in enumerate(Severity)}


def find_findings(estate: Estate) -> list[Found]:
    """All findings, as of the newest time at which messages are decided; the worst first."""
    rows = estate.evidence.rows
    columns = {key: Columns.of_rows(rows[key], INPUTS[key]) for key in READ if key in rows}
    found = find_all(columns, max(estate.times.values()))
    return sorted(found, key=lambda one: (_WORST_FIRST[severity_of(one)], *(str(part) for part in one)))


def severity_of(one: Found) -> Severity:
    """How bad a finding is."""
    return BY_CODE[one.code].severity


class BearingFindings:
    """lint's findings by what they are about, but for those that every instance has as it was installed."""

    def __init__(self, findings: Iterable[Found]) -> None:
        self._by_place: dict[_Place, list[int]] = defaultdict(list)
        self._by_group: dict[int, list[Found]] = {}
        self._findings = [one for one in findings if not BY_CODE[one.code].is_default]
        for number, one in enumerate(self._findings):
            self._by_place[one.instance_name, one.database_name, one.object].append(number)

    def on(self, group: Group) -> list[Found]:
        """Return the findings about what messages meet on their path and back, the worst first."""
        if id(group) not in self._by_group:
            numbers = {number for place in set(_places(group)) for number in self._by_place.get(place, ())}
            self._by_group[id(group)] = [self._findings[number] for number in sorted(numbers)]
        return self._by_group[id(group)]


def _places(group: Group) -> Iterator[_Place]:
    """Instance, database and name of all that the messages meet or just miss, on their path and back."""
    for miss in group.near:
        yield from ((miss.instance, miss.database, name) for name in (miss.name, miss.service))
    row = group.first.row
    databases = {None, row["database_name"], group.first.scope}
    yield from ((row["instance_name"], database, name) for database, name in product(databases, _names(group)))
    for one in () if group.path is None else group.path.ways:
        service = row["from_service_name"] if one.is_return else row["to_service_name"]
        for hop in one.way.hops:
            whole = {None, hop.scope, one.way.database}
            names = {*whole, service, hop.route_name, hop.address, hop.rerouted_from, *group.brokers}
            yield from ((hop.instance_name, database, name) for database, name in product(whole, names))


def _names(group: Group) -> set[str | None]:
    """What a finding may be about that these messages meet, the whole database or instance among it."""
    row, verdict = group.first.row, group.verdict
    names = {None, row["to_service_name"], row["database_name"], *group.brokers}
    if verdict is not None:
        names |= {verdict.route_name, verdict.address, verdict.rerouted_from, verdict.destination_database}
    return names


def count_severities(found: Iterable[Found]) -> Counter[str]:
    """How many findings of each severity, the worst first."""
    counts = Counter(str(severity_of(one)) for one in found)
    return Counter({str(severity): counts[str(severity)] for severity in Severity if counts[str(severity)]})
