"""How many messages took which way, and when: counted where the rows are, told as `facts` has them."""

from __future__ import annotations

from typing import Any

from routing.engines.traffic_tables import COUNT, TimeSpans, TrafficTable, open_traffic
from routing.features.report.facts import MessageFlow, MessageSeries, TimePoint
from routing.features.report.scale import DECIDED, ENQUEUED, FLOW, CountedFlows, Dialogs, choose_scale
from routing.tables.table_columns import Table

_DIALOG = ("broker_instance", "rerouted_from", "conversation_id", "matching_step")


def count_all(resolved: Table) -> tuple[list[MessageFlow], MessageSeries]:
    """Return every flow of the messages, most first, and the messages over time, in the order of time.

    ``resolved`` is the table ``resolved_routes``, of which a row that a later attempt has replaced does not count.
    Its rows stay where they are: they are read once for the flows, and few columns of them once more, since by
    then it is known how finely a picture can show them (`scale.choose_scale`).
    """
    messages = open_traffic(resolved).last_attempts((*FLOW, ENQUEUED, DECIDED))
    counted = _count_flows(messages)
    scale = choose_scale(counted)
    points = (TimePoint(*one) for one in messages.points(scale.step, scale.services, scale.instances))
    ordered = sorted(points, key=_place_of_point)
    return sorted(counted.flows, key=_place_of_flow), MessageSeries(scale.seconds, ordered, counted.last)


def count_dialogs(resolved: Table, spans: TimeSpans) -> Dialogs:
    """Return how many dialogs were balanced to each broker instance (matching step 3), by where they were.

    ``spans`` name the instances, databases whose routes are searched, and services, each with the time, in
    microseconds, from which on and before which its messages were decided (None: no bound). What has no dialog is
    left out. A dialog counts once for a broker instance, however many messages it has.
    """
    return open_traffic(resolved).last_attempts((*FLOW, DECIDED, *_DIALOG)).balanced_dialogs(spans)


def _count_flows(messages: TrafficTable) -> CountedFlows:
    groups = messages.groups(FLOW, least=(ENQUEUED, DECIDED), most=(DECIDED,)).rows()
    flows = [MessageFlow(*values) for values in groups.rows(*FLOW, COUNT, f"min_{ENQUEUED}")]
    first, last = groups.values[f"min_{DECIDED}"], groups.values[f"max_{DECIDED}"]
    return CountedFlows(flows, min(first, default=None), max(last, default=None))


def _place_of_flow(flow: MessageFlow) -> tuple[Any, ...]:
    # No text in the outputs is empty.
    where = (flow.instance, flow.database or "", flow.service, flow.outcome, flow.reason or "")
    return (-flow.messages, *where, flow.route or "", flow.address or "", flow.destination_database or "")


def _place_of_point(point: TimePoint) -> tuple[Any, ...]:
    return (point.at, *map(_text, (point.instance, point.service, point.outcome)))


def _text(value: str | None) -> tuple[bool, str]:
    """Return a sort key that puts nulls after all texts."""
    return value is None, value or ""
