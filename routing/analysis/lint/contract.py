"""Rows that resolve refuses, as its own validation finds them."""

from __future__ import annotations

from collections.abc import Iterator

from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import Found, finding
from routing.storage import faults
from routing.storage.columns import Columns
from routing.terms import LOCAL_ADDRESS


def refused_rows(estate: Estate) -> Iterator[Found]:
    """SBR010: a required value is missing, a key stands twice, versions overlap, an own address is none.

    The addresses of routes are findings of their own (SBR005, SBR006), so that here every route that has one
    has a good one.
    """
    routes = estate.tables["routes"].values
    good: dict[str, list[str | None]] = {
        "address": [address and LOCAL_ADDRESS for address in routes["address"]],
        "mirror_address": [None] * len(routes["address"]),
    }
    for table, row_key, fault in faults.findings({**estate.tables, "routes": Columns({**routes, **good})}):
        # The first part of every key is the instance.
        instance = row_key.partition(", ")[0]
        yield finding("SBR010", (instance, None), row_key, "table %s: %s", table, fault)
