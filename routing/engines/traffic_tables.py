"""Open a table that grows with the traffic by Spark or by Arrow, and name what is counted in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from routing.tables.table_columns import ALL, COUNT, Filter, Table, by_engine
from routing.terms import LEAVES, NOT_KNOWN

if TYPE_CHECKING:
    from routing.engines.arrow.arrow_traffic import ArrowTraffic
    from routing.engines.spark.spark_traffic import SparkTraffic

TimeSpans = Mapping[tuple[str, str, str], "tuple[int | None, int | None]"]
"""First and end time in microseconds (None: no limit) by instance, searched database and service."""


class RouteUse(NamedTuple):
    """A route that messages took or might have taken, and its place.

    ``rerouted_from`` is the route that led them back there, or None.
    """

    instance: str
    database: str | None
    rerouted_from: str | None
    route: str | None


class SentKey(NamedTuple):
    """The facts that decide where messages that left their instance end."""

    instance: str
    database: str | None
    service: str
    outcome: str
    address: str | None
    broker_instance: str | None
    is_initiator: bool


SENT_KEY = (
    *("instance_name", "database_name", "to_service_name", "outcome", "address", "broker_instance"),
    "is_initiator",
)
"""The columns of ``resolved_routes`` in a `SentKey`."""


def name_end(outcome: str, ending: str | None) -> str:
    """Return the ending of messages, which is their outcome unless they leave the instance."""
    return ending or (NOT_KNOWN if outcome in LEAVES else outcome)


class TimePoint(NamedTuple):
    """Messages decided from ``at`` on, for as long as a step of their series.

    Only the services with most messages are named, and of very many instances only these: the messages of all
    others have ``service`` None, or both. ``ending`` belongs to their `SentKey`, or is None without one.
    """

    at: int
    instance: str | None
    service: str | None
    outcome: str
    messages: int
    ending: str | None = None

    @property
    def end(self) -> str:
        """The word for their end."""
        return name_end(self.outcome, self.ending)


class BalancedTarget(NamedTuple):
    """A broker instance that step 3 picks in the routes of ``database``."""

    instance: str
    database: str
    service: str
    broker_instance: str


BalancedDialogs = Mapping[BalancedTarget, int]
"""The number of dialogs that step 3 assigned to each broker instance, each dialog counted once.

A row of ``resolved_routes`` counts if its ``matching_step`` is 3 and its ``decided_at`` is in the scope's time
span. Its scope is msdb if it has no ``database_name`` (it arrived) or has ``rerouted_from`` (it came back).
"""


TrafficTable = Union["ArrowTraffic", "SparkTraffic"]
"""One table whose rows are not loaded, with the operations that `ArrowTraffic` describes.

An operation reads only the columns that it names. Results have times in microseconds since 1970, and text that is
not UTF-8 as `UndecodedText`. A column that the table lacks is null.
"""


def open_traffic(table: Table, key: str | None = None) -> TrafficTable:
    """Open a table with the engine that it belongs to.

    Args:
        table: a Spark DataFrame, or a table or dataset of Arrow.
        key: the key of an input or kept table, whose columns are matched without case and checked. None for an
            output, which keeps the columns that it has.

    Raises:
        InputError: a column of table ``key`` is missing, or has a type that is not accepted (tables.md).
    """
    return by_engine(
        {"table": table}, spark=lambda: _open_frame(table, key), arrow=lambda: _open_arrow(table, key)
    )


def _open_frame(table: Any, key: str | None) -> TrafficTable:
    from routing.engines.spark.spark_traffic import SparkTraffic

    return SparkTraffic.of(table, key)


def _open_arrow(table: Any, key: str | None) -> TrafficTable:
    from routing.engines.arrow.arrow_traffic import ArrowTraffic

    return ArrowTraffic.of(table, key)


def count_by(table: Table, names: Sequence[str], only: Filter = ALL) -> Counter[tuple[Any, ...]]:
    """Count the rows of a table by their values in some columns."""
    groups = open_traffic(table).groups(names, only=only).rows()
    counts: Counter[tuple[Any, ...]] = Counter()
    for *group, count in groups.rows(*names, COUNT):
        counts[tuple(group)] += count
    return counts
