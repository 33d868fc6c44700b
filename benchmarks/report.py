"""What was measured, as lines and ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.rounds import Measured

COPY, RESOLVE, NAIVE = "copy", "resolve", "naive"
_COMPARED = ((RESOLVE, COPY), (NAIVE, RESOLVE))


@dataclass(frozen=True)
class Line:
    """One contender. Times in seconds, peak in bytes; None where it was not measured.

    times_copy, times_resolve: its median as a multiple of theirs. whole_process: from the start of a process
    to its end. peak: of that process.
    """

    contender: str
    rounds: tuple[float, ...]
    median: float
    messages_a_second: int
    times_copy: float | None
    times_resolve: float | None
    whole_process: float | None
    peak: int | None

    def cells(self) -> tuple[str, ...]:
        """The line as text for a table."""
        return (
            self.contender,
            f"{self.median:.1f}",
            f"{self.messages_a_second:,}",
            _text(self.times_copy, 2),
            _text(self.times_resolve, 2),
            _text(self.whole_process, 1),
            _text(None if self.peak is None else self.peak / 2**30, 2),
        )


def _text(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def lines(
    times: Mapping[str, Measured], messages: int, whole: Mapping[str, float], peaks: Mapping[str, int]
) -> list[Line]:
    """A line for each contender, the fastest first."""
    medians = {name: measured.median for name, measured in times.items()}
    return [
        Line(
            contender=name,
            rounds=times[name].rounds,
            median=median,
            messages_a_second=int(messages / median),
            times_copy=_times(median, medians.get(COPY)),
            times_resolve=_times(median, medians.get(RESOLVE)),
            whole_process=whole.get(name),
            peak=peaks.get(name),
        )
        for name, median in sorted(medians.items(), key=lambda item: item[1])
    ]


def _times(median: float, other: float | None) -> float | None:
    return None if other is None else median / other


def ratios(measured: Sequence[Line]) -> dict[str, float]:
    """The two ratios that a change must keep, of the medians, where they were measured."""
    return _ratios({line.contender: line.median for line in measured})


def best_ratios(measured: Sequence[Line]) -> dict[str, float]:
    """The same of each contender's best round: what else a machine does makes rounds slower, never faster."""
    return _ratios({line.contender: min(line.rounds) for line in measured})


def _ratios(seconds: Mapping[str, float]) -> dict[str, float]:
    pairs = [(name, other) for name, other in _COMPARED if name in seconds and other in seconds]
    return {f"{name} / {other}": round(seconds[name] / seconds[other], 3) for name, other in pairs}
