"""Follow one message to its end, and the reply back: from tables and a question to paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from routing.advice.question_remedies import advise_on_question, beside
from routing.advice.remedy import Remedy
from routing.arguments import checked
from routing.cases.evidence import gather_beside
from routing.cases.judged_questions import FollowedMessage, follow_question, judge_question
from routing.cases.question_source import open_source, pose
from routing.cases.questions import Question
from routing.config import Config
from routing.plan.checked_inputs import CheckedInputs
from routing.result_schemas import TRACED_HOPS, TRACED_WAYS
from routing.rules.following import HopPath, MessageTrace
from routing.rules.pathing import PathWithReturn
from routing.tables.arrow_rows import SchemaRows
from routing.tables.read_rows import read_settings
from routing.tables.row_faults import refuse_faults
from routing.tables.table_columns import Table
from routing.terms import TableRow
from routing.views.path_words import end_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THERE, BACK = "THERE", "BACK"


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
    inputs = _read_inputs(source.inputs)
    followed = follow_question(judged, inputs.network_for(judged.services))
    read_own_facts = partial(source.describe_path_facts, inputs.settings, judged.services)
    read_facts = beside(read_own_facts, gather_beside(exports))
    status = source.read_background(posed, clock).status
    remedies = advise_on_question(judged, followed, read_facts, status, has_exports=bool(exports))
    paths = followed.paths
    rows = way_rows(paths), hop_rows(paths)
    return TraceResult(judged.message, judged.case.from_service, paths, *rows, posed.other_count, remedies)


def _read_inputs(tables: Mapping[str, Table]) -> CheckedInputs:
    settings = read_settings(tables)
    refuse_faults(settings)
    return CheckedInputs(settings)
