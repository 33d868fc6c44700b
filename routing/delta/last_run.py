"""The last run that counts, and the outputs as it left them, for readers with or without a JVM."""

from __future__ import annotations

import json
from dataclasses import dataclass

from routing import schemas
from routing.config import Config, TableLocation
from routing.delta import commits, protocol
from routing.delta.opening import TableOpener
from routing.delta.protocol import LastRun, TableCommit
from routing.delta.releases import refuse_newer
from routing.errors import OutputError, RecordedAlready
from routing.schemas import Schema
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table
from routing.tables.table_shapes import check_shape, types_of

# What is read of all runs, and of the last one.
_LISTED = Schema(tuple(field for field in schemas.RUNS if field.name in ("run_id", "finished_at", "release")))
_OF_LAST = ("run_id", "mode", "finished_at", "input_versions", "output_versions", "outcome_counts", "settings")
_LAST = Schema(tuple(f for f in schemas.RUNS if f.name in (*_OF_LAST, "table_ids", "commit_identities")))


def last_run(opener: TableOpener, runs: TableLocation, coming: str | None = None) -> LastRun | None:
    """Return the last run that counts; None where there is none yet.

    Raises OutputError where a newer release has written these tables, or ``runs`` is another kind of table,
    RecordedAlready where ``coming``, the id of the run that is to be the next, counts.
    """
    opened = opener.find("output.runs", runs)
    if opened is None:
        return None
    if opened.version is None:
        raise OutputError.without_versions(str(runs))
    is_a_table_of_runs = set(_LISTED.names) <= set(types_of(opened.rows))
    listed = read_rows(opened.rows, _LISTED, last_by=("finished_at", "run_id")) if is_a_table_of_runs else []
    # A newer release may have other columns.
    refuse_newer((str(row["release"]) for row in listed), str(runs))
    check_shape(opened.rows, "runs", str(runs), schemas.RUNS)
    if any(row["run_id"] == coming for row in listed):
        raise RecordedAlready.by_id(str(coming), str(runs))
    if not listed:
        return None
    only_newest = {"run_id": [listed[0]["run_id"]]}
    [row] = read_rows(opened.rows, _LAST, last_by=("finished_at",), limit=1, only=only_newest)
    settings = json.loads(row.pop("settings"))
    row["input_versions"] = {key: read for key, read in row["input_versions"].items() if read is not None}
    return LastRun(
        runs=settings["output"]["runs"], messages=settings["tables"]["messages"], read_at=opened.version, **row
    )


@dataclass(frozen=True)
class _Histories:
    """The commits to the outputs; Spark is asked only for a table whose log is not at hand."""

    opener: TableOpener
    config: Config

    def commits(self, key: str, after: int) -> list[TableCommit]:
        """Return every commit after a version. Raises HistoryGap."""
        location = self.opener.placed(f"output.{key}", self.config.output[key])
        return commits.commits_after(self.opener, location, after)


def open_left(opener: TableOpener, config: Config, last: LastRun, key: str) -> Table:
    """Return an output as the last run that counts left it, or maintenance right after it: no row of another run.

    Raises OutputError where that version is not there, or is a table of another schema.
    """
    location, recorded = config.output[key], last.output_versions[key]
    opened = opener.find(f"output.{key}", location)
    if opened is not None and opened.version is None:
        raise OutputError.without_versions(str(location))
    if opened is None or opened.version is None or opened.version < recorded:
        raise OutputError.left_nothing(key, str(location), last.run_id)
    check_shape(opened.rows, key, str(location), schemas.OUTPUTS[key])
    version = protocol.settled_version(_Histories(opener, config), key, recorded)
    return opened.rows if version == opened.version else opener.open_at(f"output.{key}", location, version)
