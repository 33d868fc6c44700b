"""One result set of a file, whatever the tool wrote it as; and the names by which columns are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from routing.errors import InputError
from routing.importing.catalog.views import VIEWS
from routing.importing.import_faults import unreadable_file

# Of a DataRow, PowerShell exports these as well.
_OF_A_DATA_ROW = ("rowerror", "rowstate", "table", "itemarray", "haserrors")
NAMES = frozenset((*(name for view in VIEWS.values() for name in (*view.layout, *view.exported)), *_OF_A_DATA_ROW))
"""The names that make a line a header."""

_SCREEN = 79
"""sqlcmd wraps at 80 characters where nothing else is said; a column of dashes as long as that was wrapped."""

SERVER_SAID = "it is what the server said of an error, no row"
_ERROR = re.compile(r"Msg \d+, *Level \d+, *State \d+\b")
# SQL Server counts rows in the language of the session, as in (5 Zeilen betroffen).
_REMARKS = re.compile(r"\(\d+ [^()\d]+\)|Changed database context to '.*'\.|Completion time: .*")


@dataclass
class ResultSet:
    """One result set: its column names in lower case, and a cell or None for each in every row.

    ``rows`` are (line number, cells by column name); ``rejected`` are (line number, why). ``omits_null`` where a
    row without a column may have had NULL in it.
    """

    columns: tuple[str, ...]
    rows: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    rejected: list[tuple[int, str]] = field(default_factory=list)
    omits_null: bool = False


def lines_of(text: str) -> list[str]:
    """Split a text at the line ends that tools write: others, such as U+2028, may be part of a value."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def is_remark(line: str) -> bool:
    """Return whether a line is blank, or a message of sqlcmd or SSMS between the rows."""
    return not line.strip() or _REMARKS.fullmatch(line.strip()) is not None


def errors_among(lines: Iterable[tuple[int, str]]) -> set[int]:
    """Return the numbers of lines in which the server names an error, and of the lines with its text below."""
    error_lines: set[int] = set()
    was_error = False
    for number, line in lines:
        is_error = _ERROR.match(line.strip()) is not None
        if is_error or was_error:
            error_lines.add(number)
        was_error = is_error
    return error_lines


def are_dashes(line: str) -> bool:
    """Return True if a line is what sqlcmd writes under a header, without a separator."""
    return "-" in line and not line.strip("- ")


def refuse_wrapped(line: str, below: str, file: str) -> None:
    """Raise InputError where dashes go on in the next line; a short name of dashes alone is a value there."""
    is_one_column = " " not in line.strip() and " " not in below.strip()
    if are_dashes(line) and are_dashes(below) and not (is_one_column and len(line) < _SCREEN):
        raise export_again(file, "sqlcmd has wrapped its lines", "-w 65535")


def export_again(file: str, why: str, option: str) -> InputError:
    """Return a file that another option of sqlcmd would have made readable."""
    return unreadable_file(file, why, f"export it again with {option}, or with sbroute import queries")
