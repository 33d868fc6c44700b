"""Find the ends of messages that left their instance, once for each distinct key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from routing.engines.traffic_tables import SentKey
from routing.lint.lint_estate import with_keys
from routing.plan.checked_inputs import instances_of
from routing.plan.paths import PathPlanner
from routing.rules.estate import SqlInstance
from routing.rules.following import MessageTrace
from routing.rules.judging import join_endings, read_all
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, earliest
from routing.tables.table_columns import TableColumns
from routing.terms import LEAVES, NOT_KNOWN, PathEnd, Reason

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
