"""Follow one message: from tables and a question to its paths."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import Config
from routing.features.explain.explained_tables import open_source
from routing.features.explain.judging import JudgedQuestion, judge_question
from routing.features.explain.looking_up import pose
from routing.features.explain.questions import Question
from routing.features.trace.path_rows_shown import hop_rows, way_rows
from routing.plan.estate import network_of
from routing.plan.paths import PathPlanner
from routing.rules import text
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, PathWithReturn
from routing.rules.resolving import RoutedMessage
from routing.tables.input_columns import read_settings
from routing.tables.row_faults import refuse_faults
from routing.tables.schema_rows import SchemaRows
from routing.tables.table_columns import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TraceResult:
    """The result of `trace`.

    ``paths``: one, or where the dialog decides and is not known one for each that differs. ``ways`` and ``hops``
    have all of it as rows (`schemas.TRACED_WAYS`, `schemas.TRACED_HOPS`). ``others`` as in `Explanation`.
    """

    message: RoutedMessage
    from_service: str | None
    paths: tuple[PathWithReturn, ...]
    ways: SchemaRows
    hops: SchemaRows
    others: int = 0


def trace(
    tables: Mapping[str, Table] | Config,
    question: Question,
    *,
    as_of: datetime | None = None,
    spark: SparkSession | None = None,
) -> TraceResult:
    """Follow one message from instance to instance to where it ends, and the reply to it back.

    Every hop is decided at the time at which the first one is. All instances, databases, services and routes are
    read.

    Args:
        tables: as `explain` takes them.
        question: the message.
        as_of: the one decision time of a run that has one (UTC); a question's own time wins.
        spark: the session for tables that need one; by default one is started.

    Returns:
        The paths there and back; ``ways`` and ``hops`` as rows (`schemas.TRACED_WAYS`, `schemas.TRACED_HOPS`).

    Raises:
        QuestionError: no such message, instance or database exists, or a run would reject the message.
        InputError: a table breaks its contract.

    Example:
        >>> done = routing.trace(routing.load_config("job.yaml"), routing.StoredMessage("m3"))
        >>> [(hop["instance_name"], hop["outcome"], hop["address"]) for hop in done.hops]
        [('hub', 'SENT', 'TCP://far.example:4022'), ('hub', 'SENT', 'tcp://mirror.example:4022')]
    """
    source, as_of = open_source(tables, as_of, spark)
    posed = pose(source, question, as_of)
    judged = judge_question(posed.asked, posed.known_tables)
    from_service = text.empty_as_null(posed.asked.row["from_service_name"])
    services = {judged.message.service, *([from_service] if from_service else [])}
    paths = _paths(judged, read_network(source.inputs, services), from_service)
    return TraceResult(judged.message, from_service, paths, way_rows(paths), hop_rows(paths), posed.others)


def read_network(tables: Mapping[str, Table], services: Collection[str]) -> EstateNetwork:
    """Return all instances as messages to some services see them. Raises InputError where a row is at fault."""
    settings = read_settings(tables)
    refuse_faults(settings)
    return network_of(settings, services)


def _paths(judged: JudgedQuestion, network: EstateNetwork, from_service: str | None) -> tuple[PathWithReturn, ...]:
    message = judged.message
    back_to = None if from_service is None else ServiceAddress.of_name(from_service)
    dialog, instance = message.conversation_id, network.instances[message.instance]
    sender = PathSender(instance, message.database, message.is_initiator, back_to, dialog)
    verdicts = [verdict for _, verdict in judged.possible]
    return tuple(dict.fromkeys(PathPlanner(network).paths(sender, message, verdicts)))
