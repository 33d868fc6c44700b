"""The keys that a configuration file may have."""

from collections.abc import Iterable

INPUTS = {
    "routes": True,
    "databases": True,
    "services": True,
    "instances": True,
    "messages": True,
    "dialogs": False,
    "route_requests": False,
    "observed_routing": False,
    "imports": False,
    "unfinished_imports": False,
}
"""The tables of section ``tables``, each with whether it is required."""

KEPT = ("observed_routing", "imports")
"""Those of them that ``import`` keeps and ``resolve`` does not read."""

_LATER = ("imports", "observed_routing", "messages", "dialogs")


def in_reading_order(keys: Iterable[str]) -> list[str]:
    """Return keys of tables in the order in which they are opened: what an import commits last comes first.

    So no message is decided by routes that are older than the message's import.

    >>> in_reading_order(["routes", "messages", "services", "dialogs"])
    ['messages', 'dialogs', 'routes', 'services']
    """
    return sorted(keys, key=lambda key: _LATER.index(key) if key in _LATER else len(_LATER))


JOURNAL = "unfinished_imports"
"""The table in which an import stores what it is about to write; beside ``imports`` if it is not given."""

OUTPUTS = {
    "resolved_routes": True,
    "new_route_requests": True,
    "rejected_messages": True,
    "runs": True,
    "pending_messages": False,
    "route_candidates": False,
    "message_paths": False,
    "reconciliation": False,
    "current_routes": False,
}
"""The tables and the view of section ``output``, each with whether it is required in every mode."""

CANDIDATES = "route_candidates"
PATHS = "message_paths"
RECONCILIATION = "reconciliation"
VIEW = "current_routes"
"""The view of a catalog in section ``output``, which is no table."""
BESIDE = (CANDIDATES, PATHS, RECONCILIATION)
"""Those of them that ``candidates``, ``trace`` and ``reconcile`` write, and ``resolve`` does not know."""

SECTIONS = ("tables", "output", "resolve", "dynamic_routing", "lint", "lineage", "spark")
