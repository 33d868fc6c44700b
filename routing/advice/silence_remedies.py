"""Advise on messages that were sent correctly but not acknowledged, by the views of the target."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from routing.advice import statements
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.server_remedies import lead_to_listener, part_endpoints
from routing.advice.stuck_messages import AdviceEstate
from routing.cases.server_facts import TELLS, QueueFacts
from routing.render.phrases import join_words, named, when
from routing.rules.estate import SqlInstance
from routing.rules.timeline import moment_of

_EVERYBODY = "public"
_QUEUE_RISK = "If the cause still stands, the next poison message turns the queue off again."
_SEND_RISK = "A grant to public lets every sender that can connect send to the service."
EVENT_THAT_TELLS = (
    "If that does not help, record the event Broker:Message Undeliverable there (sbroute import queries --events),"
    " and look for error 28047 with its state in the error logs of both sides."
)
"""The next step that finds messages which arrive and are silently discarded."""


@dataclass(frozen=True)
class SilentMessages:
    """Messages without acknowledgement, and the place where they should have arrived.

    ``conversations`` are the ids of their dialogs. ``newest`` is the last time, in microseconds, at which one was
    enqueued. ``address`` is that of ``route`` in the sender's database, or None if they stay there.
    """

    estate: AdviceEstate
    sender: RemedyPlace
    service: str
    target: RemedyPlace | None
    conversations: Collection[str]
    newest: int
    route: str | None = None
    address: str | None = None


def find_causes(silent: SilentMessages) -> list[Remedy]:
    """Return the remedies for the causes in the target's views. Without such causes the list is empty."""
    target = silent.target
    if target is None or target.database is None:
        at_address = None if silent.address is None else _look_at_address(silent, silent.address)
        return [] if at_address is None else [at_address]
    queue = silent.estate.server.queue_of(*target, silent.service)
    remedies = (
        _say_older(silent, target),
        None if queue is None else turn_on(target, queue, silent.service),
        _link_express(silent, target),
        _grant_send(silent, target),
        None if queue is None else read_queue(target, queue),
        _say_arrived(silent, target),
    )
    first = next((remedy for remedy in remedies if remedy is not None), None)
    return [] if first is None else [first]


def _look_at_address(silent: SilentMessages, address: str) -> Remedy | None:
    """Return the remedy if a secondary replica, or several instances, listen at an address."""
    estate, sender = silent.estate, silent.sender
    here = estate.instances.get(sender.instance) or SqlInstance(sender.instance)
    owners = estate.network.owners(address, here) or (estate.find_instance_of_host(address),)
    replicas = (lead_to_listener(estate, one.name, sender, silent.route) for one in owners if one is not None)
    at_listener = next((remedy for remedy in replicas if remedy is not None), None)
    return at_listener or part_endpoints(estate, address, silent.service, sender, silent.route)


def with_next_steps(silent: SilentMessages, remedy: Remedy) -> Remedy:
    """Return a remedy with the missing views to export, and with the event to record."""
    target = silent.target
    if target is None or target.database is None:
        return remedy
    return replace(remedy, actions=(*remedy.actions, *_missing(silent, target), EVENT_THAT_TELLS))


def _missing(silent: SilentMessages, target: RemedyPlace) -> Iterator[str]:
    server = silent.estate.server
    views = [
        view
        for view in ("service_queues", "database_permissions", "remote_service_bindings")
        if not server.was_exported(view, target.instance, target.database)
    ]
    if views:
        words = [f"sys.{view} ({TELLS[view][0]})" for view in views]
        yield f"Export of {named(target.database)}, by sbroute import queries: {'; '.join(words)}."


def name_queue(queue: QueueFacts) -> str | None:
    """Return a queue as an identifier to paste, or None if its name cannot be pasted."""
    schema, name = statements.identifier(queue.schema), statements.identifier(queue.name)
    return name if queue.schema is None or schema is None or name is None else f"{schema}.{name}"


def turn_on(target: RemedyPlace, queue: QueueFacts, service: str) -> Remedy | None:
    """Return ALTER QUEUE for a queue that was exported as off."""
    if queue.is_receiving is not False and queue.is_enqueueing is not False:
        return None
    pasted = name_queue(queue)
    line = None if pasted is None else f"ALTER QUEUE {pasted} WITH STATUS = ON;"
    return ready(
        target,
        f"Queue {named(queue.name)} of service {named(service)} is off.",
        (
            "First find the cause in the program that receives from it: five rollbacks turn the queue off.",
            "Then turn the queue on.",
        ),
        line,
        risk=_QUEUE_RISK,
        confidence=Confidence.LIKELY,
    )


