"""DECLARE, SET and SELECT of variables, whose constants a reader of the script knows."""

from __future__ import annotations

from routing.importing.tsql.constants import join, read_type
from routing.importing.tsql.script_run import ScriptRun
from routing.importing.tsql.statement_condition import StatementCondition
from routing.importing.tsql.tree import AssignNode, VariableAssignment


def assign(run: ScriptRun, node: AssignNode, condition: StatementCondition) -> None:
    """Assign the values that are known; a FROM or WHERE leaves them to the server."""
    effective = run.restrict_condition(condition)
    for one in node.assignments:
        if node.is_declaration:
            run.frame.variables.declare(one.name, read_type(one.type_words))
        if one.sign:
            _assign_one(run, node, one, condition)
    if effective.runs:
        run.connection.error = 0


def _assign_one(run: ScriptRun, node: AssignNode, one: VariableAssignment, condition: StatementCondition) -> None:
    effective = run.restrict_condition(condition)
    frame, place = run.frame, node.place
    if effective.passed_over:
        return
    if effective.never or effective.after_error:
        frame.texts.hold(one.name, one.value, place, None, replaces=False)
        return
    is_known = one.sign in ("=", "+=") and not node.has_source
    value = run.evaluate(one.value, condition) if is_known else None
    if one.sign == "+=" and value is not None:
        before = run.value_of(one.name, condition)
        value = None if before is None else join(before, value)
    if value is not None and not run.affords(len(value.text), place):
        value = None
    assigned_value = frame.variables.assign(one.name, value, condition)
    text = None if assigned_value is None else assigned_value.text
    replaces = one.sign == "=" and not node.has_source and effective.is_certain
    frame.texts.hold(one.name, one.value, place, text, replaces=replaces)
