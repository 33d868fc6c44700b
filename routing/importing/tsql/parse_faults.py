"""Find text that SQL Server certainly cannot parse, outside the statements of this reader.

A batch is parsed before any of its statements runs. Only certain causes are reported, so T-SQL that is unknown
here is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from routing.importing.tsql.script_statements import quote
from routing.importing.tsql.tokens import Lexeme, LexemeKind, LexemeList
from routing.importing.tsql.vocabulary import NOUNS, RESERVED, STARTERS, as_written, find_misspelt, name_character

NOT_BLOCKS = frozenset(["TRAN", "TRANSACTION", "WORK", "DIALOG", "CONVERSATION", "DISTRIBUTED"])
"""Words behind a BEGIN that opens no block."""

_OTHER_NOUNS = frozenset(["ROLE", "RULE", "SEQUENCE", "SERVER", "TABLE", "TYPE", "INDEX", "QUEUE"])
_OWN = ("AUTHORIZATION", "WITH", "ON", "STATE", "AS")
_OF_CALLS = frozenset(["OUTPUT", "OUT", "WITH", "AS", "AT"])


@dataclass(frozen=True)
class TextFault:
    """A row of a batch, and why the batch cannot be parsed for it."""

    row: int
    why: str


def find_imbalance(lexemes: Sequence[Lexeme]) -> TextFault | None:
    """Return the first parenthesis, BEGIN or END without its counterpart."""
    opened: list[Lexeme] = []
    for index, lexeme in enumerate(lexemes):
        if lexeme.upper == "CASE" or opens_block(lexemes, index) or _is_sign(lexeme, "("):
            opened.append(lexeme)
        elif _is_sign(lexeme, ")"):
            if not opened:
                return TextFault(lexeme.row, "this closing parenthesis has no opening one")
            if not _is_sign(opened[-1], "("):
                return TextFault(opened[-1].row, f"the {opened[-1].upper} that begins here has no END")
            opened.pop()
        elif closes_block(lexemes, index):
            if not opened:
                return TextFault(lexeme.row, "this END has no BEGIN")
            if _is_sign(opened[-1], "("):
                break
            opened.pop()
    if not opened:
        return None
    last = opened[-1]
    if _is_sign(last, "("):
        return TextFault(last.row, "the parenthesis that opens here is not closed")
    return TextFault(last.row, f"the {last.upper} that begins here has no END")


def opens_block(lexemes: Sequence[Lexeme], index: int) -> bool:
    """Return whether BEGIN opens a block here."""
    return lexemes[index].upper == "BEGIN" and _upper(lexemes, index + 1) not in NOT_BLOCKS


def closes_block(lexemes: Sequence[Lexeme], index: int) -> bool:
    """Return whether END closes a block or CASE, not a conversation nor GENERATED ALWAYS AS ROW END."""
    if lexemes[index].upper != "END" or _upper(lexemes, index + 1) == "CONVERSATION":
        return False
    return not (_upper(lexemes, index - 2) == "AS" and _upper(lexemes, index - 3) == "ALWAYS")


def _upper(lexemes: Sequence[Lexeme], index: int) -> str:
    return lexemes[index].upper if 0 <= index < len(lexemes) else ""


def _is_sign(lexeme: Lexeme, sign: str) -> bool:
    return lexeme.kind is LexemeKind.SIGN and lexeme.text == sign


def find_misspelt_start(first: Lexeme, second: Lexeme, third: Lexeme, is_first: bool) -> str | None:
    """Return the reason why no statement can begin with these words, or None if one may.

    The first statement of a batch may be the name of a procedure and its arguments.
    """
    keyword = find_misspelt(first.upper, STARTERS) if first.upper else None
    if keyword is None or _is_sign(second, ":"):
        return None
    is_call = second.kind is not LexemeKind.WORD or third.kind in (LexemeKind.SIGN, LexemeKind.END)
    if is_first and (is_call or third.upper in STARTERS or third.upper in _OF_CALLS):
        return None
    return f"no statement begins with {quote(first.text)}, but with {keyword}"


def find_misspelt_definition(words: Sequence[Lexeme]) -> str | None:
    """Find a misspelt verb, as in ``CRAETE ROUTE r WITH`` behind a statement without a semicolon."""
    for verb, noun, name, clause in zip(words, words[1:], words[2:], words[3:], strict=False):
        if noun.upper not in NOUNS[:3] or clause.upper not in _OWN:
            continue
        keyword = find_misspelt(verb.upper, ("CREATE", "ALTER")) if verb.upper else None
        if keyword is not None and name.kind in (LexemeKind.WORD, LexemeKind.NAME) and name.upper not in RESERVED:
            return f"{keyword} was meant by {quote(verb.text)}"
    return None


def find_misspelt_noun(noun: str) -> str | None:
    """Find the noun meant by an unknown word behind CREATE, ALTER or DROP."""
    return None if noun in _OTHER_NOUNS else find_misspelt(noun, NOUNS)


# Text that is not T-SQL: invisible and typographic characters, Markdown, prose. No batch with it can be parsed.


_TYPOGRAPHIC = re.compile(
    "[\u00ab\u00b4\u00bb\u2010-\u2015\u2018-\u201f\u2022\u2026\u2032-\u2036\u2039\u203a\u2212]"
)
"""Quotes, dashes and dots as word processors and web pages set them."""

_TAKE_OUT = "remove the line, or make it a comment (--)"
_FENCE = "this is a Markdown code fence, not T-SQL: keep only the text between the fences"
_DASH = "the line begins with a dash, which is not T-SQL: remove it, or begin a comment with two hyphens (--)"
_PROSE = f"the line is prose, not T-SQL: {_TAKE_OUT}"
_DASHES = ("-", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212")
_UNDERLINE = "==="
_BEGIN_BATCHES = "(;){.:"
"""Signs that a batch may begin with, or that are judged elsewhere."""

_FOLLOW_ARGUMENTS = STARTERS | {"OUTPUT", "OUT", "READONLY"}
_OTHER_STARTERS = frozenset(["COPY", "DUMP", "EXPLAIN", "LOAD", "RENAME"])
"""Words that begin statements of other releases and services of SQL Server."""

_WORD = re.compile(r"(?:[^\W\d_]{2,}'[a-z]{1,2}|\(?[^\W_][\w/-]*\)?)[,.:;!?]?")
_LETTERS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[^\W\d_]{2,}'[a-z]{1,2}")
_ARTICLES = frozenset(["our", "the", "these", "this", "your"])
_ENGLISH = _ARTICLES | frozenset(
    ["above", "below", "can", "following", "must", "please", "should", "that", "we", "will", "you"]
)
_HEADING = re.compile(r"#{1,6}(?=\s)")
_NUMBERED = re.compile(r"[^\W\d_]+ [0-9]+[:.)]")
# What a template leaves out or repeats is not known, as in Jinja, Go, Handlebars, Octopus and T4.
_TEMPLATE_BLOCK = re.compile(
    r"<#(?!=)(?:[^#<]|<(?!#)|#(?!>))*#>|<#[@+\s]"
    r"|\{%[^{}]*\}?|(?:\{\{[-~]?\s*|#\{)(?:[#/^]|(?:if|else|end|range|with|each|unless)\b)[^{}]*\}\}?"
)
_BLOCK_NAME = re.compile(r"\{[{%~\s-]*(?P<sign>[#/^]?)(?P<word>[a-z]*)")
_BLOCK_WORDS = frozenset(["block", "each", "for", "foreach", "if", "macro", "range", "raw", "unless", "with"])
_LONGEST_BLOCK = 200
_BLOCK_BEGINNINGS = ("{", "<", "\ue003", "\ue004")
"""A sign, or the mark of a placeholder in braces."""
_CODE_BLOCK = "<#"
"""The beginning of a block of T4. Its code is C#, and its braces may enclose the statements below."""
_OPERATORS = "+/=*&|^"
_DEFINING = frozenset(["CREATE", "ALTER", "DROP"])
_LEAST_WORDS = 4
_CALLED = 3
_ENDS_OF_SENTENCES = (".", ":", "!", "?")


