"""Choose the remedy for a reason: one table of cases, of which the first that applies counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from routing.advice import route_remedies, service_remedies
from routing.advice.remedy import MessageRemedy, PlacedRemedy
from routing.advice.route_remedies import lead_past, pin_anew
from routing.advice.service_remedies import part_copies
from routing.advice.stuck_groups import StuckGroup
from routing.cases.near_misses import NearMiss
from routing.rules.following import PathHop
from routing.rules.judging import JudgedPath, PathWay
from routing.rules.resolving import Verdict
from routing.terms import Ending, Outcome, PathEnd, Reason

__all__ = ["CASES", "MessageRemedy", "RemedyCase", "StuckGroup", "remedy_of"]


@dataclass(frozen=True)
class RemedyCase:
    """A row of the table: for these reasons, when this holds, this is said.

    ``when`` and ``then`` are what the documentation says of it; ``then`` holds the statement's form.
    """

    reasons: tuple[Reason, ...]
    when: str
    then: str
    remedy: Callable[[StuckGroup], MessageRemedy | None]


def remedy_of(stuck: StuckGroup) -> MessageRemedy:
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
        service_remedies.enable_scope,
    ),
    RemedyCase(
        (Reason.BROKER_DISABLED,),
        "the broker of the database that holds the service is off",
        _ENABLE,
        service_remedies.enable_target,
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
        f"{_CREATE} ADDRESS = N'LOCAL'`, or {_ALTER} ADDRESS = N'LOCAL'` of the route that leads in a circle",
        route_remedies.deliver_here,
    ),
    RemedyCase(
        (*_LOST, Reason.ROUTING_LOOP),
        "an acknowledgement does not come back to the instance that sent",
        f"{_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`, or {_ALTER} ADDRESS = N'…'` of a route that names the"
        " service; a comment where the address of the instance that sent is not known",
        route_remedies.lead_back,
    ),
    RemedyCase(
        (*_LOST, *_CAME_BACK),
        "other known instances hold the service, with the broker instance of the messages",
        f"{_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`, or {_ALTER} ADDRESS = N'…'` of a route that names it; a"
        " comment where there are several instances or the address is not known",
        route_remedies.lead_elsewhere,
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
        "words: end the dialogs and begin them anew",
        service_remedies.begin_anew,
    ),
    RemedyCase(
        (Reason.SERVICE_NOT_FOUND,),
        "the database that the messages are bound to is in this instance, without the service",
        "a comment: `END CONVERSATION … WITH CLEANUP`, and begin it anew",
        service_remedies.end_refused,
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
        route_remedies.find_address,
    ),
    RemedyCase(
        (Reason.ROUTE_REQUESTED,),
        "always",
        f"{_CREATE} SERVICE_NAME = N'…', ADDRESS = N'…'`; a comment where no known address leads to the service",
        route_remedies.answer_request,
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


# What to do where a message that left its instance, or its acknowledgement, gets stuck: on that instance.


_SILENCE = (
    "They were sent, and nothing acknowledges them. What becomes of them further on these exports do not tell:"
    " export what would tell it, and check follows them. Mostly it is one of these: no route back for the"
    " acknowledgement, a service name that is spelt otherwise, a forwarder that drops them, a broker or a queue"
    " that is off."
)


class HopToMend(NamedTuple):
    """A hop on a path at which messages get stuck, or from which they were led there.

    ``database`` is the one that sent, None for an arrival.
    """

    hop: PathHop
    database: str | None
    verdict: Verdict


AskStuck = Callable[[HopToMend, bool], StuckGroup]
"""What bears on the remedy at a hop, on the way back or not."""


def find_remedies(path: JudgedPath, sender: str, ask: AskStuck) -> tuple[list[NearMiss], list[PlacedRemedy]]:
    """Find near misses and remedies where messages of a path get stuck, each once.

    ``sender`` is the instance that sent them.
    """
    near: dict[NearMiss, None] = {}
    remedies: dict[PlacedRemedy, None] = {}
    for one in path.failing:
        for stuck, remedy in _remedies_of(one, sender, ask):
            near |= dict.fromkeys(stuck.near)
            remedies[remedy] = None
    return list(near), list(remedies)


def remedy_of_silence(path: JudgedPath, sender: str, ask: AskStuck) -> PlacedRemedy:
    """Return the remedy for messages that are not acknowledged although no hop is known to fail."""
    arriving = [one for one in path.there if one.hop_path.ending is Ending.DELIVERED]
    if path.end is PathEnd.DELIVERED and arriving:
        stuck = ask(_mended(arriving[0], len(arriving[0].hop_path.hops) - 1), False)
        remedy = remedy_of(stuck)
        words = f"They were sent, and every hop is right, there and back. {remedy.words}"
        return PlacedRemedy(stuck.instance, replace(remedy, words=words))
    return PlacedRemedy(sender, MessageRemedy(_SILENCE))


def _remedies_of(one: PathWay, sender: str, ask: AskStuck) -> Iterator[tuple[StuckGroup, PlacedRemedy]]:
    if one.hop_path.ending is Ending.DELIVERED:
        if one.is_return:
            stuck = ask(_mended(one, len(one.hop_path.hops) - 1), True)
            yield from ((stuck, remedy) for remedy in part_copies(stuck, one.hop_path.database or ""))
        # Else the acknowledgement is the one that fails.
        return
    number = _loop_to_break(one, ask) if one.hop_path.ending is Ending.LOOP else len(one.hop_path.hops) - 1
    stuck = ask(_mended(one, number), one.is_return)
    before = None if number == 0 else ask(_mended(one, number - 1), one.is_return)
    anew = None if before is None or one.is_return else pin_anew(before, stuck)
    if anew is not None and before is not None:
        yield stuck, PlacedRemedy(before.instance, anew)
        return
    remedy = remedy_of(stuck)
    # A dialog that is bound to an old id is ended, and begun anew, where it was begun.
    is_of_dialog = remedy.statement is None and _is_bound_to_old(stuck) and not one.is_return
    yield stuck, PlacedRemedy(sender if is_of_dialog else stuck.instance, remedy)
    past = None if before is None else lead_past(before, stuck)
    if past is not None and before is not None:
        yield stuck, PlacedRemedy(before.instance, past)


def _is_bound_to_old(stuck: StuckGroup) -> bool:
    return stuck.verdict.reason is Reason.BROKER_INSTANCE_NOT_FOUND and bool(stuck.holders_here)


def _loop_to_break(one: PathWay, ask: AskStuck) -> int:
    """Return the hop of a loop to mend: one that holds the service, else the first that leads a message back."""
    met = [hop.instance_name for hop in one.hop_path.hops]
    for number in range(len(met)):
        if ask(_mended(one, number), one.is_return).fitting_here:
            return number
    return next((number - 1 for number in range(1, len(met)) if met[number] in met[:number]), len(met) - 1)


def _mended(one: PathWay, number: int) -> HopToMend:
    hop = one.hop_path.hops[number]
    verdict = hop.verdict
    if verdict is None:
        raise ValueError("a hop that is followed has a verdict")
    verdict = _by_route(verdict, hop.route_name)
    if one.hop_path.ending is Ending.LOOP:
        verdict = replace(verdict, outcome=Outcome.DROPPED, reason=Reason.ROUTING_LOOP)
    first = verdict.decision.first if verdict.decision is not None else None
    return HopToMend(hop, hop.scope if first is None else first.sender, verdict)


def _by_route(verdict: Verdict, name: str | None) -> Verdict:
    """Return a verdict as if the route that a way took were the one that is reported, and not an alternative."""
    decision = verdict.decision
    routes = () if decision is None else decision.last.choice.routes
    reported_route = next((route for route in routes if route.name == name), None)
    if decision is None or reported_route is None or reported_route is routes[0]:
        return verdict
    others = (route for route in routes if route is not reported_route)
    last = decision.last._replace(choice=decision.last.choice._replace(routes=(reported_route, *others)))
    return replace(
        verdict,
        route_name=reported_route.name,
        address=reported_route.address,
        mirror_address=reported_route.mirror_address,
        decision=decision._replace(first=last) if decision.again is None else decision._replace(again=last),
    )
