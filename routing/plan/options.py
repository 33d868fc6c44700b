"""How messages are resolved, whichever engine does it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE


@dataclass(frozen=True)
class ResolveOptions:
    """The options of resolving messages; the same words as section ``resolve`` of the configuration.

    ``may_change``: the messages have no versions, so that each pass checks them anew.
    """

    run_id: str
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE
    may_change: bool = False
