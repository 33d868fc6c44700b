"""The blocks of a document: a command states its result in them, and `routing.render` writes them.

A document is a sequence of blocks. Text in it is data: the writer replaces what could move a cursor or hide, and
nothing in it is markup. Statements are T-SQL to paste: the writer does not wrap, shorten or colour them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class Tone(str, Enum):
    """The emphasis of a text: colour and weight on a terminal."""

    STRONG = "strong"
    GOOD = "good"
    WAITING = "waiting"
    BAD = "bad"
    QUIET = "quiet"


@dataclass(frozen=True)
class TonedText:
    """A part of a sentence that stands out."""

    text: str
    tone: Tone


Words = str | TonedText | Sequence[str | TonedText]
"""The words of a sentence: a text, or parts of which some stand out; parts follow each other without spaces."""
Cell = str | int | float | bool | None | datetime | timedelta | TonedText
"""A value of a table: writers word numbers, times and durations, and print None as "-"."""


@dataclass(frozen=True)
class DocumentHeading:
    """The title of what follows. Level 1 is the document's own, 2 a section, 3 a part of a section."""

    words: Words
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences; ``indent`` is its depth below what it belongs to.

    ``hang`` is how much deeper the lines after its first begin, where lines of one kind follow each other.
    """

    words: Words
    indent: int = 0
    hang: int = 0


@dataclass(frozen=True)
class ListItem:
    """An item of a list: the lines after its first begin under the text, not under the bullet.

    ``bullet`` is what stands before it, such as "1." or "-"; ``indent`` its depth.
    """

    words: Words
    bullet: str = "-"
    indent: int = 0


@dataclass(frozen=True)
class LabelledFact:
    """A labelled sentence, such as "since: 8 h 48 min (2026-01-05T09:12:03Z)"."""

    label: str
    words: Words
    indent: int = 0


@dataclass(frozen=True)
class SqlStatement:
    """T-SQL, or a command line, to paste, with its line breaks.

    ``purpose`` says where it is run and what it does: a comment before it where statements are printed alone.
    ``indent`` is the depth at which text shows it. ``server`` is what sqlcmd's ``:CONNECT`` names before it, or a
    place ``<…>`` for a name that it cannot take; None where the statement is for no server.
    """

    text: str
    purpose: str = ""
    indent: int = 0
    server: str | None = None


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; numbers are aligned to the right."""

    name: str
    is_number: bool = False


@dataclass(frozen=True)
class DataTable:
    """A table; a row has a value for each column. ``more`` rows are not among these.

    On a terminal that is too narrow, the writer states a column that is equal in all rows once, above the table,
    then lets texts go on in the next line, and at last prints each row as a list of its values.
    """

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    more: int = 0


Block = DocumentHeading | Paragraph | ListItem | LabelledFact | SqlStatement | DataTable
Document = Sequence[Block]


def make_columns(names: Sequence[str], numbers: Sequence[str] = ()) -> list[TableColumn]:
    """Return columns by their names; those in ``numbers`` are numbers."""
    return [TableColumn(name, name in numbers) for name in names]
