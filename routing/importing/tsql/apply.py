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
from routing.importing.tsql.statements import Guard, Problem, Script, Statement, Subject, quote


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
    answers: dict[int, _Answer] = {}
    problems: list[Problem] = []
    passed_over: list[Statement] = []
    applied = refused = 0
    for statement in script.statements:
        found = [_ask(holdings, guard, answers) for guard in statement.guards]
        if any(answer.holds != guard.holds for answer, guard in zip(found, statement.guards, strict=True)):
            passed_over.append(statement)
            continue
        try:
            remark = change(holdings, statement)
        except RefusalError as refusal:
            refused += 1
            why = f"{statement.title}: {refusal.why}"
            problems.append(
                Problem(statement.file, statement.line, why, refusal.number, by_server=refusal.by_server)
            )
            continue
        applied += 1
        remarks = [remark, statement.doubt, *(answer.doubt for answer in found)]
        problems += [
            Problem(statement.file, statement.line, f"{statement.title}: {text}", counted=True)
            for text in dict.fromkeys(remarks)
            if text is not None
        ]
    return Applied(holdings.state(), tuple(problems), applied, tuple(passed_over), refused)


@dataclass(frozen=True)
class _Answer:
    """What the state says to a condition; ``doubt`` where it cannot tell, and the first branch is taken to run."""

    holds: bool
    doubt: str | None = None


def _ask(holdings: Holdings, guard: Guard, answers: dict[int, _Answer]) -> _Answer:
    """The answer to a condition, as it was when it was asked first."""
    if guard.asked not in answers:
        known = _answer(holdings, guard)
        doubt = f"it runs only if {_phrase(guard)}, which is not known"
        found = _Answer(guard.holds, doubt) if known is None else _Answer(known)
        answers[guard.asked] = found
    return answers[guard.asked]


def _phrase(guard: Guard) -> str:
    if guard.subject is Subject.BROKER:
        return f"the broker of {quote(guard.name)} is {'' if guard.holds else 'not '}enabled"
    if guard.name == "":
        return f"there is {'a' if guard.holds else 'no'} {guard.subject.value}"
    return f"the {guard.subject.value} {quote(guard.name)} {'exists' if guard.holds else 'does not exist'}"


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
    if guard.subject is Subject.BROKER_ENDPOINT:
        return _has_broker_endpoint(holdings, guard.name)
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


def _has_broker_endpoint(holdings: Holdings, name: str) -> bool | None:
    """One of this name, or of any; an endpoint that forwards is one, whatever its name."""
    endpoint = holdings.endpoint
    if endpoint is None or (name and holdings.is_other_endpoint(name)):
        return False
    if endpoint.name is None:
        return None if name or not endpoint.is_message_forwarding_enabled else True
    return not name or endpoint.name.casefold() == name.casefold()
