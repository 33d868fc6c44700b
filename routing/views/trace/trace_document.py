"""Write a traced message as a document: where it ends, whether its acknowledgement comes back, then hop by hop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from routing.advice.trouble_catalogue import number_reason
from routing.cases.questions import DESCRIBED_ID
from routing.document import (
    Block,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    ListItem,
    Paragraph,
    Tone,
    TonedText,
    Words,
    make_columns,
)
from routing.errors import quote
from routing.render.wording import count, format_time, mark_outcome, write_json
from routing.rules.following import HopPath, MessageTrace
from routing.rules.pathing import PathWithReturn
from routing.rules.timeline import moment_of
from routing.terms import Ending
from routing.views.path_blocks import ENDING_WORDS, HAZARD, way_blocks
from routing.views.remedy_blocks import list_remedy
from routing.views.trace.tracing import TraceResult

if TYPE_CHECKING:
    from routing.runs.run_work import WrittenPaths

# A way of a message as a list: a hop each, then where it ends if that is at no hop.


Parts = list[str | TonedText]
_SHOWN = 20


def make_document(done: TraceResult) -> Document:
    """Describe a trace: where the message ends, what to do, then each path there and back."""
    return [
        *_answers(done),
        *_what_to_do(done),
        Paragraph(""),
        Paragraph(_head(done)),
        *(block for number, path in enumerate(done.paths, 1) for block in _path(done, path, number)),
    ]


def _answers(done: TraceResult) -> Iterator[Block]:
    """Yield a sentence for each path that the message may take."""
    if len(done.paths) == 1:
        yield Paragraph(_state_path(done, done.paths[0]))
        return
    yield Paragraph(f"The dialog decides, and is not given: the message takes one of {len(done.paths)} paths.")
    for number, path in enumerate(done.paths, 1):
        yield ListItem(_state_path(done, path), f"{number}.", 1)


def _state_path(done: TraceResult, path: PathWithReturn) -> Parts:
    """Return the sentence that says where a path ends, and whether the acknowledgement comes back."""
    sentence = [mark_outcome(path.there.ending), f": {_state_end(path.there)}"]
    if path.is_back_unknown:
        return [*sentence, f"; whether its acknowledgement comes back is not known: {_why_unknown(done)}."]
    if path.back is None:
        return [*sentence, "."]
    lost = tuple(hop_path for hop_path in path.back.hop_paths if not _comes_back(done, hop_path))
    if not lost:
        return [*sentence, ", and its acknowledgement ", TonedText("comes back", Tone.GOOD), "."]
    no = "no acknowledgement comes back"
    if len(lost) < len(path.back.hop_paths):
        no = "not by every way does an acknowledgement come back"
    failed = path.back if path.back.hop_paths[0] in lost else MessageTrace(lost)
    return [
        *sentence,
        ", but ",
        TonedText(no, Tone.BAD),
        ": ",
        mark_outcome(failed.ending),
        f", {_state_end(failed, 'it')}. The sender keeps its message and sends it again and again.",
    ]


def _comes_back(done: TraceResult, hop_path: HopPath) -> bool:
    """Return True if a way back ends at the database that sent, and not at a copy of it."""
    sender = done.message.instance, done.message.database
    return hop_path.ending is Ending.DELIVERED and (hop_path.instance, hop_path.database) == sender


def _state_end(trace: MessageTrace, what: str = "the message") -> str:
    """Return the clause that says where the first way ends, and that others end otherwise."""
    if trace.is_cut:
        return ENDING_WORDS[Ending.TOO_MANY_WAYS]
    hop_path = trace.hop_paths[0]
    clause = f"{what} {_END_CLAUSES[hop_path.ending](hop_path)}"
    if trace.ways_agree is False:
        clause += (
            f" by the first of {len(trace.hop_paths)} ways that the transport may take, which do not end alike"
        )
    return clause


def _number_reason(path: HopPath) -> str:
    return "" if path.reason is None else f" ({number_reason(path.reason, path.hops[-1].scope)})"


_END_CLAUSES = {
    Ending.DELIVERED: lambda path: f"reaches database {quote(path.database)} of instance {quote(path.instance)}",
    Ending.DELAYED: lambda path: f"gets no further than instance {quote(path.instance)}{_number_reason(path)}",
    Ending.DROPPED: lambda path: f"is dropped by instance {quote(path.instance)}{_number_reason(path)}",
    Ending.LOOP: lambda path: f"goes round by instance {quote(path.instance)} until its hops run out",
    Ending.LEFT_ESTATE: lambda path: (
        f"leaves for {quote(path.address)}, which no known instance has; what happens there is not known"
    ),
    Ending.NOT_KNOWN: lambda path: (
        f"goes to instance {quote(path.instance)}, of which neither the databases nor the endpoint are known"
    ),
}


def _what_to_do(done: TraceResult) -> Iterator[Block]:
    """Yield the remedies for the hops where a path fails, and the hazard of several targets."""
    for remedy in done.remedies:
        yield from list_remedy(remedy, f"what to do on {quote(remedy.instance)}")
    if any(path.there.has_multiple_targets for path in done.paths):
        yield LabelledFact("hazard", HAZARD)


def _head(done: TraceResult) -> str:
    message = done.message
    place = "from the network" if message.database is None else f"database {quote(message.database)}"
    dialog = "any dialog" if message.conversation_id is None else f"dialog {quote(message.conversation_id)}"
    sender = "" if done.from_service is None else f" from {quote(done.from_service)}"
    called = "A message" if message.message_id == DESCRIBED_ID else f"Message {quote(message.message_id)}"
    return (
        f"{called} of {dialog}, instance {quote(message.instance)}, {place},"
        f"{sender} to {quote(message.service)}; every hop as of {format_time(moment_of(message.t))}"
    )


def _path(done: TraceResult, path: PathWithReturn, number: int) -> Iterator[Block]:
    if len(done.paths) > 1:
        yield DocumentHeading(f"Path {number} of {len(done.paths)}, one of which the dialog-ID hash takes")
    yield from _trace("There", path.there)
    if path.is_back_unknown:
        yield DocumentHeading(["And back: ", mark_outcome(Ending.NOT_KNOWN), f", for {_why_unknown(done)}."], 3)
    if path.back is not None:
        yield from _trace(f"And back to {quote(done.from_service)}, bound to its broker instance", path.back)


def _trace(direction: str, trace: MessageTrace) -> Iterator[Block]:
    """Yield the ways of one direction; what they share is said once."""
    shown_paths: Sequence[HopPath] = trace.hop_paths[:_SHOWN]
    if len(trace.hop_paths) == 1:
        yield DocumentHeading(f"{direction}:", 3)
        yield from way_blocks(trace.hop_paths[0], indent=1)
        return
    agree = {True: "all end alike", False: "they do not end alike", None: "not all are followed"}[trace.ways_agree]
    more = " or more" if trace.is_cut else ""
    yield DocumentHeading(
        f"{direction}, by {len(trace.hop_paths)}{more} ways that the transport may take; {agree}:", 3
    )
    for number, hop_path in enumerate(shown_paths, 1):
        yield Paragraph(f"way {number}", 1)
        yield from way_blocks(hop_path, indent=2)
    if len(trace.hop_paths) > _SHOWN:
        more_ways = count(len(trace.hop_paths) - _SHOWN, "more way")
        yield Paragraph(f"and {more_ways} (--format json has all)", 1)
    if trace.is_cut:
        yield Paragraph([mark_outcome(Ending.TOO_MANY_WAYS), f": {ENDING_WORDS[Ending.TOO_MANY_WAYS]}"], 1)


def _why_unknown(done: TraceResult) -> str:
    if done.message.database is None:
        return "the message arrived over the network: the database that sent it is not told"
    if done.from_service is None:
        return "who sent it is not known (from_service_name)"
    return "the database that sent it has no broker instance"


# A traced message as one JSON object for programs.


def write_trace(done: TraceResult) -> str:
    """Return one line: the message, and of each path there and back what they end as, with all ways and hops."""
    message = done.message
    return write_json(
        {
            "message": {
                "message_id": message.message_id,
                "conversation_id": message.conversation_id,
                "is_initiator": message.is_initiator,
                "instance_name": message.instance,
                "database_name": message.database,
                "to_service_name": message.service,
                "from_service_name": done.from_service,
                "decided_at": moment_of(message.t),
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
            "ways": [dict(row) for row in done.way_rows],
            "hops": [dict(row) for row in done.hop_rows],
            "remedies": [remedy.as_object() for remedy in done.remedies],
        }
    )


# How many messages end how, once all were followed: as a document, and as one JSON object.


def make_counts_document(done: WrittenPaths) -> Document:
    """Describe how many messages arrive and how many do not, the outcomes, and how the counts add up."""
    counts = sorted(done.outcomes.items(), key=lambda item: (-item[1], item[0]))
    added = f"{done.traced:,} followed + {done.rejected:,} rejected"
    read = f"{count(done.read, 'message')} read = {added}; version {done.version} of output.message_paths"
    hint = "resolve lists the rejected ones, with what is wrong with each"
    return [
        Paragraph(_state_ends(done)),
        DataTable(make_columns(["outcome", "messages"], ["messages"]), counts, "Where messages end"),
        Paragraph(read),
        *([Paragraph(hint)] if done.rejected else []),
    ]


def _state_ends(done: WrittenPaths) -> Words:
    """Return the sentence that says how many messages arrive, and where the others end."""
    if not done.traced:
        return "No message was followed."
    arrived = done.outcomes.get(Ending.DELIVERED, 0)
    are = "is" if arrived == 1 else "are"
    sentence = [f"{arrived:,} of {count(done.traced, 'message')} {are} ", mark_outcome(Ending.DELIVERED)]
    others = sorted(set(done.outcomes) - {Ending.DELIVERED}, key=lambda word: (-done.outcomes[word], word))
    for number, word in enumerate(others):
        sentence += [f"{', ' if number else '; '}{done.outcomes[word]:,} ", mark_outcome(word)]
    return [*sentence, "."]


def write_counts(done: WrittenPaths) -> str:
    """Return one line: version, read, followed, rejected, outcomes."""
    counts = {"version": done.version, "read": done.read, "followed": done.traced, "rejected": done.rejected}
    return write_json({**counts, "outcomes": dict(done.outcomes)})
