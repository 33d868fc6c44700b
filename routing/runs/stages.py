"""The seconds of a run's stages, and what becomes of Spark's errors in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import floor

from routing.errors import RoutingError, StorageError, first_sentence


class Stages:
    """Seconds per stage; an error of Spark inside a stage becomes a StorageError that names it."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        begun = time.monotonic()
        try:
            yield
        except RoutingError:
            raise
        except Exception as error:
            raise StorageError.failed(f"in stage {name}", first_sentence(error)) from error
        self.add(name, time.monotonic() - begun)

    def add(self, name: str, seconds: float) -> None:
        """Count seconds for a stage, in whole milliseconds; one that is entered twice counts as one."""
        # Rounded up, the stages together would be longer than the run.
        self.seconds[name] = floor((self.seconds.get(name, 0.0) + seconds) * 1000) / 1000
        self._progress(f"{name}: {seconds:.1f} s")
