"""Dialogs as an export has them × as they are stored → the rows that change; pure Python."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from routing.importing.covered import Unit
from routing.importing.history import TableChanges
from routing.importing.keyed import ON, key_of
from routing.rules.text import fold
from routing.terms import TableRow


def dialog_changes(
    exported: Iterable[TableRow], stored: Iterable[TableRow], covered: Collection[Unit]
) -> TableChanges:
    """Find the changes that leave covered databases exactly the exported dialogs; ids are folded.

    An acknowledgement whose time is stored stays, and the exported broker id is then its id; else that id holds as
    of the export.
    """
    stored_by_key = {key_of("dialogs", row): row for row in stored}
    changes = TableChanges()
    for row in exported:
        old = stored_by_key.pop(key_of("dialogs", row), None)
        new = row if old is None else _keep_acknowledgement(row, old)
        if old is not None and all(old[name] == new[name] for name in new if name not in ON["dialogs"]):
            changes.counts["unchanged"] += 1
            continue
        changes.put.append(new)
        changes.counts["added" if old is None else "changed"] += 1
    for row in stored_by_key.values():
        if (row["instance_name"], row["database_name"]) in covered:
            changes.remove.append(row)
            changes.counts["removed"] += 1
    return changes


def _keep_acknowledgement(row: TableRow, old: TableRow) -> TableRow:
    """Return an exported dialog with what is stored of its acknowledgement."""
    if old["acknowledged_at"] is None:
        return row
    far, by = row["far_broker_instance"], old["acknowledged_broker_instance"]
    # Whom BEGIN DIALOG named is no longer in the export once somebody has acknowledged.
    is_its_id = by is None or (far is not None and fold(far) == fold(by))
    return {
        **row,
        "far_broker_instance": old["far_broker_instance"] if is_its_id else far,
        "acknowledged_at": old["acknowledged_at"],
        "acknowledged_broker_instance": far if by is None else by,
    }
