"""Words and marks that several parts of the reader know."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

VARIABLE = re.compile(
    r"\$\((?P<sqlcmd>[^\s()'\"$]+)\)"
    r"|\$\{(?P<dollar>[^\s{}'\"$]+)\}"
    r"|\{\{(?P<braces>[^{}'\"\r\n]+)\}\}"
    r"|#\{(?P<hash>[^{}'\"\r\n]+)\}#?"
    r"|(?<![$@#])\$(?P<dollars>[A-Za-z_][\w.]*)\$"
    r"|<#=(?P<template>[^#'\r\n]+)#>"
)
"""A placeholder: a variable of sqlcmd, or that of a migration tool. Flyway has ``${name}`` and RoundhousE
``{{name}}``. Octopus has ``#{name}``, DbUp ``$name$`` and a T4 template ``<#= name #>``.
"""

_WRITTEN = {
    "sqlcmd": ("\ue000", "$({})"),
    "dollar": ("\ue002", "${{{}}}"),
    "braces": ("\ue003", "{{{{{}}}}}"),
    "hash": ("\ue004", "#{{{}}}"),
    "dollars": ("\ue005", "${}$"),
    "template": ("\ue006", "<#= {} #>"),
}
"""The mark of each kind without a value, and its form in scripts. Marks are private characters before and after
the name. The tokenizer reads them as letters, so ``$(prefix)_route`` stays one name.
"""

_CLOSE = "\ue001"
_KINDS = {private: kind for kind, (private, _) in _WRITTEN.items()}
_MARKS = "".join(_KINDS)
_UNKNOWN = re.compile(f"([{_MARKS}])([^{_MARKS}{_CLOSE}]*){_CLOSE}")
_SIGNS = {sign: chr(0xE100 + sign) for sign in range(128) if not re.match(r"\w", chr(sign))}
_SIGNS_BACK = {ord(private): chr(sign) for sign, private in _SIGNS.items()}


@dataclass(frozen=True)
class UnknownVariable:
    """A place that has no value: its name, and how the script writes it."""

    name: str
    written: str
    is_of_sqlcmd: bool


STARTERS = frozenset(
    re.findall(
        r"\w+",
        """
        ADD ALTER BACKUP BEGIN BREAK BULK CHECKPOINT CLOSE COMMIT CONTINUE CREATE DBCC DEALLOCATE
        DECLARE DELETE DENY DISABLE DROP ELSE ENABLE END EXEC EXECUTE FETCH GET GOTO GRANT IF INSERT
        KILL LINENO MERGE MOVE OPEN PRINT RAISERROR READTEXT RECEIVE RECONFIGURE RESTORE RETURN
        REVERT REVOKE ROLLBACK SAVE SELECT SEND SET SETUSER SHUTDOWN THROW TRUNCATE UPDATE
        UPDATETEXT USE WAITFOR WHILE WITH WRITETEXT
        """,
    )
)
"""The words that begin a statement or end its block, without a semicolon before them."""

FOLLOWERS = STARTERS - {"WITH"}
"""The words that may follow a whole statement. WITH begins a statement only after a semicolon."""

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        ADD ALL ALTER AND ANY AS ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY CASCADE CASE CHECK
        CHECKPOINT CLOSE CLUSTERED COALESCE COLLATE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS CONTAINSTABLE
        CONTINUE
        CONVERT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DBCC
        DEALLOCATE DECLARE DEFAULT DELETE DENY DESC DISK DISTINCT DISTRIBUTED DOUBLE DROP DUMP ELSE END ERRLVL
        ESCAPE EXCEPT EXEC EXECUTE EXISTS EXIT EXTERNAL FETCH FILE FILLFACTOR FOR FOREIGN FREETEXT FREETEXTTABLE
        FROM FULL FUNCTION GOTO GRANT GROUP HAVING HOLDLOCK IDENTITY IDENTITY_INSERT IDENTITYCOL IF IN INDEX INNER
        INSERT INTERSECT INTO IS JOIN KEY KILL LEFT LIKE LINENO LOAD MERGE NATIONAL NOCHECK NONCLUSTERED NOT NULL
        NULLIF OF OFF OFFSETS ON OPEN OPENDATASOURCE OPENQUERY OPENROWSET OPENXML OPTION OR ORDER OUTER OVER
        PERCENT PIVOT PLAN PRECISION PRIMARY PRINT PROC PROCEDURE PUBLIC RAISERROR READ READTEXT RECONFIGURE
        REFERENCES
        REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT ROLLBACK ROWCOUNT ROWGUIDCOL RULE SAVE SCHEMA
        SECURITYAUDIT SELECT SEMANTICKEYPHRASETABLE SEMANTICSIMILARITYDETAILSTABLE SEMANTICSIMILARITYTABLE
        SESSION_USER SET SETUSER SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE TEXTSIZE THEN TO TOP TRAN
        TRANSACTION TRIGGER TRUNCATE TRY_CONVERT TSEQUAL UNION UNIQUE UNPIVOT UPDATE UPDATETEXT USE USER VALUES
        VARYING VIEW WAITFOR WHEN WHERE WHILE WITH WRITETEXT
        """,
    )
)
"""Transact-SQL's reserved keywords. They are names only in brackets or quotes."""

