"""Which findings rest on what was not read: a view of which nothing was read says nothing, and no fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from routing.analysis.check.gaps import Knowledge
from routing.analysis.check.missing import Gap, What
from routing.analysis.lint.finding import Found
from routing.rules.choosing import is_local


class Rests(NamedTuple):
    """What a kind of finding takes to be known: its own place, something of everybody, whomever messages meet.

    ``in_scope`` is ``here`` without the endpoint, ``in_instance`` the same for all databases of the instance.
    """

    here: bool = False
    in_scope: bool = False
    in_instance: bool = False
    services_of_all: bool = False
    endpoints_of_all: bool = False
    of_ways: bool = False


_HERE = Rests(here=True)
_IN_SCOPE = Rests(in_scope=True)
# All others look at rows that are there, whatever else there is.
_RESTS: Mapping[str, Rests] = {
    "SBR015": Rests(of_ways=True),
    "SBR016": Rests(services_of_all=True),
    "SBR018": _HERE,
    "SBR020": Rests(here=True, services_of_all=True),
    **dict.fromkeys(("SBR021", "SBR022", "SBR023", "SBR024", "SBR025", "SBR027", "SBR033", "SBR040"), _HERE),
    "SBR026": Rests(of_ways=True),
    "SBR032": Rests(endpoints_of_all=True),
    "SBR041": Rests(of_ways=True),
    "SBR043": Rests(of_ways=True),
    "SBR044": _IN_SCOPE,
    "SBR045": Rests(in_instance=True),
    "SBR046": Rests(of_ways=True, services_of_all=True),
}
_LOST_REQUESTS = "SBR043"


_OF_ENDPOINT = (What.ENDPOINT, What.FORWARDING, What.ADDRESSES)
_OF_SERVICES = (What.NAME_ONLY, What.SERVICES, What.ALL_SERVICES, What.UNREADABLE_SERVICE)


class Known:
    """What was read of whom, asked for what findings would need besides."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._behind: dict[tuple[Rests, str, str | None], list[Gap]] = {}
        self._gaps: dict[str, list[Gap]] = {name: [] for name in knowledge.evidence.instances}
        for gap in knowledge.list_gaps():
            if gap.what is not What.ENDPOINTS_OF_DIALOGS:
                self._gaps[gap.instance].append(gap)

    def gaps_behind(self, found: Found) -> list[Gap]:
        """Return what would have to be known for a finding to stand; nothing where it does."""
        rests, instance = self._rests_of(found), found.instance_name
        if rests is None or instance is None or instance not in self._gaps:
            return []
        place = rests, instance, found.database_name
        if place not in self._behind:
            self._behind[place] = self._list_gaps(*place)
        return self._behind[place]

    def _list_gaps(self, rests: Rests, instance: str, database: str | None) -> list[Gap]:
        """Return what is not known of what a finding about a database of an instance rests on."""
        gaps: set[Gap | None] = set()
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

    def _rests_of(self, found: Found) -> Rests | None:
        """Return what a finding rests on; requests that a LOCAL route keeps here meet nobody else."""
        if found.code == _LOST_REQUESTS and self._is_local(found):
            return _IN_SCOPE
        return _RESTS.get(found.code)

    def _is_local(self, found: Found) -> bool:
        instance = self._knowledge.instances.get(found.instance_name or "")
        scope = {} if instance is None else instance.routes.get(found.database_name or "", {})
        return any(is_local(route) for routes in scope.values() for route in routes if route.name == found.object)

    def _of_scope(self, instance: str, database: str | None) -> Iterator[Gap | None]:
        """Yield what is not known of an instance but its endpoint and the routes of its other databases."""
        yield from self._services(instance)
        if database is not None:
            yield self._knowledge.routes(instance, database)

    def _services(self, instance: str) -> Iterator[Gap | None]:
        """Yield what is not known of who holds what in an instance."""
        yield self._knowledge.databases(instance)
        yield from (gap for gap in self._gaps[instance] if gap.what in _OF_SERVICES)

    def _of_ways(self, instance: str) -> Iterator[Gap]:
        """Yield what is not known of this instance, and of those that messages reach by a known address."""
        for name, gaps in self._gaps.items():
            if name == instance or self._knowledge.instances[name].own_addresses:
                yield from gaps
