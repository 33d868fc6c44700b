"""Statements that say nothing about routing: their strings are data."""

from __future__ import annotations

from routing.importing.tsql.fate import Fate
from routing.importing.tsql.held_texts import find_shown_statement, find_statement_elsewhere
from routing.importing.tsql.refusal import no_value
from routing.importing.tsql.tokens import Kind
from routing.importing.tsql.vocabulary import find_unknown_variable
from routing.importing.tsql.walker import Walker

_LONGEST_PERMISSION = 300


def pass_over(walker: Walker, fate: Fate) -> None:
    """A statement that says nothing about routing."""
    place, start = walker.here(), walker.cursor.position
    first = walker.cursor.peek()
    missing = find_unknown_variable(first.text)
    if missing is not None and first.kind is Kind.WORD and not fate.never:
        walker.session.report(place, no_value(missing).why)
    walker.step()
    walker.skip()
    walker.forget_changed(start)
    walker.refuse_misspelt_definition(start, place)
    words = walker.cursor.between(start, walker.cursor.position)
    walker.texts.show(words)
    elsewhere, shown = find_statement_elsewhere(words), find_shown_statement(words)
    if elsewhere is not None:
        walker.session.report(place, elsewhere)
    elif shown is not None:
        walker.session.report(place, shown, counted=True)


def permission(walker: Walker, fate: Fate) -> None:
    """GRANT, DENY, REVOKE: up to TO or FROM stand words that begin other statements."""
    cursor, start = walker.cursor, walker.cursor.position
    for ahead in range(1, _LONGEST_PERMISSION):
        if cursor.peek(ahead).upper in ("TO", "FROM"):
            cursor.position = start + ahead
            break
        if cursor.peek(ahead).text == ";" or cursor.peek(ahead).kind is Kind.END:
            break
    pass_over(walker, fate)
    cursor.take_words("WITH", "GRANT", "OPTION")
