"""Which findings rest on what was not read: a view of which nothing was read says nothing, and no fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from routing.features.check.gaps import EstateKnowledge
from routing.features.check.missing_knowledge import KnowledgeGap, MissingKnowledge
from routing.features.lint.lint_finding import LintFinding
from routing.rules.choosing import is_local


class RequiredKnowledge(NamedTuple):
    """The knowledge that a kind of finding requires: of its own place, or of other instances.

    ``in_scope`` is ``here`` without the endpoint, ``in_instance`` the same for all databases of the instance.
    """

    here: bool = False
    in_scope: bool = False
    in_instance: bool = False
    services_of_all: bool = False
    endpoints_of_all: bool = False
    of_ways: bool = False


_HERE = RequiredKnowledge(here=True)
_IN_SCOPE = RequiredKnowledge(in_scope=True)
# All others look at rows that are there, whatever else there is.
_RESTS: Mapping[str, RequiredKnowledge] = {
    "SBR015": RequiredKnowledge(of_ways=True),
    "SBR016": RequiredKnowledge(services_of_all=True),
    "SBR018": _HERE,
    "SBR020": RequiredKnowledge(here=True, services_of_all=True),
    **dict.fromkeys(("SBR021", "SBR022", "SBR023", "SBR024", "SBR025", "SBR027", "SBR033", "SBR040"), _HERE),
    "SBR026": RequiredKnowledge(of_ways=True),
    "SBR032": RequiredKnowledge(endpoints_of_all=True),
    "SBR041": RequiredKnowledge(of_ways=True),
    "SBR043": RequiredKnowledge(of_ways=True),
    "SBR044": _IN_SCOPE,
    "SBR045": RequiredKnowledge(in_instance=True),
    "SBR046": RequiredKnowledge(of_ways=True, services_of_all=True),
}
_LOST_REQUESTS = "SBR043"


_OF_ENDPOINT = (MissingKnowledge.ENDPOINT, MissingKnowledge.FORWARDING, MissingKnowledge.ADDRESSES)
_OF_SERVICES = (
    MissingKnowledge.NAME_ONLY,
    MissingKnowledge.SERVICES,
    MissingKnowledge.ALL_SERVICES,
    MissingKnowledge.UNREADABLE_SERVICE,
)


class FileKnowledge:
    """The views that were read of each instance, and the gaps behind findings."""

    def __init__(self, knowledge: EstateKnowledge) -> None:
        self._knowledge = knowledge
        self._behind: dict[tuple[RequiredKnowledge, str, str | None], list[KnowledgeGap]] = {}
        self._gaps: dict[str, list[KnowledgeGap]] = {name: [] for name in knowledge.evidence.instances}
        for gap in knowledge.list_gaps():
            if gap.what is not MissingKnowledge.ENDPOINTS_OF_DIALOGS:
                self._gaps[gap.instance].append(gap)

    def gaps_behind(self, finding: LintFinding) -> list[KnowledgeGap]:
        """List the gaps that a finding rests on; empty where it is certain."""
        rests, instance = self._rests_of(finding), finding.instance_name
        if rests is None or instance is None or instance not in self._gaps:
            return []
        place = rests, instance, finding.database_name
        if place not in self._behind:
            self._behind[place] = self._list_gaps(*place)
        return self._behind[place]

    def _list_gaps(self, rests: RequiredKnowledge, instance: str, database: str | None) -> list[KnowledgeGap]:
        """List the gaps in the knowledge required for a database of an instance."""
        gaps: set[KnowledgeGap | None] = set()
        if rests.here:
            gaps.add(self._knowledge.endpoint(instance))
        if rests.here or rests.in_scope:
            gaps.update(self._of_scope(instance, database))
        if rests.in_instance:
            gaps.update(gap for gap in self._gaps[instance] if gap.what not in _OF_ENDPOINT)
        if rests.services_of_all:
            gaps.update(gap for name in self._gaps for gap in self._services(name))
        if rests.endpoints_of_all:
            gaps.update(map(self._knowledge.endpoint, self._gaps))
        if rests.of_ways:
            gaps.update(self._of_ways(instance))
        return sorted((gap for gap in gaps if gap is not None), key=lambda gap: gap.place)

    def _rests_of(self, finding: LintFinding) -> RequiredKnowledge | None:
        """Return the knowledge that a finding requires; a LOCAL route keeps requests in their scope."""
        if finding.code == _LOST_REQUESTS and self._is_local(finding):
            return _IN_SCOPE
        return _RESTS.get(finding.code)

    def _is_local(self, finding: LintFinding) -> bool:
        instance = self._knowledge.instances.get(finding.instance_name or "")
        scope = {} if instance is None else instance.routes.get(finding.database_name or "", {})
        return any(
            is_local(route) for routes in scope.values() for route in routes if route.name == finding.object
        )

    def _of_scope(self, instance: str, database: str | None) -> Iterator[KnowledgeGap | None]:
        """Yield gaps in the services of an instance and in the routes of one database."""
        yield from self._services(instance)
        if database is not None:
            yield self._knowledge.routes(instance, database)

    def _services(self, instance: str) -> Iterator[KnowledgeGap | None]:
        """Yield gaps in the databases and services of an instance."""
        yield self._knowledge.databases(instance)
        yield from (gap for gap in self._gaps[instance] if gap.what in _OF_SERVICES)

    def _of_ways(self, instance: str) -> Iterator[KnowledgeGap]:
        """Yield gaps of this instance, and of those that messages reach by a known address."""
        for name, gaps in self._gaps.items():
            if name == instance or self._knowledge.instances[name].own_addresses:
                yield from gaps
