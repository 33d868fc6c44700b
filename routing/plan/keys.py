"""Routing keys as rows of columns, by which Spark and Arrow group messages, and what a row means to the rules.

Names and broker instances that nothing known names fall into one class each, so that garbage in the data does not
make a plan larger. `KEY` is what decides within an instance; `PATH_KEY` what decides in the whole estate, there
and back, where a name that begins with an address of a known instance counts by this address.
"""

from __future__ import annotations

from typing import NamedTuple

from routing.rules.deciding import UNNAMED, Key
from routing.rules.estate import Instance, NameAddress, address_of_name
from routing.rules.network import Addressee

KEY = ("instance_name", "key_database", "key_service", "key_broker", "key_kind")
KeyRow = tuple[str, str, str, str, int]
# The same with the service of a message as it is written, whether or not anything names it; key_role is key_kind
# without the class of a service.
TEXTS = ("instance_name", "key_database", "to_service_name", "key_broker", "key_role")
PATH_KEY = ("instance_name", "key_database", "key_service", "key_broker", "key_from", "key_kind")
PathKeyRow = tuple[str, str, str, str, str, int]

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


def key_of(row: KeyRow, instance: Instance) -> Key:
    """Return what a row of the columns `KEY` means to the rules."""
    _, database, service, broker, kind = row
    named = _ADDRESSES.get(kind // SERVICE_FACTOR % CLASSES)
    return Key(
        database or None,
        service or None,
        _broker(broker, kind),
        bool(kind & 1),
        address_of_name(service, instance.own_addresses) if named is None else named,
    )


class PathKey(NamedTuple):
    """A row of `PATH_KEY`, read: ``back_to`` is the service to which a reply goes, None where none is known."""

    instance: str
    database: str | None
    to: Addressee
    broker: str | None
    back_to: Addressee | None
    is_initiator: bool


def path_key_of(row: PathKeyRow) -> PathKey:
    """Return what a row of the columns `PATH_KEY` means to the rules."""
    instance, database, service, broker, sender, kind = row
    of_sender = kind // FROM_FACTOR % CLASSES
    back_to = None if (of_sender, sender) == (KNOWN, "") else _addressee(of_sender, sender)
    to = _addressee(kind // SERVICE_FACTOR % CLASSES, service)
    return PathKey(instance, database or None, to, _broker(broker, kind), back_to, bool(kind & 1))


def _broker(broker: str, kind: int) -> str | None:
    return UNNAMED if kind & OTHER_BROKER else broker or None


def _addressee(kind: int, name: str) -> Addressee:
    """Return what the rules read of a name; of one that nothing names only its address, if it holds one."""
    if kind == KNOWN and name:
        return Addressee.of_name(name)
    if kind == OWN_ADDRESS:
        return Addressee(None, name or None, holds_address=True)
    return Addressee(None, None, holds_address=kind == ADDRESS_ELSEWHERE)
