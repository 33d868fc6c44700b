"""A walk through one batch: from statement to statement, each passed to what reads its first word.

T-SQL needs no semicolons, so a statement that says nothing about routing is passed over up to the
next word that begins one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from routing.importing.tsql.cursor import Cursor
from routing.importing.tsql.dynamic import RUNS_TEXT, find_called, find_hidden_statement
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.procedures import is_known_procedure
from routing.importing.tsql.refusal import RefusalError, no_value
from routing.importing.tsql.session import DEEPEST, Session
from routing.importing.tsql.statements import Guard, RenameDatabase, Statement
from routing.importing.tsql.tokens import Kind, Tokens, tokenize
from routing.importing.tsql.vocabulary import STARTERS, find_unknown_variable

Locate = Callable[[int], tuple[str, int]]
"""The file and line of a row of the text."""

_LONGEST_PERMISSION = 300


class _NestingError(Exception):
    """Blocks or EXEC texts nest deeper than any server takes."""


class Walker:
    """Reads one batch, or the text of one EXEC, into a session.

    ``returned`` is why nothing more of the batch runs, ``not_returned`` what must hold for it to
    run.
    """

    def __init__(self, session: Session, tokens: Tokens, locate: Locate, handlers: Mapping[str, Handler]) -> None:
        self.session = session
        self.cursor = Cursor(tokens, session.template_defaults)
        self.returned: str | None = None
        self.not_returned: tuple[Guard, ...] = ()
        self._tokens = tokens
        self._locate = locate
        self._handlers = handlers

    def run(self, fate: Fate) -> None:
        """Read every statement, all under this fate."""
        cut = self._tokens.cut
        if cut is not None:
            why = f"the text ends inside a {self._tokens.cut_in} that begins here"
            self.session.report(self._locate(cut), why)
        depth = self.session.depth
        try:
            while not self.cursor.at_end:
                self.statement(fate)
        except _NestingError:
            why = f"blocks nest more than {DEEPEST} deep: the rest of the batch is not read"
            self.session.report(self.here(), why)
        finally:
            self.session.depth = depth

    def run_text(self, text: str, place: tuple[str, int], fate: Fate, database: str | None) -> None:
        """Read the text of an EXEC: its USE ends with it, the EXEC's line is its own."""
        before = self.session.database
        self.session.database = database or before
        Walker(self.session, tokenize(text), lambda _row: place, self._handlers).run(fate)
        self.session.database = before

    def statement(self, fate: Fate) -> None:
        """Read one statement, with those that it governs."""
        if self.session.depth >= DEEPEST:
            raise _NestingError
        self.session.depth += 1
        if not self.cursor.take_sign(";"):
            self._handler()(self, fate)
        self.session.depth -= 1

    def _handler(self) -> Handler:
        """What reads the statement that begins here; a batch's first may be a call without EXEC."""
        if self.cursor.position == 0:
            called = find_called(self.cursor)
            if called.lower() == RUNS_TEXT or is_known_procedure(called):
                return self._handlers["EXEC"]
        return self._handlers.get(self.cursor.peek().upper, pass_over)

    def add(self, statements: Sequence[Statement], fate: Fate) -> None:
        """Note statements that were read."""
        effective = self.settle(fate)
        self.session.add(statements, effective)
        for statement in statements:
            if isinstance(statement, RenameDatabase):
                self.session.rename(statement, effective)

    def refuse(self, place: tuple[str, int], title: str, refusal: RefusalError, fate: Fate) -> None:
        """Note a statement that was not read, or that it would not run anyway."""
        effective = self.settle(fate)
        if effective.never:
            self.session.report(place, f"{title}: {effective.why_not}")
        else:
            self.session.report(place, f"{title}: {refusal.why}", refusal.number)

    def settle(self, fate: Fate) -> Fate:
        """The fate with what else decides here: a RETURN above, or SET NOEXEC."""
        whole = Fate((*self.not_returned, *fate.guards), fate.why_not, fate.never)
        return whole.not_run(self.returned).not_run(self.session.not_executing)

    def here(self) -> tuple[str, int]:
        """The file and line of the cursor."""
        return self._locate(self.cursor.peek().row)

    def at_boundary(self) -> bool:
        """Whether a statement ends here; the IF EXISTS of a DROP does not end it."""
        cursor = self.cursor
        if cursor.at_words("IF", "EXISTS") and cursor.peek(2).text != "(":
            return False
        return cursor.at_end or cursor.at_sign(";") or cursor.peek().upper in STARTERS

    def step(self) -> None:
        """Move past one lexeme, or past all of a parenthesis or CASE."""
        if not self.cursor.skip_group():
            self.cursor.next()

    def skip(self) -> None:
        """Move to the end of the statement."""
        while not self.at_boundary():
            self.step()

    def take_notes(self) -> list[str]:
        """The remarks on the statement just read."""
        notes, self.cursor.notes = self.cursor.notes, []
        return notes

    def report_hidden(self, start: int, place: tuple[str, int]) -> None:
        """Report a routing statement in the strings since ``start``."""
        words = self.cursor.between(start, self.cursor.position)
        why = find_hidden_statement(words) if words else None
        if why is not None:
            self.session.report(place, why)


Handler = Callable[[Walker, Fate], None]
"""Reads the statement that begins at the walker's cursor."""


def pass_over(walker: Walker, fate: Fate) -> None:
    """A statement that says nothing about routing, unless in its strings."""
    place, start = walker.here(), walker.cursor.position
    first = walker.cursor.peek()
    missing = find_unknown_variable(first.text)
    if missing is not None and first.kind is Kind.WORD and not fate.never:
        walker.session.report(place, no_value(missing).why)
    walker.step()
    walker.skip()
    walker.report_hidden(start, place)


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
