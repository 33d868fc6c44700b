"""What a script has done so far, and what lasts from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from routing.importing.tsql.course import Course
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.statements import Guard, Problem, RenameDatabase, Statement, Subject, quote

DEEPEST = 100
"""Blocks and EXEC texts inside one another; the server itself stops at 32 levels of EXEC."""


@dataclass
class Session:
    """One run of one script. ``database`` is the one in use, None where it cannot be known.

    ``course`` is what SET NOEXEC makes of the whole script, ``found`` how many statements were recognised.
    """

    scripted_at: datetime
    database: str | None
    template_defaults: bool
    statements: list[Statement] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    course: Course = field(default_factory=Course)
    depth: int = 0
    found: int = 0
    _questions: int = 0
    _open_transactions: int = 0
    _transaction_start: int = 0

    def next_question(self) -> int:
        """A number for the next IF."""
        self._questions += 1
        return self._questions

    def report(self, place: tuple[str, int], why: str, number: int | None = None, counted: bool = False) -> None:
        """Note a problem."""
        self.problems.append(Problem(*place, why, number, counted))

    def add(self, statements: Sequence[Statement], fate: Fate) -> None:
        """Note statements that were read, or why they are left out."""
        for statement in statements:
            if fate.why_not is None:
                self.statements.append(replace(statement, guards=fate.guards, doubt=fate.doubt))
            else:
                place = (statement.file, statement.line)
                self.report(place, f"{statement.title}: {fate.why_not}")

    def mark(self) -> Session:
        """All of it as it is now."""
        course = replace(self.course, exits=list(self.course.exits))
        return replace(self, statements=list(self.statements), problems=list(self.problems), course=course)

    def take_back(self, before: Session, line: int) -> None:
        """Nothing since ``before`` has run: the batch cannot be parsed, for the cause in this line."""
        earlier = {id(statement) for statement in before.statements}
        undone = [statement for statement in self.statements if id(statement) not in earlier]
        self.problems = [
            *before.problems,
            *(problem for problem in self.problems[len(before.problems) :] if not problem.counted),
        ]
        for statement in undone:
            self.report((statement.file, statement.line), unparsed(statement.title, line))
        self.statements, self.database, self.course = before.statements, before.database, before.course
        self._open_transactions = before._open_transactions
        self._transaction_start = before._transaction_start

    def use(self, name: str, place: tuple[str, int], fate: Fate) -> None:
        """USE: where it may or may not run, no database is known to be in use."""
        if fate.never:
            return
        if fate.why_not is None and all(_says_it_exists(name, guard) for guard in fate.guards):
            self.database = name
            return
        why = fate.why_not or "it stands under a condition"
        self.forget_database(place, f"USE {quote(name)}: {why}")

    def rename(self, statement: RenameDatabase, fate: Fate) -> None:
        """A database in use goes on under its new name; where that is not sure, it is not known."""
        if fate.never or self.database is None or self.database.casefold() != statement.name.casefold():
            return
        if fate.is_certain:
            self.database = statement.new_name
            return
        self.forget_database((statement.file, statement.line), f"{statement.title}: whether it runs is not sure")

    def forget_database(self, place: tuple[str, int], why: str) -> None:
        """From here on the database in use is not known."""
        self.database = None
        self.report(place, f"{why}; the database in use is not known from here on")

    def begin_transaction(self) -> None:
        """BEGIN TRANSACTION; they nest."""
        if self._open_transactions == 0:
            self._transaction_start = len(self.statements)
        self._open_transactions += 1

    def commit(self) -> None:
        """COMMIT ends the innermost transaction."""
        self._open_transactions = max(0, self._open_transactions - 1)

    def roll_back(self, line: int) -> None:
        """ROLLBACK undoes all of them; what they did is taken back and reported."""
        if self._open_transactions == 0:
            return
        undone = self.statements[self._transaction_start :]
        del self.statements[self._transaction_start :]
        for statement in undone:
            place = (statement.file, statement.line)
            self.report(place, f"{statement.title}: it is rolled back in line {line}")
        self._open_transactions = 0


def unparsed(title: str, line: int) -> str:
    """Why a statement does not run whose batch cannot be parsed, for the cause in this line."""
    return f"{title}: it does not run, since its batch cannot be parsed: see line {line}"


def _says_it_exists(name: str, guard: Guard) -> bool:
    is_same = guard.subject is Subject.DATABASE and guard.name.casefold() == name.casefold()
    return is_same and guard.holds
