"""Make rows of plain Python that take little memory: they share the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import make_dataclass

from routing.terms import TableRow


def row_maker(names: Iterable[str]) -> Callable[[Iterable[object]], TableRow]:
    """Return a function that converts the values of a row into a dict with these keys, in this order.

    The dict is the attribute dict of an object, so it shares its keys with others and has half the size. It is
    still an ordinary dict.
    """
    row_type = make_dataclass("Row", names, repr=False, eq=False)

    def make(values: Iterable[object]) -> TableRow:
        row: TableRow = row_type(*values).__dict__
        return row

    return make
