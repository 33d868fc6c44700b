"""Separate texts about routing into data and statements that may run.

A text in PRINT, RAISERROR, THROW, INSERT or a result is data. So is a text of a variable that the batch only
shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import STARTERS, speaks_of_routing

NOT_RUN = "a statement in a text that does not run here"
_BUILT = "a statement built by string concatenation, which only the server can do"
_PRINTED = "a statement in a text that is printed, not run"

_BUILDERS = frozenset(["CONCAT", "CONCAT_WS", "FORMATMESSAGE", "QUOTENAME", "REPLACE", "STUFF"])
_ELSEWHERE = frozenset(["OPENQUERY", "OPENROWSET"])
"""Functions that run a text on another server."""

_TAKE_DATA = frozenset(
    [
        *("sp_addextendedproperty", "sp_updateextendedproperty", "sp_dropextendedproperty"),
        *("sp_addmessage", "sp_altermessage", "xp_logevent", "sp_trace_generateevent", "sp_audit_write"),
        *("sp_add_job", "sp_update_job", "sp_add_operator", "sp_notify_operator", "sp_send_dbmail"),
    ]
)
"""System procedures that keep or send the texts that they are given."""

_FOR_EACH_DATABASE = frozenset(["sp_msforeachdb", "sp_msforeach_db", "sp_ineachdb", "sp_foreachdb"])
"""Procedures, two of SQL Server's and two public ones, that run a text in every database."""

_RUN_BY_MAIL = "@query"
_TOOLS = "bcp|cmd|invoke-sqlcmd|isql|osql|powershell|pwsh|sqlcmd"
_FIRST_WORDS = re.compile(
    rf"^[ \t;(]*(?:(?:{'|'.join(sorted(STARTERS))}|{_TOOLS})\b|[sx]p_|[^\w\s;(])", re.IGNORECASE | re.MULTILINE
)
# Text that can follow a name but not a word of prose. A concatenation may end anywhere.
_ANY_NAME = r"(?:\s+(?:\[[^\]]*\]|[^\s\[;]+))?"
_FOLLOWED = rf"{_ANY_NAME}(?:\s*\Z|\s*[^\w\s]|\s+(?:GO|{'|'.join(sorted(STARTERS))}"
_FORMS = re.compile(
    rf"\b(?:CREATE|ALTER)\s+ROUTE{_FOLLOWED}|AUTHORIZATION)\b)"
    rf"|\bCREATE\s+SERVICE{_FOLLOWED}|AUTHORIZATION|ON)\b)"
    rf"|\b(?:CREATE|ALTER)\s+ENDPOINT{_FOLLOWED}|AUTHORIZATION|STATE|AFFINITY|AS|FOR)\b)"
    rf"|\bDROP\s+(?:ROUTE|SERVICE|ENDPOINT){_FOLLOWED})\b)"
    r"|_BROKER\b|\bERROR_BROKER_CONVERSATIONS\b|\bDATABASE\s|\bMODIFY\s+NAME\b|\bsp_",
    re.IGNORECASE,
)
"""The patterns of statements about routing up to their first clause. `speaks_of_routing` knows the others."""

_NAME = r"(?:\[[^\]]+\]|[^\s\[]+)"
_WHOLE_STATEMENT = re.compile(
    rf"\b(?:CREATE|ALTER)\s+ROUTE\s+{_NAME}\s+(?:AUTHORIZATION|WITH)\b"
    rf"|\bCREATE\s+SERVICE\s+{_NAME}\s+(?:AUTHORIZATION|ON\s+QUEUE)\b"
    rf"|\b(?:CREATE|ALTER)\s+ENDPOINT\s+{_NAME}\s+(?:AUTHORIZATION|STATE|AS\s+TCP|FOR\s+SERVICE_BROKER)\b"
    rf"|\bALTER\s+DATABASE\s+{_NAME}\s+SET\s+(?:ENABLE|DISABLE|NEW)_BROKER\b",
    re.IGNORECASE,
)


@dataclass(eq=False)
class _Text:
    """A text that variables get in parts, and its use in the batch."""

    is_whole: bool = False
    is_run: bool = False
    is_shown: bool = False
    may_be_run: bool = False
    joined_to: _Text | None = None

    def join(self, other: _Text) -> None:
        """Add this text to another as a part."""
        other.is_whole |= self.is_whole
        other.is_shown |= self.is_shown
        other.may_be_run |= self.may_be_run
        self.joined_to = other

    def whole(self) -> _Text:
        """Return the text that this has become a part of."""
        text = self
        while text.joined_to is not None:
            if text.joined_to.joined_to is not None:
                text.joined_to = text.joined_to.joined_to
            text = text.joined_to
        return text


