"""Count the messages that change between two sides by their ends, and find the worse ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from routing.errors import ContractError, name_nearest, quote
from routing.groups import group_pairs
from routing.result_schemas import CHANGE_COUNTS, ENDS, EXAMPLES, KEY_CHANGES
from routing.tables.arrow_rows import SchemaRows
from routing.tables.table_columns import Table
from routing.terms import REJECTED, PathEnd, ReadRow, TableRow

DIFF_JOB = "sbroute diff"
"""The job that writes the table of changed messages."""
SHOWN = 3
"""The number of examples of each change."""
_RANKS = {
    str(PathEnd.DELAYED): 1,
    str(PathEnd.NO_RETURN_PATH): 1,
    str(PathEnd.DROPPED): 2,
    str(PathEnd.LOOP): 2,
    REJECTED: 3,
}
_ENDINGS_OF = {
    "delayed": (PathEnd.DELAYED, PathEnd.NO_RETURN_PATH),
    "dropped": (PathEnd.DROPPED, PathEnd.LOOP),
    "loop": (PathEnd.LOOP,),
    "no-return-path": (PathEnd.NO_RETURN_PATH,),
    "rejected": (REJECTED,),
}
_NOT_KNOWN = "not-known"
FAILS = (*_ENDINGS_OF, _NOT_KNOWN)
"""The options for endings of messages that get worse, and for ends that are no longer known."""


@dataclass(frozen=True)
class MessageChanges:
    """The changes for the messages, by either engine.

    Args:
        compared: the number of messages.
        groups: rows of `result_schemas.KEY_CHANGES`, each group once, with null for an empty database_name.
        examples: rows of `result_schemas.EXAMPLES`, at least the lowest `SHOWN` for each change of `ENDS`, by
            instance_name, message_id and conversation_id, nulls first.
        messages: every changed message in the columns of `result_schemas.MESSAGE_CHANGES`, as stored, or None
            if not requested.
    """

    compared: int
    groups: Sequence[ReadRow]
    examples: Sequence[ReadRow]
    messages: Table | None


def rank(ending: str) -> int:
    """Return the rank of an ending: 0 for DELIVERED and NOT_KNOWN, then delayed, dropped and REJECTED."""
    return _RANKS.get(ending, 0)


def step_of(row: ReadRow) -> int:
    """Return 1 if messages of a row get worse, -1 if they get better, else 0."""
    before, after = rank(row["ending_before"]), rank(row["ending_after"])
    return (after > before) - (after < before)


def is_worse(row: ReadRow) -> bool:
    """Return True if messages of a row get worse."""
    return step_of(row) > 0


def loses_sight(row: ReadRow) -> bool:
    """Return True if a row's messages are delivered before, and their end is not known after."""
    return bool(row["ending_before"] == PathEnd.DELIVERED and row["ending_after"] == PathEnd.NOT_KNOWN)


def fails(counts: Iterable[ReadRow], words: Collection[str], unaddressed: Collection[str] = ()) -> bool:
    """Return True if any message gets worse and has one of the given ends (`FAILS`).

    Messages through ``unaddressed`` instances count as not known.
    """
    endings = {ending for word in words for ending in _ENDINGS_OF.get(word, ())}
    return (_NOT_KNOWN in words and bool(unaddressed)) or any(
        (is_worse(row) and row["ending_after"] in endings) or (_NOT_KNOWN in words and loses_sight(row))
        for row in counts
    )


def list_keys(changed: MessageChanges) -> SchemaRows:
    """Return the keys with changed messages, first the worse ones, then by most messages."""
    names = KEY_CHANGES.names
    ordered = sorted(changed.groups, key=lambda row: (_place(row), *_order(row, names)))
    return SchemaRows(KEY_CHANGES, tuple({name: row[name] for name in names} for row in ordered))


def count_changes(changed: MessageChanges) -> SchemaRows:
    """Return the counts of messages by old and new outcome and ending, in the same order, with examples."""
    counts, examples = group_pairs((_ends_of(row), row["messages"]) for row in changed.groups), changed.examples
    count_rows = [
        {
            **dict(zip(ENDS, ends, strict=True)),
            "messages": sum(messages),
            "examples": lowest(row for row in examples if _ends_of(row) == ends),
        }
        for ends, messages in counts.items()
    ]
    count_rows.sort(key=lambda row: (_place(row), *_order(row, ENDS)))
    return SchemaRows(CHANGE_COUNTS, tuple(count_rows))


def _ends_of(row: ReadRow) -> tuple[Any, ...]:
    return tuple(row[name] for name in ENDS)


def lowest(rows: Iterable[ReadRow]) -> list[TableRow]:
    """Return the first examples in their order, without the columns of their ends."""
    names = [name for name in EXAMPLES.names if name not in ENDS]
    ordered = sorted(rows, key=lambda row: _order(row, names))
    return [{name: row[name] for name in names} for row in ordered[:SHOWN]]


def _place(row: ReadRow) -> tuple[int, int, int]:
    """Return the sort key of a row: messages that get worse first, the worst of them, then the most."""
    return -step_of(row), -rank(row["ending_after"]), -row["messages"]


def _order(row: ReadRow, names: Sequence[str]) -> tuple[Any, ...]:
    """Return a total order by some columns, nulls first."""
    return tuple((row[name] is not None, row[name] or "") for name in names if name != "messages")


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse ``--fail-on``: words of `FAILS`, one or several with commas.

    Raises ContractError.
    """
    words = [word.strip() for text in texts for word in text.split(",")]
    for word in words:
        if word not in FAILS:
            near = name_nearest(word, {name: name for name in FAILS})
            hint = f"did you mean {near}?" if near else f"known are {', '.join(FAILS)}"
            raise ContractError(f"--fail-on: unknown word {quote(word)}", hint)
    return tuple(dict.fromkeys(words))
