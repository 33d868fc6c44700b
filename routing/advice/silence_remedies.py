"""Advise on messages that were sent correctly but not acknowledged, by the views of the target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from routing.advice.address_remedies import correct_managed_port, restore_default
from routing.advice.broker_copies import name_twins
from routing.advice.database_remedies import open_database, open_holder, own_database
from routing.advice.handshake_remedies import compare_certificates
from routing.advice.queue_remedies import read_queue, turn_on
from routing.advice.remedy import Confidence, Remedy, RemedyPlace
from routing.advice.send_remedies import grant_missing_send, list_senders
from routing.advice.server_remedies import (
    lead_from_loopback,
    lead_to_neighbour,
    leave_replica,
    link_express,
    part_endpoints,
    start_endpoint,
)
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble, find_trouble
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.known_estate import MissingKnowledge, gaps_on
from routing.cases.message_cases import MessageResult
from routing.cases.server_facts import TELLS
from routing.render.phrases import cut, join_words, named, quote_log, when
from routing.rules import text
from routing.rules.judging import JudgedPath
from routing.rules.timeline import micros_of, moment_of
from routing.terms import Ending, PathEnd

EVENT_THAT_TELLS = (
    "If that does not help, record the event Broker:Message Undeliverable there (sbroute import queries --events),"
    " and look for error 28047 with its state in the error logs of both sides."
)
"""The next step that finds messages which arrive and are silently discarded."""
_SHOWN_HOLDERS = 2


@dataclass(frozen=True)
class SilentMessages(ReportedStatus):
    """Messages without acknowledgement, and their expected destination.

    ``conversations`` are the ids of their dialogs. ``newest`` is the last time, in microseconds, at which one was
    enqueued.
    """

    target: RemedyPlace | None = None
    conversations: Collection[str] = ()
    newest: int = 0

    @property
    def sender(self) -> RemedyPlace:
        """The database with the route that decided, or the sender's if the messages stay."""
        return self.place if self.address is None else self.route_place


def describe_silence(results: Sequence[MessageResult], reported: ReportedStatus) -> SilentMessages:
    """Describe messages of one result that are not acknowledged. ``reported`` is their blank status.

    If the end of their path is not known, their target is the only database that they may reach.
    """
    path, target = reported.case.path, None
    if path is None or (path.end is PathEnd.NOT_KNOWN and not find_outdated(path)):
        target = reported.find_target()
    ids = (result.row.get("conversation_id") for result in results)
    return SilentMessages(
        **vars(reported),
        target=target if path is None else _find_arrival(path) or target,
        conversations=frozenset(text.fold(conversation) for conversation in ids if conversation is not None),
        newest=max(micros_of(result.row["enqueue_time"]) for result in results),
    )


def _find_arrival(path: JudgedPath) -> RemedyPlace | None:
    """Return the place where all branches of a path deliver, or None if there is not exactly one."""
    hop_paths = [possible_path.hop_path for possible_path in path.forward_paths]
    ends = {RemedyPlace(hop_path.instance or "", hop_path.database) for hop_path in hop_paths}
    is_delivered = all(hop_path.ending is Ending.DELIVERED for hop_path in hop_paths)
    return next(iter(ends)) if is_delivered and len(ends) == 1 else None


def find_outdated(path: JudgedPath) -> list[str]:
    """Return the instances on a path that were exported before the messages were sent."""
    gaps = gaps_on(path)
    return list(dict.fromkeys(gap.instance for gap in gaps if gap.missing is MissingKnowledge.OUTDATED))


def find_causes(silent: SilentMessages) -> list[Remedy]:
    """Return the remedies for the causes in the target's views. Without such causes the list is empty."""
    target = silent.target
    thrown_away = _read_events(silent, target)
    if thrown_away is not None:
        return [thrown_away]
    if target is None or target.database is None:
        at_address = correct_managed_port(silent.on_route) or _look_at_address(silent)
        return [] if at_address is None else [at_address]
    server = silent.server
    queue, arrived = server.queue_of(*target, silent.service), has_arrived(silent)
    is_direct = (
        [owner.name for owner in silent.list_owners(silent.address)] == [target.instance] != [silent.instance]
    )
    sent = silent.sender, target, silent.service, silent.case.from_service
    remedies = (
        leave_replica(silent.on_route, target.instance) if is_direct else None,
        None if queue is None else turn_on(server, target, queue, silent.service),
        open_database(server, target),
        own_database(server, target),
        correct_managed_port(silent.on_route),
        _mend_endpoints(silent, target) if is_direct and not arrived else None,
        link_express(server, silent.instance, target.instance),
        None if arrived else grant_missing_send(server, *sent),
        None if queue is None else read_queue(server, target, queue),
        _say_arrived(silent, target),
    )
    first = next((remedy for remedy in remedies if remedy is not None), None)
    return [] if first is None else [first]


