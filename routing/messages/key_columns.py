"""The columns of a routing key, and what a row of them means to the rules."""

from __future__ import annotations

from routing.rules.deciding import UNNAMED, Key
from routing.rules.estate import Instance, NameAddress, address_of_name

KEY = ("instance_name", "key_database", "key_service", "key_broker", "key_kind")
KeyRow = tuple[str, str, str, str, int]
# The same with the service of a message as it is written, whether or not anything names it; key_role is key_kind
# without the class of a service.
TEXTS = ("instance_name", "key_database", "to_service_name", "key_broker", "key_role")

# Service classes: a known name; other names without an address, with one elsewhere, with an own address.
CLASSES = 4
KNOWN, NO_ADDRESS, ADDRESS_ELSEWHERE, OWN_ADDRESS = range(CLASSES)
_ADDRESSES = {
    NO_ADDRESS: NameAddress.NONE,
    ADDRESS_ELSEWHERE: NameAddress.ELSEWHERE,
    OWN_ADDRESS: NameAddress.OWN,
}
CLASS_OF = {address: number for number, address in _ADDRESSES.items()}
# key_kind = is_initiator + 2 * service class + 8 * (the broker id is one that nothing names).
SERVICE_FACTOR, OTHER_BROKER = 2, 8


def key_of(row: KeyRow, instance: Instance) -> Key:
    """What a row of the columns `KEY` means to the rules."""
    _, database, service, broker, kind = row
    is_other = bool(kind & OTHER_BROKER)
    named = _ADDRESSES.get(kind // SERVICE_FACTOR % CLASSES)
    return Key(
        database or None,
        service or None,
        UNNAMED if is_other else broker or None,
        bool(kind & 1),
        address_of_name(service, instance.own_addresses) if named is None else named,
    )
