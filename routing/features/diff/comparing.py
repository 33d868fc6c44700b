"""Decisions of two sides beside each other: which differ, how many, and which get worse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.schemas import CHANGE_COUNTS, EXAMPLES, KEY_CHANGES
from routing.tables.schema_rows import SchemaRows
from routing.tables.table_columns import Table
from routing.terms import REJECTED, Outcome

DECIDED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
"""What of a decision is compared; of a message that is set aside the outcome is REJECTED, the reason its codes."""
JOINED = ", "
"""What stands between the codes of a message that is set aside."""
ENDS = ("outcome_before", "reason_before", "outcome_after", "reason_after")
SHOWN = 3
"""As many examples are kept of each change."""
WORSE = ("delayed", "dropped", "rejected")
"""What a message that gets worse may become, as options name it."""
_RANKS = {str(Outcome.DELAYED): 1, str(Outcome.DROPPED): 2, REJECTED: 3}


@dataclass(frozen=True)
class MessageChanges:
    """The changes for the messages, by either engine.

    compared: how many messages there are. groups: rows of `schemas.KEY_CHANGES`, each group once, an empty
    database_name as null. examples: rows of `schemas.EXAMPLES`, of each change from an outcome and reason to
    others the lowest `SHOWN` at least, by instance_name, message_id and conversation_id, nulls first. messages:
    every changed message in the columns of `schemas.MESSAGE_CHANGES`, as it is in the table; None where they were
    not asked for.
    """

    compared: int
    groups: Sequence[Mapping[str, Any]]
    examples: Sequence[Mapping[str, Any]]
    messages: Table | None


def rank(outcome: str) -> int:
    """Return the rank of an outcome: on its way 0, then DELAYED, DROPPED, REJECTED."""
    return _RANKS.get(outcome, 0)


def step_of(row: Mapping[str, Any]) -> int:
    """Return 1 where messages of a row get worse, -1 where they get better, else 0."""
    before, after = rank(row["outcome_before"]), rank(row["outcome_after"])
    return (after > before) - (after < before)


def is_worse(row: Mapping[str, Any]) -> bool:
    """Return True if messages of a row get worse."""
    return step_of(row) > 0


def fails(counts: Iterable[Mapping[str, Any]], words: Collection[str]) -> bool:
    """Return True if any message gets worse, and becomes one of some words (`WORSE`)."""
    return any(is_worse(row) and row["outcome_after"].lower() in words for row in counts)


def list_keys(changed: MessageChanges) -> SchemaRows:
    """Return the keys of which messages change, those that get worse first, then the most messages."""
    names = KEY_CHANGES.names
    ordered = sorted(changed.groups, key=lambda row: (_place(row), *_order(row, names)))
    return SchemaRows(KEY_CHANGES, tuple({name: row[name] for name in names} for row in ordered))


def count_changes(changed: MessageChanges) -> SchemaRows:
    """Return how many messages change from an outcome and reason to others, in the same order, with examples."""
    counts: dict[tuple[str, ...], int] = {}
    for row in changed.groups:
        ends = tuple(row[name] for name in ENDS)
        counts[ends] = counts.get(ends, 0) + row["messages"]
    count_rows = [
        {
            **dict(zip(ENDS, ends, strict=True)),
            "messages": messages,
            "examples": lowest(row for row in changed.examples if tuple(row[name] for name in ENDS) == ends),
        }
        for ends, messages in counts.items()
    ]
    count_rows.sort(key=lambda row: (_place(row), *_order(row, ENDS)))
    return SchemaRows(CHANGE_COUNTS, tuple(count_rows))


def lowest(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the first examples of some, in their order and without what becomes of them."""
    names = [name for name in EXAMPLES.names if name not in ENDS]
    ordered = sorted(rows, key=lambda row: _order(row, names))
    return [{name: row[name] for name in names} for row in ordered[:SHOWN]]


def _place(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the sort key of a row: messages that get worse first, the worst of them, then the most."""
    return -step_of(row), -rank(row["outcome_after"]), -row["messages"]


def _order(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Return a total order by some columns, nulls first."""
    return tuple((row[name] is not None, row[name] or "") for name in names if name != "messages")
