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
class PossiblePath:
    """One path of a message, or of its acknowledgement if ``is_return``.

    ``end`` is NO_RETURN_PATH if the message is delivered and its acknowledgement fails. ``gaps`` name missing
    exports if the path ends NOT_KNOWN at a known instance.
    """

    hop_path: HopPath
    end: PathEnd
    is_return: bool = False
    gaps: tuple[Hashable, ...] = ()

    @classmethod
    def of(cls, hop_path: HopPath, *, is_return: bool) -> PossiblePath:
        """Return a path with its own ending."""
        return cls(hop_path, _OF_ENDING[hop_path.ending], is_return)

    @property
    def is_failing(self) -> bool:
        """True if a message on this path certainly gets no acknowledgement."""
        return self.end not in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN)


@dataclass(frozen=True)
class JudgedPath:
    """All paths there and back, with the joint ending.

    On ``failing_paths`` the message or its acknowledgement gets stuck. ``spared_paths`` fail although another
    partner of the same route delivers. ``decisive`` is the path with the joint ending, or None if unfollowed paths
    decide. ``is_cut``: more paths exist than were followed. ``has_multiple_targets`` is that of the trace.
    ``is_back_unknown``: the sending service or the broker instance of its database is unknown. ``assumed`` are
    addresses with the instance that is assumed there because of its name.
    """

    forward_paths: tuple[PossiblePath, ...]
    return_paths: tuple[PossiblePath, ...]
    failing_paths: tuple[PossiblePath, ...]
    end: PathEnd
    spared_paths: tuple[PossiblePath, ...] = ()
    decisive: PossiblePath | None = None
    is_cut: bool = False
    has_multiple_targets: bool = False
    is_back_unknown: bool = False
    assumed: tuple[tuple[str, str], ...] = ()

    @property
    def first_failure(self) -> PossiblePath | None:
        """The first failing path. If the ending is NO_RETURN_PATH, it is a path of the acknowledgement."""
        is_return = self.end is PathEnd.NO_RETURN_PATH
        return next(
            (possible_path for possible_path in self.failing_paths if possible_path.is_return is is_return), None
        )

    @property
    def all_paths(self) -> tuple[PossiblePath, ...]:
        """The paths there, then the return paths."""
        return self.forward_paths + self.return_paths

    @property
    def ends(self) -> frozenset[PathEnd]:
        """All endings that messages may have, `end` included."""
        return frozenset(
            [self.end, *(possible_path.end for possible_path in self.failing_paths if not possible_path.is_return)]
        )

    @property
    def unread_addresses(self) -> list[str]:
        """The distinct addresses that no known instance has, in their original spelling."""
        left_paths = (
            possible_path.hop_path
            for possible_path in self.all_paths
            if possible_path.hop_path.ending is Ending.LEFT_ESTATE
        )
        return list(dict.fromkeys(hop_path.address for hop_path in left_paths if hop_path.address is not None))


NO_PATH_FOLLOWED = JudgedPath((), (), (), PathEnd.NOT_KNOWN, is_cut=True)
"""The path of a message if its group has reached the limit of followed paths."""


class JointEnding(NamedTuple):
    """The joint ending of several paths, the failing ones, and the spared ones, whose partner delivers.

    ``decisive`` is the path with the joint ending, or None if there is no path.
    """

    end: PathEnd
    decisive: PossiblePath | None = None
    failing_paths: tuple[PossiblePath, ...] = ()
    spared_paths: tuple[PossiblePath, ...] = ()


Place = tuple["str | None", "str | None"]
"""An instance and one of its databases."""
ReadPaths = Callable[[MessageTrace, bool], Sequence[PossiblePath]]
"""Returns the paths of a trace (True: of an acknowledgement) as far as they are known."""


def read_all(trace: MessageTrace, is_return: bool) -> Sequence[PossiblePath]:
    """Return each path of a trace once, assuming that everything is known."""
    return [PossiblePath.of(hop_path, is_return=is_return) for hop_path in dict.fromkeys(trace.hop_paths)]


def judge_path(
    trace: MessageTrace,
    sender: Place,
    follow_reply: Callable[[HopPath], MessageTrace | None],
    read_paths: ReadPaths = read_all,
) -> JudgedPath:
    """Judge the path of a message there and back.

    A message ends at its own instance if that delivers, keeps or drops it. Otherwise it arrives if it is delivered
    and its acknowledgement reaches the sending database.

    Args:
        trace: the paths there.
        sender: the sending instance and database.
        follow_reply: returns the return paths of a delivered path, or None if the sender is unknown.
        read_paths: returns the paths of a trace as far as they are known.
    """
    first = trace.hop_paths[0]
    if len(first.hops) == 1 and first.hops[0].outcome not in LEAVES:
        single_path = PossiblePath.of(first, is_return=False)
        return JudgedPath(
            (single_path,),
            (),
            (single_path,) if single_path.is_failing else (),
            single_path.end,
            decisive=single_path,
        )
    replies = _Replies(sender, follow_reply, read_paths)
    forward_paths = tuple(map(replies.judge, read_paths(trace, False)))
    joint_ending = join_endings(forward_paths)
    is_cut = trace.is_cut or replies.is_cut
    is_open = is_cut and not joint_ending.failing_paths
    return JudgedPath(
        forward_paths=forward_paths,
        return_paths=tuple(replies.return_paths),
        failing_paths=(*joint_ending.failing_paths, *replies.failing_after(joint_ending.failing_paths)),
        end=PathEnd.NOT_KNOWN if is_open else joint_ending.end,
        spared_paths=(*joint_ending.spared_paths, *replies.spared_paths),
        decisive=None if is_open else joint_ending.decisive,
        is_cut=is_cut,
        has_multiple_targets=trace.has_multiple_targets,
        is_back_unknown=replies.is_unknown,
    )


