"""Split a script's lines into batches: ``GO``, the sqlcmd commands, ``$(name)`` variables and placeholders.

A command needs its own line, which must begin outside strings and comments. Variables are replaced in code,
strings and names, but not in comments. ``:setvar`` takes precedence over the caller's values, as in sqlcmd.
Placeholders of migration tools are replaced too, but only by the caller's values. A variable without a value is
marked, so that the statement with it can be refused.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from routing.importing.tsql.script_statements import StatementProblem, phrase_unknown, quote
from routing.importing.tsql.servers import is_server, read_server
from routing.importing.tsql.tokens import CODE, COMMENTS, TextMode, TextSegment, segments
from routing.importing.tsql.vocabulary import (
    VARIABLE,
    as_written,
    find_unknown_variable,
    mark_unknown,
    name_of_variable,
    speaks_of_routing,
)

Include = Callable[[str, str], tuple[str, str]]
"""The file of ``:r``: (the including file, the path as written) → (its name, its text)."""

_DEEPEST_INCLUDE, _MOST_INCLUDES = 16, 1000
# The total length of all replaced variables in a script and its files. A variable that contains itself twice
# doubles with each line.
_MOST_FILLED_IN = 1_000_000
_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME_BEFORE = re.compile(r"\w")
_PLACEHOLDER_SIGNS = ("$", "{", "<#=")
_COMMAND = re.compile(r"\s*:([A-Za-z]+)\b(.*)", re.DOTALL)
_SYSTEM = re.compile(r"\s*:?!!")
_LEAVE = re.compile(r"\s*:?(?:EXIT|QUIT)(.*)", re.IGNORECASE | re.DOTALL)
_SETTING = re.compile(r'(\S+)(?:\s+("(?:[^"]|"")*"|\S+))?\s*(?:--.*)?')
_WITHOUT_EFFECT = {"ed", "error", "help", "list", "listvar", "out", "perftrace", "serverlist", "xml"}


class LinePlaces:
    """The file and line of each row of a text."""

    __slots__ = ("_rows", "_stretches")

    def __init__(self) -> None:
        self._rows = 0
        # The beginning of rows with consecutive lines: the first row, the file, the first line.
        self._stretches: list[tuple[int, str, int]] = []

    def add(self, file: str, line: int) -> None:
        """Add a row."""
        if not self._stretches or self[self._rows] != (file, line):
            self._stretches.append((self._rows, file, line))
        self._rows += 1

    def __getitem__(self, row: int) -> tuple[str, int]:
        first, file, line = self._stretches[bisect_right(self._stretches, row, key=itemgetter(0)) - 1]
        return file, line + row - first


@dataclass(frozen=True, slots=True)
class Changeset:
    """A changeset of Liquibase: its name and place.

    ``selector`` has its context and labels. ``why_perhaps`` is the condition that decides if it runs, or None.
    With ``ends_update``, an error in it ends the update.
    """

    name: str
    place: tuple[str, int]
    selector: str = ""
    why_perhaps: str | None = None
    ends_update: bool = True


@dataclass(frozen=True, slots=True)
class SqlBatch:
    """A batch as the server gets it, with the file and line of each of its lines.

    ``server`` is the name in the last ``:connect``, as from `read_server`, or None for the script's own server.
    ``connection`` counts these. With ``exits``, an error in it ends the script because of ``:on error exit``.
    """

    text: str
    places: LinePlaces
    server: str | None = None
    exits: bool = False
    connection: int = 0
    changeset: Changeset | None = None


class SourceText(NamedTuple):
    """A text that runs as a part of a script: the file that it is from, and its first line there."""

    text: str
    file: str
    line: int = 1


TakeBatch = Callable[[SqlBatch | StatementProblem], None]
"""Takes each batch, and each problem of the commands between batches."""


def read_batches(
    sources: Iterable[SourceText], variables: Mapping[str, str], include: Include | None, take: TakeBatch
) -> None:
    """Call ``take`` with each batch of a script's texts, and with each problem of its commands between them."""
    reader = BatchLines(variables, include, take)
    for source in sources:
        reader.read(source)
        reader.flush()


class _PendingText:
    """The growing text of a batch. Rows are joined from time to time, because each takes a hundred bytes."""

    _MOST_ROWS = 1000

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._rows: list[str] = []
        self.places = LinePlaces()

    def add(self, row: str, file: str, line: int) -> None:
        self._rows.append(row)
        self.places.add(file, line)
        if len(self._rows) > self._MOST_ROWS:
            self._parts.append("\n".join(self._rows))
            self._rows.clear()

    def join(self) -> str:
        return "\n".join([*self._parts, *self._rows])


