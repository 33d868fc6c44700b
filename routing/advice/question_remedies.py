"""Find the remedies for one message of the tables: for its own hop, or for failed hops of its path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from routing.advice.path_remedies import find_arrival, find_remedies, find_silence_remedies, find_wrong_ports
from routing.advice.remedies import remedy_of
from routing.advice.remedy import Remedy, RemedyPlace
from routing.advice.server_remedies import complete_addresses
from routing.advice.silence_remedies import SilentMessages
from routing.advice.status_advice import answer_status
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble, find_trouble
from routing.advice.stuck_messages import AdviceEstate, SentMessage
from routing.cases.background import StatusText
from routing.cases.evidence import FileEvidence
from routing.cases.judged_questions import JudgedQuestion, RemedyFacts
from routing.rules.judging import JudgedPath
from routing.terms import LEAVES, STAYS


def find_question_remedies(judged: JudgedQuestion, read_facts: Callable[[], RemedyFacts]) -> tuple[Remedy, ...]:
    """Find the remedies for a message that stays or is dropped.

    The tuple is empty if the message is correctly on its way, or its dialog decides. Only otherwise are the facts
    read.
    """
    verdicts = [verdict for _, verdict in judged.possible] if judged.is_undecided else [judged.verdict]
    if not all(verdict.outcome in STAYS for verdict in verdicts):
        return ()
    estate, sent = AdviceEstate(read_facts()), _sent_of(judged)
    remedies = {remedy_of(estate.describe_stuck(sent, verdict)) for verdict in verdicts}
    return tuple(remedies) if len(remedies) == 1 else ()


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
        for remedy in (*find_remedies(path, sent, estate)[1], *find_wrong_ports(path.all_paths, sent, estate))
    )
    return tuple(dict.fromkeys(remedies))


def find_reported_remedies(
    judged: JudgedQuestion,
    status_text: StatusText | None,
    evidence: FileEvidence,
    read_facts: Callable[[], RemedyFacts],
    path: JudgedPath | None = None,
) -> tuple[Remedy, ...]:
    """Find the remedies for a status of SQL Server, or for messages without an acknowledgement, by exports.

    The tuple is empty if no status is known, or if the routes keep the message. ``path`` is the only path, if it
    was followed.
    """
    message, verdict = judged.message, judged.verdict
    if status_text is None or judged.is_undecided or verdict.outcome in STAYS or message.database is None:
        return ()
    estate = AdviceEstate(read_facts())
    trouble = find_trouble(status_text.number, status_text.text)
    reported = ReportedStatus(
        trouble=trouble or StatusTrouble.UNREAD,
        status_text=status_text,
        estate=estate,
        evidence=evidence,
        instance=message.instance,
        database=message.database,
        service=message.service,
        broker=verdict.broker_instance,
        verdict=verdict,
        supposed=verdict,
    )
    if trouble is not None:
        return (answer_status(reported),)
    if not status_text.is_silence(judged.question.row["enqueue_time"]):
        return ()
    path = path if verdict.outcome in LEAVES else None
    silent = SilentMessages(
        estate=estate,
        sender=RemedyPlace(message.instance, reported.scope if reported.address else message.database),
        service=message.service,
        target=reported.find_target() if path is None else find_arrival(path),
        conversations=() if message.conversation_id is None else (message.conversation_id,),
        newest=judged.question.row["enqueue_time"],
        route=verdict.route_name,
        address=reported.address,
    )
    return tuple(find_silence_remedies(path, _sent_of(judged), silent, verdict))


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
    message = judged.message
    from_service = judged.question.row["from_service_name"] or None
    return SentMessage(message.instance, message.database, message.service, from_service, message.t)
