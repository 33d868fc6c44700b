"""Why a statement is left out."""

from __future__ import annotations

from routing.importing.tsql.statements import quote
from routing.importing.tsql.vocabulary import as_written


class RefusalError(Exception):
    """A statement that cannot be known or that the engine refuses: why, and the engine's number."""

    def __init__(self, why: str, number: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.number = number


def length(text: str) -> int:
    """The length that SQL Server counts, in UTF-16 units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def no_value(variable: str) -> RefusalError:
    """Why a text with a sqlcmd variable cannot be read."""
    return RefusalError(
        f"sqlcmd variable {quote(as_written(variable))} has no value: give it with -v {variable}=VALUE"
    )
