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
_ALTER = "`ALTER ROUTE … WITH"
_CREATE = "`CREATE ROUTE … WITH"
_ENABLE = "`ALTER DATABASE … SET ENABLE_BROKER WITH NO_WAIT`"

# The order of the cases, here and nowhere else: of those for a reason the first that is at hand counts.
CASES = (
    RemedyCase(
        _LOST,
        "the service is that of a client of query notifications, or of event notifications",
        "`END CONVERSATION … WITH CLEANUP`, for event notifications as a comment; `CREATE SERVICE` never",
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
        "a route spells the service otherwise (case, blanks, slashes), leads on, and nothing known needs it so",
        f"{_ALTER} SERVICE_NAME = N'…'`",
        route_remedies.correct_spelling,
    ),
    RemedyCase(
        _LOST,
        "a route for the service has expired",
        f"`DROP ROUTE …` and {_CREATE} …` as it was, without a lifetime, in one transaction",
        route_remedies.renew_route,
    ),
    RemedyCase(
        _LOST,
        "a route names an old broker instance; the messages name that of a database which holds the service",
        f"{_ALTER} BROKER_INSTANCE = N'…'`",
        route_remedies.correct_route_id,
    ),
    RemedyCase(
        (Reason.NO_ROUTE, Reason.TRANSPORT_ADDRESS_INVALID, *_CAME_BACK),
        "the service is in this instance",
        f"{_CREATE} ADDRESS = N'LOCAL'`, or {_ALTER} ADDRESS = N'LOCAL'` of the route that leads in a circle or"
        " that names the service with another address",
        address_remedies.deliver_here,
    ),
    RemedyCase(
        (Reason.SERVICE_NOT_FOUND,),
        "a database here has the broker instance of the messages without the service, and so has one elsewhere"
        " that holds it",
        "a comment: `ALTER DATABASE … SET NEW_BROKER` or `DISABLE_BROKER` for the copy",
        broker_copies.part_from_holder,
    ),
    RemedyCase(
        (*_LOST, Reason.ROUTING_LOOP),
        "an acknowledgement does not come back to the instance that sent",
        f"{_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`, or {_ALTER} ADDRESS = N'…'` of a route that names the"
        " service; a comment where the address of the instance that sent is not known",
        address_remedies.lead_back,
    ),
    RemedyCase(
        (*_LOST, *_CAME_BACK),
        "other known instances hold the service, with the broker instance of the messages",
        f"{_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`, or {_ALTER} ADDRESS = N'…'` of a route that names it; a"
        " comment where there are several instances or the address is not known",
        address_remedies.lead_elsewhere,
    ),
    RemedyCase(
        (Reason.BROKER_INSTANCE_NOT_FOUND,),
        "a LOCAL route names an old broker instance, and one database here holds the service under another",
        f"{_ALTER} BROKER_INSTANCE = N'…'`; open dialogs that are bound to the old one have to be ended",
        route_remedies.renew_route_id,
    ),
    RemedyCase(
        _LOST,
        "a known service has this name in another spelling (case, blanks or slashes)",
        "words",
        service_remedies.name_spellings,
    ),
    RemedyCase(
        _NOT_FOUND,
        "SQL Server sends them for an event notification, and they are bound to a broker instance",
        "words: `DROP` and `CREATE EVENT NOTIFICATION`; a comment: `END CONVERSATION … WITH CLEANUP`",
        service_remedies.notify_anew,
    ),
    RemedyCase(
        (Reason.BROKER_INSTANCE_NOT_FOUND, Reason.NO_ROUTE),
        "the dialog is bound to a broker instance that no known database with the service has",
        "words: end the dialogs and begin new ones",
        service_remedies.begin_anew,
    ),
    RemedyCase(
        (Reason.SERVICE_NOT_FOUND,),
        "the database that the messages are bound to is in this instance, without the service",
        "a comment: `END CONVERSATION …`, and begin a new dialog",
        service_remedies.end_refused,
    ),
    RemedyCase(
        (Reason.FORWARDING_DISABLED,),
        "the estate shows that the msdb route leads to a wrong address: another port of a known machine, or an"
        " instance that neither holds the service nor routes on",
        f"{_ALTER} ADDRESS = N'…'` of that route; a comment where the right address is not known",
        address_remedies.correct_address,
    ),
    RemedyCase(
        (Reason.FORWARDING_DISABLED,),
        "else",
        "a comment: `ALTER ENDPOINT … FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED)`",
        service_remedies.enable_forwarding,
    ),
    RemedyCase(
        _NOT_FOUND,
        "a route for the service names another id, and no known database says which id is right",
        f"a comment: {_ALTER} BROKER_INSTANCE = N'…'`",
        route_remedies.compare_ids,
    ),
    RemedyCase(
        (*_LOST, Reason.ROUTING_LOOP),
        "else",
        f"a comment: {_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`, or {_ALTER} ADDRESS = N'…'`",
        address_remedies.find_address,
    ),
    RemedyCase(
        (Reason.ROUTE_REQUESTED,),
        "always",
        f"{_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`; a comment where no known address leads to the service",
        address_remedies.answer_request,
    ),
    RemedyCase(
        (Reason.LOCAL_SERVICE,),
        "the routing is right",
        "a comment: the query for the target queue, and `ALTER QUEUE … WITH STATUS = ON`",
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
