"""``sbroute runs``: the recorded runs, or one with its slow stages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from routing.commands.common import Console, Subparsers, add_config, at_least_one, load, opener, plain
from routing.errors import EXIT_DONE, OutputError

_SHOWN = 20
_PLAIN = ("run_id", "mode", "started_at", "finished_at", "seconds", "as_of", "now", "rows_read", "rows_resolved")
_HEAD = (*_PLAIN, "rows_rejected", "dialog_hash", "engine", "release")
_LIST = ("run_id", "mode", "started_at", "seconds", "read", "resolved", "rejected", "outcomes")
Row = Mapping[str, Any]


def add(commands: Subparsers, common: argparse.ArgumentParser) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "runs",
        parents=[common],
        help="the runs so far, or one with its stages",
        description="List the recorded runs, newest first, or show one with its stages, versions and settings.",
    )
    command.add_argument("run", metavar="RUN", nargs="?", help="one run: its run_id, or as much as is unique")
    add_config(command)
    command.add_argument(
        "--limit",
        metavar="N",
        type=at_least_one,
        default=_SHOWN,
        help=f"how many runs are listed (default: {_SHOWN})",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Print the list, or the one run."""
    settings = load(options)
    from routing.analysis import past_runs
    from routing.storage.recorded import open_runs, plain_settings

    location = settings.output["runs"]
    recorded = open_runs(opener(settings, options, console), location)
    if recorded is None:
        raise OutputError.no_runs(str(location))
    if options.run is None:
        rows = past_runs.list_runs(recorded, options.limit + 1).rows
        _list(rows[: options.limit], len(rows) > options.limit, options, console)
        return EXIT_DONE
    [found] = past_runs.find_run(recorded, options.run, str(location))
    row = {**found, "settings": json.dumps(plain_settings(found["settings"]), sort_keys=True)}
    if options.format == "json":
        console.result(json.dumps(plain(row)))
    else:
        _show(row, console)
    return EXIT_DONE


def _list(rows: Sequence[Row], are_more: bool, options: argparse.Namespace, console: Console) -> None:
    if options.format == "json":
        console.result(json.dumps({"runs": [plain(row) for row in rows], "more": are_more}))
        return
    if not rows:
        console.result("no runs are recorded")
        return
    from routing import show

    right = ("seconds", "read", "resolved", "rejected")
    console.result(show.table("Runs", _LIST, [_line(row) for row in rows], right))
    if are_more:
        console.result("and older ones; --limit N lists more")


def _line(row: Row) -> tuple[Any, ...]:
    outcomes = ", ".join(f"{name} {count:,}" for name, count in _largest_first(row["outcome_counts"]))
    when, seconds = _time(row["started_at"]), f"{row['seconds']:,.1f}"
    read = (row["rows_read"], row["rows_resolved"], row["rows_rejected"])
    return (row["run_id"], row["mode"], when, seconds, *read, outcomes)


def _largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _show(row: Row, console: Console) -> None:
    from routing import show

    console.result(show.table("Run", ("", "value"), [(name, _value(row[name])) for name in _HEAD]))
    for title, column in (("Outcomes", "outcome"), ("Reasons", "reason")):
        console.result("")
        counts = _largest_first(row[f"{column}_counts"])
        lines = [(name, count, _share(count / (row["rows_resolved"] or 1))) for name, count in counts]
        console.result(show.table(title, (column, "messages", "share"), lines, ("messages", "share")))
    stages = [(s["stage"], f"{s['seconds']:,.1f}", _share(s["share"])) for s in row["slow_stages"]]
    console.result("")
    console.result(show.table("Stages", ("stage", "seconds", "share"), stages, ("seconds", "share")))
    versions = [
        (name, *(_version(row[f"{side}_versions"], name) for side in ("input", "output")))
        for name in dict.fromkeys((*sorted(row["input_versions"]), *sorted(row["output_versions"])))
    ]
    console.result("")
    console.result(show.table("Versions", ("table", "read", "written"), versions, ("read", "written")))
    console.result("")
    console.result(show.table("Settings", ("key", "value"), list(_keys(json.loads(row["settings"]), ""))))


def _version(versions: Mapping[str, int | None], name: str) -> str:
    """The version of a table; what was read as it is has none."""
    version = versions.get(name, "-")
    return "as it was" if version is None else str(version)


def _keys(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    """A configuration as dotted keys with their values."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _keys(value[key], f"{at}.{key}" if at else key)
    else:
        yield at, json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool) else value


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return _time(value) if isinstance(value, datetime) else value


def _time(value: datetime) -> str:
    return value.isoformat(timespec="seconds").replace("+00:00", "Z")


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
