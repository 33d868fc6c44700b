"""Compare the paths of a message on two sides: the endings, and the first hop that differs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from routing.rules.judging import JudgedPath, PossiblePath
from routing.terms import PathEnd


class PathEnding(NamedTuple):
    """The joint ending of a message (D17), by which two sides are compared.

    ``ending_reason`` belongs to the last hop of the message or, for NO_RETURN_PATH, of its acknowledgement. The
    instance and database are those of the message.
    """

    ending: str
    ending_reason: str | None
    ending_instance_name: str | None
    ending_database_name: str | None


class HopPlace(NamedTuple):
    """A hop by direction and number (from 1), with the instance and scope that decide there."""

    hop_direction: str
    hop: int
    hop_instance_name: str
    hop_scope: str


class PathStep(NamedTuple):
    """A hop with its compared values. The last step of a path has the ending instead."""

    place: HopPlace
    compared: Hashable


THERE, BACK = "THERE", "BACK"
_DIRECTIONS = (THERE, BACK)


def ending_of(judged: JudgedPath) -> PathEnding:
    """Return where the messages of a path end."""
    end, decisive = judged.end, judged.decisive
    if decisive is None:
        return PathEnding(str(end), None, None, None)
    reason = decisive.hop_path.reason
    if end is PathEnd.NOT_KNOWN:
        reason = None
    elif end is PathEnd.NO_RETURN_PATH:
        failure = judged.first_failure
        reason = None if failure is None else failure.hop_path.reason
    return PathEnding(
        str(end), None if reason is None else str(reason), decisive.hop_path.instance, decisive.hop_path.database
    )


def steps_of(judged: JudgedPath) -> Iterator[PathStep]:
    """Yield the steps of all paths there, then of all return paths."""
    for possible_path in judged.all_paths:
        yield from _steps_of_path(possible_path)


def _steps_of_path(possible_path: PossiblePath) -> Iterator[PathStep]:
    direction, place = _DIRECTIONS[possible_path.is_return], None
    for number, hop in enumerate(possible_path.hop_path.hops, 1):
        place = HopPlace(direction, number, hop.instance_name, hop.scope)
        step = None if hop.matching_step is None else int(hop.matching_step)
        yield PathStep(place, (step, hop.route_name, hop.address, str(hop.outcome), str(hop.reason)))
    if place is not None:
        yield PathStep(
            place,
            (str(possible_path.hop_path.ending), possible_path.hop_path.instance, possible_path.hop_path.database),
        )


def first_change(before: Sequence[PathStep], after: Sequence[PathStep]) -> HopPlace | None:
    """Return the first hop in which two paths differ, or None.

    The result is the earlier hop of the first two steps that differ. Paths there come before return paths. If both
    hops have the same number, the result is the hop of ``after``.
    """
    for old, new in zip_longest(before, after):
        if old != new:
            places = [step.place for step in (new, old) if step is not None]
            return min(places, key=lambda place: (_DIRECTIONS.index(place.hop_direction), place.hop))
    return None