def read_queue(target: RemedyPlace, queue: QueueFacts) -> Remedy | None:
    """Return the remedy for a queue that holds messages and that nobody reads."""
    if not queue.messages or queue.waiting or (queue.activation and queue.is_activated is not False):
        return None
    pasted, count = name_queue(queue), f"{queue.messages:,} message{'' if queue.messages == 1 else 's'}"
    nobody = "no procedure is started for it" if queue.waiting is None else "no program waits for them"
    cause = f"Queue {named(queue.name)} of {named(target.database)} holds {count}, and {nobody}."
    if queue.activation and pasted is not None:
        activated = f"ALTER QUEUE {pasted} WITH ACTIVATION (STATUS = ON);"
        action = f"Turn the activation of {named(queue.activation)} on."
        return ready(target, cause, (action,), activated, confidence=Confidence.LIKELY)
    actions = (
        "Start the program that receives from the queue, or let the queue start a procedure.",
        "Do not delete messages: their senders wait for an answer.",
    )
    line = (
        f"ALTER QUEUE {pasted} WITH ACTIVATION (STATUS = ON, PROCEDURE_NAME = <procedure>, MAX_QUEUE_READERS = 1,"
        " EXECUTE AS OWNER);"
    )
    return to_fill_in(target, cause, actions, None if pasted is None else line, confidence=Confidence.LIKELY)


def _say_older(silent: SilentMessages, target: RemedyPlace) -> Remedy | None:
    """Warn that the target's export is older than the messages, or return None if it is newer."""
    exported = silent.estate.server.exported_at(target.instance)
    sent = moment_of(silent.newest)
    if exported is None or exported >= sent or target.instance == silent.sender.instance:
        return None
    cause = (
        f"Whether the messages arrived is not known: {named(target.instance)} was exported at {when(exported)},"
        f" before the newest of them was sent at {when(sent)}."
    )
    return Remedy(target, cause, ("Export both sides again, at one time.",))


def _link_express(silent: SilentMessages, target: RemedyPlace) -> Remedy | None:
    server, sender = silent.estate.server, silent.sender.instance
    if target.instance == sender or not (server.is_express(sender) and server.is_express(target.instance)):
        return None
    cause = (
        f"{named(sender)} and {named(target.instance)} are both SQL Server Express: two Express instances exchange"
        " messages only through an instance of a paid edition."
    )
    actions = (
        "Route the messages through an instance of a paid edition with MESSAGE_FORWARDING, or upgrade one.",
    )
    return Remedy(target, cause, actions, confidence=Confidence.LIKELY)


def _grant_send(silent: SilentMessages, target: RemedyPlace) -> Remedy | None:
    """Advise GRANT SEND if dialogs of another instance have no user in the target's database."""
    server, sender = silent.estate.server, silent.sender
    senders = server.senders_to(target.instance, target.database or "", silent.service)
    is_bound = server.has_binding(sender.instance, sender.database or "", silent.service)
    if senders is None or target.instance == sender.instance or is_bound is True or _EVERYBODY in senders:
        return None
    service = statements.identifier(silent.service)
    granted = join_words(map(named, senders)) if senders else "nobody"
    cause = (
        f"A dialog without a remote service binding sends as public, and {granted} may send to service"
        f" {named(silent.service)}: the target throws the messages away."
    )
    actions = (
        f"Grant SEND on the service to public in {named(target.database)}, if anybody who can connect may send.",
        "Or bind a user with a certificate to the service, and grant SEND to that user.",
    )
    line = None if service is None else f"GRANT SEND ON SERVICE::{service} TO [public];"
    return ready(target, cause, actions, line, risk=_SEND_RISK, confidence=Confidence.LIKELY)


def _say_arrived(silent: SilentMessages, target: RemedyPlace) -> Remedy | None:
    """Advise on lost messages or acknowledgements, by the conversation endpoints of the target."""
    server = silent.estate.server
    conversations = server.conversations(target.instance, target.database or "")
    if conversations is None or not silent.conversations or target.instance == silent.sender.instance:
        return None
    arrived = len(conversations.intersection(silent.conversations))
    if arrived:
        cause = (
            f"The messages reach their target: {named(target.database)} of {named(target.instance)} knows"
            f" {arrived:,} of their {len(silent.conversations):,} dialogs. Their acknowledgement is lost."
        )
        actions = (
            "Check the connection from the target to the sender's address: its port and the firewall.",
            f"Look at the transmission queue of {named(target.database)}: its status says what stops the replies.",
        )
        every = (*actions, EVENT_THAT_TELLS)
        return Remedy(target, cause, every, confidence=Confidence.LIKELY)
    cause = (
        f"The messages do not arrive: {named(target.database)} of {named(target.instance)} has no conversation"
        " endpoint of their dialogs."
    )
    grants = (
        "Check the connection, the certificates and the grants of SEND and CONNECT.",
        "The target throws away what it may not take, and the sender gets no word of it.",
    )
    return Remedy(target, cause, (*grants, *_missing(silent, target), EVENT_THAT_TELLS))
