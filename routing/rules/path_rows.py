"""What a table says of a path: the columns of ``message_paths`` that the rules decide."""

from __future__ import annotations

from typing import NamedTuple

from routing.rules.pathing import PathWithReturn
from routing.rules.ways import MessageTrace, PathHop
from routing.terms import Ending, MatchingStep, Outcome, Reason


class HopRow(NamedTuple):
    """A hop as the table has it."""

    instance_name: str
    scope: str
    matching_step: int | None
    route_name: str | None
    address: str | None
    outcome: str
    reason: str


class PathRow(NamedTuple):
    """A path as the table has it. ``reason`` and the end's place are null where there is none (`HopPath`)."""

    outcome: str
    reason: str | None
    final_instance_name: str | None
    final_database_name: str | None
    final_address: str | None
    hops: tuple[HopRow, ...]
    ways_agree: bool | None
    multiple_targets: bool
    return_outcome: str | None
    return_reason: str | None
    return_instance_name: str | None
    return_database_name: str | None
    return_ways_agree: bool | None


def path_row(path: PathWithReturn) -> PathRow:
    """Return the row of a path. Where there are too many ways its hops are still those of the first."""
    there, back = path.there, path.back
    end = path.end
    reply = None if back is None or back.is_cut else back.ways[0]
    back_ending = path.back_ending
    return PathRow(
        str(there.ending),
        _text(None if end is None else end.reason),
        None if end is None else end.instance,
        None if end is None else end.database,
        None if end is None else end.address,
        tuple(_hop(hop) for hop in there.ways[0].hops),
        there.ways_agree,
        there.has_multiple_targets,
        _text(back_ending),
        _text(None if reply is None else reply.reason),
        None if reply is None else reply.instance,
        None if reply is None else reply.database,
        None if back is None else back.ways_agree,
    )


def reads_address(there: MessageTrace) -> bool:
    """Return True if the last hop of the first way has the address of a service name that is not known."""
    last = there.ways[0].hops[-1]
    return last.reads_address and last.address is None


class FirstHop(NamedTuple):
    """The end of a message at its first hop, whatever the routes: why, and in which step."""

    ending: Ending
    reason: Reason
    step: MatchingStep | None


EXPIRED = FirstHop(Ending.DROPPED, Reason.DIALOG_EXPIRED, None)
"""A message of an expired dialog."""
REQUESTED = FirstHop(Ending.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST)
"""A message that opens a request for a route."""


def _hop(hop: PathHop) -> HopRow:
    plain = hop.plain()
    return HopRow(*(plain[name] for name in HopRow._fields))


def _text(word: Outcome | Ending | Reason | None) -> str | None:
    return None if word is None else str(word)
