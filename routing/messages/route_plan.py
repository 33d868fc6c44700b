"""The plan of a run by Spark: messages, their keys, and the decisions for these keys as frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.messages import keying
from routing.messages.lookups import RunLookups
from routing.plan.key_rows import KEY, DecidedKeys, KeyCounts, PlanUses
from routing.run_context import ResolveOptions, RunContext
from routing.schemas import ArrayOf, ColumnKind, Field, Schema
from routing.tables import spark_forms
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide
from routing.tables.frames import frame_of_tuples
from routing.tables.table_columns import TableColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The decisions for keys as frames. Messages are joined with the rows of their key's timeline.
#
# A plan has a row for each key and interval of time. Its columns are those of the key, valid_from (inclusive) and
# valid_to (exclusive), which are null if unbounded, and choices, an array from which the dialog-ID hash picks one.


# The approximate size of a key in memory, without the rows of its timeline.
_OF_A_KEY = 300
TIMELINE = "timeline"
_NUMBER = Field(TIMELINE, ColumnKind.INT)
# The column of a key that is not text.
_KINDS = {"key_kind": ColumnKind.INT}


@dataclass(frozen=True)
class DecidedFrames:
    """The decisions for keys as frames, and their approximate size in bytes.

    ``rows`` have the columns of a plan. In a large plan they have a timeline instead of a key, because many keys
    may share one, and ``keys`` maps the columns of `key_rows.KEY` to timelines.
    """

    rows: DataFrame
    keys: DataFrame | None
    size: int
    uses: PlanUses


def as_frames(
    keys: TableColumns, decided: DecidedKeys, spark: SparkSession, frame_cache: FrameCache
) -> DecidedFrames:
    """Return the decisions for ``keys`` as frames. Large frames go to ``frame_cache`` instead of the driver."""
    numbers, timelines = decided.numbers, decided.timelines
    of_key = [Field(name, _KINDS.get(name, ColumnKind.STRING)) for name in KEY]
    of_times = [
        *(Field(name, ColumnKind.TIMESTAMP) for name in ("valid_from", "valid_to")),
        Field("choices", ArrayOf(decided.choice)),
    ]
    if sum(len(timelines[number].rows) for number in numbers) <= frame_cache.limits.held_rows:
        size = sum(timelines[number].size for number in numbers)
        whole = frame_of_tuples(spark, _whole(keys, decided), Schema((*of_key, *of_times)))
        return DecidedFrames(whole, None, size, decided.uses)
    size = _OF_A_KEY * len(numbers) + sum(timeline.size for timeline in timelines)
    rows = ((number, *row) for number, timeline in enumerate(timelines) for row in timeline.rows)
    timed = frame_cache.store(frame_of_tuples(spark, rows, Schema((_NUMBER, *of_times))))
    numbered = ((*key, number) for key, number in zip(keys.rows(*KEY), numbers, strict=True))
    named = frame_cache.store(frame_of_tuples(spark, numbered, Schema((*of_key, _NUMBER))))
    return DecidedFrames(timed, named, size, decided.uses)


def _whole(keys: TableColumns, decided: DecidedKeys) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a small plan."""
    for key, number in zip(keys.rows(*KEY), decided.numbers, strict=True):
        for row in decided.timelines[number].rows:
            yield (*key, *row)


@dataclass(frozen=True)
class RequestSides:
    """The sides of joins with messages that meet step 4.

    ``openers`` has the requests that messages open (`openers.openers`). ``by_endpoint`` has the requests of each
    waiting conversation endpoint (D10): an array of requested_at, message_id and ended_at.
    """

    openers: JoinSide
    by_endpoint: JoinSide

    @property
    def fit(self) -> bool:
        """Whether both sides are broadcast."""
        return self.openers.fits and self.by_endpoint.fits


