"""The values that a run makes on its way from tables to outputs; each is whole when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.messages import keying
from routing.messages.dialog_hash import DialogHash
from routing.messages.keying import MessageKeying
from routing.messages.lookups import RunLookups
from routing.messages.plan_frames import RoutingPlan
from routing.plan.keys import KeyCounts
from routing.plan.options import ResolveOptions
from routing.tables import spark_forms
from routing.tables.broadcast_joins import BroadcastBudget, JoinSide
from routing.tables.frame_cache import FrameCache


@dataclass(frozen=True)
class DialogJoin:
    """The dialogs that matter, as a side of a join, and whether any of them ends."""

    side: JoinSide
    end: bool


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
    """Messages, what they are looked up in, and by what they are keyed; all frames are lazy.

    ``conversations``: those whose requests are on record, where the keying is wide and there are any.
    """

    messages: DataFrame
    lookups: RunLookups
    dialogs: DialogJoin | None
    as_of: datetime | None
    keying: MessageKeying
    dialog_hash: DialogHash
    conversations: JoinSide | None = None

    @property
    def has_transport(self) -> bool:
        """Whether a route may read its address from the service name."""
        return self.lookups.checked.has_transport

    def keys(self, *, is_exact: bool) -> DataFrame:
        """Return the distinct keys of all messages, with how many have them (see `keying.count_keys`)."""
        messages = keying.add_dialog(keying.clean(self.messages, self.as_of), self.dialog_side)
        if self.keying.is_wide:
            messages = keying.add_conversation(messages, self.conversations)
        return keying.count_keys(
            messages, self.lookups, self.keying, transport=self.has_transport, is_exact=is_exact
        )

    def resolvable(self, *, checks_rows: bool, checks_scopes: bool, is_folded: bool) -> DataFrame:
        """Return the messages to be resolved, bound and keyed; what none lacks is not looked for again.

        ``is_folded``: every conversation id is written as it is compared.
        """
        messages = self.messages.where(spark_forms.is_well_formed()) if checks_rows else self.messages
        prepared = keying.prepare(messages, self.as_of, is_folded=is_folded)
        if checks_scopes or (self.has_transport and self.keying.reads_scope):
            prepared = keying.add_scope(prepared, self.lookups)
        valid = prepared.where(F.col("own_addresses").isNotNull()) if checks_scopes else prepared
        return self.key(keying.add_dialog(valid, self.dialog_side))

    def key(self, messages: DataFrame) -> DataFrame:
        """Bind messages of `keying.add_dialog` and add their keys; in their scope for addresses in names."""
        if self.keying.is_wide:
            messages = keying.add_conversation(messages, self.conversations)
        return self.keying.add(keying.bind(messages), self.lookups, self.has_transport)

    @property
    def dialog_side(self) -> JoinSide | None:
        """The dialogs that messages look theirs up in, if there are any."""
        return None if self.dialogs is None else self.dialogs.side


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

    ``choices`` are the messages to be resolved with their choice (`results.choose`); ``keeper`` has what several
    passes read; ``requests`` are those that messages open or wait for, None where none may. The notes of
    ``broadcasts`` say where the run departs from the plan's law (a join without broadcast).
    """

    counted: KeyPass
    plan: RoutingPlan
    choices: DataFrame
    options: ResolveOptions
    keeper: FrameCache
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

    def keep(self, what: str, rows: DataFrame) -> JoinSide:
        """Keep rows that several passes read, and choose how they are joined."""
        found = self.keeper.keep_sized(rows)
        if found.size is None:
            return self.broadcasts.join_side(what, found.rows)
        return self.broadcasts.of_size(what, found.rows, found.size)
