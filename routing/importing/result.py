"""What an import tells: what it read, wrote, left out and rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from routing import show
from routing.importing.tsql.statements import Problem

KINDS = ("added", "changed", "closed", "removed", "unchanged")


@dataclass
class Imported:
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
    problems: list[Problem] = field(default_factory=list)

    def tell(self, table: str, counts: Mapping[str, int]) -> None:
        """Note what was written into a table."""
        self.written[table] = Counter(counts)

    def as_json(self) -> dict[str, object]:
        """The same as plain values."""
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


def show_result(imported: Imported) -> RenderableType:
    """The two tables of an import; the sentences are printed apart."""
    read = [(name, *numbers) for name, numbers in imported.rows_read.items()]
    written = [
        (table, *(counts[kind] for kind in KINDS)) for table, counts in imported.written.items() if counts.total()
    ]
    what, whose = ("rows", "view") if imported.counted == "rows" else ("statements", "script")
    numbers = (what, "of them rejected", "of them left out")
    done = "Rows to be written (this was a dry run)" if imported.is_dry_run else "Rows written"
    return Group(
        show.table(f"{what.capitalize()} read", (whose, *numbers), read, numbers),
        Text(""),
        show.table(done, ("table", *KINDS), written, KINDS),
    )
