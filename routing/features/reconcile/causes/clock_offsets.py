"""A clock that is off by a constant: one offset that makes an instance's contradictions right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routing.errors import quote
from routing.features.reconcile.episode import ObservedEpisode
from routing.features.reconcile.groups import CauseKind, MismatchCause
from routing.rules.estate import SqlInstance
from routing.rules.reconciling import MATCHING, PairClass

ClassAt = Callable[[ObservedEpisode, int], PairClass]

_MINUTE = 60_000_000
_MINUTES = (*range(1, 16), 20, 30, 45, *range(60, 14 * 60 + 1, 30))
OFFSETS = tuple(sign * minutes * _MINUTE for minutes in _MINUTES for sign in (1, -1))
"""By how much a clock may be ahead, the least first: minutes, then what zones differ by."""
# Of the contradictions as many at least are explained, and of what is right as many at most are broken, per cent.
_EXPLAINS, _BREAKS = 80, 5
# So many episodes tell of a clock, in more places than one: one route that changed at another time is no clock.
_EPISODES, _PLACES = 3, 2


def find_offset(sampled: Sequence[tuple[ObservedEpisode, PairClass]], class_at: ClassAt) -> int | None:
    """Find how many microseconds the clock of an instance is ahead; None where no offset explains it."""
    off = [episode for episode, kind in sampled if kind is PairClass.CONTRADICTED]
    right = [episode for episode, kind in sampled if kind in MATCHING]
    if len(off) < _EPISODES:
        return None
    best, least = None, -1
    for offset in OFFSETS:
        explained = _explained(off, offset, class_at)
        if explained is None or len(explained) - len(off) // 50 <= least:
            continue
        if len({(one.database, one.service) for one in explained}) < _PLACES:
            continue
        broken = sum(class_at(one, one.first_at - offset) is PairClass.CONTRADICTED for one in right)
        if 100 * broken <= _BREAKS * len(right) and len(explained) - broken > least:
            best, least = offset, len(explained) - broken
    return best


def _explained(off: Sequence[ObservedEpisode], offset: int, class_at: ClassAt) -> list[ObservedEpisode] | None:
    """List contradicted episodes that an offset makes right; None as soon as these are surely too few."""
    missed, most = 0, len(off) - -(-_EXPLAINS * len(off) // 100)
    explained = []
    for episode in off:
        if class_at(episode, episode.first_at - offset) in MATCHING:
            explained.append(episode)
        elif (missed := missed + 1) > most:
            return None
    return explained


def has_changes(instance: SqlInstance | None) -> bool:
    """Return whether any route of an instance is in force for a time alone: else no time is better."""
    routes = () if instance is None else (one for scope in instance.routes.values() for one in scope.values())
    return any(one.live_from is not None or one.live_to is not None for some in routes for one in some)


def clock_cause(instance: str, offset: int) -> MismatchCause:
    """Return the sentence on a clock."""
    minutes = abs(offset) // _MINUTE
    amount = f"{minutes} minutes" if minutes < 60 else f"{minutes / 60:g} hours"
    direction = "ahead" if offset > 0 else "behind"
    text = (
        f"the clock of instance {quote(instance)} is about {amount} {direction} of the times in the tables: as of"
        " then its observations fit; look at the clock, and at the zones of events and tables"
    )
    return MismatchCause(CauseKind.CLOCK_OFF, text)
