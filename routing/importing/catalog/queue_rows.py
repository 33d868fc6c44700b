"""Make rows of queues, and of counted conversation endpoints, from the views of an export."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from routing.importing.covered_rows import Unit, unit_of
from routing.terms import TableRow

SEEN_VIEWS = {"service_queues": "queues", "endpoint_counts": "endpoint_counts"}
"""The views beside the routing that an import stores, each with its table."""
_MONITORS = "dm_broker_queue_monitors"
_OWN = (
    *("instance_name", "database_name", "schema_name", "name", "is_receive_enabled", "is_enqueue_enabled"),
    *("is_activation_enabled", "is_retention_enabled", "activation_procedure", "execute_as_name", "max_readers"),
    *("messages", "exported_at"),
)
_COUNTED = (
    *("instance_name", "database_name", "state", "service_name", "far_service", "is_initiator", "endpoints"),
    "exported_at",
)


def list_queues(
    rows: Mapping[str, Sequence[TableRow]], units: Mapping[str, Collection[Unit]]
) -> Iterator[TableRow]:
    """Yield the queues of an export with their services and readers. ``units`` are those of each view.

    ``tasks_waiting`` is None if the queue monitors of the instance were not exported.
    """
    services: dict[tuple[str, str | None, int], list[str]] = defaultdict(list)
    for row in rows.get("services", ()):
        if row["service_queue_id"] is not None:
            services[(*unit_of(row), row["service_queue_id"])].append(row["name"])
    ids = {(row["instance_name"], row["database_id"]): row["name"] for row in rows.get("databases", ())}
    waiting: Counter[tuple[str, str | None, int]] = Counter()
    states: dict[tuple[str, str | None, int], str | None] = {}
    for row in rows.get(_MONITORS, ()):
        if row["queue_id"] is not None:
            database = ids.get((row["instance_name"], row["database_id"]))
            key = (row["instance_name"], database, row["queue_id"])
            waiting[key] += row["tasks_waiting"] or 0
            states[key] = row["state"]
    for row in rows.get("service_queues", ()):
        if row["name"] is None:
            continue
        key = (*unit_of(row), row["object_id"])
        is_watched = (row["instance_name"], None) in units.get(_MONITORS, ())
        yield {
            **{name: row[name] for name in _OWN},
            "service_names": list(services.get(key, ())),
            "tasks_waiting": waiting[key] if is_watched else None,
            "monitor_state": states.get(key),
        }


def list_counts(rows: Mapping[str, Sequence[TableRow]]) -> Iterator[TableRow]:
    """Yield the numbers of conversation endpoints that the queries exported, by state and services."""
    for row in rows.get("endpoint_counts", ()):
        if row["state"] and row["endpoints"]:
            yield {name: row[name] for name in _COUNTED}
