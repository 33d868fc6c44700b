"""Judge where a message ends, over all possible paths and the return path (D17)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from routing.rules.following import HopPath, MessageTrace, PathHop
from routing.terms import LEAVES, Ending, PathEnd

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
    """One path of a message, or of its acknowledgement if ``is_return``.

    ``end`` is NO_RETURN_PATH if the message is delivered and its acknowledgement fails. ``gaps`` name missing
    exports if the path ends NOT_KNOWN at a known instance.
    """

    hop_path: HopPath
    end: PathEnd
    is_return: bool = False
    gaps: tuple[Hashable, ...] = ()

    @classmethod
    def of(cls, hop_path: HopPath, *, is_return: bool) -> PathWay:
        """Return a path with its own ending."""
        return cls(hop_path, _OF_ENDING[hop_path.ending], is_return)

    @property
    def is_failing(self) -> bool:
        """True if a message on this path gets no acknowledgement."""
        return self.end not in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN)


@dataclass(frozen=True)
class JudgedPath:
    """All paths there and back, with the joint ending.

    ``failing`` are paths on which the message or its acknowledgement gets stuck. ``spared`` are paths that fail
    although another partner of the same route delivers. ``decisive`` is the path with the joint ending, or None if
    unfollowed paths decide. ``is_cut``: more paths exist than were followed. ``has_multiple_targets`` is that of
    the trace. ``is_back_unknown``: the sending service or the broker instance of its database is unknown.
    ``assumed`` are addresses with the instance that is assumed there because of its name.
    """

    there: tuple[PathWay, ...]
    back: tuple[PathWay, ...]
    failing: tuple[PathWay, ...]
    end: PathEnd
    spared: tuple[PathWay, ...] = ()
    decisive: PathWay | None = None
    is_cut: bool = False
    has_multiple_targets: bool = False
    is_back_unknown: bool = False
    assumed: tuple[tuple[str, str], ...] = ()

    @property
    def first_failure(self) -> PathWay | None:
        """The first failing path. If the ending is NO_RETURN_PATH, it is one of the acknowledgement."""
        is_return = self.end is PathEnd.NO_RETURN_PATH
        return next((path_way for path_way in self.failing if path_way.is_return is is_return), None)

    @property
    def all_ways(self) -> tuple[PathWay, ...]:
        """The paths there, then the return paths."""
        return self.there + self.back

    @property
    def ends(self) -> frozenset[PathEnd]:
        """All endings that messages may have, `end` included."""
        return frozenset([self.end, *(path_way.end for path_way in self.failing if not path_way.is_return)])

    @property
    def unread_addresses(self) -> list[str]:
        """The addresses that no known instance has, in their own spelling, each once."""
        left_paths = (
            path_way.hop_path for path_way in self.all_ways if path_way.hop_path.ending is Ending.LEFT_ESTATE
        )
        return list(dict.fromkeys(hop_path.address for hop_path in left_paths if hop_path.address is not None))


NO_WAY_FOLLOWED = JudgedPath((), (), (), PathEnd.NOT_KNOWN, is_cut=True)
"""The path of a message if its group has reached the limit of followed paths."""


class JudgedWays(NamedTuple):
    """The joint ending of several paths, the failing ones, and the spared ones, whose partner delivers.

    ``decisive`` is the path with the joint ending, or None if there is no path.
    """

    end: PathEnd
    decisive: PathWay | None = None
    failing: tuple[PathWay, ...] = ()
    spared: tuple[PathWay, ...] = ()


Place = tuple["str | None", "str | None"]
"""An instance and one of its databases."""
ReadWays = Callable[[MessageTrace, bool], Sequence[PathWay]]
"""Returns the paths of a trace (True: of an acknowledgement) as far as they are known."""


def read_all(trace: MessageTrace, is_return: bool) -> Sequence[PathWay]:
    """Return each path of a trace once, assuming that everything is known."""
    return [PathWay.of(hop_path, is_return=is_return) for hop_path in dict.fromkeys(trace.hop_paths)]


def judge_path(
    trace: MessageTrace,
    sender: Place,
    follow_reply: Callable[[HopPath], MessageTrace | None],
    read_ways: ReadWays = read_all,
) -> JudgedPath:
    """Judge the path of a message there and back.

    A message ends at its own instance if that delivers, keeps or drops it. Otherwise it arrives if it is delivered
    and its acknowledgement reaches the sending database.

    Args:
        trace: the paths there.
        sender: the sending instance and database.
        follow_reply: returns the return paths of a delivered path, or None if the sender is unknown.
        read_ways: returns the paths of a trace as far as they are known.
    """
    first = trace.hop_paths[0]
    if len(first.hops) == 1 and first.hops[0].outcome not in LEAVES:
        only = PathWay.of(first, is_return=False)
        return JudgedPath((only,), (), (only,) if only.is_failing else (), only.end, decisive=only)
    replies = _Replies(sender, follow_reply, read_ways)
    there = tuple(map(replies.judge, read_ways(trace, False)))
    judged = judge_ways(there)
    is_cut = trace.is_cut or replies.is_cut
    is_open = is_cut and not judged.failing
    return JudgedPath(
        there=there,
        back=tuple(replies.return_ways),
        failing=(*judged.failing, *replies.failing_after(judged.failing)),
        end=PathEnd.NOT_KNOWN if is_open else judged.end,
        spared=(*judged.spared, *replies.spared),
        decisive=None if is_open else judged.decisive,
        is_cut=is_cut,
        has_multiple_targets=trace.has_multiple_targets,
        is_back_unknown=replies.is_unknown,
    )


class _Replies:
    """The acknowledgements of one message, from each database that may get it."""

    def __init__(
        self, sender: Place, follow_reply: Callable[[HopPath], MessageTrace | None], read_ways: ReadWays
    ) -> None:
        self._sender, self._follow_reply, self._read_ways = sender, follow_reply, read_ways
        self._judged: dict[Place, JudgedWays] = {}
        self.return_ways: list[PathWay] = []
        self.is_unknown = self.is_cut = False

    def judge(self, path_way: PathWay) -> PathWay:
        """Return a path with its ending, which depends on the acknowledgement if it is delivered."""
        if path_way.hop_path.ending is not Ending.DELIVERED:
            return path_way
        place = path_way.hop_path.instance, path_way.hop_path.database
        if place not in self._judged:
            self._judged[place] = self._follow(path_way.hop_path)
        back = self._judged[place]
        return replace(path_way, end=PathEnd.NO_RETURN_PATH if back.failing else back.end)

    def failing_after(self, failing: Iterable[PathWay]) -> Iterator[PathWay]:
        """Yield the failing return paths that make these paths fail."""
        places = {(path_way.hop_path.instance, path_way.hop_path.database): None for path_way in failing}
        for place in places:
            if place in self._judged:
                yield from self._judged[place].failing

    @property
    def spared(self) -> Iterator[PathWay]:
        """The return paths that fail although a partner delivers."""
        for judged in self._judged.values():
            yield from judged.spared

    def _follow(self, delivered: HopPath) -> JudgedWays:
        trace = self._follow_reply(delivered)
        if trace is None:
            self.is_unknown = True
            return JudgedWays(PathEnd.NOT_KNOWN)
        self.is_cut |= trace.is_cut
        return_ways = list(_ways_back(trace, self._sender, self._read_ways))
        self.return_ways += return_ways
        return judge_ways(return_ways)


def judge_reply(trace: MessageTrace, sender: Place, read_ways: ReadWays = read_all) -> JudgedPath:
    """Judge only a reply, which must reach the database that sent the message."""
    back = tuple(_ways_back(trace, sender, read_ways))
    judged = judge_ways(back)
    return JudgedPath((), back, judged.failing, judged.end, judged.spared, is_cut=trace.is_cut)


def _ways_back(trace: MessageTrace, sender: Place, read_ways: ReadWays) -> Iterator[PathWay]:
    """Yield return paths with their endings. Delivery to another database than the sender's is a failure."""
    for path_way in read_ways(trace, True):
        is_elsewhere = (path_way.hop_path.instance, path_way.hop_path.database) != sender
        if path_way.hop_path.ending is Ending.DELIVERED and is_elsewhere:
            yield replace(path_way, end=PathEnd.NO_RETURN_PATH)
        else:
            yield path_way


