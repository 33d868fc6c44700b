"""What following a message yields: hops, ways, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass, field

from routing.rules.columns import names_of, plain_columns
from routing.rules.resolving import Verdict
from routing.terms import Ending, MatchingStep, Outcome, Reason, TableRow


@dataclass(frozen=True)
class HopColumns:
    """The columns of a hop in tables; tables and rows derive from these fields.

    ``scope`` is the database whose routes were searched last, ``address`` the one that the message takes (where it
    goes no further, that of the decision). ``broker_instance`` is the one that it is bound to afterwards, None
    while it is open.
    """

    instance_name: str
    scope: str
    matching_step: MatchingStep | None
    route_name: str | None
    address: str | None
    outcome: Outcome
    reason: Reason
    broker_instance: str | None = None
    rerouted_from: str | None = None


HOP_COLUMNS = names_of(HopColumns)


@dataclass(frozen=True)
class PathHop(HopColumns):
    """The decision of one instance on a message.

    ``reads_address``: the address is that of its own service name. ``verdict`` is what led to it; hops that tables
    show alike are equal, whatever led to them.
    """

    reads_address: bool = False
    verdict: Verdict | None = field(default=None, compare=False, repr=False)

    def plain(self) -> TableRow:
        """Return its columns by name, with values as tables hold them."""
        return plain_columns(self, HOP_COLUMNS)


@dataclass(frozen=True)
class HopPath:
    """One way that a message may take, and where it ends.

    ``reason`` is that of DELIVERED, DELAYED and DROPPED. ``instance`` is where it ends (for LOOP where it comes by
    again), None for LEFT_ESTATE, which has an ``address``. ``database`` is that of DELIVERED.
    """

    hops: tuple[PathHop, ...]
    ending: Ending
    reason: Reason | None = None
    instance: str | None = None
    database: str | None = None
    address: str | None = None

    @property
    def place(self) -> tuple[Ending, str | None, str | None]:
        """What ways agree on: how it ends, and at which instance and database."""
        return self.ending, self.instance, self.database


@dataclass(frozen=True)
class MessageTrace:
    """All ways of a message, the first one by the routes that are reported.

    ``has_multiple_targets``: while the dialog is open, ways that the transport may choose between end at different
    broker ids. ``is_cut``: there are more ways than are followed, and those that are say not enough.
    """

    ways: tuple[HopPath, ...]
    has_multiple_targets: bool = False
    is_cut: bool = False

    @property
    def ending(self) -> Ending:
        """How the first way ends, or TOO_MANY_WAYS."""
        return Ending.TOO_MANY_WAYS if self.is_cut else self.ways[0].ending

    @property
    def ways_agree(self) -> bool | None:
        """Whether all end alike at one instance and database; None where those that are not followed tell."""
        agree = len({path.place for path in self.ways}) == 1
        return None if agree and self.is_cut else agree

    @property
    def delivered(self) -> HopPath | None:
        """The first way that ends DELIVERED."""
        return next((path for path in self.ways if path.ending is Ending.DELIVERED), None)
