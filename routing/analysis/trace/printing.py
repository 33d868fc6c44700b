"""A traced message as text for people and as one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from routing.analysis.explain import wording
from routing.analysis.explain.asked import DESCRIBED_ID
from routing.analysis.trace.tracing import Traced
from routing.analysis.trace.way_lines import ENDING_WORDS, HAZARD, way_lines
from routing.errors import quote
from routing.rules.pathing import Path
from routing.rules.ways import Trace, Way
from routing.storage.times import moment_of
from routing.terms import Ending, Reason

_SHOWN = 20
_NO_WAY = (
    Reason.NO_ROUTE,
    Reason.SERVICE_NOT_FOUND,
    Reason.BROKER_INSTANCE_NOT_FOUND,
    Reason.TRANSPORT_ADDRESS_INVALID,
)
_STUCK = (Ending.DELAYED, Ending.DROPPED)


def as_text(done: Traced) -> Iterator[str]:
    """The path, a hop a line; then the way back; then what it means."""
    yield _head(done)
    for number, path in enumerate(done.paths, 1):
        yield ""
        if len(done.paths) > 1:
            yield f"Path {number} of {len(done.paths)}, one of which the dialog-ID hash takes"
        yield from _trace("There", path.there)
        if path.there.has_multiple_targets:
            yield HAZARD
        yield from _advice(path.there.ways)
        yield from _back(done, path)


def as_json(done: Traced) -> str:
    """One line: the message, and of each path there and back what they end as, with all ways and hops."""
    message = done.message
    document = {
        "message": {
            "message_id": message.message_id,
            "conversation_id": message.conversation_id,
            "is_initiator": message.is_initiator,
            "instance_name": message.instance,
            "database_name": message.database,
            "to_service_name": message.service,
            "from_service_name": done.from_service,
            "decided_at": wording.moment(moment_of(message.t)),
        },
        "paths": [
            {
                "outcome": str(path.there.ending),
                "ways_agree": path.there.ways_agree,
                "multiple_targets": path.there.has_multiple_targets,
                "return_outcome": None if path.back_ending is None else str(path.back_ending),
                "return_ways_agree": None if path.back is None else path.back.ways_agree,
            }
            for path in done.paths
        ],
        "ways": [dict(row) for row in done.ways],
        "hops": [dict(row) for row in done.hops],
    }
    return json.dumps(document)


def _head(done: Traced) -> str:
    message = done.message
    place = "from the network" if message.database is None else f"database {quote(message.database)}"
    dialog = "any dialog" if message.conversation_id is None else f"dialog {quote(message.conversation_id)}"
    sender = "" if done.from_service is None else f" from {quote(done.from_service)}"
    called = "A message" if message.message_id == DESCRIBED_ID else f"Message {quote(message.message_id)}"
    return (
        f"{called} of {dialog}, instance {quote(message.instance)}, {place},"
        f"{sender} to {quote(message.service)}; every hop as of {wording.moment(moment_of(message.t))}"
    )


def _trace(direction: str, trace: Trace) -> Iterator[str]:
    """The ways of one direction; what they share is said once."""
    if len(trace.ways) == 1:
        yield f"{direction}:"
        yield from way_lines(trace.ways[0])
        return
    agree = {True: "all end alike", False: "they do not end alike", None: "not all are followed"}[trace.ways_agree]
    more = " or more" if trace.is_cut else ""
    yield f"{direction}, by {len(trace.ways)}{more} ways that the transport may take; {agree}:"
    for number, way in enumerate(trace.ways[:_SHOWN], 1):
        yield f"  way {number}"
        yield from way_lines(way)
    if len(trace.ways) > _SHOWN:
        yield f"  and {len(trace.ways) - _SHOWN} more ways (--format json has all)"
    if trace.is_cut:
        yield f"  {Ending.TOO_MANY_WAYS}: {ENDING_WORDS[Ending.TOO_MANY_WAYS]}"


def _back(done: Traced, path: Path) -> Iterator[str]:
    """The way back, and what it means for the sender."""
    if path.is_back_unknown:
        yield ""
        yield f"And back: NOT_KNOWN, for {_why_unknown(done)}."
    if path.back is not None:
        yield ""
        yield from _trace(f"And back to {quote(done.from_service)}, bound to its broker id", path.back)
        ends = {way.ending for way in path.back.ways}
        if ends != {Ending.DELIVERED}:
            some = "Not by every way a" if Ending.DELIVERED in ends else "No"
            yield (
                f"{some} reply or acknowledgement comes back: the sender keeps its message"
                " and sends it again and again."
            )
            yield from _missing(done, path.back)
            yield from _advice(way for way in path.back.ways if not _lacks(way))


def _missing(done: Traced, back: Trace) -> Iterator[str]:
    """Where a route to the service that sent is missing."""
    for instance, scope in dict.fromkeys(
        (w.hops[-1].instance_name, w.hops[-1].scope) for w in back.ways if _lacks(w)
    ):
        service = quote(done.from_service)
        yield f"A route to {service} with its broker instance is missing on {quote(instance)}, in {quote(scope)}."


def _lacks(way: Way) -> bool:
    return way.reason in _NO_WAY


def _why_unknown(done: Traced) -> str:
    if done.message.database is None:
        return "the message arrived over the network: the database that sent it is not told"
    if done.from_service is None:
        return "who sent it is not known (from_service_name)"
    return "the database that sent it has no broker id"


def _advice(ways: Iterable[Way]) -> Iterator[str]:
    """What to do about each reason that ends a way before it is delivered, and where."""
    stuck = dict.fromkeys((way.instance, way.reason) for way in ways if way.ending in _STUCK)
    for instance, reason in stuck:
        yield f"What to do on {quote(instance)}: {wording.advice(None if reason is None else str(reason))}"
