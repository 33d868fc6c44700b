"""The variables of one batch, and what they hold as far as its text tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from routing.importing.tsql.constants import KnownValue, VariableType
from routing.importing.tsql.statement_condition import StatementCondition
from routing.importing.tsql.tokens import Lexeme, LexemeKind


@dataclass
class _Variable:
    type: VariableType
    value: KnownValue | None = None
    assigned: StatementCondition | None = None


class VariableValues:
    """Values by name, in any case; a value counts only where what it was assigned under holds as well."""

    def __init__(self) -> None:
        self._variables: dict[str, _Variable] = {}

    def declare(self, name: str, kind: VariableType) -> None:
        """Declare a variable without a value."""
        self._variables[name.casefold()] = _Variable(kind)

    def assign(self, name: str, value: KnownValue | None, condition: StatementCondition) -> KnownValue | None:
        """Assign a value, None for an unknown one; return what the variable holds then."""
        variable = self._variables.get(name.casefold())
        if variable is None:
            return None
        variable.value, variable.assigned = variable.type.hold(value), condition
        return variable.value

    def value(self, name: str, condition: StatementCondition) -> KnownValue | None:
        """Return the value that a variable surely has under a condition; None where it is not known."""
        variable = self._variables.get(name.casefold())
        if variable is None or variable.assigned is None:
            return None
        then = variable.assigned
        holds = condition.guards[: len(then.guards)] == then.guards and then.why_not in (None, condition.why_not)
        return variable.value if holds else None

    def resolve(self, words: Sequence[Lexeme], condition: StatementCondition) -> tuple[Lexeme, ...]:
        """Return the words, with constants in the place of variables whose values are known."""
        return tuple(self._resolve(word, condition) for word in words)

    def _resolve(self, word: Lexeme, condition: StatementCondition) -> Lexeme:
        value = self.value(word.text, condition) if word.kind is LexemeKind.WORD else None
        if value is None:
            return word
        return replace(
            word, kind=LexemeKind.NUMBER if value.is_number else LexemeKind.STRING, text=value.text, upper=""
        )

    def forget(self, name: str) -> None:
        """Forget a variable's value, which only the server knows from here on."""
        self.assign(name, None, StatementCondition())

    def forget_all(self) -> None:
        """Forget the values of all variables, as at a label to which a GOTO leads."""
        for name in self._variables:
            self.forget(name)


def find_changed(words: Sequence[Lexeme]) -> set[str]:
    """Return the variables that a statement, which is not an assignment alone, may give other values."""
    is_call = bool(words) and words[0].upper in ("EXEC", "EXECUTE")
    changed_names = set()
    for index, word in enumerate(words):
        if word.kind is not LexemeKind.WORD or not word.text.startswith("@"):
            continue
        following = [after.text for after in words[index + 1 : index + 3]]
        is_output = following[:1] and following[0].upper() in ("OUTPUT", "OUT")
        is_assigned = following[:1] == ["="] or following[1:] == ["="]
        is_fetched = words[0].upper == "FETCH"
        if is_output or is_fetched or (is_assigned and (index == 1 or not is_call)):
            changed_names.add(word.text)
    return changed_names
