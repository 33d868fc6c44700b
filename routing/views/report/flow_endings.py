"""Find the ends of messages that left their instance, once for each distinct key from their address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from routing.engines.traffic_tables import SentKey
from routing.lint.lint_estate import with_keys
from routing.plan.checked_inputs import instances_of
from routing.plan.paths import PathPlanner
from routing.rules import text
from routing.rules.estate import SqlInstance
from routing.rules.following import MessageTrace, TracedMessage
from routing.rules.judging import join_endings, read_all
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.tables.table_columns import TableColumns
from routing.terms import NOT_KNOWN, PathEnd, Reason
from routing.views.page.facts import LEAVES

_MOST_INTERVALS = 100
"""The maximal number of estate changes between the first and the last message of a key."""


class FlowEnd(NamedTuple):
    """An ending, and its reason and instance if they are known."""

    ending: str
    reason: str | None = None
    instance: str | None = None


_UNKNOWN = FlowEnd(NOT_KNOWN)


@dataclass
class FlowEndings:
    """Finds where messages end in an estate.

    Messages of one key may end differently, at other times or by their dialogs: then their ending is not known.
    """

    network: EstateNetwork
    _intervals: dict[object, list[tuple[int, int | None, FlowEnd]]] = field(default_factory=dict)

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
        if sender is None or key.address is None:
            return _UNKNOWN
        ending: FlowEnd | None = None
        t: int | None = first
        for _ in range(_MOST_INTERVALS):
            if t is None or t > last:
                break
            t, end = self._find_at(key, sender, key.address, t)
            if ending is not None and end != ending:
                # They may have the same ending at different instances.
                end = FlowEnd(end.ending) if end.ending == ending.ending else _UNKNOWN
            ending = end
            if ending == _UNKNOWN:
                break
        return _UNKNOWN if ending is None or (t is not None and t <= last) else ending

    def _find_at(self, key: SentKey, sender: SqlInstance, address: str, t: int) -> tuple[int | None, FlowEnd]:
        """Return the end of messages that are decided at a time, and the end of its interval."""
        owners = tuple(owner.name for owner in self.network.owners(address, sender))
        place = owners or text.comparable_address(address)
        intervals = self._intervals.setdefault((place, key.service, key.broker_instance, key.is_initiator), [])
        for since, until, end in intervals:
            if since <= t and (until is None or t < until):
                return until, end
        until, end = self._follow(key, sender, address, t)
        intervals.append((t, until, end))
        return until, end

    def _follow(self, key: SentKey, sender: SqlInstance, address: str, t: int) -> tuple[int | None, FlowEnd]:
        message = TracedMessage(ServiceAddress.of_name(key.service), key.is_initiator, t, 0)
        times, ends = list[int](), set[FlowEnd]()
        for followed in self._planner.follow_sent(sender, address, message, key.broker_instance):
            if followed.until is not None:
                times.append(followed.until)
            ends.add(_end_of(followed.trace))
        if len(ends) > 1 and len({end.ending for end in ends}) == 1:
            ends = {FlowEnd(end.ending) for end in ends}
        return min(times, default=None), ends.pop() if len(ends) == 1 else _UNKNOWN


def _end_of(trace: MessageTrace) -> FlowEnd:
    """Return the common end of all paths from an address, without acknowledgements."""
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
