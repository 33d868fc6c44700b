"""Phrase names, reasons and gaps for a check's text; what comes from the data is printable and bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import count as itertools_count
from typing import TypeVar

from routing.features.check.path_ends import KnowledgeGap
from routing.features.explain.background import StatusText
from routing.features.explain.path_sentences import quote_name
from routing.importing.tsql.script_statements import length
from routing.importing.tsql.vocabulary import INVISIBLE, VARIABLE
from routing.render.wording import count, format_time, printable
from routing.rules.text import collated
from routing.terms import Reason

# T-SQL to paste: names and texts of the estate as literals, or no statement where one could not be pasted
# safely.
#
# A statement is None as soon as a part of it is: who puts one together asks once, at the end.


SYSNAME, LONGEST_TEXT = 128, 256
"""The most UTF-16 units of an object's name and of a broker instance; of a service name and an address."""
UNNAMED_DATABASE = "(not named)"
"""A database of whose exports nothing tells the name: statements do not name it."""
_SHOWN = 80
_T = TypeVar("_T")
# What tools read before the server does: sqlcmd's variables, placeholders of migration tools, and places of a
# template that are to be filled in. A replacement character stands where an encoding could not be read: the real
# name is another. And `*/` would end a comment that somebody puts around the statement.
_READ_BY_TOOLS = re.compile(rf"\*/|\$\(|\ufffd|<[^<>,]+,[^<>,]*,[^<>]*>|{VARIABLE.pattern}")


def named(name: str | None) -> str:
    """Return a name from the data within a sentence: in quotes, printable, and bounded."""
    shown = name or ""
    return quote_name(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…")


def can_be_pasted(text: str | None, longest: int) -> bool:
    """Return whether editors, comments and sqlcmd pass a text on as it is, and the server takes its length."""
    return (
        bool(text)
        and text is not None
        and text.isprintable()
        and _READ_BY_TOOLS.search(text) is None
        and INVISIBLE.search(text) is None
        and length(text) <= longest
    )


def identifier(name: str | None) -> str | None:
    """Return a name in brackets."""
    if name is None or name == UNNAMED_DATABASE or not can_be_pasted(name, SYSNAME):
        return None
    return f"[{name.replace(']', ']]')}]"


def literal(text: str | None, longest: int = LONGEST_TEXT) -> str | None:
    """Return a text in quotes."""
    if text is None or not can_be_pasted(text, longest):
        return None
    return f"N'{text.replace(chr(39), chr(39) * 2)}'"


def with_clause(
    service: str | None = None,
    broker: str | None = None,
    address: str | None = None,
    mirror: str | None = None,
) -> str | None:
    """Return the WITH clause of a route statement with what is given; None where a given text cannot be pasted."""
    values_by_word = {
        "SERVICE_NAME": (service, LONGEST_TEXT),
        "BROKER_INSTANCE": (broker, SYSNAME),
        "ADDRESS": (address, LONGEST_TEXT),
        "MIRROR_ADDRESS": (mirror, LONGEST_TEXT),
    }
    parts = []
    for word, (text, longest) in values_by_word.items():
        if text is None:
            continue
        quoted = literal(text, longest)
        if quoted is None:
            return None
        parts.append(f"{word} = {quoted}")
    return " WITH " + ", ".join(parts)


def create_route(name: str | None, clause: str | None) -> str | None:
    """Write CREATE ROUTE; None where the name cannot be pasted."""
    return _together("CREATE ROUTE ", identifier(name), clause, ";")


def alter_route(name: str | None, clause: str | None) -> str | None:
    """Write ALTER ROUTE; options that the clause leaves out stay as they are."""
    return _together("ALTER ROUTE ", identifier(name), clause, ";")


def replace_route(name: str | None, clause: str | None) -> list[str | None]:
    """Write DROP ROUTE and CREATE ROUTE as one transaction, of which an error undoes everything.

    For an option that has to go away: ALTER ROUTE keeps each one that it does not name.
    """
    return [
        "SET XACT_ABORT ON;",
        "BEGIN TRANSACTION;",
        _together("DROP ROUTE ", identifier(name), ";"),
        create_route(name, clause),
        "COMMIT TRANSACTION;",
    ]


def enable_broker(database: str) -> str | None:
    """Write ALTER DATABASE that keeps the broker instance, and gives up at once where others use the database."""
    return _together("ALTER DATABASE ", identifier(database), " SET ENABLE_BROKER WITH NO_WAIT;")


def new_broker(database: str) -> str | None:
    """Write ALTER DATABASE that gives a database another broker instance, and so ends all its dialogs."""
    return _together("ALTER DATABASE ", identifier(database), " SET NEW_BROKER WITH ROLLBACK IMMEDIATE;")


def in_database(database: str, lines: Iterable[str | None]) -> str | None:
    """Return statements, a line each, and before them the database that they are run in, if it has a name."""
    use = [] if database == UNNAMED_DATABASE else [_together("USE ", identifier(database), ";")]
    every = [*use, *lines]
    pasted_lines = [line for line in every if line is not None]
    return "\n".join(pasted_lines) if len(pasted_lines) == len(every) else None


def as_comment(text: str | None) -> str | None:
    """Return a statement with every line a comment: a value is to be put into it first."""
    return None if text is None else "\n".join(f"-- {line}" for line in text.split("\n"))


def new_name(service: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name for a new route to a service; ``is_taken`` is asked by folded names (`text.collated`)."""
    for number in itertools_count(1):
        ending = "" if number == 1 else f" {number}"
        name = f"Route to {service}"[:SYSNAME]
        while length(name + ending) > SYSNAME:
            name = name[:-1]
        if not is_taken(collated(name + ending)):
            return name + ending
    raise AssertionError("numbers do not end")


def _together(*parts: str | None) -> str | None:
    pasted_parts = [part for part in parts if part is not None]
    return "".join(pasted_parts) if len(pasted_parts) == len(parts) else None


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


def shorten(things: Iterable[_T], most: int | None, state: Callable[[_T], str] = str) -> Iterator[str]:
    """Yield sentences on the first ``most`` things and how many more there are; on all where that is None."""
    every = list(things)
    yield from map(state, every[:most])
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
