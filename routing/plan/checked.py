"""Inputs without a fault: what a run decides by."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from routing.plan.estate import NamedThings, furnish_for, list_bare
from routing.rules import text
from routing.rules.estate import SqlInstance
from routing.rules.resolving import MATTERS
from routing.schemas import KEYS
from routing.tables.row_faults import refuse_faults
from routing.tables.rows_to_check import read_suspects
from routing.tables.table_columns import Table, TableColumns, as_dataset, shape_of


@dataclass(frozen=True)
class CheckedInputs:
    """Inputs without a fault, and what was found out meanwhile.

    dialogs: None where there are none that matter; dialog_rows: how many do, ending: how many of them have a
    lifetime.
    """

    settings: Mapping[str, TableColumns]
    dialogs: Table | None
    dialog_rows: int = 0
    ending: int = 0

    @property
    def has_transport(self) -> bool:
        """Whether a route may read its address from the service name."""
        return any(text.is_transport(address) for address in set(self.settings["routes"].values["address"]))

    @cached_property
    def instances(self) -> Mapping[str, SqlInstance]:
        """Of each instance what its own rows say; no services, no routes."""
        return list_bare(self.settings)

    @cached_property
    def named(self) -> NamedThings:
        """What the configuration names."""
        return NamedThings.of(self.settings, self.instances.values())

    def count_unended_requests(self) -> int:
        """Count requests on record without ended_at; a doubled one counts once."""
        requests = self.settings.get("route_requests")
        if requests is None:
            return 0
        rows = requests.rows("ended_at", *KEYS["route_requests"])
        return len({tuple(key) for ended_at, *key in rows if ended_at is None})

    def instances_for(self, services: Iterable[str]) -> dict[str, SqlInstance]:
        """Return the instances with the services and routes that messages to these services need.

        Only rows that name one of them, any, or the service that is asked for routes become objects.
        """
        return furnish_for(self.instances, self.settings, set(services))

    def with_settings(self, settings: Mapping[str, TableColumns]) -> CheckedInputs:
        """Replace the configuration by another one without a fault; the dialogs stay."""
        return replace(self, settings=settings)


def check_without_spark(settings: Mapping[str, TableColumns], dialogs: Table | None) -> CheckedInputs:
    """Stop where a row of the configuration, or of dialogs of Arrow's, is at fault. Raises InputError."""
    suspects = {} if dialogs is None else {"dialogs": read_suspects(dialogs, "dialogs")}
    refuse_faults({**settings, **suspects})
    mattering, ending = (0, 0) if dialogs is None else _count_mattering(dialogs)
    return CheckedInputs(settings, dialogs if mattering else None, mattering, ending)


def _count_mattering(dialogs: Table) -> tuple[int, int]:
    """Count the dialogs of an Arrow table that may change a decision, and those that end."""
    import pyarrow.compute as pc

    shape, rows = shape_of(dialogs, "dialogs"), as_dataset(dialogs)
    conditions = {name: pc.field(shape[name]).is_valid() for name in MATTERS if name in shape}
    mattering = rows.count_rows(filter=reduce(operator.or_, conditions.values())) if conditions else 0
    return mattering, rows.count_rows(filter=conditions["lifetime"]) if "lifetime" in conditions else 0
