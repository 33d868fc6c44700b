"""Evaluate expressions of constants: literals, variables whose value is known, concatenation.

Whatever else an expression holds makes its value unknown. Limits are the server's: a text joined of parts of which
none is a ``(max)`` is cut at 4,000 characters, and here not known beyond; a value is cut to its variable's length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from routing.importing.tsql.batch_course import StatementCondition
from routing.importing.tsql.cursor import drop_line_breaks
from routing.importing.tsql.script_statements import length
from routing.importing.tsql.tokens import Lexeme, LexemeKind

_LONGEST_JOINED = 4000
_SYSNAME = 128
_NUMBERS = frozenset(["INT", "BIGINT", "SMALLINT", "TINYINT"])
_TEXTS = {"NVARCHAR": True, "VARCHAR": False}
_CHARACTERS = {"CHAR": 127, "NCHAR": 0xD7FF}
"""CHAR(n) is of the code page from 128 on, NCHAR(n) half a character from 0xD800 on."""


@dataclass(frozen=True)
class KnownValue:
    """A known value: a text, or the digits of a whole number.

    ``is_long`` tells a text of type ``(max)``, ``is_national`` one of Unicode.
    """

    text: str
    is_number: bool = False
    is_long: bool = False
    is_national: bool = True


@dataclass(frozen=True)
class VariableType:
    """A variable's type as far as it matters; other types than texts and whole numbers hold nothing known.

    ``length`` is a text's, None for ``(max)``; of numbers, 1 is that of a bit.
    """

    is_text: bool = False
    is_number: bool = False
    is_national: bool = True
    length: int | None = 0

    def hold(self, value: KnownValue | None) -> KnownValue | None:
        """Return the value as a variable of this type holds it; None where that is not known."""
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
    """Return the type that is written so; a text's length is ``default`` where it is not given."""
    name = words[0].upper if words else ""
    if len(words) == 1 and name in _NUMBERS:
        return VariableType(is_number=True)
    if len(words) == 1 and name == "BIT":
        return VariableType(is_number=True, length=1)
    if len(words) == 1 and name == "SYSNAME":
        return VariableType(is_text=True, length=_SYSNAME)
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


ValueOf = Callable[[str], KnownValue | None]
"""The value of a variable, None where it is not known."""


class ExpressionReader:
    """Reads one expression; ``database`` is the one in use.

    With ``is_plain`` it is that of EXEC(…), which takes no functions, and texts in double quotes.
    """

    def __init__(
        self, words: Sequence[Lexeme], value_of: ValueOf, database: str | None, is_plain: bool = False
    ) -> None:
        self._words = words
        self._value_of = value_of
        self._database = database
        self._is_plain = is_plain
        self._at = 0

    def value(self) -> KnownValue | None:
        """Evaluate the whole expression; None where its value is not known."""
        result = self._sum()
        return result if self._at == len(self._words) else None

    def _take(self, sign: str) -> bool:
        is_here = self._at < len(self._words) and self._words[self._at].text == sign
        is_here = is_here and self._words[self._at].kind is LexemeKind.SIGN
        self._at += is_here
        return is_here

    def _sum(self) -> KnownValue | None:
        total = self._term()
        while total is not None and self._take("+"):
            total = join(total, self._term())
        return total

    def _term(self) -> KnownValue | None:
        if self._at >= len(self._words):
            return None
        word = self._words[self._at]
        self._at += 1
        if word.kind is LexemeKind.STRING or (self._is_plain and word.kind is LexemeKind.NAME):
            text = drop_line_breaks(word.text)
            return KnownValue(text, False, length(text) > _LONGEST_JOINED, word.is_national)
        if word.kind is LexemeKind.NUMBER and re.fullmatch(r"[0-9]{1,18}", word.text):
            return KnownValue(str(int(word.text)), is_number=True)
        if word.kind is LexemeKind.WORD and word.text.startswith("@"):
            return self._value_of(word.text)
        if word.kind is LexemeKind.SIGN and word.text == "(":
            inner_value = self._sum()
            return inner_value if self._take(")") else None
        return None if self._is_plain else self._function(word.upper)

    def _function(self, name: str) -> KnownValue | None:
        if not self._take("("):
            return None
        if name == "DB_NAME":
            database_name = None if self._database is None else KnownValue(self._database)
            return database_name if self._take(")") else None
        if name == "CAST":
            inner_value = self._sum()
            return self._converted(inner_value) if self._take_word("AS") else None
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        if not self._take(")") or None in arguments:
            return None
        return _call(name, [value for value in arguments if value is not None])

    def _take_word(self, word: str) -> bool:
        is_here = self._at < len(self._words) and self._words[self._at].upper == word
        self._at += is_here
        return is_here

    def _converted(self, value: KnownValue | None) -> KnownValue | None:
        start = self._at
        while self._at < len(self._words) and self._words[self._at].text != ")":
            self._at += 1
        has_length = any(word.text == "(" for word in self._words[start : self._at])
        self._at += has_length
        kind = read_type(self._words[start : self._at], default=30)
        return kind.hold(value) if self._take(")") else None


def join(left: KnownValue, right: KnownValue | None) -> KnownValue | None:
    """Join two texts; None where the result is not known."""
    if right is None or left.is_number or right.is_number:
        return None
    joined = KnownValue(
        left.text + right.text,
        False,
        left.is_long or right.is_long,
        left.is_national or right.is_national,
    )
    return joined if joined.is_long or length(joined.text) <= _LONGEST_JOINED else None


def _call(name: str, arguments: list[KnownValue]) -> KnownValue | None:
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
    if len(arguments) > 2 or quote_mark not in ("[", "]", "'", '"') or length(name.text) > _SYSNAME:
        return None
    opening, closing = ("[", "]") if quote_mark in "[]" else (quote_mark, quote_mark)
    return KnownValue(opening + name.text.replace(closing, 2 * closing) + closing)


# The variables of one batch, and what they hold as far as its text tells.


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
