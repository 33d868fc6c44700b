"""Write T-SQL statements and quote their names. Text from the data is printable and bounded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import count as itertools_count
from zlib import crc32

from routing.cases.exported_files import UNNAMED_DATABASE
from routing.importing.tsql.script_statements import length
from routing.importing.tsql.vocabulary import INVISIBLE, VARIABLE, find_unfilled
from routing.rules.text import collated

# T-SQL to paste: names and texts of the estate as literals, or no statement where one could not be pasted
# safely.
#
# A statement is None as soon as a part of it is: who puts one together asks once, at the end.


SYSNAME, LONGEST_TEXT = 128, 256
"""Length limits in UTF-16 units: object names and broker instances, then service names and addresses."""
_MANY_NAMES = 10_000
# What tools read before the server does: sqlcmd's variables, placeholders of migration tools, and places of a
# template that are to be filled in. A replacement character stands where an encoding could not be read: the real
# name is another. And `*/` would end a comment that somebody puts around the statement.
_READ_BY_TOOLS = re.compile(rf"\*/|\$\(|\ufffd|<[^<>,]+,[^<>,]*,[^<>]*>|{VARIABLE.pattern}")


def can_be_pasted(text: str | None, longest: int) -> bool:
    """Return True if editors, comments and sqlcmd keep a text unchanged, and the server accepts its length."""
    return (
        bool(text)
        and text is not None
        and text.isprintable()
        and _READ_BY_TOOLS.search(text) is None
        and find_unfilled(text) is None
        and INVISIBLE.search(text) is None
        and length(text) <= longest
    )


@lru_cache(maxsize=_MANY_NAMES)
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
    service: str | None = None, broker: str | None = None, address: str | None = None, mirror: str | None = None
) -> str | None:
    """Return the WITH clause of a route statement, or None if a given text cannot be pasted."""
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


def lead_to(host: str | None, port: int | str | None) -> str | None:
    """Return the WITH clause of an address, with a place to fill in for a host or port that is None."""
    if host is not None and not can_be_pasted(host, LONGEST_TEXT):
        return None
    shown = "<host>" if host is None else host.replace(chr(39), chr(39) * 2)
    return f" WITH ADDRESS = N'TCP://{shown}:{'<port>' if port is None else port}'"


def create_route(name: str | None, clause: str | None) -> str | None:
    """Write CREATE ROUTE, or return None if the name cannot be pasted."""
    return _join_known("CREATE ROUTE ", identifier(name), clause, ";")


def alter_route(name: str | None, clause: str | None) -> str | None:
    """Write ALTER ROUTE. Options outside the clause stay unchanged."""
    return _join_known("ALTER ROUTE ", identifier(name), clause, ";")


def drop_route(name: str | None) -> str | None:
    """Write DROP ROUTE, or return None if the name cannot be pasted."""
    return _join_known("DROP ROUTE ", identifier(name), ";")


def replace_route(name: str | None, clause: str | None) -> list[str | None]:
    """Write DROP ROUTE and CREATE ROUTE as one transaction, which any error rolls back.

    For an option that has to go away: ALTER ROUTE keeps each one that it does not name.
    """
    return [
        "SET XACT_ABORT ON;",
        "BEGIN TRANSACTION;",
        drop_route(name),
        create_route(name, clause),
        "COMMIT TRANSACTION;",
    ]


def alter_database(database: str | None, option: str) -> str | None:
    """Write ALTER DATABASE … SET, or return None if the name cannot be pasted."""
    return _join_known("ALTER DATABASE ", identifier(database), f" SET {option};")


def own_database(database: str | None, login: str) -> str | None:
    """Write ALTER AUTHORIZATION that gives a database to a login."""
    return _join_known("ALTER AUTHORIZATION ON DATABASE::", identifier(database), " TO ", identifier(login), ";")


def enable_broker(database: str | None) -> str | None:
    """Write ALTER DATABASE that keeps the broker instance, and fails at once if others use the database."""
    return alter_database(database, "ENABLE_BROKER WITH NO_WAIT")


def in_database(database: str, lines: Iterable[str | None]) -> str | None:
    """Join statements, one per line, after a USE for the database if its name is known."""
    use = [] if database == UNNAMED_DATABASE else [_join_known("USE ", identifier(database), ";")]
    all_lines = [*use, *lines]
    pasted_lines = [line for line in all_lines if line is not None]
    return "\n".join(pasted_lines) if len(pasted_lines) == len(all_lines) else None


def as_comment(text: str | None) -> str | None:
    """Return a statement with every line as a comment, because it needs a value first."""
    return None if text is None else "-- " + text.replace("\n", "\n-- ")


def new_name(service: str, clause: str | None, names_in_use: Collection[str], *, is_one_of_many: bool) -> str:
    """Return an unused name for a new route to a service. ``names_in_use`` are folded (`text.collated`).

    A name that other new routes might get ends with a checksum of the options: it is ``is_one_of_many``, or the
    service does not fit into it.
    """
    whole = f"Route to {service}"
    distinguishing = ""
    if is_one_of_many or length(whole) > SYSNAME:
        distinguishing = f" {crc32((clause or '').encode('utf-8', 'surrogatepass')):08x}"
    for number in itertools_count(1):
        ending = distinguishing + ("" if number == 1 else f" {number}")
        name = whole[:SYSNAME]
        while length(name + ending) > SYSNAME:
            name = name[:-1]
        if collated(name + ending) not in names_in_use:
            return name + ending
    raise AssertionError("numbers do not end")


def _join_known(*parts: str | None) -> str | None:
    pasted_parts = [part for part in parts if part is not None]
    return "".join(pasted_parts) if len(pasted_parts) == len(parts) else None
