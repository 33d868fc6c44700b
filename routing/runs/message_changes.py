"""Find new and deleted messages and changed dialogs for an incremental run, and take deleted messages out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.delta import ledger, protocol
from routing.delta.appended_rows import check_detectable, files_of, read_appended, read_changes
from routing.delta.job_outputs import LastRun
from routing.delta.spark_tables import TableSnapshot
from routing.messages import deletes
from routing.messages.validate import Suspects
from routing.runs.run_tables import conform_messages
from routing.runs.run_work import RunInputs
from routing.schemas import DIALOGS, OUTPUTS
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide
from routing.tables.frames import with_columns_of
from routing.tables.spark_forms import conform, conversation_id

_PENDING = "pending_messages"


@dataclass(frozen=True)
class ArrivedMessages:
    """The new rows of ``messages``, conformed, the messages that were deleted, and the leftovers of earlier runs.

    ``count`` is the number of new rows, or None if it is unknown. ``deleted`` has `deletes.MESSAGE_ROW` of
    messages without any row left, or is None if no message was deleted. ``pending`` are rows of
    ``pending_messages``, and ``requests`` the stored route requests. Both are None without rows.
    """

    messages: DataFrame
    count: int | None
    deleted: JoinSide | None = None
    pending: DataFrame | None = None
    pending_count: int = 0
    requests: DataFrame | None = None

    def without_deleted(self, rows: DataFrame) -> DataFrame:
        """Leave out the rows of deleted messages."""
        return rows if self.deleted is None else deletes.without(rows, self.deleted)


def find_changes(inputs: RunInputs, messages: TableSnapshot, frame_cache: FrameCache) -> ArrivedMessages:
    """Find the new and the deleted messages since the last run. In the first run all messages are new.

    Raises InputError if these cannot be determined, or columns are wrong.
    """
    spark, last = inputs.outputs.spark, inputs.start.last
    with inputs.clock.stage("new messages"):
        if last is None:
            check_detectable(spark, messages)
            return ArrivedMessages(conform_messages(inputs, messages.read(spark)), None)
        since, table_id = last.input_versions["messages"], last.table_ids["messages"]
        changed = read_appended(spark, messages, since, table_id, last.commit_identities.get("messages"))
        new = conform_messages(inputs, changed.rows)
        if changed.removed is None:
            count = changed.count if inputs.config.resolve.instances is None else new.count()
            are_few = count is not None and 0 < count <= frame_cache.limits.held_rows
            return ArrivedMessages(frame_cache.keep(new, count) if are_few else new, count)
    with inputs.clock.stage("deletes"):
        with files_of(TableSnapshot(messages.location, since)):
            net = frame_cache.keep(deletes.net_changes(new, conform_messages(inputs, changed.removed)))
        new = deletes.new_messages(net)
        return ArrivedMessages(new, new.count(), _find_deleted(inputs, messages, net, frame_cache))


def _find_deleted(
    inputs: RunInputs, messages: TableSnapshot, net: DataFrame, frame_cache: FrameCache
) -> JoinSide | None:
    """Find the messages that lost a row and have none left. A note says how many there are."""
    broadcasts = BroadcastBudget.of_run(inputs.context, frame_cache.limits)
    removed, removed_count = frame_cache.keep_counted(deletes.removed_messages(net))
    if not removed_count:
        return None
    side = broadcasts.join_side("the deleted messages", removed, removed_count)
    stored = conform(messages.read(inputs.outputs.spark), "messages")
    left, left_count = frame_cache.keep_counted(deletes.still_stored(stored, side), removed_count)
    if not left_count:
        deleted, count = removed, removed_count
    else:
        deleted_rows = deletes.without(removed, broadcasts.join_side("the messages left", left, left_count))
        deleted, count = frame_cache.keep_counted(deleted_rows, removed_count)
    if not count:
        return None
    if not inputs.erases:
        have = "message was" if count == 1 else "messages were"
        inputs.notes.append(
            f"{count:,} {have} deleted from tables.messages since the last run: not retried, and the output rows"
            " stay (only a run with --erase deletes them)"
        )
    return broadcasts.join_side("the deleted messages", deleted, count)


@dataclass(frozen=True)
class DialogChanges:
    """The conversations whose dialogs changed since the last run that counts.

    ``conversations`` has their ids in the form that is compared (column ``id``, null for rows without one). None
    means that no dialog changed, or with ``are_unknown`` that any may have changed. ``count`` is their number.
    """

    conversations: DataFrame | None = None
    are_unknown: bool = False
    count: int = 0

    @property
    def is_none(self) -> bool:
        """Whether the dialogs are those of the last run."""
        return self.conversations is None and not self.are_unknown

    def suspects(self, last: LastRun | None) -> Suspects:
        """Return the dialogs that the last run did not find valid. A run reads all changed ones."""
        if self.are_unknown or (last is not None and last.quarantined_instances):
            return Suspects.ALL
        return Suspects.NONE if self.is_none else Suspects.NEEDED


def find_dialog_changes(inputs: RunInputs, frame_cache: FrameCache) -> DialogChanges:
    """Find the conversations of dialogs that were added, changed or removed since the last run."""
    last, dialogs = inputs.start.last, inputs.inputs.get("dialogs")
    if last is None:
        return DialogChanges(are_unknown=True)
    if ledger.is_same_input(inputs.opener, last, "dialogs", dialogs):
        return DialogChanges()
    since = last.input_versions.get("dialogs")
    if not isinstance(dialogs, TableSnapshot) or since is None:
        return DialogChanges(are_unknown=True)
    table_id, identity = last.table_ids.get("dialogs"), last.commit_identities.get("dialogs")
    with inputs.clock.stage("new dialogs"):
        changed = read_changes(inputs.outputs.spark, dialogs, DIALOGS, since, table_id, identity)
        if changed is None:
            return DialogChanges(are_unknown=True)
        rows = conform(changed.rows, "dialogs")
        if changed.removed is not None:
            rows = deletes.net_changes(rows, conform(changed.removed, "dialogs"))
        ids = rows.select(conversation_id(F.col("conversation_id")).alias("id")).distinct()
        conversations, count = frame_cache.keep_counted(ids)
        return DialogChanges(conversations if count else None, count=count)


@dataclass(frozen=True)
class TakenOut:
    """The versions of outputs from which rows of deleted messages were deleted, and how many rows.

    ``erased`` is None unless the run erases.
    """

    versions: Mapping[str, int] = field(default_factory=dict)
    erased: int | None = None


def take_out_deleted(
    inputs: RunInputs, outputs: ledger.DeltaTables, changes: ArrivedMessages, recorded: Mapping[str, int]
) -> TakenOut:
    """Delete deleted messages from ``pending_messages``, and with `RunInputs.erases` from all outputs.

    Each output gets one marked commit, or none. ``recorded`` has the outputs that the last run recorded. Raises
    StorageError.
    """
    erased = 0 if inputs.erases else None
    if changes.deleted is None:
        return TakenOut(erased=erased)
    versions = dict[str, int]()
    with inputs.clock.stage("deletes"):
        for key in _keys(inputs, recorded):
            rows = _rows_to_delete(inputs, key, changes.deleted)
            count = outputs.erase(key, rows, inputs.start.run)
            version = protocol.own_version(outputs, inputs.start, key)
            erased = None if erased is None else erased + count
            if key in recorded:
                versions[key] = version
    return TakenOut(versions, erased)


def _keys(inputs: RunInputs, recorded: Mapping[str, int]) -> Iterator[str]:
    """Yield the outputs that may hold rows of deleted messages.

    After a full run ``pending_messages`` still has rows of an older run. No run reads them.
    """
    for key in inputs.start.versions:
        if (inputs.erases or (key == _PENDING and key in recorded)) and not inputs.is_empty(key):
            yield key


def _rows_to_delete(inputs: RunInputs, key: str, deleted: JoinSide) -> DataFrame:
    """Return the key columns of the rows that deleted messages have in an output."""
    if key == "rejected_messages":
        return deletes.as_rejected(deleted.rows)
    if key != "new_route_requests":
        return deleted.rows
    stored = _read(inputs.outputs.spark, inputs, key)
    requests = deletes.requests_of(with_columns_of(stored, OUTPUTS[key]), deleted)
    # A column that the table lacks is null in all its rows.
    return requests.select(*(name for name in deletes.REQUEST_ROW if name in stored.columns))


def _read(spark: SparkSession, inputs: RunInputs, key: str) -> DataFrame:
    return TableSnapshot(inputs.config.output[key], inputs.start.versions[key]).read(spark)