NOUNS = ("ROUTE", "SERVICE", "ENDPOINT", "DATABASE", "PROCEDURE", "FUNCTION", "TRIGGER")
"""Kinds of things that CREATE, ALTER and DROP name."""

BESIDE_DATABASE = frozenset(["AUDIT", "SCOPED", "ENCRYPTION"])
"""Words behind DATABASE of statements about something else."""

_BROKER_TEXT = re.compile(
    r"\b(?:CREATE|ALTER|DROP)\s+(?:ROUTE|SERVICE|ENDPOINT)\b"
    r"|\b(?:ENABLE|DISABLE|NEW)_BROKER\b|\bERROR_BROKER_CONVERSATIONS\b"
    r"|\b(?:CREATE|DROP|RESTORE)\s+DATABASE\s+(?!SCOPED\b|AUDIT\b|ENCRYPTION\b)[\w\[\"$@#{\ue000-\ue006]|\bMODIFY\s+NAME\s*="
    r"|\bsp_(?:renamedb|detach_db|attach_db|attach_single_file_db|dbremove)\b",
    re.IGNORECASE,
)


_UNFILLED = re.compile(
    r"<%=?[^<>]*%>|<<\s*[A-Za-z_][^<>,]*>>|<\s*[A-Za-z_][^<>,]*>"
    r"|\{\{?(?![0-9A-Fa-f-]{4,}\})[A-Za-z0-9_][\w.: -]*\}?\}"
    r"|(?<!\w)__[A-Za-z](?:[A-Za-z0-9-]|_(?!_))*__(?!\w)"
    r"|%(?![0-9A-Fa-f]{2}%(?:[0-9A-F]{2}|[0-9a-f]{2}))[A-Za-z_][\w.-]*%"
    r"|@@?[A-Za-z_][\w.-]*@@?"
    r"|(?<![\w$])\$[A-Za-z_]\w*(?=[:/\s]|$)"
    r"|(?<!\w)__[A-Z][A-Z0-9]*__|\$\[[\w.-]+\]|\[\[[\w.-]+\]\]|\{%[^{}]*%\}"
    r"|(?<![\w$#])(##?|\$\$)[A-Za-z_]\w*\1(?![\w$#])"
    r"|(?<!\w)([~!|^*])[A-Za-z_]\w*\2(?!\w)|%\([A-Za-z_]\w*\)s|\(\([A-Za-z_][\w.-]*\)\)|\u00ab[^\u00ab\u00bb]+\u00bb"
)
"""A placeholder of other tools and installers, such as ``{0}``, ``{Name}`` or ``<name>``. It may also be
``__NAME__``, ``%NAME%``, ``@NAME@`` or ``$name``. In T-SQL outside names and texts these signs have other
meanings.
"""


