"""What SQL Server surely cannot parse, apart from the statements that are read here.

A batch is parsed before any of it runs. Only causes that are certain are reported: T-SQL that is merely not known
here is not among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routing.importing.tsql.script_statements import quote
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import NOUNS, RESERVED, STARTERS, find_misspelt

NOT_BLOCKS = frozenset(["TRAN", "TRANSACTION", "WORK", "DIALOG", "CONVERSATION", "DISTRIBUTED"])
"""Words behind a BEGIN that opens no block."""

_OTHER_NOUNS = frozenset(["ROLE", "RULE", "SEQUENCE", "SERVER", "TABLE", "TYPE", "INDEX", "QUEUE"])
_OWN = ("AUTHORIZATION", "WITH", "ON", "STATE", "AS")
_OF_CALLS = frozenset(["OUTPUT", "OUT", "WITH", "AS", "AT"])


@dataclass(frozen=True)
class UnbalancedBatch:
    """The place where a batch opens what it does not close, or closes what it did not open."""

    row: int
    why: str


def find_imbalance(lexemes: Sequence[Lexeme]) -> UnbalancedBatch | None:
    """Return the first parenthesis, BEGIN or END without its counterpart."""
    opened: list[Lexeme] = []
    for index, lexeme in enumerate(lexemes):
        if lexeme.upper == "CASE" or _opens_block(lexemes, index) or _is_sign(lexeme, "("):
            opened.append(lexeme)
        elif _is_sign(lexeme, ")"):
            if not opened:
                return UnbalancedBatch(lexeme.row, "a parenthesis is closed here that none opens")
            if not _is_sign(opened[-1], "("):
                return UnbalancedBatch(opened[-1].row, f"the {opened[-1].upper} that begins here has no END")
            opened.pop()
        elif _closes(lexemes, index):
            if not opened:
                return UnbalancedBatch(lexeme.row, "an END stands here that no BEGIN opens")
            if _is_sign(opened[-1], "("):
                break
            opened.pop()
    if not opened:
        return None
    last = opened[-1]
    what = "the parenthesis that opens here is not closed"
    return UnbalancedBatch(
        last.row, what if _is_sign(last, "(") else f"the {last.upper} that begins here has no END"
    )


def _opens_block(lexemes: Sequence[Lexeme], index: int) -> bool:
    return lexemes[index].upper == "BEGIN" and _upper(lexemes, index + 1) not in NOT_BLOCKS


def _closes(lexemes: Sequence[Lexeme], index: int) -> bool:
    """Return whether END closes a block or CASE, not a conversation nor GENERATED ALWAYS AS ROW END."""
    if lexemes[index].upper != "END" or _upper(lexemes, index + 1) == "CONVERSATION":
        return False
    return not (_upper(lexemes, index - 2) == "AS" and _upper(lexemes, index - 3) == "ALWAYS")


def _upper(lexemes: Sequence[Lexeme], index: int) -> str:
    return lexemes[index].upper if 0 <= index < len(lexemes) else ""


def _is_sign(lexeme: Lexeme, sign: str) -> bool:
    return lexeme.kind is LexemeKind.SIGN and lexeme.text == sign


def find_misspelt_start(first: Lexeme, second: Lexeme, third: Lexeme, is_first: bool) -> str | None:
    """Return the reason why no statement can begin so; None where one may.

    The first statement of a batch may be the name of a procedure and its arguments.
    """
    meant = find_misspelt(first.upper, STARTERS) if first.upper else None
    if meant is None or _is_sign(second, ":"):
        return None
    is_call = second.kind is not LexemeKind.WORD or third.kind in (LexemeKind.SIGN, LexemeKind.END)
    if is_first and (is_call or third.upper in STARTERS or third.upper in _OF_CALLS):
        return None
    return f"no statement begins with {quote(first.text)}, but with {meant}"


def find_misspelt_definition(words: Sequence[Lexeme]) -> str | None:
    """Find a misspelt verb, as in ``CRAETE ROUTE r WITH`` behind a statement without a semicolon."""
    for verb, noun, name, clause in zip(words, words[1:], words[2:], words[3:], strict=False):
        if noun.upper not in NOUNS[:3] or clause.upper not in _OWN:
            continue
        meant = find_misspelt(verb.upper, ("CREATE", "ALTER")) if verb.upper else None
        if meant is not None and name.kind in (LexemeKind.WORD, LexemeKind.NAME) and name.upper not in RESERVED:
            return f"{meant} was meant by {quote(verb.text)}"
    return None


def find_misspelt_noun(noun: str) -> str | None:
    """Find the noun meant by an unknown word behind CREATE, ALTER or DROP."""
    return None if noun in _OTHER_NOUNS else find_misspelt(noun, NOUNS)
