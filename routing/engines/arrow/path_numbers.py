"""Number the paths of messages. Plain Python follows each path once for all messages of a key.

A message has the number of its path. Only its pending request, the end of its dialog and its remaining hops are
checked for each message. A `PathStore` stores the paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Union

from routing.engines.arrow.decisions import TimelineTable
from routing.engines.arrow.interned_rows import GrowingColumn, PairNumbering
from routing.engines.arrow.message_keys import texts_of
from routing.engines.arrow.resolved_batches import Asked, KeyedBatch, MessageScan
from routing.plan.key_rows import FROM_NETWORK
from routing.plan.paths import PathChoice, PathPlanner, PathTimeline
from routing.plan.planner import MOST_KEYS
from routing.process import no_search_for_cycles
from routing.rules.network import EstateNetwork
from routing.rules.pathing import EXPIRED, REQUESTED, KeptMessage, PathSender
from routing.rules.timeline import TimeInterval
from routing.tables.arrow_forms import empty_as_null
from routing.tables.encoded_texts import MappedTexts
from routing.terms import MSDB

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.compared_paths import SidePaths
    from routing.engines.arrow.traced_batches import NumberedPaths

# The number of an unknown sending service, and of a conversation without a request on record.
_NOBODY = -1


PathStore = Union["NumberedPaths", "SidePaths"]
"""Stores and numbers distinct paths of messages. Callers must hold its lock."""


class PathNumbers:
    """The paths of all keys so far. Several threads may use it."""

    def __init__(
        self,
        scan: MessageScan,
        network: EstateNetwork,
        store: PathStore,
        *,
        most_keys: int = MOST_KEYS,
    ) -> None:
        """Start without paths. ``scan`` reads the messages, and ``network`` is the whole estate."""
        import pyarrow

        self._scan, self._network, self._store = scan, network, store
        self._planner = PathPlanner(network, most_keys=most_keys)
        self._lock = store.lock
        self._waiting = pyarrow.array(sorted(network.waiting_conversations), pyarrow.string())
        self._pairs = {name: PairNumbering() for name in ("answered", "keys", "limited")}
        whole = pyarrow.int64()
        self._timelines = TimelineTable()
        # For each key, the timeline of messages with all hops left, and the number of hops above which more change
        # nothing.
        self._unlimited, self._most_hops = GrowingColumn(whole), GrowingColumn(whole)
        # The timeline of each key with a smaller number of hops left.
        self._limited = GrowingColumn(whole)
        self._kept: dict[tuple[KeptMessage, bool], pyarrow.Array] = {}

    def find(self, keyed: KeyedBatch, senders: pyarrow.Array) -> pyarrow.Array:
        """Return the paths of messages past step 4. ``senders`` are their sending services, or `_NOBODY`.

        Paths of new keys are followed now.
        """
        import pyarrow.compute as pc

        rows = keyed.rows
        if len(self._waiting):
            conversations = pc.index_in(rows["conversation_id"], value_set=self._waiting)
            senders = self._pairs["answered"].number(senders, pc.fill_null(conversations, _NOBODY))
        numbered = self._pairs["keys"].number(keyed.keys, senders)
        with self._lock:
            self._follow_keys()
            unlimited, most = self._unlimited.array().take(numbered), self._most_hops.array().take(numbered)
        timelines = unlimited
        if "hops_remaining" in rows.schema.names:
            timelines = self._limit(numbered, unlimited, most, rows["hops_remaining"])
        with self._lock:
            table = self._timelines.arrays()
        return table.choose(timelines, rows["at"], rows["conversation_id"])

    def _limit(
        self, keys: pyarrow.Array, unlimited: pyarrow.Array, most: pyarrow.Array, hops: pyarrow.Array
    ) -> pyarrow.Array:
        """Return the timelines of messages, with separate ones for messages with too few hops left."""
        import pyarrow.compute as pc

        hops_remaining = pc.max_element_wise(hops.cast("int64"), 0, skip_nulls=False)
        is_limited = pc.fill_null(pc.less(hops_remaining, most), fill_value=False)
        if not is_limited.true_count:
            return unlimited
        limited = self._pairs["limited"].number(keys.filter(is_limited), hops_remaining.filter(is_limited))
        with self._lock:
            self._follow_limited()
            timelines = self._limited.array().take(limited)
        return pc.replace_with_mask(unlimited, is_limited, timelines)

    def _follow_keys(self) -> None:
        """Follow new keys with all hops left, and find the number of hops that matters."""
        new = range(len(self._unlimited), len(self._pairs["keys"].pairs))
        with no_search_for_cycles():
            for key in new:
                timeline = self._timeline(key)
                intervals = list(timeline.intervals((None,), self._scan.messages.at))
                self._most_hops.add(max(choice.hops for interval in intervals for choice in interval.choices))
                self._unlimited.add(self._timelines.add(list(self._number(timeline, intervals))))

    def _follow_limited(self) -> None:
        """Follow new pairs of a key and a number of hops left."""
        new = self._pairs["limited"].pairs[len(self._limited) :]
        with no_search_for_cycles():
            for key, hops_remaining in new:
                timeline = self._timeline(key)
                intervals = timeline.intervals((hops_remaining,), self._scan.messages.at)
                self._limited.add(self._timelines.add(list(self._number(timeline, intervals))))

    def _timeline(self, key: int) -> PathTimeline:
        number, sender = self._pairs["keys"].pairs[key]
        conversation = _NOBODY
        if len(self._waiting):
            sender, conversation = self._pairs["answered"].pairs[sender]
        its_key = self._scan.decisions.key(number)
        sends = PathSender(
            self._network.instances[its_key.instance],
            its_key.database,
            its_key.is_initiator,
            None if sender == _NOBODY else self._scan.numbers.services.service(sender),
            None if conversation == _NOBODY else self._waiting[conversation].as_py(),
        )
        return self._planner.timeline(sends, its_key.to, its_key.broker)

    def _number(
        self, timeline: PathTimeline, intervals: Iterable[TimeInterval[PathChoice]]
    ) -> Iterator[tuple[int | None, Sequence[int]]]:
        """Yield the end and the paths of each interval, with equal neighbours merged."""
        waiting: tuple[int | None, Sequence[int]] | None = None
        for interval in intervals:
            paths = (path for choice in interval.choices for path in choice.paths)
            numbers = [self._store.number(path, timeline.sender, timeline.to) for path in paths]
            if waiting is not None and waiting[1] != numbers:
                yield waiting
            waiting = interval.valid_to, numbers
        if waiting is not None:
            yield waiting

    def find_kept(self, message: KeptMessage, *, in_msdb: bool = False) -> pyarrow.Array:
        """Return for each scope the path of messages that their own instance keeps or drops."""
        import pyarrow

        with self._lock:
            if (message, in_msdb) not in self._kept:
                paths = (
                    message.path(instance, MSDB if in_msdb or database == FROM_NETWORK else database)
                    for instance, database in self._scan.decisions.scopes
                )
                numbers = [self._store.number(path, None, None) for path in paths]
                self._kept[message, in_msdb] = pyarrow.array(numbers, pyarrow.int64())
            return self._kept[message, in_msdb]


class PathFinder:
    """Finds the paths of one batch at a time, for one thread."""

    def __init__(self, scan: MessageScan, paths: PathNumbers) -> None:
        import pyarrow

        self._paths = paths
        self._senders = MappedTexts(lambda words: scan.numbers.services.number(empty_as_null(words)))
        self._arrives = pyarrow.array([database == FROM_NETWORK for _, database in scan.decisions.scopes])

    def find(self, keyed: KeyedBatch, requested: Asked | None) -> pyarrow.Array:
        """Return the paths of messages. ``requested`` has masks of those that step 4 stops."""
        import pyarrow.compute as pc

        paths, senders = self._paths, self._senders.of(texts_of(keyed.rows, "from_service_name"))
        # The return path of a message from the network is unknown, even if its sender is known.
        is_known = pc.and_not(senders.is_valid(), self._arrives.take(keyed.scopes))
        numbers = paths.find(keyed, pc.if_else(is_known, senders, _NOBODY))
        if requested is not None:
            in_scope, in_msdb = requested
            numbers = pc.if_else(in_msdb, paths.find_kept(REQUESTED, in_msdb=True).take(keyed.scopes), numbers)
            numbers = pc.if_else(in_scope, paths.find_kept(REQUESTED).take(keyed.scopes), numbers)
        if keyed.is_expired is not None:
            numbers = pc.if_else(keyed.is_expired, paths.find_kept(EXPIRED).take(keyed.scopes), numbers)
        return numbers
