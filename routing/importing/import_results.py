"""The result of an import: what it read, wrote, left out and rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from routing.document import Cell, DataTable, Document, Paragraph, Tone, TonedText, Words, make_columns
from routing.importing.tsql.script_statements import StatementProblem
from routing.render.wording import count

KINDS = ("added", "changed", "closed", "removed", "unchanged")


@dataclass
class ImportResult:
    """A finished import, or one that was only tried (``is_dry_run``).

    ``rows_read`` are the ``counted`` things: the rows of each view or the statements of each script, with how
    many of them were rejected and left out; ``written`` the rows of each table by kind; ``rejected`` and
    ``notes`` are sentences, and ``problems`` what is behind those on scripts.
    """

    is_dry_run: bool
    counted: Literal["rows", "statements"] = "rows"
    rows_read: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    written: dict[str, Counter[str]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[StatementProblem] = field(default_factory=list)

    def count_written(self, table: str, counts: Mapping[str, int]) -> None:
        """Record the counts of rows written into a table."""
        self.written[table] = Counter(counts)

    def as_json(self) -> dict[str, object]:
        """Convert the result to plain values."""
        return {
            "dry_run": self.is_dry_run,
            "read": {
                name: {self.counted: count, "rejected": rejected, "left_out": left_out}
                for name, (count, rejected, left_out) in self.rows_read.items()
            },
            "written": {
                table: {kind: counts[kind] for kind in KINDS if counts[kind]}
                for table, counts in self.written.items()
            },
            "rejected": self.rejected,
            "notes": self.notes,
        }


def describe_import(imported: ImportResult) -> Document:
    """Describe the rows that an import wrote and read; the sentences on rejected rows are printed apart."""
    read = [(name, *numbers) for name, numbers in imported.rows_read.items()]
    written: list[tuple[Cell, ...]] = [
        (table, *(counts[kind] for kind in KINDS)) for table, counts in imported.written.items() if counts.total()
    ]
    what, whose = ("rows", "view") if imported.counted == "rows" else ("statements", "script")
    numbers = (what, "of them rejected", "of them left out")
    done = "Rows to be written (this was a dry run)" if imported.is_dry_run else "Rows written"
    return [
        Paragraph(_say_written(imported)),
        Paragraph(_say_read(imported)),
        DataTable(make_columns(("table", *KINDS), KINDS), written, done),
        DataTable(make_columns((whose, *numbers), numbers), read, f"{what.capitalize()} read"),
    ]


def _say_written(imported: ImportResult) -> str:
    totals: Counter[str] = sum(imported.written.values(), Counter())
    phrase = ", ".join(f"{totals[kind]:,} {kind}" for kind in KINDS[:-1] if totals[kind])
    why = ": the tables hold all of it already" if totals["unchanged"] else ""
    if imported.is_dry_run:
        return f"This was a dry run. Rows that an import would write: {phrase or 'none'}."
    return f"Rows written: {phrase}." if phrase else f"Nothing was written{why}."


def _say_read(imported: ImportResult) -> Words:
    read, rejected, left_out = (sum(row[at] for row in imported.rows_read.values()) for at in range(3))
    noun = "row" if imported.counted == "rows" else "statement"
    rejected_phrase = f"{rejected:,} rejected"
    left = f", {left_out:,} left out" if left_out else ""
    return (
        f"{count(read, noun)} read, ",
        TonedText(rejected_phrase, Tone.BAD) if rejected else rejected_phrase,
        f"{left}.",
    )
