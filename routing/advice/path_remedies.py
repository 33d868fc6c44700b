"""Advise on the path of messages that left their instance: at the failed hop, or before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from routing.advice.address_remedies import (
    ask_for_address,
    correct_address,
    is_wrong_address,
    lead_past,
    lead_to,
    restore_default,
)
from routing.advice.broker_copies import COPY_RISK, part_copies
from routing.advice.remedies import remedy_of
from routing.advice.remedy import Confidence, Remedy, RemedyPlace
from routing.advice.route_remedies import pin_anew
from routing.advice.server_remedies import lead_to_principal, leave_replica
from routing.advice.service_remedies import look_for_queue
from routing.advice.silence_remedies import (
    SilentMessages,
    find_causes,
    find_outdated,
    has_arrived,
    say_outdated,
    with_next_steps,
)
from routing.advice.stuck_messages import TSQL_PORT, AdviceEstate, StuckMessage, UsedRoute
from routing.cases.estate_addresses import is_ip
from routing.cases.message_cases import MessageCase
from routing.cases.near_misses import NearMiss
from routing.render.phrases import named
from routing.rules import text
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.resolving import Verdict
from routing.terms import Ending, Outcome, PathEnd, Reason

_SILENCE_CAUSE = (
    "The messages were sent, nothing acknowledges them, and these exports do not show what happens further on."
)
_SILENCE_ACTIONS = (
    "Export the views of the instances further on: then check follows the messages.",
    (
        "Look for a missing route back for the acknowledgement, a service name that is spelt otherwise, a"
        " forwarder that drops the messages, or a broker or a queue that is off."
    ),
)
_SENT_RIGHTLY = "The messages were sent, and every hop is right, there and back."


def find_remedies(
    path: JudgedPath, sent: MessageCase, estate: AdviceEstate
) -> tuple[list[NearMiss], list[Remedy]]:
    """Find near misses and remedies for the stuck messages of a path, each once.

    Copies of the last database come first, because they are the cause whichever hop fails.
    """
    near: dict[NearMiss, None] = {}
    passed_instances = {
        hop.instance_name for possible_path in path.all_paths for hop in possible_path.hop_path.hops
    }
    copies = (
        remedy
        for possible_path in path.failing_paths
        for remedy in _part_copies_at(possible_path, sent, estate, passed_instances)
    )
    remedies = dict.fromkeys(copies)
    for possible_path in path.failing_paths:
        at_replica = _leave_replica(possible_path, sent, estate)
        remedies |= {} if at_replica is None else {at_replica: None}
        for stuck, remedy in _remedies_of(possible_path, sent, estate):
            near |= dict.fromkeys(stuck.near_misses)
            remedies[remedy] = None
    return list(near), list(remedies)


def find_silence_remedies(silent: SilentMessages) -> list[Remedy]:
    """Return the remedies for messages that are not acknowledged although no hop is known to fail."""
    causes, estate, sent, path = find_causes(silent), silent.estate, silent.case, silent.case.path
    if path is None:
        return causes or [_look_further(silent)]
    arriving = [
        possible_path for possible_path in path.forward_paths if possible_path.hop_path.ending is Ending.DELIVERED
    ]
    copies = dict.fromkeys(
        remedy for possible_path in path.all_paths for remedy in _part_copies_at(possible_path, sent, estate)
    )
    if copies:
        return list(copies)
    wrong_ports = find_wrong_ports(path.return_paths, sent, estate)
    if wrong_ports:
        return [*wrong_ports, *(cause for cause in causes if cause.statement is not None)]
    is_explained = any(cause.statement is not None for cause in causes)
    may_return_wrong = has_arrived(silent) or not causes
    returns = _correct_returns(path, sent, estate) if may_return_wrong and not is_explained else []
    if returns:
        return returns
    if causes:
        return [_check_return_address(path, cause) for cause in causes]
    outdated = find_outdated(path)
    if outdated:
        return [say_outdated(silent, instance) for instance in outdated]
    if path.end is PathEnd.DELIVERED and arriving:
        place = RemedyPlace(arriving[0].hop_path.instance or "", arriving[0].hop_path.database)
        return [with_next_steps(silent, replace(look_for_queue(place, silent.service), cause=_SENT_RIGHTLY))]
    return (
        find_wrong_ports(path.forward_paths, sent, estate)
        or find_unaddressed(path, estate)
        or [_export_further(silent)]
    )


def _look_further(silent: SilentMessages) -> Remedy:
    target = silent.target
    if target is None or target.database is None:
        return _export_further(silent)
    return with_next_steps(silent, look_for_queue(target, silent.service))


def _export_further(silent: SilentMessages) -> Remedy:
    return Remedy(silent.sender, _SILENCE_CAUSE, _SILENCE_ACTIONS)


def _correct_returns(path: JudgedPath, sent: MessageCase, estate: AdviceEstate) -> list[Remedy]:
    """Correct routes that lead acknowledgements to a host that no known instance has."""
    unknown = [
        return_path
        for return_path in path.return_paths
        if return_path.hop_path.ending is Ending.LEFT_ESTATE
        and not is_ip(text.host(return_path.hop_path.address))
        and estate.find_instance_of_host(return_path.hop_path.address) is None
    ]
    remedies: dict[Remedy, None] = {}
    for return_path in unknown:
        stuck = _describe_at(return_path, -1, sent, estate)
        address, shown = stuck.address_of(sent.instance), named(return_path.hop_path.address)
        cause = (
            f"Route {named(stuck.verdict.route_name)} of {named(stuck.last.scope)} on {named(stuck.instance)}"
            f" leads the acknowledgements to {shown}, which no known instance has. The sender is"
            f" {named(sent.instance)}."
        )
        actions = [f"If {shown} is another name of the sender or a forwarder, check its port and the firewall."]
        if address is None:
            actions.append(ask_for_address(sent.instance, sent.from_service or "", None))
        remedy = lead_to(stuck, address, cause, actions)
        remedies[remedy.with_confidence_at_most(Confidence.LIKELY)] = None
    return list(remedies)


def _check_return_address(path: JudgedPath, cause: Remedy) -> Remedy:
    """Add a check of the address to which acknowledgements leave the known instances, to words without it."""
    hop_paths = (return_path.hop_path for return_path in path.return_paths)
    unknown = [hop_path.address for hop_path in hop_paths if hop_path.ending is Ending.LEFT_ESTATE]
    if cause.statement is not None or not unknown:
        return cause
    check = f"Check that {named(unknown[0])}, to which the route back leads, is the sender's address."
    return replace(cause, actions=(check, *cause.actions))


def find_wrong_ports(
    possible_paths: Sequence[PossiblePath], sent: MessageCase, estate: AdviceEstate
) -> list[Remedy]:
    """Correct routes to an unknown port of a known machine, on paths in one direction."""
    stuck = (
        _describe_at(possible_path, -1, sent, estate)
        for possible_path in possible_paths
        if possible_path.hop_path.ending is Ending.LEFT_ESTATE
        and estate.find_other_port(possible_path.hop_path.address or "")
    )
    return list(dict.fromkeys(remedy for remedy in map(correct_address, stuck) if remedy is not None))


def find_unaddressed(path: JudgedPath, estate: AdviceEstate) -> list[Remedy]:
    """Ask for the address of each known instance at which a path may go on, judging by the name of its machine."""
    remedies = []
    for address in path.unread_addresses:
        instance = estate.find_instance_of_host(address)
        if instance is None or instance.own_addresses or estate.server.has_no_endpoint(instance.name):
            continue
        if not estate.find_other_port(address) and text.port(address) not in (None, TSQL_PORT):
            place, shown = RemedyPlace(instance.name), named(address)
            cause = f"{named(instance.name)} may listen at {shown}, but no address of it is known."
            remedies.append(
                Remedy(place, cause, (f"If it listens there, read its exports with --address {address}.",))
            )
    return remedies


def _part_copies_at(
    possible_path: PossiblePath,
    sent: MessageCase,
    estate: AdviceEstate,
    passed_instances: Collection[str] | None = None,
) -> list[Remedy]:
    """Return the remedies for a branch that ends at one of several databases with one broker instance.

    With ``passed_instances``, only copies count that routes connect with one of these instances.
    """
    hop_path = possible_path.hop_path
    if hop_path.ending is not Ending.DELIVERED or hop_path.instance is None:
        return []
    reached, sender = RemedyPlace(hop_path.instance, hop_path.database), RemedyPlace(sent.instance, sent.database)
    if not possible_path.is_return:
        return part_copies(estate, reached, sent.service, passed_instances=passed_instances)
    return part_copies(estate, reached, sent.from_service or "", sender)


def _leave_replica(possible_path: PossiblePath, sent: MessageCase, estate: AdviceEstate) -> Remedy | None:
    """Return the remedy for a route by which an acknowledgement arrives at a secondary replica."""
    hops = possible_path.hop_path.hops[-2:]
    if not possible_path.is_return or possible_path.hop_path.ending is not Ending.DELIVERED or len(hops) < 2:
        return None
    hop, reached = hops
    place = RemedyPlace(hop.instance_name, hop.scope)
    use = UsedRoute(estate, hop.address, sent.from_service or "", place, hop.route_name)
    return leave_replica(use, reached.instance_name)


def _remedies_of(
    possible_path: PossiblePath, sent: MessageCase, estate: AdviceEstate
) -> Iterator[tuple[StuckMessage, Remedy]]:
    if possible_path.hop_path.ending is Ending.DELIVERED:
        # The acknowledgement is the one that fails, or it goes to a copy.
        return

    def describe(number: int) -> StuckMessage:
        return _describe_at(possible_path, number, sent, estate)

    is_loop = possible_path.hop_path.ending is Ending.LOOP
    number = _loop_to_break(possible_path, describe) if is_loop else len(possible_path.hop_path.hops) - 1
    stuck = describe(number)
    before = None if number == 0 else describe(number - 1)
    if before is not None:
        route, source = before.verdict.route_name, RemedyPlace(before.instance, before.scope)
        use = UsedRoute(estate, before.verdict.address, stuck.service, source, route)
        at_replica = leave_replica(use, stuck.instance) or restore_default(use)
        if at_replica is None and not possible_path.is_return:
            at_replica = lead_to_principal(estate, stuck.instance, before)
        if at_replica is not None:
            yield stuck, at_replica
            return
    rebinding = None if before is None or possible_path.is_return else pin_anew(before, stuck)
    if rebinding is not None:
        yield stuck, rebinding
        return
    past = None if before is None else lead_past(before, stuck)
    remedy = remedy_of(stuck)
    is_at_copy = remedy.risk == COPY_RISK
    if past is not None and before is not None and not is_at_copy and is_wrong_address(before, stuck):
        yield stuck, past
        return
    is_bound_to_old = stuck.verdict.reason is Reason.BROKER_INSTANCE_NOT_FOUND and bool(stuck.holders_here)
    if remedy.statement is None and is_bound_to_old and not possible_path.is_return:
        # End a dialog that is bound to an old id, and begin it again in the database that began it.
        remedy = replace(remedy, place=RemedyPlace(sent.instance, sent.database))
    yield stuck, remedy
    if past is not None:
        actions = ("Or do this instead, so that the messages do not pass that instance.", *past.actions)
        yield stuck, replace(past.with_confidence_at_most(Confidence.LIKELY), actions=actions)


def _loop_to_break(possible_path: PossiblePath, describe: Callable[[int], StuckMessage]) -> int:
    """Return the hop of a loop to mend: one that holds the service, else the first that leads a message back."""
    passed_instances = [hop.instance_name for hop in possible_path.hop_path.hops]
    for number in range(len(passed_instances)):
        if describe(number).fitting_here:
            return number
    for number, name in enumerate(passed_instances):
        if name in passed_instances[:number]:
            return number - 1
    return len(passed_instances) - 1


def _describe_at(
    possible_path: PossiblePath, number: int, sent: MessageCase, estate: AdviceEstate
) -> StuckMessage:
    hop = possible_path.hop_path.hops[number]
    verdict = hop.verdict
    if verdict is None:
        raise ValueError("a hop that is followed has a verdict")
    verdict = by_route(verdict, hop.route_name)
    if possible_path.hop_path.ending is Ending.LOOP:
        verdict = replace(verdict, outcome=Outcome.DROPPED, reason=Reason.ROUTING_LOOP)
    return estate.describe_at_hop(sent, hop, verdict, is_return=possible_path.is_return)


def by_route(verdict: Verdict, name: str | None) -> Verdict:
    """Return a verdict that reports the named route instead of an equally good one."""
    decision = verdict.decision
    routes = () if decision is None else decision.last.choice.routes
    reported_route = next((route for route in routes if route.name == name), None)
    if decision is None or reported_route is None or reported_route is routes[0]:
        return verdict
    other_routes = tuple(route for route in routes if route is not reported_route)
    last = decision.last._replace(choice=decision.last.choice._replace(routes=(reported_route, *other_routes)))
    return replace(
        verdict,
        route_name=reported_route.name,
        address=reported_route.address,
        mirror_address=reported_route.mirror_address,
        alternative_routes=other_routes,
        decision=decision._replace(first=last) if decision.second is None else decision._replace(second=last),
    )
