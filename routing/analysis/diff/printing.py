"""How a comparison looks: what gets worse first; tables for people, one object for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing import show
from routing.analysis.diff.comparing import step_of
from routing.analysis.diff.diffing import Diff
from routing.analysis.diff.finding_changes import COMES, GOES
from routing.analysis.diff.route_changes import said_by, time_text
from routing.render.wording import count, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN = 20
_COUNTS = ("messages", "before", "after", "such as")
_KEYS = ("messages", "instance", "database", "service", "before", "after")
_ROUTES = ("change", "instance", "database", "name", "before", "after")
_FINDINGS = ("code", "severity", "instance", "database", "object", "message")
Row = Mapping[str, Any]


def as_json(done: Diff) -> str:
    """Return one line of JSON; docs/reference/json.md documents its keys."""
    document = {
        **{name: {"what": side.label, "at": side.moment} for name, side in _sides(done)},
        "compared": done.compared,
        "changed": done.changed,
        "worse": done.worse,
        **{name: [dict(row) for row in vars(done)[name]] for name in ("counts", "keys", "routes", "findings")},
        "script": None if done.script is None else done.script.as_json(),
    }
    return json.dumps(document, default=_plain)


def as_text(done: Diff) -> Iterator[RenderableType]:
    """What is printed, part by part."""
    yield _head(done)
    for step, title in ((1, "worse"), (0, "neither worse nor better, but change"), (-1, "better")):
        rows = [row for row in done.counts if step_of(row) == step]
        yield from _listed(f"Messages that get {title}", _COUNTS, rows, _count)
    yield from _listed("Where they are, and what becomes of them", _KEYS, list(done.keys), _key)
    yield from _listed("Routes in force that differ", _ROUTES, list(done.routes), _route)
    for change, title in ((COMES, "Findings of lint that come"), (GOES, "Findings of lint that go")):
        yield from _listed(title, _FINDINGS, [row for row in done.findings if row["change"] == change], _finding)
    yield ""
    if done.counts or done.routes or done.findings:
        yield _total(done)
    else:
        yield "no route in force differs, and no finding of lint comes or goes"


def _sides(done: Diff) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return ("before", done.before), ("after", done.after)


def _head(done: Diff) -> str:
    """What is compared, as of when, and how much of it changes."""
    width = max(len(side.label) for _, side in _sides(done))
    lines = [
        f"{name:7}{printable(side.label):{width}}  as of {time_text(side.moment)}" for name, side in _sides(done)
    ]
    refused = 0 if done.script is None else len(done.script.rejected)
    if refused:
        lines.append(
            f"       {count(refused, 'statement')} would be refused, and change{'s' * (refused == 1)} nothing"
        )
    return "\n".join([*lines, "", _messages(done)])


def _messages(done: Diff) -> str:
    compared = count(done.compared, "message")
    if not done.changed:
        return f"{compared} compared: none changes"
    worse = "none gets worse" if not done.worse else f"{done.worse:,} of them get{'s' * (done.worse == 1)} worse"
    return f"{compared} compared: {done.changed:,} change{'s' * (done.changed == 1)}, {worse}"


def _total(done: Diff) -> str:
    """How much else differs, told once more where the reader ends."""
    comes = sum(row["change"] == COMES for row in done.findings)
    return (
        f"{_messages(done)}; {count(len(done.routes), 'route')} in force"
        f" differ{'s' * (len(done.routes) == 1)};"
        f" {count(comes, 'finding')} of lint come{'s' * (comes == 1)}, {len(done.findings) - comes:,} go"
    )


def _listed(
    title: str, columns: Sequence[str], rows: Sequence[Any], line: Callable[[Any], Sequence[Any]] = tuple
) -> Iterator[RenderableType]:
    """A table of the first rows, and how many more there are; nothing where there is no row."""
    if not rows:
        return
    yield ""
    yield show.table(title, columns, [line(row) for row in rows[:SHOWN]], ("messages",))
    if len(rows) > SHOWN:
        yield f"and {len(rows) - SHOWN:,} more; --format json prints all of them"


def _count(row: Row) -> tuple[Any, ...]:
    examples = (f"{_text(one['instance_name'])} {_text(one['message_id'])}" for one in row["examples"])
    before, after = (f"{row[f'outcome_{side}']} {row[f'reason_{side}']}" for side in ("before", "after"))
    return row["messages"], before, after, ", ".join(examples)


def _key(row: Row) -> tuple[Any, ...]:
    place = (row[name] for name in ("instance_name", "database_name", "to_service_name"))
    return (row["messages"], *place, _decision(row, "before"), _decision(row, "after"))


def _decision(row: Row, side: str) -> str:
    """A decision in a few words."""
    outcome, reason, route, address, mirror, database = (
        row[f"{name}_{side}"]
        for name in ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
    )
    where = f"to {address}" if database is None else f"into {database}"
    parts = [f"{outcome} {reason}"]
    parts += [] if route is None else [f"by {route}"]
    parts += [] if database is None and address is None else [where]
    parts += [] if mirror is None else [f"mirror {mirror}"]
    return " ".join(parts)


def _route(row: Row) -> tuple[Any, ...]:
    named = (row[name] for name in ("change", "instance_name", "database_name", "name"))
    return (*named, said_by(row, "before"), said_by(row, "after"))


def _finding(row: Row) -> tuple[Any, ...]:
    return tuple(row[n] for n in ("code", "severity", "instance_name", "database_name", "object", "message"))


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