def find_unfilled(text: str, start: int | None = None) -> str | None:
    """Return the first place of another tool that a name or text holds, or that begins at ``start``."""
    match = _UNFILLED.search(text) if start is None else _UNFILLED.match(text, start)
    return None if match is None else match.group()


_THINGS = (
    r"(?:database|db|server|sql[_-]?server|host|machine|computer|instance|domain|service|broker|queue|route"
    r"|contract|endpoint|login|schema)"
)
_STAND_IN = re.compile(
    r"(?<![^\W_])(?:TODO|TBD|FIXME|CHANGEME|REPLACEME|(?:CHANGE|REPLACE)[ _-](?:ME|THIS|WITH))(?![^\W_])"
    r"|(?i:\A(?:todo|tbd|fixme|x{3,12}|(?:change|replace)[ _-]?(?:me|this))\Z)"
    rf"|(?<![^\W_])(?:(?i:your)(?:[ _-]\w|(?i:{_THINGS}))|Your[A-Z])"
    rf"|(?<!\w)(?i:{_THINGS}[ _-]?name(?:[ _-]here)?)(?!\w)|(?<!\w)[A-Z][A-Z_-]*[_-]HERE(?!\w)"
)
"""A word that authors of samples write instead of a name. It may still be a real name."""


def is_stand_in(text: str) -> bool:
    """Return True if a name or text looks like a sample's that was to be replaced, such as ``YourDatabase``."""
    return _STAND_IN.search(text) is not None


INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Invisible characters: to SQL Server neither blanks nor letters, so it cannot parse a statement with one."""

UNSEEN = re.compile(rf"{INVISIBLE.pattern}|[\u00a0\u2000-\u200a\u202f\u205f]")
"""Characters by which names that look equal differ: invisible ones, and blanks that are not the usual one."""

_NEARLY = 0.75
"""The required similarity of a misspelt word: one letter of four may differ, or two of eight may be swapped."""

_MOST_LETTERS = 2
"""Too many or too few."""


def speaks_of_routing(text: str) -> bool:
    """Return whether a text holds words of a statement that this import would read."""
    return _BROKER_TEXT.search(text) is not None


def name_of_variable(variable: re.Match[str]) -> str:
    """Return the name that a match of `VARIABLE` holds."""
    return variable[str(variable.lastgroup)].strip()


def mark_unknown(variable: re.Match[str]) -> str:
    """Return the mark for a match of `VARIABLE` that has no value."""
    kind = str(variable.lastgroup)
    return _WRITTEN[kind][0] + name_of_variable(variable).translate(_SIGNS) + _CLOSE


def find_unknown_variable(text: str) -> UnknownVariable | None:
    """Return the first place without a value that a text holds."""
    match = _UNKNOWN.search(text)
    return None if match is None else _unknown(match)


def as_written(text: str) -> str:
    """Return the text with such places as the script writes them."""
    return _UNKNOWN.sub(lambda match: _unknown(match).written, text)


def _unknown(match: re.Match[str]) -> UnknownVariable:
    kind, name = _KINDS[match.group(1)], match.group(2).translate(_SIGNS_BACK)
    return UnknownVariable(name, _WRITTEN[kind][1].format(name), kind == "sqlcmd")


def name_character(character: str) -> str:
    """Return a character's code point and name, such as ``U+200B (zero width space)``."""
    name = "byte-order mark" if character == "\ufeff" else unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


@lru_cache(maxsize=1024)
def find_misspelt(word: str, known_words: Collection[str]) -> str | None:
    """Return the known word that a misspelt word resembles, or None if it is known or resembles no word."""
    if word in known_words or not word.isascii():
        return None
    similar = sorted(other for other in known_words if abs(len(other) - len(word)) <= _MOST_LETTERS)
    nearest = difflib.get_close_matches(word, similar, n=1, cutoff=_NEARLY)
    return nearest[0] if nearest else None
