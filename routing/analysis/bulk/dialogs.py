"""The dialogs that can change a decision, by the million: one small object for each."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from routing.rules import text
from routing.rules.resolving import DIALOG_COLUMNS, MATTERS, Dialog
from routing.schemas import KEYS
from routing.storage.columns import Columns, Table, shape_of, stream_arrow
from routing.storage.faults import refuse_faults
from routing.storage.suspects import read_suspects

_END = KEYS["dialogs"]

Ends = tuple[Mapping[str, Dialog], Mapping[str, Dialog]]
"""The dialogs of a database by folded conversation id: the ends of targets, then those of initiators."""
_NOBODY: Ends = ({}, {})


@dataclass(frozen=True)
class Dialogs:
    """Dialogs by the instance and database of their end; those that cannot change a decision are left out."""

    by_database: Mapping[tuple[str, str], Ends]

    @classmethod
    def of_table(cls, dialogs: Table | None) -> Dialogs:
        """The dialogs of an Arrow table. Raises InputError where a row is at fault, as a run does."""
        if dialogs is None:
            return cls({})
        refuse_faults({"dialogs": read_suspects(dialogs, "dialogs")})
        found: dict[tuple[str, str], tuple[dict[str, Dialog], dict[str, Dialog]]] = {}
        for batch in _read_mattering(dialogs):
            ends, said = batch.rows(*_END), batch.rows(*DIALOG_COLUMNS)
            for (instance, database, conversation, is_initiator), row in zip(ends, said, strict=True):
                there = found.setdefault((instance, database), ({}, {}))
                there[is_initiator][text.fold(conversation)] = Dialog.of_row(*row)
        return cls(found)

    def of(self, instance: str, database: str | None) -> Ends:
        """The dialogs of a database; what has arrived over the network has none."""
        return _NOBODY if database is None else self.by_database.get((instance, database), _NOBODY)


def _read_mattering(dialogs: Table) -> Iterator[Columns]:
    """The dialogs that may change a decision, in the few columns that say so."""
    import pyarrow.compute as pc

    shape = shape_of(dialogs, "dialogs")
    given: list[Any] = [pc.field(shape[name]).is_valid() for name in MATTERS if name in shape]
    if not given:
        return iter(())
    return stream_arrow(dialogs, "dialogs", reduce(operator.or_, given), (*_END, *DIALOG_COLUMNS))
