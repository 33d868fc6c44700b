"""What a question needs of the tables, as columns of plain Python: the only room of `explain` that reads any.

Which rows are needed is said here; how they are found in what grows with the traffic, in `by_arrow`, `by_spark`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from routing.features.explain import arrow_source
from routing.features.explain.known_tables import Chunks, Row
from routing.features.explain.message_remedy import RemedyFacts, find_spellings
from routing.features.explain.questions import ConversationEnd
from routing.plan.estate import instances_of
from routing.rules import text
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.schemas import INPUTS, KEPT, TABLES
from routing.tables.input_columns import columns_of, count_by, read_each
from routing.tables.row_faults import findings, refuse_faults
from routing.tables.table_columns import Only, Table, TableColumns, check_given, is_frame, joined, shape_of
from routing.terms import BROKER_CONFIGURATION_SERVICE, EVENT_SOURCES

# Other messages are read in parts that grow, for the first few mostly settle whether a request is pending.
_LARGEST_PART, _GROWTH = 100_000, 10


class RowSelection(Protocol):
    """The selection of rows, for one kind of table."""

    def messages_of(self, messages: Any, only: Only) -> TableColumns:
        """Return the few messages that have one of some values in each of some columns."""

    def observed_of(self, observed: Any, only: Only) -> TableColumns:
        """Return the few rows of observed_routing that have one of some values in each of some columns."""

    def of_conversation(self, messages: Any, conversation: str) -> Table:
        """Return all messages of a conversation, given by its folded id."""

    def of_handle(self, observed: Any, handle: str) -> Table:
        """Return all rows of observed_routing that have a folded conversation handle."""

    def oldest_of(self, messages: Any, end: ConversationEnd) -> TableColumns:
        """Return the oldest message of an end, out of those that ``of_conversation`` found."""

    def dialogs_of(self, dialogs: Any, conversations: Collection[str], only: Only) -> TableColumns:
        """Read the dialogs of conversations (folded ids) that have one of the values of ``only``."""

    def in_parts(
        self, messages: Any, only: Only, as_of: int | None, sizes: Iterator[int]
    ) -> Iterator[TableColumns]:
        """Yield messages in parts of some sizes, in the order of (t, message_id)."""


def way_of(table: Table) -> RowSelection:
    """Return the module that finds a table's rows."""
    if not is_frame(table):
        return arrow_source
    from routing.features.explain import spark_source

    return spark_source


