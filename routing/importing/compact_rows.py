"""Make rows of plain Python that take little memory: they share the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from routing.terms import TableRow


def row_maker(names: Iterable[str]) -> Callable[[Iterable[object]], TableRow]:
    """Return the function from the values of a row to a dict with these keys, in this order.

    A dict that Python makes for the attributes of an object shares its keys with those of the same class, and has
    half the size of another. It is an ordinary dict all the same.
    """
    names = tuple(names)

    class Row:
        pass

    first = Row()
    for name in names:
        setattr(first, name, None)

    def make(values: Iterable[object]) -> TableRow:
        row = Row().__dict__
        row.update(zip(names, values, strict=True))
        return row

    return make
