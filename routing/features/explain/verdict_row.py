"""The verdict of a question as a row of ``resolved_routes``."""

from __future__ import annotations

from typing import Any

from routing.features.explain.judging import JudgedQuestion, QuestionedMessage
from routing.rules.columns import ALTERNATIVE_COLUMNS
from routing.rules.resolving import RoutedMessage, Verdict
from routing.tables.times import moment_of

# The run_id of verdicts: no run wrote them.
RUN_ID = "explain"


def verdict_row(judged: JudgedQuestion) -> dict[str, Any]:
    """Return the columns of ``resolved_routes``; null where they hang on a dialog that is not given."""
    verdicts = [verdict for _, verdict in judged.possible] if judged.is_undecided else [judged.verdict]
    rows = [{**_of_message(judged.asked, judged.message), **_columns_of(verdict)} for verdict in verdicts]
    return {
        name: value if all(row[name] == value for row in rows) else None for name, value in rows[0].items()
    } | {"run_id": RUN_ID, "attempt": 1}


def _of_message(asked: QuestionedMessage, message: RoutedMessage) -> dict[str, Any]:
    return {
        "message_id": message.message_id,
        "conversation_id": message.conversation_id,
        "is_initiator": message.is_initiator,
        "message_sequence_number": asked.row["message_sequence_number"],
        "enqueue_time": moment_of(asked.row["enqueue_time"]),
        "instance_name": message.instance,
        "database_name": message.database,
        "to_service_name": message.service,
        "to_broker_instance": message.broker,
        "decided_at": moment_of(message.t),
    }


def _columns_of(verdict: Verdict) -> dict[str, Any]:
    columns = verdict.plain()
    alternatives = columns["alternative_routes"]
    alternative_rows = [dict(zip(ALTERNATIVE_COLUMNS, each, strict=True)) for each in alternatives or ()]
    return {**columns, "alternative_routes": alternative_rows or None}
