"""Phrase names, places and lists for printed answers. Data becomes printable and bounded in length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from routing.render.wording import count, format_time, printable

_SHOWN = 80


_T = TypeVar("_T")


def named(name: str | None) -> str:
    """Return a name from the data within a sentence: in quotes, printable, and bounded."""
    return quote_name(name or "", _SHOWN)


SHOWN = 20
"""So many of a list are printed, the others counted."""


_LONGEST = 300
LONGEST_STATUS = 4_000
"""The maximal length of a displayed status. Its end may contain advice."""


def bounded(sentences: Iterable[str], total: int) -> Iterator[str]:
    """Yield the first sentences of a list, and how many more it has."""
    yield from (sentence for sentence, _ in zip(sentences, range(SHOWN), strict=False))
    if total > SHOWN:
        yield f"and {total - SHOWN:,} more (--format json has all)"


def shorten(items: Iterable[_T], most: int | None, state: Callable[[_T], str] = str) -> Iterator[str]:
    """Yield sentences on the first ``most`` items and the number of the rest. None means all."""
    all_items = list(items)
    yield from map(state, all_items[:most])
    if most is not None and len(all_items) > most:
        yield f"and {len(all_items) - most:,} more (--verbose lists all)"


def where(instance: str, database: str | None) -> str:
    """Write an instance, or a database with its instance."""
    return named(instance) if database is None else f"{named(instance)}, database {named(database)}"


def when(time: datetime) -> str:
    """Return a UTC time in whole seconds."""
    return format_time(time.replace(microsecond=0))


def cut(text: str, longest: int = _LONGEST) -> str:
    """Return a text from the data or about it: printable, and not endless."""
    return printable(text if len(text) <= longest else f"{text[:longest]}…")


def quote_log(instance: str, line: str) -> str:
    """Return a sentence that quotes a line of an instance's error log."""
    return f"The error log of {named(instance)} says: {cut(line)}"


def join_words(words: Iterable[str], most: int = 3) -> str:
    """Return words as a list in a sentence: "a, b and c" or "a, b, c and 2 more"."""
    all_words = list(words)
    if len(all_words) > most:
        return f"{', '.join(all_words[:most])} and {len(all_words) - most:,} more"
    return " and ".join(part for part in (", ".join(all_words[:-1]), *all_words[-1:]) if part)


def count_places(names: Iterable[str], noun: str) -> str:
    """Return the only name, or how many there are: "service '//a'", "40 services"."""
    distinct_names = set(names)
    return (
        f"{noun} {named(next(iter(distinct_names)))}"
        if len(distinct_names) == 1
        else count(len(distinct_names), noun)
    )


def quote_name(value: object, longest: int = _LONGEST) -> str:
    """Return a name from the data in quotes, printable and of bounded length."""
    return f"'{cut(str(value), longest)}'"
