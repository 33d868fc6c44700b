"""What the page holds of flows and points: few enough cells that the page stays small, all messages among them.

The instances and services with most messages, or most stuck ones, keep their names; the others are told as one.
An instance or service keeps its name in every cell or in none, so that what is filtered by it is told whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.analysis.report.facts import Flow, Point, Report
from routing.terms import Outcome

STUCK = (str(Outcome.DELAYED), str(Outcome.DROPPED))
"""Outcomes that somebody has to look at."""
MOST_NAMES = 1_000
MOST_CELLS = 6_000
MOST_MOMENTS = 30_000
MOST_CHARACTERS = 200_000
_SECOND = 1_000_000
# Not a database's name: that of all databases of what is told as one.
_ANY = ""
EndsOf = Callable[[Flow], "tuple[str, str | None]"]
"""The nodes of the estate between which the messages of a flow go; None where they stop."""


class Cell(NamedTuple):
    """Messages that are told together; instance and service are None for all that are not told by name.

    ``database`` is None where they came over the network, empty where databases are not told apart. ``source`` and
    ``target`` are nodes of the estate. ``oldest`` is in seconds.
    """

    instance: str | None
    service: str | None
    database: str | None
    outcome: str
    reason: str | None
    source: str | None
    target: str | None
    messages: int
    oldest: int


class Moment(NamedTuple):
    """Messages decided from ``at`` (seconds) on, for as long as a step of the series."""

    instance: str | None
    service: str | None
    at: int
    outcome: str
    messages: int


@dataclass(frozen=True)
class Names:
    """Instances or services that are told by name, and how many there are in all."""

    told: frozenset[str]
    all: int

    @property
    def others(self) -> int:
        """How many are told as one."""
        return self.all - len(self.told)

    def fold(self, name: str | None) -> str | None:
        """The name, or None where it is not told."""
        return name if name in self.told else None


@dataclass(frozen=True)
class Cube:
    """All that the page can filter."""

    cells: Sequence[Cell]
    moments: Sequence[Moment]
    instances: Names
    services: Names


def cube_of(report: Report, ends_of: EndsOf) -> Cube:
    """The cells of a report: with as many names, halved again and again, as make no more of them than may be."""
    instances, services = (_ranked(report.flows, name) for name in ("instance", "service"))
    cells = _merge_cells(_cell(flow, ends_of) for flow in report.flows)
    moments = _merge_moments(map(_moment, report.series.points if report.series else ()))
    limit = MOST_NAMES
    while True:
        told = [Names(frozenset(names[:limit]), len(names)) for names in (instances, services)]
        cells = _merge_cells(_fold_cell(cell, *told) for cell in cells)
        moments = _merge_moments(_fold_moment(one, *told) for one in moments)
        cube = Cube(cells, moments, *told)
        if limit == 0 or _is_small(cube):
            return cube
        limit //= 2


def _is_small(cube: Cube) -> bool:
    names = sum(map(len, cube.instances.told | cube.services.told))
    few = len(cube.cells) <= MOST_CELLS and len(cube.moments) <= MOST_MOMENTS
    return few and names <= MOST_CHARACTERS


def _ranked(flows: Iterable[Flow], name: str) -> list[str]:
    """Instances or services, first those that are first by messages or by stuck ones."""
    of_all: dict[str, int] = {}
    of_stuck: dict[str, int] = {}
    for flow in flows:
        key = getattr(flow, name)
        of_all[key] = of_all.get(key, 0) + flow.messages
        of_stuck[key] = of_stuck.get(key, 0) + (flow.messages if flow.outcome in STUCK else 0)
    best: dict[str, int] = {}
    for counts in (of_all, of_stuck):
        for place, key in enumerate(sorted(counts, key=lambda key: (-counts[key], key))):
            best[key] = min(best.get(key, place), place)
    return sorted(best, key=lambda key: (best[key], key))


def _cell(flow: Flow, ends_of: EndsOf) -> Cell:
    who = (flow.instance, flow.service, flow.database)
    return Cell(*who, flow.outcome, flow.reason, *ends_of(flow), flow.messages, flow.oldest // _SECOND)


def _moment(point: Point) -> Moment:
    return Moment(point.instance, point.service, point.at // _SECOND, point.outcome, point.messages)


def _fold_cell(cell: Cell, instances: Names, services: Names) -> Cell:
    instance, service = instances.fold(cell.instance), services.fold(cell.service)
    database = _ANY if instance is None or service is None else cell.database
    return Cell(instance, service, database, *cell[3:])


def _fold_moment(moment: Moment, instances: Names, services: Names) -> Moment:
    return Moment(instances.fold(moment.instance), services.fold(moment.service), *moment[2:])


def _merge_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Cells that differ in nothing but numbers as one."""
    found: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        key, same = cell[:-2], found.get(cell[:-2])
        if same is not None:
            cell = same._replace(messages=same.messages + cell.messages, oldest=min(same.oldest, cell.oldest))
        found[key] = cell
    return list(found.values())


def _merge_moments(moments: Iterable[Moment]) -> list[Moment]:
    """Moments that differ in nothing but their messages as one."""
    found: dict[tuple[object, ...], Moment] = {}
    for moment in moments:
        same = found.get(moment[:-1])
        found[moment[:-1]] = moment if same is None else same._replace(messages=same.messages + moment.messages)
    return list(found.values())
