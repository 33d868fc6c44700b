"""List the decisions that the rules can reach, for a coverage table."""

from __future__ import annotations

from typing import NamedTuple

from .routes import LOCAL, MIRROR, NETWORK, TRANSPORT


class Cell(NamedTuple):
    """One kind of decision: the step, the tier of the reported route, outcome and reason."""

    step: int | None
    tier: str | None
    outcome: str
    reason: str


NOT_LOCATED = ("BROKER_INSTANCE_NOT_FOUND", "BROKER_DISABLED", "SERVICE_NOT_FOUND")
_ADDRESSES = (
    (MIRROR, "MIRROR_ADDRESS"),
    (NETWORK, "NETWORK_ADDRESS"),
    (TRANSPORT, "TRANSPORT_ADDRESS"),
)


def _reply() -> set[Cell]:
    """List section 1. A database of the instance has the id, so BROKER_INSTANCE_NOT_FOUND cannot occur."""
    return {
        Cell(0, None, "DELIVERED", "LOCAL_SERVICE"),
        Cell(0, None, "DROPPED", "BROKER_DISABLED"),
        Cell(0, None, "DROPPED", "SERVICE_NOT_FOUND"),
    }


def _no_routes() -> set[Cell]:
    """List the decisions without a choice of routes, for either origin."""
    return {
        Cell(None, None, "DELAYED", "SCOPE_BROKER_DISABLED"),
        Cell(4, None, "DELAYED", "ROUTE_REQUESTED"),
        Cell(7, None, "DELAYED", "NO_ROUTE"),
    }


def _choices(arriving: bool) -> set[Cell]:
    """List sections 3 and 4 for one origin: the steps with routes, and step 6 with LOCAL only."""
    unusable = "DROPPED" if arriving else "DELAYED"
    cells: set[Cell] = set()
    for step in (1, 2, 3, 5, 6):
        cells.add(Cell(step, LOCAL, "DELIVERED", "LOCAL_SERVICE"))
        cells |= {Cell(step, LOCAL, unusable, reason) for reason in NOT_LOCATED}
    for step in (1, 2, 3, 5):
        cells.add(Cell(step, TRANSPORT, unusable, "TRANSPORT_ADDRESS_INVALID"))
        for tier, reason in _ADDRESSES:
            cells.add(Cell(step, tier, "FORWARDED" if arriving else "SENT", reason))
            if arriving:
                cells.add(Cell(step, tier, "DROPPED", "FORWARDING_DISABLED"))
                cells.add(Cell(step, tier, "DROPPED", "HOP_LIMIT"))
            # A mirrored route never counts as an own address, so it makes no loop.
            if arriving and tier != MIRROR:
                cells.add(Cell(step, tier, "DROPPED", "ROUTING_LOOP"))
    return cells


def reachable_rerouted_cells() -> set[Cell]:
    """List the cells that a message routed again through msdb can reach, as an arriving one."""
    return _reply() | _no_routes() | _choices(arriving=True)


def reachable_cells() -> set[Cell]:
    """List every (matching_step, tier, outcome, reason) that the rule book can reach."""
    expired = Cell(None, None, "DROPPED", "DIALOG_EXPIRED")
    return reachable_rerouted_cells() | _choices(arriving=False) | {expired}
