"""The seconds of a run's stages, and what becomes of Spark's errors in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import floor

from routing.errors import RoutingError, StorageError, first_sentence
from routing.terms import JsonObject


@dataclass(frozen=True)
class Progress:
    """A stage that begins; once it has ended, with its seconds, and how many rows it was about, where known."""

    stage: str
    seconds: float | None = None
    rows: int | None = None

    def __str__(self) -> str:
        return self.stage if self.seconds is None else f"{self.stage}: {self.seconds:.1f} s"

    def fields(self) -> JsonObject:
        """Return the progress for programs, seconds in whole milliseconds; without unknown values."""
        seconds = None if self.seconds is None else round(self.seconds, 3)
        values = {"stage": self.stage, "seconds": seconds, "rows": self.rows}
        return {name: value for name, value in values.items() if value is not None}


@dataclass
class StageTally:
    """The number of rows of a stage, which the stage sets before it ends."""

    rows: int | None = None


class UntimedStages:
    """The stages of what nobody times; errors stay as they are."""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageTally]:
        """Run the block without timing it."""
        yield StageTally()


class Stages:
    """Seconds per stage; an error of Spark inside a stage becomes a StorageError that names it.

    ``progress`` is called with each stage twice, when it begins and when it has ended; of one that fails no end.
    The seconds of a stage within another are its own alone.
    """

    def __init__(self, progress: Callable[[Progress], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        # Of stages that have ended within the one that is under way.
        self._within = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[StageTally]:
        """Measure the block's time; a failure becomes StorageError."""
        self._progress(Progress(name))
        begun, tally = time.monotonic(), StageTally()
        before, self._within = self._within, 0.0
        try:
            yield tally
        except RoutingError:
            raise
        except Exception as error:
            raise StorageError.failed(f"in stage {name}", first_sentence(error)) from error
        seconds = time.monotonic() - begun
        self._add(name, seconds - self._within, tally.rows)
        self._within = before + seconds

    def _add(self, name: str, seconds: float, rows: int | None) -> None:
        """Count seconds for a stage, in whole milliseconds; one that is entered twice counts as one."""
        # Rounded up, the stages together would be longer than the run.
        self.seconds[name] = floor((self.seconds.get(name, 0.0) + seconds) * 1000) / 1000
        self._progress(Progress(name, seconds, rows))
