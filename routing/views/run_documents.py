"""Write documents of runs: the list, one run, and the summary that `resolve` prints."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from routing.config import parse_time
from routing.delta.counted_runs import EarlierRun
from routing.document import (
    Block,
    Cell,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    Paragraph,
    Tone,
    TonedText,
    make_columns,
)
from routing.errors import RunError, join_bounded
from routing.render.phrases import when
from routing.render.wording import count, format_duration, format_time, format_value
from routing.result_schemas import LISTED_RUNS, ONE_RUN
from routing.rules.timeline import micros_of
from routing.schemas import RUNS, Schema
from routing.tables.arrow_rows import SchemaRows
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table
from routing.terms import ON_ITS_WAY, REJECTED, Outcome, ReadRow, TableRow

if TYPE_CHECKING:
    from routing.runs.running import Run

_LISTED = ("run", "mode", "started", "seconds", "read", "not passed on")
_NUMBERS = ("seconds", "read")
_SHORTEST_ID = 6
_AS_OF = "resolve.as_of"
_MANY_SECONDS = 1_000


def make_run_list(rows: Sequence[ReadRow], *, are_more: bool) -> Document:
    """Return the list of runs: when each began, how long it took, and which messages it did not pass on.

    ``rows`` are those of `read_runs`. Ids are shortened as far as the listed runs stay distinct.
    """
    if not rows:
        return [Paragraph("No runs are recorded.")]
    length = _shortest_beginning([str(row["run_id"]) for row in rows])
    blocks: list[Block] = [
        DataTable(
            make_columns(_LISTED, _NUMBERS), [_listed_row(row, length) for row in rows], "Runs, newest first"
        ),
        Paragraph(_state_hint(are_more=are_more)),
    ]
    return blocks


def describe_run(row: ReadRow) -> Document:
    """Return one run as a row of `find_run`: its counts, stages, versions and settings."""
    return [
        _say_counts(row, row["seconds"]),
        *_run_facts(row),
        _count_table("Outcomes", "outcome", row),
        _count_table("Reasons", "reason", row),
        DataTable(
            make_columns(("stage", "seconds", "share"), ("seconds", "share")),
            [(stage["stage"], f"{stage['seconds']:,.1f}", _share(stage["share"])) for stage in row["slow_stages"]],
            "Stages, slowest first",
        ),
        DataTable(
            make_columns(("table", "read", "written"), ("read", "written")),
            list(_version_rows(row)),
            "Versions of the tables",
        ),
        DocumentHeading("Settings"),
        *_list_settings(json.loads(row["settings"]), ""),
    ]


def summarize_run(done: Run) -> Document:
    """Describe a run of `resolve`: the counts, the reasons, and last the outcomes and how they changed."""
    row = done.row
    seconds = (row["finished_at"] - row["started_at"]).total_seconds()
    stages = ", ".join(f"{stage} {value:,.1f}" for stage, value in row["stage_seconds"].items())
    return [
        _say_counts(row, seconds),
        LabelledFact("seconds", stages),
        *_say_erased(row),
        *_say_quarantined(row),
        _count_table("Reasons", "reason", row),
        *_compare_outcomes(row, done.earlier),
    ]


def _compare_outcomes(row: ReadRow, earlier: EarlierRun | None) -> Iterator[Block]:
    counts = row["outcome_counts"]
    if earlier is None:
        yield _count_table("Outcomes", "outcome", row)
        yield Paragraph(f"There is no earlier {row['mode']} run to compare with.")
        return
    before = earlier.outcome_counts
    names = [name for name, _ in _largest_first({**dict.fromkeys(before, 0), **counts})]
    changes = {name: counts.get(name, 0) - before.get(name, 0) for name in names}
    rows = [(*_counted(name, counts.get(name, 0), row), _say_change(changes[name])) for name in names]
    numbers = ("messages", "share")
    yield DataTable(make_columns(("outcome", *numbers, "change"), numbers), rows, "Outcomes")
    subject = "The changes are" if any(changes.values()) else "Nothing changed"
    ended = when(earlier.finished_at)
    yield Paragraph(f"{subject} since run {earlier.run_id}, the {row['mode']} run before, which ended {ended}.")


def _say_erased(row: ReadRow) -> Iterator[LabelledFact]:
    if row["rows_erased"] is not None:
        yield LabelledFact("rows erased", f"{row['rows_erased']:,}")


def _say_quarantined(row: ReadRow) -> Iterator[LabelledFact]:
    if row["quarantined_instances"]:
        names = join_bounded(row["quarantined_instances"], "instance")
        yield LabelledFact("in quarantine", f"{count(row['rows_quarantined'], 'message')} of {names}")


def _say_change(change: int) -> str:
    return "-" if not change else f"{abs(change):,} {'more' if change > 0 else 'fewer'}"


def _say_counts(row: ReadRow, seconds: float) -> Paragraph:
    read, resolved, rejected = (row[f"rows_{name}"] for name in ("read", "resolved", "rejected"))
    rejected_text = f"{rejected:,} rejected"
    duration = f"{seconds:.1f} s" if seconds < _MANY_SECONDS else format_duration(timedelta(seconds=seconds))
    return Paragraph(
        (
            TonedText(f"run {row['run_id']}", Tone.STRONG),
            f": {count(read, 'message')} read, {resolved:,} resolved, {say_unchanged(row)}",
            TonedText(rejected_text, Tone.BAD) if rejected else rejected_text,
            f" in {duration}",
        )
    )


def say_unchanged(row: ReadRow) -> str:
    """Say how many messages of a run have no new row, such as ``3 still delayed, ``. Empty if all have one."""
    withheld = (row["rows_quarantined"] or 0) if row["mode"] != "full" else 0
    numbers = {"still delayed": (row["rows_unchanged"] or 0) - withheld, "in quarantine": withheld}
    return "".join(f"{number:,} {words}, " for words, number in numbers.items() if number)


def _run_facts(row: ReadRow) -> Iterator[LabelledFact]:
    yield LabelledFact("mode", row["mode"])
    for label, name in (("started", "started_at"), ("finished", "finished_at")):
        yield LabelledFact(label, when(row[name]))
    for label, name in (("as of", "as_of"), ("now", "now")):
        if row[name] is not None:
            yield LabelledFact(label, format_time(row[name]))
    yield LabelledFact("dialog hash", row["dialog_hash"])
    yield from _say_erased(row)
    yield from _say_quarantined(row)
    if row["engine"] is not None:
        yield LabelledFact("engine", row["engine"])
    yield LabelledFact("release", row["release"])


def _count_table(title: str, column: str, row: ReadRow) -> DataTable:
    rows = [_counted(name, number, row) for name, number in _largest_first(row[f"{column}_counts"])]
    return DataTable(make_columns((column, "messages", "share"), ("messages", "share")), rows, title)


def _version_rows(row: ReadRow) -> Iterator[tuple[Cell, ...]]:
    version_maps = [row[f"{direction}_versions"] for direction in ("input", "output")]
    for name in dict.fromkeys((*sorted(version_maps[0]), *sorted(version_maps[1]))):
        yield (name, *(_version(versions, name) for versions in version_maps))


def _version(versions: Mapping[str, int | None], name: str) -> str:
    """Return the version of a table. Tables that are not versioned have none."""
    version = versions.get(name, "-")
    return "unversioned" if version is None else str(version)


def _list_settings(value: Any, key: str) -> Iterator[LabelledFact]:
    if isinstance(value, dict):
        for name in sorted(value):
            yield from _list_settings(value[name], f"{key}.{name}" if key else name)
    elif isinstance(value, (list, bool)):
        yield LabelledFact(key, json.dumps(value, ensure_ascii=False))
    elif key == _AS_OF and value is not None:
        yield LabelledFact(key, format_time(parse_time(value)))
    else:
        yield LabelledFact(key, format_value(value))


def _listed_row(row: ReadRow, length: int) -> tuple[Cell, ...]:
    seconds = row["seconds"]
    return (
        str(row["run_id"])[:length],
        row["mode"],
        row["started_at"].replace(microsecond=0),
        f"{seconds:,.0f}" if seconds >= _MANY_SECONDS else f"{seconds:.1f}",
        row["rows_read"],
        _say_not_passed_on(row),
    )


def _say_not_passed_on(row: ReadRow) -> Cell:
    counts = {**row["outcome_counts"], REJECTED: row["rows_rejected"]}
    stuck = {name: number for name, number in _largest_first(counts) if number and name not in ON_ITS_WAY}
    if not stuck:
        return None
    text = ", ".join(f"{name} {number:,}" for name, number in stuck.items())
    return TonedText(text, Tone.WAITING if stuck.keys() <= {Outcome.DELAYED} else Tone.BAD)


def _shortest_beginning(ids: Sequence[str]) -> int:
    different = set(ids)
    longest = max(map(len, different))
    return next(
        length
        for length in range(min(_SHORTEST_ID, longest), longest + 1)
        if length == longest or len({run_id[:length] for run_id in different}) == len(different)
    )


def _state_hint(*, are_more: bool) -> str:
    older_hint = "There are older ones; --limit N lists more. " if are_more else ""
    return f"{older_hint}sbroute runs RUN shows one; RUN is its id or a unique prefix."


def _largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _counted(name: str, number: int, row: ReadRow) -> tuple[Cell, ...]:
    return name, number, _share(number / (row["rows_resolved"] or 1))


def _share(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.1f} %"


NEAREST = 3
# The number of newest runs that are searched for a similar id.
_LOOKED_THROUGH = 1_000
_MICROSECONDS = 1e6
_NEWEST_FIRST = ("started_at", "run_id")
_OF_A_LIST = RUNS.only(*LISTED_RUNS.names, "finished_at")
_IDS = RUNS.only(*_NEWEST_FIRST)


def read_runs(runs: Table, limit: int | None = None) -> SchemaRows:
    """Return the recorded runs, newest first, without settings, versions and stages.

    ``runs`` is the table of that name. The rows are those of `result_schemas.LISTED_RUNS`.
    """
    run_rows = read_rows(runs, _OF_A_LIST, last_by=_NEWEST_FIRST, limit=limit)
    return SchemaRows(
        LISTED_RUNS, tuple(_in_order({**row, "seconds": _seconds(row)}, LISTED_RUNS) for row in run_rows)
    )


def find_run(runs: Table, prefix: str, location: str) -> SchemaRows:
    """Find the run with this id, or the only one with an id that begins with it.

    Returns one row of `result_schemas.ONE_RUN`. ``location`` is for the message. Raises RunError.
    """
    newest = [str(row["run_id"]) for row in read_rows(runs, _IDS, last_by=_NEWEST_FIRST)]
    ids = [run_id for run_id in dict.fromkeys(newest) if run_id.startswith(prefix)]
    if not ids or not prefix:
        raise RunError.unknown(prefix, location, _nearest(newest[:_LOOKED_THROUGH], prefix))
    if len(ids) > 1 and prefix not in ids:
        raise RunError.ambiguous(prefix, ids[:NEAREST], len(ids))
    run_id = prefix if prefix in ids else ids[0]
    [row] = read_rows(runs, RUNS, last_by=_NEWEST_FIRST, limit=1, only={"run_id": [run_id]})
    return SchemaRows(ONE_RUN, ({**row, "seconds": _seconds(row), "slow_stages": _slow_stages(row)},))


def _in_order(row: ReadRow, schema: Schema) -> TableRow:
    return {name: row[name] for name in schema.names}


def _seconds(row: ReadRow) -> float:
    return (micros_of(row["finished_at"]) - micros_of(row["started_at"])) / _MICROSECONDS


def _slow_stages(row: ReadRow) -> list[TableRow]:
    """Return the stages, slowest first, with their share of the run. A run without duration has no shares."""
    whole = _seconds(row)
    slowest = sorted(((seconds, stage) for stage, seconds in row["stage_seconds"].items()), reverse=True)
    return [
        {"stage": stage, "seconds": seconds, "share": seconds / whole if whole > 0 else None}
        for seconds, stage in slowest
    ]


def _nearest(ids: Sequence[str], prefix: str) -> list[str]:
    """Return the most similar ids among the newest runs, or the newest ids if no id is similar."""
    # The user may have typed the beginning of an id.
    beginnings: dict[str, str] = {}
    for run_id in ids:
        beginnings.setdefault(run_id[: len(prefix)], run_id)
    alike = difflib.get_close_matches(prefix[:100], list(beginnings), n=NEAREST)
    return [beginnings[beginning] for beginning in alike] or list(ids[:NEAREST])
