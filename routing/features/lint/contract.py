"""Rows that resolve refuses, as its own validation finds them."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding
from routing.rules.text import UndecodedText
from routing.tables import row_faults
from routing.tables.table_columns import TableColumns
from routing.terms import LOCAL_ADDRESS


def refused_rows(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR010: a required value is missing, a key is doubled, versions overlap, an own address is none.

    The addresses of routes are findings of their own (SBR005, SBR006), so that here every route that has one
    has a good one, unless it is no UTF-8.
    """
    routes = estate.tables["routes"].values
    good: dict[str, list[str | None]] = {
        "address": [_undecoded(address) or (address and LOCAL_ADDRESS) for address in routes["address"]],
        "mirror_address": [_undecoded(address) for address in routes["mirror_address"]],
    }
    for table, row_key, fault in row_faults.findings(
        {**estate.tables, "routes": TableColumns({**routes, **good})}
    ):
        # The first part of every key is the instance.
        instance = row_key.partition(", ")[0]
        yield finding("SBR010", (instance, None), row_key, "table %s: %s", table, fault)


def _undecoded(address: str | None) -> str | None:
    """Return an address that is no UTF-8; None for any other."""
    return address if isinstance(address, UndecodedText) else None
