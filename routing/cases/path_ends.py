"""Judge the ends of the ways that a message may take beyond its instance, and of its acknowledgement back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from routing.cases.missing_knowledge import KnowledgeGap
from routing.rules.following import HopPath, PathHop
from routing.rules.pathing import PathWithReturn
from routing.terms import Ending, Word

# What there is that may not be known: views that were not read, or not whole.


class PathEnd(Word):
    """The end of a message; DELIVERED where its acknowledgement comes back as well."""

    DELIVERED = "DELIVERED"
    DELAYED = "DELAYED"
    DROPPED = "DROPPED"
    LOOP = "LOOP"
    NO_RETURN_PATH = "NO_RETURN_PATH"
    NOT_KNOWN = "NOT_KNOWN"


IS_DROPPED = frozenset([PathEnd.DROPPED, PathEnd.LOOP])
IS_DELAYED = frozenset([PathEnd.DELAYED, PathEnd.NO_RETURN_PATH])
_ENDS_AT_A_HOP = (Ending.DELIVERED, Ending.DELAYED, Ending.DROPPED)
_OF_ENDING = {
    Ending.DELIVERED: PathEnd.DELIVERED,
    Ending.DELAYED: PathEnd.DELAYED,
    Ending.DROPPED: PathEnd.DROPPED,
    Ending.LOOP: PathEnd.LOOP,
    Ending.LEFT_ESTATE: PathEnd.NOT_KNOWN,
    Ending.NOT_KNOWN: PathEnd.NOT_KNOWN,
}


@dataclass(frozen=True)
class PathWay:
    """One way of a message, or of the acknowledgement if ``is_return``.

    ``end`` is the way's own: that of a message which is delivered and whose acknowledgement fails is
    NO_RETURN_PATH. ``gaps`` are what was not read where the way ends NOT_KNOWN at a known instance.
    """

    hop_path: HopPath
    end: PathEnd
    is_return: bool = False
    gaps: tuple[KnowledgeGap, ...] = ()

    @classmethod
    def of_way(cls, hop_path: HopPath, *, is_return: bool, gaps: Iterable[KnowledgeGap] = ()) -> PathWay:
        """Return a way as it ends by itself.

        Hops are without broker instances, and the first one there without its step: messages that are bound to
        several ids may go the same way.
        """
        hops = [replace(hop, broker_instance=None) for hop in hop_path.hops]
        if hops and not is_return:
            hops[0] = replace(hops[0], matching_step=None)
        return cls(replace(hop_path, hops=tuple(hops)), _OF_ENDING[hop_path.ending], is_return, tuple(gaps))

    @property
    def is_failing(self) -> bool:
        """Return True if a message that takes it is not acknowledged."""
        return self.end not in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN)


@dataclass(frozen=True)
class MessagePath:
    """All ways there and back; ``failing`` are those on which a message, or its acknowledgement, gets stuck.

    ``is_cut``: there are more ways than are followed. ``has_multiple_targets`` as in `following.MessageTrace`.
    ``is_back_unknown``: the service that sent, or the broker instance of its database, is not known. ``assumed``:
    addresses on the ways, each with the instance that is taken to listen there by its name.
    """

    there: tuple[PathWay, ...]
    back: tuple[PathWay, ...]
    failing: tuple[PathWay, ...]
    end: PathEnd
    is_cut: bool = False
    has_multiple_targets: bool = False
    is_back_unknown: bool = False
    assumed: tuple[tuple[str, str], ...] = ()

    @property
    def first_failure(self) -> PathWay | None:
        """Return the first way that fails; of an acknowledgement that does not come back, its own."""
        is_return = self.end is PathEnd.NO_RETURN_PATH
        return next((one for one in self.failing if one.is_return is is_return), None)

    @property
    def all_ways(self) -> tuple[PathWay, ...]:
        """Return the ways there, then those back."""
        return self.there + self.back

    @property
    def ends(self) -> frozenset[PathEnd]:
        """Return all ends that messages on this path may have: the first is `end`."""
        return frozenset([self.end, *(one.end for one in self.failing if not one.is_return)])

    @property
    def gaps(self) -> list[KnowledgeGap]:
        """Return what was not read of known instances on the path."""
        return sorted({gap for one in self.all_ways for gap in one.gaps}, key=lambda gap: gap.place)

    @property
    def unread_addresses(self) -> list[str]:
        """Return the addresses that no known instance has, as they are written, each once."""
        left = (one.hop_path for one in self.all_ways if one.hop_path.ending is Ending.LEFT_ESTATE)
        return list(dict.fromkeys(hop_path.address for hop_path in left if hop_path.address is not None))


NO_WAY_FOLLOWED = MessagePath((), (), (), PathEnd.NOT_KNOWN, is_cut=True)
"""The path of a message whose group has had all the ways that are followed."""


class JudgedWays(NamedTuple):
    """The end of several ways together, and the ways that fail."""

    end: PathEnd
    failing: tuple[PathWay, ...]


def judge_ways(path_ways: Sequence[PathWay]) -> JudgedWays:
    """Judge all ways of a message, or of an acknowledgement, together.

    The transport may use any of several routes: each has to arrive. Of an address and its mirror, and of several
    instances that have one address, one alone is the principal: it is enough that one of them arrives.
    """
    return _judge([(one, _choices(one.hop_path)) for one in path_ways], 0)


_Choice = tuple["str | None", tuple["str | None", "str | None"]]
"""A route, and the address and the instance that is met there."""


def _choices(hop_path: HopPath) -> list[_Choice]:
    """List the transport's choice at each hop that a message left."""
    left: tuple[PathHop, ...] = hop_path.hops[:-1] if hop_path.ending in _ENDS_AT_A_HOP else hop_path.hops
    met = [*(hop.instance_name for hop in hop_path.hops[1:]), hop_path.instance]
    return [(hop.route_name, (hop.address, there)) for hop, there in zip(left, met, strict=False)]


