"""The order of imports: what is older than the last one, and what comes first (table ``imports``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from routing.importing.catalog.views import VIEWS
from routing.importing.covered import Row, Unit
from routing.importing.faults import older_import

_SUBJECTS = {
    "routes": {"routes"},
    "databases": {"databases"},
    "services": {"services"},
    "service_broker_endpoints": {"instances"},
    "tcp_endpoints": {"addresses"},
    "conversation_endpoints": {"dialogs"},
    "transmission_queue": {"messages"},
}
Units = Mapping[str, Mapping[Unit, datetime]]


def subjects(view_or_file: str, unit: Unit) -> set[str]:
    """What an import of a view or a script speaks of; a script of a database's or of the instance's own."""
    if view_or_file in VIEWS:
        return _SUBJECTS[view_or_file]
    return {"databases", "instances"} if unit[1] is None else {"routes", "services"}


def refuse_older(imports: Sequence[Row], units: Units) -> None:
    """Raises InputError where something later was imported of what these units speak of."""
    faults = []
    for name, of_units in units.items():
        for unit, at in of_units.items():
            last = _find_last(imports, name, unit)
            if last is not None and last["exported_at"] > at:
                faults.append(
                    f"{name} of {_name_unit(unit)} is of {at.isoformat()}, but {last['view_or_file']}"
                    f" of {last['exported_at'].isoformat()} was imported"
                )
    if faults:
        raise older_import(faults)


def _find_last(imports: Iterable[Row], name: str, unit: Unit) -> Row | None:
    speaking = [row for row in imports if subjects(row["view_or_file"], _unit(row)) & subjects(name, unit)]
    return max((row for row in speaking if _unit(row) == unit), key=lambda row: row["exported_at"], default=None)


def _unit(row: Row) -> Unit:
    return row["instance_name"], row["database_name"]


def _name_unit(unit: Unit) -> str:
    return unit[0] if unit[1] is None else f"{unit[0]}, database {unit[1]}"


def find_without_routes(imports: Iterable[Row], instances: Iterable[str]) -> set[str]:
    """The instances whose routes were never imported."""
    with_routes = {
        row["instance_name"] for row in imports if "routes" in subjects(row["view_or_file"], _unit(row))
    }
    return set(instances) - with_routes


def is_known(imports: Iterable[Row], name: str, units: Mapping[Unit, datetime]) -> bool:
    """Whether this very script, of this time, was imported before."""
    times = {_unit(row): row["exported_at"] for row in imports if row["view_or_file"] == name}
    return all(times.get(unit) == at for unit, at in units.items())


def newer_rows(imports: Iterable[Row], units: Units, now: datetime) -> list[Row]:
    """The rows of ``imports`` that are new or of a later time."""
    times = {(_unit(row), row["view_or_file"]): row["exported_at"] for row in imports}
    return [
        {
            "instance_name": unit[0],
            "database_name": unit[1],
            "view_or_file": name,
            "exported_at": at,
            "imported_at": now,
        }
        for name, of_units in units.items()
        for unit, at in of_units.items()
        if times.get((unit, name)) != at
    ]
