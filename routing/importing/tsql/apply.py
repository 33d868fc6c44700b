"""Statements applied in their order to what an instance holds: a new state, and what is refused.

Names of databases, routes and endpoints are found in any case, as under SQL Server's default
collation, an exact match first; service names exactly, as Service Broker compares them. A database
is spelled as the state spells it.
"""

from __future__ import annotations

from dataclasses import dataclass

from routing.importing.tsql.changes import change
from routing.importing.tsql.holdings import Holdings
from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.state import InstanceState
from routing.importing.tsql.statements import Guard, Problem, Script, Statement, Subject


@dataclass(frozen=True)
class Applied:
    """The state afterwards, and what became of the statements.

    ``passed_over`` are those whose own IF did not hold. A problem that is ``counted`` is a remark
    on a statement that was applied.
    """

    state: InstanceState
    problems: tuple[Problem, ...] = ()
    applied: int = 0
    passed_over: tuple[Statement, ...] = ()
    refused: int = 0


def apply_script(state: InstanceState, script: Script) -> Applied:
    """What a script's statements make of this state; the problems are those of applying it."""
    holdings = Holdings(state)
    answers: dict[int, bool | None] = {}
    problems: list[Problem] = []
    passed_over: list[Statement] = []
    applied = refused = 0
    for statement in script.statements:
        if not all(_holds(holdings, guard, answers) for guard in statement.guards):
            passed_over.append(statement)
            continue
        try:
            remark = change(holdings, statement)
        except RefusalError as refusal:
            refused += 1
            why = f"{statement.title}: {refusal.why}"
            problems.append(Problem(statement.file, statement.line, why, refusal.number))
            continue
        applied += 1
        if remark is not None:
            why = f"{statement.title}: {remark}"
            problems.append(Problem(statement.file, statement.line, why, counted=True))
    return Applied(holdings.state(), tuple(problems), applied, tuple(passed_over), refused)


def _holds(holdings: Holdings, guard: Guard, answers: dict[int, bool | None]) -> bool:
    """Whether a condition is met, as it was when asked; one that has no answer counts as met."""
    if guard.asked not in answers:
        answers[guard.asked] = _answer(holdings, guard)
    answer = answers[guard.asked]
    return answer is None or answer == guard.holds


def _answer(holdings: Holdings, guard: Guard) -> bool | None:
    """Whether it exists or its broker is enabled; None where the state cannot tell."""
    database = guard.database
    if guard.subject is Subject.DATABASE:
        return holdings.holds_database(guard.name)
    if guard.subject is Subject.BROKER:
        row = holdings.database(guard.name)
        return row.is_broker_enabled if row else None
    if guard.subject is Subject.ENDPOINT:
        return _has_endpoint(holdings, guard.name)
    if database is None:
        return None
    if guard.subject is Subject.ROUTE:
        return holdings.route(database, guard.name) is not None
    return holdings.service(database, guard.name) is not None


def _has_endpoint(holdings: Holdings, name: str) -> bool | None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(name):
        return True
    if endpoint is not None and endpoint.name is None:
        return None
    return endpoint is not None and endpoint.name is not None and endpoint.name.casefold() == name.casefold()
