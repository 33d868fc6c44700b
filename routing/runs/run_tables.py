"""Open the inputs of a run with Spark, and commit its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.config.instance_patterns import ANY
from routing.delta import protocol, spark_tables
from routing.delta.ledger import DeltaTables
from routing.delta.opening import TableOpener
from routing.errors import ContractError, RoutingError, StorageError, first_sentence, quote
from routing.messages import validate
from routing.messages.setting_frames import open_settings
from routing.runs.run_work import RunInputs
from routing.schemas import OUTPUTS, SETTINGS
from routing.tables import frames
from routing.tables.cached_frames import FrameCache
from routing.tables.spark_forms import conform, no_rows
from routing.tables.table_columns import Table


def changing_outputs(inputs: RunInputs) -> DeltaTables:
    """Return the outputs of a run that changes some of their rows, which only Spark does."""
    if not isinstance(inputs.outputs, DeltaTables):
        raise TypeError("only Spark changes some rows of an output")
    return inputs.outputs


def conform_messages(inputs: RunInputs, rows: DataFrame) -> DataFrame:
    """Return rows of ``messages`` in the columns of the contract, only those of the job's instances."""
    messages, patterns = conform(rows, "messages"), inputs.config.resolve.instances
    if patterns is None:
        return messages
    is_own = reduce(Column.__or__, map(_is_of_instance, patterns))
    return messages.where(F.coalesce(is_own, F.lit(False)))


def _is_of_instance(pattern: str) -> Column:
    """Return whether the instance of a row matches a pattern, in time linear in the name."""
    name, text = F.col("instance_name"), F.lit(pattern.strip(ANY))
    if ANY not in pattern:
        return name == text
    if pattern.startswith(ANY) and pattern.endswith(ANY):
        return name.contains(text)
    return name.endswith(text) if pattern.startswith(ANY) else name.startswith(text)


def open_inputs(
    opener: TableOpener, inputs: Mapping[str, spark_tables.Input], frame_cache: FrameCache
) -> dict[str, Table]:
    """Return the inputs without the messages, each at its version. Dialogs are a frame, others keep their form.

    An input without versions is read in its current state. Several passes read the dialogs, so these are then
    cached, and all passes see the same rows as long as the session keeps them. Other inputs are read once.
    """
    tables = dict[str, Table]()
    for key, snapshot in inputs.items():
        if isinstance(snapshot, spark_tables.UnversionedTable):
            opener.on_note(f"tables.{key}: as it is, at no version")
        if key == "messages":
            continue
        if isinstance(snapshot, spark_tables.UnversionedTable):
            rows = snapshot.read(opener.spark)
            tables[key] = frame_cache.store(rows) if key == "dialogs" else rows
        elif key == "dialogs":
            tables[key] = snapshot.read(opener.spark)
        else:
            tables[key] = opener.open_at(f"tables.{key}", snapshot.location, snapshot.version)
    return tables


def read_inputs(inputs: RunInputs, frame_cache: FrameCache) -> validate.InputTables:
    """Read the inputs without the messages. A configuration that is too large for the driver stays in Spark.

    Raises InputError.
    """
    tables = open_inputs(inputs.opener, inputs.inputs, frame_cache)
    spark = inputs.opener.spark

    def read_frames() -> Mapping[str, DataFrame]:
        """Read the configuration with Spark, and cache tables without versions for several passes."""
        snapshots = {key: inputs.inputs[key] for key in tables if key in SETTINGS}
        rows = {key: snapshot.read(spark) for key, snapshot in snapshots.items()}
        loose = [key for key, snapshot in snapshots.items() if isinstance(snapshot, spark_tables.UnversionedTable)]
        return open_settings(rows | {key: frame_cache.store(rows[key]) for key in loose}, spark)

    return validate.read(tables, frame_cache.limits, read_frames, inputs.notes)


# Several passes read these.
_READ_AGAIN = ("messages", "dialogs")


@contextmanager
def telling_what_may_change(inputs: Mapping[str, spark_tables.Input]) -> Iterator[None]:
    """Add to errors in the block that an input without versions may have changed between two passes.

    A pass fails if it reads a message that the first pass did not see (`messages.results`). A run also fails if
    its counts do not add up. Raises StorageError for an error from outside this package.
    """
    loose = {
        key: inputs[key].location
        for key in _READ_AGAIN
        if isinstance(inputs.get(key), spark_tables.UnversionedTable)
    }
    if not loose:
        yield
        return
    try:
        yield
    except ContractError:
        raise
    except RoutingError as error:
        raise error.with_hint(_hint(loose)) from error
    except Exception as error:
        doing = " and ".join(f"reading tables.{key}" for key in loose)
        raise StorageError.failed(doing, first_sentence(error)).with_hint(_hint(loose)) from error


def _hint(loose: Mapping[str, object]) -> str:
    named = ", ".join(f"tables.{key} at {quote(location)}" for key, location in loose.items())
    why = "read at no version, and perhaps changed while the run was at work"
    return f"{why}: {named}; copy these to Delta tables"


def commit_outputs(
    inputs: RunInputs,
    outputs: Mapping[str, DataFrame | None],
    *,
    adds: bool,
    others: Mapping[str, Callable[[], object]] = MappingProxyType({}),
) -> dict[str, int]:
    """Append rows to tables or replace their rows, and return the versions by key.

    None means no rows, and an empty table is then kept. ``others`` write to other tables, each in one commit with
    the run's mark. All tables are written at the same time, because none depends on another, and no run counts
    before its row in ``runs``.
    """
    spark = inputs.outputs.spark

    def commit_one(key: str) -> int:
        if key in others:
            others[key]()
            return protocol.own_version(inputs.outputs, inputs.start, key)
        rows = outputs[key]
        if rows is None:
            if inputs.is_empty(key):
                return inputs.start.versions[key]
            rows = no_rows(spark, OUTPUTS[key])
        return protocol.commit(inputs.outputs, inputs.start, key, rows, adds=adds)

    keys = [*outputs, *others]
    return dict(zip(keys, frames.run_concurrently(spark, commit_one, keys), strict=True))
