"""Choose the remedy for a reason. In the table of cases, the first match wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routing.advice import address_remedies, broker_copies, route_remedies, service_remedies
from routing.advice.remedy import Remedy
from routing.advice.stuck_messages import StuckMessage
from routing.rules.observed import SENDING
from routing.terms import Reason


def remedy_of(stuck: StuckMessage) -> Remedy:
    """Find the remedy for messages with one result."""
    for find_remedy in _FINDERS[stuck.verdict.reason]:
        remedy = find_remedy(stuck)
        if remedy is not None:
            return remedy
    raise AssertionError(f"no case for {stuck.verdict.reason}")


_NOT_FOUND = (Reason.NO_ROUTE, Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)
_LOST = (*_NOT_FOUND, Reason.TRANSPORT_ADDRESS_INVALID)
_CAME_BACK = (Reason.FORWARDING_DISABLED, Reason.ROUTING_LOOP)
# The order of the cases, here and nowhere else: of those for a reason the first that is at hand counts.
CASES: Sequence[tuple[tuple[Reason, ...], Callable[[StuckMessage], Remedy | None]]] = (
    (_LOST, service_remedies.end_dead),
    ((Reason.SCOPE_BROKER_DISABLED,), broker_copies.enable_scope),
    ((Reason.BROKER_DISABLED,), broker_copies.enable_target),
    (_LOST, route_remedies.correct_invalid),
    (_LOST, route_remedies.correct_spelling),
    (_LOST, route_remedies.renew_route),
    (_LOST, route_remedies.correct_route_id),
    ((Reason.NO_ROUTE, Reason.TRANSPORT_ADDRESS_INVALID, *_CAME_BACK), address_remedies.deliver_here),
    ((Reason.SERVICE_NOT_FOUND,), broker_copies.part_from_holder),
    ((*_LOST, Reason.ROUTING_LOOP), address_remedies.lead_back),
    ((*_LOST, *_CAME_BACK), address_remedies.lead_elsewhere),
    ((Reason.BROKER_INSTANCE_NOT_FOUND,), route_remedies.renew_route_id),
    (_LOST, service_remedies.name_spellings),
    (_NOT_FOUND, service_remedies.notify_anew),
    ((Reason.BROKER_INSTANCE_NOT_FOUND, Reason.NO_ROUTE), service_remedies.begin_anew),
    ((Reason.SERVICE_NOT_FOUND,), service_remedies.end_refused),
    ((Reason.FORWARDING_DISABLED,), address_remedies.correct_address),
    ((Reason.FORWARDING_DISABLED,), service_remedies.enable_forwarding),
    (_NOT_FOUND, route_remedies.compare_ids),
    ((Reason.SERVICE_NOT_FOUND,), service_remedies.open_closed),
    ((*_LOST, Reason.ROUTING_LOOP), address_remedies.find_address),
    ((Reason.ROUTE_REQUESTED,), address_remedies.answer_request),
    ((Reason.LOCAL_SERVICE,), service_remedies.look_at_queue),
    ((Reason.BROKER_DISABLED, *SENDING, Reason.HOP_LIMIT, Reason.DIALOG_EXPIRED), service_remedies.say),
)
_FINDERS = {reason: [find_remedy for reasons, find_remedy in CASES if reason in reasons] for reason in Reason}
