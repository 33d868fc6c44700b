"""What a command may take: so many times what the bare process beside it takes, or so many seconds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SPARK, RESOLVE = "bare-spark", "resolve"
READER, EXPLAIN, LINT, RUNS = "bare-reader", "explain", "lint", "runs"


@dataclass(frozen=True)
class Gate:
    """``at_most`` is a multiple of the floor's median, or seconds where there is no floor."""

    contender: str
    at_most: float
    floor: str | None = None


SMALL = (Gate(RESOLVE, 1.6, SPARK), Gate(EXPLAIN, 4, READER), Gate(LINT, 4, READER), Gate(RUNS, 4, READER))
"""Over the demo's tables."""
LARGE = (Gate(EXPLAIN, 6), Gate(LINT, 20))
"""Over 120,000 routes and 10 million messages."""


@dataclass(frozen=True)
class Line:
    """What a contender took, in seconds; times_floor is its median in multiples of its floor's."""

    contender: str
    rounds: tuple[float, ...]
    median: float
    least: float
    most: float
    times_floor: float | None

    def cells(self) -> tuple[str, ...]:
        """The line as text for a table."""
        seconds = (f"{value:.1f}" for value in (self.median, self.least, self.most))
        return (self.contender, *seconds, "-" if self.times_floor is None else f"{self.times_floor:.2f}")


@dataclass(frozen=True)
class Verdict:
    """A gate beside what was measured, in the gate's unit."""

    gate: Gate
    measured: float

    @property
    def is_met(self) -> bool:
        """Whether it is at most what it may be."""
        return self.measured <= self.gate.at_most

    def __str__(self) -> str:
        name, floor, end = self.gate.contender, self.gate.floor, "met" if self.is_met else "MISSED"
        if floor is None:
            return f"{name}: {self.measured:.1f} s, at most {self.gate.at_most:g} s: {end}"
        return f"{name}: {self.measured:.2f} times {floor}, at most {self.gate.at_most:g}: {end}"


def wanted_with_floors(wanted: Sequence[str], gates: Sequence[Gate]) -> list[str]:
    """The names asked for, each after its floor, without which it cannot be judged."""
    pairs = [(gate.floor, gate.contender) for gate in gates]
    names = [name for floor, contender in pairs if contender in wanted for name in (floor, contender) if name]
    return list(dict.fromkeys([*names, *wanted]))


def lines(rounds: Mapping[str, tuple[float, ...]], gates: Sequence[Gate]) -> list[Line]:
    """A line for each contender, in the order of measuring. Raises KeyError where a floor was not measured."""
    medians = {name: statistics.median(seconds) for name, seconds in rounds.items()}
    floors = {gate.contender: medians[gate.floor] for gate in gates if gate.floor and gate.contender in rounds}
    return [
        Line(
            contender=name,
            rounds=seconds,
            median=medians[name],
            least=min(seconds),
            most=max(seconds),
            times_floor=medians[name] / floors[name] if name in floors else None,
        )
        for name, seconds in rounds.items()
    ]


def judge(measured: Sequence[Line], gates: Sequence[Gate]) -> list[Verdict]:
    """A verdict for each gate whose contender was measured."""
    found = {line.contender: line for line in measured}
    judged = [(gate, found[gate.contender]) for gate in gates if gate.contender in found]
    return [Verdict(gate, line.median if line.times_floor is None else line.times_floor) for gate, line in judged]