def _read_events(silent: SilentMessages, target: RemedyPlace | None) -> Remedy | None:
    server = silent.server
    instances = [silent.instance] if target is None else [target.instance, silent.instance]
    instances += [name for name in silent.estate.instances if name not in instances]
    for instance in instances:
        drops = server.dropped(instance, silent.conversations)
        if not drops:
            continue
        last = drops[0]
        trouble = None if last.number is None else find_trouble(last.number, last.reason or str(last.number))
        entry = None if trouble in (None, StatusTrouble.OTHER_NUMBER) else STATUSES[trouble]
        number = "" if last.number is None else f"{last.number}, "
        recorded = f"Its events say: {number}{cut(last.reason or 'without a reason')}"
        if trouble is StatusTrouble.NO_PERMISSION and target is not None:
            sent = silent.sender, target, silent.service, silent.case.from_service
            missing = grant_missing_send(server, *sent, is_reported=True)
            if missing is not None:
                return replace(missing, actions=(recorded, *missing.actions))
        cause = f"{named(instance)} throws messages of these dialogs away."
        actions = (recorded, *(() if entry is None else (entry.cause, *entry.actions)))
        return Remedy(RemedyPlace(instance), cause, actions, confidence=Confidence.LIKELY)
    return None


def say_outdated(silent: SilentMessages, instance: str) -> Remedy:
    """Say that an instance on the path was exported before the messages were sent."""
    exported = silent.server.exported_at(instance)
    at = "" if exported is None else f" at {when(exported)}"
    cause = (
        f"Whether the messages arrived is not known: {named(instance)} was exported{at}, before the newest of them"
        f" was sent at {when(moment_of(silent.newest))}."
    )
    return Remedy(RemedyPlace(instance), cause, ("Export both sides again, at one time.",))


def _look_at_address(silent: SilentMessages) -> Remedy | None:
    """Return the remedy for an address of a secondary replica, a closed database or another instance."""
    estate, owners, use = silent.estate, silent.list_owners(silent.address), silent.on_route
    without_service = [owner.name for owner in owners if not owner.holders_of(silent.service)]
    at_owners = chain(
        (leave_replica(use, owner.name) for owner in owners),
        (open_holder(estate.server, name, silent.service) for name in without_service),
    )
    others = restore_default, lead_from_loopback, part_endpoints, lead_to_neighbour
    return next(filter(None, chain(at_owners, (advise(use) for advise in others))), None)


def with_rival_routes(silent: SilentMessages, remedy: Remedy) -> Remedy:
    """Return a remedy that also names the routes of the service for several broker instances, if there are any."""
    place, service = silent.sender, silent.service
    routes = silent.estate.find_instance(place.instance).naming(place.database or "", service)
    brokers = {route.name: route.broker for route in routes if route.broker is not None}
    if len(set(brokers.values())) < 2:
        return remedy
    listed = join_words(f"{named(name)} to {named(broker)}" for name, broker in sorted(brokers.items(), key=str))
    binding = "name none" if silent.broker is None else f"are for {named(silent.broker)}"
    rivals = (
        f"Routes of {named(service)} lead to different broker instances: {listed}. The messages {binding}.",
        "If that is wrong, name the right one in BEGIN DIALOG … TO SERVICE '<service>', '<broker instance>'.",
        "Or drop the wrong route.",
    )
    return replace(remedy, actions=(*rivals, *remedy.actions))


def with_next_steps(silent: SilentMessages, remedy: Remedy) -> Remedy:
    """Return a remedy with the missing views to export, and with the event to record."""
    target = silent.target
    if target is None or target.database is None:
        return remedy
    twins = name_twins(silent.estate, target, silent.sender)
    facts = (*twins, *_name_other_holders(silent, target), *_quote_logs(silent, target), *_missing(silent, target))
    return replace(remedy, actions=(*remedy.actions, *facts, EVENT_THAT_TELLS))


