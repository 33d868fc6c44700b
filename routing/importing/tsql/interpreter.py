"""Run the statements of batches, as far as script and state decide them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from routing.importing.tsql import session_statements, tree
from routing.importing.tsql.batch_course import BlockFlow, StatementCondition, StatementCourse
from routing.importing.tsql.calling import CallRunner
from routing.importing.tsql.grammar import DEEPEST
from routing.importing.tsql.held_texts import find_shown_statement, find_statement_elsewhere
from routing.importing.tsql.instance_state import DATABASES, NamedRows, phrase_guard
from routing.importing.tsql.script_run import BatchFrame, RunStep, ScriptRun, StatementEffect
from routing.importing.tsql.script_statements import (
    ConditionGuard,
    DropDatabase,
    GuardSubject,
    RefusalError,
    RenameDatabase,
    ScriptStatement,
    UntoldError,
    no_value,
    quote,
)
from routing.importing.tsql.state_changes import change
from routing.importing.tsql.statement_parser import ParserSettings
from routing.importing.tsql.tokens import Lexeme, LexemeKind, tokenize
from routing.importing.tsql.tree import Place
from routing.importing.tsql.vocabulary import BESIDE_DATABASE, find_unknown_variable, speaks_of_routing

_DEEPEST = 150
"""Blocks inside one another, those of calls included."""


class ScriptInterpreter:
    """Runs nodes into a ``ScriptRun``. It also walks through nodes that do not run, to name their contents."""

    def __init__(self, run: ScriptRun, settings: ParserSettings) -> None:
        self._run = run
        self.calls = calls = CallRunner(run, settings, self)
        self._nesting = 0
        self._handlers: dict[type[tree.ScriptNode], Callable[[RunStep[Any]], None]] = {
            tree.AssignNode: partial(session_statements.assign, run),
            tree.BlockNode: lambda step: self.walk(step.node.body, step.condition),
            tree.CallNode: calls.call,
            tree.DefinitionNode: self._define,
            tree.DropModules: calls.drop,
            tree.GotoNode: self._goto,
            tree.IfElse: self._if,
            tree.LabelNode: self._label,
            tree.LoopNode: self._loop,
            tree.ModuleNode: calls.create,
            tree.OtherStatement: self._pass_over,
            tree.RaiseError: partial(session_statements.raise_error, run),
            tree.ReturnNode: self._return,
            tree.RunText: calls.run_text,
            tree.SetOptions: partial(session_statements.set_options, run),
            tree.ThrowNode: self._throw,
            tree.TransactionStatement: partial(session_statements.run_transaction, run),
            tree.TryCatch: self._try,
            tree.UseNode: self._use,
        }

    def run_batch(self, batch: tree.ParsedBatch, condition: StatementCondition) -> None:
        """Run one batch, or no statement of it if it has faults. Faults of unsent batches are not reported."""
        run, connection = self._run, self._run.connection
        connection.failed_line = None
        faults = self.run_nodes(batch, BatchFrame(), condition, reports_faults=condition.runs)
        if faults:
            connection.error, connection.failed_line = faults[0].number, faults[0].place[1]
        if batch.unread is not None:
            run.report(batch.unread, f"blocks nest more than {DEEPEST} deep: the rest of the batch is not read")
        if connection.transaction.doomed:
            run.roll_back_all("it is rolled back with its transaction, which cannot be committed after an error")

    def run_nodes(
        self, batch: tree.ParsedBatch, frame: BatchFrame, condition: StatementCondition, *, reports_faults: bool
    ) -> list[tree.BatchFault]:
        """Run the statements of a batch or a called text in a frame. Return the faults that prevent it."""
        run = self._run
        early = find_early_use(batch.nodes, run.holdings) if condition.runs and not batch.faults else None
        faults = [*batch.faults, *([] if early is None else [early])]
        for fault in faults if reports_faults else ():
            run.report(fault.place, f"{fault.why}; its batch does not run", fault.number, by_server=True)
        if faults:
            line = faults[0].place[1]
            condition = condition.not_run(f"it does not run, since its batch cannot be parsed: see line {line}")
        run.frames.append(frame)
        self.walk(batch.nodes, condition)
        run.end_frame()
        return faults

    def walk(self, nodes: Sequence[tree.ScriptNode | None], condition: StatementCondition) -> None:
        """Run statements one after another."""
        self._nesting += 1
        for node in nodes:
            if node is None:
                continue
            if self._nesting > _DEEPEST:
                why = f"calls and blocks nest more than {_DEEPEST} deep: the rest is not read"
                self._run.report(node.place, why)
                break
            if self._run.takes_step(node.place):
                step = RunStep(node, condition, self._run.restrict_condition(condition))
                self._handlers[type(node)](step)
        self._nesting -= 1

    # What governs others

    def _if(self, step: RunStep[tree.IfElse]) -> None:
        node, condition, connection = step.node, step.condition, self._run.connection
        if node.is_else:
            then = otherwise = condition.perhaps(f"it depends on the IF of the ELSE in line {step.line}")
        elif not step.effective.may_run:
            then = otherwise = condition
        else:
            then, otherwise = self._branches(node, condition)
            connection.error = 0 if step.effective.runs else connection.error
        self.walk([node.then], then)
        self.walk([node.otherwise], otherwise)

    def _branches(
        self, node: tree.IfElse, condition: StatementCondition
    ) -> tuple[StatementCondition, StatementCondition]:
        run, line = self._run, node.place[1]
        answer = run.answer(node.words, condition)
        if answer.holds is None and not answer.guards:
            missing = find_unknown_variable(" ".join(word.text for word in node.words))
            why = ", and only the server knows its condition" if missing is None else f": {no_value(missing).why}"
            unknown = condition.perhaps(f"it depends on the IF in line {line}{why}")
            return unknown, unknown
        if answer.holds is None and run.holdings is None:
            inverse = tuple(guard.inverse() for guard in answer.guards)
            return condition.under(answer.guards), condition.under(inverse)
        if answer.holds is None:
            # If the state gives no answer, the first branch is assumed to run.
            guards = " and ".join(phrase_guard(guard) for guard in answer.guards)
            return condition.doubted(f"it runs only if {guards}, which is not known"), condition.not_held()
        if answer.expects_no_error:
            alternative = condition.after_an_error(f"it runs only after an error: see the IF in line {line}")
        elif answer.by_state:
            alternative = condition.not_held()
        else:
            verb = "holds" if answer.holds else "does not hold"
            alternative = condition.not_run(f"the condition of the IF in line {line} {verb}")
        return (condition, alternative) if answer.holds else (alternative, condition)

    def _loop(self, step: RunStep[tree.LoopNode]) -> None:
        why = f"it is in the loop that begins in line {step.line}"
        self.walk([step.node.body], step.condition.perhaps(why))

    def _try(self, step: RunStep[tree.TryCatch]) -> None:
        node, condition, frame = step.node, step.condition, self._run.frame
        frame.flows.append(BlockFlow())
        self.walk(node.body, condition)
        block_exit = frame.flows.pop().certain_exit
        if block_exit is None or not block_exit.is_error:
            why = f"it runs only after an error: it is in the CATCH in line {node.catch_line}"
            condition = condition.after_an_error(why)
        frame.caught.append(frame.thrown if block_exit is not None and block_exit.is_error else None)
        self.walk(node.handler, condition)
        frame.caught.pop()

    # What leaves

    def _label(self, step: RunStep[tree.LabelNode]) -> None:
        self._run.frame.flows[0].land(step.node.name)
        self._run.frame.variables.forget_all()

    def _goto(self, step: RunStep[tree.GotoNode]) -> None:
        if step.effective.course is not StatementCourse.NEVER:
            self._run.frame.flows[0].leave(f"GOTO in line {step.line}", step.condition, step.node.label)

    def _return(self, step: RunStep[tree.ReturnNode]) -> None:
        if step.effective.course is not StatementCourse.NEVER:
            self._run.frame.flows[0].leave(f"RETURN in line {step.line}", step.condition)

    def _throw(self, step: RunStep[tree.ThrowNode]) -> None:
        run, words = self._run, f"THROW in line {step.line}"
        run.frame.texts.show(step.node.words)
        if step.effective.is_certain:
            run.fail(_error_number(run, step.node), words, step.line, step.condition, ends_batch=True)
        elif step.effective.course is not StatementCourse.NEVER:
            run.frame.flows[-1].leave(words, step.condition, is_error=True)

    # What routing is about

    def _define(self, step: RunStep[tree.DefinitionNode]) -> None:
        run, node, effective = self._run, step.node, step.effective
        if node.is_fault:
            return
        for note in node.notes:
            run.report(node.place, f"{node.title}: {note}", counted=True)
        in_transaction = session_statements.find_transaction_refusal(run, node) if effective.runs else None
        refusal = in_transaction or node.refusal
        if refusal is not None:
            self._refuse(node.place, node.title, refusal, effective)
            return
        if effective.runs:
            session_statements.starts_transaction(run, node.words, effective)
        self.apply(node.statements, effective, node.place)

    def _refuse(self, place: Place, title: str, refusal: RefusalError, effective: StatementCondition) -> None:
        run = self._run
        if effective.course is StatementCourse.NEVER:
            run.report(place, f"{title}: {effective.why_not}")
            return
        run.refuse(place, title, refusal)
        if effective.runs and (refusal.by_server or refusal.number is not None):
            run.fail(refusal.number, f"{title} in line {place[1]}, which fails", place[1], effective)

    def apply(self, statements: Sequence[ScriptStatement], effective: StatementCondition, place: Place) -> None:
        """Apply statements if they run, otherwise report or skip them."""
        run = self._run
        for read in statements:
            # ALTER DATABASE CURRENT names the database in use.
            database = run.connection.database
            name = read.name or database or ""
            statement = replace(read, file=place[0], line=place[1], name=name, database=database)
            if not effective.runs:
                if effective.course is StatementCourse.PASSED_OVER:
                    run.passed_over.append(statement)
                else:
                    run.report(place, f"{statement.title}: {effective.why_not}")
                self._rename(statement, effective)
                continue
            statement = replace(statement, doubt=effective.doubt)
            try:
                self._apply_one(statement, effective.guards)
            except RefusalError as refusal:
                is_told = not isinstance(refusal, UntoldError)
                run.refuse(place, statement.title, refusal)
                if is_told:
                    words = f"{statement.title} in line {place[1]}, which fails"
                    run.fail(refusal.number, words, place[1], effective)
                    if run.find_trying() is not None or run.connection.aborts:
                        return
                    continue
            run.connection.error = 0

    def _apply_one(self, statement: ScriptStatement, guards: tuple[ConditionGuard, ...]) -> None:
        run = self._run
        if statement.name == "":
            raise UntoldError("the database in use is not known")
        if run.leaves_out(statement):
            return
        rival = run.rivals.get(statement.key)
        if rival is not None:
            raise UntoldError(rival)
        run.keep_state()
        remark = None if run.holdings is None else change(run.holdings, statement)
        run.effects.append(StatementEffect(statement, remark, run.changeset))
        self._rename(statement, StatementCondition(guards=guards))

    def _rename(self, statement: ScriptStatement, effective: StatementCondition) -> None:
        """Follow the rename of the current database. If it is uncertain, the database is unknown."""
        run, used = self._run, self._run.connection.database
        if (
            not isinstance(statement, RenameDatabase)
            or used is None
            or used.casefold() != statement.name.casefold()
        ):
            return
        if effective.is_certain:
            run.connection.database = statement.new_name
        elif effective.may_run:
            why = f"{statement.title}: whether it runs is not sure"
            run.forget_database((statement.file, statement.line), why)

    def _use(self, step: RunStep[tree.UseNode]) -> None:
        run, node, effective = self._run, step.node, step.effective
        if not effective.may_run:
            return
        if node.name is None:
            if node.refusal is not None:
                run.forget_database(node.place, f"USE: {node.refusal.why}")
            return
        for note in node.notes:
            run.report(node.place, f"USE: {note}", counted=True)
        existence = ConditionGuard(GuardSubject.DATABASE, None, node.name.casefold(), True)
        guards = {replace(guard, name=guard.name.casefold()) for guard in effective.guards}
        if effective.why_not is None and guards <= {existence}:
            run.connection.database = node.name
            run.connection.error = 0
            return
        why = effective.why_not or "it is under a condition"
        run.forget_database(node.place, f"USE {quote(node.name)}: {why}")

    def _pass_over(self, step: RunStep[tree.OtherStatement]) -> None:
        run, node, effective = self._run, step.node, step.effective
        first = node.words[0] if node.words else None
        missing = None if first is None or not first.upper else find_unknown_variable(first.text)
        if missing is not None and effective.course is not StatementCourse.NEVER:
            run.report(node.place, no_value(missing).why)
        run.forget_changed(node.words)
        run.frame.texts.show(node.words)
        elsewhere, shown = find_statement_elsewhere(node.words), find_shown_statement(node.words)
        if elsewhere is not None:
            run.report(node.place, elsewhere)
        elif shown is not None:
            run.report(node.place, shown, counted=True)
        if effective.runs:
            session_statements.starts_transaction(run, node.words, effective)
            run.connection.error = None


def _error_number(run: ScriptRun, node: tree.ThrowNode) -> int | None:
    """Return the number of THROW, or without arguments that of the error in its CATCH block."""
    if len(node.words) > 1:
        text = node.words[1].text
        return int(text) if text.isdecimal() and len(text) < 10 else None
    return run.frame.caught[-1] if run.frame.caught else None


# USE of a database that its own batch makes: the batch is compiled before, when there is none.


_NO_DATABASE = 911


def find_early_use(nodes: Sequence[tree.ScriptNode], holdings: NamedRows | None) -> tree.BatchFault | None:
    """Return the fault of a batch that uses a database before it exists, or None without a known state."""
    if holdings is None:
        return None
    created_names: set[str] = set()
    known_names: set[str] = set()
    for node in _walk(nodes):
        if isinstance(node, tree.UseNode) and node.name is not None:
            name = node.name.casefold()
            if name in created_names:
                why = f"USE: the database {quote(node.name)} does not exist yet when its batch is compiled"
                return tree.BatchFault(node.place, why, _NO_DATABASE)
            known_names.add(name)
        elif isinstance(node, tree.DefinitionNode):
            dropped = (statement for statement in node.statements if isinstance(statement, DropDatabase))
            known_names.update(statement.name.casefold() for statement in dropped)
        for name in _made_by(node):
            is_there = holdings.holds_database(name)
            is_missing = holdings.knows(DATABASES, "", name) and not is_there
            if not is_there and (is_missing or name not in known_names):
                created_names.add(name)
    return None


def _walk(nodes: Sequence[tree.ScriptNode | None]) -> Iterator[tree.ScriptNode]:
    for node in nodes:
        if node is not None:
            yield node
            yield from _walk(tree.governed_by(node))


def _made_by(node: tree.ScriptNode) -> Iterator[str]:
    if isinstance(node, tree.DefinitionNode):
        yield from _find_created(node.words)
        renamed = (statement for statement in node.statements if isinstance(statement, RenameDatabase))
        yield from (statement.new_name.casefold() for statement in renamed)
    elif isinstance(node, tree.RunText):
        for word in node.value:
            if word.kind is LexemeKind.STRING and speaks_of_routing(word.text):
                yield from _find_created(tokenize(word.text).lexemes)


def _find_created(words: Sequence[Lexeme]) -> Iterator[str]:
    for verb, noun, name in zip(words, words[1:], words[2:], strict=False):
        is_database = verb.upper == "CREATE" and noun.upper == "DATABASE" and name.upper not in BESIDE_DATABASE
        if is_database and name.kind in (LexemeKind.WORD, LexemeKind.NAME):
            yield name.text.casefold()
