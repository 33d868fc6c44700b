"""What CREATE ROUTE and ALTER ROUTE refuse, under the engine's own numbers (``sys.messages``).

Addresses are read as the tables read them: any case, blanks around and slashes after ignored.
"""

from __future__ import annotations

import re

from routing.importing.tsql.refusal import RefusalError, length
from routing.importing.tsql.script_statements import RouteOptions, quote
from routing.terms import BROKER_CONFIGURATION_SERVICE

LONGEST_LIFETIME = 2**31 - 1
_EMPTY, _TOO_LONG, _MIRROR_ALONE, _BROKER_ALONE = 9659, 9660, 9661, 9662
_MIRROR_NO_ADDRESS, _BAD_ADDRESS, _TRANSPORT_SERVICE, _LIFETIME, _SAME = (
    9743,
    9744,
    9745,
    9746,
    9747,
)
_BLANKS = " \t\n\r"
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[^/:\[\] \t\n\r]+)?\]|[^/:\[\] \t\n\r]+)"
_TCP = re.compile(rf"tcp://{_HOST}(?::[0-9]{{1,5}})?", re.IGNORECASE)
_KEYWORDS = ("local", "transport")


def check_options(options: RouteOptions) -> None:
    """Check each given option by itself. Raises RefusalError."""
    texts = (
        ("SERVICE_NAME", options.service_name, 256),
        ("BROKER_INSTANCE", options.broker_instance, 128),
        ("ADDRESS", options.address, 256),
        ("MIRROR_ADDRESS", options.mirror_address, 256),
    )
    for word, text, longest in texts:
        if text is None:
            continue
        if text == "":
            raise RefusalError(f"{word} is empty", _EMPTY)
        if length(text) > longest:
            raise RefusalError(f"{word} is longer than {longest} characters", _TOO_LONG)
    seconds = options.lifetime_seconds
    if seconds is not None and not 1 <= seconds <= LONGEST_LIFETIME:
        raise RefusalError(f"LIFETIME {seconds} is outside 1 to {LONGEST_LIFETIME}", _LIFETIME)
    address, mirror = options.address, options.mirror_address
    if address is not None and not (_comparable(address) in _KEYWORDS or _is_tcp(address)):
        raise RefusalError(f"ADDRESS {quote(address)} is not a valid address", _BAD_ADDRESS)
    if mirror is not None and _comparable(mirror) in _KEYWORDS:
        raise RefusalError(f"MIRROR_ADDRESS {quote(mirror)} is not a network address", _MIRROR_NO_ADDRESS)
    if mirror is not None and not _is_tcp(mirror):
        raise RefusalError(f"MIRROR_ADDRESS {quote(mirror)} is not a valid address", _BAD_ADDRESS)


def check_route(
    service_name: str | None,
    broker_instance: str | None,
    address: str | None,
    mirror_address: str | None,
) -> None:
    """Check a whole route's options together. Raises RefusalError."""
    nearby = address is not None and _comparable(address) in _KEYWORDS
    if mirror_address is not None:
        if nearby:
            raise RefusalError(f"a mirror address with ADDRESS {quote(str(address))}", _MIRROR_NO_ADDRESS)
        if service_name is None or broker_instance is None:
            raise RefusalError("MIRROR_ADDRESS without SERVICE_NAME and BROKER_INSTANCE", _MIRROR_ALONE)
        if address is not None and _comparable(address) == _comparable(mirror_address):
            raise RefusalError("ADDRESS and MIRROR_ADDRESS are the same", _SAME)
    if broker_instance is not None and service_name is None:
        raise RefusalError("BROKER_INSTANCE without SERVICE_NAME", _BROKER_ALONE)
    if broker_instance is not None and service_name == BROKER_CONFIGURATION_SERVICE:
        why = f"a route to the service {BROKER_CONFIGURATION_SERVICE} takes no BROKER_INSTANCE"
        raise RefusalError(why, by_server=True)
    if address is None:
        raise RefusalError("ADDRESS is missing", by_server=True)
    if service_name is not None and _comparable(address) == "transport":
        raise RefusalError("ADDRESS 'TRANSPORT' with SERVICE_NAME", _TRANSPORT_SERVICE)


def _comparable(address: str) -> str:
    return address.strip(_BLANKS).lower().rstrip("/")


def _is_tcp(address: str) -> bool:
    return _TCP.fullmatch(_comparable(address)) is not None
