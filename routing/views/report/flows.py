"""Count the messages by path and time, in the engine of their rows, and find their ends once for each key."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

from routing.engines.traffic_tables import SENT_KEY, SentKey, TrafficTable, count_by
from routing.lint.lint_estate import with_keys
from routing.plan.checked_inputs import instances_of
from routing.plan.paths import PathPlanner
from routing.rules.estate import SqlInstance
from routing.rules.following import MessageTrace
from routing.rules.judging import join_endings, read_all
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, earliest
from routing.rules.reconciling import PairClass
from routing.rules.timeline import SECOND
from routing.tables.table_columns import COUNT, Table, TableColumns
from routing.terms import LEAVES, NOT_KNOWN, PathEnd, Reason, SortKey
from routing.views.page.facts import (
    STUCK,
    ContradictedEpisodes,
    MessageFlow,
    MessageSeries,
    ObservedCause,
    ObservedCounts,
)

FLOW = (
    *("instance_name", "database_name", "to_service_name", "outcome", "reason"),
    *("route_name", "address", "destination_database"),
)
"""The columns that the messages of a `facts.MessageFlow` share, in the order of its fields."""
DECIDED, ENQUEUED = "decided_at", "enqueue_time"
MOST_STEPS = 96
_DAY = 86_400
_STEPS = (300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, _DAY, 2 * _DAY, 7 * _DAY, 28 * _DAY)
# These numbers of services and instances with most messages, and with most stuck ones, are kept separate.
MOST_SERVICES, MOST_INSTANCES = 200, 100
_Named = TypeVar("_Named")
FindEnd = Callable[[SentKey, int, int], "FlowEnd | None"]
"""Returns the end of messages of a key that were decided in an interval, or None if they never left."""
Service = tuple[str, str]
"""An instance, and a service that its messages are for."""


def _choose_names(
    flows: Iterable[MessageFlow], most_services: int, most_instances: int
) -> tuple[list[Service], list[str]]:
    """Choose the services and instances with names, so that the number of points over time stays small."""
    messages_by_service: Counter[Service] = Counter()
    trouble: Counter[Service] = Counter()
    for flow in flows:
        service = (flow.instance, flow.service)
        messages_by_service[service] += flow.messages
        if flow.end in STUCK:
            trouble[service] += flow.messages
    both = messages_by_service, trouble
    services = set[Service]().union(*(_names_with_most(one, most_services) for one in both))
    instances = set[str]().union(*(_names_with_most(_by_instance(one), most_instances) for one in both))
    return sorted(service for service in services if service[0] in instances), sorted(instances)


def choose_seconds(first: int, last: int) -> int:
    """Return the length of steps between two times (microseconds), so that they are at most `MOST_STEPS`."""
    days = (seconds for seconds in range(_STEPS[-1], (last - first) // SECOND + 2 * _STEPS[-1], _STEPS[-1]))
    return next(seconds for seconds in (*_STEPS, *days) if _steps(first, last, seconds) <= MOST_STEPS)


def _steps(first: int, last: int, seconds: int) -> int:
    step = seconds * SECOND
    return last // step - first // step + 1


def _by_instance(messages: Mapping[Service, int]) -> Counter[str]:
    messages_by_instance: Counter[str] = Counter()
    for (instance, _), count in messages.items():
        messages_by_instance[instance] += count
    return messages_by_instance


def _names_with_most(messages: Mapping[_Named, int], most: int) -> set[_Named]:
    def place(item: tuple[Any, int]) -> tuple[int, Any]:
        return -item[1], item[0]

    return {name for name, _ in sorted(messages.items(), key=place)[:most]}


def count_all(
    resolved: TrafficTable,
    most_services: int = MOST_SERVICES,
    most_instances: int = MOST_INSTANCES,
    find_end: FindEnd | None = None,
) -> tuple[list[MessageFlow], MessageSeries]:
    """Return every flow of the messages, most frequent first, and the messages over time in order.

    ``resolved`` is the table ``resolved_routes``. Rows that a later attempt has replaced do not count. The table
    is read once for the flows, and a few columns again for the series, because the flows determine its steps and
    names. The services and instances with most messages are kept separate, up to the given numbers, and as many
    with most stuck or lost messages. ``find_end`` is called once for each distinct key of messages that left their
    instance.
    """
    messages = resolved.last_attempts((*FLOW, *SENT_KEY, ENQUEUED, DECIDED))
    by = FLOW if find_end is None else (*FLOW, *(name for name in SENT_KEY if name not in FLOW))
    groups = messages.groups(by, least=(ENQUEUED, DECIDED), most=(DECIDED,)).rows()
    first, last = groups.values[f"min_{DECIDED}"], groups.values[f"max_{DECIDED}"]
    ends: dict[SentKey, FlowEnd] = {}
    if find_end is not None:
        ends = _find_ends([SentKey(*row) for row in groups.rows(*SENT_KEY)], first, last, find_end)
    flows = _sum_flows(groups, ends)
    seconds = choose_seconds(min(first, default=0), max(last, default=0))
    endings = {key: end.ending for key, end in ends.items() if end.ending != NOT_KNOWN}
    points = messages.points(seconds * SECOND, *_choose_names(flows, most_services, most_instances), endings)
    ordered = sorted(
        points,
        key=lambda one: (one.at, *map(_text, (one.instance, one.service, one.outcome, one.ending))),
    )
    return sorted(flows, key=_place_of_flow), MessageSeries(seconds, ordered, max(last, default=None))


def _sum_flows(groups: TableColumns, ends: Mapping[SentKey, FlowEnd]) -> list[MessageFlow]:
    # Messages of one flow may differ in other columns. They are summed if they have the same end.
    summed: dict[tuple[Any, ...], list[int]] = {}
    counted = zip(groups.rows(*FLOW), groups.values[COUNT], groups.values[f"min_{ENQUEUED}"], strict=True)
    keys = groups.rows(*SENT_KEY) if ends else repeat(None)
    for (flow, number, oldest), key in zip(counted, keys, strict=False):
        end = None if key is None else ends.get(SentKey(*key))
        numbers = summed.setdefault((flow, end), [0, oldest])
        numbers[0] += number
        numbers[1] = min(numbers[1], oldest)
    return [MessageFlow(*flow, *numbers, *(end or ())) for (flow, end), numbers in summed.items()]


def _find_ends(
    keys: Sequence[SentKey], first: Sequence[int], last: Sequence[int], find_end: FindEnd
) -> dict[SentKey, FlowEnd]:
    spans: dict[SentKey, tuple[int, int]] = {}
    for key, begin, end in zip(keys, first, last, strict=True):
        known_span = spans.get(key, (begin, end))
        spans[key] = min(begin, known_span[0]), max(end, known_span[1])
    endings = ((key, find_end(key, *span)) for key, span in spans.items())
    return {key: end for key, end in endings if end is not None}


def _place_of_flow(flow: MessageFlow) -> SortKey:
    # The outputs contain no empty texts.
    place = (flow.instance, flow.database or "", flow.service, flow.outcome, flow.reason or "")
    ends = (flow.ending or "", flow.ending_reason or "", flow.ending_instance or "")
    return (-flow.messages, *place, flow.route or "", flow.address or "", flow.destination_database or "", *ends)


def _text(value: str | None) -> tuple[bool, str]:
    """Return a sort key that puts nulls after all texts."""
    return value is None, value or ""


_CAUSE = ("instance_name", "cause", "cause_text")
_CONTRADICTION = (
    *("instance_name", "database_name", "to_service_name", "observed_outcome", "observed_error_number"),
    *("predicted_outcome", "predicted_reason", "why"),
)


def count_observed(reconciliation: Table) -> ObservedCounts:
    """Count episodes by instance and class and by cause, and contradictions by their common facts."""
    classes = count_by(reconciliation, ("instance_name", "class"))
    causes = count_by(reconciliation, _CAUSE)
    off = count_by(reconciliation, _CONTRADICTION, {"class": [str(PairClass.CONTRADICTED)]})
    return ObservedCounts(
        {(instance, kind): number for (instance, kind), number in sorted(classes.items())},
        [ObservedCause(*row) for row in _most(causes) if row[1] is not None],
        [ContradictedEpisodes(*row) for row in _most(off)],
    )


def _most(counts: Counter[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], tuple(map(str, item[0]))))
    return [(*key, number) for key, number in ordered]


# The ends of messages that left their instance.


_MOST_INTERVALS = 100
"""The maximal number of estate changes between the first and the last message of a key."""


class FlowEnd(NamedTuple):
    """An ending, and its reason and instance if they are known."""

    ending: str
    reason: str | None = None
    instance: str | None = None


_UNKNOWN = FlowEnd(NOT_KNOWN)


class _SentBy(NamedTuple):
    instance: str
    database: str | None
    service: str
    broker: str | None
    is_initiator: bool


_FirstHop = tuple[str, "str | None", "str | None"]
"""An outcome, the address and the broker instance."""


class _Interval(NamedTuple):
    """The ends of a sender's messages by their first hop, from one time to another (None: no end)."""

    since: int
    until: int | None
    ends: Mapping[_FirstHop, set[FlowEnd]]


