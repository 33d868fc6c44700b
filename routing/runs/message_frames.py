"""Rows about all messages of given tables: a lazy frame, and the one way to its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark.sql import Column, DataFrame

from routing.messages import validate
from routing.messages.compiling import DecideKeys, StageClock, compile_messages
from routing.messages.job import ResolveJob
from routing.messages.keying import OF_INSTANCE, MessageKeying
from routing.plan.options import ResolveOptions
from routing.plan.rows import decide_keys
from routing.tables.declared_columns import conform
from routing.tables.frame_cache import FrameCache
from routing.tables.table_columns import Table, check_given


@dataclass(frozen=True)
class MessageFrame:
    """Rows about all messages that were ``read`` and not ``rejected``, as a lazy frame.

    ``notes`` say what was joined without a broadcast; more may come until the frame has been read. The session
    keeps a small plan until `unpersist`.
    """

    rows: DataFrame
    read: int
    rejected: int
    notes: list[str] = field(default_factory=list)
    kept: FrameCache = field(default_factory=FrameCache)

    def unpersist(self) -> None:
        """Release the cached frames; the frame can still be read, computed anew."""
        self.kept.release()


def compile_tables(
    tables: Mapping[str, Table],
    options: ResolveOptions,
    keeper: FrameCache,
    clock: StageClock,
    *,
    more_columns: Mapping[str, Column] = MappingProxyType({}),
    keying: MessageKeying = OF_INSTANCE,
    decide: DecideKeys = decide_keys,
) -> ResolveJob:
    """Validate tables and compile their messages (`compiling.compile_messages`).

    Messages get ``more_columns``. Raises InputError where a table is missing or breaks its
    contract.
    """
    check_given(tables)
    with clock.stage("validate"):
        checked = validate.check(validate.read(tables))
    messages = conform(tables["messages"], "messages")
    if more_columns:
        messages = messages.withColumns(dict(more_columns))
    return compile_messages(messages, checked, options, keeper, clock, keying=keying, decide=decide)
