"""How names, numbers and gaps read in a check's text; what comes from the data is printable and bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from routing.analysis.check.missing import Gap
from routing.analysis.check.pasting import named
from routing.analysis.explain.background import Status
from routing.analysis.explain.wording import moment
from routing.render.wording import printable

SHOWN = 20
"""So many of a list are printed, the others counted."""
_LONGEST, _LONGEST_STATUS = 300, 4_000


def bounded(sentences: Iterable[str], total: int) -> Iterator[str]:
    """The first sentences of a list, and how many more it has."""
    yield from (sentence for sentence, _ in zip(sentences, range(SHOWN), strict=False))
    if total > SHOWN:
        yield f"and {total - SHOWN:,} more (--format json has all)"


def where(instance: str, database: str | None) -> str:
    """An instance, or a database of it."""
    return named(instance) if database is None else f"{named(instance)}, database {named(database)}"


def gap_sentence(gap: Gap) -> str:
    """What is not known, and the view to export."""
    return f"{where(gap.instance, gap.database)}: {gap.what.words}; export {gap.what.view}"


def when(time: datetime) -> str:
    """A UTC time in whole seconds."""
    return moment(time.replace(microsecond=0))


def status(said: Status) -> str:
    """Return a status with its number, its text as long as SQL Server's may be: its end may say what to do."""
    number = "" if said.number is None else f"{said.number}, "
    return f"{number}'{printable((said.text or '')[:_LONGEST_STATUS])}'"


def cut(text: str) -> str:
    """A text from the data or about it: printable, and not endless."""
    shown = printable(text[: _LONGEST + 1])
    return shown if len(text) <= _LONGEST else f"{shown[:_LONGEST]}…"
