"""Write one path of a message as a list of hops, then its end if that is not at a hop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from routing.advice.trouble_catalogue import number_reason
from routing.document import (
    ListItem,
    Words,
)
from routing.errors import quote
from routing.render.wording import count, mark_outcome
from routing.rules.following import HopPath, PathHop
from routing.terms import LEAVES, Ending, Outcome

if TYPE_CHECKING:
    pass


ENDING_WORDS = {
    Ending.LEFT_ESTATE: "no known instance has that address, so the rest of the path is not known",
    Ending.LOOP: "it comes back here, and circulates until its hops run out",
    Ending.NOT_KNOWN: "neither its databases nor its endpoint are known: import them",
    Ending.TOO_MANY_WAYS: "there are more paths than are followed",
}


HAZARD = (
    "While the dialog is open it may reach several targets, and each creates its own endpoint (multiple target"
    " endpoints): give every route to the service its broker instance."
)


def path_blocks(
    hop_path: HopPath,
    ending_words: Mapping[Ending, str] = ENDING_WORDS,
    most_hops: int | None = None,
    indent: int = 0,
) -> Iterator[ListItem]:
    """Yield the hops of a path as a numbered list, only the last ``most_hops`` if given, then its end."""
    left_out = 0 if most_hops is None else max(len(hop_path.hops) - most_hops, 0)
    if left_out:
        yield ListItem(f"{count(left_out, 'hop')} before these", "  ", indent)
    for number, hop in enumerate(hop_path.hops[left_out:], left_out + 1):
        yield ListItem(_hop(hop, hop_path), f"{number}.", indent)
    sentence = ending_words.get(hop_path.ending)
    if sentence is not None:
        place = hop_path.address if hop_path.instance is None else hop_path.instance
        yield ListItem((mark_outcome(hop_path.ending), f" at {quote(place)}: {sentence}"), "  ", indent)


def _hop(hop: PathHop, hop_path: HopPath) -> Words:
    """Write the place of a hop, its step and route, and the decision on the message."""
    by = [] if hop.matching_step is None else [f"step {int(hop.matching_step)}"]
    by += [] if hop.route_name is None else [f"route {quote(hop.route_name)}"]
    by += [] if hop.rerouted_from is None else [f"led back here by route {quote(hop.rerouted_from)}"]
    place = f"{quote(hop.instance_name)}, {quote(hop.scope)}: "
    return (place, "".join(f"{reason}, " for reason in by), mark_outcome(hop.outcome), _rest(hop, hop_path))


def _rest(hop: PathHop, hop_path: HopPath) -> str:
    """Write the rest of a hop after its outcome: the target or the reason."""
    if hop.outcome in LEAVES:
        return f" to {quote(hop.address)} ({hop.reason})"
    if hop.outcome is Outcome.DELIVERED:
        return f" to database {quote(hop_path.database)}"
    return f" ({number_reason(hop.reason, hop.scope)})"