def _judge(path_ways: Sequence[tuple[PathWay, list[_Choice]]], depth: int) -> JudgedWays:
    first = path_ways[0][0]
    if len(path_ways) == 1:
        return JudgedWays(first.end, (first,) if first.is_failing else ())
    routes: dict[str | None, dict[object, list[tuple[PathWay, list[_Choice]]]]] = defaultdict(dict)
    for one, choices in path_ways:
        route, place = choices[depth]
        routes[route].setdefault(place, []).append((one, choices))
    return _all_of(_any_of([_judge(alike, depth + 1) for alike in places.values()]) for places in routes.values())


def _any_of(partners: Sequence[JudgedWays]) -> JudgedWays:
    ends = [partner.end for partner in partners]
    for enough in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN):
        if enough in ends:
            return JudgedWays(enough, ())
    return JudgedWays(ends[0], tuple(_failing(partners)))


def _all_of(routes: Iterable[JudgedWays]) -> JudgedWays:
    judged = list(routes)
    failing = tuple(_failing(judged))
    if failing:
        return JudgedWays(failing[0].end, failing)
    is_known = all(one.end is PathEnd.DELIVERED for one in judged)
    return JudgedWays(PathEnd.DELIVERED if is_known else PathEnd.NOT_KNOWN, ())


def _failing(judged: Iterable[JudgedWays]) -> Iterator[PathWay]:
    for one in judged:
        yield from one.failing


def judge_traced(path: PathWithReturn, sender: tuple[str, str | None]) -> MessagePath:
    """Judge a path whose reply was followed from the first database that it is delivered to.

    ``sender`` is the instance and the database that sent: a reply that is delivered elsewhere does not come back.
    """
    return_ways = () if path.back is None else path.back.hop_paths
    back = tuple(come_back(PathWay.of_way(one, is_return=True), sender) for one in return_ways)
    judged_back = judge_ways(back) if back else None
    delivered = path.there.delivered
    there = []
    for hop_path in path.there.hop_paths:
        one = PathWay.of_way(hop_path, is_return=False)
        if judged_back is not None and delivered is not None and hop_path.place == delivered.place:
            one = replace(one, end=PathEnd.NO_RETURN_PATH if judged_back.failing else judged_back.end)
        there.append(one)
    judged = judge_ways(there)
    is_lost = any(one.end is PathEnd.NO_RETURN_PATH for one in judged.failing)
    return MessagePath(
        there=tuple(there),
        back=back,
        failing=(*judged.failing, *(judged_back.failing if judged_back is not None and is_lost else ())),
        end=judged.end,
        is_cut=path.there.is_cut,
        has_multiple_targets=path.there.has_multiple_targets,
        is_back_unknown=path.is_back_unknown,
    )


def come_back(one: PathWay, sender: tuple[str, str | None]) -> PathWay:
    """Return a way back with its end; one that is delivered to another database than the sender is none."""
    is_elsewhere = (one.hop_path.instance, one.hop_path.database) != sender
    if one.hop_path.ending is Ending.DELIVERED and is_elsewhere:
        return replace(one, end=PathEnd.NO_RETURN_PATH)
    return one