def _name_other_holders(silent: SilentMessages, target: RemedyPlace) -> Iterator[str]:
    """Yield a sentence on other databases of the target's instance that may have taken the messages instead."""
    if silent.broker is not None:
        return
    holders = silent.estate.find_instance(target.instance).holders_of(silent.service)
    others = (
        _name_with_queue(silent, RemedyPlace(target.instance, holder.name))
        for holder in holders
        if holder.is_enabled and holder.name != target.database
    )
    first = list(islice(others, _SHOWN_HOLDERS + 1))
    if first:
        shown = first if len(first) <= _SHOWN_HOLDERS else [*first[:_SHOWN_HOLDERS], "others"]
        names = join_words(shown, len(shown))
        hold = "holds" if len(first) == 1 else "hold"
        yield (
            f"{names} of {named(target.instance)} {hold} the service too, and may have taken them:"
            " bind the dialog to the right broker instance, in the route or in BEGIN DIALOG."
        )


def _name_with_queue(silent: SilentMessages, holder: RemedyPlace) -> str:
    queue = silent.server.queue_of(*holder, silent.service)
    return f"{named(holder.database)}{' (its queue is off)' if queue is not None and queue.is_off else ''}"


def _quote_logs(silent: SilentMessages, target: RemedyPlace) -> Iterator[str]:
    for instance in dict.fromkeys((target.instance, silent.instance)):
        for line in silent.server.log_lines(instance, "Service Broker login attempt failed")[:1]:
            yield quote_log(instance, line)


def _missing(silent: SilentMessages, target: RemedyPlace) -> Iterator[str]:
    server = silent.server
    views = [
        view
        for view in ("service_queues", "database_permissions", "remote_service_bindings")
        if not server.was_exported(view, target.instance, target.database)
    ]
    if views:
        words = [f"sys.{view} ({TELLS[view][0]})" for view in views]
        yield f"Export of {named(target.database)}, by sbroute import queries: {'; '.join(words)}."


def _mend_endpoints(silent: SilentMessages, target: RemedyPlace) -> Remedy | None:
    """Return the remedy for an endpoint of either side that is not started, or has no valid certificate."""
    server, sender = silent.server, silent.instance
    cause = f"{named(sender)} and {named(target.instance)} exchange messages by their endpoints."
    return (
        start_endpoint(server, sender, cause)
        or start_endpoint(server, target.instance, cause)
        or compare_certificates(server, sender, target.instance)
    )


def has_arrived(silent: SilentMessages) -> bool:
    """Return True if the target is known to have the dialog of a message."""
    return silent.target is not None and _count_arrived(silent, silent.target) > 0


def _count_arrived(silent: SilentMessages, target: RemedyPlace) -> int:
    arrived = silent.server.conversations(target.instance, target.database or "") or frozenset()
    return len(arrived.intersection(silent.conversations))


def _say_arrived(silent: SilentMessages, target: RemedyPlace) -> Remedy | None:
    """Advise on lost messages or acknowledgements, by the conversation endpoints of the target."""
    server = silent.server
    is_exported = server.was_exported("conversation_endpoints", target.instance, target.database)
    if not is_exported or not silent.conversations or target.instance == silent.instance:
        return None
    arrived = _count_arrived(silent, target)
    if arrived:
        cause = (
            f"The messages reach their target: {named(target.database)} of {named(target.instance)} knows"
            f" {arrived:,} of their {len(silent.conversations):,} dialogs. Their acknowledgement is lost."
        )
        actions = (
            "Check the connection from the target to the sender's address: its port and the firewall.",
            f"Look at the transmission queue of {named(target.database)}: its status shows the reason.",
        )
        all_actions = (*actions, EVENT_THAT_TELLS)
        return Remedy(target, cause, all_actions, confidence=Confidence.LIKELY)
    cause = (
        f"The messages do not arrive: {named(target.database)} of {named(target.instance)} has no conversation"
        " endpoint of their dialogs."
    )
    grants = (
        "Check the connection, the certificates and the grants of SEND and CONNECT.",
        "The target drops messages that it must not accept, and the sender is not informed.",
    )
    senders = list_senders(server, target, silent.service)
    facts = (*(() if senders is None else (senders,)), *_quote_logs(silent, target), *_missing(silent, target))
    return Remedy(target, cause, (*grants, *facts, EVENT_THAT_TELLS))
