"""The values that a run makes on its way from tables to outputs; each is whole when it is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.messages import keying
from routing.messages.dialog_hash import DialogHash
from routing.messages.keying import MessageKeying
from routing.messages.lookups import RunLookups
from routing.plan.checked_inputs import ResolveOptions
from routing.plan.key_rows import DecidedKeys, KeyCounts, PlanUses
from routing.schemas import ArrayOf, ColumnKind, Field, Schema
from routing.tables import spark_forms
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide
from routing.tables.table_columns import TableColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.tables import frames

# What is decided for keys, as frames: a timeline for each key, whose rows messages are joined with.
#
# Small, printable, testable without messages. Columns of a plan: those of its key, valid_from (inclusive) and
# valid_to (exclusive), null where unbounded, and choices, an array of which the dialog-ID hash takes one; a row
# for each key and interval of time.


# A key's size in memory beside its timeline's rows, roughly.
_OF_A_KEY = 300
TIMELINE = "timeline"
_NUMBER = Field(TIMELINE, ColumnKind.INT)
# The columns of a key that are no text.
_KINDS = {"key_kind": ColumnKind.INT, "key_role": ColumnKind.INT}


@dataclass(frozen=True)
class RoutingPlan:
    """A plan as frames, and its size in memory: bytes, roughly.

    ``rows`` have the columns of a plan. Of a large one they have a timeline in place of a key, since many keys may
    share one, and ``keys`` say which is whose: the columns of ``key`` and timeline, a row for each key.
    """

    key: tuple[str, ...]
    rows: DataFrame
    keys: DataFrame | None
    size: int
    uses: PlanUses


@dataclass(frozen=True)
class PreparedPlan:
    """A plan before there is a session, its rows as they are handed over; the rest as `RoutingPlan` has it."""

    key: tuple[str, ...]
    rows: frames.PreparedRows
    keys: frames.PreparedRows | None
    size: int
    uses: PlanUses

    def on(self, spark: SparkSession, frame_cache: FrameCache) -> RoutingPlan:
        """Return the plan in a session; what is too large to be rows of the driver goes to ``frame_cache``."""
        rows = self.rows.frame(spark)
        if self.keys is None:
            return RoutingPlan(self.key, rows, None, self.size, self.uses)
        return RoutingPlan(
            self.key, frame_cache.store(rows), frame_cache.store(self.keys.frame(spark)), self.size, self.uses
        )


def as_plan(keys: TableColumns, decided: DecidedKeys, held_rows: int) -> PreparedPlan:
    """Write the decisions for ``keys`` as rows; more than ``held_rows`` have a timeline in place of a key."""
    # Deciding does not need the package.
    from routing.tables import frames

    numbers, timelines = decided.numbers, decided.timelines
    of_key = [Field(name, _KINDS.get(name, ColumnKind.STRING)) for name in decided.key]
    of_times = [
        *(Field(name, ColumnKind.TIMESTAMP) for name in ("valid_from", "valid_to")),
        Field("choices", ArrayOf(decided.choice)),
    ]
    if sum(len(timelines[number].rows) for number in numbers) <= held_rows:
        size = sum(timelines[number].size for number in numbers)
        whole = frames.PreparedRows.of(_whole(keys, decided), Schema((*of_key, *of_times)))
        return PreparedPlan(decided.key, whole, None, size, decided.uses)
    size = _OF_A_KEY * len(numbers) + sum(timeline.size for timeline in timelines)
    numbered = ((*key, number) for key, number in zip(keys.rows(*decided.key), numbers, strict=True))
    named = frames.PreparedRows.of(numbered, Schema((*of_key, _NUMBER)))
    rows = ((number, *row) for number, timeline in enumerate(timelines) for row in timeline.rows)
    timed = frames.PreparedRows.of(rows, Schema((_NUMBER, *of_times)))
    return PreparedPlan(decided.key, timed, named, size, decided.uses)


def _whole(keys: TableColumns, decided: DecidedKeys) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a small plan."""
    for key, number in zip(keys.rows(*decided.key), decided.numbers, strict=True):
        for row in decided.timelines[number].rows:
            yield (*key, *row)


@dataclass(frozen=True)
class DialogJoin:
    """The dialogs that may change a decision, as a side of a join; ``any_ends``: one of them has a lifetime."""

    join_side: JoinSide
    any_ends: bool


@dataclass(frozen=True)
class RequestSides:
    """The sides of joins in which messages that meet step 4 are looked up.

    ``openers``: the requests that messages open (`openers.openers`). ``by_endpoint``: by the conversation endpoint
    that waits for them (D10) its requests, an array of requested_at, message_id and ended_at.
    """

    openers: JoinSide
    by_endpoint: JoinSide


