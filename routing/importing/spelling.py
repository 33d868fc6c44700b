"""Spell names of instances and databases as the tables do, else as the import that is read spells them first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from routing.errors import quote
from routing.importing.tsql.servers import find_instance, instance_name, is_local, is_same_server, split_server
from routing.importing.tsql.vocabulary import is_stand_in
from routing.terms import TableRow

_LIKE = 0.8
# Few names are compared, so that it takes no time. A mistyped name is one of few new names.
_COMPARED, _KNOWN, _LENGTH = 20, 2_000, 128


class NameSpelling:
    """Finds names without case; if databases differ only in case, the one with the exact spelling."""

    def __init__(self, instances: Iterable[str] = (), databases: Iterable[tuple[str, str]] = ()) -> None:
        of_databases = list(databases)
        known_names = [*(instance for instance, _ in of_databases), *instances]
        self._instances = {instance_name(name).casefold(): name for name in reversed(known_names)}
        self._instances.update({name.casefold(): name for name in reversed(known_names)})
        self._databases: dict[tuple[str, str], list[str]] = {}
        for instance, database in of_databases:
            self.database(instance, database, is_new=True)

    @classmethod
    def of_tables(cls, instances: Iterable[TableRow], databases: Iterable[TableRow]) -> NameSpelling:
        """Return the names as the rows of the tables ``instances`` and ``databases`` spell them."""
        return cls(
            (row["instance_name"] for row in instances), ((row["instance_name"], row["name"]) for row in databases)
        )

    def instance(self, name: str) -> str:
        """Return the known spelling of an instance's name. A new name is spelled as by `instance_name`."""
        if name.casefold() not in self._instances:
            new_name = instance_name(name)
            self._instances[name.casefold()] = self._instances.setdefault(new_name.casefold(), new_name)
        return self._instances[name.casefold()]

    def database(self, instance: str, name: str, *, is_new: bool = False) -> str:
        """Return the database's name. ``is_new`` where it may stand beside one that differs in case alone."""
        spellings = self._databases.setdefault((self.instance(instance).casefold(), name.casefold()), [])
        if name in spellings:
            return name
        if is_new or not spellings:
            spellings.append(name)
            return name
        return spellings[0]


def say_near_names(names: Iterable[str], rows: Iterable[TableRow]) -> list[str]:
    """Return a note on each new instance with almost the name of an instance in the tables' ``rows``."""
    known_names = {row["instance_name"].casefold()[:_LENGTH]: row["instance_name"] for row in rows}
    new = [name for name in names if name.casefold()[:_LENGTH] not in known_names]
    nearest = {name: find_near_name(name, list(known_names.values())) for name in new[:_COMPARED]}
    return [
        f"the instance {quote(name)} is new, and the tables already have {quote(near)}: are they different?"
        for name, near in nearest.items()
        if near is not None
    ]


def say_servers(servers: Sequence[str], own_instance: str | None, rows: Iterable[TableRow]) -> list[str]:
    """Return a note on each unknown server of ``:connect`` with a sample's name, or almost that of an instance.

    Known are the script's ``own_instance`` and the instances in the tables' ``rows``.
    """
    rows = list(rows)
    names = [
        *([] if own_instance is None else [own_instance]),
        *dict.fromkeys(row["instance_name"] for row in rows),
    ]
    addresses = {row["instance_name"]: row["addresses"] for row in rows if row.get("addresses")}
    unknown = [server for server in servers if find_instance(server, names, addresses) is None]
    notes = []
    for server in unknown[:_COMPARED]:
        named = f"the server {quote(server)} of :connect"
        if is_stand_in(server):
            notes.append(f"{named} looks like a placeholder that was not filled in")
            continue
        if own_instance is not None and is_same_server(server, own_instance):
            notes.append(
                f"{named} is assumed to be {quote(own_instance)}: it is on the machine that runs the script"
            )
            continue
        is_own_machine = is_local(server) and own_instance is not None
        near = own_instance if is_own_machine else find_near_name(server, names)
        if near is None:
            continue
        if split_server(server).port:
            host = split_server(server).host.casefold()
            at_host = [name for name in names if split_server(name).host.casefold() == host]
            near_names = dict.fromkeys([near, *at_host[:_COMPARED]])
            shown = ", ".join(map(quote, near_names))
            notes.append(
                f"{named} is assumed to be a separate instance, since no export has its port; similar: {shown}"
            )
        elif is_own_machine:
            notes.append(f"{named} may be {quote(near)}: it is on the machine that runs the script")
        else:
            notes.append(f"{named} is unknown, did you mean {quote(near)}?")
    return notes


def find_near_name(name: str, known_names: Sequence[str]) -> str | None:
    """Return the known instance of nearly this name: short or full, without its instance part, or mistyped."""
    spelt = {known_name.casefold()[:_LENGTH]: known_name for known_name in known_names[:_KNOWN]}
    folded = name.casefold()[:_LENGTH]
    host, part = _host_and_part(folded)
    for known_folded in sorted(spelt):
        its_host, its_part = _host_and_part(known_folded)
        if host == its_host and (part == its_part or "" in (part, its_part)):
            return spelt[known_folded]
    nearest = difflib.get_close_matches(folded, sorted(spelt), n=1, cutoff=_LIKE)
    return spelt[nearest[0]] if nearest else None


def _host_and_part(instance: str) -> tuple[str, str]:
    """Return the host without its domain, but a complete IP address, and the text after the backslash."""
    host, part, _ = split_server(instance)
    is_address = host.replace(".", "").isdecimal()
    return host if is_address else host.partition(".")[0], part
