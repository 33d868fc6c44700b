"""Read formatted SQL of Liquibase: each changeset is sent by itself, and each of its statements is a batch."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from routing.importing.tsql import sqlcmd
from routing.importing.tsql.parse_faults import closes_block, opens_block
from routing.importing.tsql.script_run import StatementEffect
from routing.importing.tsql.script_statements import ScriptStatement, StatementKey, StatementProblem, quote
from routing.importing.tsql.sqlcmd import Changeset, Include, SourceText, TakeBatch
from routing.importing.tsql.tokens import CODE, tokenize
from routing.importing.tsql.vocabulary import speaks_of_routing

_HEADER = re.compile(r"(?:[^\S\n]*(?:--[^\n]*)?\n)*?[^\S\n]*--\s*liquibase\s+formatted\s+sql\b", re.IGNORECASE)
_DIRECTIVE = re.compile(
    r"\s*--\s*(changeset|property|rollback|preconditions?|ignoreLines)(?![A-Za-z])[:-]?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""(?<![\w-])([\w-]+):("[^"]*"|'[^']*'|\S+)""")
_LINE_END_ESCAPES = re.compile(r"\\{1,2}(?:r|n|s[*+]?)|[\^$\r\n]")
_INCLUDE = re.compile(r"\s*:r\s", re.IGNORECASE)
_OURS = frozenset(["mssql", "all"])
_SELECTORS = ("context", "contextfilter", "labels")
_PARTS = frozenset(["CASE"])
_STATEMENT_END = ";"
# A delimiter only on a line of its own.
_SLASH = "/"
_DEFAULT = (_STATEMENT_END, _SLASH)
_WITHIN_WORD = re.compile(r"(?<=\w)\w")
_USUAL = frozenset([_STATEMENT_END, "go"])


def is_formatted(text: str) -> bool:
    """Return whether a script is formatted SQL of Liquibase, by its first comment."""
    return _HEADER.match(text.removeprefix("\ufeff")) is not None


def as_changeset(source: SourceText, delimiter: str) -> SourceText:
    """Return a script as formatted SQL if its changelog has a delimiter of its statements beside ; and GO."""
    written = _clean(delimiter)
    if not delimiter or _USUAL.issuperset(written) or is_formatted(source.text):
        return source
    quote_sign = "'" if '"' in delimiter else '"'
    changeset = f"--changeset sqlFile endDelimiter:{quote_sign}{'|'.join(written)}{quote_sign}"
    return SourceText(f"--liquibase formatted sql\n{changeset}\n{source.text}", source.file, source.line - 2)


def _clean(delimiter: str) -> tuple[str, ...]:
    """Return the alternatives of a delimiter without the line ends around them."""
    plain = _LINE_END_ESCAPES.sub("", html.unescape(delimiter)).lower()
    return tuple(dict.fromkeys(filter(None, map(str.strip, plain.split("|"))))) or _DEFAULT


def read_any_batches(
    sources: Sequence[SourceText], variables: Mapping[str, str], include: Include | None, take: TakeBatch
) -> None:
    """Send the batches of a script to ``take``, as `read_batches` does, or those of Liquibase's changesets."""
    for is_changelog, group in groupby(sources, lambda source: is_formatted(source.text)):
        if not is_changelog:
            sqlcmd.read_batches(group, variables, include, take)
            continue
        for source in group:
            reader = ChangesetLines(variables, include, take)
            reader.read(source)
            reader.end()


