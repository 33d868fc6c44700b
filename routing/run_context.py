"""Hold the options, the stage clock and the notes that all steps of a run share, and name a step that failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from math import floor

from routing.errors import RoutingError, StorageError, first_sentence
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE, JsonObject


@dataclass(frozen=True)
class Progress:
    """A stage that begins or has ended. After its end it has its seconds, and the number of rows if known."""

    stage: str
    seconds: float | None = None
    rows: int | None = None

    def __str__(self) -> str:
        return self.stage if self.seconds is None else f"{self.stage}: {self.seconds:.1f} s"

    def fields(self) -> JsonObject:
        """Return the known values for programs, with seconds in whole milliseconds."""
        seconds = None if self.seconds is None else round(self.seconds, 3)
        values = {"stage": self.stage, "seconds": seconds, "rows": self.rows}
        return {name: value for name, value in values.items() if value is not None}


@contextmanager
def reporting_failures(doing: str) -> Iterator[None]:
    """Raise a StorageError that says what the block was doing, for an error from outside this package."""
    try:
        yield
    except RoutingError:
        raise
    except Exception as error:
        raise StorageError.failed(doing, first_sentence(error)) from error


@dataclass
class StageTally:
    """The number of rows of a stage, which the stage sets before it ends."""

    rows: int | None = None


@dataclass
class StageClock:
    """Times the stages of a run, and converts foreign errors inside a stage to a StorageError that names it.

    ``progress`` is called when each stage begins, and when it has ended without an error. ``on_change`` is called
    with the current stage at each begin and end, or with None outside all stages. The seconds of a stage do not
    include those of inner stages.
    """

    progress: Callable[[Progress], None] = lambda stage: None
    on_change: Callable[[str | None], None] = lambda stage: None
    seconds: dict[str, float] = field(default_factory=dict)
    # The seconds of stages that have ended within the current one.
    _within: float = 0.0
    _current: str | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[StageTally]:
        """Measure the block's time. Raises StorageError for an error from outside this package."""
        self.progress(Progress(name))
        begun, tally = time.monotonic(), StageTally()
        before, self._within = self._within, 0.0
        outer, self._current = self._current, name
        try:
            with reporting_failures(f"in stage {name}"):
                self.on_change(name)
                yield tally
                self.on_change(outer)
        finally:
            self._current = outer
        seconds = time.monotonic() - begun
        self._add(name, seconds - self._within, tally.rows)
        self._within = before + seconds

    def _add(self, name: str, seconds: float, rows: int | None) -> None:
        """Add seconds to a stage, in whole milliseconds. A stage that is entered twice counts as one."""
        # If they were rounded up, the stages together would be longer than the run.
        self.seconds[name] = floor((self.seconds.get(name, 0.0) + seconds) * 1000) / 1000
        self.progress(Progress(name, seconds, rows))


@dataclass(frozen=True)
class ResolveOptions:
    """The options for resolving messages, with the names of section ``resolve`` of the configuration.

    ``may_change`` is True if the messages have no versions, so that each pass checks them again.
    """

    run_id: str
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE
    may_change: bool = False


@dataclass(frozen=True)
class RunContext:
    """The options of a run, the clock of its stages, and its notes, which grow until it ends."""

    options: ResolveOptions
    clock: StageClock = field(default_factory=StageClock)
    notes: list[str] = field(default_factory=list)
