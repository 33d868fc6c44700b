"""Compare the decisions of two sides: which differ, how many, and which get worse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routing.cases.estate_sides import DiffSides, OneSide
from routing.errors import (
    ContractError,
    name_nearest,
    quote,
)
from routing.plan.checked_inputs import instances_of, requests_of
from routing.result_schemas import CHANGE_COUNTS, EXAMPLES, KEY_CHANGES
from routing.rules.estate import SqlInstance
from routing.rules.requesting import RouteRequest
from routing.tables.arrow_rows import SchemaRows
from routing.tables.table_columns import Table, TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, REJECTED, Outcome, ReadRow, TableRow

if TYPE_CHECKING:
    pass

DECIDED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
"""What of a decision is compared; of a message that is set aside the outcome is REJECTED, the reason its codes."""
JOINED = ", "
"""What stands between the codes of a message that is set aside."""
ENDS = ("outcome_before", "reason_before", "outcome_after", "reason_after")
DIFF_JOB = "sbroute diff"
"""The job that writes the table of changed messages."""
SHOWN = 3
"""As many examples are kept of each change."""
WORSE = ("delayed", "dropped", "rejected")
"""What a message that gets worse may become, as options name it."""
_RANKS = {str(Outcome.DELAYED): 1, str(Outcome.DROPPED): 2, REJECTED: 3}


@dataclass(frozen=True)
class MessageChanges:
    """The changes for the messages, by either engine.

    compared: how many messages there are. groups: rows of `result_schemas.KEY_CHANGES`, each group once, an empty
    database_name as null. examples: rows of `result_schemas.EXAMPLES`, of each change from an outcome and reason
    to others the lowest `SHOWN` at least, by instance_name, message_id and conversation_id, nulls first. messages:
    every changed message in the columns of `result_schemas.MESSAGE_CHANGES`, as it is in the table; None where
    they were not asked for.
    """

    compared: int
    groups: Sequence[ReadRow]
    examples: Sequence[ReadRow]
    messages: Table | None


def rank(outcome: str) -> int:
    """Return the rank of an outcome: on its way 0, then DELAYED, DROPPED, REJECTED."""
    return _RANKS.get(outcome, 0)


def step_of(row: ReadRow) -> int:
    """Return 1 where messages of a row get worse, -1 where they get better, else 0."""
    before, after = rank(row["outcome_before"]), rank(row["outcome_after"])
    return (after > before) - (after < before)


def is_worse(row: ReadRow) -> bool:
    """Return True if messages of a row get worse."""
    return step_of(row) > 0


def fails(counts: Iterable[ReadRow], words: Collection[str]) -> bool:
    """Return True if any message gets worse, and becomes one of some words (`WORSE`)."""
    return any(is_worse(row) and row["outcome_after"].lower() in words for row in counts)


def list_keys(changed: MessageChanges) -> SchemaRows:
    """Return the keys of which messages change, those that get worse first, then the most messages."""
    names = KEY_CHANGES.names
    ordered = sorted(changed.groups, key=lambda row: (_place(row), *_order(row, names)))
    return SchemaRows(KEY_CHANGES, tuple({name: row[name] for name in names} for row in ordered))


def count_changes(changed: MessageChanges) -> SchemaRows:
    """Return how many messages change from an outcome and reason to others, in the same order, with examples."""
    counts: dict[tuple[str, ...], int] = {}
    for row in changed.groups:
        ends = tuple(row[name] for name in ENDS)
        counts[ends] = counts.get(ends, 0) + row["messages"]
    count_rows = [
        {
            **dict(zip(ENDS, ends, strict=True)),
            "messages": messages,
            "examples": lowest(row for row in changed.examples if tuple(row[name] for name in ENDS) == ends),
        }
        for ends, messages in counts.items()
    ]
    count_rows.sort(key=lambda row: (_place(row), *_order(row, ENDS)))
    return SchemaRows(CHANGE_COUNTS, tuple(count_rows))


def lowest(rows: Iterable[ReadRow]) -> list[TableRow]:
    """Return the first examples of some, in their order and without what becomes of them."""
    names = [name for name in EXAMPLES.names if name not in ENDS]
    ordered = sorted(rows, key=lambda row: _order(row, names))
    return [{name: row[name] for name in names} for row in ordered[:SHOWN]]


def _place(row: ReadRow) -> tuple[int, int, int]:
    """Return the sort key of a row: messages that get worse first, the worst of them, then the most."""
    return -step_of(row), -rank(row["outcome_after"]), -row["messages"]


def _order(row: ReadRow, names: Sequence[str]) -> tuple[Any, ...]:
    """Return a total order by some columns, nulls first."""
    return tuple((row[name] is not None, row[name] or "") for name in names if name != "messages")


# Which messages can be decided differently on two sides at all, told by the settings alone.
#
# Nothing is decided here. The decision on a message depends on its instance's own row, its databases, the
# routes that name its service, any service or the BrokerConfiguration service, the holders of its service and
# the requests on record for it (rule book, sections 1 to 5). Where all of that is the same, so is the decision.


# Names that messages invent take no more room than this, of each instance.
_MOST_SERVICES = 100_000
_OF_ALL_SERVICES = (None, BROKER_CONFIGURATION_SERVICE)


@dataclass(frozen=True)
class AffectedServices:
    """The instances of which every message may differ, and of others the services of which messages may."""

    whole: set[str] = field(default_factory=set)
    services: dict[str, set[str]] = field(default_factory=dict)

    def add(self, instance: str, service: str) -> None:
        """Add a service of an instance; of very many all messages may differ as well."""
        if instance in self.whole:
            return
        services = self.services.setdefault(instance, set())
        services.add(service)
        if len(services) > _MOST_SERVICES:
            self.whole.add(instance)
            del self.services[instance]

    @property
    def filters(self) -> list[dict[str, list[str]]]:
        """The values by column of which messages have one: all that may differ, and each of them once.

        Maybe some more, all messages of an instance to a service each time.
        """
        value_sets = [{"instance_name": sorted(self.whole)}] if self.whole else []
        partly = {name: services for name, services in self.services.items() if name not in self.whole}
        if partly:
            services = sorted(set().union(*partly.values()))
            value_sets.append({"instance_name": sorted(partly), "to_service_name": services})
        return value_sets


def find_affected(diff_sides: DiffSides) -> AffectedServices:
    """Return the messages that may be decided differently because of what the sides say, or of when."""
    before, after = diff_sides.before, diff_sides.after
    near = _near(diff_sides)
    first = instances_of(near[0])
    second = first if near[1] is near[0] else instances_of(near[1])
    old, new = (
        {name: instance.at(one_side.at) for name, instance in instances.items()}
        for one_side, instances in ((before, first), (after, second))
    )
    affected = AffectedServices()
    for name in old.keys() | new.keys():
        services = _services(old.get(name), new.get(name))
        if services is None:
            affected.whole.add(name)
        else:
            for service in services:
                affected.add(name, service)
    for name, service in _asked_otherwise(before, after):
        affected.add(name, service)
    return affected


def _near(diff_sides: DiffSides) -> tuple[Mapping[str, TableColumns], Mapping[str, TableColumns]]:
    """Return the settings of both sides, at one time of those instances alone of which some row differs."""
    before, after = diff_sides.before.settings, diff_sides.after.settings
    if not diff_sides.is_one_time:
        return before, after if diff_sides.differing else before
    names = {row[0] for rows in diff_sides.differing.values() for row in rows}
    return narrow(before, names), narrow(after, names)


def narrow(settings: Mapping[str, TableColumns], names: Iterable[str]) -> dict[str, TableColumns]:
    """Select the settings of some instances."""
    wanted = set(names)
    return {key: columns.naming("instance_name", wanted) for key, columns in settings.items()}


def _services(old: SqlInstance | None, new: SqlInstance | None) -> set[str] | None:
    """Return the services of which messages may differ; None where any message may.

    Both with their routes in force.
    """
    if old is None or new is None or _instance_facts(old) != _instance_facts(new):
        return None
    services = _differing(old.holders, new.holders)
    for database in old.routes.keys() | new.routes.keys():
        services |= _differing(old.routes.get(database, {}), new.routes.get(database, {}))
    return (
        None
        if services.intersection(_OF_ALL_SERVICES)
        else {service for service in services if service is not None}
    )


def _instance_facts(instance: SqlInstance) -> tuple[Any, ...]:
    """Return the properties of an instance that decide all its messages."""
    return instance.is_forwarding, instance.own_addresses, dict(instance.databases)


def _differing(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> set[str | None]:
    return {service for service in old.keys() | new.keys() if old.get(service) != new.get(service)}


def _asked_otherwise(before: OneSide, after: OneSide) -> Iterator[tuple[str, str]]:
    """Yield the instances and services of which requests on record count otherwise on one side."""
    if before.asks is after.asks and before.at == after.at:
        return
    old, new = (_states(one_side.asks, one_side.at) for one_side in (before, after))
    yield from {scope[::2] for scope in old.keys() | new.keys() if old.get(scope) != new.get(scope)}


def _states(requests: TableColumns | None, at: int) -> dict[tuple[str, str, str], set[tuple[Any, ...]]]:
    """Return the states of requests on record at a time, by instance, database and service.

    Of those that are pending for every message the conversation endpoints, which wait (D10); of those of this very
    moment also the ids of the messages, which are compared (section 5), and whether they are still open.
    """
    states: dict[tuple[str, str, str], set[tuple[Any, ...]]] = {}
    for scope, on_record in ({} if requests is None else requests_of(requests)).items():
        state = {one for request in on_record for one in _state(request, at)}
        if state:
            states[scope] = state
    return states


def _state(request: RouteRequest, at: int) -> Iterator[tuple[Any, ...]]:
    is_open = request.ended_at is None or at < request.ended_at
    if request.requested_at < at and is_open:
        yield (request.endpoint,)
    elif request.requested_at == at:
        yield request.endpoint, request.message_id, is_open


def words_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse ``--fail-on``: words of `decision_comparison.WORSE`, one or several with commas. Raises ContractError.

    Raises ContractError.
    """
    words = [word.strip() for text in texts for word in text.split(",")]
    for word in words:
        if word not in WORSE:
            near = name_nearest(word, {name: name for name in WORSE})
            hint = f"did you mean {near}?" if near else f"known are {', '.join(WORSE)}"
            raise ContractError(f"--fail-on: unknown word {quote(word)}", hint)
    return tuple(dict.fromkeys(words))
