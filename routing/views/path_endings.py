"""State where the path of a message ends, in sentences."""

from __future__ import annotations

from routing.advice.trouble_catalogue import number_reason
from routing.cases.judged_questions import FollowedMessage
from routing.document import Tone, TonedText
from routing.errors import quote
from routing.render.wording import mark_outcome
from routing.rules.following import HopPath
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.pathing import PathWithReturn
from routing.terms import Ending, PathEnd
from routing.views.path_blocks import ENDING_WORDS

Parts = list[str | TonedText]


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
        possible_path = next(
            possible_path for possible_path in judged.forward_paths if possible_path.end is judged.end
        )
        arrival = [ending_text, f": the message {_end_clause(possible_path)}"]
        if judged.end is PathEnd.NO_RETURN_PATH:
            return [*arrival, ", but ", *_state_lost(judged)]
        return [*arrival, *_state_reply(followed, path)]
    if judged.is_cut and not judged.failing_paths:
        return [ending_text, f": {ENDING_WORDS[Ending.TOO_MANY_WAYS]}."]
    if judged.failing_paths:
        return [ending_text, f": the message {_end_clause(judged.failing_paths[0])}."]
    unknown = next(
        (possible_path for possible_path in judged.forward_paths if possible_path.end is PathEnd.NOT_KNOWN),
        judged.forward_paths[0],
    )
    if unknown.hop_path.ending is not Ending.DELIVERED:
        return [ending_text, f": the message {_end_clause(unknown)}."]
    sentence = [
        ending_text,
        f": the message {_end_clause(unknown)}; whether its acknowledgement comes back is not known",
    ]
    unknown_return = next(
        (possible_path for possible_path in judged.return_paths if possible_path.end is PathEnd.NOT_KNOWN), None
    )
    return [
        *sentence,
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
    """Return the sentence on an acknowledgement that does not come back."""
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
    """Return the sentence on a path that fails while another partner of the same route delivers."""
    subject = (
        "an acknowledgement that takes the other partner"
        if possible_path.is_return
        else "a message that takes its partner"
    )
    end = possible_path.hop_path.ending if possible_path.end is PathEnd.NO_RETURN_PATH else possible_path.end
    unacknowledged = (
        " and is not acknowledged"
        if possible_path.end is PathEnd.NO_RETURN_PATH and not possible_path.is_return
        else ""
    )
    return [
        " The other partner does not: ",
        mark_outcome(end),
        f", {subject} {_end_clause(possible_path)}{unacknowledged}.",
    ]


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
