"""Times that have not come yet: a clock is wrong, or its zone was taken for another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from routing.delta.import_times import AHEAD
from routing.importing.import_faults import time_to_come
from routing.render.wording import format_time
from routing.terms import TableRow


def latest_time(now: datetime) -> datetime:
    """Return the latest time that something imported now may be of."""
    return now + AHEAD


def phrase_to_come(what: str, at: datetime) -> str:
    """Return the phrase on a time that has not come yet."""
    return f"{what} is {format_time(at.replace(microsecond=0))}, more than an hour from now"


def find_exports_to_come(rows: Mapping[str, Iterable[TableRow]], now: datetime) -> list[str]:
    """Return a phrase for each file of an export with a time that has not come yet; ``rows`` are those by view."""
    latest, phrases_by_file = latest_time(now), dict[str, str]()
    for of_view in rows.values():
        for row in of_view:
            if row["exported_at"] > latest:
                file = row["place"].rpartition(", row ")[0] or row["place"]
                phrases_by_file.setdefault(
                    file, phrase_to_come(f"{row['place']}: exported_at", row["exported_at"])
                )
    return list(phrases_by_file.values())


def find_scripts_to_come(times: Iterable[tuple[str, datetime]], now: datetime) -> list[str]:
    """Return a phrase for each script, by its file, with a time that has not come yet."""
    return [phrase_to_come(f"{file}: its time", at) for file, at in times if at > latest_time(now)]


def refuse_to_come(phrases: Sequence[str], hint: str) -> None:
    """Raise InputError where there is any."""
    if phrases:
        raise time_to_come(phrases, hint)
