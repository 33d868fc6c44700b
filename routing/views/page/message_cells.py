"""Sum flows and points into cells for the page. The cells hold all messages and are few, to keep the page small.

Instances and services with most messages, or most stuck ones, keep their names. All others share one name. A name
is kept in every cell or in none, so that a filter by it shows all of its messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from routing.engines.traffic_tables import TimePoint
from routing.rules.timeline import SECOND
from routing.views.page.facts import STUCK, MessageFlow, Report

MOST_NAMES = 1_000
MOST_CELLS = 8_000
MOST_MOMENTS = 25_000
MOST_ROWS_BYTES = 1_300_000
"""Of the rows of all tables that the filter works on, and of the names that it offers."""
_ROW, _OPTION = 230, 40
"""The bytes of a row and of a filter option, without their names."""
# Not the name of a database, but of all databases that are shown as one.
ANY = ""
UNTOLD = ""
"""The name of moments that the series does not separate by instance or service."""
PlaceOf = Callable[[MessageFlow], tuple[str, str]]
"""The row and the column of a flow in the matrix of the estate."""


class MessageCell(NamedTuple):
    """Messages that the page shows together. ``instance`` and ``service`` are None if their name is not kept.

    ``database`` is None for arrivals, and empty if databases are not separated. ``source`` and ``target`` are
    titles of the matrix. ``oldest`` is in seconds.
    """

    instance: str | None
    service: str | None
    database: str | None
    ending: str
    reason: str | None
    source: str
    target: str
    messages: int
    oldest: int


class MessageMoment(NamedTuple):
    """Messages decided from ``at`` (seconds) on, for as long as a step of the series.

    Instance and service are None as in a `MessageCell`, or `UNTOLD`.
    """

    instance: str | None
    service: str | None
    at: int
    ending: str
    messages: int


@dataclass(frozen=True)
class ShownNames:
    """Instances or services that are shown by name, and the number of all."""

    names: frozenset[str]
    all: int

    @property
    def other_count(self) -> int:
        """The number of names that are shown as one."""
        return self.all - len(self.names)

    def fold(self, name: str | None) -> str | None:
        """Return the name, or None if it is not shown. Values that are not separated by names stay so."""
        return name if name in self.names or name == UNTOLD else None


@dataclass(frozen=True)
class ReportCube:
    """All that the page can filter."""

    cells: Sequence[MessageCell]
    moments: Sequence[MessageMoment]
    instances: ShownNames
    services: ShownNames


def cube_of(report: Report, place_of: PlaceOf) -> ReportCube:
    """Return the cells of a report: with as many names as the page has room for."""
    instances = _ranked(report.flows, lambda flow: flow.instance)
    services = _ranked(report.flows, lambda flow: flow.service)
    cells = _cells(report.flows, place_of)
    moments = _moments(report.series.points if report.series else ())
    limit = MOST_NAMES
    while True:
        shown_names = [ShownNames(frozenset(names[:limit]), len(names)) for names in (instances, services)]
        cells, moments = _fold_cells(cells, *shown_names), _fold_moments(moments, *shown_names)
        if limit == 0 or _is_small(cells, moments, *shown_names):
            return ReportCube(
                [MessageCell._make((*key, *numbers)) for key, numbers in cells.items()],
                [MessageMoment._make((*key, messages)) for key, messages in moments.items()],
                *shown_names,
            )
        limit = limit * 2 // 3


# The keys of cells and moments with their numbers. Folding many of them is faster than by name.
_Cells = dict[tuple[Any, ...], tuple[int, int]]
_Moments = Counter[tuple[Any, ...]]


def _is_small(cells: _Cells, moments: _Moments, instances: ShownNames, services: ShownNames) -> bool:
    if len(cells) > MOST_CELLS or len(moments) > MOST_MOMENTS:
        return False
    offered = instances.names | services.names
    room = MOST_ROWS_BYTES - sum(_OPTION + size_of(name) for name in offered)
    sizes = {name: size_of(name) for key in cells for name in (*key[:3], *key[5:7]) if name}
    # The rows of the tables by service and of stuck messages, and those of the matrix.
    groups = {key[:2] for key in cells} | {key[:5] for key in cells if key[3] in STUCK}
    for group in groups:
        room -= _ROW + sum(sizes.get(name, 0) for name in group[:3])
    for source, target, _ in {(*key[5:7], key[3]) for key in cells}:
        room -= _ROW + sizes[source] + sizes[target]
    return room >= 0


def size_of(text: str) -> int:
    """Return a bound of the bytes of a text on the page, with signs of markup and quotes written out."""
    # A line may break after some characters.
    return len(text.encode()) + 5 * sum(map(text.count, "<>&\"'\\/.-"))


def _ranked(flows: Iterable[MessageFlow], name_of: Callable[[MessageFlow], str]) -> list[str]:
    """Rank instances or services by their better rank: by messages or by stuck messages."""
    of_all, of_stuck = Counter[str](), Counter[str]()
    for flow in flows:
        of_all[name_of(flow)] += flow.messages
        of_stuck[name_of(flow)] += flow.messages if flow.end in STUCK else 0
    best: dict[str, int] = {}
    for counts in (of_all, of_stuck):
        for place, key in enumerate(sorted(counts, key=lambda key: (-counts[key], key))):
            best[key] = min(best.get(key, place), place)
    return sorted(best, key=lambda key: (best[key], key))


def _cells(flows: Iterable[MessageFlow], place_of: PlaceOf) -> _Cells:
    cells: _Cells = {}
    for flow in flows:
        key = (flow.instance, flow.service, flow.database, flow.end, flow.why, *place_of(flow))
        _add(cells, key, flow.messages, flow.oldest // SECOND)
    return cells


def _fold_cells(cells: _Cells, instances: ShownNames, services: ShownNames) -> _Cells:
    folded: _Cells = {}
    for key, numbers in cells.items():
        instance, service = instances.fold(key[0]), services.fold(key[1])
        database = ANY if instance is None or service is None else key[2]
        _add(folded, (instance, service, database, *key[3:]), *numbers)
    return folded


def _add(cells: _Cells, key: tuple[Any, ...], messages: int, oldest: int) -> None:
    same = cells.get(key)
    cells[key] = (messages, oldest) if same is None else (same[0] + messages, min(same[1], oldest))


def _moments(points: Iterable[TimePoint]) -> _Moments:
    moments: _Moments = Counter()
    for point in points:
        moments[point.instance or UNTOLD, point.service or UNTOLD, point.at // SECOND, point.end] += point.messages
    return moments


def _fold_moments(moments: _Moments, instances: ShownNames, services: ShownNames) -> _Moments:
    folded: _Moments = Counter()
    for (instance, service, *rest), messages in moments.items():
        folded[(instances.fold(instance), services.fold(service), *rest)] += messages
    return folded
