"""Mutants of following a message between instances, and its reply."""

from __future__ import annotations

from tests.mutants.mutant import Mutant


def _following(
    name: str, rule: str, before: str, after: str, room: str = "following", breaks: tuple[str, ...] = ()
) -> Mutant:
    return Mutant(name, rule, f"routing/rules/{room}.py", before, after, breaks=breaks)


MUTANTS = (
    _following(
        "sending-takes-a-hop",
        "a forward takes one of hops_remaining, sending none",
        "if verdict.outcome is Outcome.FORWARDED and hops_remaining is not None:",
        "if hops_remaining is not None:",
    ),
    _following(
        "partner-not-followed",
        "both partners of a mirror are followed",
        "            yield self.route_name, self.mirror_address\n",
        "            yield self.route_name, self.address\n",
        room="deciding",
    ),
    _following(
        "alternatives-not-followed",
        "the alternatives of a tier are followed",
        "for route in self.alternatives:",
        "for route in self.alternatives[1:]:",
        room="deciding",
    ),
    _following(
        "circle-of-instances",
        "a loop is the same instance, broker instance and search again",
        "search = (instance.name, ahead.broker, ARRIVALS)",
        "search = (instance.name, None, ARRIVALS)",
    ),
    _following(
        "picked-id-lost",
        "a message arrives bound to the id that was picked on its way",
        "arrived = ahead._replace(searches=(*ahead.searches, search), broker=verdict.broker_instance)",
        "arrived = ahead._replace(searches=(*ahead.searches, search))",
        breaks=("D14",),
    ),
    _following(
        "requests-never-pending",
        "past the first hop requests on record are pending",
        'pending = [request for request in on_record if request.is_pending(t, "")]',
        "pending: list[RouteRequest] = []",
        "network",
    ),
    _following(
        "conversation-goes-on-past-the-first-hop",
        "D10: past the first hop a conversation waits for its own request",
        "return is_own or not pending, until",
        "return not pending, until",
        "network",
    ),
    _following(
        "any-role-waits-past-the-first-hop",
        "D10: the other role of a conversation is another endpoint, of a reply too",
        "request.endpoint == endpoint for request in pending)",
        "request.endpoint and request.endpoint[0] == endpoint[0] for request in pending)",
        "network",
    ),
    _following(
        "reply-of-no-conversation",
        "D10: a reply waits for the request of its own conversation",
        "message = TracedMessage(back_to, not sender.is_initiator, t, 0, sender.conversation_id)",
        "message = TracedMessage(back_to, not sender.is_initiator, t, 0)",
        "pathing",
    ),
    _following(
        "reply-of-the-initiator",
        "a reply is the other end's message",
        "message = TracedMessage(back_to, not sender.is_initiator, t, 0, sender.conversation_id)",
        "message = TracedMessage(back_to, sender.is_initiator, t, 0, sender.conversation_id)",
        "pathing",
    ),
    _following(
        "reply-bound-to-another-id",
        "a reply is bound to the broker instance of the sender's database",
        "key = back_to.key(receiver, database, broker, is_initiator=not sender.is_initiator)",
        "key = back_to.key(receiver, database, broker[:0], is_initiator=not sender.is_initiator)",
        "pathing",
    ),
    _following(
        "machine-by-its-listener",
        "3: of an instance's hosts those count that are called like its machine, if any are",
        "for host in named or hosts if",
        "for host in hosts if",
        "estate",
    ),
    _following(
        "machine-without-its-domain",
        "3: a host is called like a machine that is named with its domain",
        'f"{host}.".startswith(f"{machine}.")',
        'host.partition(".")[0] == machine',
        "estate",
    ),
)
