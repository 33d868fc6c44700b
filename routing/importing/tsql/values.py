"""Hold known values of expressions, compute with them, and hold the variables of a batch with these values.

Limits are the server's. A text joined of parts without a ``(max)`` is cut at 4,000 characters, and unknown after
that. A value is cut to its variable's length.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from routing.importing.tsql.batch_course import StatementCondition
from routing.importing.tsql.script_statements import ConditionGuard, length
from routing.importing.tsql.tokens import Lexeme, LexemeKind

LONGEST_JOINED = 4000
SYSNAME = 128
_NUMBERS = frozenset(["INT", "BIGINT", "SMALLINT", "TINYINT"])
_TEXTS = {"NVARCHAR": True, "VARCHAR": False}


@dataclass(frozen=True)
class KnownValue:
    """A known value: a text, or the digits of a whole number.

    ``is_long`` marks a text of type ``(max)``, ``is_national`` a Unicode text.
    """

    text: str
    is_number: bool = False
    is_long: bool = False
    is_national: bool = True


@dataclass(frozen=True)
class CatalogValue:
    """A value that a catalog view decides: ``yes`` if the guard holds, else ``no``. None is NULL.

    ``answer`` is the state's answer when the value was read, or None if it had none.
    """

    guard: ConditionGuard
    yes: KnownValue | None
    no: KnownValue | None
    answer: bool | None

    def convert(self, convert: Callable[[KnownValue], KnownValue | None]) -> CatalogValue | None:
        """Return the value with both outcomes converted, or None if one becomes unknown."""
        yes, no = (value if value in (None, ANYTHING) else convert(value) for value in (self.yes, self.no))
        is_known = (yes is None) == (self.yes is None) and (no is None) == (self.no is None)
        return replace(self, yes=yes, no=no) if is_known else None


ANYTHING = KnownValue("\0")
"""A value that is not known and not NULL."""

Value = KnownValue | CatalogValue


@dataclass(frozen=True)
class VariableType:
    """A variable's type: text, whole number or another type. Other types have no known values.

    ``length`` is a text's, or None for ``(max)``. For numbers, 1 is that of a bit.
    """

    is_text: bool = False
    is_number: bool = False
    is_national: bool = True
    length: int | None = 0

    def hold(self, value: Value | None) -> Value | None:
        """Return the value in the form of a variable of this type, or None if it is unknown."""
        return value.convert(self.hold_known) if isinstance(value, CatalogValue) else self.hold_known(value)

    def hold_known(self, value: KnownValue | None) -> KnownValue | None:
        """Return the known value as a variable of this type holds it."""
        if value is None or (self.is_number and not value.is_number):
            return None
        if self.is_number:
            return value if self.length == 0 or value.text in ("0", "1") else None
        if not self.is_text or not (self.is_national or value.text.isascii()):
            return None
        text = value.text if self.length is None else _cut(value.text, self.length)
        if value.is_number and text != value.text:
            return None
        return KnownValue(text, False, self.length is None, self.is_national)


def _cut(text: str, units: int) -> str:
    return text if length(text) <= units else text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "replace")


def read_type(words: Sequence[Lexeme], default: int = 1) -> VariableType:
    """Return the type from its words. A text without a length has length ``default``."""
    name = words[0].upper if words else ""
    if len(words) == 1 and name in _NUMBERS:
        return VariableType(is_number=True)
    if len(words) == 1 and name == "BIT":
        return VariableType(is_number=True, length=1)
    if len(words) == 1 and name == "SYSNAME":
        return VariableType(is_text=True, length=SYSNAME)
    if name not in _TEXTS or len(words) not in (1, 4):
        return VariableType()
    length_text = words[2].text if len(words) == 4 else str(default)
    if length_text.upper() == "MAX":
        return VariableType(True, False, _TEXTS[name], None)
    return (
        VariableType(True, False, _TEXTS[name], int(length_text))
        if re.fullmatch(r"[0-9]{1,4}", length_text)
        else VariableType()
    )


def join(left: KnownValue, right: KnownValue | None) -> KnownValue | None:
    """Join two texts, or return None if the result is unknown."""
    if right is None or left.is_number or right.is_number:
        return None
    joined = KnownValue(
        left.text + right.text, False, left.is_long or right.is_long, left.is_national or right.is_national
    )
    return joined if joined.is_long or length(joined.text) <= LONGEST_JOINED else None


ONE, ZERO = KnownValue("1", is_number=True), KnownValue("0", is_number=True)
EQUAL = ("=", "LIKE")
"""Signs under which a name without wildcards is that name."""

_CHARACTERS = {"CHAR": 127, "NCHAR": 0xD7FF}
"""CHAR(n) is of the code page from 128 on, NCHAR(n) half a character from 0xD800 on."""

_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_LIKE = ("LIKE", "NOT LIKE")


def number_of(value: int) -> KnownValue:
    """Return a whole number."""
    return KnownValue(str(value), is_number=True)


def compare(sign: str, left: Value | None, right: Value | None) -> bool | None:
    """Compare two values, or return None if the result is unknown. NULL equals no value.

    ASCII texts that differ in more than case differ under every collation.
    """
    if left is None or right is None:
        return False
    if not (isinstance(left, KnownValue) and isinstance(right, KnownValue)) or ANYTHING in (left, right):
        return None
    if left.is_number != right.is_number:
        return None
    if left.is_number:
        holds = _COMPARE.get(sign)
        return None if holds is None else holds(int(left.text), int(right.text))
    has_wildcard = sign in _LIKE and any(wildcard in right.text for wildcard in "%_[")
    if sign not in ("=", "<>", "!=", *_LIKE) or has_wildcard:
        return None
    text, other_text = left.text.rstrip(" "), right.text.rstrip(" ")
    if text == other_text:
        return sign in EQUAL
    is_sure = text.isascii() and other_text.isascii() and text.lower() != other_text.lower()
    return sign not in EQUAL if is_sure else None


def call_function(name: str, arguments: list[KnownValue]) -> KnownValue | None:
    """Evaluate a function of texts and numbers, or return None if its value is unknown."""
    if name in _CHARACTERS and len(arguments) == 1 and arguments[0].is_number:
        number = int(arguments[0].text)
        return KnownValue(chr(number), is_national=name == "NCHAR") if number <= _CHARACTERS[name] else None
    if name == "QUOTENAME" and not any(value.is_number for value in arguments):
        return _quoted(arguments)
    if name == "CONCAT" and len(arguments) > 1:
        joined: KnownValue | None = replace(arguments[0], is_number=False)
        for value in arguments[1:]:
            joined = None if joined is None else join(joined, replace(value, is_number=False))
        return joined
    return None


def _quoted(arguments: list[KnownValue]) -> KnownValue | None:
    """Evaluate QUOTENAME: a name in brackets, or in the quotes that are its second argument."""
    name, quote_mark = arguments[0], arguments[1].text if len(arguments) == 2 else "["
    if len(arguments) > 2 or quote_mark not in ("[", "]", "'", '"') or length(name.text) > SYSNAME:
        return None
    opening, closing = ("[", "]") if quote_mark in "[]" else (quote_mark, quote_mark)
    return KnownValue(opening + name.text.replace(closing, 2 * closing) + closing)


# The variables of one batch, with their values if the text shows them.


@dataclass
class _Variable:
    type: VariableType
    value: Value | None = None
    assigned: StatementCondition | None = None


class VariableValues:
    """Values by name in any case. A value counts only if the condition of its assignment holds too."""

    def __init__(self) -> None:
        self._variables: dict[str, _Variable] = {}

    @property
    def names(self) -> Collection[str]:
        """The names of the variables, in lower case."""
        return self._variables.keys()

    def declare(self, name: str, kind: VariableType) -> None:
        """Declare a variable without a value."""
        self._variables[name.casefold()] = _Variable(kind)

    def assign(self, name: str, value: Value | None, condition: StatementCondition) -> Value | None:
        """Assign a value, or None for an unknown one. Return the variable's new value."""
        variable = self._variables.get(name.casefold())
        if variable is None:
            return None
        variable.value, variable.assigned = variable.type.hold(value), condition
        return variable.value

    def value(self, name: str, condition: StatementCondition) -> Value | None:
        """Return the certain value of a variable under a condition, or None if it is unknown."""
        variable = self._variables.get(name.casefold())
        if variable is None or variable.assigned is None:
            return None
        assigned_when = variable.assigned
        holds = condition.guards[
            : len(assigned_when.guards)
        ] == assigned_when.guards and assigned_when.why_not in (None, condition.why_not)
        return variable.value if holds else None

    def is_null(self, name: str) -> bool:
        """Return whether a variable was declared and never given a value."""
        variable = self._variables.get(name.casefold())
        return variable is not None and variable.assigned is None

    def resolve(self, words: Sequence[Lexeme], condition: StatementCondition) -> tuple[Lexeme, ...]:
        """Return the words, with constants in place of variables with known values."""
        return tuple(self._resolve(word, condition) for word in words)

    def _resolve(self, word: Lexeme, condition: StatementCondition) -> Lexeme:
        value = self.value(word.text, condition) if word.kind is LexemeKind.WORD else None
        if not isinstance(value, KnownValue):
            return word
        kind = LexemeKind.NUMBER if value.is_number else LexemeKind.STRING
        return replace(word, kind=kind, text=value.text, upper="")

    def forget(self, name: str) -> None:
        """Forget a variable's value, which only the server knows from here on."""
        self.assign(name, None, StatementCondition())

    def forget_all(self) -> None:
        """Forget the values of all variables, as at a label to which a GOTO leads."""
        for name in self._variables:
            self.forget(name)


def find_changed(words: Sequence[Lexeme]) -> set[str]:
    """Return the variables that a statement may change, other than by a mere assignment."""
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
