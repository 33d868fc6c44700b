"""Files of T-SQL, or a text, → scripts; no Spark here, so that a file at fault is told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone

from routing.importing.faults import no_statement, unreadable_file
from routing.importing.reach import Place, Reach, on_this_disk
from routing.importing.tsql import Script, read_file, read_script


def read_scripts(
    files: Sequence[str],
    *,
    instance: str,
    database: str | None = None,
    scripted_at: datetime | None = None,
    variables: Mapping[str, str] | None = None,
    reach: Reach = on_this_disk,
    note: Callable[[str], None] = lambda text: None,
) -> list[Script]:
    """Return the scripts in their order, in which their times do not go back; ``reach`` gives their places.

    The time of each is ``scripted_at``, else its file's own, but no earlier than that of the script before it.
    ``note`` is given a sentence on each that is not ``scripted_at``. Raises InputError for a file that cannot be
    read, or is no script.
    """
    scripts: list[Script] = []
    for file in files:
        try:
            place = reach(file)
            at = scripted_at or _time_of(place, scripts[-1:], note)
            script = read_file(
                place,
                scripted_at=at,
                database=database,
                instance=instance,
                variables=variables,
            )
        except OSError as error:
            raise unreadable_file(file, error.strerror or str(error)) from error
        except ValueError as error:
            raise unreadable_file(file, str(error)) from error
        scripts.append(_with_statements(script, file))
    return scripts


def _time_of(place: Place, before: Sequence[Script], note: Callable[[str], None]) -> datetime:
    """Return the time of a script's file, or that of the script before it where this is later."""
    at = datetime.fromtimestamp(place.stat().st_mtime, timezone.utc)
    own = at.isoformat(timespec="seconds")
    for last in before:
        if last.scripted_at > at:
            note(
                f"{place}: its own time, {own}, lies before that of {last.file}, which comes before it and whose"
                f" time is taken, {last.scripted_at.isoformat(timespec='seconds')} (--scripted-at)"
            )
            return last.scripted_at
    note(f"{place}: its time is taken to be {own}, the file's own (--scripted-at)")
    return at


def read_text(
    text: str,
    *,
    file: str,
    instance: str,
    scripted_at: datetime,
    database: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Script:
    """Return a script that lies in no file; ``file`` is what it is called, ``scripted_at`` is aware.

    Raises InputError where it holds no statement.
    """
    script = read_script(
        text,
        file=file,
        scripted_at=scripted_at,
        database=database,
        instance=instance,
        variables=variables,
    )
    return _with_statements(script, file)


def _with_statements(script: Script, file: str) -> Script:
    """Return the script; one that holds no statement at all raises InputError."""
    if script.found == 0 and not script.statements:
        wrong = [f"line {problem.line}: {problem.why}" for problem in script.problems]
        raise no_statement(file, wrong[0] if wrong else None)
    return script
