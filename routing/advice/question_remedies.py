"""Find the remedies for one message of the tables: for its own hop, or for failed hops of its path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from routing.advice.path_remedies import (
    find_remedies,
    find_unaddressed,
    find_wrong_ports,
)
from routing.advice.remedies import remedy_of
from routing.advice.remedy import Remedy, withhold_refused
from routing.advice.server_remedies import complete_addresses
from routing.advice.status_advice import StatusAdviser
from routing.advice.stuck_messages import AdviceEstate, SentMessage
from routing.cases.background import StatusText
from routing.cases.evidence import FileEvidence
from routing.cases.judged_questions import FollowedMessage, JudgedQuestion, RemedyFacts
from routing.cases.message_cases import MessageCase, MessageResult
from routing.rules.judging import JudgedPath
from routing.terms import LEAVES, STAYS

ReadEstate = Callable[[], AdviceEstate]


def advise_on_question(
    judged: JudgedQuestion,
    followed: FollowedMessage | None,
    read_facts: Callable[[], RemedyFacts],
    status_text: StatusText | None,
    *,
    has_exports: bool,
) -> tuple[Remedy, ...]:
    """Find the remedies where a message fails, and for a status of SQL Server or a missing acknowledgement.

    ``followed`` is None for a message that stays on its instance. Facts are read only if there may be a remedy.
    """
    read_estate = cache(lambda: AdviceEstate(read_facts()))
    sent = SentMessage.of_case(judged.case, judged.message.t)
    paths = [] if followed is None else [path.judged for path in followed.paths]
    if followed is None:
        remedies, path = _advise_where_stuck(judged.case, sent, read_estate), None
    else:
        remedies, path = _advise_on_paths(paths, sent, read_estate), paths[0] if len(paths) == 1 else None
    verdict = judged.case.verdict
    if status_text is not None and verdict is not None and judged.case.database is not None:
        own_path = path if verdict.outcome in LEAVES else None
        case = replace(judged.case, path=own_path, status_text=status_text)
        result = MessageResult(judged.question.row, "", case, judged.message)
        remedies = _add_reported(remedies, result, sent, read_estate, has_exports=has_exports)
    if not remedies and any(path.unread_addresses for path in paths):
        remedies = [remedy for path in paths for remedy in find_unaddressed(path, read_estate())]
    return _allow(read_estate(), remedies) if remedies else ()


def _advise_where_stuck(case: MessageCase, sent: SentMessage, read_estate: ReadEstate) -> list[Remedy]:
    """Find the remedy for a message that stays or is dropped, unless its dialog decides between several."""
    if not all(verdict.outcome in STAYS for verdict in case.verdicts):
        return []
    remedies = {remedy_of(read_estate().describe_stuck(sent, verdict)) for verdict in case.verdicts}
    return list(remedies) if len(remedies) == 1 else []


def _advise_on_paths(paths: Iterable[JudgedPath], sent: SentMessage, read_estate: ReadEstate) -> list[Remedy]:
    """Find the remedies for hops that fail or lead to unknown addresses."""
    if not any(path.failing_paths or path.unread_addresses for path in paths):
        return []
    estate = read_estate()
    return [
        remedy
        for path in paths
        for remedy in (
            *find_remedies(path, sent, estate)[1],
            *find_wrong_ports(path.all_paths, sent, estate),
        )
    ]


def _add_reported(
    remedies: list[Remedy], result: MessageResult, sent: SentMessage, read_estate: ReadEstate, *, has_exports: bool
) -> list[Remedy]:
    """Add the remedies for a status of SQL Server, or for a missing acknowledgement, to those of the routes.

    They come first if the message is on its way. Without exports, only a missing acknowledgement gets a remedy.
    """
    is_kept, path = not result.case.is_on_its_way, result.path
    is_failing = path is not None and bool(path.failing_paths)
    has_remedy = is_kept or is_failing
    is_silent = not has_remedy and result.status_text.is_silence(result.row["enqueue_time"])
    if not (has_exports or is_silent):
        return remedies
    adviser = StatusAdviser(read_estate())
    counted = adviser.answer([result], is_failing=is_failing, has_remedy=has_remedy)
    shown = {remedy.shown for remedy in remedies}
    answers = [remedy for remedy, _ in counted if remedy.shown not in shown]
    if not answers and is_silent:
        conversation = None if result.message is None else result.message.conversation_id
        conversations = () if conversation is None else (conversation,)
        answers = adviser.answer_silence(result, sent, conversations, result.row["enqueue_time"])
    ordered = [*remedies, *answers] if is_kept else [*answers, *remedies]
    return sorted(ordered, key=lambda remedy: remedy.discards_messages)


def _allow(estate: AdviceEstate, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return different remedies, one for each route, without statements that their instance does not support."""
    allowed: dict[object, Remedy] = {}
    for remedy in remedies:
        shown = withhold_refused(estate.server, remedy)
        is_altering = shown.altered is not None and shown.statement is not None
        allowed.setdefault((shown.place, shown.altered) if is_altering else shown, shown)
    return tuple(allowed.values())


def beside(read_facts: Callable[[], RemedyFacts], evidence: FileEvidence | None) -> Callable[[], RemedyFacts]:
    """Add the exported facts that are not about routing to the facts for remedies."""
    if evidence is None:
        return read_facts
    server = evidence.server

    def read_all() -> RemedyFacts:
        facts = read_facts()
        return replace(facts, server=server, addresses=complete_addresses(server, facts.addresses))

    return read_all
