"""A side after T-SQL scripts: what an import of them would make of the tables, in force from its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from routing.errors import quote
from routing.features.diff.sides import OneSide
from routing.importing.history import apply_changes
from routing.importing.import_results import ImportResult
from routing.importing.script_rows import apply_all, changes_of, state_of
from routing.importing.spelling import NameSpelling, say_near_names, say_servers
from routing.importing.tsql import ReadScript
from routing.schemas import INPUTS, ColumnKind
from routing.tables.table_columns import TableColumns
from routing.tables.times import with_moments
from routing.terms import TableRow

_CHANGED = ("databases", "services", "instances", "routes")


def apply_scripts(
    one_side: OneSide, scripts: Sequence[ReadScript], instance: str, label: str
) -> tuple[OneSide, ImportResult]:
    """Return the side once scripts are in force on an instance, and what an import of them would tell.

    Nothing is written. The scripts are of the side's own time. Statements that SQL Server would refuse change
    nothing, and are reported.
    """
    names = [*one_side.settings["instances"].dicts()], [*one_side.settings["databases"].dicts()]
    spelling = NameSpelling.of_tables(*names)
    name = spelling.instance(instance)
    known_rows = [*names[0], *names[1]]
    done = ImportResult(True, counted="statements", notes=say_near_names([name], known_rows))
    servers = list(dict.fromkeys(server for script in scripts for server in script.servers))
    done.notes += say_servers(servers, name, known_rows)
    if all(row["instance_name"] != name for row in known_rows):
        done.notes.append(f"the tables know no instance {quote(name)}: the scripts are tried on a new one")
    instance_rows = {key: _rows_of(one_side.settings[key], key, name) for key in _CHANGED}
    before = state_of(instance_rows, one_side.moment)
    after = apply_all(done, before, scripts)
    settings = dict(one_side.settings)
    for key, changes in changes_of(
        instance_rows, before, after, name, {(name, None): one_side.moment}, set()
    ).items():
        done.count_written(key, changes.counts)
        if changes:
            settings[key] = _put(
                one_side.settings[key], key, name, apply_changes(key, instance_rows[key], changes)
            )
    return replace(one_side, label=label, settings=settings), done


def _rows_of(columns: TableColumns, key: str, instance: str) -> list[TableRow]:
    """Return the rows of an instance, with aware times."""
    times = [field.name for field in INPUTS[key] if field.kind == ColumnKind.TIMESTAMP]
    return with_moments(columns.naming("instance_name", [instance]).dicts(), times)


def _put(columns: TableColumns, key: str, instance: str, rows: Sequence[TableRow]) -> TableColumns:
    """Return the columns with other rows of an instance."""
    others = [place for place, name in enumerate(columns.values["instance_name"]) if name != instance]
    rest, new = columns.take(others), TableColumns.of_rows(rows, INPUTS[key])
    return TableColumns({name: [*rest.values[name], *new.values[name]] for name in INPUTS[key].names})
