"""Compare the outcomes of messages on two sides: another configuration, older versions, a time, or a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from routing.arguments import checked
from routing.cases import estate_sides as sides
from routing.cases.compared_tables import Against, Scripts, TableCache, give_sides
from routing.cases.estate_differences import PathDifference, PathKey
from routing.cases.estate_sides import DiffSides, OneSide
from routing.config import Config, TableLocation
from routing.delta import ledger
from routing.delta.commits import is_local
from routing.delta.counted_runs import leave_out_missing
from routing.delta.ledger import ReplacedOutput
from routing.delta.local_tables import LocalTable, UnreadableTable
from routing.delta.opening import TableOpener
from routing.engines.traffic_tables import open_traffic
from routing.errors import OutputError
from routing.lint.lint_estate import read_one
from routing.lint.lint_settings import LintSettings
from routing.lint.lint_settings import settings as lint_settings
from routing.result_schemas import MESSAGE_CHANGES
from routing.rules.text import broker_id
from routing.rules.timeline import micros_of, moment_of
from routing.schemas import TRAFFIC
from routing.tables.arrow_rows import SchemaRows
from routing.tables.given_tables import take_tables
from routing.tables.table_columns import Table, TableColumns, as_dataset, by_engine, columns_in
from routing.views.configuration_changes import find_finding_changes, find_route_changes
from routing.views.diff.decision_comparison import (
    DIFF_JOB,
    MessageChanges,
    count_changes,
    is_worse,
    list_keys,
    loses_sight,
)

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

    from routing.importing.covered_rows import ImportResult
    from routing.tables.cached_frames import FrameCache
    from routing.views.diff.arrow_diff import ChangedMessages

_KEY, _SETTING = "message_changes", "--out"


def place_of(text: str, configs: Iterable[Config]) -> TableLocation:
    """Parse the location of ``--out``. A path is relative to the working folder.

    Raises OutputError if it is a table of a configuration, which would be lost.
    """
    place = TableLocation.parse(text, str(Path.cwd()))
    for config in configs:
        for section, tables in (("tables", {**config.tables, **config.import_tables}), ("output", config.output)):
            for key, location in tables.items():
                if _is_same(location, place):
                    raise OutputError.out_is_taken(str(place), f"is {section}.{key} of the configuration")
    return place


def _is_same(first: TableLocation, second: TableLocation) -> bool:
    """Return True if two tables are the same, even by different paths."""
    if not (is_local(first) and is_local(second)):
        return str(first) == str(second)
    return Path(first.text).resolve() == Path(second.text).resolve()


def _open_out(opener: TableOpener, place: TableLocation) -> ReplacedOutput:
    location = opener.placed(_SETTING, place)
    opened = ledger.open_replaced(opener, _KEY, _SETTING, location, MESSAGE_CHANGES, DIFF_JOB)
    for note in opened.notes:
        opener.on_note(note)
    return opened


def _replace_table(place: ReplacedOutput, rows: ChangedMessages, opener: TableOpener) -> Table:
    """Replace the output by changed messages in one commit, and return them as stored. Raises StorageError."""
    if isinstance(place.writer, UnreadableTable):
        return _write_by_spark(place, rows.collect(), opener.start_for(place.setting, "written", place.writer))
    return place.replace(rows, DIFF_JOB).rows()


def _write_by_spark(place: ReplacedOutput, rows: pyarrow.Table, spark: SparkSession) -> Table:
    from routing.tables import frames

    names = MESSAGE_CHANGES.names
    columns = columns_in(rows, MESSAGE_CHANGES, {name: name for name in names})
    frame = frames.frame_of_tuples(spark, columns.rows(*names), MESSAGE_CHANGES.optional())
    place.replace_by_spark(spark, frame, DIFF_JOB)
    return rows


@dataclass(frozen=True)
class Diff:
    """Hold the result of `diff`. All rows are in the printed order.

    Args:
        before: the side before, with its label and the time of its decisions.
        after: the side after.
        compared: the number of messages that were compared.
        counts: rows of `result_schemas.CHANGE_COUNTS`, first those that get worse.
        keys: rows of `result_schemas.KEY_CHANGES`: changes by sender and service.
        routes: rows of `result_schemas.ROUTE_CHANGES`.
        findings: rows of `result_schemas.FINDING_CHANGES`: findings of lint that come or go.
        messages: changed messages (`result_schemas.MESSAGE_CHANGES`) as an Arrow table or dataset or a DataFrame,
            or None without ``with_messages``.
        script: the result that an import of the scripts would have, or None without scripts.
        frame_cache: frames that Spark caches for ``messages`` until `unpersist`.
        unaddressed: instances without a known address, of which the changes are not known.

    Example:
        >>> script = routing.Scripts.of_text("DROP ROUTE Far", "hub", "Sales")
        >>> done = routing.diff(routing.load_config("job.yaml"), script)
        >>> done.compared, done.changed, done.worse
        (7, 1, 1)
        >>> [(row["name"], row["change"]) for row in done.routes]
        [('Far', 'removed')]
    """

    before: OneSide
    after: OneSide
    compared: int
    counts: SchemaRows
    keys: SchemaRows
    routes: SchemaRows
    findings: SchemaRows
    messages: Table | None
    script: ImportResult | None
    frame_cache: FrameCache | None = None
    unaddressed: Sequence[str] = ()

    def unpersist(self) -> None:
        """Release the frames that Spark caches for ``messages``, if it compared them."""
        if self.frame_cache is not None:
            self.frame_cache.release()

    @property
    def changed(self) -> int:
        """The number of messages that change: their decision at the first hop, or their end."""
        return sum(row["messages"] for row in self.counts)

    @property
    def worse(self) -> int:
        """The number of messages that get worse: they end delayed, dropped or rejected, at any hop."""
        return sum(row["messages"] for row in self.counts if is_worse(row))

    @property
    def not_known(self) -> int:
        """The number of messages that are delivered before, with an unknown end after."""
        return sum(row["messages"] for row in self.counts if loses_sight(row))


@checked
def diff(
    tables: Mapping[str, Table] | Config,
    against: Against,
    *,
    at: datetime | None = None,
    with_messages: bool = False,
    out: TableLocation | None = None,
    lint: LintSettings | None = None,
    opener: TableOpener | None = None,
    spark: SparkSession | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Diff:
    """Compare the destinations of all messages, the routes and the findings of lint on two sides.

    Messages and dialogs of both sides are those of ``tables``.

    Args:
        tables: a configuration, or tables by its keys (tables.md): DataFrames, Arrow tables or datasets.
        against: the other side: a configuration, tables that replace some of these, `TableVersions` for the side
            before, a time for decisions with the same tables, or `Scripts`.
        at: the decision time of both sides (UTC without a zone), by default the current time.
        with_messages: True to return every changed message.
        out: the table for changed messages, which replaces that of an earlier comparison.
        lint: selects the findings that count, by default as in the configuration.
        opener: opens the configuration's tables, by default local ones by delta-rs and others by Spark.
        spark: the session for tables that need one. By default one is started.
        progress: called with the name of each step.

    Returns:
        The differences.

    Raises:
        ContractError: tables of a side, which the message names, break their contract.
        OutputError: ``out`` cannot be replaced.
        StorageError: a table could not be read or written.

    Example:
        >>> script = routing.Scripts.of_text("DROP ROUTE Far", "hub", "Sales")
        >>> done = routing.diff(routing.load_config("job.yaml"), script)
        >>> for row in done.counts:
        ...     row["outcome_before"], row["outcome_after"], row["reason_after"], row["messages"]
        ('SENT', 'DELAYED', 'ROUTE_REQUESTED', 1)
    """
    moment = datetime.now(timezone.utc) if at is None else moment_of(micros_of(at))
    opener = opener or _opener(tables, spark)
    if isinstance(tables, Config):
        tables = leave_out_missing(opener, tables)
    if isinstance(against, Config):
        against = leave_out_missing(opener, against)
    place = None if out is None else _open_out(opener, out)
    table_cache = TableCache(opener)
    progress("reading the settings")
    if isinstance(tables, Config):
        # Before the settings, so that these are as new as all messages.
        table_cache.open("messages", tables.tables["messages"])
    diff_sides = sides.read(*give_sides(tables, against, moment, table_cache))
    before, after = diff_sides.both
    traffic = _traffic(tables, table_cache, None if place is None else place.writer)
    dialogs = _read_dialogs_of_sides(traffic.get("dialogs"), diff_sides)
    sides.refuse(before, {**before.settings, **({} if dialogs[0] is None else {"dialogs": dialogs[0]})})
    done = None
    if isinstance(against, Scripts):
        after, done = sides.apply_scripts(before, against.read(moment, _known_instances(before)), after.label)
        diff_sides = DiffSides(before, after)
    sides.refuse(after, after.differs_in(before))
    progress("comparing messages")
    difference = PathDifference(diff_sides)
    comparison = _Comparison(tables, traffic, difference, opener, with_messages, place)
    changed, frame_cache = comparison.run()
    progress("comparing routes and findings")
    return Diff(
        before,
        after,
        changed.compared,
        count_changes(changed),
        list_keys(changed),
        find_route_changes(diff_sides),
        find_finding_changes(diff_sides, dialogs, lint or _lint(tables)),
        changed.messages,
        done,
        frame_cache,
        difference.list_unaddressed(lambda: _read_keys(traffic["messages"])),
    )


def _read_keys(messages: Table) -> list[PathKey]:
    names = (
        *("instance_name", "database_name", "to_service_name", "to_broker_instance", "is_initiator"),
        "from_service_name",
    )
    groups = open_traffic(messages, "messages").groups(names).rows()
    return [
        PathKey(name, database or None, to, broker_id(broker), is_initiator, from_service or None)
        for name, database, to, broker, is_initiator, from_service in groups.rows(*names)
        if name and to and is_initiator is not None
    ]


def _known_instances(one_side: OneSide) -> list[str]:
    tables = (one_side.settings[key].values["instance_name"] for key in ("instances", "databases"))
    return list(dict.fromkeys(name for names in tables for name in names))


def _opener(tables: Mapping[str, Table] | Config, spark: SparkSession | None) -> TableOpener:
    return TableOpener.of_settings(tables.spark if isinstance(tables, Config) else {}, spark)


def _lint(tables: Mapping[str, Table] | Config) -> LintSettings:
    return lint_settings(tables.lint, tables.file) if isinstance(tables, Config) else LintSettings()


def _traffic(
    tables: Mapping[str, Table] | Config, table_cache: TableCache, writer: LocalTable | UnreadableTable | None
) -> dict[str, Table]:
    if isinstance(tables, Config):
        return table_cache.traffic(tables, writer)
    traffic = take_tables(tables, TRAFFIC)
    return {key: traffic[key] for key in TRAFFIC if key in traffic}


def _read_dialogs_of_sides(dialogs: Table | None, diff_sides: DiffSides) -> Sequence[TableColumns | None]:
    if dialogs is None:
        return None, None
    first = read_one(dialogs, "dialogs", diff_sides.before.at)
    return first, first if diff_sides.is_one_time else read_one(dialogs, "dialogs", diff_sides.after.at)


@dataclass(frozen=True)
class _Comparison:
    """What the engines compare: the messages and the sides, and the table for changed messages."""

    tables: Mapping[str, Table] | Config
    traffic: Mapping[str, Table]
    difference: PathDifference
    opener: TableOpener
    with_messages: bool
    place: ReplacedOutput | None

    def run(self) -> tuple[MessageChanges, FrameCache | None]:
        """Compare the messages in the engine of their tables. Return the changes and Spark's cached frames."""
        return by_engine(self.traffic, spark=self._run_in_spark, arrow=lambda: (self._run_in_arrow(), None))

    def _run_in_arrow(self) -> MessageChanges:
        from routing.views.diff.arrow_diff import ChangedMessages, compare_messages

        messages = self.traffic["messages"]
        changes = ChangedMessages(compare_messages(messages, self.traffic.get("dialogs"), self.difference))
        changed_rows: Table | None = None
        if self.place is not None:
            changed_rows = _replace_table(self.place, changes, self.opener)
        elif self.with_messages:
            changed_rows = changes.collect()
        else:
            changes.count()
        return changes.summarize(as_dataset(messages).count_rows(), changed_rows if self.with_messages else None)

    def _run_in_spark(self) -> tuple[MessageChanges, FrameCache | None]:
        from routing.run_context import ResolveOptions
        from routing.tables.cached_frames import released_on_failure
        from routing.views.diff import spark_diff

        options = ResolveOptions(run_id="diff")
        if isinstance(self.tables, Config):
            settings = self.tables.resolve
            options = replace(options, dialog_hash=settings.dialog_hash, broadcast_limit=settings.broadcast_limit)
        notes: list[str] = []
        with released_on_failure() as frame_cache:
            frames = spark_diff.SideMessages(self.traffic["messages"], self.traffic.get("dialogs"))
            changed = spark_diff.compare(frames, self.difference, options, frame_cache, notes, place=self.place)
        for note in notes:
            self.opener.on_note(note)
        if self.with_messages:
            return changed, frame_cache
        frame_cache.release()
        return replace(changed, messages=None), None
