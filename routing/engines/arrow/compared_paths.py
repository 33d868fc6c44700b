"""Store the paths of messages on two sides. Equal paths share a number, and others differ at a hop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from routing.engines.arrow.interned_rows import (
    GrowingColumn,
    InternedRows,
    PairNumbering,
    number_words,
)
from routing.result_schemas import CHANGED_HOP, ENDING
from routing.rules.network import ServiceAddress
from routing.rules.path_changes import (
    PathEnding,
    PathStep,
    ending_of,
    first_change,
    steps_of,
)
from routing.rules.pathing import PathSender, PathWithReturn
from routing.terms import REJECTED, TableRow

if TYPE_CHECKING:
    import pyarrow

WORDS, HOP = "words", "hop"
_ENDING, _SHARED, _MAY_DIFFER = "ending", "shared", "may_differ"
MayDiffer = Callable[[PathWithReturn, PathSender, ServiceAddress], bool]
"""Returns whether a sender's messages to a service may take a different path on the other side."""


class ComparedPaths:
    """The distinct paths of both sides. Several threads may use it."""

    def __init__(self) -> None:
        import pyarrow

        self.lock = threading.Lock()
        self._paths = InternedRows((), {_ENDING: pyarrow.int64()})
        self._steps_of: list[tuple[int, ...]] = []
        self._steps: dict[PathStep, int] = {}
        self._endings = InternedRows(ENDING, {WORDS: pyarrow.int64()})
        self._words: dict[tuple[str, str | None], int] = {}
        self._pairs = PairNumbering()
        self._place_of = GrowingColumn(pyarrow.int64())
        self._places = InternedRows((name for name in CHANGED_HOP if name != HOP), {HOP: pyarrow.int64()})

    def number(self, ending: PathEnding, steps: Iterable[PathStep]) -> int:
        """Return the number of a path. The caller must hold the lock."""
        path = self._number_ending(ending), tuple([self._number_step(step) for step in steps])
        number = self._paths.number(path, lambda: {_ENDING: path[0]})
        if number == len(self._steps_of):
            self._steps_of.append(path[1])
        return number

    def of_reasons(self, texts: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of the paths of rejected messages, by their codes."""
        with self.lock:
            return number_words(texts, lambda codes: self.number(PathEnding(REJECTED, codes, None, None), ()))

    def ends_of(self, path_numbers: pyarrow.Array) -> pyarrow.Array:
        """Return the numbers of the endings of paths."""
        with self.lock:
            return self._paths.columns()[_ENDING].take(path_numbers)

    def endings(self) -> dict[str, pyarrow.Array]:
        """Return the columns of `ENDING` of all endings so far, and numbers of ending and reason (`WORDS`)."""
        with self.lock:
            return self._endings.columns()

    def find_hops(self, before: pyarrow.Array, after: pyarrow.Array) -> pyarrow.Array:
        """Return for each message the number of the first hop that differs, or null."""
        pairs = self._pairs.number(before, after)
        with self.lock:
            new = self._pairs.pairs[len(self._place_of) :]
            if new:
                steps = list(self._steps)
                for pair in new:
                    self._place_of.add(
                        self._part(*([steps[step] for step in self._steps_of[path]] for path in pair))
                    )
            return self._place_of.array().take(pairs)

    def hops(self) -> dict[str, pyarrow.Array]:
        """Return the columns of `CHANGED_HOP` of the places of all hops so far, in the order of their numbers."""
        with self.lock:
            return self._places.columns()

    def _part(self, before: list[PathStep], after: list[PathStep]) -> int | None:
        """Return the number of the first hop that differs in two paths, or None if a side rejects the messages."""
        place = first_change(before, after) if before and after else None
        return None if place is None else self._places.number(place, place._asdict)

    def _number_step(self, step: PathStep) -> int:
        return self._steps.setdefault(step, len(self._steps))

    def _number_ending(self, ending: PathEnding) -> int:
        def values() -> TableRow:
            words = ending.ending, ending.ending_reason
            return {**ending._asdict(), WORDS: self._words.setdefault(words, len(self._words))}

        return self._endings.number(ending, values)


class SidePaths:
    """The paths of one side, as a `path_numbers.PathStore`. Without ``may_differ``, no path may differ."""

    def __init__(self, paths: ComparedPaths, may_differ: MayDiffer | None) -> None:
        import pyarrow

        self.lock = paths.lock
        self._paths, self._may_differ = paths, may_differ
        self._rows = InternedRows((), {_SHARED: pyarrow.int64(), _MAY_DIFFER: pyarrow.bool_()})

    def number(self, path: PathWithReturn, sender: PathSender | None, to: ServiceAddress | None) -> int:
        """Return the number of a path of a sender's messages to a service. Without these no path may differ."""
        may_differ = False
        if self._may_differ is not None and sender is not None and to is not None:
            may_differ = self._may_differ(path, sender, to)
        shared = self._paths.number(ending_of(path.judged), steps_of(path.judged))
        return self._rows.number((shared, may_differ), lambda: {_SHARED: shared, _MAY_DIFFER: may_differ})

    def shared(self) -> pyarrow.Array:
        """Map this side's numbers of paths to the numbers that both sides share."""
        with self.lock:
            return self._rows.columns()[_SHARED]

    def may_differ(self) -> pyarrow.Array:
        """Return for each number whether messages may take a different path on the other side."""
        with self.lock:
            return self._rows.columns()[_MAY_DIFFER]
