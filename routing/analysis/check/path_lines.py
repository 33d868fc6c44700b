"""The path of messages that leave their instance, as lines and as values for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routing.analysis.check.gaps import Knowledge
from routing.analysis.check.pasting import named
from routing.analysis.check.path_ends import MessagePath, PathWay
from routing.analysis.check.phrases import SHOWN, gap_sentence
from routing.analysis.explain.wording import error_number
from routing.analysis.trace.way_lines import ENDING_WORDS, HAZARD, way_lines
from routing.rules.ways import Way
from routing.terms import Ending

_FEW = 3
VIEWS_OF_AN_INSTANCE = (
    *("sys.databases", "sys.routes", "sys.services"),
    *("sys.service_broker_endpoints", "sys.tcp_endpoints"),
)
"""What tells what becomes of messages that arrive at an instance."""
_WORDS = {**ENDING_WORDS, Ending.NOT_KNOWN: "what decides there was not read"}


def end_words(path: MessagePath | None) -> str:
    """Return how the messages of a path end, after what becomes of them where they are sent; else nothing."""
    failure = None if path is None else path.first_failure
    if path is None or failure is None:
        return ""
    way, alike = failure.way, path.back if failure.is_return else path.there
    failing = sum(one in path.failing for one in alike)
    by = "" if failing == len(alike) else f"by {failing:,} of {len(alike):,} ways "
    end = "no acknowledgement comes back from" if failure.is_return else f"{path.end} at"
    return f", but {by}{end} {named(way.instance)} ({_why(way)})"


def _why(way: Way) -> str:
    """Return the reason of a way that fails, with SQL Server's number, or where it goes round."""
    if way.ending is Ending.LOOP:
        return f"it comes back to {named(way.instance)}"
    if way.ending is Ending.DELIVERED:
        return f"it is delivered to {named(way.database)} of {named(way.instance)}"
    number = error_number(None if way.reason is None else str(way.reason), way.hops[-1].scope)
    numbered = "" if number is None else f", SQL Server's number: {number}"
    return f"{way.reason}{numbered}"


def path_lines(path: MessagePath) -> Iterator[str]:
    """Yield the ways there and back, those first that fail; of many the others are counted."""
    if not path.there:
        yield "there are more ways than are followed"
        return
    if len(path.there) == 1 and len(path.there[0].way.hops) == 1:
        # What is known is where they were sent to, which stands above.
        return
    yield from _direction("there", path.there, path)
    if path.has_multiple_targets:
        yield HAZARD
    if path.back:
        yield from _direction("and back, the acknowledgement", path.back, path)
    elif path.is_back_unknown:
        yield "and back: not known, for the service that sent, or the broker id of its database, is not"
    yield from assumed_lines(path)


def _direction(title: str, ways: Sequence[PathWay], path: MessagePath) -> Iterator[str]:
    failing = set(path.failing)
    ordered = sorted(ways, key=lambda one: one not in failing)
    if len(ways) == 1:
        yield f"{title}:"
    else:
        more = " or more" if path.is_cut else ""
        count = sum(one in failing for one in ways)
        fail = "fails" if count == 1 else "fail"
        yield f"{title}, by {len(ways)}{more} ways that the transport may take; {count or 'none'} {fail}:"
    for number, one in enumerate(ordered[:_FEW], 1):
        if len(ways) > 1:
            yield f"  way {number}"
        yield from way_lines(one.way, _WORDS, SHOWN)
    if len(ways) > _FEW:
        yield f"  and {len(ways) - _FEW} more ways (--format json has all)"


def assumed_lines(path: MessagePath) -> Iterator[str]:
    """Yield which instances are taken to listen at an address by their names."""
    for address, instance in path.assumed[:SHOWN]:
        unknown = "its own addresses are not known"
        yield f"by its name {named(instance)} is taken to listen at {named(address)}: {unknown}"


def needed_lines(path: MessagePath, knowledge: Knowledge) -> Iterator[str]:
    """Yield which exports would tell more of a path."""
    for gap in path.gaps[:SHOWN]:
        yield f"what would tell more: {gap_sentence(gap)}"
    views = f"{', '.join(VIEWS_OF_AN_INSTANCE[:-1])} and {VIEWS_OF_AN_INSTANCE[-1]}"
    for address in path.unread_addresses[:SHOWN]:
        maybe = ", ".join(map(named, knowledge.may_be_at(address)[:_FEW]))
        if maybe:
            unknown = "of which no address is known; export its sys.service_broker_endpoints, or give --address"
            yield f"what would tell more: who listens at {named(address)}: it may be {maybe}, {unknown}"
        else:
            yield f"what would tell more: the instance at {named(address)} was not exported; export its {views}"