@dataclass
class FlowEndings:
    """Finds where messages end in an estate, by all paths that the transport may choose (D17).

    Messages of one key may end differently, at other times or by their dialogs: then their ending is not known.
    """

    network: EstateNetwork
    _intervals: dict[_SentBy, list[_Interval]] = field(default_factory=dict)

    @cached_property
    def _planner(self) -> PathPlanner:
        return PathPlanner(self.network)

    @classmethod
    def of(cls, settings: Mapping[str, TableColumns]) -> FlowEndings:
        """Return the endings by a configuration, routes with all their versions."""
        return cls(EstateNetwork(instances_of(with_keys(settings))))

    def find(self, key: SentKey, first: int, last: int) -> FlowEnd | None:
        """Return the end of messages of a key that were decided in an interval, or None if they never left."""
        if key.outcome not in LEAVES:
            return None
        sender = self.network.instances.get(key.instance)
        if sender is None or (key.database is not None and key.database not in sender.databases):
            return _UNKNOWN
        ends = set[FlowEnd]()
        t: int | None = first
        for _ in range(_MOST_INTERVALS):
            if t is None or t > last:
                break
            t, ends_then = self._find_at(key, sender, t)
            ends |= ends_then
        return _UNKNOWN if t is not None and t <= last else _join(ends)

    def _find_at(self, key: SentKey, sender: SqlInstance, t: int) -> tuple[int | None, set[FlowEnd]]:
        until: int | None = None
        # The broker instance of the messages' decision is their own, or one that step 3 picked.
        for broker in dict.fromkeys((key.broker_instance, None)):
            interval = self._follow(key, sender, broker, t)
            until = earliest(until, interval.until)
            ends = interval.ends.get((key.outcome, key.address, key.broker_instance))
            if ends:
                return until, ends
        return until, set()

    def _follow(self, key: SentKey, sender: SqlInstance, broker: str | None, t: int) -> _Interval:
        """Follow the messages of a sender from their first hop, for each hash that makes a difference."""
        sent_by = _SentBy(key.instance, key.database, key.service, broker, key.is_initiator)
        intervals = self._intervals.setdefault(sent_by, [])
        for interval in intervals:
            if interval.since <= t and (interval.until is None or t < interval.until):
                return interval
        path_sender = PathSender(sender, key.database, key.is_initiator)
        planned = self._planner.timeline(path_sender, ServiceAddress.of_name(key.service), broker).at(t, (None,))
        ends: dict[_FirstHop, set[FlowEnd]] = defaultdict(set)
        for trace in (choice.paths[0].there for choice in planned.choices):
            hop = trace.hop_paths[0].hops[0]
            ends[str(hop.outcome), hop.address, hop.broker_instance].add(_end_of(trace))
        intervals.append(_Interval(t, planned.valid_to, ends))
        return intervals[-1]


def _join(ends: set[FlowEnd]) -> FlowEnd:
    """Return the common end of messages. They may have one ending at several instances."""
    if len(ends) == 1:
        return next(iter(ends))
    endings = {end.ending for end in ends}
    return FlowEnd(endings.pop()) if len(endings) == 1 else _UNKNOWN


def _end_of(trace: MessageTrace) -> FlowEnd:
    # The recorded requests for routes are not read.
    if any(hop_path.reason is Reason.ROUTE_REQUESTED for hop_path in trace.hop_paths):
        return _UNKNOWN
    judged = join_endings(read_all(trace, False))
    if judged.failing_paths:
        hop_path = judged.failing_paths[0].hop_path
    elif judged.end is PathEnd.DELIVERED and trace.delivered is not None and not trace.is_cut:
        hop_path = trace.delivered
    else:
        return _UNKNOWN
    reason = Reason.ROUTING_LOOP if judged.end is PathEnd.LOOP else hop_path.reason
    return FlowEnd(str(judged.end), None if reason is None else str(reason), hop_path.instance)
