"""The variables of a batch: declared once, before they stand anywhere else, and known in their batch alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from routing.importing.tsql.script_statements import quote
from routing.importing.tsql.tokens import Lexeme, LexemeKind

_TWICE, _NOT_DECLARED, _NO_TABLE = 134, 137, 1087
_BEFORE_TABLES = frozenset(["FROM", "JOIN", "INTO", "INSERT", "APPLY"])


class VariableNames:
    """The places that declare and that name variables; ``outside`` is None where any may be declared."""

    def __init__(self, lexemes: Sequence[Lexeme], outside: Collection[str] | None) -> None:
        self._lexemes = lexemes
        self._outside = frozenset(name.casefold() for name in outside or ())
        self._allows_any = outside is None
        self._declarations: set[int] = set()
        self._ignored: set[int] = set()

    def declare(self, position: int) -> None:
        """Note that the lexeme at a place declares a variable."""
        self._declarations.add(position)

    def declare_all(self, first: int, last: int) -> None:
        """Note that the head of a module declares all variables that it names."""
        self._declarations.update(self._named(first, last))

    def ignore(self, position: int) -> None:
        """Note that the lexeme at a place is a parameter of a procedure that is called."""
        self._ignored.add(position)

    def allow_any(self) -> None:
        """Note that variables of this batch need no declaration, as in a RULE."""
        self._allows_any = True

    def find_faults(self) -> Iterator[tuple[int, str, int]]:
        """Yield row, reason and number of each variable that is declared twice, or not before it is named."""
        declared = set(self._outside)
        for position in self._named(0, len(self._lexemes)):
            lexeme = self._lexemes[position]
            name = lexeme.text.casefold()
            if position in self._declarations:
                if name in declared:
                    yield lexeme.row, f"the variable {quote(lexeme.text)} is declared twice", _TWICE
                declared.add(name)
            elif not (name in declared or self._allows_any or position in self._ignored):
                number = _NO_TABLE if self._is_table(position) else _NOT_DECLARED
                yield lexeme.row, f"the variable {quote(lexeme.text)} is not declared in its batch", number
                declared.add(name)

    def _named(self, first: int, last: int) -> Iterator[int]:
        for position in range(first, min(last, len(self._lexemes))):
            lexeme = self._lexemes[position]
            if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@") and not lexeme.text.startswith("@@"):
                before = self._lexemes[position - 1] if position else None
                # A name may hold the sign as well: what it ends with is no variable.
                if lexeme.text != "@" and not (
                    before and before.kind is LexemeKind.WORD and before.end == lexeme.start
                ):
                    yield position

    def _is_table(self, position: int) -> bool:
        return position > 0 and self._lexemes[position - 1].upper in _BEFORE_TABLES
