"""Make rows of plain Python that take little memory: they share the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from routing.terms import TableRow


def row_maker(names: Iterable[str]) -> Callable[[Iterable[object]], TableRow]:
    """Return a function that converts the values of a row into a dict with these keys, in this order.

    The dict is the attribute dict of an object, so it shares its keys with others and has half the size. It is
    still an ordinary dict.
    """
    names = tuple(names)

    class Row:
        pass

    first = Row()
    for name in names:
        setattr(first, name, None)

    def make(values: Iterable[object]) -> TableRow:
        row = Row().__dict__
        row |= zip(names, values, strict=True)
        return row

    return make
