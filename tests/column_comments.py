"""Write the comments of catalog columns from the meanings in docs/reference/tables.md: `make docs-output`."""

from __future__ import annotations

import html
import re
from pathlib import Path

import yaml

from routing.result_schemas import MESSAGE_CHANGES
from routing.schemas import MESSAGE_PATHS, OUTPUTS, RECONCILIATION, ROUTE_CANDIDATES, TABLES

ROOT = Path(__file__).parents[1]
FILE = ROOT / "routing" / "tables" / "column_comments.yaml"
SCHEMAS = {
    **TABLES,
    **OUTPUTS,
    "route_candidates": ROUTE_CANDIDATES,
    "message_paths": MESSAGE_PATHS,
    "reconciliation": RECONCILIATION,
    "message_changes": MESSAGE_CHANGES,
}
# They have the columns of messages besides their own.
_WITH_MESSAGES = ("rejected_messages", "pending_messages")


def find_comments(page: str) -> dict[str, dict[str, str]]:
    """Return the comments of all columns by table. A row of several columns gives each one their names too."""
    meanings = {table: _meanings(page.partition(f"\n### {table}\n")[2].partition("\n#")[0]) for table in SCHEMAS}
    for table in _WITH_MESSAGES:
        meanings[table] = {**meanings["messages"], **meanings[table]}
    return {table: {name: meanings[table][name] for name in schema.names} for table, schema in SCHEMAS.items()}


def _meanings(section: str) -> dict[str, str]:
    meaning_by_column: dict[str, str] = {}
    for cell, meaning in re.findall(r"^\| ([a-z_!, ]+) \| [^|]+ \| (.+) \|$", section, re.MULTILINE):
        names, text = cell.replace("!", "").split(", "), _plain(meaning)
        is_shared = len(names) > 1 and not text.startswith("as ")
        meaning_by_column |= dict.fromkeys(names, f"{', '.join(names)}: {text}" if is_shared else text)
    return meaning_by_column


def _plain(meaning: str) -> str:
    """Return a cell without its links and marks."""
    return html.unescape(re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", meaning).replace("`", "").replace("*", ""))


def as_file(page: str) -> str:
    """Return the content of the package's file."""
    text = yaml.safe_dump(find_comments(page), sort_keys=False, allow_unicode=True, width=10_000)
    return f"# Written by `make docs-output` from docs/reference/tables.md.\n{text}"


def main() -> None:
    """Write the file."""
    page = (ROOT / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
    FILE.write_text(as_file(page), encoding="utf-8")


if __name__ == "__main__":
    main()
