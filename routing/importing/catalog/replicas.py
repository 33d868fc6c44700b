"""Find the primary replicas of availability groups, and keep what a database and its replica share once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from routing.errors import quote
from routing.groups import group_pairs
from routing.importing.catalog.typed_rows import MARKER, CatalogExport
from routing.importing.catalog.views import QUEUE
from routing.importing.covered_rows import Unit, unit_of
from routing.terms import ZERO_GUID, TableRow

_SHARED = frozenset([QUEUE, "service_queues", "endpoint_counts"])


class Replicas:
    """The replicas of availability groups by the exported rows of each view."""

    def __init__(self, rows: Mapping[str, Sequence[TableRow]]) -> None:
        self._rows = rows

    @cached_property
    def roles(self) -> Mapping[str, str | None]:
        """The role of each instance in its groups, of those with a single one."""
        rows = (row for row in self._of("availability_replicas") if row["is_local"])
        roles = group_pairs(dict.fromkeys((row["instance_name"], row["role_desc"]) for row in rows))
        return {instance: of_instance[0] for instance, of_instance in roles.items() if len(of_instance) == 1}

    @cached_property
    def primaries(self) -> Mapping[Unit, str | None]:
        """The instance with the primary replica of each database of an availability group."""
        in_groups = (
            (row["group_database_id"], (row["instance_name"], row["name"])) for row in self._databases_in_groups
        )
        replicas = group_pairs(dict.fromkeys(in_groups)).values()
        of_groups = ((units, self.find_primary([name for name, _ in units])) for units in replicas)
        return {unit: primary for units, primary in of_groups for unit in units}

    @cached_property
    def closed(self) -> frozenset[str]:
        """The instances with a database of a group that cannot be read there."""
        return frozenset(row["instance_name"] for row in self._databases_in_groups if not is_readable(row))

    @cached_property
    def _opened(self) -> frozenset[str]:
        return frozenset(row["instance_name"] for row in self._databases_in_groups) - self.closed

    def find_primary(self, names: Collection[str]) -> str | None:
        """Return the primary replica by role, or else the only replica with open databases."""
        by_role = [name for name in names if self.roles.get(name) == "PRIMARY"]
        if len(by_role) == 1:
            return by_role[0]
        opened = [name for name in self._opened.intersection(names) if self.roles.get(name) != "SECONDARY"]
        return opened[0] if len(opened) == 1 else None

    def find_copies(self, units: Collection[Unit]) -> list[Unit]:
        """Return the secondary replicas' databases in ``units`` that repeat those of a primary in ``units``."""
        primaries = ((unit, self.primaries.get(unit)) for unit in units)
        elsewhere = ((unit, primary) for unit, primary in primaries if primary not in (None, unit[0]))
        return sorted((unit for unit, primary in elsewhere if (primary, unit[1]) in units), key=str)

    @cached_property
    def _databases_in_groups(self) -> Sequence[TableRow]:
        return [row for row in self._of("databases") if row["group_database_id"] is not None]

    def _of(self, view: str) -> Iterator[TableRow]:
        return (row for row in self._rows.get(view, ()) if MARKER not in row)


def is_readable(row: TableRow) -> bool:
    """Return True if SQL Server could read the broker instance of a database when it was exported."""
    return bool(row["service_broker_guid"] != ZERO_GUID)


def leave_copies_out(export: CatalogExport) -> Collection[Unit]:
    """Remove the messages and queues of secondary replicas that the primary's export has, with a note.

    Return these secondary replicas' databases.
    """
    units = {unit_of(row) for row in export.rows.get(QUEUE, ())}
    copies = dict.fromkeys(Replicas(export.rows).find_copies(units))
    for view in export.rows.keys() & _SHARED if copies else ():
        rows = group_pairs((unit_of(row) in copies, row) for row in export.rows[view])
        # A marker keeps the database among those that the view was exported of.
        last_rows = {unit_of(row): row for row in rows.get(True, ())}.values()
        export.rows[view] = [*rows.get(False, ()), *({**row, MARKER: True} for row in last_rows)]
    for instance, database in copies:
        place = f"{quote(instance)}, database {quote(database or '')}"
        export.notes.append(f"{place} is a secondary replica: its messages are counted once, at the primary")
    return copies
