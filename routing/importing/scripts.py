"""Files of T-SQL, or a text, → scripts; no Spark here, so that a faulty file is reported at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from routing.importing.import_faults import no_statement, unreadable_file
from routing.importing.reach import Reach, on_this_disk
from routing.importing.tsql import ReadScript, read_file, read_script
from routing.render.wording import format_time


def read_scripts(
    files: Sequence[str],
    *,
    instance: str,
    database: str | None = None,
    scripted_at: datetime | None = None,
    variables: Mapping[str, str] | None = None,
    reach: Reach = on_this_disk,
    note: Callable[[str], None] = lambda text: None,
) -> list[ReadScript]:
    """Return the scripts in their order, in which their times do not go back; ``reach`` gives their places.

    The time of each is ``scripted_at``, else its file's own, but no earlier than that of the script before it;
    then ``own_time`` has its own. ``note`` is given a sentence on each that is its file's own. Raises InputError
    for a file that cannot be read, or is no script.
    """
    scripts: list[ReadScript] = []
    for file in files:
        try:
            place = reach(file)
            own_time = scripted_at or datetime.fromtimestamp(place.stat().st_mtime, timezone.utc)
            at = max([own_time, *(last.scripted_at for last in scripts[-1:])])
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
        if at > own_time:
            script = replace(script, own_time=own_time)
        elif scripted_at is None:
            when = format_time(own_time.replace(microsecond=0))
            note(f"{place}: its time is taken to be {when}, the file's own (--scripted-at)")
        scripts.append(_with_statements(script, file))
    return scripts


def read_text(
    text: str,
    *,
    file: str,
    instance: str,
    scripted_at: datetime,
    database: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> ReadScript:
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


def _with_statements(script: ReadScript, file: str) -> ReadScript:
    """Return the script; one that holds no statement at all raises InputError."""
    if script.statement_count == 0 and not script.statements:
        wrong = [f"line {problem.line}: {problem.why}" for problem in script.problems]
        raise no_statement(file, wrong[0] if wrong else None)
    return script
