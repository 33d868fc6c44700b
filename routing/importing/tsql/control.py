"""The statements that decide which others run: conditions, loops, blocks, transactions.

A condition that is not understood makes its branch unknown: what stands there is reported, not
read.
"""

from __future__ import annotations

from routing.importing.tsql.conditions import answer_of, asks_for_an_error, guard_of
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.parsing import NOT_BLOCKS
from routing.importing.tsql.passing import pass_over
from routing.importing.tsql.tokens import Lexeme
from routing.importing.tsql.walker import Walker

_TRANSACTION = frozenset(["TRAN", "TRANSACTION", "WORK"])


def branch(walker: Walker, fate: Fate) -> None:
    """IF condition statement [ELSE statement]."""
    line = walker.here()[1]
    condition = walker.variables.resolve(_condition(walker), fate)
    known = answer_of(condition, walker.session.database)
    if known is not None:
        _known_branch(walker, fate, line, known)
        return
    guard = guard_of(condition, walker.session.database, walker.session.next_question())
    error = asks_for_an_error(condition)
    if error is not None:
        why = f"it runs only after an error: see the IF in line {line}"
        _both_branches(
            walker, fate.after_an_error(why) if error else fate, fate if error else fate.after_an_error(why)
        )
    else:
        inverse = guard.inverse() if guard else None
        _both_branches(walker, fate.under(guard, line), fate.under(inverse, line))


def _both_branches(walker: Walker, then: Fate, otherwise: Fate) -> None:
    walker.statement(then)
    if _at_else(walker):
        walker.statement(otherwise)


def _known_branch(walker: Walker, fate: Fate, line: int, holds: bool) -> None:
    """An IF whose condition is of constants: one of its branches never runs."""
    holding, failing = f"the condition of the IF in line {line} holds", "does not hold"
    if holds:
        _both_branches(walker, fate, fate.not_run(holding))
    else:
        _both_branches(walker, fate.not_run(holding.replace("holds", failing)), fate)


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
    if following in _TRANSACTION:
        walker.session.begin_transaction(walker.settle(fate))
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
    walker.session.commit(walker.settle(fate))
    pass_over(walker, fate)


def roll_back(walker: Walker, fate: Fate) -> None:
    """ROLLBACK; with a name it may go back to a savepoint alone, which is not followed."""
    line = walker.here()[1]
    walker.cursor.next()
    if walker.cursor.peek().upper in _TRANSACTION:
        walker.cursor.next()
    if walker.at_boundary():
        walker.session.roll_back(line, walker.settle(fate))
    walker.skip()


def _condition(walker: Walker) -> tuple[Lexeme, ...]:
    cursor = walker.cursor
    cursor.next()
    start = cursor.position
    while not walker.at_boundary() or (cursor.at_words("UPDATE") and cursor.peek(1).text == "("):
        walker.step()
    return cursor.between(start, cursor.position)
