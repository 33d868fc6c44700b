"""Notes that a reader of a check needs."""

from __future__ import annotations

from collections.abc import Iterable

from routing.features.check.checking import Check
from routing.features.explain.path_sentences import quote_name
from routing.render.wording import format_time
from routing.tables.times import micros_of

_PRESENT = ("routes", "databases", "services", "service_broker_endpoints", "tcp_endpoints")


def find_notes(done: Check) -> list[str]:
    """List the notes on what was read and on times; an earlier time knows only what an export itself dates."""
    return [*done.evidence.notes, *notes_on_times(done, done.evidence.instances)]


def notes_on_times(done: Check, instances: Iterable[str]) -> list[str]:
    """Note each instance that is decided at a time before its export."""
    notes = []
    for name in instances:
        newest = done.evidence.newest(name, *_PRESENT)
        if done.at is not None and newest is not None and done.estate.times[name] < micros_of(newest):
            notes.append(
                f"{quote_name(name)}: its routes, databases, services and endpoint are taken as they were exported"
                f" at {format_time(newest)}, which is after the time of the decision"
            )
    return notes
