"""Find the remedies for one message of the tables: for its own hop, or for failed hops of its path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from routing.advice.path_remedies import (
    find_arrival,
    find_remedies,
    find_silence_remedies,
    find_unaddressed,
    find_wrong_ports,
)
from routing.advice.remedies import remedy_of
from routing.advice.remedy import Remedy, RemedyPlace, withhold_refused
from routing.advice.server_remedies import complete_addresses
from routing.advice.silence_remedies import SilentMessages
from routing.advice.status_advice import StatusAdviser
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.advice.stuck_messages import AdviceEstate, SentMessage
from routing.cases.background import StatusText
from routing.cases.evidence import FileEvidence
from routing.cases.judged_questions import FollowedMessage, JudgedQuestion, RemedyFacts
from routing.cases.message_cases import MessageResult
from routing.rules.judging import JudgedPath
from routing.terms import LEAVES, STAYS, PathEnd


def advise_on_question(
    judged: JudgedQuestion,
    followed: FollowedMessage | None,
    read_facts: Callable[[], RemedyFacts],
    status_text: StatusText | None,
    *,
    has_exports: bool,
) -> tuple[Remedy, ...]:
    """Find the remedies where a message fails, and for reports of SQL Server (`add_reported_remedies`).

    ``followed`` is None for a message that stays on its instance.
    """
    paths = () if followed is None else followed.judged_paths
    if followed is None:
        remedies = find_question_remedies(judged, read_facts)
    else:
        remedies = find_path_remedies(judged, paths, read_facts)
    path = paths[0] if len(paths) == 1 else None
    return add_reported_remedies(remedies, judged, status_text, read_facts, path, has_exports=has_exports)


def find_question_remedies(judged: JudgedQuestion, read_facts: Callable[[], RemedyFacts]) -> tuple[Remedy, ...]:
    """Find the remedies for a message that stays or is dropped.

    The tuple is empty if the message is correctly on its way, or its dialog decides. Only otherwise are the facts
    read.
    """
    verdicts = judged.case.verdicts
    if not all(verdict.outcome in STAYS for verdict in verdicts):
        return ()
    estate, sent = AdviceEstate(read_facts()), _sent_of(judged)
    remedies = {remedy_of(estate.describe_stuck(sent, verdict)) for verdict in verdicts}
    return _allow(estate, remedies) if len(remedies) == 1 else ()


def find_path_remedies(
    judged: JudgedQuestion, paths: tuple[JudgedPath, ...], read_facts: Callable[[], RemedyFacts]
) -> tuple[Remedy, ...]:
    """Find the remedies for hops that fail or lead to unknown addresses, each once.

    The facts are read only if there are such hops.
    """
    if not any(path.failing_paths or path.unread_addresses for path in paths):
        return ()
    estate, sent = AdviceEstate(read_facts()), _sent_of(judged)
    remedies = (
        remedy
        for path in paths
        for remedy in (
            *find_remedies(path, sent, estate)[1],
            *find_wrong_ports(path.all_paths, sent, estate),
            *find_unaddressed(path, estate),
        )
    )
    return _allow(estate, remedies)


def add_reported_remedies(
    remedies: tuple[Remedy, ...],
    judged: JudgedQuestion,
    status_text: StatusText | None,
    read_facts: Callable[[], RemedyFacts],
    path: JudgedPath | None = None,
    *,
    has_exports: bool,
) -> tuple[Remedy, ...]:
    """Add the remedies for a status of SQL Server, or for a missing acknowledgement, to those of the routes.

    They come first if the message is on its way. ``path`` is the only path, if it was followed. Without exports,
    only a missing acknowledgement gets a remedy.
    """
    case, verdict = judged.case, judged.case.verdict
    if status_text is None or verdict is None or case.database is None:
        return remedies
    is_kept, path = verdict.outcome in STAYS, path if verdict.outcome in LEAVES else None
    is_failing = path is not None and bool(path.failing_paths)
    has_remedy = is_kept or is_failing
    is_silent = not has_remedy and status_text.is_silence(judged.question.row["enqueue_time"])
    if not (has_exports or is_silent):
        return remedies
    estate = AdviceEstate(read_facts())
    adviser = StatusAdviser(estate)
    result = MessageResult(judged.question.row, "", replace(case, status_text=status_text), judged.message)
    counted = adviser.answer([result], is_failing=is_failing, has_remedy=has_remedy)
    answers = [remedy for remedy, _ in counted]
    if not answers and is_silent:
        reported = adviser.describe(result, StatusTrouble.UNREAD, status_text)
        answers = find_silence_remedies(path, _sent_of(judged), _describe_silence(judged, reported, path))
    ordered = (*remedies, *answers) if is_kept else (*answers, *remedies)
    return _allow(estate, sorted(ordered, key=lambda remedy: remedy.discards_messages))


def _describe_silence(judged: JudgedQuestion, reported: ReportedStatus, path: JudgedPath | None) -> SilentMessages:
    message, arrival = judged.message, None if path is None else find_arrival(path)
    is_lost = path is None or path.end is PathEnd.NOT_KNOWN
    return SilentMessages(
        estate=reported.estate,
        sender=RemedyPlace(reported.instance, reported.scope if reported.address else reported.database),
        service=message.service,
        target=reported.find_target() if is_lost and arrival is None else arrival,
        conversations=() if message.conversation_id is None else (message.conversation_id,),
        newest=judged.question.row["enqueue_time"],
        route=reported.route,
        address=reported.address,
        from_service=reported.from_service,
    )


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


def _sent_of(judged: JudgedQuestion) -> SentMessage:
    return SentMessage.of_case(judged.case, judged.message.t)
