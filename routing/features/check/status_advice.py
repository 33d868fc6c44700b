"""What to do about a status that SQL Server reports, with the names of the estate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from routing.features.check import connection_advice, target_advice
from routing.features.check.dialog_advice import end_conversations, end_dead_dialog
from routing.features.check.message_results import ON_ITS_WAY
from routing.features.check.serving import tell_twins_apart
from routing.features.check.status_facts import ReportedStatus
from routing.features.check.stuck_groups import MessageRemedy, PlacedRemedy
from routing.features.explain.background import StatusText
from routing.features.status_meanings import WORDS, StatusTrouble
from routing.rules.observed import BY_REQUEST, NumberAgreement, NumberTopic, topic_of
from routing.rules.resolving import Verdict
from routing.terms import MSDB

TRIES_AGAIN = (
    "A status is of the last attempt: by these exports a route takes the messages now, and SQL Server tries again"
    " by itself, after 4, 8, 16, 32 and then every 64 seconds. Export the queue once more."
)
_OVER = (StatusTrouble.SERVICE_GONE, StatusTrouble.CONVERSATION_ENDED)
_NOT_FOUND = (
    *(StatusTrouble.NO_ROUTE, StatusTrouble.SERVICE_NOT_HERE, StatusTrouble.BROKER_NOT_HERE),
    *(StatusTrouble.NOT_TAKEN_THERE, StatusTrouble.UNREAD),
)
EXPORT_AGAIN = (
    "Where the status stays, SQL Server routes otherwise than these exports say: export the routes of the sending"
    " database and of msdb, sys.databases and sys.services again, all at one time, and compare."
)


def answer_status(status: ReportedStatus) -> PlacedRemedy:
    """Return the remedy for a status.

    Where a route takes the messages now and the status says otherwise, first that SQL Server tries again.
    """
    if status.trouble in _OVER or (status.trouble in _NOT_FOUND and not _is_on_its_way(status.verdict)):
        dead = end_dead_dialog(status.database, status.service)
        if dead is not None:
            return PlacedRemedy(status.instance, dead)
    answer = ANSWERS.get(status.trouble, _say)(status)
    if not says_otherwise(status):
        return answer
    remedy = answer.remedy
    # What these exports have already is not to be made once more.
    statement = None if remedy.is_complete else remedy.statement
    words = f"{TRIES_AGAIN} {EXPORT_AGAIN} {remedy.words}"
    return answer._replace(remedy=replace(remedy, words=words, statement=statement, is_complete=False))


def says_otherwise(status: ReportedStatus) -> bool:
    """Return True if the messages are on their way by the rules, and SQL Server kept them from it then."""
    verdict = status.verdict
    if verdict is None or not _is_on_its_way(verdict):
        return False
    compared = status.status_text.compared(verdict.reason, in_msdb=status.scope == MSDB)
    return (
        topic_of(status.status_text.number) is NumberTopic.ROUTING
        or compared.agreement is NumberAgreement.CONTRADICTS
    )


def needs_answer(verdict: Verdict | None, status_text: StatusText, scope: str, *, has_remedy: bool) -> bool:
    """Return True if a status says more than a verdict, or where there is none the remedy, does about routes."""
    if status_text.text is None:
        return False
    # What is asked of the BrokerConfiguration service is no question of the routes that are there.
    is_of_routes = topic_of(status_text.number) is NumberTopic.ROUTING and status_text.number not in BY_REQUEST
    if verdict is None:
        return not (is_of_routes and has_remedy)
    if _is_on_its_way(verdict):
        return True
    agreement = status_text.compared(verdict.reason, in_msdb=scope == MSDB).agreement
    if status_text.number in BY_REQUEST:
        return agreement is not NumberAgreement.AGREES
    return not is_of_routes and agreement in (NumberAgreement.CONTRADICTS, NumberAgreement.SAYS_NOTHING)


def _is_on_its_way(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.outcome in ON_ITS_WAY


def _say(status: ReportedStatus) -> PlacedRemedy:
    return PlacedRemedy(status.instance, MessageRemedy(WORDS[status.trouble]))


def _part_twins(status: ReportedStatus) -> PlacedRemedy:
    """Advise which of several databases with one broker id gets another, as far as the exports tell."""
    statement = tell_twins_apart(status.here, status.database)
    return PlacedRemedy(status.instance, MessageRemedy(WORDS[status.trouble], statement))


def _end_dialogs(status: ReportedStatus) -> PlacedRemedy:
    words = WORDS[status.trouble]
    return PlacedRemedy(status.instance, end_conversations(words, status.database, status.service))


ANSWERS: Mapping[StatusTrouble, Callable[[ReportedStatus], PlacedRemedy]] = {
    StatusTrouble.SENDER_BROKER_OFF: target_advice.enable_own_broker,
    StatusTrouble.MSDB_BROKER_OFF: target_advice.enable_msdb_broker,
    StatusTrouble.NOT_TAKEN_THERE: target_advice.look_at_target,
    StatusTrouble.NO_ENDPOINT: connection_advice.create_endpoint,
    StatusTrouble.NAME_NOT_RESOLVED: connection_advice.mend_connection,
    StatusTrouble.NOTHING_LISTENS: connection_advice.start_listening,
    StatusTrouble.CLOSED_BY_OTHER_SIDE: connection_advice.mend_endpoints,
    StatusTrouble.NETWORK_FAILS: connection_advice.mend_connection,
    StatusTrouble.HANDSHAKE_FAILED: connection_advice.mend_endpoints,
    StatusTrouble.NO_CONNECT: connection_advice.mend_endpoints,
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: connection_advice.renew_certificate,
    StatusTrouble.CERTIFICATE_EXPIRED: connection_advice.renew_certificate,
    StatusTrouble.NO_DIALOG_CERTIFICATE: connection_advice.renew_dialog_certificate,
    StatusTrouble.NO_ENDPOINT_CERTIFICATE: connection_advice.renew_endpoint_certificate,
    StatusTrouble.NO_BINDING: connection_advice.bind_user,
    StatusTrouble.OWNER_NOT_VALID: target_advice.give_owner,
    StatusTrouble.MASTER_KEY_CLOSED: target_advice.open_master_key,
    StatusTrouble.NO_SESSION_KEY: target_advice.make_master_key,
    StatusTrouble.NO_PERMISSION: target_advice.grant_send,
    StatusTrouble.QUEUE_OFF: target_advice.turn_queue_on,
    StatusTrouble.TARGET_BROKER_OFF: target_advice.enable_target_broker,
    StatusTrouble.DOUBLED_ID: _part_twins,
    StatusTrouble.SERVICE_GONE: _end_dialogs,
    StatusTrouble.CONVERSATION_ENDED: _end_dialogs,
    StatusTrouble.RESTORED: _end_dialogs,
}
"""What is more than words."""