@dataclass(frozen=True)
class MessageSource:
    """Messages, what they are looked up in, and by what they are keyed; all frames are lazy."""

    messages: DataFrame
    lookups: RunLookups
    dialogs: DialogJoin | None
    as_of: datetime | None
    keying: MessageKeying
    dialog_hash: DialogHash

    def keys(self, *, is_exact: bool) -> DataFrame:
        """Return the distinct keys of all messages, with how many have them (see `keying.count_keys`)."""
        messages = keying.add_dialog(keying.clean(self.messages, self.as_of), self.dialog_side)
        return keying.count_keys(messages, self.lookups, self.keying, is_exact=is_exact)

    def resolvable(self, *, checks_rows: bool, checks_scopes: bool, is_folded: bool) -> DataFrame:
        """Return the messages to be resolved, bound and keyed; what none lacks is not looked for again.

        ``is_folded``: every conversation id is written as it is compared.
        """
        messages = self.messages.where(spark_forms.is_well_formed()) if checks_rows else self.messages
        prepared = keying.prepare(messages, self.as_of, is_folded=is_folded)
        if checks_scopes or (self.lookups.checked.has_transport and self.keying.reads_scope):
            prepared = keying.add_scope(prepared, self.lookups)
        valid = prepared.where(F.col("own_addresses").isNotNull()) if checks_scopes else prepared
        return self.key(keying.add_dialog(valid, self.dialog_side))

    def key(self, messages: DataFrame) -> DataFrame:
        """Bind messages of `keying.add_dialog` and add their keys; in their scope for addresses in names."""
        return self.keying.add(keying.bind(messages), self.lookups)

    @property
    def dialog_side(self) -> JoinSide | None:
        """The dialogs that messages look theirs up in, if there are any."""
        return None if self.dialogs is None else self.dialogs.join_side


@dataclass(frozen=True)
class KeyPass:
    """Messages whose keys are known, and what is known of them; ``may_change`` as `ResolveOptions` has it."""

    source: MessageSource
    broadcasts: BroadcastBudget
    counts: KeyCounts
    may_change: bool

    @property
    def may_reject(self) -> bool:
        """Whether any message may have to be set aside, now or in a later pass."""
        return self.counts.rows_rejected != 0 or self.may_change

    @property
    def has_strays(self) -> bool:
        """Whether any message may be of an instance or database that is not known."""
        return self.counts.rows_valid < self.counts.rows_read or self.may_change

    @property
    def is_folded(self) -> bool:
        """Whether every conversation id is written as it is compared, in a later pass too."""
        return self.counts.is_folded and not self.may_change

    def resolvable(self) -> DataFrame:
        """Return the messages to be resolved, bound and keyed."""
        return self.source.resolvable(
            checks_rows=self.may_reject, checks_scopes=self.has_strays, is_folded=self.is_folded
        )


@dataclass(frozen=True)
class ResolveJob:
    """The frames and counts from which a run's outputs are made: frames are lazy, counts are known.

    ``choices`` are the messages to be resolved with their choice (`results.choose`); ``frame_cache`` has what
    several passes read; ``requests`` are those that messages open or wait for, None where none may. The notes of
    ``broadcasts`` say where the run departs from the plan's law (a join without broadcast).
    """

    counted: KeyPass
    plan: RoutingPlan
    choices: DataFrame
    options: ResolveOptions
    frame_cache: FrameCache
    requests: RequestSides | None = None

    @property
    def source(self) -> MessageSource:
        """The messages, and what they are looked up in."""
        return self.counted.source

    @property
    def broadcasts(self) -> BroadcastBudget:
        """What may be broadcast."""
        return self.counted.broadcasts

    @property
    def fits(self) -> bool:
        """Whether the plan is broadcast."""
        return self.plan.size <= self.broadcasts.limit

    @property
    def notes(self) -> list[str]:
        """What the run has to say, which grows until its last table is written."""
        return self.broadcasts.notes

    @property
    def may_ask(self) -> bool:
        """Whether any message may open a request for a route."""
        return self.plan.uses.asks or self.plan.uses.asks_msdb

    @property
    def most_requests(self) -> int | None:
        """How many requests there are at most, on record and opened by messages; None where that is not known."""
        on_record = self.source.lookups.request_count
        return None if on_record is None or self.counted.may_change else on_record + self.counted.counts.rows_read

    def keep(self, what: str, rows: DataFrame) -> JoinSide:
        """Keep rows of requests that several passes read, and choose how they are joined."""
        cached = self.frame_cache.keep_sized(rows, self.most_requests)
        if cached.size is None:
            return self.broadcasts.join_side(what, cached.rows)
        return self.broadcasts.of_size(what, cached.rows, cached.size)