class HeldTexts:
    """The texts about routing that the variables of one batch may hold."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Text] = {}
        self._parts: list[tuple[tuple[str, int], str, _Text]] = []

    def hold(
        self, name: str, words: Sequence[Lexeme], place: tuple[str, int], value: str | None, *, replaces: bool
    ) -> None:
        """Record the possible texts of a variable after an assignment of these words and this value, if known.

        Without ``replaces`` its earlier texts stay possible.
        """
        name = name.casefold()
        earlier = self._held_by(words)
        if not replaces and name in self._by_name:
            earlier.append(self._by_name[name].whole())
        # Text that was run is already read. Only an addition to it is not.
        parts = [text for text in dict.fromkeys(earlier) if not text.is_run]
        own_text = " ".join(_strings(words)) if value is None else value
        why = find_hidden_statement(words)
        if why is None and not parts and may_be_statement([own_text]):
            why = NOT_RUN
        if why is None and not parts:
            self._by_name.pop(name, None)
            return
        text = _Text(is_whole_statement(own_text))
        for part in parts:
            part.join(text)
        if why is not None:
            self._parts.append((place, why, text))
        self._by_name[name] = text

    def run(self, words: Sequence[Lexeme]) -> None:
        """Note that the texts of these variables are run, and read there."""
        for text in self._held_by(words):
            text.is_run = True

    def pass_on(self, words: Sequence[Lexeme]) -> None:
        """Note that the texts of these variables may be run."""
        for text in self._held_by(words):
            text.may_be_run = True

    def show(self, words: Sequence[Lexeme]) -> None:
        """Note that the texts of these variables are shown or kept."""
        for text in self._held_by(words):
            text.is_shown = True

    def find_problems(self) -> list[tuple[tuple[str, int], str, bool]]:
        """Return place and reason of each text that is not read, and whether that is a mere remark."""
        problems = []
        for place, why, part in self._parts:
            text = part.whole()
            if not text.is_run and (text.may_be_run or not text.is_shown):
                problems.append((place, why, False))
            elif not text.is_run and text.is_whole:
                problems.append((place, NOT_RUN, True))
        return problems

    def _held_by(self, words: Sequence[Lexeme]) -> list[_Text]:
        names = [
            word.text.casefold() for word in words if word.kind is LexemeKind.WORD and word.text.startswith("@")
        ]
        return [self._by_name[name].whole() for name in names if name in self._by_name]


def _strings(words: Sequence[Lexeme]) -> list[str]:
    return [lexeme.text for lexeme in words if lexeme.kind is LexemeKind.STRING]


def may_be_statement(strings: Iterable[str]) -> bool:
    """Return True if joined strings look like a statement about routing with a proper first line."""
    parts = list(strings)
    joined = " ".join(parts)
    is_said = speaks_of_routing(joined) and _FORMS.search(joined) is not None
    return is_said and (is_whole_statement(joined) or any(_FIRST_WORDS.search(part) for part in parts))


def is_whole_statement(text: str) -> bool:
    """Return whether a text holds a statement about routing with a clause of it, which prose does not."""
    return _WHOLE_STATEMENT.search(text) is not None


def find_hidden_statement(words: Sequence[Lexeme]) -> str | None:
    """Return why the routing statement in these words' strings does not count, or None without one."""
    if not may_be_statement(_strings(words)):
        return None
    return _BUILT if any(lexeme.text == "+" or lexeme.upper in _BUILDERS for lexeme in words) else NOT_RUN


def find_statement_elsewhere(words: Sequence[Lexeme]) -> str | None:
    """Return why the routing statement in a statement of data does not count: another server runs it."""
    return find_hidden_statement(words) if any(word.upper in _ELSEWHERE for word in words) else None


def find_shown_statement(words: Sequence[Lexeme]) -> str | None:
    """Return the remark on a PRINT or SELECT of a text with a routing statement, or None for others."""
    first, is_whole = words[0].upper if words else "", is_whole_statement(" ".join(_strings(words)))
    if first == "PRINT" and is_whole:
        return _PRINTED
    why = find_hidden_statement(words) if first == "SELECT" else None
    return why if is_whole or why is _BUILT else None


def needed_words(words: tuple[Lexeme, ...]) -> tuple[Lexeme, ...]:
    """Return the words that make a difference when a statement runs that says nothing about routing.

    All do where it names a variable or holds a text about routing. Else the first does, and the FROM of a query.
    """
    has_variable = any(word.kind is LexemeKind.WORD and word.text.startswith("@") for word in words)
    if has_variable or find_statement_elsewhere(words) or find_shown_statement(words):
        return words
    is_query = bool(words) and words[0].upper in ("SELECT", "WITH")
    read = [word for word in words if word.upper == "FROM"] if is_query else []
    return (*words[:1], *read[:1])


def takes_data(procedure: str, words: Sequence[Lexeme]) -> bool:
    """Return whether a call, of these words, of a procedure keeps or sends its texts and runs none."""
    return procedure.lower() in _TAKE_DATA and not any(word.text.lower() == _RUN_BY_MAIL for word in words)


def runs_in_every_database(procedure: str) -> bool:
    """Return whether a procedure of this name runs its text in every database."""
    return procedure.lower() in _FOR_EACH_DATABASE