def find_foreign_text(tokens: LexemeList) -> list[TextFault]:
    """Find text in a batch that is not T-SQL, at most once for each row."""
    first = tokens.lexemes[0] if tokens.lexemes else None
    begun = None if first is None else _judge_first_line(tokens, first)
    reasons_by_row = {} if first is None or begun is None else {first.row: begun}
    for row, character in tokens.invisible:
        name = name_character(character)
        reasons_by_row.setdefault(row, f"SQL Server cannot parse the invisible character {name} here")
    for index, lexeme in enumerate(tokens.lexemes):
        why = _judge_lexeme(tokens, lexeme) or _judge_operator(tokens.lexemes, index)
        if why is not None:
            reasons_by_row.setdefault(lexeme.row, why)
    return [TextFault(row, why) for row, why in sorted(reasons_by_row.items())]


def count_open_blocks(text: str) -> int:
    """Return the number of template blocks that begin in a batch, less those that end there."""
    if "{" not in text and _CODE_BLOCK not in text:
        # Large scripts that load data have no blocks, and a search of each character takes long.
        return 0
    begins = ends = 0
    blocks = [block[0] for block in _TEMPLATE_BLOCK.finditer(text)]
    of_code = [block for block in blocks if block.startswith(_CODE_BLOCK)]
    names = (_BLOCK_NAME.findall(block) for block in blocks if not block.startswith(_CODE_BLOCK))
    for sign, word in chain.from_iterable(names):
        begins += word in _BLOCK_WORDS if not sign else sign != "/" and word != ""
        ends += sign == "/" or word.startswith("end")
    return begins - ends + sum(block.count("{") - block.count("}") for block in of_code)


