"""The state of one run of a script: its connection, its calls, its effects and its refused statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from routing.importing.tsql.batch_course import (
    ALWAYS,
    BlockFlow,
    OpenTransaction,
    ProcedureKey,
    SavePoint,
    StatementCondition,
    StoredProcedure,
)
from routing.importing.tsql.expressions import ConditionAnswer, SessionFacts, answer_condition, evaluate
from routing.importing.tsql.held_texts import HeldTexts
from routing.importing.tsql.instance_state import InstanceState, NamedRows, answer_guard
from routing.importing.tsql.script_statements import (
    ConditionGuard,
    RefusalError,
    ScriptStatement,
    StatementKey,
    StatementProblem,
    UnfilledError,
    UnparsedError,
)
from routing.importing.tsql.sqlcmd import Changeset
from routing.importing.tsql.tokens import Lexeme
from routing.importing.tsql.tree import Place, ScriptNode
from routing.importing.tsql.values import KnownValue, Value, VariableValues, find_changed

_MOST_HELD = 2_000_000
_MOST_STEPS = 200_000
UNNUMBERED = -1
"""The @@ERROR of an error with an unknown number."""


@dataclass
class SqlConnection:
    """A connection with its database, options, transaction and @@ERROR. An unknown database is None.

    ``error`` is None if it is unknown. ``noexec_flow`` is the effect of SET NOEXEC on the rest, ``ended`` that of
    an error that ends the connection. ``failed_line`` is the line of an error without a CATCH.
    """

    database: str | None
    aborts: bool = False
    is_implicit: bool = False
    error: int | None = 0
    failed_line: int | None = None
    noexec_flow: BlockFlow = field(default_factory=BlockFlow)
    ended: BlockFlow = field(default_factory=BlockFlow)
    transaction: OpenTransaction = field(default_factory=OpenTransaction)


@dataclass
class BatchFrame:
    """A batch, a text of EXEC or a procedure while it runs.

    ``flows`` are its own flow and those of the surrounding TRY blocks, the innermost last. ``caught`` are the
    errors of the surrounding CATCH blocks. ``thrown`` is the last error that left a TRY block.
    """

    variables: VariableValues = field(default_factory=VariableValues)
    texts: HeldTexts = field(default_factory=HeldTexts)
    flows: list[BlockFlow] = field(default_factory=lambda: [BlockFlow()])
    caught: list[int | None] = field(default_factory=list)
    thrown: int | None = None


@dataclass(slots=True)
class StatementEffect:
    """A statement that was applied, and a remark on it."""

    statement: ScriptStatement
    remark: str | None
    changeset: Changeset | None = None


_NodeT = TypeVar("_NodeT", bound=ScriptNode, covariant=True)


@dataclass(frozen=True)
class RunStep(Generic[_NodeT]):
    """A statement that a run has come to. ``effective`` is its condition with the exits above it."""

    node: _NodeT
    condition: StatementCondition
    effective: StatementCondition

    @property
    def line(self) -> int:
        """The line of the statement."""
        return self.node.place[1]


class ScriptRun:
    """One run of a script against a state, or against none: then no IF about a state is answered.

    Statements for which ``leaves_out`` holds are taken to succeed and change nothing.
    """

    def __init__(
        self,
        database: str | None,
        state: InstanceState | None,
        leaves_out: Callable[[ScriptStatement], bool] = lambda statement: False,
        instance: str | None = None,
    ) -> None:
        self.instance = instance
        self.holdings = None if state is None else NamedRows(state)
        self.leaves_out = leaves_out
        self.connection = SqlConnection(database)
        self.frames: list[BatchFrame] = []
        self.problems: list[StatementProblem] = []
        self.effects: list[StatementEffect] = []
        self.passed_over: list[ScriptStatement] = []
        self.procedures: dict[ProcedureKey, StoredProcedure | None] = {}
        self.created: list[StoredProcedure] = []
        self.called: set[int] = set()
        self.ended: str | None = None
        self.changeset: Changeset | None = None
        self.rivals: Mapping[StatementKey, str] = {}
        self._characters_held = 0
        self._steps = 0

    @property
    def frame(self) -> BatchFrame:
        """Return the innermost frame."""
        return self.frames[-1]

    def report(
        self,
        place: Place,
        why: str,
        number: int | None = None,
        *,
        counted: bool = False,
        by_server: bool | None = None,
        is_unfilled: bool = False,
    ) -> None:
        """Note a problem. With a number of SQL Server it counts as refused unless ``by_server`` is given."""
        is_refused = number is not None if by_server is None else by_server
        self.problems.append(StatementProblem(*place, why, number, counted, is_refused, is_unfilled))

    def refuse(self, place: Place, title: str, refusal: RefusalError) -> None:
        """Note a statement that was not read or is refused."""
        by_server = refusal.by_server and not isinstance(refusal, UnparsedError)
        is_unfilled = isinstance(refusal, UnfilledError)
        self.report(place, f"{title}: {refusal.why}", refusal.number, by_server=by_server, is_unfilled=is_unfilled)

    def takes_step(self, place: Place) -> bool:
        """Return True if called code may run another statement. The limit stops endless calls."""
        self._steps += len(self.frames) > 1
        if self._steps == _MOST_STEPS and len(self.frames) > 1:
            self.report(place, f"it calls more than {_MOST_STEPS} statements: the rest is not read")
        return self._steps < _MOST_STEPS or len(self.frames) == 1

    def affords(self, characters: int, place: Place) -> bool:
        """Return True if variables may grow by this number of characters. A text joined to itself doubles."""
        was_enough = self._characters_held <= _MOST_HELD
        self._characters_held += characters
        if was_enough and self._characters_held > _MOST_HELD:
            self.report(
                place,
                f"its variables have more than {_MOST_HELD} characters: their values are unknown from here on",
            )
        return self._characters_held <= _MOST_HELD

    def restrict_condition(
        self, condition: StatementCondition, *, heeds_noexec: bool = True
    ) -> StatementCondition:
        """Return the condition with the effects of exits above, SET NOEXEC and the connection's end."""
        noexec_flows = [self.connection.noexec_flow] if heeds_noexec else []
        for flow in (*self.frame.flows, *noexec_flows, self.connection.ended):
            condition = flow.restrict_condition(condition)
        return condition

    def end_frame(self) -> None:
        """Report the texts of the innermost frame that are not read, and leave it."""
        for place, why, is_remark in self.frame.texts.find_problems():
            self.report(place, why, counted=is_remark)
        self.frames.pop()

    # Values

    def look_up(self, name: str, condition: StatementCondition) -> Value | None:
        """Return the value of a variable, maybe one that a catalog view decides. None means unknown."""
        connection = self.connection
        if name.upper() == "@@TRANCOUNT":
            return KnownValue(str(connection.transaction.depth), is_number=True)
        if name.upper() == "@@ERROR":
            is_known = connection.error is not None and connection.error >= 0
            return KnownValue(str(connection.error), is_number=True) if is_known else None
        return self.frame.variables.value(name, condition)

    def value_of(self, name: str, condition: StatementCondition) -> KnownValue | None:
        """Return the certain value of a variable, or None."""
        value = self.look_up(name, condition)
        return value if isinstance(value, KnownValue) else None

    def read_value(
        self, words: Sequence[Lexeme], condition: StatementCondition, is_plain: bool = False
    ) -> Value | None:
        """Evaluate an expression, maybe one that a catalog view decides. None means an unknown value."""
        return evaluate(words, self._facts(condition), is_plain=is_plain)

    def evaluate(
        self, words: Sequence[Lexeme], condition: StatementCondition, is_plain: bool = False
    ) -> KnownValue | None:
        """Evaluate an expression, or return None if its value is uncertain."""
        value = self.read_value(words, condition, is_plain)
        return value if isinstance(value, KnownValue) else None

    def answer(self, words: Sequence[Lexeme], condition: StatementCondition) -> ConditionAnswer:
        """Evaluate a condition at this point of the script."""
        return answer_condition(words, self._facts(condition))

    def _facts(self, condition: StatementCondition) -> SessionFacts:
        connection, caught = self.connection, self.frame.caught
        return SessionFacts(
            connection.database,
            connection.error,
            connection.transaction.depth,
            connection.transaction.state,
            caught[-1] if caught else None,
            self._ask,
            partial(self.look_up, condition=condition),
            self.instance,
        )

    def _ask(self, guard: ConditionGuard) -> bool | None:
        return None if self.holdings is None else answer_guard(self.holdings, guard)

    def forget_changed(self, words: Sequence[Lexeme]) -> None:
        """Forget the values of variables that a statement of these words changes."""
        for name in find_changed(words):
            self.frame.variables.forget(name)

    # Errors and transactions

    def fail(
        self,
        number: int | None,
        words: str,
        line: int,
        condition: StatementCondition,
        *,
        ends_batch: bool = False,
        heeds_abort: bool = True,
    ) -> None:
        """Note a failed statement. Then a CATCH continues, the batch ends, or the next statement runs.

        ``words`` name it, as in ``THROW in line 2``. SET XACT_ABORT ON makes most errors end the batch.
        """
        connection = self.connection
        connection.error = UNNUMBERED if number is None else number
        if condition.guards:
            return
        aborts = connection.aborts and heeds_abort
        trying = self.find_trying()
        if trying is not None:
            for frame in self.frames[trying + 1 :]:
                frame.flows[0].leave(words, ALWAYS)
            self.frames[trying].flows[-1].leave(words, ALWAYS, is_error=True)
            self.frames[trying].thrown = number
            transaction = connection.transaction
            transaction.doomed = transaction.is_open and (aborts or transaction.doomed)
            return
        connection.failed_line = line
        if ends_batch or aborts:
            for frame in self.frames:
                frame.flows[0].leave(words, ALWAYS)
        if aborts and connection.transaction.is_open:
            self.roll_back_all(f"it is rolled back with its transaction, after the {words}")

    def find_trying(self) -> int | None:
        """Return the place of the frame whose CATCH handles the errors of the current statement."""
        for index in range(len(self.frames) - 1, -1, -1):
            if len(self.frames[index].flows) > 1:
                return index
        return None

    def save_point(self) -> SavePoint:
        """Return the point to roll back to later."""
        return SavePoint(len(self.effects))

    def keep_state(self) -> None:
        """Copy the state before its first change after each open save point."""
        changed = [point for point in self.connection.transaction.save_points if point.state is None]
        if changed:
            holdings = None if self.holdings is None else self.holdings.copy()
            state = (holdings, dict(self.procedures))
            for point in changed:
                point.state = state

    def put_procedure(self, key: ProcedureKey, procedure: StoredProcedure | None) -> None:
        """Note a procedure that is made or changed, None for one that is dropped."""
        self.keep_state()
        self.procedures[key] = procedure

    def roll_back(self, save_point: SavePoint, why: str) -> None:
        """Undo all changes since a mark, and say why."""
        undone = self.effects[save_point.effects :]
        del self.effects[save_point.effects :]
        state = save_point.state
        if state is not None:
            self.holdings, self.procedures = state
            # The copy is the state itself from here on: the next change needs another.
            for point in self.connection.transaction.save_points:
                point.state = None if point.state is state else point.state
        for effect in undone:
            statement = effect.statement
            self.report((statement.file, statement.line), f"{statement.title}: {why}")

    def roll_back_all(self, why: str) -> None:
        """Undo the whole transaction."""
        self.roll_back(self.connection.transaction.start, why)
        self.connection.transaction.reset()

    def doubt_since(self, save_point: SavePoint, doubt: str) -> None:
        """Note that all effects since a mark depend on an assumption."""
        for effect in self.effects[save_point.effects :]:
            if effect.statement.doubt is None:
                effect.statement = replace(effect.statement, doubt=doubt)

    def connect(self, database: str | None) -> None:
        """Open a connection and close the previous one."""
        self.close(":CONNECT opens another connection")
        self.connection = SqlConnection(database)
        self.procedures = {key: value for key, value in self.procedures.items() if key[0] != TEMPORARY}

    def close(self, why: str) -> None:
        """Close the connection and roll back its open transaction, like sqlcmd."""
        transaction = self.connection.transaction
        if not transaction.is_open:
            return
        if transaction.perhaps_ended is not None:
            self.doubt_since(transaction.start, f"it counts only if the {transaction.perhaps_ended} runs")
            transaction.reset()
            return
        why = f"its transaction is still open where {why}"
        self.roll_back_all(f"{why}: sqlcmd rolls it back, SSMS leaves it open until its window closes")

    def forget_database(self, place: Place, why: str) -> None:
        """Note that the database in use is not known from here on."""
        self.connection.database = None
        self.report(place, f"{why}; the database in use is not known from here on")


TEMPORARY = "#"
"""The database of procedures that one connection has."""
