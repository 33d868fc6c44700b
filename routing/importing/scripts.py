"""Files of T-SQL, or a text, → scripts; no Spark here, so that a file at fault is told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from routing.errors import InputError, quote
from routing.importing.faults import no_statement, unreadable_file
from routing.importing.reach import Reach, on_this_disk
from routing.importing.tsql import Script, read_file, read_script


def read_scripts(
    files: Sequence[str],
    *,
    instance: str,
    database: str | None = None,
    scripted_at: datetime | None = None,
    variables: Mapping[str, str] | None = None,
    reach: Reach = on_this_disk,
) -> list[Script]:
    """The scripts in their order; ``reach`` gives their places.

    Raises InputError for a file that cannot be read, or is no script.
    """
    names = [Path(file).name for file in files]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(f"two scripts are called {quote(doubled[0])}", "import them one after the other")
    scripts = []
    for file in files:
        try:
            script = read_file(
                reach(file),
                scripted_at=scripted_at,
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


def read_text(
    text: str,
    *,
    file: str,
    instance: str,
    scripted_at: datetime,
    database: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Script:
    """A script that lies in no file; ``file`` is what it is called, ``scripted_at`` is aware.

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
    """A script that has any. Raises InputError."""
    if script.found == 0:
        wrong = [f"line {problem.line}: {problem.why}" for problem in script.problems]
        raise no_statement(file, wrong[0] if wrong else None)
    return script
