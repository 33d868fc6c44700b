"""How many messages took which way, and when: counted where the rows are, told as `facts` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.features.report.facts import MessageFlow, MessageSeries, TimePoint
from routing.features.report.scale import Dialogs, Spans, choose_scale
from routing.tables.table_columns import Table, is_frame

if TYPE_CHECKING:
    from routing.features.report import arrow_counts, spark_counts

    Messages = arrow_counts.ArrowMessages | spark_counts.SparkMessages


def count_all(resolved: Table) -> tuple[list[MessageFlow], MessageSeries]:
    """Return every flow of the messages, most first, and the messages over time, in the order of time.

    ``resolved`` is the table ``resolved_routes``, of which a row that a later attempt has replaced does not count.
    Its rows stay where they are: they are read once for the flows, and few columns of them once more, since by
    then it is known how finely a picture can show them (`scale.choose_scale`).
    """
    messages = _messages_of(resolved)
    counted = messages.count_flows()
    scale = choose_scale(counted)
    points = sorted(messages.count_points(scale), key=_place_of_point)
    return sorted(counted.flows, key=_place_of_flow), MessageSeries(scale.seconds, points, counted.last)


def count_dialogs(resolved: Table, spans: Spans) -> Dialogs:
    """Count the dialogs balanced to each broker id (matching step 3), by instance, database, service and id.

    ``spans`` name the instances, databases whose routes are searched, and services, each with the time, in
    microseconds, from which on and before which its messages were decided (None: no bound). What has no dialog is
    left out. A dialog counts once for an id, however many messages it has.
    """
    return _messages_of(resolved).count_dialogs(spans)


def _messages_of(resolved: Table) -> Messages:
    if not is_frame(resolved):
        from routing.features.report import arrow_counts

        return arrow_counts.ArrowMessages.of(resolved)
    from routing.features.report import spark_counts

    return spark_counts.SparkMessages.of(resolved)


def _place_of_flow(flow: MessageFlow) -> tuple[Any, ...]:
    # No text in the outputs is empty.
    where = (flow.instance, flow.database or "", flow.service, flow.outcome, flow.reason or "")
    return (-flow.messages, *where, flow.route or "", flow.address or "", flow.destination_database or "")


def _place_of_point(point: TimePoint) -> tuple[Any, ...]:
    return (point.at, *map(_text, (point.instance, point.service, point.outcome)))


def _text(value: str | None) -> tuple[bool, str]:
    """Return a sort key that puts nulls after all texts."""
    return value is None, value or ""
