"""The statements that leave something out: RETURN, THROW, GOTO and its labels, SET NOEXEC."""

from __future__ import annotations

from routing.importing.tsql.fate import Fate
from routing.importing.tsql.passing import pass_over
from routing.importing.tsql.refusal import UnparsedError
from routing.importing.tsql.statements import quote
from routing.importing.tsql.tokens import Kind
from routing.importing.tsql.walker import Walker

_NO_SUCH_LABEL = 133


def leave(walker: Walker, fate: Fate) -> None:
    """RETURN ends the batch, out of a TRY block too."""
    line = walker.here()[1]
    if not walker.settle(fate).never:
        walker.courses[0].leave(f"RETURN in line {line}", fate)
    pass_over(walker, fate)


def throw(walker: Walker, fate: Fate) -> None:
    """THROW ends the batch, or the TRY block that it stands in."""
    line = walker.here()[1]
    if not walker.settle(fate).never:
        walker.courses[-1].leave(f"THROW in line {line}", fate)
    pass_over(walker, fate)


def go_to(walker: Walker, fate: Fate) -> None:
    """GOTO leaves out what stands before its label, or all the rest where its label stands further up."""
    place, cursor = walker.here(), walker.cursor
    cursor.next()
    label = cursor.peek().text
    if cursor.peek().kind in (Kind.WORD, Kind.NAME) and label.casefold() not in walker.labels:
        missing = UnparsedError(f"its batch has no label {quote(label)}", _NO_SUCH_LABEL)
        walker.refuse(place, "GOTO", missing, fate)
    elif not walker.settle(fate).never:
        walker.courses[0].leave(f"GOTO in line {place[1]}", fate, label.casefold())
    cursor.next()
    walker.skip()


def switch(walker: Walker, fate: Fate) -> None:
    """SET NOEXEC and SET PARSEONLY: what follows is looked at by the server, not run."""
    option = walker.cursor.peek(1).upper
    if option in ("NOEXEC", "PARSEONLY"):
        if walker.cursor.peek(2).upper == "OFF":
            walker.session.course.left = None
            walker.session.course.exits.clear()
        elif not walker.settle(fate).never:
            line = walker.here()[1]
            walker.session.course.leave(f"SET {option} ON in line {line}", fate)
    pass_over(walker, fate)
