"""Run the statements that steer a session: its options, its transactions, and errors that a script raises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from routing.importing.tsql import tree
from routing.importing.tsql.batch_course import StatementCondition, StatementCourse
from routing.importing.tsql.script_run import RunStep, ScriptRun
from routing.importing.tsql.script_statements import RefusalError
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.tree import Words
from routing.importing.tsql.values import CatalogValue, KnownValue, Value, join, read_type
from routing.importing.tsql.vocabulary import BESIDE_DATABASE

_RUNS_NOTHING = frozenset(["NOEXEC", "PARSEONLY", "SHOWPLAN_XML", "SHOWPLAN_ALL", "SHOWPLAN_TEXT"])
_IMPLICIT = frozenset(["IMPLICIT_TRANSACTIONS", "ANSI_DEFAULTS"])
_STARTS = frozenset(
    [
        *("ALTER", "CREATE", "DELETE", "DROP", "FETCH", "GRANT", "INSERT", "MERGE", "OPEN", "REVOKE", "TRUNCATE"),
        *("UPDATE", "DENY"),
    ]
)
"""The statements that start a transaction under IMPLICIT_TRANSACTIONS. SELECT does if it reads a table."""

_OF_DATABASES, _OF_ENDPOINTS, _DOOMED = 226, 574, 3930
_NO_COMMIT, _NO_ROLLBACK, _NO_SAVE, _NO_SUCH_NAME, _DOOMED_TO_SAVEPOINT = 3902, 3903, 628, 6401, 3931
_LEAST_ERROR, _MOST_UNLOGGED, _LEAST_FATAL = 11, 18, 20
_RAISED, _NOT_LOGGED = 50000, 2754


def set_options(run: ScriptRun, step: RunStep[tree.SetOptions]) -> None:
    """Run a SET of options that affect conditions, errors or transactions."""
    connection, node, condition = run.connection, step.node, step.condition
    for option in node.options:
        if option in _RUNS_NOTHING:
            if node.is_on is False:
                if run.restrict_condition(condition, heeds_noexec=False).runs:
                    connection.noexec_flow.certain_exit = None
                    connection.noexec_flow.exits.clear()
            elif run.restrict_condition(condition).course is not StatementCourse.NEVER:
                connection.noexec_flow.leave(f"SET {option} ON in line {step.line}", condition)
        elif run.restrict_condition(condition).is_certain and node.is_on is not None:
            if option == "XACT_ABORT":
                connection.aborts = node.is_on
            elif option in _IMPLICIT:
                connection.is_implicit = node.is_on
    if run.restrict_condition(condition).runs:
        connection.error = 0


def starts_transaction(run: ScriptRun, words: Sequence[Lexeme], effective: StatementCondition) -> None:
    """Begin the transaction that IMPLICIT_TRANSACTIONS begins before some statements."""
    connection = run.connection
    if connection.is_implicit and not connection.transaction.is_open and may_start_transaction(words):
        connection.transaction.begin(run.save_point(), effective.guards)


def may_start_transaction(words: Sequence[Lexeme]) -> bool:
    """Return whether a statement of these words begins a transaction under IMPLICIT_TRANSACTIONS."""
    if not words:
        return False
    reads = words[0].upper in ("SELECT", "WITH") and any(word.upper == "FROM" for word in words)
    return reads or words[0].upper in _STARTS


def find_transaction_refusal(run: ScriptRun, node: tree.DefinitionNode) -> RefusalError | None:
    """Return why a statement is refused in the transaction that is open, if it is."""
    transaction = run.connection.transaction
    if transaction.doomed:
        return RefusalError("its transaction can only be rolled back, after an error in it", _DOOMED)
    is_open = (transaction.is_open and transaction.perhaps_ended is None) or run.connection.is_implicit
    if not is_open:
        return None
    noun = node.words[1].upper if len(node.words) > 1 else ""
    if noun == "DATABASE" and not (len(node.words) > 2 and node.words[2].upper in BESIDE_DATABASE):
        return RefusalError("it is not allowed in a transaction", _OF_DATABASES)
    if noun == "ENDPOINT":
        return RefusalError("it is not allowed in a transaction", _OF_ENDPOINTS)
    return None


def run_transaction(run: ScriptRun, step: RunStep[tree.TransactionStatement]) -> None:
    """Run BEGIN, COMMIT, SAVE or ROLLBACK of a transaction."""
    node, effective, transaction = step.node, step.effective, run.connection.transaction
    if not effective.runs:
        _note_perhaps(run, step)
        return
    name = _name_of(run, node.name, effective)
    number: int | None = None
    if node.verb == "BEGIN":
        if run.connection.is_implicit and not transaction.is_open:
            transaction.begin(run.save_point(), effective.guards)
        transaction.begin(run.save_point(), effective.guards, name)
    elif node.verb == "COMMIT":
        number = _commit(run, effective)
    elif node.verb == "SAVE":
        number = None if transaction.is_open else _NO_SAVE
        if transaction.is_open and name is not None:
            transaction.savepoints.append((name, run.save_point()))
    else:
        number = _roll_back(run, step, name)
    if number is None:
        run.connection.error = 0
    else:
        run.fail(number, f"{node.verb} in line {step.line}, which fails", step.line, effective)


def _name_of(run: ScriptRun, word: Lexeme | None, effective: StatementCondition) -> str | None:
    if word is None:
        return None
    if word.kind is LexemeKind.WORD and word.text.startswith("@"):
        value = run.value_of(word.text, effective)
        return None if value is None else value.text
    return word.text


def _commit(run: ScriptRun, effective: StatementCondition) -> int | None:
    """Commit the innermost transaction, and return the number of any error."""
    transaction = run.connection.transaction
    if not transaction.is_open:
        return None if effective.guards else _NO_COMMIT
    if transaction.doomed:
        return _DOOMED
    if effective.guards[: len(transaction.guards)] == transaction.guards:
        transaction.depth -= 1
        if transaction.depth == 0:
            transaction.reset()
    return None


def _roll_back(run: ScriptRun, step: RunStep[tree.TransactionStatement], name: str | None) -> int | None:
    """Roll back the whole transaction or to a savepoint, and return the number of any error."""
    transaction, effective = run.connection.transaction, step.effective
    if not transaction.is_open:
        return None if effective.guards else _NO_ROLLBACK
    if effective.guards != transaction.guards:
        return None
    why = f"it is rolled back in line {step.line}"
    if step.node.name is not None and name is None:
        run.doubt_since(transaction.start, f"it counts only if the ROLLBACK in line {step.line} does not reach it")
        return None
    if name is None:
        run.roll_back_all(why)
        return None
    savepoint = transaction.find_savepoint(name)
    if savepoint is not None and transaction.doomed:
        return _DOOMED_TO_SAVEPOINT
    if savepoint is not None:
        run.roll_back(savepoint, why)
    elif name == transaction.name:
        run.roll_back_all(why)
    else:
        return _NO_SUCH_NAME
    return None


def _note_perhaps(run: ScriptRun, step: RunStep[tree.TransactionStatement]) -> None:
    """Note a COMMIT or ROLLBACK that may run, though no error is expected."""
    node, effective, transaction = step.node, step.effective, run.connection.transaction
    if not effective.may_run or effective.course is StatementCourse.AFTER_ERROR or not transaction.is_open:
        return
    if node.verb not in ("COMMIT", "ROLLBACK"):
        return
    words = f"{node.verb} in line {step.line}"
    if node.verb == "ROLLBACK":
        doubt = f"it counts only if the {words} does not run, which depends on a condition"
        run.doubt_since(transaction.start, doubt)
    else:
        transaction.perhaps_ended = words


def raise_error(run: ScriptRun, step: RunStep[tree.RaiseError]) -> None:
    """Run RAISERROR: severity 11 and more leaves a TRY block, 20 and more WITH LOG ends the connection."""
    node, condition, effective, line = step.node, step.condition, step.effective, step.line
    run.frame.texts.show(node.words)
    severity = _severity_of(run, step)
    if severity is None or not effective.may_run:
        return
    words = f"RAISERROR in line {line}"
    if severity >= _LEAST_FATAL and node.is_logged:
        run.connection.ended.leave(f"{words}, which ends the connection", condition)
        if effective.is_certain:
            run.connection.failed_line = line
            if run.connection.transaction.is_open:
                run.roll_back_all(f"it is rolled back, since the {words} ends the connection")
    elif severity < _LEAST_ERROR:
        run.connection.error = 0 if effective.runs else run.connection.error
    elif effective.runs:
        number = _NOT_LOGGED if severity > _MOST_UNLOGGED and not node.is_logged else _RAISED
        run.fail(number, words, line, effective, heeds_abort=False)
    elif len(run.frame.flows) > 1:
        run.frame.flows[-1].leave(words, condition, is_error=True)


def _severity_of(run: ScriptRun, step: RunStep[tree.RaiseError]) -> int | None:
    words = step.node.severity
    is_negative = bool(words) and words[0].kind is LexemeKind.SIGN and words[0].text == "-"
    value = run.evaluate(words[1:] if is_negative else words, step.effective)
    if value is None or not value.is_number:
        return None
    return -int(value.text) if is_negative else int(value.text)


# DECLARE, SET and SELECT of variables, whose constants a reader of the script knows.


def assign(run: ScriptRun, step: RunStep[tree.AssignNode]) -> None:
    """Assign known values. Values after a FROM or WHERE depend on the server."""
    for assignment in step.node.assignments:
        if step.node.is_declaration:
            run.frame.variables.declare(assignment.name, read_type(assignment.type_words))
        if assignment.sign and step.effective.course is not StatementCourse.PASSED_OVER:
            _assign_one(run, step, assignment)
    if step.effective.runs:
        run.connection.error = 0


def _assign_one(run: ScriptRun, step: RunStep[tree.AssignNode], assignment: tree.VariableAssignment) -> None:
    effective, frame, place = step.effective, run.frame, step.node.place
    if effective.course in (StatementCourse.NEVER, StatementCourse.AFTER_ERROR):
        frame.texts.hold(assignment.name, assignment.value, place, None, replaces=False)
        return
    value = _read_assigned(run, step, assignment)
    if isinstance(value, KnownValue) and not run.affords(len(value.text), place):
        value = None
    assigned_value = frame.variables.assign(assignment.name, value, step.condition)
    text = assigned_value.text if isinstance(assigned_value, KnownValue) else None
    replaces = assignment.sign == "=" and not step.node.has_source and effective.is_certain
    frame.texts.hold(assignment.name, assignment.value, place, text, replaces=replaces)


def _read_assigned(
    run: ScriptRun, step: RunStep[tree.AssignNode], assignment: tree.VariableAssignment
) -> Value | None:
    if step.node.has_source:
        return _read_queried(run, step, assignment) if assignment.sign == "=" else None
    if assignment.sign == "+=":
        before = run.value_of(assignment.name, step.condition)
        added = run.evaluate(assignment.value, step.condition)
        return None if before is None or added is None else join(before, added)
    return run.read_value(assignment.value, step.condition) if assignment.sign == "=" else None


def _read_queried(
    run: ScriptRun, step: RunStep[tree.AssignNode], assignment: tree.VariableAssignment
) -> Value | None:
    """Return the value of ``SELECT @v = … FROM``. Without a row the variable keeps its value."""
    value = run.read_value(_as_query(step.node, assignment), step.condition)
    if not isinstance(value, CatalogValue) or value.no is not None or run.frame.variables.is_null(assignment.name):
        return value
    before = run.value_of(assignment.name, step.condition)
    return None if before is None else replace(value, no=before)


def _as_query(node: tree.AssignNode, assignment: tree.VariableAssignment) -> Words:
    first = node.words[0]
    opening, closing = (replace(first, kind=LexemeKind.SIGN, text=sign, upper="") for sign in "()")
    source = next((at for at, word in enumerate(node.words) if word.upper == "FROM"), len(node.words))
    select = replace(first, text="SELECT", upper="SELECT")
    return (opening, select, *assignment.value, *node.words[source:], closing)
