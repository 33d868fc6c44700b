"""Names of instances and databases in one spelling: the tables', else the first that an import has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from routing.errors import quote
from routing.importing.covered import Row

_LIKE = 0.8
# As many names are compared as an answer in no time allows; a mistyped name stands among few.
_COMPARED, _KNOWN, _LENGTH = 20, 2_000, 128


class Spelling:
    """Finds names without case; of databases that differ in case alone, the one spelled exactly so."""

    def __init__(self, instances: Iterable[str] = (), databases: Iterable[tuple[str, str]] = ()) -> None:
        self._instances: dict[str, str] = {}
        self._databases: dict[tuple[str, str], list[str]] = {}
        for instance, database in databases:
            self.database(instance, database, is_new=True)
        for instance in instances:
            self.instance(instance)

    @classmethod
    def of_tables(cls, instances: Iterable[Row], databases: Iterable[Row]) -> Spelling:
        """As the rows of the tables ``instances`` and ``databases`` spell them."""
        return cls(
            (row["instance_name"] for row in instances),
            ((row["instance_name"], row["name"]) for row in databases),
        )

    def instance(self, name: str) -> str:
        """The instance's name; a new one is kept as it is given."""
        return self._instances.setdefault(name.casefold(), name)

    def database(self, instance: str, name: str, *, is_new: bool = False) -> str:
        """The database's name. ``is_new`` where it may stand beside one that differs in case alone."""
        spellings = self._databases.setdefault((self.instance(instance).casefold(), name.casefold()), [])
        if name in spellings:
            return name
        if is_new or not spellings:
            spellings.append(name)
            return name
        return spellings[0]


def say_near_names(names: Iterable[str], rows: Iterable[Row]) -> list[str]:
    """A note on each instance that ``rows`` of the tables do not know, but one whose name is nearly the same."""
    known = {row["instance_name"].casefold()[:_LENGTH]: row["instance_name"] for row in rows}
    new = [name for name in names if name.casefold()[:_LENGTH] not in known]
    nearest = {
        name: difflib.get_close_matches(name.casefold()[:_LENGTH], sorted(known)[:_KNOWN], n=1, cutoff=_LIKE)
        for name in new[:_COMPARED]
    }
    return [
        f"the instance {quote(name)} is new to the tables, which know {quote(known[near[0]])}: is it another?"
        for name, near in nearest.items()
        if near
    ]
