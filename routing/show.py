"""How results look on a terminal: rich tables from plain rows; the command line prints them.

rich is imported where a table is made, which plain text and JSON do without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from routing.render.wording import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_STYLES = {"DELIVERED": "green", "SENT": "green", "FORWARDED": "green", "DELAYED": "yellow", "DROPPED": "red"}


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], right: Sequence[str] = ()) -> Table:
    """A titled table; columns named in ``right`` are aligned to the right."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        # Text, not markup: names come from data.
        made.add_row(*(Text(_shown(value), style=_STYLES.get(str(value), "")) for value in row))
    return made


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return printable(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))


def run(row: Mapping[str, Any]) -> RenderableType:
    """A row of ``runs``: what was read, what became of it, how long the stages took."""
    from rich.console import Group
    from rich.text import Text

    total = row["rows_resolved"] or 1

    def shares(counts: Mapping[str, int]) -> list[tuple[Any, ...]]:
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [(name, count, f"{100 * count / total:.1f} %") for name, count in ordered]

    seconds = (row["finished_at"] - row["started_at"]).total_seconds()
    head = (
        f"run {row['run_id']}: {row['rows_read']:,} messages read, {row['rows_resolved']:,} resolved,"
        f" {row['rows_rejected']:,} rejected in {seconds:.1f} s"
    )
    stages = ", ".join(f"{name} {value:.1f}" for name, value in row["stage_seconds"].items())
    return Group(
        Text(head),
        Text(""),
        table("Outcomes", ("outcome", "messages", "share"), shares(row["outcome_counts"]), ("messages", "share")),
        Text(""),
        table("Reasons", ("reason", "messages", "share"), shares(row["reason_counts"]), ("messages", "share")),
        Text(""),
        Text(f"seconds: {stages}"),
    )