@dataclass(frozen=True)
class MessageSource:
    """Messages and the tables that decide them, as lazy frames.

    With ``is_exact``, the pass for the keys also counts the messages to reject. ``waiting`` has the messages that
    wait for a route (`keying.select_waiting`), or is None if requests are broadcast.
    """

    messages: DataFrame
    lookups: RunLookups
    context: RunContext
    is_exact: bool = False
    waiting: JoinSide | None = None

    @property
    def broadcasts(self) -> BroadcastBudget:
        """The budget that decides how rows are joined."""
        return self.lookups.broadcasts

    @property
    def dialogs(self) -> JoinSide | None:
        """The dialogs that may change a decision."""
        return self.lookups.dialogs

    @property
    def options(self) -> ResolveOptions:
        """How messages are resolved."""
        return self.context.options

    @property
    def any_ends(self) -> bool:
        """Whether a dialog has a lifetime."""
        return self.dialogs is not None and self.lookups.checked.ending > 0

    def may_reject(self, counts: KeyCounts) -> bool:
        """Return whether any message may have to be set aside, now or in a later pass."""
        return counts.rows_rejected != 0 or self.options.may_change

    def keys(self) -> DataFrame:
        """Return the distinct keys of all messages with their counts (see `keying.count_keys`)."""
        messages = keying.add_dialog(keying.clean(self.messages, self.options.as_of), self.dialogs)
        return keying.count_keys(messages, self.lookups, is_exact=self.is_exact)

    def names(self) -> DataFrame:
        """Return the distinct names in all messages with their counts (see `keying.count_names`)."""
        return keying.count_names(keying.add_dialog(keying.clean(self.messages, self.options.as_of), self.dialogs))

    @property
    def names_fit(self) -> bool:
        """Whether the names of the configuration are broadcast."""
        lookups = self.lookups
        return all(side.fits for side in (lookups.scopes, lookups.services, lookups.brokers))

    def bound_messages(self, *, checks_rows: bool) -> DataFrame:
        """Return prepared messages with the broker instance that they are bound to, faulty rows left out."""
        messages = self.messages.where(spark_forms.is_well_formed()) if checks_rows else self.messages
        prepared = keying.prepare(messages, self.options.as_of)
        if self.waiting is not None:
            prepared = keying.add_waiting(prepared, self.waiting)
        return keying.bind(keying.add_dialog(prepared, self.dialogs))

    def resolvable(self, *, checks_rows: bool, checks_scopes: bool) -> DataFrame:
        """Return the messages to be resolved, bound and keyed. Facts of all messages are not checked again."""
        messages = self.bound_messages(checks_rows=checks_rows)
        if checks_scopes or self.lookups.checked.has_transport:
            messages = keying.add_scope(messages, self.lookups)
        valid = messages.where(F.col("own_addresses").isNotNull()) if checks_scopes else messages
        return keying.add_keys(valid, self.lookups)

    def keep(self, rows_name: str, rows: DataFrame, most_rows: int | None = None) -> JoinSide:
        """Keep rows that several passes read, at most ``most_rows``, and choose how they are joined."""
        cached = self.lookups.frame_cache.keep_sized(rows, most_rows)
        if cached.size is None:
            return self.broadcasts.join_side(rows_name, cached.rows)
        return self.broadcasts.of_size(rows_name, cached.rows, cached.size)

    def key(self, messages: DataFrame) -> DataFrame:
        """Bind messages of `keying.add_dialog` and add their keys."""
        return keying.add_keys(keying.bind(messages), self.lookups)


@dataclass(frozen=True)
class RoutePlan:
    """The plan of a run: messages, their keys, and the decisions for these, as input of the outputs.

    Frames are lazy, but ``counts`` are known. ``choices`` are the messages to be resolved with their choice
    (`results.choose`). ``requests`` has the requests that messages open or wait for, or is None if no message can.
    ``decided`` are the driver's decisions, or None if workers decided.
    """

    source: MessageSource
    counts: KeyCounts
    uses: PlanUses
    choices: DataFrame
    requests: RequestSides | None = None
    decided: DecidedFrames | None = None

    @property
    def options(self) -> ResolveOptions:
        """How messages are resolved."""
        return self.source.options

    @property
    def may_reject(self) -> bool:
        """Whether any message may have to be set aside, now or in a later pass."""
        return self.source.may_reject(self.counts)

    @property
    def most_requests(self) -> int | None:
        """The maximal number of requests, on record and opened by messages, or None if it is unknown."""
        on_record = self.source.lookups.request_count
        return None if on_record is None or self.options.may_change else on_record + self.counts.rows_read

    def keep(self, rows_name: str, rows: DataFrame) -> JoinSide:
        """Keep rows of requests that several passes read, and choose how they are joined."""
        return self.source.keep(rows_name, rows, self.most_requests)
