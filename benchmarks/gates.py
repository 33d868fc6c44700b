"""Limit the cost of a command to a multiple of its bare process, or to seconds."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.taken import Taken

SPARK, RESOLVE, COPY, POLARS, DUCKDB = "bare-spark", "resolve", "copy", "polars", "duckdb"
LOCAL = "resolve-local"
READER, EXPLAIN, LINT, RUNS = "bare-reader", "explain", "lint", "runs"
GROUP_BY, REPORT, RECONCILE = "group-by", "report", "reconcile"
DIFF, UNCHANGED = "diff", "diff-unchanged"


@dataclass(frozen=True)
class Gate:
    """A limit for a contender.

    ``at_most`` is a multiple of the floor's median, or seconds without a floor. None means no limit. ``seconds``
    are added to the limit for any floor. ``gib`` is the memory limit.
    """

    contender: str
    at_most: float | None
    floor: str | None = None
    seconds: float = 0
    gib: float | None = None


SMALL = (
    Gate(RESOLVE, 1.6, SPARK),
    Gate(LOCAL, 2),
    Gate(EXPLAIN, 4, READER),
    Gate(LINT, 4, READER),
    Gate(RUNS, 4, READER),
)
"""Over the demo's tables."""
LARGE = (
    Gate(RESOLVE, 1.9, COPY),
    Gate(POLARS, None, COPY),
    Gate(DUCKDB, None, COPY),
    Gate(LOCAL, 0.85, POLARS),
    Gate(LOCAL, 1.25, DUCKDB),
    Gate(EXPLAIN, 6),
    Gate(LINT, 20),
    Gate(REPORT, 1.3, GROUP_BY, seconds=5),
    # One observation for each message.
    Gate(RECONCILE, 1, RESOLVE),
    # Other addresses in nearly all routes, then the same tables at another time.
    Gate(DIFF, 35, gib=4.2),
    Gate(UNCHANGED, 10),
)
"""Over 120,000 routes and 10 million messages."""
# There the start of a process, which both share, is a small part of the whole.
_OF_LARGEST = {
    RESOLVE: Gate(RESOLVE, 1.6, COPY),
    DIFF: Gate(DIFF, 130, gib=4.2),
    UNCHANGED: Gate(UNCHANGED, 60),
}
_LARGEST = tuple(_OF_LARGEST.get(gate.contender, gate) for gate in LARGE)


def held_to(messages: int | None) -> tuple[Gate, ...]:
    """Return the gates for this number of messages, or those of the demo for None."""
    if not messages:
        return SMALL
    return _LARGEST if messages >= 100_000_000 else LARGE


@dataclass(frozen=True)
class Line:
    """The cost of a contender: seconds, its median CPU seconds and its highest peak in bytes.

    ``times_floor`` is its median as a multiple of its floor's.
    """

    contender: str
    rounds: tuple[float, ...]
    median: float
    least: float
    most: float
    times_floor: float | None
    cpu: float
    peak: int

    def cells(self) -> tuple[str, ...]:
        """The line as text for a table."""
        seconds = (f"{value:.1f}" for value in (self.median, self.least, self.most))
        times = "-" if self.times_floor is None else f"{self.times_floor:.2f}"
        return (self.contender, *seconds, times, f"{self.cpu:.1f}", f"{self.peak / 2**30:.2f}")


@dataclass(frozen=True)
class Verdict:
    """The limit of a gate and the measured value, both as multiples of a floor or in ``unit``."""

    contender: str
    at_most: float
    floor: str | None
    measured: float
    unit: str = "s"

    @property
    def is_met(self) -> bool:
        """True if the measured value is within the limit."""
        return self.measured <= self.at_most

    def __str__(self) -> str:
        end = "met" if self.is_met else "MISSED"
        if self.floor is None:
            return (
                f"{self.contender}: {self.measured:.1f} {self.unit}, at most {self.at_most:.3g} {self.unit}: {end}"
            )
        return f"{self.contender}: {self.measured:.2f} times {self.floor}, at most {self.at_most:.3g}: {end}"


def names(gates: Sequence[Gate]) -> list[str]:
    """All contenders, floors included."""
    return list(dict.fromkeys(name for gate in gates for name in (gate.floor, gate.contender) if name))


def with_floors(requested: Collection[str], gates: Sequence[Gate]) -> set[str]:
    """Return the requested names with their floors, which their gates need, and the floors of these."""
    floors = {gate.floor for gate in gates if gate.contender in requested and gate.floor} - {*requested}
    return with_floors({*requested, *floors}, gates) if floors else {*requested}


def lines(measurements: Mapping[str, Sequence[Taken]], gates: Sequence[Gate]) -> list[Line]:
    """Return a line for each contender, in the order of measuring. Raises KeyError if a floor was not measured."""
    rounds = {
        name: tuple(measurement.seconds for measurement in of_contender)
        for name, of_contender in measurements.items()
    }
    medians = {name: statistics.median(seconds) for name, seconds in rounds.items()}
    # Of several floors the first is shown.
    floor_gates = [gate for gate in reversed(gates) if gate.floor and gate.contender in rounds]
    floors = {gate.contender: medians[gate.floor] for gate in floor_gates if gate.floor}
    return [
        Line(
            contender=name,
            rounds=seconds,
            median=medians[name],
            least=min(seconds),
            most=max(seconds),
            times_floor=medians[name] / floors[name] if name in floors else None,
            cpu=statistics.median(measurement.cpu for measurement in measurements[name]),
            peak=max(measurement.peak for measurement in measurements[name]),
        )
        for name, seconds in rounds.items()
    ]


def judge(measured: Sequence[Line], gates: Sequence[Gate]) -> list[Verdict]:
    """Return a verdict for each gate with a measured contender."""
    line_by_contender = {line.contender: line for line in measured}
    gates_to_judge = [gate for gate in gates if gate.contender in line_by_contender]
    return [verdict for gate in gates_to_judge for verdict in _verdicts(gate, line_by_contender)]


def _verdicts(gate: Gate, line_by_contender: Mapping[str, Line]) -> Iterator[Verdict]:
    if gate.at_most is not None:
        yield _verdict(gate, line_by_contender)
    if gate.gib is not None:
        yield Verdict(gate.contender, gate.gib, None, line_by_contender[gate.contender].peak / 2**30, "GiB")


def _verdict(gate: Gate, line_by_contender: Mapping[str, Line]) -> Verdict:
    line, at_most = line_by_contender[gate.contender], gate.at_most or 0
    if gate.floor is None or line.times_floor is None:
        return Verdict(gate.contender, at_most, None, line.median)
    floor = line_by_contender[gate.floor].median
    return Verdict(gate.contender, at_most + gate.seconds / floor, gate.floor, line.median / floor)
