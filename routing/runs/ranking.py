"""All routes that messages could take, ranked by Spark: as a frame, or in ``output.route_candidates``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import CANDIDATES, Config
from routing.engines.traffic_tables import count_by
from routing.errors import InternalError
from routing.messages.candidate_ranks import MESSAGE_ROW, route_candidates
from routing.messages.dialog_hash import FUNCTION
from routing.messages.keying import OF_INSTANCE_EXACTLY
from routing.plan.candidate_lists import MOST_CANDIDATES, CandidateLists
from routing.plan.options import ResolveOptions
from routing.runs.message_frames import MessageFrame, compile_tables
from routing.runs.replaced_output import OutputTable, replace_output
from routing.runs.stages import Progress, Stages
from routing.schemas import ROUTE_CANDIDATES
from routing.tables.frame_cache import released_on_failure
from routing.tables.table_columns import Table
from routing.tables.times import as_utc
from routing.terms import DEFAULT_BROADCAST_LIMIT

COMMAND = "candidates"


@dataclass(frozen=True)
class RankedCandidates(MessageFrame):
    """Hold the result of `candidates`: every route that a message could take.

    Args:
        rows: a lazy DataFrame in the columns of ``route_candidates``; a message has as many rows as the rules
            find candidates, perhaps none.
        read: the number of messages read.
        rejected: the number of messages that are not resolved.
        notes: sentences on joins without a broadcast; more may come until the frame has been read.
        kept: the frames that the session keeps until `unpersist`.

    Example:
        >>> ranked = routing.candidates(spark, tables)
        >>> ranked.read, ranked.rejected
        (7, 2)
    """

    @property
    def route_candidates(self) -> DataFrame:
        """The candidates, ranked within each message."""
        return self.rows


def candidates(
    spark: SparkSession,
    tables: Mapping[str, Table],
    *,
    as_of: datetime | None = None,
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    clock: Stages | None = None,
) -> RankedCandidates:
    """Rank every route that a message could take: a broadcast join and a window over each message.

    Args:
        spark: the session of the tables.
        tables: as `resolve` takes them.
        as_of: the one time at which all messages are decided (UTC without a zone); by default each at its own.
        broadcast_limit: the size above which candidates, plans and dialogs are joined without a broadcast.
        clock: hears of the stages.

    Returns:
        The candidates; validation and the pass for the keys run at once, the rest when the frame is read.

    Raises:
        InputError: a table is missing or breaks its contract.

    Example:
        >>> ranked = routing.candidates(spark, tables).route_candidates
        >>> ranked.where("message_id = 'm3'").select("candidate_rank", "route_name").first()
        Row(candidate_rank=1, route_name='Far')
    """
    # No row names a run.
    options = ResolveOptions("", None if as_of is None else as_utc(as_of), FUNCTION, broadcast_limit)
    lists = CandidateLists()
    with released_on_failure() as keeper:
        job = compile_tables(
            tables,
            options,
            keeper,
            clock or Stages(lambda stage: None),
            more_columns={MESSAGE_ROW: F.monotonically_increasing_id()},
            keying=OF_INSTANCE_EXACTLY,
            decide=lists.decide_keys,
        )
        counts = job.counted.counts
        ranked = route_candidates(job, lists)
        return RankedCandidates(ranked, counts.rows_read, counts.rows_read - counts.rows_valid, job.notes, keeper)


@dataclass(frozen=True)
class CandidateCount:
    """The number of candidates that match in a step and stand in a tier, the chosen ones, and alternatives."""

    matching_step: int
    tier: str | None
    candidates: int = 0
    chosen: int = 0
    alternatives: int = 0


@dataclass(frozen=True)
class WrittenCandidates:
    """The version of the table, and what its rows are.

    ``by_step`` counts candidates by matching step and tier, in their order. Of the messages that
    were ``read``, ``ranked`` have candidates and ``rejected`` were set aside.
    """

    version: int
    read: int
    rejected: int
    ranked: int
    by_step: Sequence[CandidateCount]
    notes: tuple[str, ...] = ()


def write_candidates(
    spark: SparkSession,
    config: Config,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    tell: Callable[[str], None] = lambda text: None,
) -> WrittenCandidates:
    """Rank the candidates of all messages of a configuration into ``output.route_candidates``, in one commit.

    Arguments and errors are those of `replaced_output.replace_output`; raises InternalError where the counts do
    not add
    up.
    """
    stored = replace_output(
        spark,
        config,
        OutputTable(CANDIDATES, ROUTE_CANDIDATES, COMMAND),
        lambda inputs: candidates(
            spark,
            inputs.tables,
            as_of=inputs.as_of,
            broadcast_limit=config.resolve.broadcast_limit,
            clock=inputs.clock,
        ),
        as_of=as_of,
        progress=progress,
        tell=tell,
    )
    ranked = stored.frame
    with stored.clock.stage("counts") as tally:
        counts = count_by(stored.contents, ["matching_step", "tier", "is_chosen", "is_alternative"])
        # Each message that has candidates has one of rank 1, which tells how many there are.
        firsts = count_by(stored.contents, ["candidates_total"], {"candidate_rank": [1]})
        expected = sum(min(total, MOST_CANDIDATES) * messages for (total,), messages in firsts.items())
        if counts.total() != expected:
            raise InternalError.candidates(expected, counts.total())
        tally.rows = expected
    return WrittenCandidates(
        stored.version, ranked.read, ranked.rejected, firsts.total(), _count_steps(counts), tuple(ranked.notes)
    )


def _count_steps(counts: Mapping[tuple[Any, ...], int]) -> list[CandidateCount]:
    """Return counts by step, tier, is_chosen and is_alternative as one of each step and tier."""
    counts_by_step: dict[tuple[int, str], CandidateCount] = {}
    for (step, tier, is_chosen, is_alternative), count in counts.items():
        one = counts_by_step.get((step, tier or ""), CandidateCount(step, tier))
        counts_by_step[step, tier or ""] = replace(
            one,
            candidates=one.candidates + count,
            chosen=one.chosen + count * is_chosen,
            alternatives=one.alternatives + count * is_alternative,
        )
    return [counts_by_step[place] for place in sorted(counts_by_step)]
