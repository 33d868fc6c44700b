"""The order of imports: which are the same, what is older than the last one, what comes first (``imports``)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from routing.importing.catalog.views import VIEWS
from routing.importing.covered import Row, Unit
from routing.importing.faults import older_import
from routing.importing.history import Changes
from routing.terms import ImportKind

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


def rows_of_views(units: Units, now: datetime, digest: Callable[[str, Unit], str]) -> list[Row]:
    """Return the rows of ``imports`` for exported views; ``digest`` is that of a view and a unit."""
    return [
        _row(ImportKind.VIEW, view, unit, at, now, digest(view, unit))
        for view, of_units in units.items()
        for unit, at in of_units.items()
    ]


def rows_of_script(name: str, units: Iterable[Unit], at: datetime, now: datetime, digest: str) -> list[Row]:
    """Return the rows of ``imports`` for a script, called ``name``."""
    return [_row(ImportKind.SCRIPT, name, unit, at, now, digest) for unit in units]


def _row(kind: ImportKind, name: str, unit: Unit, at: datetime, now: datetime, digest: str) -> Row:
    return {
        "instance_name": unit[0],
        "database_name": unit[1],
        "view_or_file": name,
        "exported_at": at,
        "imported_at": now,
        "kind": str(kind),
        "content_digest": digest,
    }


def digest_rows(rows: Iterable[Row], options: Sequence[str] = ()) -> str:
    """Return the digest of the rows of a view, wherever they were read, and of the options that count for them."""
    digest = hashlib.sha256(repr(list(options)).encode("utf-8", "surrogatepass"))
    for row in rows:
        values = [(name, value) for name, value in row.items() if name != "place"]
        digest.update(repr(values).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def digest_script(content_digest: str, *, snapshot: bool) -> str:
    """Return the digest of a script's import: of what was read, and of ``--snapshot``."""
    return hashlib.sha256(f"{content_digest} {snapshot}".encode()).hexdigest()


def is_known(imports: Iterable[Row], rows: Sequence[Row]) -> bool:
    """Return True if this very import of a script was done before: its content, options and time.

    Older releases stored no digest of the content: there the name and the time decide.
    """
    known = {
        (_unit(row), row["view_or_file"], row["exported_at"], row.get("content_digest"))
        for row in imports
        if not is_of_view(row)
    }

    def has(row: Row) -> bool:
        same = (_unit(row), row["view_or_file"], row["exported_at"])
        return (*same, row["content_digest"]) in known or (*same, None) in known

    return all(map(has, rows))


def refuse_older(imports: Sequence[Row], rows: Iterable[Row]) -> None:
    """Raise InputError where something later was imported of what these rows of ``imports`` speak of."""
    faults = find_later(imports, rows)
    if faults:
        raise older_import(faults)


def find_later(imports: Sequence[Row], rows: Iterable[Row]) -> list[str]:
    """Return a phrase for each row of which something later was imported."""
    last: dict[tuple[Unit, str], Row] = {}
    for row in imports:
        for subject in _subjects(row):
            of = last.setdefault((_unit(row), subject), row)
            if row["exported_at"] > of["exported_at"]:
                last[_unit(row), subject] = row
    return list(_phrase_later(last, rows))


def _phrase_later(last: Mapping[tuple[Unit, str], Row], rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        of_subjects = (last.get((_unit(row), subject)) for subject in sorted(_subjects(row)))
        later = [of for of in of_subjects if of is not None and of["exported_at"] > row["exported_at"]]
        if later:
            newest = max(later, key=lambda of: of["exported_at"])
            yield (
                f"{row['view_or_file']} of {_name_unit(_unit(row))} is of {row['exported_at'].isoformat()}, but"
                f" {newest['view_or_file']} of {newest['exported_at'].isoformat()} was imported"
            )


def _subjects(row: Row) -> set[str]:
    """Return what an import of a view or a script speaks of; a script of a database's or of the instance's own."""
    if is_of_view(row):
        return _SUBJECTS[row["view_or_file"]]
    return {"databases", "instances"} if row["database_name"] is None else {"routes", "services"}


def is_of_view(row: Row) -> bool:
    """Return True if a row of ``imports`` is of a view, and not of a script, which may be called like one."""
    return row["view_or_file"] in VIEWS and row.get("kind") in (None, ImportKind.VIEW)


def _unit(row: Row) -> Unit:
    return row["instance_name"], row["database_name"]


def _name_unit(unit: Unit) -> str:
    return unit[0] if unit[1] is None else f"{unit[0]}, database {unit[1]}"


def find_without_routes(imports: Iterable[Row], instances: Iterable[str]) -> set[str]:
    """Return the instances whose routes were never imported."""
    return set(instances) - {row["instance_name"] for row in imports if speaks_of_routes(row)}


def speaks_of_routes(row: Row) -> bool:
    """Return True if a row of ``imports`` is of routes."""
    return "routes" in _subjects(row)


def imports_changes(imports: Iterable[Row], rows: Iterable[Row]) -> Changes:
    """Return what changes in ``imports``: of a view the last import stays alone, of scripts every one.

    The same import again changes nothing; of an older release's that is one of the same view and time.
    """
    of_views = {(_unit(row), row["view_or_file"]): row for row in imports if is_of_view(row)}
    changes = Changes()
    for row in rows:
        old = of_views.get((_unit(row), row["view_or_file"])) if is_of_view(row) else None
        if old is None:
            changes.put.append(row)
            continue
        has_content = old["content_digest"] in (None, row["content_digest"])
        if not has_content or old["exported_at"] != row["exported_at"]:
            changes.put.append(row)
            changes.remove.append(old)
    return changes
