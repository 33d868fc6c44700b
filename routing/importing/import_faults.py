"""The faults of an import, each phrased once; all of them mean exit code 2 and nothing written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import ConfigError
from routing.delta.import_times import AHEAD
from routing.errors import EnvironmentFault, InputError, join_bounded, quote
from routing.render.wording import format_time
from routing.terms import TableRow

if TYPE_CHECKING:
    from typing_extensions import Self

_NOTHING_WRITTEN = "nothing was written"


def secret_in_address() -> InputError:
    """Return a URI with a password or key in it, which is not shown."""
    return InputError(
        "the address of a file to import seems to contain a secret",
        "remove it; let the platform give access, with a role or a credential provider",
    )


class OtherFileError(InputError):
    """A file that holds something else than an export or a script.

    ``why`` is a phrase, and ``note`` has advice on the file as well. ``view`` is the view that it seems to be of.
    """

    why: str
    note: str
    view: str | None

    @classmethod
    def of_file(
        cls,
        file: str,
        why: str,
        hint: str = _NOTHING_WRITTEN,
        *,
        phrase: str = "cannot be read",
        view: str | None = None,
    ) -> Self:
        """Return the error that a file holds something else."""
        error = cls(f"{quote(file)} {phrase}: {why}", hint)
        error.why, error.view = why, view
        error.note = why if hint == _NOTHING_WRITTEN else f"{why} ({hint})"
        return error


class UnopenedFileError(OtherFileError):
    """A file that the system or its format does not let us read, so that it may hold anything."""


def unreadable_file(file: str, why: str, hint: str | None = None) -> UnopenedFileError:
    """Return the error for a file that cannot be read."""
    return UnopenedFileError.of_file(file, why, hint or _NOTHING_WRITTEN)


def no_statement(file: str, why: str | None) -> InputError:
    """Return a script that is none: ``why`` is the first thing that is wrong with it."""
    return InputError(f"no T-SQL statement is found in {quote(file)}", why or "nothing was written")


def stand_in_missing(file: str, column: str, option: str) -> InputError:
    """Return the error that neither a column nor an option says where or when the rows are from."""
    return InputError(f"{quote(file)} has no column {column}", f"give {option}")


def missing_package(name: str, file: str) -> EnvironmentFault:
    """Return a package that only this kind of file needs."""
    return EnvironmentFault(
        f"{quote(file)} cannot be read: the Python package {name} is missing",
        f"pip install {name}, or export CSV or JSON",
    )


def unknown_view(name: str, views: Sequence[str]) -> InputError:
    """Return the error that import reads no view of this name."""
    return InputError(f"--view {quote(name)} is not a view that import reads", f"it reads {', '.join(views)}")


def older_import(older_parts: Sequence[str]) -> InputError:
    """Return the error that something newer has been imported already."""
    return InputError(
        f"this is older than an earlier import, {join_bounded(older_parts, 'part')}",
        "import older exports first; nothing was written",
    )


def unfit_journal(begun: str, why: str) -> InputError:
    """Return the error for an import that was ended half-way and cannot be completed any more."""
    return InputError(
        f"the import that began at {begun} is not finished and cannot be completed: {why}",
        "drop it with --drop-unfinished, then import complete exports once",
    )


def missing_keys(file: str, keys: Sequence[str]) -> ConfigError:
    """Return the error that the configuration does not name the import's own tables."""
    faults = [f"{key} is missing, which import writes" for key in keys]
    return ConfigError.faults(file, faults)


def not_a_table(key: str, location: str) -> InputError:
    """Return the error that the files at a location are not a Delta table."""
    return InputError(
        f"tables.{key}: {quote(location)} is not empty and is not a Delta table",
        "name another location, or delete the folder if an interrupted import left it",
    )


# Times in the future: a clock or a time zone is wrong.


def latest_time(now: datetime) -> datetime:
    """Return the latest time that an import accepts now."""
    return now + AHEAD


def phrase_to_come(subject: str, at: datetime) -> str:
    """Return the phrase on a time in the future."""
    return f"{subject} is {format_time(at.replace(microsecond=0))}, more than an hour from now"


def find_exports_to_come(rows: Mapping[str, Iterable[TableRow]], now: datetime) -> list[str]:
    """Return a phrase for each file of an export with a time in the future; ``rows`` are those by view."""
    latest, phrases_by_file = latest_time(now), dict[str, str]()
    for of_view in rows.values():
        for row in of_view:
            if row["exported_at"] > latest:
                place = row["place"]
                phrase = phrase_to_come(f"{place}: exported_at", row["exported_at"])
                phrases_by_file.setdefault(place.rpartition(", row ")[0] or place, phrase)
    return list(phrases_by_file.values())


def find_scripts_to_come(times: Iterable[tuple[str, datetime]], now: datetime) -> list[str]:
    """Return a phrase for each script with a time in the future, by its file."""
    return [phrase_to_come(f"{file}: its time", at) for file, at in times if at > latest_time(now)]


def refuse_to_come(phrases: Sequence[str], hint: str) -> None:
    """Raise InputError where there is any."""
    if phrases:
        raise InputError(f"a time is in the future: {join_bounded(phrases, 'file')}", hint)
