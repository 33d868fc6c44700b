"""Follow one message to its end, and the reply back: from tables and a question to printed paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from routing.advice.question_remedies import advise_on_question
from routing.advice.remedy import Remedy
from routing.arguments import checked
from routing.cases.judged_questions import FollowedMessage, follow_question, judge_question
from routing.cases.question_source import open_source, pose
from routing.cases.questions import DESCRIBED_ID, Question
from routing.config import Config
from routing.document import (
    Block,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    ListItem,
    Paragraph,
    Words,
    make_columns,
)
from routing.errors import quote
from routing.plan.checked_inputs import CheckedInputs
from routing.render.wording import count, format_time, mark_outcome, write_json
from routing.result_schemas import TRACED_HOPS, TRACED_WAYS
from routing.rules.following import HopPath, MessageTrace
from routing.rules.path_changes import BACK, THERE
from routing.rules.pathing import PathWithReturn
from routing.rules.timeline import moment_of
from routing.tables.arrow_rows import SchemaRows
from routing.tables.read_rows import read_settings
from routing.tables.row_faults import refuse_faults
from routing.tables.table_columns import Table
from routing.terms import Ending, PathEnd, TableRow
from routing.views.path_words import ENDING_WORDS, HAZARD, end_values, path_blocks, state_path, why_unknown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.runs.run_work import WrittenPaths


def traces_of(path: PathWithReturn) -> Iterator[tuple[str, MessageTrace]]:
    """Yield the traces there and back, each with its direction."""
    yield THERE, path.there
    if path.back is not None:
        yield BACK, path.back


def way_rows(paths: Sequence[PathWithReturn]) -> SchemaRows:
    """Return all paths in the order of discovery, in the columns of `TRACED_WAYS`."""
    return SchemaRows(TRACED_WAYS, tuple({**place, **end_values(hop_path)} for place, hop_path in _places(paths)))


def hop_rows(paths: Sequence[PathWithReturn]) -> SchemaRows:
    """Return all hops of these, in the columns of `TRACED_HOPS`."""
    return SchemaRows(
        TRACED_HOPS,
        tuple(
            {**place, "hop": number, **hop.plain()}
            for place, hop_path in _places(paths)
            for number, hop in enumerate(hop_path.hops, 1)
        ),
    )


def _places(paths: Sequence[PathWithReturn]) -> Iterator[tuple[TableRow, HopPath]]:
    for number, path in enumerate(paths, 1):
        for direction, trace in traces_of(path):
            for place, hop_path in enumerate(trace.hop_paths, 1):
                yield {"path": number, "direction": direction, "way": place}, hop_path


@dataclass(frozen=True)
class TraceResult(FollowedMessage):
    """The result of `trace`.

    ``paths``: one, or several if an unknown dialog decides between them. ``way_rows`` and ``hop_rows`` have all of
    it (`result_schemas.TRACED_WAYS`, `result_schemas.TRACED_HOPS`). ``others`` as in `Explanation`. ``remedies``
    are for the hops where a path fails.
    """

    way_rows: SchemaRows
    hop_rows: SchemaRows
    others: int = 0
    remedies: tuple[Remedy, ...] = ()


@checked
def trace(
    tables: Mapping[str, Table] | Config,
    question: Question,
    *,
    as_of: datetime | None = None,
    clock: datetime | None = None,
    exports: Sequence[str] = (),
    spark: SparkSession | None = None,
) -> TraceResult:
    """Follow one message from instance to instance to its end, and its acknowledgement back.

    Every hop is decided at the time of the first one. All instances, databases, services and routes are read.

    Args:
        tables: as for `explain`.
        question: the message.
        as_of: the decision time of a run with a single one (UTC). The question's own time has priority.
        clock: as for `explain`.
        exports: files and folders of exported views with causes other than routing, as for `check`.
        spark: the session for tables that need one. By default one is started.

    Returns:
        The paths there and back, ``way_rows`` and ``hop_rows`` (`result_schemas.TRACED_WAYS`,
        `result_schemas.TRACED_HOPS`), and the remedies for the hops where a path fails.

    Raises:
        QuestionError: no such message, instance or database exists, or a run would reject the message.
        InputError: a table breaks its contract.

    Example:
        >>> done = routing.trace(routing.load_config("job.yaml"), routing.StoredMessage("m3"))
        >>> [(hop["instance_name"], hop["outcome"], hop["address"]) for hop in done.hop_rows]
        [('hub', 'SENT', 'TCP://far.example:4022'), ('hub', 'SENT', 'tcp://mirror.example:4022')]
    """
    source, as_of = open_source(tables, as_of, spark)
    posed = pose(source, question, as_of)
    judged = judge_question(posed.question, posed.known_tables)
    settings = read_settings(source.inputs)
    refuse_faults(settings)
    inputs = CheckedInputs(settings)
    followed = follow_question(judged, inputs.network_for(judged.services))
    read_facts = partial(source.describe_facts, inputs.settings, judged.services)
    status = source.read_status(posed.question, clock)
    remedies = advise_on_question(judged, followed, read_facts, status, exports)
    paths = followed.paths
    rows = way_rows(paths), hop_rows(paths)
    return TraceResult(judged.message, judged.case.from_service, paths, *rows, posed.other_count, remedies)


# The printed result.


_SHOWN = 20


def make_document(done: TraceResult) -> Document:
    """Describe a trace: the end of the message, the actions, then each path there and back."""
    return [
        *_state_answers(done),
        *_what_to_do(done),
        Paragraph(""),
        Paragraph(_head(done)),
        *(block for number, path in enumerate(done.paths, 1) for block in _path(done, path, number)),
    ]


def _state_answers(done: TraceResult) -> Iterator[Block]:
    if len(done.paths) == 1:
        yield Paragraph(state_path(done, done.paths[0]))
        return
    yield Paragraph(f"The path depends on the dialog, which is not given. It is one of {len(done.paths)} paths.")
    for number, path in enumerate(done.paths, 1):
        yield ListItem(state_path(done, path), f"{number}.", 1)


def _what_to_do(done: TraceResult) -> Iterator[Block]:
    for remedy in done.remedies:
        yield from remedy.list_blocks(f"what to do on {remedy.server}")
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
        yield DocumentHeading(f"Path {number} of {len(done.paths)}; the dialog-ID hash picks one")
    yield from _trace("There", path.there)
    if path.is_back_unknown:
        yield DocumentHeading(["And back: ", mark_outcome(Ending.NOT_KNOWN), f", because {why_unknown(done)}."], 3)
    if path.back is not None:
        yield from _trace(f"And back to {quote(done.from_service)}, bound to its broker instance", path.back)


def _trace(direction: str, trace: MessageTrace) -> Iterator[Block]:
    shown_paths: Sequence[HopPath] = trace.hop_paths[:_SHOWN]
    if len(trace.hop_paths) == 1:
        yield DocumentHeading(f"{direction}:", 3)
        yield from path_blocks(trace.hop_paths[0], indent=1)
        return
    agree = {True: "all end alike", False: "they end differently", None: "not all are followed"}[trace.ways_agree]
    or_more = " or more" if trace.is_cut else ""
    yield DocumentHeading(
        f"{direction}, by {len(trace.hop_paths)}{or_more} paths that the transport may take; {agree}:", 3
    )
    for number, hop_path in enumerate(shown_paths, 1):
        yield Paragraph(f"path {number}", 1)
        yield from path_blocks(hop_path, indent=2)
    if len(trace.hop_paths) > _SHOWN:
        more_paths = count(len(trace.hop_paths) - _SHOWN, "more path")
        yield Paragraph(f"and {more_paths} (--format json has all)", 1)
    if trace.is_cut:
        yield Paragraph([mark_outcome(Ending.TOO_MANY_WAYS), f": {ENDING_WORDS[Ending.TOO_MANY_WAYS]}"], 1)


def write_trace(done: TraceResult) -> str:
    """Return one line of JSON: the message, and each path there and back with its end and hops."""
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
                    "end": str(path.judged.end),
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


def make_counts_document(done: WrittenPaths) -> Document:
    """Describe the numbers of messages that arrive or end elsewhere, and the sum of the counts."""
    counts = sorted(done.ends.items(), key=lambda item: (-item[1], item[0]))
    added = f"{done.traced:,} followed + {done.rejected:,} rejected"
    read = f"{count(done.read, 'message')} read = {added}; version {done.version} of output.message_paths"
    hint = "resolve lists the rejected ones with their faults"
    return [
        Paragraph(_state_ends(done)),
        DataTable(make_columns(["end", "messages"], ["messages"]), counts, "Where messages end"),
        Paragraph(read),
        *([Paragraph(hint)] if done.rejected else []),
    ]


def _state_ends(done: WrittenPaths) -> Words:
    if not done.traced:
        return "No message was followed."
    arrived = done.ends.get(PathEnd.DELIVERED, 0)
    are = "is" if arrived == 1 else "are"
    sentence = [f"{arrived:,} of {count(done.traced, 'message')} {are} ", mark_outcome(Ending.DELIVERED)]
    other_ends = sorted(set(done.ends) - {PathEnd.DELIVERED}, key=lambda word: (-done.ends[word], word))
    for number, word in enumerate(other_ends):
        sentence += [f"{', ' if number else '; '}{done.ends[word]:,} ", mark_outcome(word)]
    return [*sentence, "."]


def write_counts(done: WrittenPaths) -> str:
    """Return one line of JSON: version, read, followed, rejected, ends, and outcomes of the first hops."""
    counts = {"version": done.version, "read": done.read, "followed": done.traced, "rejected": done.rejected}
    return write_json({**counts, "ends": dict(done.ends), "outcomes": dict(done.outcomes)})
