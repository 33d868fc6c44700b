"""The joint end of a message over all ways there and back (D17): the tests' own judgement."""

from __future__ import annotations

from collections.abc import Callable

from .ways import Trace, Way

_STUCK = ("DELAYED", "DROPPED", "LOOP", "NO_RETURN_PATH")
Place = tuple[str | None, str | None]


def joint_end(there: Trace, sender: Place, replies: Callable[[Place], Trace | None]) -> str:
    """Say where a message ends; `replies` has the ways back from an instance and a database that it reached."""
    if len(there.ways[0].hops) == 1 and there.ways[0].hops[0].outcome not in ("SENT", "FORWARDED"):
        return there.ways[0].end
    cut = there.is_cut

    def there_end(way: Way) -> str:
        nonlocal cut
        if way.end != "DELIVERED":
            return _plain(way)
        back = replies((way.instance, way.database))
        if back is None:
            return "NOT_KNOWN"
        cut = cut or back.is_cut
        end = _together(back.ways, lambda one: _back_end(one, sender), 0)
        return "NO_RETURN_PATH" if end in _STUCK else end

    end = _together(there.ways, there_end, 0)
    return "NOT_KNOWN" if cut and end not in _STUCK else end


def end_from_first_hop(there: Trace) -> str:
    """Say where a message ends that took its first hop as the routes report it, its acknowledgement aside."""
    first = there.ways[0].hops[0]
    taken = [way for way in there.ways if (way.hops[0].route, way.hops[0].address) == (first.route, first.address)]
    end = _together(taken, _plain, 0)
    return "NOT_KNOWN" if there.is_cut and end not in _STUCK else end


def _back_end(way: Way, sender: Place) -> str:
    arrives_elsewhere = way.end == "DELIVERED" and (way.instance, way.database) != sender
    return "NO_RETURN_PATH" if arrives_elsewhere else _plain(way)


def _plain(way: Way) -> str:
    return "NOT_KNOWN" if way.end == "LEFT_ESTATE" else way.end


def _together(ways: tuple[Way, ...] | list[Way], end_of: Callable[[Way], str], hop: int) -> str:
    """Every route that the transport may choose must arrive; of its partners one is enough."""
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
        best = [end for end in ("DELIVERED", "NOT_KNOWN") if end in reached]
        ends.append(best[0] if best else reached[0])
    stuck = [end for end in ends if end in _STUCK]
    if stuck:
        return stuck[0]
    return "NOT_KNOWN" if "NOT_KNOWN" in ends else "DELIVERED"