class ChangesetLines(sqlcmd.BatchLines):
    """Reads lines into the batches of changesets. A ``:`` begins no command here."""

    def __init__(self, variables: Mapping[str, str], include: Include | None, take: TakeBatch) -> None:
        super().__init__(variables, include, take)
        self._changeset: Changeset | None = None
        # None where Liquibase does not split a changeset.
        self._delimiters: tuple[str, ...] | None = _DEFAULT
        self._why_left_out: str | None = None
        self._left_out: list[str] = []
        self._ignored: float = 0
        self._properties: dict[str, tuple[str, str]] = {}

    def flush(self) -> None:
        """End the batch, at the end of a changeset or at its delimiter."""
        pending = self._drop()
        whole = pending.join()
        splits = _STATEMENT_END in (self._delimiters or ())
        for start, end in _statements(whole) if splits else [(0, len(whole))]:
            text = whole[start:end]
            if not text.strip():
                continue
            first = whole.count("\n", 0, start)
            places = sqlcmd.LinePlaces()
            for row in range(first, first + text.count("\n") + 1):
                places.add(*pending.places[row])
            exits = self._changeset is not None and self._changeset.ends_update
            self._take(sqlcmd.SqlBatch(text, places, exits=exits, changeset=self._changeset))

    def _command(self, line: str, file: str, number: int, depth: int) -> bool:
        """Read a line that is a command for Liquibase, or one that Liquibase does not send."""
        directive = _DIRECTIVE.fullmatch(line)
        name, arguments = ("", "") if directive is None else directive.groups()
        name, arguments = name.lower(), arguments.strip()
        if name == "ignorelines":
            count = arguments.lower()
            self._ignored = float("inf") if count == "start" else (int(count) if count.isdecimal() else 0)
            return True
        if self._ignored > 0:
            self._ignored -= 1
            return True
        if name == "changeset":
            self.end()
            self._begin_changeset(arguments, file, number)
        elif name == "property":
            self._set_property(_attributes(arguments))
        elif name.startswith("precondition") and self._changeset is not None:
            why = f"the preconditions of the changeset {quote(self._changeset.name)} hold"
            self._changeset = replace(self._changeset, why_perhaps=self._changeset.why_perhaps or why)
        if name or self._leaves_out(line, file, number):
            return True
        if _INCLUDE.match(line) is not None:
            self._report(file, number, "the file of :r is not read in a changeset of Liquibase")
            return True
        return self._ends_at(line, file, number)

    def _leaves_out(self, line: str, file: str, number: int) -> bool:
        if self._why_left_out is not None:
            self._left_out.append(line)
            return True
        if self._changeset is None and line.strip() and not line.lstrip().startswith("--"):
            if speaks_of_routing(line):
                self._report(file, number, "it comes before the first changeset, which Liquibase does not accept")
            return True
        return False

    def _ends_at(self, line: str, file: str, number: int) -> bool:
        delimiter = next(
            (sign for sign in self._delimiters or () if _is_ending(line.rstrip().lower(), sign)), None
        )
        if delimiter is None:
            return False
        self._line(line.rstrip()[: -len(delimiter)], file, number)
        if self._state == CODE:
            self.flush()
        return True

    def _go(self, count: str, file: str, number: int) -> None:
        """End the batch at GO, which is a delimiter for Liquibase only if it splits statements."""
        if self._delimiters is None and self._changeset is not None:
            where = f"the changeset {quote(self._changeset.name)}, which is sent as one batch (splitStatements)"
            self._report(file, number, f"GO is in {where}")
        self.flush()

    def _begin_changeset(self, arguments: str, file: str, number: int) -> None:
        name = arguments.split()[0] if arguments else ""
        attributes = _attributes(arguments[len(name) :])
        selector = " ".join(f"{key} {attributes[key]}" for key in _SELECTORS if attributes.get(key))
        why = f"Liquibase is run with the {selector} of the changeset {quote(name)}" if selector else None
        ends_update = attributes.get("failonerror", "").lower() != "false"
        self._changeset = Changeset(name, (file, number), selector, why, ends_update)
        splits = attributes.get("splitstatements", "").lower() != "false"
        self._delimiters = _clean(attributes.get("enddelimiter", "")) if splits else None
        if not is_ours(attributes.get("dbms", "")):
            self._why_left_out = f"dbms:{attributes['dbms']}"
        elif attributes.get("ignore", "").lower() == "true":
            self._why_left_out = "ignore:true"

    def end(self) -> None:
        """End the changeset."""
        self.flush()
        if self._changeset is not None and speaks_of_routing("\n".join(self._left_out)):
            why = f"the changeset {quote(self._changeset.name)} does not run on SQL Server ({self._why_left_out})"
            self._take(StatementProblem(*self._changeset.place, why, counted=True))
        self._left_out, self._why_left_out = [], None

    def _set_property(self, attributes: dict[str, str]) -> None:
        """Set the value of a placeholder. The first value counts, but no value if contexts differ."""
        name, value = attributes.get("name", ""), attributes.get("value")
        if value is None or not is_ours(attributes.get("dbms", "")):
            return
        selector = " ".join(attributes.get(key, "") for key in _SELECTORS).strip()
        earlier = self._properties.setdefault(name.casefold(), (value, selector))
        if earlier[0] != value and (earlier[1] or selector):
            self._given_variables.pop(name.casefold(), None)
        elif earlier == (value, selector):
            self._given_variables.setdefault(name.casefold(), value)


