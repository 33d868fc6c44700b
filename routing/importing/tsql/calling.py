"""Run EXEC: texts that are known are read, system procedures and the script's own are followed, others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from routing.importing.tsql import tree
from routing.importing.tsql.batch_course import ProcedureKey, StatementCondition, StatementCourse, StoredProcedure
from routing.importing.tsql.definitions import read_procedure
from routing.importing.tsql.grammar import parse_batch
from routing.importing.tsql.held_texts import find_hidden_statement, runs_in_every_database, takes_data
from routing.importing.tsql.script_run import TEMPORARY, BatchFrame, RunStep, ScriptRun
from routing.importing.tsql.script_statements import RefusalError, quote
from routing.importing.tsql.statement_parser import ParserSettings
from routing.importing.tsql.tokens import Lexeme, LexemeKind, tokenize
from routing.importing.tsql.tree import Words
from routing.importing.tsql.values import KnownValue, VariableValues, read_type
from routing.importing.tsql.vocabulary import speaks_of_routing

if TYPE_CHECKING:
    from routing.importing.tsql.interpreter import ScriptInterpreter

_RUNS_TEXT = "sp_executesql"
_DEEPEST_CALL = 32
_NOT_FOUND, _TOO_DEEP, _NO_ARGUMENT, _NO_PARAMETER, _TOO_MANY = 2812, 217, 201, 8145, 8144
_EXISTS, _NOT_THERE, _IN_TRANSACTION, _NARROW = 2714, 3701, 15002, 214
_IS_VARIABLE = "of a variable: only the server knows its text"
_IS_NARROW = "of a text that is not nvarchar, which sp_executesql refuses"
_IS_BUILT = "of a text built by string concatenation, which only the server can do"


class CallRunner:
    """Follows the calls of one run. ``nodes`` runs their contents."""

    def __init__(self, run: ScriptRun, settings: ParserSettings, nodes: ScriptInterpreter) -> None:
        self._run = run
        self._settings = settings
        self._nodes = nodes

    # Texts

    def run_text(self, call: RunStep[tree.RunText]) -> None:
        """Run EXEC ('…') if literals and known variables give its text. AT names another instance."""
        run, node = self._run, call.node
        value = run.evaluate(node.value, call.condition, is_plain=True)
        if node.server is not None:
            self._report_linked(call, node.server, value)
        elif value is None:
            is_variable = len(node.value) == 1 and node.value[0].text.startswith("@")
            self._name_unknown(call, _IS_VARIABLE if is_variable else _IS_BUILT)
        else:
            self._run_known(call, value, node.value, None, BatchFrame())
        run.forget_changed(node.words)

    def _name_unknown(self, call: RunStep[tree.ScriptNode], why: str, number: int | None = None) -> None:
        run, node = self._run, call.node
        run.frame.texts.pass_on(node.words)
        if not call.effective.may_run:
            return
        run.report(node.place, f"EXEC {why}", number)
        if call.effective.runs and number is not None:
            run.fail(number, f"EXEC in line {call.line}, which fails", call.line, call.effective)
        elif call.effective.runs:
            run.connection.error = None

    def _report_linked(self, call: RunStep[tree.ScriptNode], server: str, value: KnownValue | None) -> None:
        may_change = value is None or speaks_of_routing(value.text)
        if may_change and call.effective.course is not StatementCourse.PASSED_OVER:
            self._run.report(call.node.place, f"EXEC: it runs on the linked server {quote(server)}")

    def _run_known(
        self,
        call: RunStep[tree.ScriptNode],
        value: KnownValue,
        words: Words,
        database: str | None,
        frame: BatchFrame | None,
    ) -> None:
        """Run a known text. ``frame`` has the parameters of sp_executesql, or is None if they are unknown."""
        run, place = self._run, call.node.place
        has_variables = any(word.kind is LexemeKind.WORD for word in words)
        if has_variables and not run.affords(len(value.text), place):
            return
        run.frame.texts.run(call.node.words)
        if self._is_too_deep(call, "EXEC"):
            return
        settings = replace(self._settings, declared=None if frame is None else frame.variables.names)
        batch = parse_batch(tokenize(value.text), lambda _row: place, settings)
        self._run_frame(call, frame or BatchFrame(), batch, call.effective, database)

    def _run_frame(
        self,
        call: RunStep[tree.ScriptNode],
        frame: BatchFrame,
        batch: tree.ParsedBatch,
        effective: StatementCondition,
        database: str | None,
    ) -> None:
        """Run a called text. Its USE and SET end with it, and only the call fails if it cannot be parsed."""
        run, connection = self._run, self._run.connection
        saved_state = (connection.database, connection.aborts, connection.is_implicit, connection.noexec_flow)
        connection.database = database or connection.database
        connection.noexec_flow = replace(connection.noexec_flow, exits=list(connection.noexec_flow.exits))
        faults = self._nodes.run_nodes(batch, frame, effective, reports_faults=True)
        connection.database, connection.aborts, connection.is_implicit, connection.noexec_flow = saved_state
        if faults and effective.runs:
            words = f"EXEC in line {call.line}, which fails"
            run.fail(faults[0].number, words, call.line, effective, heeds_abort=False)

    def _is_too_deep(self, call: RunStep[tree.ScriptNode], title: str) -> bool:
        if len(self._run.frames) <= _DEEPEST_CALL:
            return False
        why = f"calls nest more than {_DEEPEST_CALL} deep"
        self._fail(call, title, why, _TOO_DEEP)
        return True

    # Procedures

    def call(self, call: RunStep[tree.CallNode]) -> None:
        """Run EXEC of a procedure."""
        run, node = self._run, call.node
        parts = self._parts_of(node, call.condition)
        name = parts[-1] if parts else ""
        server = parts[0] if len(parts) > 3 else None
        if name.lower() == _RUNS_TEXT:
            self._execute_text(call, parts, server)
        elif server is not None or not parts:
            self._pass_texts(call, name)
            if not parts and node.variable is not None and any(run.procedures.values()) and call.effective.may_run:
                why = "only the server knows which procedure it calls"
                run.report(node.place, f"EXEC {node.variable.text}: {why}")
        elif not self._call_system(call, name):
            self._call_own(call, parts)
        run.forget_changed(node.words)

    def _parts_of(self, node: tree.CallNode, condition: StatementCondition) -> tuple[str, ...]:
        if node.variable is None:
            return node.parts
        value = self._run.value_of(node.variable.text, condition)
        if value is None:
            return ()
        words = tokenize(value.text).lexemes
        return tuple(word.text for word in words if word.kind in (LexemeKind.WORD, LexemeKind.NAME))

    def _execute_text(self, call: RunStep[tree.CallNode], parts: tuple[str, ...], server: str | None) -> None:
        run, arguments = self._run, call.node.arguments
        words = arguments[0].words if arguments else ()
        value = run.evaluate(words, call.condition, is_plain=True) if len(words) == 1 else None
        if server is not None:
            self._report_linked(call, server, value)
        elif value is None:
            self._name_unknown(call, _IS_VARIABLE)
        elif not value.is_national:
            self._name_unknown(call, _IS_NARROW, _NARROW)
        else:
            database = (parts[-3] or None) if len(parts) > 2 else None
            self._run_known(call, value, words, database, self._text_frame(arguments[1:], call.condition))

    def _text_frame(
        self, arguments: Sequence[tree.CallArgument], condition: StatementCondition
    ) -> BatchFrame | None:
        """Return the frame with the parameters of sp_executesql, or None if they are unknown."""
        if not arguments:
            return BatchFrame()
        heads = self._run.evaluate(arguments[0].words, condition, is_plain=True)
        if heads is None:
            return None
        parameters = tree.read_parameters(tokenize(heads.text).lexemes)
        without_defaults = [replace(parameter, default=None) for parameter in parameters]
        return self._frame_of(without_defaults, arguments[1:], condition)

    def _frame_of(
        self,
        parameters: Sequence[tree.ProcedureParameter],
        arguments: Sequence[tree.CallArgument],
        condition: StatementCondition,
    ) -> BatchFrame:
        """Return a frame with the parameters of a call, and their values that are known."""
        variables = VariableValues()
        words_by_name = tree.bind(arguments, [parameter.name for parameter in parameters])
        for parameter in parameters:
            words = words_by_name.get(parameter.name.casefold())
            variables.declare(parameter.name, read_type(parameter.type_words))
            value = None
            if words is not None:
                value = self._value_of_argument(words, condition)
            elif parameter.default:
                value = self._run.evaluate(parameter.default, condition, is_plain=True)
            variables.assign(parameter.name, value, StatementCondition())
        return BatchFrame(variables)

    def _value_of_argument(self, words: Words, condition: StatementCondition) -> KnownValue | None:
        word = words[0]
        if len(words) == 1 and word.kind is LexemeKind.WORD and not word.text.startswith("@"):
            # A bare word is a text, as in ``EXEC p abc``.
            return None if word.upper == "NULL" else KnownValue(word.text)
        return self._run.evaluate(words, condition, is_plain=True)

    def _pass_texts(self, call: RunStep[tree.CallNode], procedure: str) -> None:
        """Note that a procedure may run the texts that it is given, unless it is known to take data."""
        run, words = self._run, call.node.words
        if call.effective.runs:
            run.connection.error = None
        if runs_in_every_database(procedure):
            self._run_everywhere(call, procedure)
            return
        if takes_data(procedure, words):
            run.frame.texts.show(words)
            return
        run.frame.texts.pass_on(words)
        why = find_hidden_statement(words)
        if why is not None and call.effective.course is not StatementCourse.PASSED_OVER:
            run.report(call.node.place, why)

    def _run_everywhere(self, call: RunStep[tree.CallNode], procedure: str) -> None:
        run, node, effective = self._run, call.node, call.effective
        run.frame.texts.run(node.words)
        words = run.frame.variables.resolve(node.words, effective)
        is_named = _has_unknown_value(words) or any(speaks_of_routing(word.text) for word in words)
        if is_named:
            why = "it runs in every database, and only the server knows which those are"
            self._refuse(call, f"EXEC {procedure}", RefusalError(why))

    def _refuse(self, call: RunStep[tree.CallNode], title: str, refusal: RefusalError) -> None:
        if call.effective.course is StatementCourse.NEVER:
            self._run.report(call.node.place, f"{title}: {call.effective.why_not}")
        elif call.effective.course is not StatementCourse.PASSED_OVER:
            self._run.refuse(call.node.place, title, refusal)

    def _call_system(self, call: RunStep[tree.CallNode], name: str) -> bool:
        """Return whether it is a procedure of the system that changes databases, which is run then."""
        run, node, effective = self._run, call.node, call.effective

        def value_of(variable: Lexeme) -> str | None:
            value = run.value_of(variable.text, call.condition)
            return None if value is None else value.text

        try:
            statements = read_procedure(name, node.arguments, value_of)
        except RefusalError as refusal:
            self._refuse(call, name, refusal)
            return True
        if statements is None:
            return False
        if statements and effective.runs and run.connection.transaction.is_open:
            self._fail(call, name, "it is not allowed in a transaction", _IN_TRANSACTION)
            return True
        self._nodes.apply(statements, effective, node.place)
        if not statements:
            self._pass_texts(call, name)
        return True

    def _fail(self, step: RunStep[tree.ScriptNode], title: str, why: str, number: int) -> None:
        self._run.report(step.node.place, f"{title}: {why}", number)
        if step.effective.runs:
            self._run.fail(number, f"{title} in line {step.line}, which fails", step.line, step.effective)

    def _key_of(self, parts: Sequence[str]) -> ProcedureKey:
        schema, name = tree.key_of(tuple(parts[-2:]))
        if name.startswith("#"):
            return TEMPORARY, "", name
        database = parts[-3] if len(parts) > 2 and parts[-3] else self._run.connection.database
        return (database or "").casefold(), schema, name

    def _call_own(self, call: RunStep[tree.CallNode], parts: tuple[str, ...]) -> None:
        run, place, effective = self._run, call.node.place, call.effective
        key = self._key_of(parts)
        if key not in run.procedures:
            self._pass_texts(call, parts[-1])
            return
        procedure = run.procedures[key]
        title = f"EXEC {'.'.join(parts)}"
        if procedure is None:
            if effective.runs:
                self._fail(call, title, "the script has dropped the procedure", _NOT_FOUND)
            return
        if not effective.may_run:
            return
        run.called.add(id(procedure.module))
        if not procedure.is_sure:
            run.report(place, f"{title}: whether the script creates this procedure depends on a condition")
        if not self._is_too_deep(call, title):
            self._run_procedure(call, procedure, title)

    def _run_procedure(self, call: RunStep[tree.CallNode], procedure: StoredProcedure, title: str) -> None:
        module, node, effective = procedure.module, call.node, call.effective
        fault = _find_argument_fault(module.parameters, node.arguments)
        if fault is not None:
            if effective.runs:
                self._fail(call, title, *fault)
            return
        frame = self._frame_of(module.parameters, node.arguments, call.condition)
        if not procedure.is_sure:
            why = f"it depends on whether the script creates the procedure {quote(module.name)}"
            effective = effective.perhaps(why)
        batch = tree.ParsedBatch(nodes=module.read_body(), faults=())
        self._run_frame(call, frame, batch, effective, procedure.database)

    # Making and dropping procedures

    def create(self, step: RunStep[tree.ModuleNode]) -> None:
        """Note a procedure, function or trigger that is made: its body is not run here."""
        run, node, effective = self._run, step.node, step.effective
        procedure = StoredProcedure(node, run.connection.database, effective.runs)
        if not effective.may_run or node.kind != "procedure":
            self.name_body(procedure, step.condition)
            return
        key = self._key_of(("", *node.key) if node.key[1].startswith("#") else node.key)
        existing = run.procedures.get(key)
        if node.verb == "CREATE" and existing is not None and existing.is_sure and effective.runs:
            title = f"CREATE PROCEDURE {quote(node.name)}"
            self._fail(step, title, "the script has already created it", _EXISTS)
            self.name_body(procedure, step.condition)
            return
        if effective.runs:
            run.connection.error = 0
        run.created.append(procedure)
        run.put_procedure(key, procedure)

    def drop(self, step: RunStep[tree.DropModules]) -> None:
        """Note procedures that are dropped: a call of one fails."""
        run, node, effective = self._run, step.node, step.effective
        for key in self._keys_dropped(node):
            existing = run.procedures.get(key)
            if not effective.runs:
                if effective.may_run and existing is not None:
                    run.put_procedure(key, replace(existing, is_sure=False))
                continue
            if key in run.procedures and existing is None and not node.if_exists:
                words = f"DROP PROCEDURE in line {step.line}, which fails"
                run.fail(_NOT_THERE, words, step.line, effective)
                return
            if key in run.procedures or not node.if_exists:
                run.put_procedure(key, None)
            run.connection.error = 0

    def _keys_dropped(self, node: tree.DropModules) -> Iterator[ProcedureKey]:
        for parts in node.keys:
            key = self._key_of(parts)
            yield key
            for other in list(self._run.procedures):
                if other != key and other[:2] == key[:2] and tree.is_of_group(other[2], key[2]):
                    yield other

    def name_uncalled(self) -> None:
        """Report the statements in procedures that the script creates and does not call."""
        for procedure in self._run.created:
            if id(procedure.module) not in self._run.called:
                self.name_body(procedure, StatementCondition())

    def name_body(self, procedure: StoredProcedure, condition: StatementCondition) -> None:
        """Report the statements in the body of a module that does not run."""
        run, module = self._run, procedure.module
        if module.is_silent:
            return
        why = f"it is in the body of the {module.kind} {quote(module.name)}, which the script only creates"
        run.frames.append(BatchFrame())
        self._nodes.walk(module.read_body(), condition.not_run(why))
        run.end_frame()


def _has_unknown_value(words: Sequence[Lexeme]) -> bool:
    """Return True if a call still has a variable as a value after known ones are replaced."""
    following = [*(word.text for word in words[1:]), ""]
    pairs = zip(words, following, strict=True)
    return any(
        word.kind is LexemeKind.WORD and word.text.startswith("@") and after != "=" for word, after in pairs
    )


def _find_argument_fault(
    parameters: Sequence[tree.ProcedureParameter], arguments: Sequence[tree.CallArgument]
) -> tuple[str, int] | None:
    names = [parameter.name.casefold() for parameter in parameters]
    for index, argument in enumerate(arguments):
        if argument.name is not None and argument.name.casefold() not in names:
            return f"it has no parameter {quote(argument.name)}", _NO_PARAMETER
        if argument.name is None and index >= len(names):
            return "it is given more arguments than it has parameters", _TOO_MANY
    words_by_name = tree.bind(arguments, names)
    for parameter in parameters:
        if parameter.default is None and parameter.name.casefold() not in words_by_name:
            return f"its parameter {quote(parameter.name)} is missing", _NO_ARGUMENT
    return None
