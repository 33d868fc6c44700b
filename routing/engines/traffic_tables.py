"""The operations over a table that grows with the traffic; Spark and Arrow each do them in their own way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from routing.tables.table_columns import ALL, COUNT, Filter, Table, TableColumns, by_engine
from routing.terms import ReadRow

TimeSpans = Mapping[tuple[str, str, str], "tuple[int | None, int | None]"]
"""From when on and until when (microseconds; None: no bound), by instance, searched database and service."""


class RouteUse(NamedTuple):
    """A route that messages took or might have taken, and where; ``rerouted_from`` led them back there."""

    instance: str
    database: str | None
    rerouted_from: str | None
    route: str | None


class SentKey(NamedTuple):
    """The facts that decide where messages end that were sent to an address."""

    instance: str
    service: str
    outcome: str
    address: str | None
    broker_instance: str | None
    is_initiator: bool


SENT_KEY = ("instance_name", "to_service_name", "outcome", "address", "broker_instance", "is_initiator")
"""The columns of ``resolved_routes`` that a `SentKey` holds."""


class CountedMessages(NamedTuple):
    """Messages decided in the step of time that begins at ``at``; None where a name is not kept apart.

    ``ending`` is that of their `SentKey`, None if it has none.
    """

    at: int
    instance: str | None
    service: str | None
    outcome: str
    messages: int
    ending: str | None


class BalancedTarget(NamedTuple):
    """A broker instance that step 3 picks, and the search that it is picked in: ``database`` is searched."""

    instance: str
    database: str
    service: str
    broker_instance: str


BalancedDialogs = Mapping[BalancedTarget, int]
"""How many dialogs step 3 shared out to each broker instance, each dialog counted once.

A row of ``resolved_routes`` counts with ``matching_step`` 3 and a ``decided_at`` in the scope's time. Its scope is
that of msdb where it has no ``database_name`` (it arrived) or has ``rerouted_from`` (it came back).
"""


class TrafficTable(Protocol):
    """The rows of one table, which stay where they are: an operation reads no other columns than it names.

    Times are microseconds since 1970 in what is returned. A text that is no UTF-8 is an `UndecodedText` there.
    A column that the table lacks is null.
    """

    @property
    def source(self) -> Table:
        """The table as it was given."""

    def rows(
        self,
        names: Sequence[str] | None = None,
        *,
        only: Filter = ALL,
        same: ReadRow = ALL,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> TableColumns:
        """Return the first rows in an order, ascending and nulls last, in some columns (None: all).

        ``same`` are values that each row has, null and empty text being equal; a text that is no UTF-8 is known by
        how it is shown.
        """

    def count(self, present: Sequence[str] = ()) -> int:
        """Return how many rows have a value in each of some columns."""

    def groups(
        self,
        by: Sequence[str],
        *,
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        varying: str | None = None,
        only: Filter = ALL,
    ) -> TrafficTable:
        """Return the rows' distinct values in some columns, and of each how many rows have it (`COUNT`).

        Of the columns ``least`` and ``most`` the least (``min_`` and its name) and the greatest value (``max_``)
        of each group. Only groups in which column ``varying`` has two values that differ, if it is given.
        """

    def last_attempts(self, names: Sequence[str]) -> TrafficTable:
        """Return resolved messages without the rows that a later attempt has replaced.

        ``names`` are all columns that are asked for.
        """

    def matching(
        self,
        keys: TrafficTable | TableColumns,
        on: Sequence[str],
        *,
        names: Sequence[str],
        only: Filter = ALL,
    ) -> TrafficTable:
        """Return the rows whose values in columns ``on`` stand in a row of ``keys``, in columns ``names``."""

    def folded(
        self, name: str, wanted: Collection[str], *, only: Filter = ALL, names: Sequence[str] | None = None
    ) -> TrafficTable:
        """Return the rows of which a text is one of some with the letters A to Z folded: few, in some columns."""

    def in_asking_order(self, only: Filter, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
        """Yield messages in parts by (t, message_id), t their time or ``as_of``; none without a time.

        A part has as many rows as ``sizes`` says, or a few more. Of rows that are equal in all that decides a
        message some may be left out at the end of a part.
        """

    def doubtful_rows(self, key: str, now: int) -> TableColumns:
        """Return the rows of dialogs or route_requests (``key``) that lint can find something in at a moment.

        These lack a value, may share their key, are no UTF-8 or, of dialogs, are of one conversation group; maybe
        some more.
        """

    def route_uses(self) -> Iterable[RouteUse]:
        """Return the distinct routes that resolved messages took or might have taken, and where."""

    def points(
        self,
        step: int,
        services: Sequence[tuple[str, str]],
        instances: Sequence[str],
        endings: Mapping[SentKey, str],
    ) -> Iterator[CountedMessages]:
        """Yield how many resolved messages were decided in each step of so many microseconds.

        ``services`` (each with its instance) and ``instances`` are kept apart, all others are None. So are the
        ``endings`` of messages.
        """

    def balanced_dialogs(self, spans: TimeSpans) -> BalancedDialogs:
        """Return how many dialogs were balanced to each broker instance in the spans of time."""


def open_traffic(table: Table, key: str | None = None) -> TrafficTable:
    """Return a table for the engine that has its rows.

    Args:
        table: a DataFrame of Spark, a table or a dataset of Arrow.
        key: the key of an input or a kept table: its columns are matched without case and checked. Of an output
            (None) the columns are those that stand there.

    Raises:
        InputError: a column of table ``key`` is missing, or of a type that is not accepted (tables.md).
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
    """Return how many rows of a table have each combination of values in some columns."""
    groups = open_traffic(table).groups(names, only=only).rows()
    counts: Counter[tuple[Any, ...]] = Counter()
    for *group, count in groups.rows(*names, COUNT):
        counts[tuple(group)] += count
    return counts
