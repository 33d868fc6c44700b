"""Follow the inputs of an incremental job: run when one of them has changed, or when a delayed message is due.

Each run is a usual incremental run, which continues from the versions that ``runs`` has recorded. Between runs,
only versions are read. So the process may end at any time, and another one may replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from routing.arguments import checked
from routing.config import Config, ConfigError
from routing.delta import ledger, spark_tables
from routing.delta.commit_stream import watch_commits
from routing.delta.job_outputs import LastRun
from routing.delta.opening import TableOpener
from routing.errors import EnvironmentFault
from routing.runs.pipeline import run
from routing.schemas import TRAFFIC
from routing.sessions.existing_session import has_ended, is_connect

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

LONGEST_PAUSE = timedelta(minutes=30)
"""The longest pause after failed runs, unless the usual one is longer."""


def find_reason(opener: TableOpener, config: Config, now: datetime) -> str | None:
    """Return why an incremental run is needed at ``now``, or None if it would change nothing.

    Inputs without versions, such as views, are ignored. Raises StorageError, OutputError.
    """
    config = config.placed(opener.placed)
    _, last = ledger.DeltaTables(opener, config, []).last_run()
    if last is None:
        return "no run is recorded yet"
    inputs = spark_tables.find_inputs(opener, config.tables)
    for key in config.tables:
        table = inputs.get(key)
        if not _is_same(opener, last, key, table):
            return f"tables.{key} has changed"
    if last.next_due_at is not None and last.next_due_at <= now:
        return "a delayed message is due"
    return None


def _is_same(opener: TableOpener, last: LastRun, key: str, table: spark_tables.Input | None) -> bool:
    """Return whether an input has the version of the last run.

    Messages and dialogs must also be the same table. A run compares the rows of the other tables by itself.
    """
    if table is None:
        return key not in last.input_versions
    if isinstance(table, spark_tables.UnversionedTable):
        return True
    if key in TRAFFIC:
        return ledger.is_same_input(opener, last, key, table)
    return table.version == last.input_versions.get(key)


def check_follows(config: Config) -> None:
    """Raise ConfigError unless the mode is incremental."""
    if config.resolve.mode != "incremental":
        raise ConfigError.follow_in_full_mode()


@dataclass
class Follower:
    """Runs a job whenever there is a reason.

    ``run`` is called with the reason. ``on_failure`` is called with the error of a failed run and the pause before
    the next attempt. ``interval`` is the usual pause. After each failure in a row the pause doubles.
    """

    opener: TableOpener
    config: Config
    interval: timedelta
    run: Callable[[str], object]
    on_failure: Callable[[Exception, timedelta], None]
    failures: int = field(default=0, init=False)

    def step(self) -> timedelta:
        """Run if there is a reason, and return the pause before the next step.

        Raises the error of a run after which the session has ended: another process must start a new one.
        """
        try:
            reason = find_reason(self.opener, self.config, datetime.now(timezone.utc))
            if reason is not None:
                self.run(reason)
        except Exception as error:
            if has_ended(self.opener.session_so_far()):
                raise
            self.failures += 1
            pause: timedelta = min(self.interval * 2 ** min(self.failures, 20), max(self.interval, LONGEST_PAUSE))
            self.on_failure(error, pause)
            return pause
        self.failures = 0
        return self.interval


@checked
def resolve_stream(
    spark: SparkSession,
    config: Config,
    *,
    checkpoint: str,
    trigger: Mapping[str, object] | None = None,
) -> StreamingQuery:
    """Run incrementally whenever ``messages`` has a new commit, as a query of Structured Streaming.

    The stream only gives the alarm. Each batch ignores its rows and calls `run`, which continues from the version
    that ``runs`` has recorded. So a lost or copied checkpoint changes no result. A change of another table, and a
    delayed message that becomes due, wait for the next commit of ``messages``. ``sbroute resolve --follow`` also
    runs for these.

    Args:
        spark: the session.
        config: the configuration, in incremental mode.
        checkpoint: the folder or URI of the stream's checkpoint.
        trigger: the keyword arguments of ``DataStreamWriter.trigger``, such as ``{"availableNow": True}``.

    Returns:
        The started query. It ends with the error of a failed run.

    Raises:
        ContractError: the mode is not incremental, or the table has no log that a stream could read.
        EnvironmentFault: the session is one of Spark Connect.

    Example:
        >>> from pathlib import Path
        >>> changes = ["resolve.mode=incremental", "output.pending_messages=pending"]
        >>> job = routing.load_config("job.yaml", changes)
        >>> checkpoint = str(Path("checkpoint").absolute())
        >>> query = routing.resolve_stream(spark, job, checkpoint=checkpoint, trigger={"availableNow": True})
        >>> query.awaitTermination(60)
        True
    """
    if is_connect(spark):
        raise EnvironmentFault("resolve_stream needs a classic Spark session", "use sbroute resolve --follow")
    check_follows(config)
    opener = TableOpener.of_session(spark)
    location = config.placed(opener.placed).tables["messages"]

    def run_if_needed() -> None:
        if find_reason(opener, config, datetime.now(timezone.utc)) is not None:
            run(spark, config)

    return watch_commits(spark, location, checkpoint, trigger, run_if_needed)
