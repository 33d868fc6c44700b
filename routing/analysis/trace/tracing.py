"""Follow one message: from tables and a question to its paths."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from routing.analysis.explain.asked import Question
from routing.analysis.explain.given import open_source
from routing.analysis.explain.judging import Judged, judge_question
from routing.analysis.explain.looking_up import pose
from routing.analysis.trace.rows import hop_rows, way_rows
from routing.config import Config
from routing.plan.estate import network_of
from routing.plan.paths import PathPlanner
from routing.rules import text
from routing.rules.network import Addressee, Network
from routing.rules.pathing import Path, Sender
from routing.rules.resolving import Message
from routing.storage.columns import Table
from routing.storage.faults import refuse_faults
from routing.storage.inputs import read_settings
from routing.storage.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Traced:
    """What `trace` returns.

    ``paths``: one, or where the dialog decides and is not known one for each that differs. ``ways`` and ``hops``
    have all of it as rows (`schemas.TRACED_WAYS`, `schemas.TRACED_HOPS`). ``others`` as in `Explanation`.
    """

    message: Message
    from_service: str | None
    paths: tuple[Path, ...]
    ways: Rows
    hops: Rows
    others: int = 0


def trace(
    tables: Mapping[str, Table] | Config,
    question: Question,
    *,
    as_of: datetime | None = None,
    spark: SparkSession | None = None,
) -> Traced:
    """Follow one message from instance to instance to where it ends, and the reply to it back.

    Arguments and errors are those of `routing.analysis.explain.explaining.explain`; all instances, databases,
    services and routes are read, and checked. Every hop is decided at the time at which the first one is.
    """
    source, as_of = open_source(tables, as_of, spark)
    posed = pose(source, question, as_of)
    judged = judge_question(posed.asked, posed.known)
    from_service = text.empty_as_null(posed.asked.row["from_service_name"])
    services = {judged.message.service, *([from_service] if from_service else [])}
    paths = _paths(judged, read_network(source.tables, services), from_service)
    return Traced(judged.message, from_service, paths, way_rows(paths), hop_rows(paths), posed.others)


def read_network(tables: Mapping[str, Table], services: Collection[str]) -> Network:
    """Return all instances as messages to some services see them. Raises InputError where a row is at fault."""
    settings = read_settings(tables)
    refuse_faults(settings)
    return network_of(settings, services)


def _paths(judged: Judged, network: Network, from_service: str | None) -> tuple[Path, ...]:
    message = judged.message
    back_to = None if from_service is None else Addressee.of_name(from_service)
    dialog, instance = message.conversation_id, network.instances[message.instance]
    sender = Sender(instance, message.database, message.is_initiator, back_to, dialog)
    verdicts = [verdict for _, verdict in judged.possible]
    return tuple(dict.fromkeys(PathPlanner(network).paths(sender, message, verdicts)))
