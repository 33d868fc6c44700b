"""Routing keys as rows of columns, by which Spark and Arrow group messages, and what a row means to the rules.

Names and broker instances that nothing known names fall into one class each, so that garbage in the data does not
make a plan larger. `KEY` is what decides within an instance; `PATH_KEY` what decides in the whole estate, there
and back, where a name that begins with an address of a known instance counts by this address, and a conversation
whose requests are on record by itself (D10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules.deciding import RoutingKey
from routing.rules.estate import NameAddress, SqlInstance, address_of_name
from routing.rules.matching import UNNAMED
from routing.rules.network import ServiceAddress
from routing.rules.pathing import PathSender
from routing.tables.table_columns import TableColumns

FROM_NETWORK = ""
"""The key_database of what arrives over the network; no database has an empty name."""
KEY = ("instance_name", "key_database", "key_service", "key_broker", "key_kind")
KeyRow = tuple[str, str, str, str, int]
# The same with the service of a message as it is written, whether or not anything names it; key_role is key_kind
# without the class of a service.
TEXTS = ("instance_name", "key_database", "to_service_name", "key_broker", "key_role")
PATH_KEY = (
    *("instance_name", "key_database", "key_service", "key_broker", "key_from", "key_kind"),
    "key_conversation",
)
PathKeyRow = tuple[str, str, str, str, str, int, str]

# Service classes: a known name; other names without an address, with one elsewhere, with an own address.
CLASSES = 4
KNOWN, NO_ADDRESS, ADDRESS_ELSEWHERE, OWN_ADDRESS = range(CLASSES)
_ADDRESSES = {
    NO_ADDRESS: NameAddress.NONE,
    ADDRESS_ELSEWHERE: NameAddress.ELSEWHERE,
    OWN_ADDRESS: NameAddress.OWN,
}
CLASS_OF = {address: number for number, address in _ADDRESSES.items()}
# key_kind = is_initiator + 2 * service class + 8 * (the broker instance is one that nothing names)
# + 16 * class of the sender's service, in a `PATH_KEY`.
SERVICE_FACTOR, OTHER_BROKER = 2, 8
FROM_FACTOR = 2 * OTHER_BROKER
# What of a message its key is made of, but for its dialog.
READ = ("instance_name", "database_name", "to_service_name", "to_broker_instance", "is_initiator")


@dataclass(frozen=True)
class KeyTexts:
    """All that messages hold in place of keys: the columns `TEXTS`, distinct, and the places of their keys."""

    rows: TableColumns
    keys: Sequence[int]


@dataclass(frozen=True)
class KeyCounts:
    """The distinct keys of all messages that can be resolved, how many messages there are, and how many are valid.

    Unless it ``is_exact`` only what makes a key was looked at: then some of the valid ones may be rejected yet.
    ``texts`` are given where they are known and hardly more than the keys. ``is_folded``: every conversation id
    is written as it is compared.
    """

    keys: TableColumns
    rows_read: int
    rows_valid: int
    is_exact: bool
    texts: KeyTexts | None = None
    is_folded: bool = False

    @property
    def rows_rejected(self) -> int | None:
        """How many messages are to be set aside; None where that is not known."""
        return self.rows_read - self.rows_valid if self.is_exact else None


def key_of(row: KeyRow, instance: SqlInstance) -> RoutingKey:
    """Convert a row of the columns `KEY` to a routing key."""
    _, database, service, broker, kind = row
    named = _ADDRESSES.get(kind // SERVICE_FACTOR % CLASSES)
    return RoutingKey(
        database or None,
        service or None,
        _broker(broker, kind),
        bool(kind & 1),
        address_of_name(service, instance.own_addresses) if named is None else named,
    )


class PathKey(NamedTuple):
    """A row of `PATH_KEY`, read.

    ``back_to`` is the service that a reply goes to, None where none is known; ``conversation_id`` as in
    `PathSender`.
    """

    instance: str
    database: str | None
    to: ServiceAddress
    broker: str | None
    back_to: ServiceAddress | None
    is_initiator: bool
    conversation_id: str | None

    def sender(self, instance: SqlInstance) -> PathSender:
        """Return the sender of this key's messages on the instance that it names."""
        return PathSender(instance, self.database, self.is_initiator, self.back_to, self.conversation_id)


def path_key_of(row: PathKeyRow) -> PathKey:
    """Convert a row of the columns `PATH_KEY` to a path key."""
    instance, database, service, broker, sender, kind, conversation = row
    of_sender = kind // FROM_FACTOR % CLASSES
    back_to = None if (of_sender, sender) == (KNOWN, "") else _addressee(of_sender, sender)
    to = _addressee(kind // SERVICE_FACTOR % CLASSES, service)
    bound_broker = _broker(broker, kind)
    return PathKey(instance, database or None, to, bound_broker, back_to, bool(kind & 1), conversation or None)


def _broker(broker: str, kind: int) -> str | None:
    return UNNAMED if kind & OTHER_BROKER else broker or None


def _addressee(kind: int, name: str) -> ServiceAddress:
    """Return the service of a name; of a name that nothing names only its address, if it holds one."""
    if kind == KNOWN and name:
        return ServiceAddress.of_name(name)
    if kind == OWN_ADDRESS:
        return ServiceAddress(None, name or None, holds_address=True)
    return ServiceAddress(None, None, holds_address=kind == ADDRESS_ELSEWHERE)
