"""How finely messages are counted: by which columns, over which steps of time, and for which services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from routing.features.report.facts import STUCK, MessageFlow
from routing.tables.times import SECOND

FLOW = (
    *("instance_name", "database_name", "to_service_name", "outcome", "reason"),
    *("route_name", "address", "destination_database"),
)
"""What the messages of a `facts.MessageFlow` have in common, in the order of its fields."""
DECIDED, ENQUEUED = "decided_at", "enqueue_time"
MOST_STEPS = 96
_DAY = 86_400
_STEPS = (300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, _DAY, 2 * _DAY, 7 * _DAY, 28 * _DAY)
# So many with most messages, and as many with most that are stuck or lost, are told apart.
_MOST_SERVICES, _MOST_INSTANCES = 200, 100
_Named = TypeVar("_Named")
Service = tuple[str, str]
"""An instance, and a service that its messages are for."""
Dialogs = dict[tuple[str, str, str, str], int]
"""How many dialogs were balanced, by instance, database, service and broker id."""


@dataclass(frozen=True)
class CountedFlows:
    """All flows of some messages, and when the first and last of them were decided (None of no message)."""

    flows: Sequence[MessageFlow]
    first: int | None
    last: int | None


@dataclass(frozen=True)
class ReportScale:
    """Steps of so many seconds, and which services and instances are shown by name."""

    seconds: int
    services: Sequence[Service]
    instances: Sequence[str]

    @property
    def step(self) -> int:
        """A step in microseconds; steps begin at whole multiples of it."""
        return self.seconds * SECOND


def choose_scale(counted: CountedFlows) -> ReportScale:
    """Choose steps as fine as a picture can show, so that the points are few whatever is counted."""
    everything: Counter[Service] = Counter()
    trouble: Counter[Service] = Counter()
    for flow in counted.flows:
        service = (flow.instance, flow.service)
        everything[service] += flow.messages
        if flow.outcome in STUCK:
            trouble[service] += flow.messages
    services = _most(everything, _MOST_SERVICES) | _most(trouble, _MOST_SERVICES)
    instances = _most(_by_instance(everything), _MOST_INSTANCES) | _most(_by_instance(trouble), _MOST_INSTANCES)
    seconds = choose_seconds(counted.first or 0, counted.last or 0)
    return ReportScale(seconds, sorted(one for one in services if one[0] in instances), sorted(instances))


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


def _most(messages: Mapping[_Named, int], most: int) -> set[_Named]:
    """Return the names of which there are most messages."""

    def place(item: tuple[Any, int]) -> tuple[int, Any]:
        return -item[1], item[0]

    return {name for name, _ in sorted(messages.items(), key=place)[:most]}
