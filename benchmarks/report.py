"""Report measurements as lines and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.gates import COPY, RESOLVE

NAIVE = "naive"
_COMPARED = ((RESOLVE, COPY), (NAIVE, RESOLVE))


@dataclass(frozen=True)
class Line:
    """One contender, with times in seconds.

    ``times_copy`` and ``times_resolve`` are its median as a multiple of theirs, or None if that was not measured.
    """

    contender: str
    rounds: tuple[float, ...]
    median: float
    messages_a_second: int
    times_copy: float | None
    times_resolve: float | None

    def cells(self) -> tuple[str, ...]:
        """The line as text for a table."""
        return (
            self.contender,
            f"{self.median:.1f}",
            f"{self.messages_a_second:,}",
            *("-" if times is None else f"{times:.2f}" for times in (self.times_copy, self.times_resolve)),
        )


def lines(rounds: Mapping[str, tuple[float, ...]], messages: int) -> list[Line]:
    """A line for each contender, the fastest first."""
    medians = {name: statistics.median(seconds) for name, seconds in rounds.items()}
    return [
        Line(
            contender=name,
            rounds=rounds[name],
            median=median,
            messages_a_second=int(messages / median),
            times_copy=_times(median, medians.get(COPY)),
            times_resolve=_times(median, medians.get(RESOLVE)),
        )
        for name, median in sorted(medians.items(), key=lambda item: item[1])
    ]


def _times(median: float, floor_median: float | None) -> float | None:
    return None if floor_median is None else median / floor_median


def ratios(measured: Sequence[Line]) -> dict[str, float]:
    """Return the two ratios that a change must keep, each as the median of the rounds, if they were measured.

    Contenders of one round share the load of the machine, and one odd round does not move a median of three.
    """
    rounds = {line.contender: line.rounds for line in measured}
    return {
        f"{name} / {other}": round(
            statistics.median(
                seconds / other_seconds for seconds, other_seconds in zip(rounds[name], rounds[other], strict=True)
            ),
            3,
        )
        for name, other in _COMPARED
        if name in rounds and other in rounds
    }
