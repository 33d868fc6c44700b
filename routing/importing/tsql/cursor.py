"""A position in a script's lexemes, to read words, names, strings and numbers of a statement.

A missing lexeme raises RefusalError. The statement is then left out and reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from routing.importing.tsql.script_statements import (
    JOINED,
    RESERVED_WORD,
    RefusalError,
    UnparsedError,
    length,
    no_value,
    not_filled_in,
    quote,
)
from routing.importing.tsql.tokens import Lexeme, LexemeKind, LexemeList
from routing.importing.tsql.vocabulary import (
    FOLLOWERS,
    RESERVED,
    UNSEEN,
    find_unfilled,
    find_unknown_variable,
    is_stand_in,
    name_character,
)

NAME_LENGTH = 128
"""Of a sysname, in UTF-16 units as SQL Server counts."""

_NAME_TOO_LONG, _NAME_EMPTY = 103, 1038
_PLAIN_NAME = re.compile(r"[^\W\d][\w@$#]*|[_#][\w@$#]*")
_PLACEHOLDER = re.compile(r"<([^<>,\r\n]+),([^<>,\r\n]*),([^<>\r\n]*)>")
_PLACEHOLDER_LEXEMES = 60
_CONTINUED_LINE = re.compile(r"\\\r?\n")


def drop_line_breaks(literal: str) -> str:
    """Return a literal without its continued lines: a backslash at a line's end takes that end away."""
    return _CONTINUED_LINE.sub("", literal)


