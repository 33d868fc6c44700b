"""The small alphabet of the random estates, and the spellings of a name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TypeVar

T = TypeVar("T")

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
MOMENTS = (
    NOON - HOUR,
    NOON,
    NOON + MICROSECOND,
    NOON + HOUR - MICROSECOND,
    NOON + HOUR,
    NOON + HOUR + timedelta(microseconds=123456),
    NOON + 2 * HOUR,
    NOON + timedelta(days=1, microseconds=999999),
)
"""All times of the estates, in order. A bound is hit exactly, or missed by a microsecond."""

ZERO = "00000000-0000-0000-0000-000000000000"
BROKER_IDS = (
    "aaaaaaaa-1111-4111-8111-111111111111",
    "bbbbbbbb-2222-4222-8222-222222222222",
    "cccccccc-3333-4333-8333-333333333333",
    "DatabaseA",
    "Éclair",
    # After the emoji in UTF-16, before it by code point.
    "\uff5a-id",
    "\U0001f600-id",
)
NO_BROKER_IDS = (None, None, None, "", " ", "{}", "\t{ }\n", ZERO, "{" + ZERO + "}")
CONVERSATIONS = (
    ZERO,
    *(f"d0000000-0000-4000-8000-00000000000{digit}" for digit in "123456789abcde"),
)
CONFIGURATION_SERVICE = "SQL/ServiceBroker/BrokerConfiguration"
UNROUTED_SERVICE = "Else & <where>"
"""A service that no route names, so that messages ask the BrokerConfiguration service for a route."""
PLAIN_SERVICES = ("Billing", "billing", "Billing ", "Ship & <Track> \"'", "\u0001Odd\uffff")
OWN_SERVICES = (
    "tcp://hub:4022/Billing",
    "TCP://HUB:4022",
    "tcp://localhost:4022//x",
    "tcp://.:4022/",
    "tcp://[::1]:5022/y",
    "tcp://127.0.0.1:4022",
)
FAR_SERVICES = (
    "tcp://far.example:4022/Billing",
    "tcp://[2001:DB8::7]:04022/Billing",
    "Tcp://far.example:1",
    "tcp://localhost:40220",
    "tcp://far.example:4022/a\nb",
)
# Each begins almost like an address.
BROKEN_SERVICES = (
    "tcp://far.example/Billing",
    "tcp://far:40a/x",
    "tcp://far:123456/x",
    "tcp://far:4022\n",
    " tcp://far:4022/x",
    "tcp://[far]:4022/x",
    "tcp://:4022/x",
    "tcps://far:4022/x",
)
ROUTE_NAMES = (
    "A",
    "B",
    "a",
    "A ",
    "AutoCreatedLocal",
    "Zone",
    "\u00c4",
    "\uff5a",
    "\U0001f600",
    "10",
    "9",
)
DATABASE_NAMES = ("Alpha", "alpha", "Beta", "MSDB", "\uff5a", "\U0001f600")
MESSAGE_IDS = ("m", "M", "\uff5a", "\U0001f600")
OWN_ADDRESSES: tuple[list[str | None] | None, ...] = (
    ["tcp://hub:4022"],
    ["TCP://Hub:4022/", "tcp://[::1]:5022"],
    [None, "", " tcp://HUB:4022// ", "tcp://10.0.0.5:5022"],
    ["tcp://hub"],
    [],
    None,
)
OWN_TARGETS = (
    "tcp://hub:4022",
    "tcp://10.0.0.5:5022",
    "tcp://localhost:4022",
    "tcp://127.0.0.1:5022",
    "tcp://[::1]:5022",
    "tcp://.:4022",
)
FAR_TARGETS = ("tcp://far:4022", "tcp://far:5022", "tcp://far", "tcp://[fe80::1%eth0]:4022")


def maybe(rng: random.Random, share: float, value: T) -> T | None:
    """Return the value in a share of the calls, otherwise None."""
    return value if rng.random() < share else None


def pick(rng: random.Random, *choices: tuple[float, Sequence[T]]) -> T:
    """Pick one of several sequences by weight, then one of its elements."""
    weights = [weight for weight, _ in choices]
    sequence = rng.choices([sequence for _, sequence in choices], weights)[0]
    return rng.choice(sequence)


def cased(rng: random.Random, text: str) -> str:
    """Spell a text unchanged, or in upper, lower or swapped case."""
    return rng.choice((text, text, text.upper(), text.lower(), text.swapcase()))


def spelt_id(rng: random.Random, broker_id: str) -> str:
    """Spell a broker instance: case, braces, blanks around and inside the braces."""
    text = cased(rng, broker_id)
    return rng.choice((text, text, f"{{{text}}}", f" {{ {text}\t}}\r\n", f"\n{text} "))


def spelt_address(rng: random.Random, address: str) -> str:
    """Spell an address or keyword: case, blanks around, slashes after."""
    text = cased(rng, address) + rng.choice(("", "", "", "/", "//"))
    return rng.choice((text, text, text, f" {text}", f"{text}\t\n"))
