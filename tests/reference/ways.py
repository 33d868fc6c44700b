"""The results of following a message in tests: hops, paths and their combinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .joint import Joint


@dataclass(frozen=True)
class Hop:
    """The action of an instance on a message. `broker` is the broker instance of the message from then on."""

    instance: str
    scope: str
    step: int | None
    route: str | None
    address: str | None
    outcome: str
    reason: str
    broker: str | None
    rerouted_from: str | None


@dataclass(frozen=True)
class Way:
    """One path and its end. `target` is the id of the database with the delivery."""

    hops: tuple[Hop, ...]
    end: str
    reason: str | None = None
    instance: str | None = None
    database: str | None = None
    address: str | None = None
    target: str | None = None
    choices: tuple[tuple[int, ...], ...] = ()
    """The points at which the transport chose for an open dialog, each as the branches that lead to it."""


@dataclass(frozen=True)
class Trace:
    """All paths of a message, or the first hundred with `is_cut`."""

    ways: tuple[Way, ...]
    is_cut: bool

    @property
    def end(self) -> str:
        """The end of the path over the reported routes."""
        return "TOO_MANY_WAYS" if self.is_cut else self.ways[0].end

    @property
    def ways_agree(self) -> bool | None:
        """Return whether all paths have the same end, instance and database, or None if unknown paths decide."""
        first = self.ways[0]
        for way in self.ways:
            if (way.end, way.instance, way.database) != (first.end, first.instance, first.database):
                return False
        return None if self.is_cut else True

    @property
    def multiple_targets(self) -> bool:
        """Return whether paths after one choice of an open dialog reach different broker instances."""
        targets: dict[tuple[int, ...], set[str | None]] = {}
        for way in self.ways:
            if way.end == "DELIVERED":
                for choice in way.choices:
                    targets.setdefault(choice, set()).add(way.target)
        return any(len(ids) > 1 for ids in targets.values())


@dataclass(frozen=True)
class Path:
    """The paths of a message and of its reply, which are None without a delivery or a known receiver.

    `joint` is the end over all paths in both directions. `answers` has the replies from each reached place.
    """

    there: Trace
    back: Trace | None
    back_end: str | None
    joint: Joint
    answers: tuple[Trace, ...] = ()
