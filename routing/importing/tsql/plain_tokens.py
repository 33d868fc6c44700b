"""Split T-SQL into plain tokens by sqlglot. It takes long to load, and only scripts need it."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import TokenError


class _Lexer(TSQL.Tokenizer):
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    # With a double quote here, which encloses names, N before one would begin a string that ends at the next.
    QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]


class PlainTokenizer:
    """Splits texts into tokens."""

    def __init__(self) -> None:
        self._lexer = _Lexer(dialect=TSQL())

    def split(self, text: str) -> list[Token] | None:
        """Return the tokens of a text, or None if sqlglot cannot read it."""
        try:
            return self._lexer.tokenize(text)
        except TokenError:
            return None
