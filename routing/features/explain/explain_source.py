"""What a question needs of the tables, as columns of plain Python: the only room of `explain` that reads any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from routing.engines.traffic_tables import COUNT, Filter, TrafficTable, open_traffic
from routing.features.check.remedies import remedy_of
from routing.features.check.stuck_groups import MessageRemedy, NearMisses, StuckGroup
from routing.features.explain.judging import JudgedQuestion
from routing.features.explain.known_tables import Chunks
from routing.features.explain.questions import AGE, ConversationEnd
from routing.features.near_differences import likeness
from routing.plan.checked_inputs import instances_of
from routing.rules import text
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.resolving import Verdict
from routing.schemas import DIALOGS, INPUTS, KEPT, TABLES
from routing.tables.read_rows import read_each
from routing.tables.row_faults import findings, refuse_faults
from routing.tables.table_columns import Table, TableColumns, check_given, joined
from routing.terms import BROKER_CONFIGURATION_SERVICE, EVENT_SOURCES, MSDB, Outcome, ReadRow

# What to do about one message: the remedy that `check` knows for its reason, by the estate around it.


_STAYS = frozenset([Outcome.DELAYED, Outcome.DROPPED])


@dataclass(frozen=True)
class RemedyFacts:
    """The facts of the estate for the remedy of a message.

    ``instances`` are all that are known, with services of nearly the name of the message's, and with the routes
    that it meets. ``addresses`` are an instance's addresses as written. ``services_in_use`` are names like that of
    the message's service to which stored messages are sent.
    """

    instances: Mapping[str, SqlInstance] = field(default_factory=dict)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    services_in_use: Collection[str] = frozenset()

    @classmethod
    def of_columns(
        cls, tables: Mapping[str, TableColumns], service: str, services_in_use: Collection[str]
    ) -> RemedyFacts:
        """Return the facts from columns of instances, databases, services and routes, without faults."""
        alike = {name for name in set(tables["services"].values["name"]) if _is_like(name, service)}
        named = tables["instances"].rows("instance_name", "addresses")
        return cls(
            instances_of({**tables, "services": tables["services"].naming("name", alike)}),
            {name: [address for address in addresses or () if address] for name, addresses in named},
            frozenset(services_in_use),
        )


def find_spellings(names: Collection[str | None], service: str) -> list[str]:
    """Return the names that differ from that of a service in case, blanks or slashes alone."""
    return sorted(name for name in set(names) if name != service and name is not None and _is_like(name, service))


def _is_like(name: str | None, service: str) -> bool:
    return name is not None and likeness(name) == likeness(service)


def find_remedy(judged: JudgedQuestion, read_facts: Callable[[], RemedyFacts]) -> MessageRemedy | None:
    """Find the remedy for a message; None where it leaves its instance rightly, or its dialog decides.

    The facts are read only where the message stays or is dropped.
    """
    verdicts = [verdict for _, verdict in judged.possible] if judged.is_undecided else [judged.verdict]
    if not all(verdict.outcome in (*_STAYS, Outcome.DELIVERED) for verdict in verdicts):
        return None
    facts = read_facts() if any(verdict.outcome in _STAYS for verdict in verdicts) else RemedyFacts()
    near = NearMisses(facts.instances)
    [remedy, *others] = {remedy_of(_stuck(judged, verdict, facts, near)) for verdict in verdicts}
    return None if others else remedy


def _stuck(judged: JudgedQuestion, verdict: Verdict, facts: RemedyFacts, near: NearMisses) -> StuckGroup:
    message, decision = judged.message, verdict.decision
    scope = message.database or MSDB if decision is None else decision.last.scope
    where = message.instance, scope, message.service, verdict.broker_instance
    return StuckGroup(
        instances=facts.instances,
        addresses=facts.addresses,
        instance=message.instance,
        database=message.database,
        scope=scope,
        service=message.service,
        broker=verdict.broker_instance,
        verdict=verdict,
        near=near.of(*where, message.t),
        services_in_use=facts.services_in_use,
        from_service=judged.asked.row["from_service_name"] or None,
    )


# Other messages are read in parts that grow, for the first few mostly settle whether a request is pending.
_LARGEST_PART, _GROWTH = 100_000, 10
_SHOWN_INSTANCES = 20
_END = ConversationEnd._fields
# Not what only groups of dialogs have: reading is what takes the time.
_OF_A_DIALOG = [name for name in DIALOGS.names if name not in ("conversation_group_id", "far_service")]


@dataclass(frozen=True)
class ExplainSource:
    """Input tables, and what import keeps if given; ``first_part``: so many other messages are read at first."""

    tables: Mapping[str, TrafficTable]
    first_part: int = 1_000

    @classmethod
    def of(cls, tables: Mapping[str, Table]) -> ExplainSource:
        """Return the tables of a question.

        Raises InputError where one is missing, or has columns of other types.
        """
        check_given(tables)
        return cls({key: open_traffic(tables[key], key) for key in TABLES if key in tables})

    @property
    def inputs(self) -> dict[str, Table]:
        """The tables as they were given."""
        return {key: one.source for key, one in self.tables.items()}

    def find_stored(self, message_id: str, instance: str | None) -> list[ReadRow]:
        """Return the messages of an id, on one instance or on some at most."""
        only = {"message_id": [message_id]}
        if instance is not None:
            only["instance_name"] = [instance]
        stored = self.tables["messages"].rows(only=only, order=("instance_name",), limit=_SHOWN_INSTANCES)
        return list(stored.dicts())

    @property
    def knows_handles(self) -> bool:
        """Whether there is a table of what import saw, by the handles of conversations."""
        return "observed_routing" in self.tables

    def find_ends(self, handle: str) -> set[ConversationEnd]:
        """Return the ends of conversations that import saw under a folded handle."""
        if not self.knows_handles:
            return set()
        observed = self.tables["observed_routing"].folded("conversation_handle", [handle], names=_END)
        return set(count_ends(observed))

    def read_conversation(self, conversation: str) -> TrafficTable:
        """Return all messages of a conversation, given by its folded id."""
        return self.tables["messages"].folded("conversation_id", [conversation])

    def instance_names(self) -> list[str]:
        """Return all instances that are listed."""
        return list(self.tables["instances"].rows(("instance_name",)).values["instance_name"])

    def read_near(self, row: ReadRow) -> dict[str, TableColumns]:
        """Return the configuration and the requests of a message's instance, and the dialogs of its conversation.

        Raises InputError where one of these rows is at fault.
        """
        here, mine = {"instance_name": [row["instance_name"]]}, text.fold(row["conversation_id"] or "")

        def read(key: str) -> TableColumns:
            table = self.tables[key]
            return _read_dialogs(table, [mine], here) if key == "dialogs" else table.rows(only=here)

        near = self._read_each((key for key in INPUTS if key != "messages"), read)
        refuse_faults(near)
        return near

    def read_other_instances(self, here: str) -> dict[str, SqlInstance]:
        """Return the instances except one, as far as requests for routes that arrive there meet them.

        Of an instance of which a row is at fault nothing but its own row is taken; such rows stop no explanation.
        """
        only: dict[str, Filter] = {
            "services": {"name": [BROKER_CONFIGURATION_SERVICE]},
            "routes": {"database_name": [ARRIVALS]},
        }
        keys = ("instances", "databases", "services", "routes")
        columns = self._read_each(keys, lambda key: self.tables[key].rows(only=only.get(key, {})))
        return instances_of(_leave_out_faults(columns, here))

    def read_remedy_facts(self, near: Mapping[str, TableColumns], row: ReadRow) -> RemedyFacts:
        """Read the facts for a message's remedy; ``near`` is what `read_near` has read for it.

        Of an instance of which a row is at fault nothing but its own row is taken.
        """
        here, service = row["instance_name"], row["to_service_name"]
        keys = ("instances", "databases", "services")
        others = _leave_out_faults(self._read_each(keys, lambda key: self.tables[key].rows()), here)
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
        sent = self.tables["messages"].groups(("to_service_name",), only={"to_service_name": names}).rows()
        return set(sent.values["to_service_name"])

    def read_kept(self, row: ReadRow, *, is_described: bool) -> dict[str, TableColumns]:
        """Read the rows that import kept of a message and its instance; a described one was not observed."""
        here, mine = {"instance_name": [row["instance_name"]]}, {"message_id": [row["message_id"]]}
        of_events = {"source": list(EVENT_SOURCES), "conversation_id": [text.fold(row["conversation_id"] or "")]}

        def read(key: str) -> TableColumns:
            table = self.tables[key]
            if key == "imports":
                return table.rows(only=here)
            return joined(*(table.rows(only={**here, **only}) for only in (mine, of_events)))

        return self._read_each((key for key in KEPT if key == "imports" or not is_described), read)

    def _read_each(self, keys: Iterable[str], read: Callable[[str], TableColumns]) -> dict[str, TableColumns]:
        """Read each table of some keys that is at hand."""
        return read_each({key: self.tables[key].source for key in keys if key in self.tables}, read)

    def chunks(self, as_of: int | None) -> Chunks:
        """Return the messages of an instance for a service, with their dialogs.

        ``as_of`` is that of `known_tables.message_of`.
        """

        def read_parts(instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
            here, messages = {"instance_name": [instance]}, self.tables["messages"]
            only = {**here, "to_service_name": [service]}
            for part in messages.in_asking_order(only, as_of, self._sizes()):
                chunk = {"messages": part}
                if "dialogs" in self.tables:
                    ids = part.values["conversation_id"]
                    wanted = {text.fold(one) for one in ids if text.is_guid(one)}
                    chunk["dialogs"] = _read_dialogs(self.tables["dialogs"], wanted, here)
                yield chunk

        return read_parts

    def _sizes(self) -> Iterator[int]:
        size = self.first_part
        while True:
            yield size
            size = min(size * _GROWTH, _LARGEST_PART)


def _read_dialogs(dialogs: TrafficTable, conversations: Collection[str], here: Filter) -> TableColumns:
    """Return the dialogs of an instance that are of some conversations, given by their folded ids."""
    return dialogs.folded("conversation_id", conversations, only=here, names=_OF_A_DIALOG).rows()


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


def count_ends(rows: TrafficTable) -> Counter[ConversationEnd]:
    """Return how many rows there are of each end of a conversation, in messages or in what import saw."""
    counts: Counter[ConversationEnd] = Counter()
    groups = rows.groups(_END).rows().rows(*_END, COUNT)
    for conversation, instance, database, is_initiator, count in groups:
        place = (text.empty_as_null(instance), text.empty_as_null(database))
        counts[ConversationEnd(text.fold(conversation), *place, is_initiator)] += count
    return counts


def find_oldest(messages: TrafficTable, end: ConversationEnd) -> ReadRow:
    """Return the oldest of the messages of an end that `ExplainSource.read_conversation` found; it has some."""
    same = {name: value for name, value in end._asdict().items() if name != "conversation_id"}
    [row] = messages.rows(same=same, order=AGE, limit=1).dicts()
    return row
