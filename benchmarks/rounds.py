"""Run rounds in turn after a warm-up, and compare the results before any time counts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar


class Measurable(Protocol):
    """A contender that can be timed."""

    @property
    def name(self) -> str:
        """The name of the contender."""

    def timed(self, out: Path) -> float:
        """Do the work with output in the folder, and return its seconds."""


_M = TypeVar("_M", bound=Measurable)


class Mismatch(Exception):
    """Two contenders came to different results."""


def measure(
    contenders: Sequence[_M],
    results: Path,
    rounds: int,
    compare: Callable[[_M, Path], list[str]],
) -> dict[str, tuple[float, ...]]:
    """Run all in turn, ``rounds`` times after the warm-up, and return the seconds by name.

    ``compare`` gets each contender's first result, which stays until the end. Raises Mismatch with its
    differences.
    """
    shutil.rmtree(results, ignore_errors=True)
    for contender in contenders:
        out = first_result(results, contender.name)
        _timed(contender, out)
        faults = compare(contender, out)
        if faults:
            raise Mismatch(f"{contender.name}: " + "; ".join(faults))
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(1, rounds + 1):
        for contender in contenders:
            out = results / f"{contender.name}-{number}"
            times[contender.name].append(_timed(contender, out))
            shutil.rmtree(out, ignore_errors=True)
    return {name: tuple(seconds) for name, seconds in times.items()}


def first_result(results: Path, name: str) -> Path:
    """The folder of a contender's warm-up."""
    return results / f"{name}-0"


def _timed(contender: Measurable, out: Path) -> float:
    # What the one before has left to be written to disk is not the next one's work.
    os.sync()
    seconds = contender.timed(out)
    sys.stderr.write(f"{out.name}: {seconds:.1f} s\n")
    return seconds
