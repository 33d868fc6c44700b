"""Texts that make a bad regular expression slow, built from its own parts.

Backtracking repeats the repetitions of an expression too often. So each text has a possible beginning, a repeated
text that any part of the expression can match, and an end that fits nowhere.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# The standard library's own parser of regular expressions has no public name.
_PARSER: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_MANY = 12
_TAILS = ("", "\x00\n")
# What the classes of characters are tried with, wherever a class takes it.
_TRIED = (" ", "\t", "\n", "a", "A", "0", "_", "/", ":", ".", '"', "'", "-", "é", "\x00")
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda sign: sign.isalnum() or sign == "_",
}


@dataclass(frozen=True)
class Text:
    """A text as its beginning, its repeated part and its end."""

    head: str
    part: str
    tail: str

    def of(self, length: int) -> str:
        """The text, about so many characters long."""
        return self.head + self.part * (length // len(self.part)) + self.tail


def texts(pattern: str, flags: int = 0) -> list[Text]:
    """The texts of one expression, the repeated part still to be repeated."""
    tree = list(_PARSER.parse(pattern, flags))
    signs = list(dict.fromkeys(sign for item in tree for sign in _signs(item)))[:_MANY]
    loops = list(_loops(tree, ""))
    heads = list(dict.fromkeys(["", *(head for head, _ in loops)]))
    whole = [part for head, body in loops for part in (body, head + body, body + head)]
    pairs = [a + b for a in signs for b in signs if a != b]
    repeated = list(dict.fromkeys([*signs, *whole, *pairs]))
    return [Text(head, part, tail) for head in heads for part in repeated if part for tail in _TAILS]


def _loops(items: Iterable[Any], before: str) -> Iterator[tuple[str, str]]:
    """Each repetition without a small bound: the shortest text before it, and one of its body."""
    for item in items:
        operation, operand = str(item[0]), item[1]
        if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = operand
            if most > _MANY:
                yield before, _sample(body)
            yield from _loops(body, before)
        else:
            for inner in _inner(operation, operand):
                yield from _loops(inner, before)
        before += _sample([item])


def _inner(operation: str, operand: Any) -> list[Any]:
    """The expressions inside a group, a choice or an assertion."""
    if operation == "SUBPATTERN":
        return [operand[-1]]
    if operation == "BRANCH":
        return list(operand[1])
    if operation in ("ASSERT", "ASSERT_NOT"):
        return [operand[1]]
    return [operand] if operation == "ATOMIC_GROUP" else []


def _sample(items: Iterable[Any]) -> str:
    """Return a short matching text, ignoring assertions."""
    parts = []
    for item in items:
        operation, operand = str(item[0]), item[1]
        if operation in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            parts.append(next(iter(_signs(item)), ""))
        elif operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            # Once where none would do as well: what follows may need it.
            parts.append(_sample(operand[2]) * max(operand[0], 1))
        elif operation in ("SUBPATTERN", "BRANCH", "ATOMIC_GROUP"):
            parts.append(_sample(_inner(operation, operand)[0]))
    return "".join(parts)


def _signs(item: Any) -> Iterator[str]:
    """Characters that some part of an expression reads."""
    operation, operand = str(item[0]), item[1]
    if operation == "LITERAL":
        yield chr(operand)
    elif operation == "NOT_LITERAL":
        yield from (sign for sign in _TRIED if sign != chr(operand))
    elif operation == "ANY":
        yield from _TRIED
    elif operation == "IN":
        listed = [part for part in operand if str(part[0]) != "NEGATE"]
        is_negated = len(listed) < len(operand)
        ends = [chr(part[1]) for part in listed if str(part[0]) == "LITERAL"]
        ends += [chr(part[1][0]) for part in listed if str(part[0]) == "RANGE"]
        yield from (
            sign for sign in (*([] if is_negated else ends), *_TRIED) if _is_in(sign, listed) != is_negated
        )
    elif operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        yield from (sign for inner in operand[2] for sign in _signs(inner))
    else:
        yield from (sign for inner in _inner(operation, operand) for part in inner for sign in _signs(part))


def _is_in(sign: str, listed: Iterable[Any]) -> bool:
    for part in listed:
        kind, operand = str(part[0]), part[1]
        if kind == "LITERAL" and ord(sign) == operand:
            return True
        if kind == "RANGE" and operand[0] <= ord(sign) <= operand[1]:
            return True
        if kind == "CATEGORY":
            name = str(operand).removeprefix("CATEGORY_")
            if _CATEGORIES[name.removeprefix("NOT_")](sign) != name.startswith("NOT_"):
                return True
    return False
