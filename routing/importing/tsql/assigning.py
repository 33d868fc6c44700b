"""DECLARE, SET and SELECT of variables, whose constants are known to whoever reads the script."""

from __future__ import annotations

from routing.importing.tsql.constants import Type, join, read_type
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.leaving import switch
from routing.importing.tsql.passing import pass_over
from routing.importing.tsql.tokens import Kind
from routing.importing.tsql.walker import Walker


def declare(walker: Walker, fate: Fate) -> None:
    """DECLARE @name type = expression, and more of them."""
    cursor = walker.cursor
    if not cursor.peek(1).text.startswith("@"):
        pass_over(walker, fate)
        return
    place = walker.here()
    cursor.next()
    while cursor.peek().kind is Kind.WORD and cursor.peek().text.startswith("@"):
        name = cursor.next().text
        cursor.take_words("AS")
        walker.variables.declare(name, _read_type(walker))
        if cursor.at_sign("="):
            _assign(walker, name, fate, place)
        if not cursor.take_sign(","):
            break
    walker.skip()


def set_(walker: Walker, fate: Fate) -> None:
    """SET of a variable, or of an option."""
    if not walker.cursor.peek(1).text.startswith("@"):
        switch(walker, fate)
        return
    place = walker.here()
    walker.cursor.next()
    _assign(walker, walker.cursor.next().text, fate, place)
    walker.skip()


def select(walker: Walker, fate: Fate) -> None:
    """SELECT @name = expression, and more of them; with a FROM they are not known."""
    cursor = walker.cursor
    if not (cursor.peek(1).text.startswith("@") and cursor.peek(2).text in ("=", "+")):
        pass_over(walker, fate)
        return
    place, start = walker.here(), cursor.position
    cursor.next()
    while cursor.peek().text.startswith("@") and cursor.peek(1).text in ("=", "+"):
        _assign(walker, cursor.next().text, fate, place)
        if not cursor.take_sign(","):
            break
    walker.skip()
    walker.refuse_misspelt_definition(start, place)


def _read_type(walker: Walker) -> Type:
    cursor, start = walker.cursor, walker.cursor.position
    cursor.next()
    if cursor.at_group:
        cursor.skip_group()
    return read_type(cursor.between(start, cursor.position))


def _assign(walker: Walker, name: str, fate: Fate, place: tuple[str, int]) -> None:
    """The assignment at the cursor, ``= expression`` or ``+= expression``, up to the next comma."""
    cursor, effective = walker.cursor, walker.settle(fate)
    is_added, is_plain = cursor.take_sign("+"), cursor.take_sign("=")
    start = cursor.position
    while not (walker.at_boundary() or cursor.at_sign(",")):
        walker.step()
    words = cursor.between(start, cursor.position)
    if effective.never or effective.after_error:
        walker.texts.hold(name, words, place, None, replaces=False)
        return
    value = walker.evaluate(words, fate) if is_plain else None
    if is_added and value is not None:
        before = walker.variables.value(name, fate)
        value = None if before is None else join(before, value)
    if value is not None and not walker.session.affords(len(value.text), place):
        value = None
    held = walker.variables.assign(name, value, fate)
    text, replaces = None if held is None else held.text, is_plain and not is_added and effective.is_certain
    walker.texts.hold(name, words, place, text, replaces=replaces)
