"""Rule book, sections 1 and 4: which database of an instance a message is delivered to, or why to none."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing.terms import Reason


@dataclass(frozen=True)
class Located:
    """The destination (a database name, null where there is none) and the reason where there is none."""

    destination: Column
    reason: Column


def is_reply(is_from_network: Column, is_initiator: Column, broker: Column, own_brokers: Column) -> Column:
    """Section 1: the target's message, from the network, to a broker instance of this very instance."""
    comes_back = is_from_network & ~is_initiator
    return comes_back & F.coalesce(F.array_contains(own_brokers, broker), F.lit(False))


def holders_of(holders: Column, broker: Column) -> Column:
    """Those of the databases that hold the service which have the broker id, where one is known."""
    return F.filter(holders, lambda holder: broker.isNull() | (holder["broker"] == broker))


def locate(sender: Column, broker: Column, holders: Column, own_brokers: Column) -> Located:
    """Locate a message's destination (section 4, D5, D6).

    ``sender`` is the sending database, null for an arrival; ``broker`` the id after matching, null while
    open; ``holders`` an array of struct(name, broker, is_enabled) by name; ``own_brokers`` the ids of the
    instance's databases.
    """
    candidates = holders_of(holders, broker)
    able = F.filter(candidates, lambda holder: holder["is_enabled"])
    holds_itself = broker.isNull() & F.exists(able, lambda holder: holder["name"] == sender)
    is_elsewhere = broker.isNotNull() & ~F.array_contains(own_brokers, broker)
    return Located(
        destination=F.coalesce(F.when(holds_itself, sender), F.get(able, F.lit(0))["name"]),
        reason=F.when(is_elsewhere, str(Reason.BROKER_INSTANCE_NOT_FOUND))
        .when(F.size(candidates) > 0, str(Reason.BROKER_DISABLED))
        .when(F.size(candidates) == 0, str(Reason.SERVICE_NOT_FOUND)),
    )
