"""Why a statement is left out."""

from __future__ import annotations

from routing.importing.tsql.script_statements import quote
from routing.importing.tsql.vocabulary import UnknownVariable

SYNTAX = 102
RESERVED_WORD = 156
JOINED = "it is built by string concatenation, where SQL Server takes a literal alone"

# What these miss may be there, for all that a script says.
_MISSING = frozenset([3701, 5011, 15010, 15151])


class RefusalError(Exception):
    """A statement that cannot be known or that the engine refuses: why, and the engine's number.

    ``by_server``: the engine is sure to refuse it, as where it has a number for that, unless something is missing.
    """

    def __init__(self, why: str, number: int | None = None, *, by_server: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.number = number
        self.by_server = by_server or (number is not None and number not in _MISSING)


class UntoldError(RefusalError):
    """A statement that is taken to succeed, of which nothing tells what it leaves: it is named and not applied."""


class UnparsedError(RefusalError):
    """A text that SQL Server surely cannot parse: nothing of the batch runs, since it is parsed before."""

    def __init__(self, why: str, number: int | None = SYNTAX) -> None:
        super().__init__(why, number, by_server=True)


def length(text: str) -> int:
    """Return the length that SQL Server counts, in UTF-16 units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def phrase_unknown(variable: UnknownVariable) -> str:
    """Say that the beginning of a sentence on a place that has no value."""
    if variable.is_of_sqlcmd:
        return f"sqlcmd variable {quote(variable.name)} has no value"
    return f"the placeholder {quote(variable.written)} of a migration tool has no value"


def no_value(variable: UnknownVariable) -> RefusalError:
    """Return the error that a place in a text has no value."""
    # A tool's own statement, such as #{if broker}, is no name.
    advice = (
        f"give it with -v {variable.name}=VALUE" if " " not in variable.name else "let the tool fill it in first"
    )
    return RefusalError(f"{phrase_unknown(variable)}: {advice}")


def known_to_the_server(variable: str) -> RefusalError:
    """Return the error that only the server knows a T-SQL variable's value."""
    return RefusalError(f"the value of the variable {quote(variable)} is known to the server alone")
