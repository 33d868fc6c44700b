"""Find the remedies for one message of the tables: for its own hop, or for failed hops of its path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from routing.advice.path_remedies import find_remedies, find_unaddressed, find_wrong_ports
from routing.advice.remedies import remedy_of
from routing.advice.remedy import AlteredRoute, Remedy, withhold_refused
from routing.advice.status_advice import StatusAdviser
from routing.advice.stuck_messages import AdviceEstate
from routing.cases.background import StatusText
from routing.cases.evidence import gather_beside
from routing.cases.judged_questions import FollowedMessage, JudgedQuestion, RemedyFacts
from routing.cases.message_cases import MessageCase, MessageResult
from routing.rules.judging import JudgedPath
from routing.rules.timeline import moment_of
from routing.terms import LEAVES, STAYS

ReadEstate = Callable[[], AdviceEstate]


def advise_on_question(
    judged: JudgedQuestion,
    followed: FollowedMessage | None,
    read_facts: Callable[[], RemedyFacts],
    status_text: StatusText | None,
    exports: Sequence[str] = (),
) -> tuple[Remedy, ...]:
    """Find the remedies where a message fails, and for a status of SQL Server or a missing acknowledgement.

    ``followed`` is None for a message that stays on its instance. Facts are read only if there may be a remedy.
    ``exports`` are files and folders with the facts that are not about routing. Raises InputError.
    """
    evidence = gather_beside(exports)

    @cache
    def read_estate() -> AdviceEstate:
        facts = read_facts()
        return AdviceEstate(facts if evidence is None else replace(facts, server=evidence.server))

    paths = [] if followed is None else [path.judged for path in followed.paths]
    path = paths[0] if len(paths) == 1 else None
    if followed is None:
        remedies = _advise_where_stuck(judged.case, read_estate)
    else:
        remedies = _advise_on_paths(paths, judged.case, read_estate)
    verdict = judged.case.verdict
    if status_text is not None and verdict is not None and judged.case.database is not None:
        own_path = path if verdict.outcome in LEAVES else None
        case = replace(judged.case, path=own_path, status_text=status_text)
        row = {**judged.question.row, "enqueue_time": moment_of(judged.question.row["enqueue_time"])}
        result = MessageResult(row, "", case)
        remedies = _add_reported(remedies, result, read_estate, has_exports=evidence is not None)
    if not remedies and any(path.unread_addresses for path in paths):
        remedies = [remedy for path in paths for remedy in find_unaddressed(path, read_estate())]
    return _allow(read_estate(), remedies) if remedies else ()


def _advise_where_stuck(case: MessageCase, read_estate: ReadEstate) -> list[Remedy]:
    """Find the remedy for a message that stays or is dropped, unless its dialog decides between several."""
    if not all(verdict.outcome in STAYS for verdict in case.verdicts):
        return []
    remedies = {remedy_of(read_estate().describe_stuck(case, verdict)) for verdict in case.verdicts}
    return list(remedies) if len(remedies) == 1 else []


def _advise_on_paths(paths: Iterable[JudgedPath], sent: MessageCase, read_estate: ReadEstate) -> list[Remedy]:
    """Find the remedies for hops that fail or lead to unknown addresses."""
    if not any(path.failing_paths or path.unread_addresses for path in paths):
        return []
    estate = read_estate()
    return [
        remedy
        for path in paths
        for remedy in (*find_remedies(path, sent, estate)[1], *find_wrong_ports(path.all_paths, sent, estate))
    ]


def _add_reported(
    remedies: list[Remedy], result: MessageResult, read_estate: ReadEstate, *, has_exports: bool
) -> list[Remedy]:
    """Add the remedies for a status of SQL Server, or for a missing acknowledgement, to those of the routes.

    Without exports, only a missing acknowledgement gets a remedy.
    """
    case = result.case
    has_remedy = not case.is_on_its_way or case.is_failing
    if not has_exports and (has_remedy or not result.is_unacknowledged):
        return remedies
    counted_remedies = StatusAdviser(read_estate()).advise([result], remedies, has_remedy=has_remedy)
    return [counted.remedy for counted in counted_remedies]


def _allow(estate: AdviceEstate, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return different remedies, one for each route, without statements that their instance does not support."""
    allowed: dict[object, Remedy] = {}
    for remedy in remedies:
        shown = withhold_refused(estate.server, remedy)
        is_altering = isinstance(shown.altered, AlteredRoute) and shown.statement is not None
        allowed.setdefault((shown.place, shown.altered) if is_altering else shown, shown)
    return tuple(allowed.values())
