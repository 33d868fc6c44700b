"""The statements that decide which others run: conditions, loops, blocks, RETURN, transactions.

A condition that is not understood makes its branch unknown: what stands there is reported, not
read.
"""

from __future__ import annotations

from routing.importing.tsql.conditions import guard_of
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.statements import Guard
from routing.importing.tsql.walker import Walker, pass_over

_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "WORK"])


def branch(walker: Walker, fate: Fate) -> None:
    """IF condition statement [ELSE statement]."""
    line = walker.here()[1]
    guard = _condition(walker)
    walker.statement(fate.under(guard, line))
    cursor, position = walker.cursor, walker.cursor.position
    while cursor.take_sign(";"):
        pass
    if cursor.take_words("ELSE"):
        walker.statement(fate.under(guard.inverse() if guard else None, line))
    else:
        cursor.position = position


def loop(walker: Walker, fate: Fate) -> None:
    """WHILE condition statement: how often, only the server knows."""
    line = walker.here()[1]
    _condition(walker)
    walker.statement(fate.perhaps(f"it stands in the loop that begins in line {line}"))


def lone_else(walker: Walker, fate: Fate) -> None:
    """An ELSE whose IF was not recognised as such."""
    line = walker.here()[1]
    walker.cursor.next()
    walker.statement(fate.perhaps(f"it depends on the IF of the ELSE in line {line}"))


def begin(walker: Walker, fate: Fate) -> None:
    """BEGIN of a block, TRY, CATCH or transaction; BEGIN DIALOG is a statement like others."""
    line, following = walker.here()[1], walker.cursor.peek(1).upper
    if following in _TRANSACTION and walker.settle(fate).is_certain:
        walker.session.begin_transaction()
    if following in _TRANSACTION or following in ("DIALOG", "CONVERSATION", "DISTRIBUTED"):
        pass_over(walker, fate)
        return
    walker.cursor.next()
    if walker.cursor.take_words("CATCH"):
        fate = fate.perhaps(f"it runs only after an error: it stands in the CATCH in line {line}")
    else:
        walker.cursor.take_words("TRY")
    while not walker.cursor.at_end:
        if walker.cursor.at_words("END") and walker.cursor.peek(1).upper != "CONVERSATION":
            end(walker, fate)
            return
        walker.statement(fate)


def end(walker: Walker, fate: Fate) -> None:
    """END of a block; END CONVERSATION is a statement like others."""
    if walker.cursor.peek(1).upper == "CONVERSATION":
        pass_over(walker, fate)
        return
    walker.cursor.next()
    if walker.cursor.peek().upper in ("TRY", "CATCH"):
        walker.cursor.next()


def leave(walker: Walker, fate: Fate) -> None:
    """RETURN ends the batch; after a conditional one, the rest runs where its condition fails.

    A RETURN under a condition that cannot be known is taken for a check that the script passed.
    """
    line, effective = walker.here()[1], walker.settle(fate)
    if effective.is_certain:
        walker.returned = f"it stands after the RETURN in line {line}"
    elif effective.why_not is None and len(effective.guards) == 1:
        walker.not_returned = (effective.guards[0].inverse(),)
    pass_over(walker, fate)


def switch(walker: Walker, fate: Fate) -> None:
    """SET NOEXEC and SET PARSEONLY: what follows is looked at by the server, not run."""
    option = walker.cursor.peek(1).upper
    if option in ("NOEXEC", "PARSEONLY"):
        if walker.cursor.peek(2).upper == "OFF":
            walker.session.not_executing = None
        elif walker.settle(fate).is_certain:
            line = walker.here()[1]
            walker.session.not_executing = f"it stands after SET {option} ON in line {line}"
    pass_over(walker, fate)


def commit(walker: Walker, fate: Fate) -> None:
    """COMMIT."""
    if walker.settle(fate).is_certain:
        walker.session.commit()
    pass_over(walker, fate)


def roll_back(walker: Walker, fate: Fate) -> None:
    """ROLLBACK; with a name it may go back to a savepoint alone, which is not followed."""
    line, certain = walker.here()[1], walker.settle(fate).is_certain
    walker.cursor.next()
    if walker.cursor.peek().upper in _TRANSACTION:
        walker.cursor.next()
    if certain and walker.at_boundary():
        walker.session.roll_back(line)
    walker.skip()


def _condition(walker: Walker) -> Guard | None:
    cursor = walker.cursor
    cursor.next()
    start = cursor.position
    while not walker.at_boundary() or (cursor.at_words("UPDATE") and cursor.peek(1).text == "("):
        walker.step()
    words = cursor.between(start, cursor.position)
    return guard_of(words, walker.session.database, walker.session.next_question())