class _Replies:
    """The acknowledgements of one message, from each database that may get it."""

    def __init__(
        self, sender: Place, follow_reply: Callable[[HopPath], MessageTrace | None], read_paths: ReadPaths
    ) -> None:
        self._sender, self._follow_reply, self._read_paths = sender, follow_reply, read_paths
        self._judged: dict[Place, JointEnding] = {}
        self.return_paths: list[PossiblePath] = []
        self.is_unknown = self.is_cut = False

    def judge(self, possible_path: PossiblePath) -> PossiblePath:
        """Return a path with its ending, which depends on the acknowledgement if it is delivered."""
        if possible_path.hop_path.ending is not Ending.DELIVERED:
            return possible_path
        place = possible_path.hop_path.instance, possible_path.hop_path.database
        if place not in self._judged:
            self._judged[place] = self._follow(possible_path.hop_path)
        joint_ending = self._judged[place]
        return replace(
            possible_path, end=PathEnd.NO_RETURN_PATH if joint_ending.failing_paths else joint_ending.end
        )

    def failing_after(self, failing: Iterable[PossiblePath]) -> Iterator[PossiblePath]:
        """Yield the failing return paths that make these paths fail."""
        places = {
            (possible_path.hop_path.instance, possible_path.hop_path.database): None for possible_path in failing
        }
        for place in places:
            if place in self._judged:
                yield from self._judged[place].failing_paths

    @property
    def spared_paths(self) -> Iterator[PossiblePath]:
        """The return paths that fail although a partner delivers."""
        for judged in self._judged.values():
            yield from judged.spared_paths

    def _follow(self, delivered: HopPath) -> JointEnding:
        trace = self._follow_reply(delivered)
        if trace is None:
            self.is_unknown = True
            return JointEnding(PathEnd.NOT_KNOWN)
        self.is_cut |= trace.is_cut
        return_paths = list(_return_paths(trace, self._sender, self._read_paths))
        self.return_paths += return_paths
        return join_endings(return_paths)


def _return_paths(trace: MessageTrace, sender: Place, read_paths: ReadPaths) -> Iterator[PossiblePath]:
    """Yield return paths with their endings. Delivery to another database than the sender's is a failure."""
    for possible_path in read_paths(trace, True):
        is_elsewhere = (possible_path.hop_path.instance, possible_path.hop_path.database) != sender
        if possible_path.hop_path.ending is Ending.DELIVERED and is_elsewhere:
            yield replace(possible_path, end=PathEnd.NO_RETURN_PATH)
        else:
            yield possible_path


def join_endings(possible_paths: Sequence[PossiblePath]) -> JointEnding:
    """Judge all paths of a message or an acknowledgement together.

    The transport may use any of several routes, so each must arrive. Only one of two mirror partners is the
    principal, so one arrival is enough. The same holds for several instances at one address.
    """
    return _judge([(possible_path, _choices(possible_path.hop_path)) for possible_path in possible_paths], 0)


_Choice = tuple["str | None", tuple["str | None", "str | None"]]
"""A route, its address, and the instance there."""


def _choices(hop_path: HopPath) -> list[_Choice]:
    """List the transport's choice at each hop that the message left."""
    chosen_hops: tuple[PathHop, ...] = hop_path.hops[:-1] if hop_path.ending in _ENDS_AT_A_HOP else hop_path.hops
    receivers = [*(hop.instance_name for hop in hop_path.hops[1:]), hop_path.instance]
    return [
        (hop.route_name, (hop.address, receiver)) for hop, receiver in zip(chosen_hops, receivers, strict=False)
    ]


def _judge(possible_paths: Sequence[tuple[PossiblePath, list[_Choice]]], depth: int) -> JointEnding:
    first = possible_paths[0][0]
    if len(possible_paths) == 1:
        return JointEnding(first.end, first, (first,) if first.is_failing else ())
    routes: dict[str | None, dict[object, list[tuple[PossiblePath, list[_Choice]]]]] = defaultdict(dict)
    for possible_path, choices in possible_paths:
        route, place = choices[depth]
        routes[route].setdefault(place, []).append((possible_path, choices))
    return _all_of(_any_of([_judge(alike, depth + 1) for alike in places.values()]) for places in routes.values())


def _any_of(partners: Sequence[JointEnding]) -> JointEnding:
    spared_paths = tuple(possible_path for partner in partners for possible_path in partner.spared_paths)
    for enough in (PathEnd.DELIVERED, PathEnd.NOT_KNOWN):
        best = _first_of(partners, enough)
        if best is not None:
            return JointEnding(enough, best.decisive, (), (*_failing(partners), *spared_paths))
    return JointEnding(partners[0].end, partners[0].decisive, tuple(_failing(partners)), spared_paths)


def _all_of(routes: Iterable[JointEnding]) -> JointEnding:
    endings = list(routes)
    failing_paths, spared_paths = (
        tuple(_failing(endings)),
        tuple(possible_path for route in endings for possible_path in route.spared_paths),
    )
    worst = (
        next((joint_ending for joint_ending in endings if joint_ending.failing_paths), None)
        or _first_of(endings, PathEnd.NOT_KNOWN)
        or endings[0]
    )
    return JointEnding(worst.end, worst.decisive, failing_paths, spared_paths)


def _first_of(endings: Iterable[JointEnding], end: PathEnd) -> JointEnding | None:
    return next((joint_ending for joint_ending in endings if joint_ending.end is end), None)


def _failing(endings: Iterable[JointEnding]) -> Iterator[PossiblePath]:
    for joint_ending in endings:
        yield from joint_ending.failing_paths
