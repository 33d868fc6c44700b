"""Advise on a status that SQL Server reports, with the names of the estate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, starmap

from routing.advice import connection_advice, contract_remedies, dialog_remedies, owner_advice
from routing.advice.address_remedies import restore_default
from routing.advice.broker_copies import part_twins
from routing.advice.login_remedies import find_refusal
from routing.advice.path_remedies import by_route, find_silence_remedies
from routing.advice.remedies import remedy_of
from routing.advice.remedy import UNKNOWN_INSTANCE, Confidence, Remedy, RemedyPlace
from routing.advice.send_remedies import grant_access, grant_send
from routing.advice.server_remedies import follow_primary, lead_from_loopback
from routing.advice.service_remedies import end_conversations, end_dead_dialog
from routing.advice.silence_remedies import describe_silence, find_outdated, has_arrived, with_rival_routes
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import CONNECTION_TROUBLES, StatusTrouble, find_trouble
from routing.advice.stuck_messages import AdviceEstate
from routing.cases.background import StatusText
from routing.cases.message_cases import CheckedEstate, MessageCase, MessageResult
from routing.groups import group_pairs
from routing.plan.verdicts import MessageJudge, may_ask
from routing.render.phrases import named
from routing.rules.observed import BY_REQUEST, NumberAgreement, NumberTopic, topic_of
from routing.rules.resolving import NO_DIALOG, RoutedMessage, Verdict
from routing.terms import ON_ITS_WAY, Outcome, Reason

LAST_ATTEMPT = "The status is of the last attempt: by these exports a route takes the messages now."
TRIES_AGAIN = (
    "Wait, and export the queue again: SQL Server tries again by itself, after 4, 8, 16, 32 and then every 64"
    " seconds."
)
_OVER = (StatusTrouble.SERVICE_GONE, StatusTrouble.CONVERSATION_ENDED)
_OF_ONE_DIALOG = (StatusTrouble.LIFETIME_OVER, StatusTrouble.KEY_LOST, StatusTrouble.RESTORED)
"""What says nothing of the client at the other end."""
_SAID_THERE = (
    *(StatusTrouble.TARGET_FULL, StatusTrouble.TARGET_DAMAGED, StatusTrouble.NO_MEMORY, StatusTrouble.LICENSE),
    StatusTrouble.TARGET_EXCEPTION,
)
_NOT_FOUND = (
    *(StatusTrouble.NO_ROUTE, StatusTrouble.SERVICE_NOT_HERE, StatusTrouble.BROKER_NOT_HERE),
    *(StatusTrouble.NOT_TAKEN_THERE, StatusTrouble.UNREAD),
)
_AT_TARGET = (
    *(StatusTrouble.OWNER_NOT_VALID, StatusTrouble.MASTER_KEY_CLOSED, StatusTrouble.QUEUE_OFF),
    *(StatusTrouble.TARGET_BROKER_OFF, StatusTrouble.TARGET_DATABASE_CLOSED, StatusTrouble.TARGET_EXCEPTION),
    *(StatusTrouble.DATABASE_NOT_OPENED, StatusTrouble.ENDED_BY_TRIGGER, StatusTrouble.NOT_TAKEN_THERE),
)
"""The troubles of a database that a secondary replica may have instead of the primary."""
_AT_ADDRESS = (*CONNECTION_TROUBLES, StatusTrouble.NOT_TAKEN_THERE)
_SHOWN_BY_PATHS = (StatusTrouble.NOT_TAKEN_THERE, StatusTrouble.ID_DIFFERS, StatusTrouble.SENT_AGAIN)
"""The troubles that a failing path shows as well."""
EXPORT_AGAIN = (
    "If the status stays, SQL Server routes differently than these exports say: export the routes of the sending"
    " database and of msdb, sys.databases and sys.services again, all at one time, and compare."
)


def answer_status(status: ReportedStatus) -> Remedy:
    """Return the remedy for a status.

    If a route takes the messages now but the status disagrees, first say that SQL Server tries again.
    """
    if status.trouble in _OVER or (status.trouble in _NOT_FOUND and not status.case.is_on_its_way):
        dead = end_dead_dialog(status.server, status.place, status.service)
        if dead is not None:
            return dead
    rerouted = _correct_destination(status)
    if rerouted is not None:
        return rerouted
    remedy = _answer_by_routes(status)
    is_explained = status.trouble is StatusTrouble.PASSING and remedy.statement is not None
    if is_explained or not says_otherwise(status):
        return remedy
    # What these exports have already is not to be made once more.
    return replace(
        remedy,
        cause=LAST_ATTEMPT,
        actions=(TRIES_AGAIN, EXPORT_AGAIN, *remedy.actions),
        statement=None if remedy.is_complete else remedy.statement,
        is_complete=False,
        confidence=Confidence.TO_BE_CHECKED,
    )


def _answer_by_routes(status: ReportedStatus) -> Remedy:
    """Return the answer, or that for another route if SQL Server chooses between several and a statement helps."""
    answer = ANSWERS.get(status.trouble, connection_advice.say)
    remedy, verdict = _say_where(status, answer(status)), status.supposed
    if remedy.is_complete or verdict is None or status.trouble not in CONNECTION_TROUBLES:
        return remedy
    others = (replace(status, supposed=by_route(verdict, route.name)) for route in verdict.alternative_routes)
    return next((other for other in map(answer, others) if other.is_complete), remedy)


def _say_where(status: ReportedStatus, remedy: Remedy) -> Remedy:
    """Return a remedy that says so if its server or its database is not known."""
    if remedy.instance == UNKNOWN_INSTANCE:
        remedy = replace(remedy, unknown_server=_describe_server(status))
    if remedy.statement is None or remedy.place.database is not None:
        return remedy
    note = (
        f"The statements are for the database that holds {named(status.service)}, which these exports do not show."
    )
    return replace(remedy.as_comment(), actions=(*remedy.actions, note))


def _describe_server(status: ReportedStatus) -> str:
    if status.trouble not in _AT_ADDRESS:
        return f"the server that holds {named(status.service)}"
    return f"the server at {' or '.join(map(named, status.addresses)) or 'the address of the route'}"


def _correct_destination(status: ReportedStatus) -> Remedy | None:
    """Advise on a route to an instance that cannot take the messages, or return None for any other."""
    if status.supposed is None or status.supposed.outcome != Outcome.SENT:
        return None
    sends = status.trouble in _NOT_FOUND or status.trouble in CONNECTION_TROUBLES
    rerouted = (restore_default(status.on_route) or lead_from_loopback(status.on_route)) if sends else None
    return rerouted or (follow_primary(status) if status.trouble in _AT_TARGET else None)


def says_otherwise(status: ReportedStatus) -> bool:
    """Return True if the messages are on their way by the rules, but SQL Server kept them back at the time."""
    is_of_routes = topic_of(status.case.status_text.number) is NumberTopic.ROUTING
    return status.case.is_on_its_way and (is_of_routes or status.case.is_contradicted)


def _needs_answer(case: MessageCase, *, has_remedy: bool) -> bool:
    """Return True if a status adds something about routes to the verdict, or to the remedy without a verdict."""
    status_text, verdict, compared = case.status_text, case.verdict, case.compared
    # Errors about requests to the BrokerConfiguration service are not about the existing routes.
    is_of_routes = topic_of(status_text.number) is NumberTopic.ROUTING and status_text.number not in BY_REQUEST
    if verdict is None or compared is None:
        return not (is_of_routes and has_remedy)
    if case.is_on_its_way or verdict.reason is Reason.DIALOG_EXPIRED:
        # The status shows why an expired dialog was not delivered in time.
        return True
    if status_text.number in BY_REQUEST:
        return compared.agreement is not NumberAgreement.AGREES
    return not is_of_routes and compared.agreement in (NumberAgreement.CONTRADICTS, NumberAgreement.SAYS_NOTHING)


def _part_twins(status: ReportedStatus) -> Remedy:
    words = status.entry.cause, status.entry.actions
    return part_twins(status.estate, status.sender_instance, status.database, *words)


def _end_dialogs(status: ReportedStatus) -> Remedy:
    words, cleanup = (status.entry.cause, status.entry.actions), status.trouble is StatusTrouble.RESTORED
    return end_conversations(status.server, status.place, status.service, *words, cleanup=cleanup)


ANSWERS: Mapping[StatusTrouble, Callable[[ReportedStatus], Remedy]] = {
    StatusTrouble.SENDER_BROKER_OFF: connection_advice.enable_own_broker,
    StatusTrouble.MSDB_BROKER_OFF: connection_advice.enable_own_broker,
    StatusTrouble.PASSING: connection_advice.wait,
    StatusTrouble.TARGET_DATABASE_CLOSED: connection_advice.open_target,
    StatusTrouble.NOT_TAKEN_THERE: connection_advice.look_at_target,
    StatusTrouble.NO_ENDPOINT: connection_advice.create_endpoint,
    StatusTrouble.BAD_ADDRESS: connection_advice.correct_address,
    StatusTrouble.NAME_NOT_RESOLVED: connection_advice.mend_connection,
    StatusTrouble.NETWORK_FAILS: connection_advice.mend_connection,
    StatusTrouble.NOTHING_LISTENS: connection_advice.start_listening,
    StatusTrouble.CLOSED_BY_OTHER_SIDE: connection_advice.mend_endpoints,
    StatusTrouble.HANDSHAKE_FAILED: connection_advice.mend_endpoints,
    StatusTrouble.NO_CONNECT: connection_advice.grant_connect,
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: connection_advice.renew_certificate,
    StatusTrouble.CERTIFICATE_EXPIRED: connection_advice.renew_certificate,
    StatusTrouble.NO_DIALOG_CERTIFICATE: dialog_remedies.renew_dialog_certificate,
    StatusTrouble.NO_ENDPOINT_CERTIFICATE: connection_advice.renew_endpoint_certificate,
    StatusTrouble.NO_BINDING: dialog_remedies.bind_user,
    StatusTrouble.OWNER_NOT_VALID: owner_advice.give_owner,
    StatusTrouble.USER_NOT_VALID: owner_advice.mend_sender,
    StatusTrouble.NAME_NOT_FOUND: owner_advice.mend_sender,
    StatusTrouble.NOT_TRUSTED: owner_advice.mend_sender,
    StatusTrouble.DATABASE_NOT_OPENED: owner_advice.open_named_database,
    StatusTrouble.ENDED_BY_TRIGGER: owner_advice.find_trigger,
    StatusTrouble.MASTER_KEY_CLOSED: owner_advice.open_master_key,
    StatusTrouble.NO_SESSION_KEY: owner_advice.open_master_key,
    StatusTrouble.NO_PERMISSION: grant_send,
    StatusTrouble.NO_ACCESS: grant_access,
    StatusTrouble.QUEUE_OFF: connection_advice.turn_queue_on,
    StatusTrouble.TARGET_BROKER_OFF: connection_advice.enable_target_broker,
    **dict.fromkeys(_SAID_THERE, connection_advice.say_at_target),
    StatusTrouble.CONTRACT_NOT_TAKEN: contract_remedies.take_contract,
    StatusTrouble.MESSAGE_REFUSED: contract_remedies.correct_body,
    StatusTrouble.ID_DIFFERS: connection_advice.renew_id,
    StatusTrouble.DOUBLED_ID: _part_twins,
    **dict.fromkeys((*_OVER, *_OF_ONE_DIALOG), _end_dialogs),
    StatusTrouble.UNREAD: connection_advice.read_views,
}
"""The builders of remedies for troubles where the words of the catalogue are not enough."""


@dataclass(frozen=True)
class CountedRemedy:
    """A remedy and its number of messages.

    ``is_of_routes`` is True if the rules require the remedy, and False if a status of SQL Server does.
    """

    remedy: Remedy
    count: int
    is_of_routes: bool = False

    def with_remedy(self, remedy: Remedy) -> CountedRemedy:
        """Return the same count of another remedy."""
        return self if remedy is self.remedy else replace(self, remedy=remedy)


class StatusAdviser:
    """Answers the statuses of messages of an estate. ``checked`` is only needed for messages without a verdict."""

    def __init__(self, estate: AdviceEstate, checked: CheckedEstate | None = None) -> None:
        self._checked, self._estate = checked, estate

    @cached_property
    def _judge(self) -> MessageJudge:
        return MessageJudge(self._estate.network, is_exact=True)

    def advise(
        self, results: Sequence[MessageResult], on_path: Sequence[Remedy], *, has_remedy: bool
    ) -> list[CountedRemedy]:
        """Return the remedies for messages of one result, with those for their statuses or their silence.

        ``on_path`` are those of their routes. They come first if routing keeps the messages. ``has_remedy`` is
        True if they explain that the messages do not arrive.
        """
        case = results[0].case
        answers = chain(self._make_endpoint(results), self._answer_statuses(results, has_remedy=has_remedy))
        shown = {remedy.shown for remedy in on_path}
        reported = [answer for answer in answers if answer.remedy.shown not in shown]
        reported, on_path = _unite(reported, on_path, len(results))
        silent = [result for result in results if case.is_on_its_way and result.is_unacknowledged]
        if silent and not reported and not has_remedy:
            reported = [CountedRemedy(remedy, len(silent)) for remedy in self._answer_silence(silent)]
        of_routes = [CountedRemedy(remedy, len(results), is_of_routes=True) for remedy in on_path]
        ordered = [*reported, *of_routes] if case.is_on_its_way else [*of_routes, *reported]
        return sorted(ordered, key=lambda counted: counted.remedy.discards_messages)

    def _make_endpoint(self, results: Sequence[MessageResult]) -> Iterator[CountedRemedy]:
        """Yield the advice on an endpoint for a sender without one, if a route leads to another instance."""
        first = results[0]
        if first.case.verdict is None or first.case.verdict.outcome != Outcome.SENT:
            return
        status = self._describe_unsaid(first, StatusTrouble.NO_ENDPOINT)
        if not status.has_no_endpoint(status.instance):
            return
        texts = {result.case.status_text for result in results}
        # SQL Server may say so itself.
        if all(find_trouble(text.number, text.text) is not StatusTrouble.NO_ENDPOINT for text in texts):
            yield CountedRemedy(answer_status(status), len(results))

    def _answer_statuses(self, results: Sequence[MessageResult], *, has_remedy: bool) -> Iterator[CountedRemedy]:
        """Yield the remedies for each status. Statuses that contradict the routing come last."""
        first, dead = results[0].case, None
        if not has_remedy and first.verdict is None:
            place = RemedyPlace(first.instance, first.database)
            dead = end_dead_dialog(self._estate.server, place, first.service)
        counts: Counter[Remedy] = Counter()
        contradicting: Counter[Remedy] = Counter()
        # The remedy may depend on the id that a message is bound to.
        for alike in _by_status_and_broker(results):
            result, status_text = alike[0], alike[0].case.status_text
            trouble = find_trouble(status_text.number, status_text.text)
            if trouble is None and dead is not None:
                counts[dead] += len(alike)
            if trouble is None or not _needs_answer(result.case, has_remedy=has_remedy):
                continue
            if result.case.is_failing and trouble in _SHOWN_BY_PATHS:
                continue
            lacking = self._mend_target(result.case) if trouble is StatusTrouble.NOT_TAKEN_THERE else None
            of = contradicting if result.case.is_contradicted else counts
            of[lacking or answer_status(self._describe(result, trouble))] += len(alike)
        yield from starmap(CountedRemedy, [*counts.most_common(), *contradicting.most_common()])

    def _mend_target(self, sent: MessageCase) -> Remedy | None:
        supposed, checked = _in_common(sent.possible), self._checked
        if sent.verdict is not None or checked is None or supposed is None or supposed.address is None:
            return None
        owners = self._estate.network.owners(supposed.address, checked.instances[sent.instance])
        if len(owners) != 1 or owners[0].is_only_addressed or may_ask(owners[0], None):
            return None
        name = owners[0].name
        arriving = RoutedMessage("", None, True, sent.t, name, None, sent.service, supposed.broker_instance)
        verdict = self._judge.verdict(arriving, NO_DIALOG)
        if verdict.outcome in ON_ITS_WAY or checked.knowledge.of_verdict(name, verdict):
            return None
        case = replace(sent, instance=name, database=None, from_service=None)
        return remedy_of(self._estate.describe_stuck(case, verdict))

    def _answer_silence(self, results: Sequence[MessageResult]) -> list[Remedy]:
        status = self._describe_unsaid(results[0], StatusTrouble.CLOSED_BY_OTHER_SIDE)
        silent = describe_silence(results, status)
        remedies = [with_rival_routes(silent, remedy) for remedy in find_silence_remedies(silent)]
        # Remedies with a risk are those for copies of a database.
        is_explained = any(remedy.risk or remedy.confidence is not Confidence.TO_BE_CHECKED for remedy in remedies)
        if is_explained or has_arrived(silent):
            return remedies
        # An error log from before the messages does not say what became of them.
        path = silent.case.path
        is_old = path is not None and status.find_peer_name() in find_outdated(path)
        refusal = None if is_old else find_refusal(status)
        return remedies if refusal is None else [refusal.with_confidence_at_most(Confidence.TO_BE_CHECKED)]

    def _describe_unsaid(self, result: MessageResult, trouble: StatusTrouble) -> ReportedStatus:
        blank = StatusText(result.case.status_text.observed_at, None, None)
        return self._describe(result._replace(case=replace(result.case, status_text=blank)), trouble)

    def _describe(self, result: MessageResult, trouble: StatusTrouble) -> ReportedStatus:
        """Return the facts behind a trouble of a message."""
        case, verdict = result.case, result.case.verdict
        broker = result.row["to_broker_instance"] if verdict is None else verdict.broker_instance
        supposed = _in_common(case.possible) if verdict is None else verdict
        return ReportedStatus(trouble, case, self._estate, broker, supposed)


def _unite(
    reported: Sequence[CountedRemedy], on_path: Sequence[Remedy], messages: int
) -> tuple[list[CountedRemedy], list[Remedy]]:
    """Leave out remedies of the routes without a statement if a status has one for the same cause.

    It is then for all messages.
    """
    answered = {answer.remedy.cause for answer in reported}
    left_out = {remedy.cause for remedy in on_path if remedy.statement is None} & answered
    for_all = [
        replace(answer, count=messages) if answer.remedy.cause in left_out else answer for answer in reported
    ]
    return for_all, [remedy for remedy in on_path if remedy.statement is not None or remedy.cause not in left_out]


def _by_status_and_broker(results: Iterable[MessageResult]) -> Iterable[list[MessageResult]]:
    verdicts = ((result, result.case.verdict) for result in results)
    brokers = ((result, None if verdict is None else verdict.broker_instance) for result, verdict in verdicts)
    return group_pairs(((result.case.status_text, broker), result) for result, broker in brokers).values()


def _in_common(possible: Sequence[Verdict]) -> Verdict | None:
    """Return one of several verdicts if all lead to one place by one route, otherwise None."""
    places = {
        (verdict.outcome, verdict.route_name, verdict.address, verdict.destination_database)
        for verdict in possible
    }
    return possible[0] if len(places) == 1 else None
