"""The keys that a configuration file may have."""

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

JOURNAL = "unfinished_imports"
"""The table in which an import stores what it is about to write; beside ``imports`` if it is not given."""

OUTPUTS = {
    "resolved_routes": True,
    "new_route_requests": True,
    "rejected_messages": True,
    "runs": True,
    "pending_messages": False,
    "message_paths": False,
    "reconciliation": False,
    "current_routes": False,
}
"""The tables and the view of section ``output``, each with whether it is required in every mode."""

PATHS = "message_paths"
RECONCILIATION = "reconciliation"
VIEW = "current_routes"
"""The view of a catalog in section ``output``, which is no table."""
BESIDE = (PATHS, RECONCILIATION)
"""Those of them that ``trace`` and ``reconcile`` write, and ``resolve`` does not know."""

SECTIONS = ("tables", "output", "resolve", "dynamic_routing", "lint", "lineage", "spark")
