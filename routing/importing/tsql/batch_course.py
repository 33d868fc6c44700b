"""Track the flow of a batch: the statements that RETURN, THROW, GOTO or an error skips, and their conditions.

A conditional exit is a ``BlockExit``: the rest runs only without it. If only the server can decide a condition,
the script is assumed to pass the check, and the following statements are marked as dependent on it. Statements
after an exit by an error are not marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from routing.importing.tsql.instance_state import NamedRows
from routing.importing.tsql.script_statements import ConditionGuard
from routing.importing.tsql.tree import ModuleNode

# Whether a statement runs, as far as script and state show: certainly, never or perhaps.


class StatementCourse(Enum):
    """The course of a statement. Statements under a false IF are not reported."""

    RUNS = "runs"
    PERHAPS = "may run"
    AFTER_ERROR = "runs only after an error, and the script is assumed to have none"
    NEVER = "does not run"
    PASSED_OVER = "is under an IF with a false condition in this state"


@dataclass(frozen=True)
class StatementCondition:
    """The condition of a statement: its course, and the reason if it is left out.

    ``doubt`` is an assumption behind an applied statement. ``guards`` are the surrounding conditions if no state
    can decide them.
    """

    course: StatementCourse = StatementCourse.RUNS
    why_not: str | None = None
    doubt: str | None = None
    guards: tuple[ConditionGuard, ...] = ()

    @property
    def runs(self) -> bool:
        """True if the statement runs, or is assumed to run."""
        return self.course is StatementCourse.RUNS

    @property
    def may_run(self) -> bool:
        """True unless the statement certainly does not run, or its own IF does not hold."""
        return self.course not in (StatementCourse.NEVER, StatementCourse.PASSED_OVER)

    @property
    def is_certain(self) -> bool:
        """True if the statement runs in any state."""
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
        """Return the condition of a statement that certainly does not run, or the same one for None."""
        if why_not is None or not self.may_run:
            return self
        return replace(self, course=StatementCourse.NEVER, why_not=why_not)

    def doubted(self, doubt: str | None) -> StatementCondition:
        """Return the condition with an assumption. Only the first one counts."""
        return self if doubt is None or self.doubt else replace(self, doubt=doubt)


ALWAYS = StatementCondition()


@dataclass(frozen=True)
class BlockExit:
    """A possible exit: to ``label`` for a GOTO, or None for the end of the batch or TRY block.

    ``is_error`` is True if a CATCH continues. ``doubt`` is the assumption of the rest if the exit is uncertain.
    """

    words: str
    label: str | None = None
    is_error: bool = False
    doubt: str | None = None


@dataclass
class BlockFlow:
    """The flow of a batch, or of one of its TRY blocks.

    ``certain_exit`` is the certain exit. ``perhaps`` is the reason why the code after it may still run, because a
    GOTO may reach it.
    """

    certain_exit: BlockExit | None = None
    perhaps: str | None = None
    exits: list[BlockExit] = field(default_factory=list)

    def restrict_condition(self, condition: StatementCondition) -> StatementCondition:
        """Return the condition of a statement at this point of the flow."""
        if self.perhaps is not None:
            return condition.perhaps(self.perhaps)
        if self.certain_exit is not None:
            return condition.not_run(f"it comes after the {self.certain_exit.words}")
        for block_exit in self.exits:
            condition = condition.doubted(block_exit.doubt)
        return condition

    def leave(
        self, words: str, condition: StatementCondition, label: str | None = None, *, is_error: bool = False
    ) -> None:
        """Note an exit under this condition. ``words`` are such as ``RETURN in line 2``."""
        if not condition.may_run:
            return
        if condition.is_certain and self.perhaps is not None:
            self.perhaps = None
        elif condition.is_certain:
            self.certain_exit = self.certain_exit or BlockExit(words, label, is_error)
        elif condition.course is StatementCourse.AFTER_ERROR or condition.why_not is None:
            self.exits.append(BlockExit(words, label))
        else:
            why = condition.why_not.removeprefix("it ")
            doubt = f"it runs only if the {words} does not, which {why}"
            self.exits.append(BlockExit(words, label, doubt=doubt))

    def land(self, label: str) -> None:
        """Note a label here, where exits to it continue."""
        comers = [block_exit for block_exit in self.exits if block_exit.label == label]
        self.exits = [block_exit for block_exit in self.exits if block_exit.label != label]
        if self.certain_exit is not None and self.certain_exit.label == label:
            self.certain_exit = self.perhaps = None
        elif self.certain_exit is not None and comers:
            self.perhaps = f"it runs only if the {comers[0].words} reaches it"


# The transaction of a connection: its depth, the beginning of it and its savepoints, and whether it is doomed.


@dataclass(frozen=True, slots=True)
class StoredProcedure:
    """A procedure that the script made in a database. ``is_sure`` is True if a call certainly runs this one."""

    module: ModuleNode
    database: str | None
    is_sure: bool


ProcedureKey = tuple[str, str, str]
"""Database, schema and name, in lower case."""


@dataclass
class SavePoint:
    """A point to roll back to: the number of effects so far, and the state of the instance.

    ``state`` is a copy of the rows and procedures, or None before the first change.
    """

    effects: int = 0
    state: tuple[NamedRows | None, dict[ProcedureKey, StoredProcedure | None]] | None = None


@dataclass
class OpenTransaction:
    """The open transaction. ``depth`` is @@TRANCOUNT, ``start`` the begin of the outermost under ``guards``.

    ``name`` is that of its BEGIN. ``savepoints`` are names with their marks, in order. ``doomed`` is True if an
    error allows only ROLLBACK. ``perhaps_ended`` is the COMMIT or ROLLBACK that may have ended it, under a
    condition that only the server can decide.
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
        """The value of XACT_STATE()."""
        return 0 if not self.is_open else (-1 if self.doomed else 1)

    @property
    def save_points(self) -> list[SavePoint]:
        """The points to roll back to."""
        return [self.start, *(point for _, point in self.savepoints)] if self.is_open else []

    def begin(self, save_point: SavePoint, guards: tuple[ConditionGuard, ...], name: str | None = None) -> None:
        """Begin the transaction, or one inside it."""
        if self.is_open:
            self.depth += 1
        else:
            self.reset()
            self.depth, self.start, self.guards, self.name = 1, save_point, guards, name

    def find_savepoint(self, name: str) -> SavePoint | None:
        """Find the newest savepoint with exactly this name, and drop the later ones."""
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