class LexemeCursor:
    """Reads lexemes from left to right. ``notes`` collects remarks on the current statement."""

    def __init__(self, tokens: LexemeList) -> None:
        self._lexemes = tokens.lexemes
        self._text = tokens.text
        rows = tokens.lexemes[-1].row if tokens.lexemes else 0
        self._end = Lexeme(LexemeKind.END, "the end of the text", "", len(tokens.text), len(tokens.text), rows)
        self._partners = _partners(tokens.lexemes)
        self.position = 0
        self.notes: list[str] = []

    def peek(self, ahead: int = 0) -> Lexeme:
        """Return the current lexeme, or one at an offset from it."""
        index = self.position + ahead
        return self._lexemes[index] if index < len(self._lexemes) else self._end

    def next(self) -> Lexeme:
        """Return the current lexeme and move past it."""
        lexeme = self.peek()
        self.position = min(self.position + 1, len(self._lexemes))
        return lexeme

    @property
    def at_end(self) -> bool:
        """True at the end of the lexemes."""
        return self.peek().kind is LexemeKind.END

    @property
    def at_group(self) -> bool:
        """Whether a parenthesis or CASE that is closed again opens here."""
        return self.position in self._partners

    @property
    def group_end(self) -> int:
        """The place behind the parenthesis or CASE that opens here and is closed."""
        return self._partners[self.position] + 1

    def skip_group(self) -> bool:
        """Move past a complete group or CASE. Return False if none begins or ends here."""
        partner = self._partners.get(self.position)
        if partner is None:
            return False
        self.position = partner + 1
        return True

    def skip_item(self) -> None:
        """Move past a complete group or CASE, or else a single lexeme."""
        if not self.skip_group():
            self.next()

    def group(self) -> tuple[Lexeme, ...]:
        """Return the content of the parenthesis that opens here, and move past it."""
        start = self.position
        if not (self.at("(") and self.skip_group()):
            raise self.unexpected("a parenthesis and its end")
        return self._lexemes[start + 1 : self.position - 1]

    def between(self, first: int, last: int) -> tuple[Lexeme, ...]:
        """Return the lexemes at the places from ``first`` up to ``last``."""
        return self._lexemes[first:last]

    def at(self, *texts: str) -> bool:
        """Return True if these signs and unquoted words, in any case, come next."""
        for index, text in enumerate(texts):
            lexeme = self.peek(index)
            if (lexeme.text if lexeme.kind is LexemeKind.SIGN else lexeme.upper) != text:
                return False
        return True

    @property
    def at_label(self) -> bool:
        """Whether a label, which GOTO names, comes next."""
        is_word = self.peek().kind is LexemeKind.WORD and self.peek(1).text == ":"
        return is_word and self.peek(2).text != ":" and self.peek(1).kind is LexemeKind.SIGN

    def take(self, *texts: str) -> bool:
        """Move past these signs and words if they come next."""
        if not self.at(*texts):
            return False
        self.position += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        """Move past these signs and words, which must come next."""
        if not self.take(*texts):
            raise self.unexpected(" ".join(text if text.isidentifier() else quote(text) for text in texts))

    def parts(self) -> list[str]:
        """Return the parts of a name, those left out between dots empty."""
        parts = [self.next().text]
        while self.take("."):
            parts.append("" if self.at(".") else self.next().text)
        return parts

    def name(self, noun: str) -> str:
        """Return an identifier of one part, unquoted and at most a sysname long."""
        lexeme = self.peek()
        if self.at("<"):
            value = self.placeholder(noun)
        elif lexeme.kind is LexemeKind.NAME:
            value = self._refuse_unreadable(self.next().text, noun)
        else:
            value = self._plain_name(noun)
        if self.at("."):
            raise UnparsedError(f"the {noun} {quote(value)} must have one part")
        if value == "":
            raise UnparsedError(f"the {noun} is empty", _NAME_EMPTY)
        if length(value) > NAME_LENGTH:
            raise UnparsedError(f"the {noun} is longer than {NAME_LENGTH} characters", _NAME_TOO_LONG)
        return value

    def skip_owner(self) -> bool:
        """Move past AUTHORIZATION and a name, if they come next."""
        has_owner = self.take("AUTHORIZATION")
        if has_owner:
            self.name("owner name")
        return has_owner

    def string(self, noun: str) -> str:
        """Return a string literal. Text in double quotes counts too, because no name is possible here."""
        if self.at("<"):
            return self.placeholder(noun)
        if self.peek().kind not in (LexemeKind.STRING, LexemeKind.NAME) or self._text[self.peek().start] == "[":
            raise self.unexpected(f"{noun} in quotes")
        return self._refuse_unreadable(drop_line_breaks(self.next().text), noun)

    def integer(self, noun: str) -> int:
        """Return a whole number, which may have a sign."""
        if self.at("<"):
            digits = self.placeholder(noun)
        else:
            sign = "-" if self.take("-") else ""
            if self.peek().kind is not LexemeKind.NUMBER:
                raise self.unexpected(f"{noun}, a whole number,")
            digits = sign + self.next().text
        if re.fullmatch(r"-?[0-9]{1,18}", digits) is None:
            raise UnparsedError(f"the {noun} {quote(digits)} is not a whole number")
        return int(digits)

    def placeholder(self, noun: str) -> str:
        """Return the default of a template's ``<name, type, default>`` outside quotes."""
        return self._refuse_unreadable(self.skip_placeholder(noun), noun)

    def skip_placeholder(self, noun: str) -> str:
        """Move past a template's ``<name, type, default>`` outside quotes, and return it as it is written."""
        start = self.position
        for _ in range(_PLACEHOLDER_LEXEMES):
            if self.at_end or self.at(">"):
                break
            self.next()
        text = self._text[self._lexemes[start].start : self.peek().end]
        if self.at_end or _PLACEHOLDER.fullmatch(text) is None:
            self.position = start
            raise self.unexpected(f"the {noun}")
        self.next()
        return text

    def end_of_statement(self) -> None:
        """Require a semicolon, the next statement or the end. Raises RefusalError."""
        lexeme = self.peek()
        if lexeme.kind is LexemeKind.END or self.at(";") or lexeme.upper in FOLLOWERS or self.at_label:
            return
        raise self.unexpected("the end of the statement")

    def unexpected(self, expected: str) -> RefusalError:
        """Return the error for an unexpected lexeme."""
        lexeme = self.peek()
        missing = find_unknown_variable(lexeme.text)
        if missing is not None:
            return no_value(missing)
        unfilled = find_unfilled(self._text, lexeme.start)
        if unfilled is not None:
            return not_filled_in(unfilled)
        if lexeme.kind is LexemeKind.CUT:
            return UnparsedError(f"the text ends inside a {lexeme.text}", None)
        if lexeme.kind is LexemeKind.SIGN and lexeme.text == "+":
            return UnparsedError(JOINED)
        if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@"):
            return UnparsedError(f"{expected} was expected, not the variable {quote(lexeme.text)}")
        actual = lexeme.text if lexeme.kind is LexemeKind.END else quote(lexeme.text)
        return UnparsedError(f"{expected} was expected, not {actual}")

    def _plain_name(self, noun: str) -> str:
        lexeme = self.peek()
        if lexeme.kind is not LexemeKind.WORD or find_unknown_variable(lexeme.text) is not None:
            raise self.unexpected(f"the {noun}")
        if lexeme.upper in RESERVED:
            why = f"the {noun} was expected, not {quote(lexeme.text)}, a reserved keyword"
            raise UnparsedError(f"{why}: put it in brackets to use it as a name", RESERVED_WORD)
        if _PLAIN_NAME.fullmatch(lexeme.text) is None:
            raise self.unexpected(f"the {noun}")
        return self._refuse_unreadable(self.next().text, noun)

    def _refuse_unreadable(self, text: str, noun: str) -> str:
        """Return the text, unless it holds a variable without value or an unreadable character."""
        missing = find_unknown_variable(text)
        if missing is not None:
            raise no_value(missing)
        filled = _PLACEHOLDER.sub("", text)
        unfilled = find_unfilled(filled)
        if unfilled is not None:
            raise not_filled_in(unfilled)
        if "\ufffd" in text:
            why = "contains a character that cannot be read in its encoding"
            raise RefusalError(f"the {noun} {quote(text)} {why}")
        if is_stand_in(filled):
            self.notes.append(f"the {noun} {quote(text)} looks like a placeholder that was not filled in")
        unseen = UNSEEN.search(text)
        if unseen is not None:
            self.notes.append(f"the {noun} contains the invisible character {name_character(unseen.group())}")
        return _PLACEHOLDER.sub(self._default, text)

    def _default(self, placeholder: re.Match[str]) -> str:
        name, default = placeholder.group(1).strip(), placeholder.group(3).strip()
        why = f"the template's place {quote(name)} was not filled in"
        if default == "":
            raise RefusalError(f"{why} and has no default")
        self.notes.append(f"{why}: its default {quote(default)} is read")
        return default


def _partners(lexemes: Sequence[Lexeme]) -> dict[int, int]:
    """Return the ends of closed parentheses and CASEs, by their begin."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for index, lexeme in enumerate(lexemes):
        is_sign = lexeme.kind is LexemeKind.SIGN
        if lexeme.upper == "CASE" or (is_sign and lexeme.text == "("):
            opened.append(index)
        elif lexeme.upper == "END" and opened and lexemes[opened[-1]].upper == "CASE":
            partners[opened.pop()] = index
        elif is_sign and lexeme.text == ")":
            while opened and lexemes[opened[-1]].upper == "CASE":
                opened.pop()
            if opened:
                partners[opened.pop()] = index
    return partners
