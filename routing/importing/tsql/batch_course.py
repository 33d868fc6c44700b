"""Track how far a batch runs: what a RETURN, THROW, GOTO or error leaves out, and what the rest depends on.

What leaves under a condition is an ``BlockExit``: the rest runs only where it does not. A condition that only the
server knows is taken for a check that the script passes, and what follows is named as depending on it; nothing is
named for what leaves after an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from routing.importing.tsql.instance_state import NamedRows
from routing.importing.tsql.script_statements import ConditionGuard
from routing.importing.tsql.tree import ModuleNode

# Whether a statement runs, as far as script and state tell: surely, never, perhaps.


class StatementCourse(Enum):
    """Whether a statement runs; nothing is said of one whose own IF does not hold in this state."""

    RUNS = "runs"
    PERHAPS = "may run"
    AFTER_ERROR = "runs only after an error, which a script is not supposed to meet"
    NEVER = "does not run"
    PASSED_OVER = "stands under an IF that does not hold in this state"


@dataclass(frozen=True)
class StatementCondition:
    """The condition of a statement: its course, and the reason where it is left out.

    ``doubt`` is what a statement that is applied depends on all the same. ``guards`` are the conditions around it
    where there is no state to answer them.
    """

    course: StatementCourse = StatementCourse.RUNS
    why_not: str | None = None
    doubt: str | None = None
    guards: tuple[ConditionGuard, ...] = ()

    @property
    def runs(self) -> bool:
        """Return whether it runs, or is taken to."""
        return self.course is StatementCourse.RUNS

    @property
    def never(self) -> bool:
        """Return whether it surely does not run."""
        return self.course is StatementCourse.NEVER

    @property
    def after_error(self) -> bool:
        """Return whether it runs only after an error."""
        return self.course is StatementCourse.AFTER_ERROR

    @property
    def passed_over(self) -> bool:
        """Return whether its own IF does not hold."""
        return self.course is StatementCourse.PASSED_OVER

    @property
    def is_certain(self) -> bool:
        """Return whether it runs whatever the state is."""
        return self.runs and not self.guards

    def under(self, guards: tuple[ConditionGuard, ...]) -> StatementCondition:
        """Return the condition of a branch of an IF that only a state answers."""
        return replace(self, guards=(*self.guards, *guards))

    def not_held(self) -> StatementCondition:
        """Return the condition of a branch of an IF that does not hold in this state."""
        return replace(self, course=StatementCourse.PASSED_OVER, why_not=None)

    def perhaps(self, why_not: str) -> StatementCondition:
        """Return the condition of a statement that may not run."""
        return replace(self, course=StatementCourse.PERHAPS, why_not=why_not) if self.runs else self

    def after_an_error(self, why_not: str) -> StatementCondition:
        """Return the condition of a statement that runs only after an error."""
        return replace(self, course=StatementCourse.AFTER_ERROR, why_not=why_not) if self.runs else self

    def not_run(self, why_not: str | None) -> StatementCondition:
        """Return the condition of a statement that surely does not run; None changes nothing."""
        if why_not is None or self.never or self.passed_over:
            return self
        return replace(self, course=StatementCourse.NEVER, why_not=why_not)

    def doubted(self, doubt: str | None) -> StatementCondition:
        """Return the condition with an assumption that it depends on; the first doubt counts."""
        return self if doubt is None or self.doubt else replace(self, doubt=doubt)


ALWAYS = StatementCondition()


@dataclass(frozen=True)
class BlockExit:
    """One that may leave: for ``label`` of a GOTO, None for the end of the batch or TRY block.

    ``is_error``: a CATCH goes on. ``doubt`` is what the rest depends on where that is not known.
    """

    words: str
    label: str | None = None
    is_error: bool = False
    doubt: str | None = None


@dataclass
class BlockFlow:
    """The flow of a batch, or of one TRY block of it.

    ``left`` is what surely left it. ``perhaps`` is why what stands here may run all the same: a GOTO may reach it.
    """

    left: BlockExit | None = None
    perhaps: str | None = None
    exits: list[BlockExit] = field(default_factory=list)

    def restrict_condition(self, condition: StatementCondition) -> StatementCondition:
        """Return the condition of a statement that stands here."""
        if self.perhaps is not None:
            return condition.perhaps(self.perhaps)
        if self.left is not None:
            return condition.not_run(f"it stands after the {self.left.words}")
        for block_exit in self.exits:
            condition = condition.doubted(block_exit.doubt)
        return condition

    def leave(
        self, words: str, condition: StatementCondition, label: str | None = None, *, is_error: bool = False
    ) -> None:
        """Note that what stands here leaves, under this condition; ``words`` are such as ``RETURN in line 2``."""
        if condition.never or condition.passed_over:
            return
        if condition.is_certain and self.perhaps is not None:
            self.perhaps = None
        elif condition.is_certain:
            self.left = self.left or BlockExit(words, label, is_error)
        elif condition.after_error or condition.why_not is None:
            self.exits.append(BlockExit(words, label))
        else:
            why = condition.why_not.removeprefix("it ")
            doubt = f"it runs only if the {words} does not, which {why}"
            self.exits.append(BlockExit(words, label, doubt=doubt))

    def land(self, label: str) -> None:
        """Note that a label stands here: what went to it goes on."""
        comers = [block_exit for block_exit in self.exits if block_exit.label == label]
        self.exits = [block_exit for block_exit in self.exits if block_exit.label != label]
        if self.left is not None and self.left.label == label:
            self.left = self.perhaps = None
        elif self.left is not None and comers:
            self.perhaps = f"it runs only if the {comers[0].words} reaches it"


# The transaction of a connection: how deep it is, where it and its savepoints began, and whether it is doomed.


@dataclass(frozen=True, slots=True)
class StoredProcedure:
    """A procedure that the script made, in a database; ``is_sure`` that it is this one that a call runs."""

    module: ModuleNode
    database: str | None
    is_sure: bool


ProcedureKey = tuple[str, str, str]
"""Database, schema and name, in lower case."""


@dataclass
class SavePoint:
    """A point to go back to: how many effects a script had by then, and what it had made of the instance.

    ``state`` is a copy of the rows and procedures, None as long as nothing has changed since.
    """

    effects: int = 0
    state: tuple[NamedRows | None, dict[ProcedureKey, StoredProcedure | None]] | None = None


@dataclass
class OpenTransaction:
    """The open transaction; ``depth`` is @@TRANCOUNT, ``start`` where the outermost began, under ``guards``.

    ``line`` and ``name`` are those of its BEGIN. ``savepoints`` are names, in their order, with their marks.
    ``doomed``: an error has left nothing but ROLLBACK. ``perhaps_ended`` is the COMMIT or ROLLBACK that may have
    ended it, under a condition that only the server knows.
    """

    depth: int = 0
    start: SavePoint = field(default_factory=SavePoint)
    guards: tuple[ConditionGuard, ...] = ()
    name: str | None = None
    doomed: bool = False
    perhaps_ended: str | None = None
    savepoints: list[tuple[str, SavePoint]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Return whether there is one."""
        return self.depth > 0

    @property
    def state(self) -> int:
        """Return what XACT_STATE() does."""
        return 0 if not self.is_open else (-1 if self.doomed else 1)

    @property
    def save_points(self) -> list[SavePoint]:
        """Return where it can go back to."""
        return [self.start, *(point for _, point in self.savepoints)] if self.is_open else []

    def begin(self, save_point: SavePoint, guards: tuple[ConditionGuard, ...], name: str | None) -> None:
        """Begin the transaction, or one inside it."""
        if self.is_open:
            self.depth += 1
        else:
            self.reset()
            self.depth, self.start, self.guards, self.name = 1, save_point, guards, name

    def save(self, name: str, save_point: SavePoint) -> None:
        """Note a savepoint."""
        self.savepoints.append((name, save_point))

    def find_savepoint(self, name: str) -> SavePoint | None:
        """Return the newest savepoint of this name, exactly; those behind it are gone."""
        for index in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[index][0] == name:
                del self.savepoints[index + 1 :]
                return self.savepoints[index][1]
        return None

    def reset(self) -> None:
        """End the transaction."""
        self.depth, self.guards, self.name = 0, (), None
        self.doomed, self.perhaps_ended = False, None
        self.savepoints.clear()
