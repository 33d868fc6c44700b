"""Choose the remedy for a reason. In the table of cases, the first match wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from routing.advice import address_remedies, broker_copies, route_remedies, service_remedies
from routing.advice.remedy import Remedy
from routing.advice.stuck_messages import StuckMessage
from routing.terms import Reason


@dataclass(frozen=True)
class RemedyCase:
    """A row of the table: its advice applies to these reasons if its condition holds.

    The documentation prints ``when`` and ``then``. ``then`` includes the form of the statement.
    """

    reasons: tuple[Reason, ...]
    when: str
    then: str
    remedy: Callable[[StuckMessage], Remedy | None]


def remedy_of(stuck: StuckMessage) -> Remedy:
    """Find the remedy for messages with one result."""
    for case in CASES:
        if stuck.verdict.reason in case.reasons:
            remedy = case.remedy(stuck)
            if remedy is not None:
                return remedy
    raise AssertionError(f"no case for {stuck.verdict.reason}")


_NOT_FOUND = (Reason.NO_ROUTE, Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)
_LOST = (*_NOT_FOUND, Reason.TRANSPORT_ADDRESS_INVALID)
_CAME_BACK = (Reason.FORWARDING_DISABLED, Reason.ROUTING_LOOP)
_ENABLE = "`ALTER DATABASE … SET ENABLE_BROKER WITH NO_WAIT`"

# The order of the cases, here and nowhere else: of those for a reason the first that is at hand counts.
CASES = (
    RemedyCase(
        _LOST,
        "the service belongs to a client of query notifications, or to event notifications",
        "`END CONVERSATION … WITH CLEANUP`, for event notifications as a comment",
        service_remedies.end_dead,
    ),
    RemedyCase(
        (Reason.SCOPE_BROKER_DISABLED,),
        "the broker of the sender or of msdb is off",
        _ENABLE,
        broker_copies.enable_scope,
    ),
    RemedyCase(
        (Reason.BROKER_DISABLED,),
        "the broker of the database that holds the service is off",
        _ENABLE,
        broker_copies.enable_target,
    ),
    RemedyCase(
        _LOST,
        "a usable route spells the service differently, and nothing known needs that spelling",
        "`ALTER ROUTE … WITH SERVICE_NAME`",
        route_remedies.correct_spelling,
    ),
    RemedyCase(
        _LOST,
        "a route for the service has expired",
        "`DROP ROUTE` and `CREATE ROUTE` without a lifetime, in one transaction",
        route_remedies.renew_route,
    ),
    RemedyCase(
        _LOST,
        "a route names an old broker instance, the messages that of a database with the service",
        "`ALTER ROUTE … WITH BROKER_INSTANCE`",
        route_remedies.correct_route_id,
    ),
    RemedyCase(
        (Reason.NO_ROUTE, Reason.TRANSPORT_ADDRESS_INVALID, *_CAME_BACK),
        "the service is in this instance",
        "`CREATE ROUTE` with LOCAL, or `ALTER ROUTE` of a route that goes in a circle or names the service",
        address_remedies.deliver_here,
    ),
    RemedyCase(
        (Reason.SERVICE_NOT_FOUND,),
        "a database here has the messages' broker instance without the service, one elsewhere has both",
        "comment: `SET NEW_BROKER` or `DISABLE_BROKER` for the copy",
        broker_copies.part_from_holder,
    ),
    RemedyCase(
        (*_LOST, Reason.ROUTING_LOOP),
        "an acknowledgement does not return to its sender",
        "`CREATE ROUTE`, or `ALTER ROUTE … WITH ADDRESS`, a comment if the sender's address is unknown",
        address_remedies.lead_back,
    ),
    RemedyCase(
        (*_LOST, *_CAME_BACK),
        "other known instances hold the service, with the messages' broker instance",
        "`CREATE ROUTE`, or `ALTER ROUTE … WITH ADDRESS`, a comment for several instances or an unknown address",
        address_remedies.lead_elsewhere,
    ),
    RemedyCase(
        (Reason.BROKER_INSTANCE_NOT_FOUND,),
        "a LOCAL route names an old broker instance, and one database here has the service",
        "`ALTER ROUTE … WITH BROKER_INSTANCE`. End dialogs that are bound to the old one",
        route_remedies.renew_route_id,
    ),
    RemedyCase(
        _LOST,
        "a known service has this name in another spelling",
        "words",
        service_remedies.name_spellings,
    ),
    RemedyCase(
        _NOT_FOUND,
        "SQL Server sends them for an event notification",
        "`DROP` and `CREATE EVENT NOTIFICATION` in words, `END CONVERSATION … WITH CLEANUP` as a comment",
        service_remedies.notify_anew,
    ),
    RemedyCase(
        (Reason.BROKER_INSTANCE_NOT_FOUND, Reason.NO_ROUTE),
        "no known database with the service has the dialog's broker instance",
        "words: end the dialogs and begin new ones",
        service_remedies.begin_anew,
    ),
    RemedyCase(
        (Reason.SERVICE_NOT_FOUND,),
        "the messages are bound to a database here without the service",
        "comment: `END CONVERSATION`, and begin a new dialog",
        service_remedies.end_refused,
    ),
    RemedyCase(
        (Reason.FORWARDING_DISABLED,),
        "the msdb route has a wrong port or instance",
        "`ALTER ROUTE … WITH ADDRESS`, a comment if the right address is unknown",
        address_remedies.correct_address,
    ),
    RemedyCase(
        (Reason.FORWARDING_DISABLED,),
        "otherwise",
        "comment: `ALTER ENDPOINT … (MESSAGE_FORWARDING = ENABLED)`",
        service_remedies.enable_forwarding,
    ),
    RemedyCase(
        _NOT_FOUND,
        "a route for the service names another broker instance, and no known database has either",
        "comment: `ALTER ROUTE … WITH BROKER_INSTANCE`",
        route_remedies.compare_ids,
    ),
    RemedyCase(
        (Reason.SERVICE_NOT_FOUND,),
        "a database here is not online",
        "comment: `SET ONLINE` or `RESTORE`",
        service_remedies.open_closed,
    ),
    RemedyCase(
        (*_LOST, Reason.ROUTING_LOOP),
        "otherwise",
        "comment: `CREATE ROUTE`, or `ALTER ROUTE … WITH ADDRESS`",
        address_remedies.find_address,
    ),
    RemedyCase(
        (Reason.ROUTE_REQUESTED,),
        "always",
        "`CREATE ROUTE`, a comment if no known address leads to the service",
        address_remedies.answer_request,
    ),
    RemedyCase(
        (Reason.LOCAL_SERVICE,),
        "the routing is right",
        "comment: a query of the target queue, and `ALTER QUEUE … WITH STATUS = ON`",
        service_remedies.look_at_queue,
    ),
    RemedyCase(
        (
            Reason.BROKER_DISABLED,
            Reason.NETWORK_ADDRESS,
            Reason.MIRROR_ADDRESS,
            Reason.TRANSPORT_ADDRESS,
            Reason.HOP_LIMIT,
            Reason.DIALOG_EXPIRED,
        ),
        "always",
        "words",
        service_remedies.say,
    ),
)
