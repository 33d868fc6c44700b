"""Rule book, sections 1 and 4: which database of an instance a message is delivered to, or why to none."""

from __future__ import annotations

from typing import NamedTuple

from routing.rules.estate import Database, SqlInstance
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
    instance: SqlInstance, holders: tuple[Database, ...], sender: str | None, broker: str | None
) -> DestinationLocation:
    """Locate a message's destination (section 4, D5, D6).

    ``holders`` are the databases that hold the service, by name; ``sender`` is the sending database, None for an
    arrival; ``broker`` the id after matching, None while open.
    """
    fitting = [holder for holder in holders if has_id(holder, broker)]
    able = [holder.name for holder in fitting if holder.is_enabled]
    if able:
        return DestinationLocation(sender if broker is None and sender in able else able[0], None)
    if broker is not None and broker not in instance.brokers:
        return DestinationLocation(None, Reason.BROKER_INSTANCE_NOT_FOUND)
    return DestinationLocation(None, Reason.BROKER_DISABLED if fitting else Reason.SERVICE_NOT_FOUND)
