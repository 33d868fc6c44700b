"""A run that counts already: its row in ``runs``, for a second start under the same id."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from routing.config import BESIDE, JOURNAL, KEPT, VIEW, Config, TableLocation
from routing.config.secrets import without_secrets
from routing.delta.opening import TableOpener
from routing.delta.releases import check_release
from routing.delta.table_places import relative_path
from routing.errors import RunError, quote
from routing.schemas import RUNS, Schema
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table
from routing.tables.table_shapes import check_shape
from routing.terms import JsonObject, ReadRow, TableRow

LONGEST_ID = 250
"""Characters of a run id: as many as Airflow's have at most."""
_EARLIER = Schema(tuple(f for f in RUNS if f.name in ("run_id", "finished_at", "outcome_counts")))
# What of a configuration decides what a run writes, each with the keys that do not.
_DECIDING: dict[str, tuple[str, ...]] = {
    # Both engines write the same rows.
    "resolve": ("engine",),
    "tables": (*KEPT, JOURNAL),
    "output": (*BESIDE, VIEW),
    "dynamic_routing": (),
}
_OF_PLACES = ("tables", "output")


@dataclass(frozen=True)
class EarlierRun:
    """A run that counts, as far as a later one is compared with it."""

    run_id: str
    finished_at: datetime
    outcome_counts: Mapping[str, int]


def new_run_id() -> str:
    """Return a fresh run id."""
    return str(uuid.uuid4())


def check_run_id(run_id: str) -> str:
    """Return a run id as it is. Raises RunError where it is empty, too long, or cannot be printed in one line."""
    if not run_id.strip() or run_id != run_id.strip() or not run_id.isprintable() or len(run_id) > LONGEST_ID:
        raise RunError.unfit_id(run_id, LONGEST_ID)
    return run_id


def open_runs(opener: TableOpener, location: TableLocation) -> Table | None:
    """Return the table ``runs`` at its newest version; None where there is none.

    Raises OutputError where another table stands there, or a newer release has written to it.
    """
    opened = opener.find("output.runs", location)
    if opened is None:
        return None
    check_release(opened.rows, str(location))
    check_shape(opened.rows, "runs", str(location), RUNS)
    return opened.rows


def find_recorded(
    opener: TableOpener, config: Config, run_id: str, now: datetime | None = None
) -> TableRow | None:
    """Return the row of the run that counts under an id; None where none does.

    ``now`` is the time at which delayed messages are to be tried again, where one was given. Raises RunError where
    that run was told to do something else, of which this is no retry; and OutputError as `open_runs` does.
    """
    runs = open_runs(opener, config.output["runs"])
    if runs is None:
        return None
    recorded_rows = read_rows(runs, RUNS, last_by=("finished_at",), limit=1, only={"run_id": [run_id]})
    if not recorded_rows:
        return None
    [row] = recorded_rows
    settings = plain_settings(row["settings"])
    different = next(_differences(settings, json.loads(config.as_json()), row["now"], now), None)
    if different is not None:
        raise RunError.of_other_settings(run_id, str(config.output["runs"]), different)
    return {**row, "settings": json.dumps(settings, sort_keys=True)}


def find_earlier_run(
    opener: TableOpener, config: Config, mode: str, *, before: datetime | None = None
) -> EarlierRun | None:
    """Return the last run of a mode that counts, the last before a time if given; None where there is none."""
    runs = open_runs(opener, config.output["runs"])
    if runs is None:
        return None
    limit = 1 if before is None else None
    rows = read_rows(runs, _EARLIER, last_by=("finished_at", "run_id"), limit=limit, only={"mode": [mode]})
    earlier = next((row for row in rows if before is None or row["finished_at"] < before), None)
    return None if earlier is None else EarlierRun(**earlier)


def plain_settings(recorded: str) -> JsonObject:
    """Return the settings of a run as they were recorded, without what an older release let into them."""
    settings: JsonObject = without_secrets(json.loads(recorded))
    return settings


def say_recorded(row: ReadRow) -> str:
    """Return the note on a run id whose run counts already."""
    when = row["finished_at"].isoformat(timespec="seconds").replace("+00:00", "Z")
    return (
        f"run {quote(row['run_id'])} was recorded before, at {when}: this is its row, and nothing was done now"
        " (use a new run id for another run)"
    )


def _differences(
    then: JsonObject, now: JsonObject, tried_at: datetime | None, try_at: datetime | None
) -> Iterator[str]:
    """Yield a phrase for each setting that a run had and does not have now."""
    for section, others in _DECIDING.items():
        before, after = then.get(section, {}), now.get(section, {})
        for key in sorted({*before, *after} - {*others}):
            old, new = before.get(key), after.get(key)
            if old != new and not (section in _OF_PLACES and _is_moved(then, old, now, new)):
                yield f"{section}.{key} was {_quote_value(old)} and is {_quote_value(new)}"
    if try_at is not None and try_at != tried_at:
        before, after = _quote_value(tried_at and tried_at.isoformat()), _quote_value(try_at.isoformat())
        yield f"--now was {before} and is {after}"


def _is_moved(then: JsonObject, old: Any, now: JsonObject, new: Any) -> bool:
    """Return True if two locations lead to one table of a folder that was moved as a whole, with its ``runs``."""
    if old is None or new is None:
        return False
    return relative_path(then["output"]["runs"], old) == relative_path(now["output"]["runs"], new)


def _quote_value(value: Any) -> str:
    return "not given" if value is None else quote(value)