def judge_ways(path_ways: Sequence[PathWay]) -> JudgedWays:
    """Judge all paths of a message or an acknowledgement together.

    The transport may use any of several routes, so each must arrive. Only one of two mirror partners is the
    principal, so one arrival is enough. The same holds for several instances at one address.
    """
    return _judge([(path_way, _choices(path_way.hop_path)) for path_way in path_ways], 0)


_Choice = tuple["str | None", tuple["str | None", "str | None"]]
"""A route, its address, and the instance there."""


def _choices(hop_path: HopPath) -> list[_Choice]:
    """List the transport's choice at each hop that the message left."""
    chosen_hops: tuple[PathHop, ...] = hop_path.hops[:-1] if hop_path.ending in _ENDS_AT_A_HOP else hop_path.hops
    receivers = [*(hop.instance_name for hop in hop_path.hops[1:]), hop_path.instance]
    return [(hop.route_name, (hop.address, there)) for hop, there in zip(chosen_hops, receivers, strict=False)]


def _judge(path_ways: Sequence[tuple[PathWay, list[_Choice]]], depth: int) -> JudgedWays:
    first = path_ways[0][0]
    if len(path_ways) == 1:
        return JudgedWays(first.end, first, (first,) if first.is_failing else ())
    routes: dict[str | None, dict[object, list[tuple[PathWay, list[_Choice]]]]] = defaultdict(dict)
    for path_way, choices in path_ways:
        route, place = choices[depth]
        routes[route].setdefault(place, []).append((path_way, choices))
    return _all_of(_any_of([_judge(alike, depth + 1) for alike in places.values()]) for places in routes.values())


def _any_of(partners: Sequence[JudgedWays]) -> JudgedWays:
    spared = tuple(path_way for partner in partners for path_way in partner.spared)
    for enough in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN):
        best = _first_of(partners, enough)
        if best is not None:
            return JudgedWays(enough, best.decisive, (), (*_failing(partners), *spared))
    return JudgedWays(partners[0].end, partners[0].decisive, tuple(_failing(partners)), spared)


def _all_of(routes: Iterable[JudgedWays]) -> JudgedWays:
    judged = list(routes)
    failing, spared = tuple(_failing(judged)), tuple(path_way for route in judged for path_way in route.spared)
    worst = (
        next((judged_ways for judged_ways in judged if judged_ways.failing), None)
        or _first_of(judged, PathEnd.NOT_KNOWN)
        or judged[0]
    )
    return JudgedWays(worst.end, worst.decisive, failing, spared)


def _first_of(judged: Iterable[JudgedWays], end: PathEnd) -> JudgedWays | None:
    return next((judged_ways for judged_ways in judged if judged_ways.end is end), None)


def _failing(judged: Iterable[JudgedWays]) -> Iterator[PathWay]:
    for judged_ways in judged:
        yield from judged_ways.failing
