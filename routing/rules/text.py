"""Compare ids, names and addresses, and parse addresses (rule book, sections 0 and 3)."""

from __future__ import annotations

import re
from functools import lru_cache

from routing.terms import BLANKS, LOCAL_ADDRESS, TRANSPORT_ADDRESS, ZERO_GUID

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_FOLDING = str.maketrans(_UPPER, _LOWER)
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[^/:\[\] \t\n\r]+)?\]|[^/:\[\] \t\n\r]+)"
_SCHEME = r"[tT][cC][pP]://"
ADDRESS_WITH_PORT = rf"{_SCHEME}{_HOST}:[0-9]{{1,5}}"
"""The pattern of an address, which means the same in Python, Java and RE2."""
_TCP_ADDRESS = re.compile(rf"{_SCHEME}({_HOST})(?::([0-9]{{1,5}}))?")
_ADDRESS_IN_NAME = re.compile(rf"({ADDRESS_WITH_PORT})(?:/|\Z)")
_HEX = "[0-9a-fA-F]"
GUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
"""The pattern of a GUID."""
_GUID = re.compile(GUID)

# Many rows share a few ids and addresses.
_REMEMBERED = lru_cache(maxsize=10_000)


class UndecodedText(str):
    r"""A text from bytes that are not UTF-8. Each undecodable byte is written ``\xNN``."""

    __slots__ = ()


def decode_utf8(data: bytes) -> str:
    r"""Return the text of bytes, or an `UndecodedText` if they are not UTF-8.

    >>> decode_utf8(b"caf\xe9")
    'caf\\xe9'
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return UndecodedText(data.decode("utf-8", "backslashreplace"))


def fold(text: str) -> str:
    """Return the text with A to Z in lower case and all other characters unchanged."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def machine_of(instance: str) -> str:
    """Return the folded name of an instance's machine: the part before the backslash of a named instance."""
    return fold(instance.partition("\\")[0])


def collated(name: str) -> str:
    """Fold a name like a case-insensitive collation, without trailing blanks. No rule uses this."""
    return name.rstrip(" ").casefold()


def empty_as_null(text: str | None) -> str | None:
    """Return None for empty text in an optional column (section 0)."""
    return text or None


@_REMEMBERED
def broker_id(text: str | None) -> str | None:
    """Return a broker instance in its form for comparison: folded, without blanks and braces. Zeros are None."""
    if text is None:
        return None
    folded = fold(_bare(text))
    return None if folded in ("", ZERO_GUID) else folded


def _bare(text: str) -> str:
    """Return a text without the blanks and braces that tools print around a GUID."""
    bare = text.strip(BLANKS)
    return bare[1:-1].strip(BLANKS) if bare.startswith("{") and bare.endswith("}") else bare


def is_guid(text: str | None) -> bool:
    """Return True if a text is a GUID of 36 characters, in any case and without braces."""
    return text is not None and _GUID.fullmatch(text) is not None


def printed_guid(text: str) -> str | None:
    """Return the folded GUID of a text with or without braces and blanks, or None if it is not a GUID."""
    bare = _bare(text)
    return fold(bare) if is_guid(bare) else None


@_REMEMBERED
def comparable_address(address: str) -> str:
    """Return an address in its form for comparison: folded, without outer blanks and final slashes (section 3)."""
    return fold(address.strip(BLANKS)).rstrip("/")


@_REMEMBERED
def is_local(address: str | None) -> bool:
    """Return True if an address is the keyword LOCAL, in any case."""
    return address is not None and comparable_address(address) == fold(LOCAL_ADDRESS)


@_REMEMBERED
def is_transport(address: str | None) -> bool:
    """Return True if an address is the keyword TRANSPORT, in any case."""
    return address is not None and comparable_address(address) == fold(TRANSPORT_ADDRESS)


@_REMEMBERED
def is_tcp(address: str | None) -> bool:
    """Return True if an address is ``tcp://HOST`` with an optional port (tables.md)."""
    return address is not None and _TCP_ADDRESS.fullmatch(comparable_address(address)) is not None


@_REMEMBERED
def host(address: str | None) -> str | None:
    """Return the folded host of a tcp address, or None."""
    match = None if address is None else _TCP_ADDRESS.fullmatch(comparable_address(address))
    return match[1] if match else None


@_REMEMBERED
def port(address: str | None) -> str | None:
    """Return the port of a tcp address as text, or None."""
    match = None if address is None else _TCP_ADDRESS.fullmatch(comparable_address(address))
    return match[2] if match else None


def address_in_name(service_name: str | None) -> str | None:
    """Return the address that a TRANSPORT route reads from a service name, or None (section 3)."""
    match = None if service_name is None else _ADDRESS_IN_NAME.match(service_name)
    return match[1] if match else None


# Compare the spelling of names, for advice. No rule uses this.


CASE, AROUND, SLASH = "NAME_CASE", "NAME_BLANKS", "NAME_SLASH"
SPELLINGS = (CASE, AROUND, SLASH)
OTHER_SERVICE, OTHER_BROKER, NO_SERVICE = "OTHER_SERVICE", "OTHER_BROKER_INSTANCE", "NO_SERVICE_NAME"
EXPIRED, NOT_YET = "EXPIRED", "NOT_YET_VALID"
BROKER_OFF = "BROKER_DISABLED"
_EDGE = f"{BLANKS}/"
_NO_BLANKS = str.maketrans("", "", BLANKS)


class SpelledName:
    """A service name that is compared with many others. It may be very long, so it is analysed once."""

    def __init__(self, name: str) -> None:
        self._core, self._edges = name_core(name), name_edges(name)
        self._likeness = self._core.lower()

    def list_differences(self, named: str) -> list[str]:
        """List how another name differs from this one.

        The codes are CASE, AROUND (outer blanks) and SLASH (final slashes), or only OTHER_SERVICE.
        """
        core = name_core(named)
        if self._likeness != core.lower():
            return [OTHER_SERVICE]
        (before, after), (its_before, its_after) = self._edges, name_edges(named)
        blanks = (before, after.replace("/", "")) != (its_before, its_after.replace("/", ""))
        slashes = [end.translate(_NO_BLANKS) for end in (after, its_after)]
        differing = {CASE: self._core != core, AROUND: blanks, SLASH: slashes[0] != slashes[1]}
        return [name for name, differs in differing.items() if differs]


def likeness(name: str) -> str:
    """Return the common form of names that differ only in case, outer blanks or final slashes."""
    return name_core(name).lower()


def name_core(name: str) -> str:
    """Return a name without outer blanks and final slashes."""
    return name.rstrip(_EDGE).lstrip(BLANKS)


def name_edges(name: str) -> tuple[str, str]:
    """Return the characters that `name_core` leaves out, before and after."""
    return name[: len(name) - len(name.lstrip(BLANKS))], name[len(name.rstrip(_EDGE)) :]
