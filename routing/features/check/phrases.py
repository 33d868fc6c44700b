"""How names, reasons and gaps read in a check's text; what comes from the data is printable and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from routing.features.check.missing_knowledge import KnowledgeGap
from routing.features.check.pasting import named
from routing.features.explain.background import StatusText
from routing.render.wording import count, format_time, printable
from routing.terms import Reason

SHOWN = 20
"""So many of a list are printed, the others counted."""
_LONGEST, _LONGEST_STATUS = 300, 4_000
# An apostrophe within a word is none.
_QUOTE = re.compile(r"(?<!\w)'|'(?!\w)")
_SENTENCE_ENDS = re.compile(r"(?<=[.]) (?=[A-Z])")

REASON_WORDS = {
    Reason.LOCAL_SERVICE: "the service is in this instance, and a LOCAL route leads to it",
    Reason.NETWORK_ADDRESS: "a route leads to a network address",
    Reason.MIRROR_ADDRESS: "a route leads to an address and its mirror",
    Reason.TRANSPORT_ADDRESS: "a TRANSPORT route leads to the address in the service's name",
    Reason.ROUTE_REQUESTED: "a route is being asked for, and the conversation waits until that request ends",
    Reason.NO_ROUTE: "no route matches the service",
    Reason.SERVICE_NOT_FOUND: "a LOCAL route matches, and no database of the instance holds the service",
    Reason.BROKER_INSTANCE_NOT_FOUND: "no database that holds the service has the broker instance that they are"
    " bound to",
    Reason.BROKER_DISABLED: "the broker of the database that holds the service is off",
    Reason.SCOPE_BROKER_DISABLED: "the broker of the database whose routes are searched is off",
    Reason.TRANSPORT_ADDRESS_INVALID: "a TRANSPORT route takes the address from the service name, which has none",
    Reason.FORWARDING_DISABLED: "they have to be forwarded, and forwarding is off",
    Reason.HOP_LIMIT: "they have no hops left",
    Reason.ROUTING_LOOP: "a route leads back to the instance that they come from",
    Reason.DIALOG_EXPIRED: "the lifetime of their dialog is over",
}
"""Why messages have their outcome."""


def bounded(sentences: Iterable[str], total: int) -> Iterator[str]:
    """Yield the first sentences of a list, and how many more it has."""
    yield from (sentence for sentence, _ in zip(sentences, range(SHOWN), strict=False))
    if total > SHOWN:
        yield f"and {total - SHOWN:,} more (--format json has all)"


def shorten(sentences: Iterable[str], most: int | None) -> Iterator[str]:
    """Yield the first ``most`` sentences and how many more there are; all of them where that is None."""
    every = list(sentences)
    yield from every[:most]
    if most is not None and len(every) > most:
        yield f"and {len(every) - most:,} more (--verbose lists all)"


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text; an end within a name in quotes is none."""
    parts: list[str] = []
    for part in _SENTENCE_ENDS.split(text):
        if parts and len(_QUOTE.findall(parts[-1])) % 2:
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def where(instance: str, database: str | None) -> str:
    """Write an instance, or a database with its instance."""
    return named(instance) if database is None else f"{named(instance)}, database {named(database)}"


def gap_sentence(gap: KnowledgeGap) -> str:
    """Write a gap as a sentence, with the view to export."""
    return f"{where(gap.instance, gap.database)}: {gap.what.words}; export {gap.what.view}"


def when(time: datetime) -> str:
    """Return a UTC time in whole seconds."""
    return format_time(time.replace(microsecond=0))


def status(status_text: StatusText) -> str:
    """Return a status with its number, its text as long as SQL Server's may be: its end may say what to do."""
    number = "" if status_text.number is None else f"{status_text.number}, "
    return f"{number}'{printable((status_text.text or '')[:_LONGEST_STATUS])}'"


def cut(text: str) -> str:
    """Return a text from the data or about it: printable, and not endless."""
    shown = printable(text[: _LONGEST + 1])
    return shown if len(text) <= _LONGEST else f"{shown[:_LONGEST]}…"


def join_words(words: Iterable[str], most: int = 3) -> str:
    """Return words as a list in a sentence: "a, b and c", "a, b, c and 2 more"."""
    every = list(words)
    if len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most:,} more"
    return " and ".join(part for part in (", ".join(every[:-1]), *every[-1:]) if part)


def count_places(names: Iterable[str], noun: str) -> str:
    """Return the only name, or how many there are: "service '//a'", "40 services"."""
    every = set(names)
    return f"{noun} {named(next(iter(every)))}" if len(every) == 1 else count(len(every), noun)
