"""lint's findings over what was read, and which of them bear on messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from routing.analysis.check.deciding import Estate
from routing.analysis.check.grouping import Group
from routing.analysis.lint.catalogue import BY_CODE, Severity
from routing.analysis.lint.finding import Found
from routing.analysis.lint.linting import find_all
from routing.analysis.lint.reading import READ
from routing.schemas import INPUTS
from routing.storage.columns import Columns

_TOLD = (Severity.ERROR, Severity.WARNING)
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


def bearing(found: Iterable[Found], groups: Sequence[Group]) -> list[Found]:
    """The errors and warnings about what groups of messages meet: their databases, routes, services and ids."""
    met = {place for group in groups for place in _places(group)}
    told = (one for one in found if severity_of(one) in _TOLD)
    return [one for one in told if (one.instance_name, one.database_name, one.object) in met]


def _places(group: Group) -> Iterator[_Place]:
    """Instance, database and name of all that the messages meet or just miss."""
    for miss in group.near:
        yield from ((miss.instance, miss.database, name) for name in (miss.name, miss.service))
    row = group.first.row
    databases = {None, row["database_name"], group.first.scope}
    yield from ((row["instance_name"], database, name) for database, name in product(databases, _names(group)))


def _names(group: Group) -> set[str | None]:
    """What a finding may be about that these messages meet, the whole database or instance among it."""
    row, verdict = group.first.row, group.verdict
    names = {None, row["to_service_name"], row["database_name"], *group.brokers}
    if verdict is not None:
        names |= {verdict.route_name, verdict.address, verdict.rerouted_from}
    return names


def count_severities(found: Iterable[Found]) -> Counter[str]:
    """How many findings of each severity, the worst first."""
    counts = Counter(str(severity_of(one)) for one in found)
    return Counter({str(severity): counts[str(severity)] for severity in Severity if counts[str(severity)]})
