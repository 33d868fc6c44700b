"""Find the joint end of a message over all paths in both directions (D17), independently of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .ways import Trace, Way

_STUCK = ("DELAYED", "DROPPED", "LOOP", "NO_RETURN_PATH")
Place = tuple[str | None, str | None]


class Joint(NamedTuple):
    """The end of a message and its place. `reason` is that of the hop that stops it or its acknowledgement."""

    end: str
    reason: str | None
    instance: str | None
    database: str | None


_Judged = tuple[str, Way, Way]
"""An end, the path that has it, and the path whose last hop has the reason."""


def joint_end(there: Trace, sender: Place, replies: Callable[[Place], Trace | None]) -> Joint:
    """Return the end of a message. `replies` has the return paths by instance and reached database."""
    if len(there.ways[0].hops) == 1 and there.ways[0].hops[0].outcome not in ("SENT", "FORWARDED"):
        return _joint(there.ways[0].end, there.ways[0], there.ways[0])
    cut = there.is_cut

    def there_end(way: Way) -> _Judged:
        nonlocal cut
        if way.end != "DELIVERED":
            return _plain(way), way, way
        back = replies((way.instance, way.database))
        if back is None:
            return "NOT_KNOWN", way, way
        cut = cut or back.is_cut
        end, last, _ = _together(back.ways, lambda one: (_back_end(one, sender), one, one), 0)
        return ("NO_RETURN_PATH", way, last) if end in _STUCK else (end, way, way)

    end, way, why = _together(there.ways, there_end, 0)
    return Joint("NOT_KNOWN", None, None, None) if cut and end not in _STUCK else _joint(end, way, why)


def _joint(end: str, way: Way, why: Way) -> Joint:
    return Joint(end, None if end == "NOT_KNOWN" else why.reason, way.instance, way.database)


def end_there(there: Trace) -> str:
    """Return the end of a message, without regard to its acknowledgement."""
    end, _, _ = _together(there.ways, lambda way: (_plain(way), way, way), 0)
    return "NOT_KNOWN" if there.is_cut and end not in _STUCK else end


def _back_end(way: Way, sender: Place) -> str:
    arrives_elsewhere = way.end == "DELIVERED" and (way.instance, way.database) != sender
    return "NO_RETURN_PATH" if arrives_elsewhere else _plain(way)


def _plain(way: Way) -> str:
    return "NOT_KNOWN" if way.end == "LEFT_ESTATE" else way.end


def _together(ways: tuple[Way, ...] | list[Way], end_of: Callable[[Way], _Judged], hop: int) -> _Judged:
    """Judge paths together. Every route that the transport may choose must arrive, but only one partner of it."""
    if len(set(ways)) == 1:
        return end_of(ways[0])
    by_route: dict[str | None, dict[tuple[str | None, str | None], list[Way]]] = {}
    for way in ways:
        left = way.hops[hop]
        partner = left.address, way.hops[hop + 1].instance if hop + 1 < len(way.hops) else way.instance
        by_route.setdefault(left.route, {}).setdefault(partner, []).append(way)
    ends = []
    for partners in by_route.values():
        reached = [_together(some, end_of, hop + 1) for some in partners.values()]
        best = [one for end in ("DELIVERED", "NOT_KNOWN") for one in reached if one[0] == end]
        ends.append(best[0] if best else reached[0])
    for wanted in (_STUCK, ("NOT_KNOWN",)):
        wanted_ends = [one for one in ends if one[0] in wanted]
        if wanted_ends:
            return wanted_ends[0]
    return ends[0]
