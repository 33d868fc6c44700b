"""Why a statement is left out."""

from __future__ import annotations

import re

from routing.importing.tsql.script_statements import RouteOptions, quote
from routing.importing.tsql.vocabulary import UnknownVariable
from routing.terms import BROKER_CONFIGURATION_SERVICE

SYNTAX = 102
RESERVED_WORD = 156
JOINED = "it is built by string concatenation, where SQL Server takes a literal alone"

# What these miss may be there, for all that a script says.
_MISSING = frozenset([3701, 5011, 15010, 15151])


class RefusalError(Exception):
    """A statement that cannot be known or that the engine refuses: why, and the engine's number.

    ``by_server``: the engine is sure to refuse it, as where it has a number for that, unless something is missing.
    """

    def __init__(self, why: str, number: int | None = None, *, by_server: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.number = number
        self.by_server = by_server or (number is not None and number not in _MISSING)


class UntoldError(RefusalError):
    """A statement that is taken to succeed, of which nothing tells what it leaves: it is named and not applied."""


class UnparsedError(RefusalError):
    """A text that SQL Server surely cannot parse: nothing of the batch runs, since it is parsed before."""

    def __init__(self, why: str, number: int | None = SYNTAX) -> None:
        super().__init__(why, number, by_server=True)


def length(text: str) -> int:
    """Return the length that SQL Server counts, in UTF-16 units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def phrase_unknown(variable: UnknownVariable) -> str:
    """Say that the beginning of a sentence on a place that has no value."""
    if variable.is_of_sqlcmd:
        return f"sqlcmd variable {quote(variable.name)} has no value"
    return f"the placeholder {quote(variable.written)} of a migration tool has no value"


def no_value(variable: UnknownVariable) -> RefusalError:
    """Return the error that a place in a text has no value."""
    # A tool's own statement, such as #{if broker}, is no name.
    advice = (
        f"give it with -v {variable.name}=VALUE" if " " not in variable.name else "let the tool fill it in first"
    )
    return RefusalError(f"{phrase_unknown(variable)}: {advice}")


def known_to_the_server(variable: str) -> RefusalError:
    """Return the error that only the server knows a T-SQL variable's value."""
    return RefusalError(f"the value of the variable {quote(variable)} is known to the server alone")


# What CREATE ROUTE and ALTER ROUTE refuse, under the engine's own numbers (``sys.messages``).
#
# Addresses are read as the tables read them: any case, blanks around and slashes after ignored.


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
