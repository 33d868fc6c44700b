"""The statements that decide which others run: conditions, loops, blocks, transactions.

A condition that is not understood makes its branch unknown: what stands there is reported, not
read.
"""

from __future__ import annotations

from routing.importing.tsql.conditions import answer_of, asks_for_an_error, guard_of
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.parsing import NOT_BLOCKS
from routing.importing.tsql.tokens import Lexeme
from routing.importing.tsql.walker import Walker, pass_over

_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "WORK"])


def branch(walker: Walker, fate: Fate) -> None:
    """IF condition statement [ELSE statement]."""
    line = walker.here()[1]
    condition = walker.resolve(_condition(walker), fate)
    known = answer_of(condition, walker.session.database)
    if known is not None:
        _known_branch(walker, fate, line, known)
        return
    guard = guard_of(condition, walker.session.database, walker.session.next_question())
    if asks_for_an_error(condition):
        walker.statement(
            fate.after_an_error(f"it runs only after an error: it stands under the IF in line {line}")
        )
    else:
        walker.statement(fate.under(guard, line))
    if not _at_else(walker):
        return
    if asks_for_an_error(condition):
        walker.statement(fate)
    else:
        walker.statement(fate.under(guard.inverse() if guard else None, line))


def _known_branch(walker: Walker, fate: Fate, line: int, holds: bool) -> None:
    """An IF whose condition is of constants: one of its branches never runs."""
    walker.statement(fate if holds else fate.not_run(f"the condition of the IF in line {line} does not hold"))
    if _at_else(walker):
        walker.statement(fate.not_run(f"the condition of the IF in line {line} holds") if holds else fate)


def _at_else(walker: Walker) -> bool:
    """Move past an ELSE, if one stands here, behind semicolons or not."""
    cursor, position = walker.cursor, walker.cursor.position
    while cursor.take_sign(";"):
        pass
    if cursor.take_words("ELSE"):
        return True
    cursor.position = position
    return False


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
    if following in NOT_BLOCKS:
        pass_over(walker, fate)
        return
    walker.cursor.next()
    if walker.cursor.take_words("TRY"):
        walker.enter_try()
        _block(walker, fate)
        walker.leave_try()
    elif walker.cursor.take_words("CATCH"):
        _block(walker, walker.caught(fate, f"it runs only after an error: it stands in the CATCH in line {line}"))
    else:
        _block(walker, fate)


def _block(walker: Walker, fate: Fate) -> None:
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


def _condition(walker: Walker) -> tuple[Lexeme, ...]:
    cursor = walker.cursor
    cursor.next()
    start = cursor.position
    while not walker.at_boundary() or (cursor.at_words("UPDATE") and cursor.peek(1).text == "("):
        walker.step()
    return cursor.between(start, cursor.position)