def _judge_lexeme(tokens: LexemeList, lexeme: Lexeme) -> str | None:
    is_place = lexeme.kind in (LexemeKind.WORD, LexemeKind.SIGN) and lexeme.text.startswith(_BLOCK_BEGINNINGS)
    part = as_written(tokens.text[lexeme.start : lexeme.start + _LONGEST_BLOCK]) if is_place else ""
    block = _TEMPLATE_BLOCK.match(part)
    if block is not None:
        return f"the template block {quote(block[0])} was not evaluated: let its tool do so first"
    if lexeme.kind is LexemeKind.SIGN and lexeme.text == "`":
        is_fence = tokens.text.startswith("```", lexeme.start)
        return _FENCE if is_fence else "SQL Server cannot parse a backtick here"
    if lexeme.kind is LexemeKind.SIGN and lexeme.text == "=" and tokens.text.startswith(_UNDERLINE, lexeme.start):
        return f"the line is Markdown, not T-SQL: {_TAKE_OUT}"
    typographic = _TYPOGRAPHIC.search(lexeme.text) if lexeme.kind in (LexemeKind.WORD, LexemeKind.SIGN) else None
    if typographic is None:
        return None
    name = name_character(typographic.group())
    return f"SQL Server cannot parse the typographic character {name} here"


def _judge_operator(lexemes: Sequence[Lexeme], index: int) -> str | None:
    """Return why an operator without one of its operands, as Oracle's line with a slash, cannot be parsed."""
    sign = lexemes[index]
    if index == 0 or sign.kind is not LexemeKind.SIGN or sign.text not in _OPERATORS:
        return None
    begins = _is_sign(lexemes[index - 1], ";")
    following = lexemes[index + 1] if index + 1 < len(lexemes) else None
    ends = following is None or _is_sign(following, ";") or following.upper in _DEFINING
    return f"SQL Server cannot parse {quote(sign.text)} here" if begins or (ends and sign.text != "*") else None


