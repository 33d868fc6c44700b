"""Write the paths of a message: the hops as a list, and in sentences where a path ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from routing.advice.trouble_catalogue import number_reason
from routing.cases.judged_questions import FollowedMessage
from routing.document import ListItem, Tone, TonedText, Words
from routing.errors import quote
from routing.render.wording import count, mark_outcome
from routing.rules.following import HopPath, PathHop
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.pathing import PathWithReturn
from routing.terms import LEAVES, Ending, Outcome, PathEnd, TableRow

Parts = list[str | TonedText]
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
    by = [] if hop.matching_step is None else [f"step {int(hop.matching_step)}"]
    by += [] if hop.route_name is None else [f"route {quote(hop.route_name)}"]
    by += [] if hop.rerouted_from is None else [f"led back here by route {quote(hop.rerouted_from)}"]
    place = f"{quote(hop.instance_name)}, {quote(hop.scope)}: "
    return (place, "".join(f"{reason}, " for reason in by), mark_outcome(hop.outcome), _rest(hop, hop_path))


def _rest(hop: PathHop, hop_path: HopPath) -> str:
    if hop.outcome in LEAVES:
        return f" to {quote(hop.address)} ({hop.reason})"
    if hop.outcome is Outcome.DELIVERED:
        return f" to database {quote(hop_path.database)}"
    return f" ({number_reason(hop.reason, hop.scope)})"


def end_values(hop_path: HopPath) -> TableRow:
    """Return the end of a path as values for programs."""
    return {
        "outcome": str(hop_path.ending),
        "reason": None if hop_path.reason is None else str(hop_path.reason),
        "instance_name": hop_path.instance,
        "database_name": hop_path.database,
        "address": hop_path.address,
    }


def state_path(followed: FollowedMessage, path: PathWithReturn) -> Parts:
    """Return the sentences about the end of a path (D17), and about a partner that does not deliver."""
    judged = path.judged
    parts = _state_end(followed, path)
    failing = sum(possible_path in judged.failing_paths for possible_path in judged.forward_paths)
    if failing and len(judged.forward_paths) > 1:
        total = len(judged.forward_paths)
        which = f"All {total}" if failing == total else f"{failing} of {total}"
        parts.append(f" {which} paths that the transport may take fail.")
    return [*parts, *(part for possible_path in judged.spared_paths for part in _state_spared(possible_path))]


def _state_end(followed: FollowedMessage, path: PathWithReturn) -> Parts:
    judged = path.judged
    ending_text = mark_outcome(judged.end)
    if judged.end in (PathEnd.DELIVERED, PathEnd.NO_RETURN_PATH):
        arriving = next(there for there in judged.forward_paths if there.end is judged.end)
        arrival = [ending_text, f": the message {_end_clause(arriving)}"]
        if judged.end is PathEnd.NO_RETURN_PATH:
            return [*arrival, ", but ", *_state_lost(judged)]
        return [*arrival, *_state_reply(followed, path)]
    if judged.is_cut and not judged.failing_paths:
        return [ending_text, f": {ENDING_WORDS[Ending.TOO_MANY_WAYS]}."]
    if judged.failing_paths:
        return [ending_text, f": the message {_end_clause(judged.failing_paths[0])}."]
    unknown = next(
        (there for there in judged.forward_paths if there.end is PathEnd.NOT_KNOWN), judged.forward_paths[0]
    )
    if unknown.hop_path.ending is not Ending.DELIVERED:
        return [ending_text, f": the message {_end_clause(unknown)}."]
    unknown_return = next((back for back in judged.return_paths if back.end is PathEnd.NOT_KNOWN), None)
    return [
        ending_text,
        f": the message {_end_clause(unknown)}; whether its acknowledgement comes back is not known",
        f": {why_unknown(followed)}." if unknown_return is None else f": it {_end_clause(unknown_return)}.",
    ]


def _state_reply(followed: FollowedMessage, path: PathWithReturn) -> Parts:
    """Return the rest of the sentence on a delivered message: the fate of the acknowledgement or reply."""
    if path.judged.return_paths:
        return [", and its acknowledgement ", TonedText("comes back", Tone.GOOD), "."]
    # Its own instance delivers it, so it needs no acknowledgement. A reply may still be stuck.
    if path.is_back_unknown:
        return [f"; whether a reply comes back is not known: {why_unknown(followed)}."]
    if path.back is None:
        return ["."]
    stuck = next((hop_path for hop_path in path.back.hop_paths if hop_path.ending is not Ending.DELIVERED), None)
    if stuck is None:
        return [", and a reply ", TonedText("comes back", Tone.GOOD), "."]
    clause = _END_CLAUSES[stuck.ending](stuck)
    return [
        ", but ",
        TonedText("no reply comes back", Tone.BAD),
        ": ",
        mark_outcome(stuck.ending),
        f", it {clause}.",
    ]


def _state_lost(judged: JudgedPath) -> Parts:
    failing_reply = next(possible_path for possible_path in judged.failing_paths if possible_path.is_return)
    ending = f", it {_end_clause(failing_reply)}"
    if failing_reply.hop_path.ending is Ending.DELIVERED:
        ending += ", which did not send the message"
    return [
        TonedText("no acknowledgement comes back", Tone.BAD),
        ": ",
        mark_outcome(failing_reply.hop_path.ending),
        f"{ending}. The sender keeps its message and keeps resending it.",
    ]


def _state_spared(possible_path: PossiblePath) -> Parts:
    is_return, clause = possible_path.is_return, _end_clause(possible_path)
    subject = (
        "an acknowledgement that takes the other partner" if is_return else "a message that takes its partner"
    )
    end: Ending | PathEnd = possible_path.end
    if end is PathEnd.NO_RETURN_PATH:
        end = possible_path.hop_path.ending
        clause += "" if is_return else " and is not acknowledged"
    return [" The other partner does not: ", mark_outcome(end), f", {subject} {clause}."]


def _end_clause(possible_path: PossiblePath) -> str:
    return _END_CLAUSES[possible_path.hop_path.ending](possible_path.hop_path)


def _number_reason(path: HopPath) -> str:
    return "" if path.reason is None else f" ({number_reason(path.reason, path.hops[-1].scope)})"


_END_CLAUSES = {
    Ending.DELIVERED: lambda path: f"reaches database {quote(path.database)} of instance {quote(path.instance)}",
    Ending.DELAYED: lambda path: f"gets no further than instance {quote(path.instance)}{_number_reason(path)}",
    Ending.DROPPED: lambda path: f"is dropped by instance {quote(path.instance)}{_number_reason(path)}",
    Ending.LOOP: lambda path: f"goes round by instance {quote(path.instance)} until its hops run out",
    Ending.LEFT_ESTATE: lambda path: (
        f"leaves for {quote(path.address)}, which belongs to no known instance, so the rest is not known"
    ),
    Ending.NOT_KNOWN: lambda path: (
        f"goes to instance {quote(path.instance)}, whose databases and endpoint are not known"
    ),
}


def why_unknown(followed: FollowedMessage) -> str:
    """State why the way back is not known."""
    if followed.message.database is None:
        return "the message arrived over the network, and the database that sent it is not known"
    if followed.from_service is None:
        return "the sending service is not known (from_service_name)"
    return "the database that sent it has no broker instance"
