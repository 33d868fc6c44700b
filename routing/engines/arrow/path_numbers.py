"""Number the paths of messages. Plain Python follows each path once for all messages of a key.

A message has the number of its path. Only its pending request, the end of its dialog and its remaining hops are
checked for each message. A `PathStore` stores the paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

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
from routing.tables.encoded_texts import MappedTexts, split_words
from routing.terms import MSDB

if TYPE_CHECKING:
    import pyarrow

    from routing.engines.arrow.compared_paths import SidePaths
    from routing.engines.arrow.traced_batches import NumberedPaths

# The number of an unknown sending service, and of a conversation without a request on record.
_NOBODY = -1


class PathKeys(NamedTuple):
    """The facts of messages that decide their paths, as numbers.

    ``services`` and ``senders`` are numbers of `ServiceNumbers`, or `_NOBODY`. ``conversations`` has the places of
    conversations with a request on record, or `_NOBODY`.
    """

    services: pyarrow.Array
    brokers: pyarrow.Array
    senders: pyarrow.Array
    conversations: pyarrow.Array
    scopes: pyarrow.Array
    is_initiator: pyarrow.Array


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
        self.waiting = pyarrow.array(sorted(network.waiting_conversations), pyarrow.string())
        self._pairs = {name: PairNumbering() for name in ("bound", "answered", "both", "keys", "limited")}
        whole = pyarrow.int64()
        self._timelines = TimelineTable()
        # For each key, the timeline of messages with all hops left, and the number of hops above which more change
        # nothing.
        self._unlimited, self._most_hops = GrowingColumn(whole), GrowingColumn(whole)
        # The timeline of each key with a smaller number of hops left.
        self._limited = GrowingColumn(whole)
        self._kept: dict[tuple[KeptMessage, bool], pyarrow.Array] = {}

    def find(
        self, keys: PathKeys, at: pyarrow.Array, conversations: pyarrow.Array, hops: pyarrow.Array | None
    ) -> pyarrow.Array:
        """Return the paths of messages, by their key, time, conversation and remaining hops.

        Paths of new keys are followed now.
        """
        import pyarrow.compute as pc

        numbering = self._pairs
        service_and_broker = numbering["bound"].number(keys.services, keys.brokers)
        sender_and_conversation = keys.senders
        if len(self.waiting):
            sender_and_conversation = numbering["answered"].number(keys.senders, keys.conversations)
        pair_numbers = numbering["both"].number(service_and_broker, sender_and_conversation)
        places = pc.add(pc.multiply(keys.scopes.cast("int64"), 2), keys.is_initiator.cast("int64"))
        numbered = numbering["keys"].number(pair_numbers, places)
        with self._lock:
            self._follow_keys()
            unlimited, most = self._unlimited.array().take(numbered), self._most_hops.array().take(numbered)
        timelines = unlimited if hops is None else self._limit(numbered, unlimited, most, hops)
        with self._lock:
            table = self._timelines.arrays()
        return table.choose(timelines, at, conversations)

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
        pair, place = self._pairs["keys"].pairs[key]
        service_and_broker, sender_and_conversation = self._pairs["both"].pairs[pair]
        service, broker = self._pairs["bound"].pairs[service_and_broker]
        sender, conversation = sender_and_conversation, _NOBODY
        if len(self.waiting):
            sender, conversation = self._pairs["answered"].pairs[sender_and_conversation]
        name, database = self._scan.decisions.scopes[place >> 1]
        numbers = self._scan.numbers
        sends = PathSender(
            self._network.instances[name],
            None if database == FROM_NETWORK else database,
            bool(place & 1),
            None if sender == _NOBODY else numbers.services.service(sender),
            None if conversation == _NOBODY else self.waiting[conversation].as_py(),
        )
        return self._planner.timeline(sends, numbers.services.service(service), numbers.broker(broker))

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

    def kept(self, message: KeptMessage, *, in_msdb: bool = False) -> pyarrow.Array:
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
        self._scan, self._paths = scan, paths
        self._senders = MappedTexts(scan.numbers.services.number)

    def find(self, keyed: KeyedBatch, requested: Asked | None) -> pyarrow.Array:
        """Return the paths of messages. ``requested`` has masks of those that step 4 stops."""
        import pyarrow.compute as pc

        rows, paths = keyed.rows, self._paths
        names = rows.schema.names
        hops = rows["hops_remaining"] if "hops_remaining" in names else None
        numbers = paths.find(self._key(keyed), rows["at"], rows["conversation_id"], hops)
        if requested is not None:
            in_scope, in_msdb = requested
            numbers = pc.if_else(in_msdb, paths.kept(REQUESTED, in_msdb=True).take(keyed.scopes), numbers)
            numbers = pc.if_else(in_scope, paths.kept(REQUESTED).take(keyed.scopes), numbers)
        if keyed.is_expired is not None:
            numbers = pc.if_else(keyed.is_expired, paths.kept(EXPIRED).take(keyed.scopes), numbers)
        return numbers

    def _key(self, keyed: KeyedBatch) -> PathKeys:
        import pyarrow
        import pyarrow.compute as pc

        rows, scan = keyed.rows, self._scan
        # The return path of a message from the network is unknown, even if its sender is known.
        arrives = [database == FROM_NETWORK for _, database in scan.decisions.scopes]
        senders = self._senders.of(texts_of(rows, "from_service_name"))
        is_empty = _is_empty(texts_of(rows, "from_service_name"))
        is_known = pc.and_not(senders.is_valid(), pc.or_(is_empty, pyarrow.array(arrives).take(keyed.scopes)))
        conversations = pyarrow.nulls(len(rows), pyarrow.int32())
        if len(self._paths.waiting):
            conversations = pc.index_in(rows["conversation_id"], value_set=self._paths.waiting)
        return PathKeys(
            keyed.keys.services,
            keyed.keys.brokers,
            pc.if_else(is_known, senders, _NOBODY),
            pc.fill_null(conversations, _NOBODY),
            keyed.scopes,
            keyed.keys.is_initiator,
        )


def _is_empty(texts: pyarrow.Array) -> pyarrow.Array:
    """Return a mask of empty texts, which is false for null."""
    import pyarrow.compute as pc

    words, places = split_words(texts)
    return pc.fill_null(pc.equal(words, "").take(places), fill_value=False)
