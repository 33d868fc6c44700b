"""Convert names, broker instances and addresses for comparison (rule book, 0 and 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

BLANKS = " \t\n\r"
# Case is ignored only for these letters.
_SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
ZERO_GUID = "00000000-0000-0000-0000-000000000000"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]", ".")

# ASCII digits and letters are spelled out, because \d and IGNORECASE would also match other scripts.
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[^%/\[\] \t\n\r]+)?\]|[^/:\[\] \t\n\r]+)"
_TCP = r"[Tt][Cc][Pp]://"
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ADDRESS = re.compile(rf"{_TCP}{_HOST}(?::([0-9]{{1,5}}))?")
_SERVICE_ADDRESS = re.compile(rf"({_TCP}{_HOST}:[0-9]{{1,5}})(?:/.*)?", re.DOTALL)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_or_none(value: str | None) -> str | None:
    """Read empty text as null. Blanks are text."""
    return value or None


def is_guid(value: str) -> bool:
    """Return whether a conversation id is a GUID of 36 characters without braces or blanks."""
    return _GUID.fullmatch(value) is not None


@lru_cache(maxsize=65536)
def broker_id(value: str | None) -> str | None:
    """Read a broker instance in the compared form, or None if it is not an id.

    Blanks around it, one pair of braces and the blanks inside are ignored, and so is the case of A to Z. Empty
    text and the all-zero GUID are not ids.
    """
    if value is None:
        return None
    inner = value.strip(BLANKS)
    if len(inner) >= 2 and inner[0] == "{" and inner[-1] == "}":
        inner = inner[1:-1].strip(BLANKS)
    inner = inner.translate(_SMALL)
    return None if inner in ("", ZERO_GUID) else inner


@lru_cache(maxsize=65536)
def address_key(address: str) -> str:
    """Read an address in the compared form: A to Z in lower case, without blanks around or slashes after it."""
    return address.strip(BLANKS).rstrip("/").translate(_SMALL)


def is_address(address: str) -> bool:
    """Return whether a text is a valid network address, with blanks around or slashes after it."""
    return _ADDRESS.fullmatch(address_key(address)) is not None


@lru_cache(maxsize=65536)
def service_address(service: str) -> str | None:
    """Read the `tcp://HOST:PORT` at the start of a service name, unchanged.

    Returns None if the name does not start with an address, or continues with anything but a slash.
    """
    match = _SERVICE_ADDRESS.fullmatch(service)
    return match.group(1) if match else None


def own_address_keys(addresses: Iterable[str | None] | None) -> frozenset[str]:
    """List all addresses of an instance in the compared form.

    These are its own addresses, and the loopback hosts with the port of any of them, digit for digit. An address
    without a port adds no loopback host.
    """
    keys = {address_key(address) for address in addresses or () if address}
    ports = {found.group(1) for key in keys if (found := _ADDRESS.fullmatch(key))} - {None}
    return frozenset(keys | {f"tcp://{host}:{port}" for host in LOOPBACK_HOSTS for port in ports})


def missing_route_body(namespace: str, service: str) -> str:
    """Return the MissingRoute message that asks for a route to a service (rule book, 5)."""
    name = service.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    name = _NOT_XML.sub("\ufffd", name)
    return f'<MissingRoute xmlns="{namespace}"><SERVICE_NAME>{name}</SERVICE_NAME></MissingRoute>'
