"""Names of instances and databases in one spelling: the tables', else the first that an import has."""

from __future__ import annotations

from collections.abc import Iterable


class Spelling:
    """Finds names without case; of databases that differ in case alone, the one spelled exactly so."""

    def __init__(self, instances: Iterable[str] = (), databases: Iterable[tuple[str, str]] = ()) -> None:
        self._instances: dict[str, str] = {}
        self._databases: dict[tuple[str, str], list[str]] = {}
        for instance, database in databases:
            self.database(instance, database, is_new=True)
        for instance in instances:
            self.instance(instance)

    def instance(self, name: str) -> str:
        """The instance's name; a new one is kept as it is given."""
        return self._instances.setdefault(name.casefold(), name)

    def database(self, instance: str, name: str, *, is_new: bool = False) -> str:
        """The database's name. ``is_new`` where it may stand beside one that differs in case alone."""
        known = self._databases.setdefault((self.instance(instance).casefold(), name.casefold()), [])
        if name in known:
            return name
        if is_new or not known:
            known.append(name)
            return name
        return known[0]
