"""A walk through one batch: from statement to statement, each passed to what reads its first word.

T-SQL needs no semicolons, so a statement that says nothing about routing is passed over up to the
next word that begins one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from routing.importing.tsql.constants import Constant, Evaluation
from routing.importing.tsql.course import Course, Exit
from routing.importing.tsql.cursor import Cursor
from routing.importing.tsql.dynamic import find_called
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.foreign_text import find_foreign_text
from routing.importing.tsql.held_texts import HeldTexts
from routing.importing.tsql.lexical import Mode
from routing.importing.tsql.parsing import (
    find_imbalance,
    find_labels,
    find_misspelt_definition,
    find_misspelt_start,
)
from routing.importing.tsql.refusal import SYNTAX, RefusalError, UnparsedError
from routing.importing.tsql.session import DEEPEST, Session, unparsed
from routing.importing.tsql.statements import RenameDatabase, Statement
from routing.importing.tsql.tokens import Lexeme, Tokens, tokenize
from routing.importing.tsql.variables import Variables, find_changed
from routing.importing.tsql.vocabulary import STARTERS, find_unknown_variable

Locate = Callable[[int], tuple[str, int]]
"""The file and line of a row of the text."""

OTHERS = ""
"""The key of what reads the statements that no other reads."""

_PROCEDURES = ("sp_", "xp_")
_BEFORE_STATEMENTS = frozenset(["BEGIN", "TRY", "CATCH", "ELSE"])
_NOT_CLOSED = {Mode.STRING.value: 105, Mode.QUOTED.value: 105, Mode.BRACKET.value: 105, Mode.COMMENT.value: 113}


class _NestingError(Exception):
    """Blocks or EXEC texts nest deeper than any server takes."""


class Walker:
    """Reads one batch, or the text of one EXEC, into a session.

    ``courses`` are those of the batch and of the TRY blocks around the cursor, the innermost last. ``labels`` are
    the batch's, in lower case.
    """

    def __init__(self, session: Session, tokens: Tokens, locate: Locate, handlers: Mapping[str, Handler]) -> None:
        self.session = session
        self.cursor = Cursor(tokens, session.template_defaults)
        self.courses = [Course()]
        self.labels = find_labels(tokens.lexemes)
        self.variables = Variables()
        self.texts = HeldTexts()
        self._thrown: Exit | None = None
        self._unparsed: int | None = None
        self._is_balanced = True
        self._tokens = tokens
        self._locate = locate
        self._handlers = handlers
        # A variable of sqlcmd without value may stand for anything: what cannot be parsed is then not certain.
        self._is_whole = not any(find_unknown_variable(found.text) for found in tokens.lexemes if found.upper)

    def run(self, fate: Fate) -> int | None:
        """Read every statement, all under this fate; the line for which nothing of it can be parsed, or None."""
        before, depth = self.session.mark(), self.session.depth
        self._is_balanced = self._refuse_imbalance()
        try:
            while not self.cursor.at_end:
                self.statement(fate)
        except _NestingError:
            why = f"blocks nest more than {DEEPEST} deep: the rest of the batch is not read"
            self.session.report(self.here(), why)
        finally:
            self.session.depth = depth
        for place, why, is_remark in self.texts.find_problems():
            self.session.report(place, why, counted=is_remark)
        if self._unparsed is not None:
            self.session.take_back(before, self._unparsed)
        return self._unparsed

    def _refuse_imbalance(self) -> bool:
        """Whether all is closed that is opened."""
        tokens = self._tokens
        foreign = find_foreign_text(tokens)
        for found in foreign:
            self.refuse_batch(self._locate(found.row), found.why, SYNTAX)
        if tokens.cut is not None:
            why = f"the text ends inside a {tokens.cut_in} that begins here"
            self.refuse_batch(self._locate(tokens.cut), why, _NOT_CLOSED.get(tokens.cut_in))
            return False
        imbalance = find_imbalance(tokens.lexemes) if self._is_whole else None
        if imbalance is not None:
            self.refuse_batch(self._locate(imbalance.row), imbalance.why, SYNTAX)
        return imbalance is None and not foreign

    def refuse_batch(self, place: tuple[str, int], why: str, number: int | None) -> None:
        """Note why the batch cannot be parsed."""
        self._unparsed = self._unparsed or place[1]
        self.session.report(place, f"{why}; nothing of its batch runs", number, by_server=True)

    def run_text(self, text: str, place: tuple[str, int], fate: Fate, database: str | None) -> None:
        """Read the text of an EXEC: its USE ends with it, the EXEC's line is its own, and its THROW ends all."""
        before = self.session.database
        self.session.database = database or before
        inner = Walker(self.session, tokenize(text), lambda _row: place, self._handlers)
        inner.run(fate)
        self.session.database = before
        left = inner.courses[0].left
        if left is not None and left.words.startswith("THROW") and inner._unparsed is None:
            self.courses[-1].leave(left.words, fate)

    def statement(self, fate: Fate) -> None:
        """Read one statement, with those that it governs."""
        if self.session.depth >= DEEPEST:
            raise _NestingError
        self.session.depth += 1
        if not self.cursor.take_sign(";"):
            if self.cursor.at_label:
                self._label()
            else:
                self._count()
                self._refuse_misspelt()
                self._handler()(self, fate)
        self.session.depth -= 1

    def _count(self) -> None:
        """Count a statement that surely is one: where it begins, one does."""
        first, before = self.cursor.peek(), self.cursor.peek(-1) if self.cursor.position else None
        is_call = before is None and first.text.lower().startswith(_PROCEDURES)
        is_begun = first.upper in STARTERS and (
            before is None or before.text in (";", ":") or self.session.found > 0
        )
        self.session.found += is_call or is_begun

    def _label(self) -> None:
        label = self.cursor.next().text.casefold()
        self.cursor.next()
        self.courses[0].land(label)
        self.variables.forget_all()

    def _refuse_misspelt(self) -> None:
        cursor = self.cursor
        is_first = cursor.position == 0
        before = None if is_first else cursor.peek(-1)
        if before is None or before.text == ";" or before.upper in _BEFORE_STATEMENTS:
            why = find_misspelt_start(cursor.peek(), cursor.peek(1), cursor.peek(2), is_first)
            if why is not None and self._is_whole:
                self.refuse_batch(self.here(), why, SYNTAX)

    def evaluate(self, words: Sequence[Lexeme], fate: Fate, is_plain: bool = False) -> Constant | None:
        """What an expression comes to; None where that is not known."""
        value_of = partial(self.variables.value, fate=fate)
        return Evaluation(words, self._tokens.text, value_of, self.session.database, is_plain).value()

    def forget_changed(self, start: int) -> None:
        """Variables that the statement since ``start`` gives values are not known any more."""
        words = self.cursor.between(start, self.cursor.position)
        for name in find_changed(words):
            self.variables.forget(name)

    def enter_try(self) -> None:
        """What a TRY block leaves ends with it."""
        self.courses.append(Course())

    def leave_try(self) -> None:
        """The TRY block ends here, perhaps by a THROW in it."""
        course = self.courses.pop()
        is_thrown = course.left is not None and course.left.words.startswith("THROW")
        self._thrown = course.left if is_thrown else None

    def caught(self, fate: Fate, why_not: str) -> Fate:
        """The fate of a CATCH block: it runs after a THROW in its TRY block, else only after an error."""
        thrown, self._thrown = self._thrown, None
        return fate if thrown is not None else fate.after_an_error(why_not)

    def _handler(self) -> Handler:
        """What reads the statement that begins here; a batch's first may be a call without EXEC."""
        called = find_called(self.cursor) if self.cursor.position == 0 else ""
        if called and find_unknown_variable(called) is None:
            return self._handlers["EXEC"]
        return self._handlers.get(self.cursor.peek().upper, self._handlers[OTHERS])

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
        if isinstance(refusal, UnparsedError) and self._is_whole:
            if self._is_balanced:
                self.refuse_batch(place, f"{title}: {refusal.why}", refusal.number)
            else:
                self.session.report(place, unparsed(title, self._unparsed or place[1]))
        elif effective.never:
            self.session.report(place, f"{title}: {effective.why_not}")
        else:
            self.session.refuse(place, title, refusal, is_sure=not isinstance(refusal, UnparsedError))

    def settle(self, fate: Fate) -> Fate:
        """The fate with what else decides here: a RETURN, THROW or GOTO above, or SET NOEXEC."""
        for course in (*self.courses, self.session.course):
            fate = course.settle(fate)
        return fate

    def here(self) -> tuple[str, int]:
        """The file and line of the cursor."""
        return self._locate(self.cursor.peek().row)

    def at_boundary(self) -> bool:
        """Whether a statement ends here; the IF EXISTS of a DROP does not end it."""
        cursor = self.cursor
        if cursor.at_words("IF", "EXISTS") and cursor.peek(2).text != "(":
            return False
        return cursor.at_end or cursor.at_sign(";") or cursor.peek().upper in STARTERS or cursor.at_label

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

    def refuse_misspelt_definition(self, start: int, place: tuple[str, int]) -> None:
        """Refuse the batch for a misspelt definition since ``start``."""
        misspelt = find_misspelt_definition(self.cursor.between(start, self.cursor.position + 1))
        if misspelt is not None and self._is_whole:
            self.refuse_batch(place, misspelt, SYNTAX)


Handler = Callable[[Walker, Fate], None]
"""Reads the statement that begins at the walker's cursor."""