class BatchLines:
    """Reads the lines of a script into batches, as sqlcmd does."""

    def __init__(self, variables: Mapping[str, str], include: Include | None, take: TakeBatch) -> None:
        self._take = take
        self._given_variables = {name.casefold(): value for name, value in variables.items()}
        self._variables = dict(self._given_variables)
        self._include = include
        self._pending = _PendingText()
        self._state = CODE
        self._server: str | None = None
        self._connection = 0
        self._over = self._exits = self._is_lost = False
        self._includes = 0
        self._filled_in = 0

    def read(self, source: SourceText, depth: int = 0) -> None:
        """Read one text. A batch that is open at its end continues in the including file."""
        text, file, first = source
        if depth == 0:
            self._includes = 0
        for number, start, line in _lines_of(text, first):
            if self._over:
                if speaks_of_routing(text[start:]):
                    self._report(file, number, "the rest is not run: the script ended above")
                return
            if self._state == CODE and self._command(line, file, number, depth):
                continue
            self._line(line, file, number)

    def flush(self) -> None:
        """End the batch."""
        pending = self._drop()
        text = pending.join()
        if self._is_lost and speaks_of_routing(text):
            self._report(*pending.places[0], "its server is unknown, because the :connect above cannot be read")
        elif not self._is_lost and text and not text.isspace():
            self._take(SqlBatch(text, pending.places, self._server, self._exits, self._connection))

    def _drop(self) -> _PendingText:
        pending, self._pending, self._state = self._pending, _PendingText(), CODE
        return pending

    def _report(self, file: str, line: int, why: str) -> None:
        self._take(StatementProblem(file, line, why))

    def _line(self, line: str, file: str, number: int) -> None:
        line_segments, state = segments(line, self._state)
        go = _go(_code(line, line_segments)) if self._state == CODE else None
        after = CODE if state.mode is TextMode.LINE_COMMENT else state
        if go is not None:
            self._go(go, file, number)
            if after == CODE:
                return
            # A comment that GO's line leaves open belongs to the next batch.
            line, line_segments = "/*" * after.depth, []
        self._state = after
        for piece in _LINE_END.split(self._replace(line, line_segments, file, number)):
            self._pending.add(piece, file, number)

    def _go(self, count: str, file: str, number: int) -> None:
        """End the batch. Repeating a batch has the same result as one run, and GO 0 skips it."""
        if count.isdecimal() and not any(int(digit) for digit in count):
            self._report(file, number, "GO 0 does not run its batch")
            self._drop()
        self.flush()

    def _replace(self, line: str, line_segments: list[TextSegment], file: str, number: int) -> str:
        if not any(sign in line for sign in _PLACEHOLDER_SIGNS):
            return line
        parts = []
        for part in line_segments:
            piece = line[part.start : part.end]
            is_comment = part.mode in COMMENTS
            is_text = part.mode is TextMode.STRING
            parts.append(piece if is_comment else self._fill(piece, file, number, is_text=is_text))
        return "".join(parts)

    def _fill(self, text: str, file: str, number: int, *, is_text: bool = False) -> str:
        """Return the text with the values of its variables. Reading ends if the values are too long in total."""

        def value(match: re.Match[str]) -> str:
            kind = str(match.lastgroup)
            # A migration tool fills its placeholders before sqlcmd runs: no :setvar does.
            values = self._variables if kind == "sqlcmd" else self._given_variables
            value = values.get(name_of_variable(match).casefold())
            self._filled_in += len(value or "")
            if value is not None and self._filled_in <= _MOST_FILLED_IN:
                return value
            # A name may hold dollar signs: only one that begins so is sure to be a placeholder.
            is_part = kind == "dollars" and not is_text and _NAME_BEFORE.match(text, match.start() - 1)
            return match[0] if is_part else mark_unknown(match)

        was_over = self._filled_in > _MOST_FILLED_IN
        filled = VARIABLE.sub(value, text)
        if self._filled_in > _MOST_FILLED_IN and not was_over:
            why = (
                f"its variables have more than {_MOST_FILLED_IN} characters in total: the script"
                " is read up to here"
            )
            self._report(file, number, why)
            self._over = True
        return filled

    def _command(self, line: str, file: str, number: int, depth: int) -> bool:
        if _SYSTEM.match(line):
            return True
        leave = _LEAVE.fullmatch(line)
        exit_query = leave.group(1).strip() if leave else None
        is_query = exit_query is not None and exit_query.startswith("(") and exit_query.endswith(")")
        if exit_query == "" or is_query:
            self._leave(is_query, file, number)
            return True
        command = _COMMAND.fullmatch(line)
        if command is None:
            return False
        name, argument = command.group(1).lower(), command.group(2).lstrip(" \t")
        if name == "setvar":
            self._setvar(argument, file, number)
        elif name == "r":
            self._read_file(argument, file, number, depth)
        elif name == "connect":
            self._connect(argument, file, number)
        elif name == "on":
            self._exits = argument.lower().split()[:2] == ["error", "exit"]
        elif name == "reset":
            self._drop()
        elif name not in _WITHOUT_EFFECT:
            self._report(file, number, f"there is no sqlcmd command {quote(':' + name)}")
        return True

    def _leave(self, runs_batch: bool, file: str, number: int) -> None:
        """End the script at EXIT or QUIT without running the open batch. EXIT(…) runs it first."""
        if runs_batch:
            self.flush()
        if speaks_of_routing(self._pending.join()):
            self._report(file, number, "the script ends here, before its last batch has run")
        self._drop()
        self._over = True

    def _connect(self, argument: str, file: str, number: int) -> None:
        server = read_server(self._fill(argument, file, number))
        missing = find_unknown_variable(server)
        if missing is not None:
            self._is_lost, why = True, phrase_unknown(missing)
        else:
            self._is_lost, why = not is_server(server), "the name of a server expected"
        if self._is_lost:
            self._report(file, number, f"this :connect cannot be read: {why}")
            return
        self._server = server
        self._connection += 1

    def _setvar(self, argument: str, file: str, number: int) -> None:
        setting = _SETTING.fullmatch(argument)
        if setting is None:
            self._report(file, number, "this :setvar cannot be read: a name and one value expected")
            return
        name, value = setting.group(1).casefold(), setting.group(2)
        if value is None:
            self._variables.pop(name, None)
            return
        if value.startswith('"') and len(value) > 1:
            value = value[1:-1].replace('""', '"')
        self._variables[name] = self._fill(value, file, number)

    def _read_file(self, argument: str, file: str, number: int, depth: int) -> None:
        path = self._fill(argument, file, number).strip().strip('"')
        missing = find_unknown_variable(path)
        if missing is not None:
            why = phrase_unknown(missing)
        elif self._include is None:
            why = "only the script itself is read here"
        elif depth >= _DEEPEST_INCLUDE or self._includes >= _MOST_INCLUDES:
            why = f"more than {_DEEPEST_INCLUDE} files deep, or {_MOST_INCLUDES} in all"
        else:
            self._includes += 1
            try:
                included, text = self._include(file, path)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
            else:
                self.read(SourceText(text, included), depth + 1)
                return
        self._report(file, number, f"the file {quote(as_written(path))} of :r is not read: {why}")


