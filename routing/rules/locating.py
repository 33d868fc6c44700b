"""Rule book, sections 1 and 4: which database of an instance a message is delivered to, or why to none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from routing.rules.estate import NO_HOLDERS, Database, ServiceHolders, SqlInstance
from routing.terms import Reason


class DestinationLocation(NamedTuple):
    """The destination's name, None where there is none, and then the reason."""

    destination: str | None
    reason: Reason | None


def is_reply(instance: SqlInstance, broker: str | None, *, is_from_network: bool, is_initiator: bool) -> bool:
    """Return whether a message is a reply (section 1): the target's, arrived, for an id of this instance."""
    return is_from_network and not is_initiator and broker in instance.brokers


def has_id(database: Database, broker: str | None) -> bool:
    """Return True if a database has the broker instance, where one is known."""
    return broker is None or database.broker == broker


def locate(
    instance: SqlInstance, holders: ServiceHolders, sender: str | None, broker: str | None
) -> DestinationLocation:
    """Locate a message's destination (section 4, D5, D6).

    ``holders`` are the databases that hold the service, by name; ``sender`` is the sending database, None for an
    arrival; ``broker`` the id after matching, None while open.
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
    """Return the candidates that would change a message's location if they held the service as well.

    Other arguments are those of `locate`. The work does not grow with the number of holders for each candidate.
    """
    location = locate(instance, holders, sender, broker)
    fitting = holders.by_broker.get(broker, NO_HOLDERS)
    # The first one, the first whose broker is on, and the sender: no other holder decides.
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
