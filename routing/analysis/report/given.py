"""What a report is made of: the outputs of the last run that counts, and the tables that it read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routing.analysis.lint.reading import READ
from routing.config import Config
from routing.errors import InputError, RoutingError
from routing.schemas import OPTIONAL_INPUTS, RUNS
from routing.storage import counted
from routing.storage.columns import Table, check_given
from routing.storage.opening import Opener
from routing.storage.protocol import LastRun
from routing.storage.recorded import open_runs
from routing.storage.stored import read_rows
from routing.storage.times import micros_of, moment_of

Row = Mapping[str, Any]
_RESOLVED = "resolved_routes"
_ALL = tuple(key for key in READ if key not in OPTIONAL_INPUTS)


@dataclass(frozen=True)
class Given:
    """Tables by key, those that lint reads and ``resolved_routes``; ``run`` is the row of ``runs``, if known.

    ``not_known`` says what of the run is not at hand.
    """

    tables: Mapping[str, Table]
    run: Row | None
    not_known: tuple[str, ...]

    @property
    def resolved(self) -> Table:
        """The messages that were resolved."""
        return self.tables[_RESOLVED]

    @property
    def settings(self) -> dict[str, Table]:
        """All other tables."""
        return {key: table for key, table in self.tables.items() if key != _RESOLVED}


def of_tables(tables: Mapping[str, Table]) -> Given:
    """What somebody has at hand. Raises InputError where a table is missing."""
    check_given(tables, (*_ALL, _RESOLVED))
    taken = {key: tables[key] for key in (*READ, _RESOLVED) if key in tables}
    return Given(taken, None, ("Which run wrote these rows, and how many messages it rejected, is not known.",))


def of_config(config: Config, opener: Opener) -> Given:
    """The last run that counts, and the tables as it read them.

    Raises InputError where no run counts yet or a table is not there, OutputError as `counted.open_left` does.
    """
    last = counted.last_run(opener, config.output["runs"])
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    tables = {_RESOLVED: counted.open_left(opener, config, last, _RESOLVED)}
    not_known: list[str] = []
    for key in READ:
        if key in config.tables:
            tables[key] = _as_read(config, opener, last, key, not_known)
    run = _run(config, opener, last.run_id)
    return Given(tables, run, (*_not_told(run), *not_known))


def _as_read(config: Config, opener: Opener, last: LastRun, key: str, not_known: list[str]) -> Table:
    """A table at the version that the run read, or else as it is now, which is then said."""
    location, version = config.tables[key], last.input_versions.get(key)
    newest = f"The table {key} is told as it is now"
    if version is None:
        not_known.append(f"{newest}: the run recorded no version of it.")
        return opener.open_at(f"tables.{key}", location)
    try:
        return opener.open_at(f"tables.{key}", location, version)
    except RoutingError:
        not_known.append(f"{newest}: version {version:,}, which the run read, is not at hand.")
        return opener.open_at(f"tables.{key}", location)


def _run(config: Config, opener: Opener, run_id: str) -> Row:
    """The row of ``runs`` of a run that is there."""
    runs = open_runs(opener, config.output["runs"])
    if runs is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    return read_rows(runs, RUNS, last_by=("finished_at",), limit=1, only={"run_id": [run_id]})[0]


def _not_told(run: Row) -> list[str]:
    rejected = run["rows_rejected"]
    if not rejected:
        return []
    were, their = ("was", "its") if rejected == 1 else ("were", "their")
    messages = f"{rejected:,} message{'' if rejected == 1 else 's'}"
    return [f"{messages} {were} rejected by the run, and {their} outcome is not known: see rejected_messages."]


def headline(given: Given, messages: int) -> str:
    """What was looked at, in one line; ``messages`` are those of the outputs."""
    run = given.run
    if run is None:
        return f"{messages:,} resolved messages"
    counts = (("read", "rows_read"), ("resolved", "rows_resolved"), ("rejected", "rows_rejected"))
    told = ", ".join(f"{run[key]:,} {'messages ' if word == 'read' else ''}{word}" for word, key in counts)
    as_of = "" if run["as_of"] is None else f", all decided as of {_second(run['as_of'])}"
    # An incremental run adds to what those before it wrote.
    whole = "" if messages == run["rows_resolved"] else f"; the outputs hold {messages:,} messages"
    return f"Run {run['run_id']} ended {_second(run['finished_at'])}: {told}{as_of}{whole}"


def _second(time: Any) -> str:
    return f"{moment_of(micros_of(time)):%Y-%m-%d %H:%M:%S} UTC"
