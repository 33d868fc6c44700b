"""Words and marks that several parts of the reader know."""

from __future__ import annotations

import re

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
        KILL MERGE MOVE OPEN PRINT RAISERROR RECEIVE RECONFIGURE RESTORE RETURN REVERT REVOKE
        ROLLBACK SAVE SELECT SEND SET SHUTDOWN THROW TRUNCATE UPDATE USE WAITFOR WHILE WITH
        """,
    )
)
"""Words that begin a statement, or end the block it stands in, without a semicolon before them."""

FOLLOWERS = STARTERS - {"WITH"}
"""Those that may follow a whole statement; WITH begins one only after a semicolon."""

_BROKER_TEXT = re.compile(
    r"\b(?:CREATE|ALTER|DROP)\s+(?:ROUTE|SERVICE|ENDPOINT)\b"
    r"|\b(?:ENABLE|DISABLE|NEW)_BROKER\b",
    re.IGNORECASE,
)


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