def _judge_first_line(tokens: LexemeList, first: Lexeme) -> str | None:
    end = tokens.text.find("\n", first.start)
    line = tokens.text[first.start : end if end >= 0 else None].strip()
    if line.startswith(("```", "~~~")):
        return _FENCE
    if line.startswith(_DASHES):
        return _DASH
    begun = _find_wrong_beginning(tokens, first, line)
    if begun is not None:
        return f"the line begins with {quote(begun)}, which no statement does: {_TAKE_OUT}"
    is_prose = first.kind is LexemeKind.WORD and (_is_prose(line) or _ends_in_comma(tokens, first))
    return _PROSE if is_prose else None


def _find_wrong_beginning(tokens: LexemeList, first: Lexeme, line: str) -> str | None:
    # Signs without words, such as comments in another language, prove nothing.
    if not any(lexeme.kind is LexemeKind.WORD and lexeme.text.strip("#@") for lexeme in tokens.lexemes):
        return None
    heading = _HEADING.match(line)
    if heading is not None:
        return heading.group()
    if first.kind is LexemeKind.WORD:
        is_list = first.upper not in STARTERS and tokens.lexemes[1:2] and tokens.lexemes[1].text == ","
        return f"{first.text}," if is_list else None
    is_template = first.text == "<" and "," in line
    is_sign = first.kind is LexemeKind.SIGN and first.text not in _BEGIN_BATCHES and not is_template
    return first.text if is_sign or first.kind is LexemeKind.NUMBER else None


def _ends_in_comma(tokens: LexemeList, first: Lexeme) -> bool:
    """Return whether a line that could call a procedure ends in a comma, and a statement follows."""
    count = next((at for at, lexeme in enumerate(tokens.lexemes) if lexeme.row != first.row), 0)
    is_call = first.upper not in STARTERS and count > 0
    return is_call and tokens.lexemes[count - 1].text == "," and tokens.lexemes[count].upper in STARTERS


def _is_prose(line: str) -> bool:
    """Return whether a line is an English sentence, or begins with three words that cannot call a procedure."""
    words = line.split()
    if _NUMBERED.match(line) is not None and words[0].upper() not in STARTERS:
        return True
    if len(words) > 1 and words[0].endswith(":"):
        words = words[1:]
    if len(words) < _CALLED:
        return False
    plain = [word.rstrip(",.:;!?").upper() for word in words]
    begins_statement = plain[0] in STARTERS | _OTHER_STARTERS or find_misspelt(plain[0], STARTERS) is not None
    if not begins_statement and all(_LETTERS.fullmatch(word) for word in (*words[:2], plain[2])):
        return plain[2] not in _FOLLOW_ARGUMENTS
    if len(words) < _LEAST_WORDS or not all(_WORD.fullmatch(word) for word in words):
        return False
    is_of_thing = plain[1].lower() in _ARTICLES and plain[2] not in RESERVED
    is_sentence = line.endswith(_ENDS_OF_SENTENCES) and any(word.lower() in _ENGLISH for word in plain)
    return is_of_thing or is_sentence


# The variables of a batch are declared once, before they are used, and known only in their batch.


_TWICE, _NOT_DECLARED, _NO_TABLE = 134, 137, 1087
_BEFORE_TABLES = frozenset(["FROM", "JOIN", "INTO", "INSERT", "APPLY"])


class VariableNames:
    """The places that declare or name variables. ``outside`` is None if any variable may be declared."""

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
                is_table = position > 0 and self._lexemes[position - 1].upper in _BEFORE_TABLES
                number = _NO_TABLE if is_table else _NOT_DECLARED
                yield lexeme.row, f"the variable {quote(lexeme.text)} is not declared in its batch", number
                declared.add(name)

    def _named(self, first: int, last: int) -> Iterator[int]:
        for position in range(first, min(last, len(self._lexemes))):
            lexeme = self._lexemes[position]
            if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@") and not lexeme.text.startswith("@@"):
                before = self._lexemes[position - 1] if position else None
                # A name may contain the sign too, and its end is not a variable.
                is_end = before and before.kind is LexemeKind.WORD and before.end == lexeme.start
                if lexeme.text != "@" and not is_end:
                    yield position
