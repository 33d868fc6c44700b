"""The operations on a table that grows with the traffic, implemented by Spark and by Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from routing.tables.table_columns import ALL, COUNT, Filter, Table, TableColumns, by_engine
from routing.terms import ReadRow

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


class CountedMessages(NamedTuple):
    """The number of messages decided in the time step that begins at ``at``.

    A name is None if it is not counted separately. ``ending`` belongs to their `SentKey`, or is None without one.
    """

    at: int
    instance: str | None
    service: str | None
    outcome: str
    messages: int
    ending: str | None


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


class TrafficTable(Protocol):
    """One table whose rows are not loaded. An operation reads only the columns that it names.

    Results have times in microseconds since 1970, and text that is not UTF-8 as `UndecodedText`. A column that the
    table lacks is null.
    """

    @property
    def source(self) -> Table:
        """The original table."""

    def rows(
        self,
        names: Sequence[str] | None = None,
        *,
        only: Filter = ALL,
        same: ReadRow = ALL,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> TableColumns:
        """Return the first rows in an order, ascending and with nulls last, in some columns (None: all).

        Each row has the values in ``same``, where null equals empty text. Text that is not UTF-8 is compared in
        its readable form.
        """

    def count(self, present: Sequence[str] = ()) -> int:
        """Count the rows with a value in each of some columns."""

    def groups(
        self,
        by: Sequence[str],
        *,
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        varying: str | None = None,
        only: Filter = ALL,
    ) -> TrafficTable:
        """Group the rows by some columns and count the rows of each group (`COUNT`).

        Each group also has the minimum of the columns in ``least`` (as ``min_NAME``) and the maximum of those in
        ``most`` (as ``max_NAME``). With ``varying``, only groups with different values in this column are
        returned.
        """

    def last_attempts(self, names: Sequence[str]) -> TrafficTable:
        """Return resolved messages without the rows that a later attempt replaced.

        ``names`` has all columns that later operations need.
        """

    def matching(
        self,
        keys: TrafficTable | TableColumns,
        on: Sequence[str],
        *,
        names: Sequence[str],
        only: Filter = ALL,
    ) -> TrafficTable:
        """Return the columns ``names`` of the rows that match a row of ``keys`` in the columns ``on``."""

    def folded(
        self, name: str, wanted: Collection[str], *, only: Filter = ALL, names: Sequence[str] | None = None
    ) -> TrafficTable:
        """Return the few rows with one of some folded texts in a column, ignoring the case of A to Z."""

    def in_asking_order(self, only: Filter, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
        """Yield messages in parts, ordered by (t, message_id) with t as their time or ``as_of``.

        Messages without a time are left out. The next value of ``sizes`` is the number of rows of a part. A part
        may have a few more. Duplicates in all columns that decide a message may be missing at its end.
        """

    def doubtful_rows(self, key: str, now: int) -> TableColumns:
        """Return the rows of dialogs or route_requests (``key``) that lint may have findings for at a time.

        These lack a value, may share their key, have text that is not UTF-8 or share a conversation group. A few
        other rows may be among them.
        """

    def route_uses(self) -> Iterable[RouteUse]:
        """Return the distinct routes that resolved messages took or might have taken, with their places."""

    def points(
        self,
        step: int,
        services: Sequence[tuple[str, str]],
        instances: Sequence[str],
        endings: Mapping[SentKey, str],
    ) -> Iterator[CountedMessages]:
        """Count the resolved messages of each time step, in steps of ``step`` microseconds.

        The ``services`` (each with its instance), ``instances`` and ``endings`` are counted separately. All others
        are None.
        """

    def balanced_dialogs(self, spans: TimeSpans) -> BalancedDialogs:
        """Count the dialogs that were balanced to each broker instance in the time spans."""


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
