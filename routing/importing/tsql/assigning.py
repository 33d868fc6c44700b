"""DECLARE, SET and SELECT of variables, whose constants are known to whoever reads the script."""

from __future__ import annotations

from routing.importing.tsql.constants import join, read_type
from routing.importing.tsql.script_run import ScriptRun
from routing.importing.tsql.statement_condition import StatementCondition
from routing.importing.tsql.tree import AssignNode, VariableAssignment


def assign(run: ScriptRun, node: AssignNode, fate: StatementCondition) -> None:
    """Assign the values that are known; a FROM or WHERE leaves them to the server."""
    effective = run.settle(fate)
    for one in node.assignments:
        if node.is_declaration:
            run.frame.variables.declare(one.name, read_type(one.type_words))
        if one.sign:
            _assign_one(run, node, one, fate)
    if effective.runs:
        run.connection.error = 0


def _assign_one(run: ScriptRun, node: AssignNode, one: VariableAssignment, fate: StatementCondition) -> None:
    effective = run.settle(fate)
    frame, place = run.frame, node.place
    if effective.passed_over:
        return
    if effective.never or effective.after_error:
        frame.texts.hold(one.name, one.value, place, None, replaces=False)
        return
    is_known = one.sign in ("=", "+=") and not node.has_source
    value = run.evaluate(one.value, fate) if is_known else None
    if one.sign == "+=" and value is not None:
        before = run.value_of(one.name, fate)
        value = None if before is None else join(before, value)
    if value is not None and not run.affords(len(value.text), place):
        value = None
    held = frame.variables.assign(one.name, value, fate)
    text = None if held is None else held.text
    replaces = one.sign == "=" and not node.has_source and effective.is_certain
    frame.texts.hold(one.name, one.value, place, text, replaces=replaces)
