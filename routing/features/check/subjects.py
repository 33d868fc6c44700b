"""What a script's statements and an export's rows are about, and where that is defined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from routing.importing.covered import Unit
from routing.importing.script_rows import ROUTES
from routing.importing.spelling import NameSpelling
from routing.importing.tsql import ScriptStatement
from routing.importing.tsql.script_statements import (
    AlterDatabase,
    AlterDatabaseState,
    AlterEndpoint,
    CreateDatabase,
    CreateEndpoint,
    CreateService,
    DetachDatabase,
    DropDatabase,
    DropEndpoint,
    DropService,
    RenameDatabase,
)
from routing.rules.text import collated
from routing.terms import TableRow

VIEW_OF: dict[type[ScriptStatement], str] = {
    **dict.fromkeys(ROUTES, "routes"),
    **dict.fromkeys((CreateService, DropService), "services"),
    **dict.fromkeys((CreateDatabase, AlterDatabase, AlterDatabaseState, RenameDatabase), "databases"),
    **dict.fromkeys((DropDatabase, DetachDatabase), "databases"),
    **dict.fromkeys((CreateEndpoint, AlterEndpoint, DropEndpoint), "service_broker_endpoints"),
}
"""Which view says all of what statements speak of; the last two are the instance's own."""
_OF_A_DATABASE = ("routes", "services")
# Of all other views one row tells where the whole view is.
_NAMED = (*_OF_A_DATABASE, "databases")
SubjectKey = tuple[str, str, str, str]
"""View, instance, database and name, these as a collation without case compares them; empty for what has none."""
Spot = tuple[str, "int | None"]
"""A file, and the line of a script's statement."""


def subject_of(statement: ScriptStatement, instance: str, spelling: NameSpelling) -> tuple[str, Unit]:
    """Return the view that shows what a statement changes, and whose."""
    view = VIEW_OF[type(statement)]
    if view not in _OF_A_DATABASE or statement.database is None:
        return view, (instance, None)
    return view, (instance, spelling.database(instance, statement.database))


def subject_key(view: str, instance: str, database: str | None, name: str | None) -> SubjectKey:
    """Return the key of what has these names; a database is one of its instance."""
    return view, instance, collated(database or ""), collated(name or "")


def spots_of_export(views: Mapping[str, Sequence[TableRow]]) -> dict[SubjectKey, Spot]:
    """Return the files of an export's rows; that of the first row of a view stands for whose it is, too."""
    spots: dict[SubjectKey, Spot] = {}
    for view, rows in views.items():
        units = {(row["instance_name"], row.get("database_name")): row for row in reversed(rows)}
        for row in rows if view in _NAMED else units.values():
            spot = (row["place"].rpartition(", row ")[0] or row["place"], None)
            for name in (row.get("name"), None):
                spots.setdefault(subject_key(view, row["instance_name"], row.get("database_name"), name), spot)
    return spots


def spots_of_statements(
    statements: Iterable[ScriptStatement], instance: str, spelling: NameSpelling
) -> dict[SubjectKey, Spot]:
    """Return the file and line where statements create or change things; the last one counts."""
    spots: dict[SubjectKey, Spot] = {}
    for one in statements:
        view, (_, database) = subject_of(one, instance, spelling)
        name = one.new_name if isinstance(one, RenameDatabase) else one.name
        spots[subject_key(view, instance, database, name)] = (one.file, one.line)
    return spots