def _is_ending(line: str, delimiter: str) -> bool:
    """Return whether a delimiter ends a line in lower case. A name such as Cargo does not end with GO."""
    if delimiter in _DEFAULT:
        return delimiter == _SLASH == line.strip()
    return line.endswith(delimiter) and _WITHIN_WORD.match(line, len(line) - len(delimiter)) is None


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): value.strip("\"'") for name, value in _ATTRIBUTE.findall(text)}


def is_ours(written: str) -> bool:
    """Return True if a list of databases names SQL Server or is empty. ``!`` excludes a name."""
    names = [name.strip().lower() for name in written.split(",") if name.strip()]
    refused = {name[1:] for name in names if name.startswith("!")}
    accepted = [name for name in names if not name.startswith("!")]
    return not refused & _OURS and (not accepted or any(name in _OURS for name in accepted))


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of the statements of a changeset, at semicolons outside blocks."""
    start = depth = 0
    lexemes = tokenize(text).lexemes
    for index, lexeme in enumerate(lexemes):
        if lexeme.upper in _PARTS or opens_block(lexemes, index):
            depth += 1
        elif closes_block(lexemes, index):
            depth -= 1
        elif lexeme.text == ";" and depth <= 0:
            yield start, lexeme.end
            start = lexeme.end
    yield start, len(text)


_Defined = tuple[Changeset, ScriptStatement]
"""A statement with its changeset."""


def find_rivals(effects: Sequence[StatementEffect]) -> dict[StatementKey, str]:
    """Return statements on one object in changesets with different contexts, each with the reason."""
    by_object: dict[tuple[str, str | None, str], list[_Defined]] = {}
    for effect in effects:
        statement = effect.statement
        if effect.changeset is not None:
            noun = statement.words.rpartition(" ")[2]
            key = (noun, statement.database and statement.database.casefold(), statement.name.casefold())
            by_object.setdefault(key, []).append((effect.changeset, statement))
    rivals: dict[StatementKey, str] = {}
    for of_object in by_object.values():
        for changeset, statement in of_object:
            others = (other for other in of_object if _are_rivals((changeset, statement), other))
            names = {quote(other.name) for other, _ in others}
            if names:
                changesets = " and ".join(sorted({quote(changeset.name), *names}))
                why = f"the changesets {changesets} define it, and contexts or labels decide which of them counts"
                rivals[statement.key] = why
    return rivals


def _are_rivals(first: _Defined, second: _Defined) -> bool:
    changeset, other_changeset = first[0], second[0]
    if changeset.selector == other_changeset.selector:
        return False
    both_make = all(statement.words.startswith("CREATE ") for _, statement in (first, second))
    return both_make or bool(changeset.selector and other_changeset.selector)
