"""What the tests' own walk yields: hops, ways, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .joint import Joint


@dataclass(frozen=True)
class Hop:
    """What an instance does with a message; `broker` is the id that it is bound to from there on."""

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
    """One way and where it ends; `target` is the id of the database that it is delivered to."""

    hops: tuple[Hop, ...]
    end: str
    reason: str | None = None
    instance: str | None = None
    database: str | None = None
    address: str | None = None
    target: str | None = None
    choices: tuple[tuple[int, ...], ...] = ()
    """The places, each by the branches that lead there, at which the transport chose for an open dialog."""


@dataclass(frozen=True)
class Trace:
    """All ways of a message; of too many the first hundred, and `is_cut`."""

    ways: tuple[Way, ...]
    is_cut: bool

    @property
    def end(self) -> str:
        """How it ends by the routes that are reported."""
        return "TOO_MANY_WAYS" if self.is_cut else self.ways[0].end

    @property
    def ways_agree(self) -> bool | None:
        """Tell whether all ways have one end, instance and database; null where unknown ways decide."""
        first = self.ways[0]
        for way in self.ways:
            if (way.end, way.instance, way.database) != (first.end, first.instance, first.database):
                return False
        return None if self.is_cut else True

    @property
    def multiple_targets(self) -> bool:
        """Tell whether ways past one choice of an open dialog are delivered to different broker instances."""
        targets: dict[tuple[int, ...], set[str | None]] = {}
        for way in self.ways:
            if way.end == "DELIVERED":
                for choice in way.choices:
                    targets.setdefault(choice, set()).add(way.target)
        return any(len(ids) > 1 for ids in targets.values())


@dataclass(frozen=True)
class Path:
    """A message's ways, and the reply's: null where nothing was delivered, or nobody knows whom to answer.

    `joint` is the end over all ways there and back; `answers` are the replies from each place that they reach.
    """

    there: Trace
    back: Trace | None
    back_end: str | None
    joint: Joint
    answers: tuple[Trace, ...] = ()
