"""Words and marks that several parts of the reader know."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

UNKNOWN_OPEN, UNKNOWN_CLOSE = "\ue000", "\ue001"
"""Private characters around the name of a sqlcmd variable that has no value; to the tokenizer they
are letters, so ``$(prefix)_route`` stays one name."""

UNKNOWN_VARIABLE = re.compile(f"{UNKNOWN_OPEN}([^{UNKNOWN_OPEN}{UNKNOWN_CLOSE}]*){UNKNOWN_CLOSE}")

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
"""Words that begin a statement, or end the block it stands in, without a semicolon before them."""

FOLLOWERS = STARTERS - {"WITH"}
"""Those that may follow a whole statement; WITH begins one only after a semicolon."""

RESERVED = STARTERS | {
    *("AND", "AS", "AUTHORIZATION", "DATABASE", "FOR", "FROM", "IN", "INTO", "IS", "KEY", "NOT"),
    *("NULL", "ON", "OR", "ORDER", "SCHEMA", "TABLE", "TO", "WHERE"),
}
"""Words that are no name where they stand without quotes."""

NOUNS = ("ROUTE", "SERVICE", "ENDPOINT", "DATABASE", "PROCEDURE", "FUNCTION", "TRIGGER")
"""Kinds of things that CREATE, ALTER and DROP name."""

_BROKER_TEXT = re.compile(
    r"\b(?:CREATE|ALTER|DROP)\s+(?:ROUTE|SERVICE|ENDPOINT)\b"
    r"|\b(?:ENABLE|DISABLE|NEW)_BROKER\b|\bERROR_BROKER_CONVERSATIONS\b"
    r"|\b(?:CREATE|DROP|RESTORE)\s+DATABASE\s+(?!SCOPED\b|AUDIT\b|ENCRYPTION\b)[\w\[\"$@]|\bMODIFY\s+NAME\s*="
    r"|\bsp_(?:renamedb|detach_db|attach_db|attach_single_file_db|dbremove)\b",
    re.IGNORECASE,
)


INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Invisible characters: to SQL Server neither blanks nor letters, so it cannot parse a statement with one."""

_NEARLY = 0.75
"""How like a misspelt word is to what was meant: one letter of four, or two of eight that changed places."""

_MOST_LETTERS = 2
"""Too many or too few."""


def speaks_of_routing(text: str) -> bool:
    """Whether a text holds words of a statement that this import would read."""
    return _BROKER_TEXT.search(text) is not None


def find_unknown_variable(text: str) -> str | None:
    """The first sqlcmd variable without a value that a text holds."""
    match = UNKNOWN_VARIABLE.search(text)
    return match.group(1) if match else None


def as_written(text: str) -> str:
    """The text with such variables as the script writes them."""
    return UNKNOWN_VARIABLE.sub(r"$(\1)", text)


def name_character(character: str) -> str:
    """Return a character's code point and name, such as ``U+200B (zero width space)``."""
    name = "byte-order mark" if character == "\ufeff" else unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


def find_misspelt(word: str, known: Iterable[str]) -> str | None:
    """The known word that was meant by one that is nearly it; None where it is known, or like none."""
    return _find_misspelt(word, tuple(known))


@lru_cache(maxsize=1024)
def _find_misspelt(word: str, known: tuple[str, ...]) -> str | None:
    if word in known or not word.isascii():
        return None
    similar = sorted(other for other in known if abs(len(other) - len(word)) <= _MOST_LETTERS)
    nearest = difflib.get_close_matches(word, similar, n=1, cutoff=_NEARLY)
    return nearest[0] if nearest else None
