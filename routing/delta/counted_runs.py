"""Read the last run that counts, and the outputs as it left them, with or without a JVM."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from packaging.version import Version

from routing import schemas
from routing.config import BESIDE, CLUSTER_BY, JOURNAL, KEPT, VIEW, Config, ResolveSettings, TableLocation
from routing.config.secrets import without_secrets
from routing.delta import protocol
from routing.delta.job_outputs import LastRun
from routing.delta.opening import OpenedTable, TableOpener
from routing.delta.table_details import relative_path
from routing.delta.table_log import TableLog
from routing.errors import InputError, OutputError, RecordedAlready, RunError, quote
from routing.schemas import OPTIONAL_INPUTS, RUNS, ColumnKind
from routing.tables.read_rows import check_shape, read_rows
from routing.tables.table_columns import Table, types_of
from routing.terms import JsonObject, ReadRow, TableRow

# The installed release of this package, and the release that wrote a table. Tables of a newer one are refused.


_RELEASE = RUNS.only("release")


def release() -> str:
    """Return the release, such as ``0.2.0``. It is ``unknown`` if the package is not installed, as in a zip."""
    try:
        return version("service-broker-routing")
    except PackageNotFoundError:
        return "unknown"


def check_release(runs: Table, location: str) -> None:
    """Refuse tables of a newer release. Each run records its release in ``runs``.

    ``runs`` is the current table with the column ``release``, and ``location`` is for the message. Raises
    OutputError.
    """
    if types_of(runs).get("release") == str(ColumnKind.STRING):
        refuse_newer((str(row["release"]) for row in read_rows(runs, _RELEASE)), location)


def refuse_newer(releases: Iterable[str], location: str) -> None:
    """Raise OutputError if one of the releases is newer than the installed one."""
    newest = newer_than(release(), releases)
    if newest is not None:
        raise OutputError.newer_release(location, newest, release())


def newer_than(own_release: str, releases: Iterable[str]) -> str | None:
    """Return the newest of the releases if it is newer than ``own_release``. Other texts are skipped."""
    own_version = read_version(own_release)
    versions = [(version, text) for text in releases if (version := read_version(text)) is not None]
    if own_version is None or not versions:
        return None
    version, text = max(versions)
    return text if version > own_version else None


def read_version(text: str) -> Version | None:
    """Return the version in a text, or None for other texts such as ``unknown``."""
    # A number with thousands of digits also raises ValueError.
    with suppress(ValueError):
        return Version(text)
    return None


# The columns to read of all runs, and of the last one.
_LISTED = RUNS.only("run_id", "finished_at", "release")
_LAST = RUNS.only(
    *("run_id", "mode", "finished_at", "now", "next_due_at", "input_versions", "output_versions"),
    *("outcome_counts", "settings", "release", "table_ids", "commit_identities", "input_digests"),
    *("rows_quarantined", "quarantined_instances"),
)


def last_run(opener: TableOpener, runs: TableLocation) -> LastRun | None:
    """Return the last recorded run, or None without any. Raises OutputError as `read_last_run` does."""
    return read_last_run(opener.find("output.runs", runs), runs)


def read_last_run(opened: OpenedTable | None, runs: TableLocation, coming: str | None = None) -> LastRun | None:
    """Return the last run in the opened table ``runs``, or None without any.

    Raises OutputError if a newer release wrote these tables, or if ``runs`` is another kind of table. Raises
    RecordedAlready if ``coming``, the id of the next run, is already recorded.
    """
    if opened is None:
        return None
    if opened.version is None:
        raise OutputError.without_versions(str(runs))
    is_a_table_of_runs = set(_LISTED.names) <= set(types_of(opened.rows))
    listed = read_rows(opened.rows, _LISTED) if is_a_table_of_runs else []
    # A newer release may have other columns.
    refuse_newer((str(row["release"]) for row in listed), str(runs))
    check_shape(opened.rows, "output.runs", str(runs), schemas.RUNS)
    if any(row["run_id"] == coming for row in listed):
        raise RecordedAlready.by_id(str(coming), str(runs))
    if not listed:
        return None
    newest = max(listed, key=lambda row: (row["finished_at"], row["run_id"]))
    only_newest = {"run_id": [newest["run_id"]]}
    [row] = read_rows(opened.rows, _LAST, last_by=("finished_at",), limit=1, only=only_newest)
    settings = json.loads(row["settings"])
    row["input_versions"] = {key: read for key, read in row["input_versions"].items() if read is not None}
    return LastRun(
        runs=settings["output"]["runs"], messages=settings["tables"]["messages"], read_at=opened.version, **row
    )


def leave_out_missing(
    opener: TableOpener,
    config: Config,
    on_missing: Callable[[str], None] | None = None,
    find_last: Callable[[], LastRun | None] | None = None,
    found: Collection[str] = (),
) -> Config:
    """Return a configuration without the optional inputs that do not exist.

    Args:
        opener: opens the tables.
        config: the configuration.
        on_missing: called with a note on each missing table. By default, the opener notes it.
        find_last: returns the last run that counts. By default, it is read from ``runs``.
        found: the keys of inputs that are known to exist.

    Raises:
        InputError: the last counted run read such a table, so that decisions would change without it.
    """
    missing = [
        key
        for key in OPTIONAL_INPUTS
        if key in config.tables and key not in found and not opener.exists(key, config.tables[key])
    ]
    last = None
    if missing:
        last = last_run(opener, config.output["runs"]) if find_last is None else find_last()
    for key in missing:
        location = str(config.tables[key])
        if last is not None and key in last.input_versions:
            raise InputError.lost_table(key, location, last.run_id)
        (on_missing or opener.say_missing)(f"tables.{key}: no table at {quote(location)}, so it is left out")
    return replace(config, tables={key: at for key, at in config.tables.items() if key not in missing})


def open_left(opener: TableOpener, config: Config, last: LastRun, key: str) -> Table:
    """Return an output at the version of the last run that counts, or of maintenance right after it.

    Raises OutputError if that version is missing, or if the table has another schema.
    """
    location, recorded = config.output[key], last.output_versions[key]
    opened = opener.find(f"output.{key}", location)
    if opened is not None and opened.version is None:
        raise OutputError.without_versions(str(location))
    if opened is None or opened.version is None or opened.version < recorded:
        raise OutputError.left_nothing(key, str(location), last.run_id)
    check_shape(opened.rows, f"output.{key}", str(location), schemas.OUTPUTS[key])
    placed = opener.placed(f"output.{key}", location)
    version = protocol.settled_version(TableLog(opener, placed), key, recorded)
    return opened.rows if version == opened.version else opener.open_at(f"output.{key}", location, version)


# Find the row of a run that already counts, for a second start with the same id.


LONGEST_ID = 250
"""The maximum length of a run id, which is that of Airflow."""
_EARLIER = RUNS.only("run_id", "finished_at", "outcome_counts")
# The sections of a configuration that decide what a run writes, each with the keys that do not.
_DECIDING: dict[str, tuple[str, ...]] = {
    # Both engines write the same rows.
    "resolve": ("engine",),
    "tables": (*KEPT, JOURNAL),
    "output": (*BESIDE, VIEW, CLUSTER_BY),
    "dynamic_routing": (),
}
_DEFAULTS = vars(ResolveSettings())
_OF_PLACES = ("tables", "output")
# Settings that change no decision of a message that an earlier run has accepted.
_AS_DECIDED = ("broadcast_limit", "duplicates_within")


@dataclass(frozen=True)
class EarlierRun:
    """The facts of a run that counts, for comparison with a later one."""

    run_id: str
    finished_at: datetime
    outcome_counts: Mapping[str, int]


def new_run_id() -> str:
    """Return a fresh run id."""
    return str(uuid.uuid4())


def check_run_id(run_id: str) -> str:
    """Return a run id unchanged. Raises RunError if it is empty, too long, or cannot be printed on one line."""
    if not run_id.strip() or run_id != run_id.strip() or not run_id.isprintable() or len(run_id) > LONGEST_ID:
        raise RunError.unfit_id(run_id, LONGEST_ID)
    return run_id


def open_runs(opener: TableOpener, location: TableLocation) -> Table | None:
    """Return the table ``runs`` at its newest version, or None without one.

    Raises OutputError if another table is there, or if a newer release wrote to it.
    """
    opened = opener.find("output.runs", location)
    if opened is None:
        return None
    check_release(opened.rows, str(location))
    check_shape(opened.rows, "output.runs", str(location), RUNS)
    return opened.rows


def find_recorded(
    runs: Table | None, config: Config, run_id: str, now: datetime | None = None, *, erase: bool = False
) -> TableRow | None:
    """Return the row of the recorded run with an id in the table ``runs``, or None.

    ``now`` is the given time for retrying delayed messages. With ``erase``, the recorded run must have had it too.
    Raises RunError if that run had other settings, so that this is not a retry.
    """
    if runs is None:
        return None
    recorded_rows = read_rows(runs, RUNS, last_by=("finished_at",), limit=1, only={"run_id": [run_id]})
    if not recorded_rows:
        return None
    [row] = recorded_rows
    settings = plain_settings(row["settings"])
    different = next(_differences(settings, json.loads(config.as_json()), row["now"], now), None)
    if different is None and erase and row["rows_erased"] is None:
        different = "--erase was not given and is given"
    if different is not None:
        raise RunError.of_other_settings(run_id, str(config.output["runs"]), different)
    return {**row, "settings": json.dumps(settings, sort_keys=True)}


def has_other_settings(last: LastRun, config: Config) -> bool:
    """Return True if the last run had settings that may have led to other rows, or was of another release."""
    recorded, current = plain_settings(last.settings), json.loads(config.as_json())
    differences = _differences(recorded, current, None, None, ignored=_AS_DECIDED)
    return last.release != release() or next(differences, None) is not None


def find_earlier_run(runs: Table | None, mode: str, *, before: datetime | None = None) -> EarlierRun | None:
    """Return the last run of a mode in the table ``runs``, before a time if it is given, or None."""
    if runs is None:
        return None
    limit = 1 if before is None else None
    rows = read_rows(runs, _EARLIER, last_by=("finished_at", "run_id"), limit=limit, only={"mode": [mode]})
    earlier = next((row for row in rows if before is None or row["finished_at"] < before), None)
    return None if earlier is None else EarlierRun(**earlier)


def plain_settings(recorded: str) -> JsonObject:
    """Return the recorded settings of a run without secrets that an older release stored."""
    settings: JsonObject = without_secrets(json.loads(recorded))
    return settings


def say_recorded(row: ReadRow) -> str:
    """Return the note on a run id that is already recorded."""
    when = row["finished_at"].isoformat(timespec="seconds").replace("+00:00", "Z")
    return (
        f"run {quote(row['run_id'])} was already recorded at {when}: this is its row, and the command did nothing"
        " (use a new run id for another run)"
    )


def _differences(
    recorded: JsonObject,
    current: JsonObject,
    tried_at: datetime | None,
    try_at: datetime | None,
    ignored: Collection[str] = (),
) -> Iterator[str]:
    """Yield a phrase for each setting that a run had and does not have now, apart from ``ignored`` keys."""
    for section, other_keys in _DECIDING.items():
        before, after = recorded.get(section, {}), current.get(section, {})
        for key in sorted({*before, *after} - {*other_keys, *ignored}):
            # An older release did not record settings that it did not have.
            default = _DEFAULTS.get(key) if section == "resolve" else None
            old, new = before.get(key, default), after.get(key, default)
            if old != new and not (section in _OF_PLACES and _is_moved(recorded, old, current, new)):
                yield f"{section}.{key} was {_quote_value(old)} and is {_quote_value(new)}"
    if try_at is not None and try_at != tried_at:
        before, after = _quote_value(tried_at and tried_at.isoformat()), _quote_value(try_at.isoformat())
        yield f"--now was {before} and is {after}"


def _is_moved(recorded: JsonObject, old: Any, current: JsonObject, new: Any) -> bool:
    """Return True if two locations are one table in a folder that was moved together with its ``runs``."""
    if old is None or new is None:
        return False
    return relative_path(recorded["output"]["runs"], old) == relative_path(current["output"]["runs"], new)


def _quote_value(value: Any) -> str:
    return "not given" if value is None else quote(value)
