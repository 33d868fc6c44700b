"""Reconcile SQL Server's actions with the routes: from tables or a configuration to a printed summary and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.arguments import checked
from routing.config import RECONCILIATION as KEY
from routing.config import Config, ConfigError
from routing.delta import ledger
from routing.delta.counted_runs import leave_out_missing
from routing.delta.ledger import ReplacedOutput
from routing.delta.opening import OpenedTable, TableOpener
from routing.document import (
    Block,
    DataTable,
    Document,
    DocumentHeading,
    ListItem,
    Paragraph,
    Tone,
    TonedText,
    Words,
    make_columns,
)
from routing.render.wording import count, write_json
from routing.result_schemas import BALANCED_PICKS, RECONCILED_CAUSES, RECONCILED_COUNTS
from routing.rules.reconciling import MATCHING, PairClass
from routing.rules.timeline import moment_of
from routing.schemas import RECONCILIATION, SETTINGS, Schema
from routing.tables.arrow_rows import SchemaRows
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import read_settings
from routing.tables.row_faults import refuse_faults
from routing.tables.table_columns import Table, by_engine
from routing.views.reconcile.episodes import TRAFFIC, ObservedEpisodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.views.reconcile.arrow_reconcile import BucketedEpisodes
    from routing.views.reconcile.spark_reconcile import JudgedFrames


_OBSERVED = "observed_routing"


def open_tables(config: Config, opener: TableOpener, place: ReplacedOutput | None) -> dict[str, OpenedTable]:
    """Return the newest versions of the tables to reconcile. The growing tables share one engine.

    Spark reads them if it must read one of them or write the output (``place``). Raises ConfigError if no
    observations are configured, and InputError if a table is missing.
    """
    if _OBSERVED not in config.import_tables:
        raise ConfigError.no_observed(config.file)
    opened = opener.require_all({**config.tables, _OBSERVED: config.import_tables[_OBSERVED]})
    traffic = {key: opened[key] for key in TRAFFIC if key in opened}
    writer = None if place is None else place.writer
    return opened | opener.read_alike(traffic, {**config.tables, **config.import_tables}, "reconciled", writer)


@dataclass(frozen=True)
class Reconciliation:
    """Hold the result of `reconcile`.

    Args:
        observations: the number of rows of ``observed_routing``.
        counts: rows of `result_schemas.RECONCILED_COUNTS`: episodes by instance and class.
        causes: rows of `result_schemas.RECONCILED_CAUSES`, most explained episodes first.
        balanced: rows of `result_schemas.BALANCED_PICKS`: dialogs by broker instance that SQL Server picked.
        unobserved: the number of ends of conversations with messages but no observation on their instance.
        rows: every episode (`schemas.RECONCILIATION`) as an Arrow table or dataset or a DataFrame, or None without
            ``with_rows``.
        version: the version of ``output.reconciliation`` that was written, or None.
        notes: sentences on columns that somebody has added to ``output.reconciliation``.

    Example:
        >>> done = routing.reconcile(routing.load_config("job.yaml"))
        >>> done.percent, done.by_class["CONFIRMED"]
        (50.0, 1)
    """

    observations: int
    counts: SchemaRows
    causes: SchemaRows
    balanced: SchemaRows
    unobserved: int
    rows: Table | None
    version: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def by_class(self) -> dict[str, int]:
        """The number of episodes of each class, in the order of `PairClass`."""
        counts = {str(kind): 0 for kind in PairClass}
        for row in self.counts:
            counts[row["class"]] += row["episodes"]
        return counts

    @property
    def percent(self) -> float | None:
        """Per cent of CONFIRMED and COMPATIBLE among all except NOT_OBSERVED, or None if there are only those."""
        counts = self.by_class
        observed = sum(counts.values()) - counts[PairClass.NOT_OBSERVED]
        return 100 * sum(counts[kind] for kind in MATCHING) / observed if observed else None


@checked
def reconcile(
    tables: Mapping[str, Table] | Config,
    *,
    opener: TableOpener | None = None,
    spark: SparkSession | None = None,
    progress: Callable[[str], None] = lambda text: None,
    with_rows: bool = True,
) -> Reconciliation:
    """Compare each episode of ``observed_routing`` with the rules' decision at its start, and find causes.

    Args:
        tables: a configuration, whose ``output.reconciliation`` is replaced if it has one, or tables by key
            (tables.md): ``observed_routing``, ``routes``, ``databases``, ``services``, ``instances`` and
            optionally ``messages``, ``dialogs`` and ``route_requests``, as DataFrames, Arrow tables or datasets.
        opener: opens the configuration's tables, by default local ones by delta-rs and others by Spark.
        spark: the session for tables that need one. By default one is started.
        progress: called with the name of each step.
        with_rows: False to keep no episodes if no output is written.

    Returns:
        Counts by class, causes, and every episode.

    Raises:
        ConfigError: the configuration has no ``observed_routing``.
        InputError: a table is missing or breaks its contract.
        OutputError: ``output.reconciliation`` cannot be replaced.
        StorageError: a table could not be read or written.

    Example:
        >>> done = routing.reconcile(routing.load_config("job.yaml"))
        >>> [(row["class"], row["episodes"]) for row in done.counts]
        [('CONFIRMED', 1), ('CONTRADICTED', 1)]
    """
    if not isinstance(tables, Config):
        tables = take_tables(tables, (*SETTINGS, _OBSERVED))
        return _reconcile(tables, progress, None, "", with_rows)
    opener = opener or TableOpener.of_settings(tables.spark, spark)
    config = leave_out_missing(opener, tables.placed(opener.placed))
    progress("reading the tables")
    is_written = KEY in config.other_outputs
    place = ledger.open_output(opener, config, KEY, RECONCILIATION) if is_written else None
    opened = open_tables(config, opener, place)
    metadata = ledger.metadata_of("reconcile", {key: table.version for key, table in opened.items()}, None)
    return _reconcile(
        {key: opened_table.rows for key, opened_table in opened.items()}, progress, place, metadata, with_rows
    )


def _reconcile(
    tables: Mapping[str, Table],
    progress: Callable[[str], None],
    place: ReplacedOutput | None,
    metadata: str,
    with_rows: bool,
) -> Reconciliation:
    traffic = {key: tables[key] for key in TRAFFIC if key in tables}
    settings = read_settings(tables)
    refuse_faults(settings)

    def open_by_spark() -> AbstractContextManager[BucketedEpisodes | JudgedFrames]:
        from routing.views.reconcile.spark_reconcile import open_episodes

        return open_episodes(tables, settings, progress)

    def open_by_arrow() -> AbstractContextManager[BucketedEpisodes | JudgedFrames]:
        from routing.views.reconcile.arrow_reconcile import open_episodes

        return open_episodes(tables, settings, progress)

    with by_engine(traffic, spark=open_by_spark, arrow=open_by_arrow) as judged:
        rows: Table | None = None
        version = None
        if place is not None:
            progress("writing the table")
            rows, version = judged.replace_output(place, metadata)
        elif with_rows:
            rows = judged.make_rows()
        notes = () if place is None else place.notes
        return _summarize(judged.counted, rows, version, notes)


def _summarize(
    observed_episodes: ObservedEpisodes, rows: Table | None, version: int | None, notes: tuple[str, ...]
) -> Reconciliation:
    order = [str(kind) for kind in PairClass]
    counts = sorted(observed_episodes.counts.items(), key=lambda item: (item[0][0], order.index(str(item[0][1]))))
    # The cause that explains most episodes comes first.
    causes = sorted(observed_episodes.causes.items(), key=lambda item: (-item[1].episodes, item[0]))
    balanced = sorted(observed_episodes.balanced.items())
    count_rows = ((instance, str(kind), of.episodes, of.observations) for (instance, kind), of in counts)
    cause_rows = (
        (instance, str(cause.kind), cause.text, of.episodes, moment_of(of.first_at), moment_of(of.last_at))
        for (instance, cause), of in causes
    )
    return Reconciliation(
        observed_episodes.observations,
        _rows(RECONCILED_COUNTS, count_rows),
        _rows(RECONCILED_CAUSES, cause_rows),
        _rows(BALANCED_PICKS, ((*key, picks.episodes, picks.same) for key, picks in balanced)),
        observed_episodes.unobserved,
        rows,
        version,
        notes,
    )


def _rows(schema: Schema, rows: Iterable[tuple[Any, ...]]) -> SchemaRows:
    return SchemaRows(schema, tuple(dict(zip(schema.names, row, strict=True)) for row in rows))


# The printed result.


_SHOWN = 20


def as_json(done: Reconciliation) -> str:
    """Return one line of JSON: observations, unobserved, percent, classes, counts, causes, balanced, version."""
    document = {
        "observations": done.observations,
        "unobserved": done.unobserved,
        "percent": done.percent,
        "classes": done.by_class,
        "counts": [dict(row) for row in done.counts],
        "causes": [dict(row) for row in done.causes],
        "balanced": [dict(row) for row in done.balanced],
        "version": done.version,
    }
    return write_json(document)


def make_document(done: Reconciliation) -> Document:
    """Describe a reconciliation: the decisions that differ and why, then all causes and counts."""
    if not done.observations:
        return [
            Paragraph(
                "There are no observations: import events or a transmission queue first"
                " (docs/how-to/reconcile.md)."
            )
        ]
    return [
        Paragraph(_answer(done)),
        *_describe_causes(done),
        DataTable(
            make_columns(("instance", *(str(kind) for kind in PairClass)), tuple(PairClass)),
            _by_instance(done),
            "Episodes by class",
        ),
        *_describe_picks(done),
        Paragraph(_total(done)),
    ]


def _answer(done: Reconciliation) -> Words:
    counts = done.by_class
    observed = sum(counts.values()) - counts[PairClass.NOT_OBSERVED]
    if not observed:
        return f"No decision of SQL Server was observed in {count(sum(counts.values()), 'episode')}."
    otherwise, beyond = counts[PairClass.CONTRADICTED], counts[PairClass.NOT_PREDICTED]
    if not otherwise and not beyond:
        return (TonedText(f"SQL Server decided {_all_of(observed)} as the tables predict", Tone.GOOD), ".")
    sentence = f"SQL Server decided {otherwise:,} of {count(observed, 'episode')} differently from the tables"
    unpredicted = f"; the tables predict nothing for {count(beyond, 'other')}" if beyond else ""
    return (TonedText(sentence, Tone.BAD if otherwise else Tone.STRONG), f"{unpredicted}.")


def _all_of(episodes: int) -> str:
    return "the one episode" if episodes == 1 else f"all {episodes:,} episodes"


def _describe_causes(done: Reconciliation) -> Iterator[Block]:
    totals: Counter[str] = Counter()
    for row in done.causes:
        totals[row["cause"]] += row["episodes"]
    for number, (cause, episodes) in enumerate(sorted(totals.items(), key=lambda item: (-item[1], item[0])), 1):
        explains = "" if number > 1 else " explains most"
        yield DocumentHeading(f"{cause}{explains}: {count(episodes, 'episode')}")
        of_cause = [row for row in done.causes if row["cause"] == cause]
        for row in of_cause[:_SHOWN]:
            yield ListItem(f"{row['instance_name']}, {count(row['episodes'], 'episode')}: {row['cause_text']}")
        if len(of_cause) > _SHOWN:
            yield Paragraph(f"and {count(len(of_cause) - _SHOWN, 'more cause')} (--format json has all)")


def _describe_picks(done: Reconciliation) -> Iterator[DataTable]:
    if len(done.balanced):
        columns = ("instance", "service", "broker instances", "episodes", "as predicted")
        rows = _balanced(done)
        unlisted = len(done.balanced) - len(rows)
        yield DataTable(make_columns(columns, columns[2:]), rows, "Picks of balanced services", unlisted)


def _by_instance(done: Reconciliation) -> list[tuple[Any, ...]]:
    counts_by_instance: dict[str, dict[str, int]] = {}
    for row in done.counts:
        counts_by_instance.setdefault(row["instance_name"], {})[row["class"]] = row["episodes"]
    return [(name, *(counts.get(kind, 0) for kind in PairClass)) for name, counts in counts_by_instance.items()]


def _balanced(done: Reconciliation) -> list[tuple[Any, ...]]:
    return [
        (
            row["instance_name"],
            row["to_service_name"],
            row["broker_instances"],
            row["episodes"],
            f"{row['same']:,} ({100 * row['same'] / row['episodes']:.0f} %)",
        )
        for row in list(done.balanced)[:_SHOWN]
    ]


def _total(done: Reconciliation) -> str:
    episodes = sum(done.by_class.values())
    totals = f"{count(done.observations, 'observation')} in {count(episodes, 'episode')}"
    percent = "" if done.percent is None else f"; {done.percent:.1f} % of the observed episodes match"
    unobserved = f"; {count(done.unobserved, 'conversation side')} with messages but no observation"
    return f"{totals}{percent}{unobserved if done.unobserved else ''}"
