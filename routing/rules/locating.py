"""Rule book, sections 1 and 4: find the database of an instance that gets a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from routing.rules.estate import NO_HOLDERS, Database, ServiceHolders, SqlInstance
from routing.terms import Reason


class DestinationLocation(NamedTuple):
    """The name of the destination database, or None and the reason."""

    destination: str | None
    reason: Reason | None


def is_reply(instance: SqlInstance, broker: str | None, *, is_from_network: bool, is_initiator: bool) -> bool:
    """Return True if an arrival from the target has a broker instance of this instance (section 1)."""
    return is_from_network and not is_initiator and broker in instance.brokers


def has_id(database: Database, broker: str | None) -> bool:
    """Return True if a database has the broker instance, or if ``broker`` is None."""
    return broker is None or database.broker == broker


def locate(
    instance: SqlInstance, holders: ServiceHolders, sender: str | None, broker: str | None
) -> DestinationLocation:
    """Locate a message's destination (section 4, D5, D6).

    ``holders`` are the databases that hold the service, by name. ``sender`` is the sending database, or None for
    an arrival. ``broker`` is the broker instance after matching, or None for an open message.
    """
    fitting = holders.by_broker.get(broker, NO_HOLDERS)
    if fitting.able:
        is_own = broker is None and sender in fitting.able_names
        return DestinationLocation(sender if is_own else fitting.able[0], None)
    if broker is not None and broker not in instance.brokers:
        return DestinationLocation(None, Reason.BROKER_INSTANCE_NOT_FOUND)
    return DestinationLocation(None, Reason.BROKER_DISABLED if fitting else Reason.SERVICE_NOT_FOUND)


def list_influential_holders(
    instance: SqlInstance,
    candidates: Iterable[Database],
    holders: ServiceHolders,
    sender: str | None,
    broker: str | None,
) -> list[Database]:
    """Return the candidates that would change a message's location if they also held the service.

    Other arguments are those of `locate`. The work for each candidate does not depend on the number of holders.
    """
    location = locate(instance, holders, sender, broker)
    fitting = holders.by_broker.get(broker, NO_HOLDERS)
    # Only three holders can decide: the first one, the first with an enabled broker, and the sender.
    decisive = {
        holder.name: holder
        for holder in (*fitting[:1], *(one for one in fitting if one.name in (*fitting.able[:1], sender)))
    }
    return [
        candidate
        for candidate in candidates
        if candidate.name not in holders.names
        and locate(instance, _with_holder(decisive, candidate), sender, broker) != location
    ]


def _with_holder(holders: Mapping[str, Database], added: Database) -> ServiceHolders:
    return ServiceHolders(sorted((*holders.values(), added), key=lambda holder: holder.name))