@dataclass(frozen=True)
class ExplainSource:
    """Input tables, and what import keeps if given; ``first_part``: so many other messages are read at first."""

    tables: Mapping[str, Table]
    first_part: int = 1_000

    @classmethod
    def of(cls, tables: Mapping[str, Table]) -> ExplainSource:
        """Return the tables of a question.

        Raises InputError where one is missing, or has columns of other types.
        """
        check_given(tables)
        return cls({key: _in_shape(tables[key], key) for key in TABLES if key in tables})

    def find_stored(self, message_id: str, instance: str | None) -> list[Row]:
        """Return the messages of an id, on one instance or on some at most."""
        only = {"message_id": [message_id]}
        if instance is not None:
            only["instance_name"] = [instance]
        messages = self.tables["messages"]
        return list(way_of(messages).messages_of(messages, only).dicts())

    @property
    def knows_handles(self) -> bool:
        """Whether there is a table of what import saw, by the handles of conversations."""
        return "observed_routing" in self.tables

    def find_ends(self, handle: str) -> set[ConversationEnd]:
        """Return the ends of conversations that import saw under a folded handle."""
        if not self.knows_handles:
            return set()
        observed = self.tables["observed_routing"]
        return set(count_ends(way_of(observed).of_handle(observed, handle)))

    def read_conversation(self, conversation: str) -> Table:
        """Return all messages of a conversation, given by its folded id."""
        messages = self.tables["messages"]
        return way_of(messages).of_conversation(messages, conversation)

    def instance_names(self) -> list[str]:
        """Return all instances that are listed."""
        return list(columns_of(self.tables["instances"], "instances").values["instance_name"])

    def read_near(self, row: Row) -> dict[str, TableColumns]:
        """Return the configuration and the requests of a message's instance, and the dialogs of its conversation.

        Raises InputError where one of these rows is at fault.
        """
        here, mine = {"instance_name": [row["instance_name"]]}, text.fold(row["conversation_id"] or "")

        def read(key: str) -> TableColumns:
            table = self.tables[key]
            return (
                columns_of(table, key, here) if key != "dialogs" else way_of(table).dialogs_of(table, [mine], here)
            )

        near = read_each(self._tables_of(key for key in INPUTS if key != "messages"), read)
        refuse_faults(near)
        return near

    def read_other_instances(self, here: str) -> dict[str, SqlInstance]:
        """Return the instances except one, as far as requests for routes that arrive there meet them.

        Of an instance of which a row is at fault nothing but its own row is taken; such rows stop no explanation.
        """
        only: dict[str, Only] = {
            "services": {"name": [BROKER_CONFIGURATION_SERVICE]},
            "routes": {"database_name": [ARRIVALS]},
        }
        tables = self._tables_of(("instances", "databases", "services", "routes"))
        columns_by_key = read_each(tables, lambda key: columns_of(tables[key], key, only.get(key)))
        return instances_of(_leave_out_faults(columns_by_key, here))

    def read_remedy_facts(self, near: Mapping[str, TableColumns], row: Row) -> RemedyFacts:
        """Read the facts for a message's remedy; ``near`` is what `read_near` has read for it.

        Of an instance of which a row is at fault nothing but its own row is taken.
        """
        here, service = row["instance_name"], row["to_service_name"]
        tables = self._tables_of(("instances", "databases", "services"))
        others = _leave_out_faults(read_each(tables, lambda key: columns_of(tables[key], key)), here)
        searched = {text.empty_as_null(row["database_name"]) or ARRIVALS, ARRIVALS}
        fact_columns = {
            **{key: joined(near[key], columns) for key, columns in others.items()},
            "routes": near["routes"].naming("database_name", searched),
        }
        spellings = find_spellings(fact_columns["routes"].values["remote_service_name"], service)
        return RemedyFacts.of_columns(fact_columns, service, self._services_in_use(spellings))

    def _services_in_use(self, names: Collection[str]) -> set[str]:
        """Return the services, of some, to which messages are sent."""
        if not names:
            return set()
        counts = count_by(self.tables["messages"], ["to_service_name"], {"to_service_name": list(names)})
        return {name for (name,) in counts}

    def read_kept(self, row: Row, *, is_described: bool) -> dict[str, TableColumns]:
        """Read the rows that import kept of a message and its instance; a described one was not observed."""
        here, mine = {"instance_name": [row["instance_name"]]}, {"message_id": [row["message_id"]]}
        of_events = {"source": list(EVENT_SOURCES), "conversation_id": [text.fold(row["conversation_id"] or "")]}

        def read(key: str) -> TableColumns:
            table = self.tables[key]
            if key == "imports":
                return columns_of(table, key, here)
            observed_parts = (way_of(table).observed_of(table, {**here, **only}) for only in (mine, of_events))
            return joined(*observed_parts)

        return read_each(self._tables_of(key for key in KEPT if key == "imports" or not is_described), read)

    def _tables_of(self, keys: Iterable[str]) -> dict[str, Table]:
        """Return the tables of some keys that are at hand."""
        return {key: self.tables[key] for key in keys if key in self.tables}

    def chunks(self, as_of: int | None) -> Chunks:
        """Return the messages of an instance for a service, with their dialogs.

        ``as_of`` is that of `known_tables.message_of`.
        """

        def read_parts(instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
            here, messages = {"instance_name": [instance]}, self.tables["messages"]
            only = {**here, "to_service_name": [service]}
            for part in way_of(messages).in_parts(messages, only, as_of, self._sizes()):
                chunk = {"messages": part}
                if "dialogs" in self.tables:
                    dialogs, ids = self.tables["dialogs"], part.values["conversation_id"]
                    wanted = {
                        text.fold(conversation_id) for conversation_id in ids if text.is_guid(conversation_id)
                    }
                    chunk["dialogs"] = way_of(dialogs).dialogs_of(dialogs, wanted, here)
                yield chunk

        return read_parts

    def _sizes(self) -> Iterator[int]:
        size = self.first_part
        while True:
            yield size
            size = min(size * _GROWTH, _LARGEST_PART)


def _leave_out_faults(columns_by_key: Mapping[str, TableColumns], here: str) -> dict[str, TableColumns]:
    """Return the rows of all instances but one; of an instance of which a row is at fault its own row alone."""
    names = {name for name in columns_by_key["instances"].values["instance_name"] if name not in (None, here)}
    sound = names - {
        name for fault in findings(columns_by_key) for name in _beginnings(fault.row_key) if name in names
    }
    return {
        key: columns.naming("instance_name", names if key == "instances" else sound)
        for key, columns in columns_by_key.items()
    }


def _beginnings(row_key: str) -> Iterator[str]:
    """Yield candidates for the first part of a row's key, an instance's name: names may hold commas."""
    parts = row_key.split(", ")
    yield from (", ".join(parts[:number]) for number in range(1, len(parts) + 1))


def count_ends(rows: Table) -> Counter[ConversationEnd]:
    """Count the rows of each end of a conversation, in messages or in what import saw."""
    counts: Counter[ConversationEnd] = Counter()
    for (conversation, instance, database, is_initiator), count in count_by(rows, ConversationEnd._fields).items():
        place = (text.empty_as_null(instance), text.empty_as_null(database))
        counts[ConversationEnd(text.fold(conversation), *place, is_initiator)] += count
    return counts


def find_oldest(messages: Table, end: ConversationEnd) -> Row:
    """Return the oldest of the messages of an end that `ExplainSource.read_conversation` found; it has some."""
    [row] = way_of(messages).oldest_of(messages, end).dicts()
    return row


def _in_shape(table: Any, key: str) -> Table:
    """Return a frame in its declared columns; of Arrow's these are taken as it is read. Raises InputError."""
    if is_frame(table):
        from routing.tables.declared_columns import conform

        return conform(table, key)
    shape_of(table, key)
    return table
