"""The dialogs of messages in plain Python: one small object for each that can change a decision."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from routing.rules import text
from routing.rules.resolving import DIALOG_COLUMNS, MATTERS, NO_DIALOG, DialogFacts, RoutedMessage
from routing.schemas import KEYS
from routing.tables.row_faults import refuse_faults
from routing.tables.rows_to_check import read_suspects
from routing.tables.table_columns import Table, TableColumns, shape_of, stream_arrow

_END = KEYS["dialogs"]

DialogEnds = tuple[Mapping[str, DialogFacts], Mapping[str, DialogFacts]]
"""The dialogs of a database by folded conversation id: the ends of targets, then those of initiators."""
_NO_ENDS: DialogEnds = ({}, {})


@dataclass(frozen=True)
class KnownDialogs:
    """Dialogs by the instance and database of their end."""

    by_database: Mapping[tuple[str, str], DialogEnds]

    @classmethod
    def of_columns(cls, batches: Iterable[TableColumns]) -> KnownDialogs:
        """Return the dialogs of columns; a row without a conversation or a role is nobody's."""
        by_database: dict[tuple[str, str], tuple[dict[str, DialogFacts], dict[str, DialogFacts]]] = {}
        for batch in batches:
            ends, rows = batch.rows(*_END), batch.rows(*DIALOG_COLUMNS)
            for (instance, database, conversation, is_initiator), row in zip(ends, rows, strict=True):
                if conversation is None or is_initiator is None:
                    continue
                there = by_database.setdefault((instance, database), ({}, {}))
                there[is_initiator][text.fold(conversation)] = DialogFacts.of_row(*row)
        return cls(by_database)

    @classmethod
    def of_table(cls, dialogs: Table | None) -> KnownDialogs:
        """Return the dialogs of an Arrow table that can change a decision.

        Raises InputError where a row is at fault, as a run does.
        """
        if dialogs is None:
            return cls({})
        refuse_faults({"dialogs": read_suspects(dialogs, "dialogs")})
        return cls.of_columns(_read_mattering(dialogs))

    def ends_of(self, instance: str, database: str | None) -> DialogEnds:
        """Return the dialogs of a database; what has arrived over the network has none."""
        return _NO_ENDS if database is None else self.by_database.get((instance, database), _NO_ENDS)

    def of(self, message: RoutedMessage) -> DialogFacts:
        """Return the dialog of a message; one that is not listed says nothing."""
        ends = self.ends_of(message.instance, message.database)[message.is_initiator]
        return ends.get(message.conversation_id or "", NO_DIALOG)


def _read_mattering(dialogs: Table) -> Iterable[TableColumns]:
    """Read the dialogs that may change a decision, in the few columns that say so."""
    import pyarrow.compute as pc

    shape = shape_of(dialogs, "dialogs")
    conditions: list[Any] = [pc.field(shape[name]).is_valid() for name in MATTERS if name in shape]
    if not conditions:
        return ()
    return stream_arrow(dialogs, "dialogs", reduce(operator.or_, conditions), (*_END, *DIALOG_COLUMNS))
