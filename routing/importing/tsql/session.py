"""What a script has done so far, and what lasts from batch to batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from routing.importing.tsql.course import Course
from routing.importing.tsql.fate import Fate
from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.statements import Guard, Problem, RenameDatabase, Statement, Subject, quote
from routing.importing.tsql.transactions import Transaction, doubted

DEEPEST = 100
"""Blocks and EXEC texts inside one another; the server itself stops at 32 levels of EXEC."""


_MOST_HELD = 2_000_000


@dataclass(frozen=True)
class Mark:
    """How a session stood before a batch; of ``statements`` the first ``length`` count."""

    statements: list[Statement]
    length: int
    problems: int
    database: str | None
    course: Course
    transaction: Transaction


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
    transaction: Transaction = field(default_factory=Transaction)
    _questions: int = 0
    _held: int = 0

    def next_question(self) -> int:
        """A number for the next IF."""
        self._questions += 1
        return self._questions

    def report(
        self,
        place: tuple[str, int],
        why: str,
        number: int | None = None,
        counted: bool = False,
        by_server: bool | None = None,
    ) -> None:
        """Note a problem; what has a number of SQL Server's is refused ``by_server`` unless that is said."""
        is_refused = number is not None if by_server is None else by_server
        self.problems.append(Problem(*place, why, number, counted, is_refused))

    def refuse(self, place: tuple[str, int], title: str, refusal: RefusalError, *, is_sure: bool) -> None:
        """Note a statement that was not read; not ``is_sure`` where something of it is not known."""
        by_server = refusal.by_server and is_sure
        self.report(place, f"{title}: {refusal.why}", refusal.number, by_server=by_server)

    def add(self, statements: Sequence[Statement], fate: Fate) -> None:
        """Note statements that were read, or why they are left out."""
        for statement in statements:
            if fate.why_not is None:
                self.statements.append(replace(statement, guards=fate.guards, doubt=fate.doubt))
            else:
                place = (statement.file, statement.line)
                self.report(place, f"{statement.title}: {fate.why_not}")

    def mark(self) -> Mark:
        """How it stands now; statements are only added to their list."""
        course = replace(self.course, exits=list(self.course.exits))
        return Mark(
            self.statements, len(self.statements), len(self.problems), self.database, course, self.transaction
        )

    def take_back(self, before: Mark, line: int) -> None:
        """Nothing since ``before`` has run: the batch cannot be parsed, for the cause in this line."""
        earlier = before.statements[: before.length]
        known = Counter(_key(statement) for statement in earlier)
        undone = []
        for statement in self.statements:
            known[_key(statement)] -= 1
            if known[_key(statement)] < 0:
                undone.append(statement)
        since = self.problems[before.problems :]
        self.problems[before.problems :] = [problem for problem in since if not problem.counted]
        for statement in undone:
            self.report((statement.file, statement.line), unparsed(statement.title, line))
        self.statements, self.database = earlier, before.database
        self.course, self.transaction = before.course, before.transaction

    def affords(self, characters: int, place: tuple[str, int]) -> bool:
        """Whether variables may hold and run so many characters more: one that is joined to itself doubles."""
        was_enough = self._held <= _MOST_HELD
        self._held += characters
        if was_enough and self._held > _MOST_HELD:
            self.report(place, f"its variables hold more than {_MOST_HELD} characters: not known from here on")
        return self._held <= _MOST_HELD

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

    def begin_transaction(self, fate: Fate) -> None:
        """BEGIN TRANSACTION."""
        self.transaction = self.transaction.begun(self.statements, fate)

    def commit(self, fate: Fate) -> None:
        """COMMIT."""
        self.transaction = self.transaction.committed(fate)

    def roll_back(self, line: int, fate: Fate) -> None:
        """ROLLBACK undoes all transactions; what they did is taken back and reported, or doubted."""
        start = self.transaction.start
        since = self.statements[start:]
        if self.transaction.perhaps_undoes(fate):
            self.statements = [*self.statements[:start], *(doubted(statement, line) for statement in since)]
        if not self.transaction.surely_undoes(fate):
            return
        # A new list: the old one is what a batch that cannot be parsed is taken back to.
        self.statements = self.statements[:start]
        for statement in since:
            place = (statement.file, statement.line)
            self.report(place, f"{statement.title}: it is rolled back in line {line}")
        self.transaction = Transaction()


def _key(statement: Statement) -> tuple[str, int, str]:
    return statement.file, statement.line, statement.title


def unparsed(title: str, line: int) -> str:
    """Why a statement does not run whose batch cannot be parsed, for the cause in this line."""
    return f"{title}: it does not run, since its batch cannot be parsed: see line {line}"


def _says_it_exists(name: str, guard: Guard) -> bool:
    is_same = guard.subject is Subject.DATABASE and guard.name.casefold() == name.casefold()
    return is_same and guard.holds