# Statements in comments: a script does not run them, and who tries it should know.


_COMMENTED = re.compile(r"--\s*((?:CREATE|ALTER|DROP|GRANT|OPEN|END\s+CONVERSATION)\s[^;].*;)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ScriptComments:
    """The statements in the comments of a script, each with its line. ``is_all``: nothing in it runs."""

    statements: tuple[tuple[int, str], ...]
    is_all: bool


def find_comments(text: str) -> ScriptComments:
    """Find statements in line comments, which somebody may uncomment and run."""
    statements: list[tuple[int, str]] = []
    has_comment, has_code, state = False, False, CODE
    for number, _start, line in _lines_of(text):
        was_code = state == CODE
        line_segments, state = segments(line, state)
        state = CODE if state.mode is TextMode.LINE_COMMENT else state
        code = _code(line, line_segments)
        has_code |= bool(code.strip()) and not (was_code and (_COMMAND.fullmatch(line) or _go(code) is not None))
        for part in line_segments:
            has_comment |= part.mode in COMMENTS
            commented = _COMMENTED.fullmatch(line[part.start : part.end])
            if part.mode is TextMode.LINE_COMMENT and commented is not None:
                statements.append((number, commented.group(1)))
    return ScriptComments(tuple(statements), is_all=has_comment and not has_code)


def _lines_of(text: str, first: int = 1) -> Iterator[tuple[int, int, str]]:
    number, start = first, len(text) - len(text.removeprefix("\ufeff"))
    for line_end in _LINE_END.finditer(text, start):
        yield number, start, text[start : line_end.start()]
        number, start = number + 1, line_end.end()
    yield number, start, text[start:]


def _go(code: str) -> str | None:
    """Return the count of a ``GO`` or empty text, or None for any other line.

    A regular expression with optional parts between blanks would need quadratic time.
    """
    parts = code.rstrip().removesuffix(";").split()
    if not parts or parts[0].lower() != "go" or len(parts) > 2:
        return None
    return parts[1] if len(parts) > 1 else ""


def _code(line: str, line_segments: list[TextSegment]) -> str:
    parts = [" " if part.mode in COMMENTS else line[part.start : part.end] for part in line_segments]
    return "".join(parts)
