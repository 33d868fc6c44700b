"""What a question needs of the tables: DataFrames, Arrow tables, or those that a configuration names.

The only room of `explain` that reads tables; it gives columns of plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.analysis.explain.asked import Stored
from routing.analysis.explain.known import Chunks, Row
from routing.config import Config
from routing.rules import text
from routing.schemas import INPUTS, Field, Kind, Schema
from routing.storage import frames, keeping, tables
from routing.storage.columns import Columns, Table, check_given, is_frame, select_arrow
from routing.storage.conform import conform
from routing.storage.faults import refuse_faults
from routing.storage.inputs import columns_of
from routing.storage.joining import small_side

_SHOWN_INSTANCES = 20
# Other messages are read in parts that grow, for the first few mostly settle whether a request is pending.
_LARGEST_PART, _GROWTH = 100_000, 10
# The order in which messages ask, and what else of them decides: rows equal in all of it are decided alike.
_TEXTS = ("message_id", "database_name", "conversation_id", "to_broker_instance")


def frames_of(spark: SparkSession, settings: Config) -> dict[str, DataFrame]:
    """Every input that a configuration names, each at its newest version. Raises InputError."""

    def frame(key: str) -> DataFrame:
        return tables.snapshots(spark, {key: settings.tables[key]})[key].read(spark)

    named = [key for key in INPUTS if key in settings.tables]
    return dict(zip(named, frames.at_once(spark, frame, named), strict=True))


@dataclass(frozen=True)
class Source:
    """Input tables in their declared columns; ``first_part`` is how many other messages are read at first."""

    tables: Mapping[str, Table]
    first_part: int = 1_000

    @classmethod
    def of(cls, given: Mapping[str, Table]) -> Source:
        """The tables of a question. Raises InputError where one is missing, or has columns of other types."""
        check_given(given)
        return cls({key: _in_shape(given[key], key) for key in INPUTS if key in given})

    def stored(self, question: Stored) -> list[Row]:
        """The messages that a question may mean, of some instances at most."""
        only = {"message_id": [question.message_id]}
        if question.instance_name is not None:
            only["instance_name"] = [question.instance_name]
        found = self.tables["messages"]
        if is_frame(found):
            # Ordered and cut, each partition gives its first rows, in one job.
            found = _where(found, only).orderBy("instance_name").limit(_SHOWN_INSTANCES)
        return list(columns_of(found, "messages", only).dicts())

    def instance_names(self) -> list[str]:
        """All instances that are listed."""
        return list(columns_of(self.tables["instances"], "instances").values["instance_name"])

    def near(self, row: Row) -> dict[str, Columns]:
        """The configuration and the requests of a message's instance, and the dialogs of its conversation.

        Rows of DataFrames are checked, those of Arrow tables are taken to be valid. Raises InputError.
        """
        here = {"instance_name": [row["instance_name"]]}
        near = {key: table for key, table in self.tables.items() if key != "messages"}
        if "dialogs" in near:
            near["dialogs"] = _of_conversation(near["dialogs"], row["conversation_id"])
        held = keeping.hold_together({key: _where(table, here) for key, table in near.items() if is_frame(table)})
        found = {key: columns_of(held.get(key, table), key, here) for key, table in near.items()}
        refuse_faults({key: columns for key, columns in found.items() if key in held})
        return found

    def chunks(self, as_of: int | None) -> Chunks:
        """The messages of an instance for a service, with their dialogs; ``as_of`` as in `known.message_of`."""

        def found(instance: str, service: str) -> Iterator[Mapping[str, Columns]]:
            here = {"instance_name": [instance]}
            dialogs = self.tables.get("dialogs")
            for part in self._in_parts({**here, "to_service_name": [service]}, as_of):
                chunk = {"messages": part}
                if dialogs is not None:
                    chunk["dialogs"] = columns_of(_of_these(dialogs, part), "dialogs", here)
                yield chunk

        return found

    def _in_parts(self, only: Mapping[str, list[Any]], as_of: int | None) -> Iterator[Columns]:
        """Messages by (t, message_id); those without any time are left out.

        In parts of up to `_LARGEST_PART` rows; those of an Arrow table, which is in memory, in one.
        """
        messages = self.tables["messages"]
        if not is_frame(messages):
            yield columns_of(messages, "messages", only)
            return
        placed = _where(messages, only).withColumn("_place", _place(as_of)).where("_place.t IS NOT NULL")
        rest, size = placed, self.first_part
        while True:
            part = columns_of(rest.orderBy("_place").limit(size), "messages")
            yield part
            if len(part) < size:
                return
            last = max(_place_of(row, as_of) for row in part.dicts())
            rest, size = placed.where(F.col("_place") > _literal(last)), min(size * _GROWTH, _LARGEST_PART)


def _in_shape(table: Any, key: str) -> Table:
    """A frame in its declared columns; of an Arrow table these are taken as it is read. Raises InputError."""
    if is_frame(table):
        return conform(table, key)
    columns_of(table.slice(0, 0), key)
    return table


def _where(frame: DataFrame, only: Mapping[str, list[Any]]) -> DataFrame:
    for name, values in only.items():
        frame = frame.where(F.col(name).isin(values))
    return frame


def _of_conversation(dialogs: Table, conversation_id: str | None) -> Table:
    """The dialogs of a conversation, whose id is a GUID: these are text of ASCII, which all engines fold alike."""
    mine = text.fold(conversation_id or "")
    if is_frame(dialogs):
        return dialogs.where(F.lower("conversation_id") == F.lit(mine))
    import pyarrow.compute

    same = pyarrow.compute.ascii_lower(pyarrow.compute.field("conversation_id")) == mine
    return select_arrow(dialogs, dialogs.schema.names, same)


def _place(as_of: int | None) -> Column:
    """The place of a message among those that ask: t, its id, and what else it is decided by."""
    t = F.unix_micros(F.coalesce("observed_at", "enqueue_time")) if as_of is None else F.lit(as_of).cast("long")
    texts = [F.coalesce(name, F.lit("")).alias(name) for name in _TEXTS]
    return F.struct(t.alias("t"), *texts, F.coalesce(F.col("is_initiator").cast("int"), F.lit(0)).alias("role"))


def _place_of(row: Row, as_of: int | None) -> tuple[Any, ...]:
    """The same of a row; texts are compared by their code points here and there."""
    seen = row["enqueue_time"] if row["observed_at"] is None else row["observed_at"]
    return (
        seen if as_of is None else as_of,
        *(row[name] or "" for name in _TEXTS),
        int(bool(row["is_initiator"])),
    )


def _literal(place: tuple[Any, ...]) -> Column:
    t, *texts, role = place
    named = [F.lit(text).alias(name) for name, text in zip(_TEXTS, texts, strict=True)]
    return F.struct(F.lit(t).cast("long").alias("t"), *named, F.lit(role).alias("role"))


def _of_these(dialogs: Table, messages: Columns) -> Table:
    """The dialogs of the conversations of messages; of an Arrow table all."""
    if not is_frame(dialogs):
        return dialogs
    ids = {text.fold(found) for found in messages.values["conversation_id"] if text.is_guid(found)}
    shape = Schema((Field("wanted", Kind.STRING),))
    wanted = frames.frame_of(dialogs.sparkSession, [{"wanted": found} for found in sorted(ids)], shape)
    # As many as a chunk has messages.
    return dialogs.join(small_side(wanted), F.lower("conversation_id") == F.col("wanted"), how="left_semi")
