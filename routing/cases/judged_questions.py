"""Judge a question by the rules and the known tables: the possible decisions, the actual one and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from routing.cases.background import NO_OTHER_INSTANCES, NO_STATUS, OtherInstances
from routing.cases.estate_addresses import EstateAddresses, list_route_addresses
from routing.cases.message_cases import MessageCase, message_of
from routing.cases.questions import QuestionError
from routing.cases.server_evidence import NO_EVIDENCE, ServerEvidence
from routing.plan import verdicts
from routing.plan.checked_inputs import instances_of, network_of
from routing.plan.paths import PathPlanner
from routing.rules.deciding import Decision, scope_of
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, PathWithReturn
from routing.rules.rejecting import rejections
from routing.rules.requesting import InstanceRequests, RequestScope
from routing.rules.resolving import ALTERNATIVE_COLUMNS, DialogFacts, RoutedMessage, Verdict
from routing.rules.text import empty_as_null, likeness
from routing.rules.timeline import moment_of
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, LEAVES, ZERO_GUID, ReadRow, TableRow

Chunks = Callable[[str, str], Iterable[Mapping[str, TableColumns]]]
"""A function from an instance and a service to its messages (``messages``) and their dialogs (``dialogs``).

It returns chunks in the order in which messages ask (`order_of_asking`). Inside a chunk they have no order.
"""


def narrow_to(tables: Mapping[str, TableColumns], row: ReadRow) -> dict[str, TableColumns]:
    """Drop the routes and services of an instance that cannot affect a message.

    Routes stay if the message may search them. They also stay if they may decide other messages for its service:
    routes to that service, to any service, and to the BrokerConfiguration service.
    """
    service, searched = row["to_service_name"], (row["database_name"] or ARRIVALS, ARRIVALS)
    named = (service, None, "", BROKER_CONFIGURATION_SERVICE)
    routes, services = tables["routes"], tables["services"]
    route_names = enumerate(routes.rows("database_name", "remote_service_name"))
    near = [place for place, (database, name) in route_names if database in searched or name in named]
    wanted = (service, BROKER_CONFIGURATION_SERVICE)
    wanted_services = [place for place, name in enumerate(services.values["name"]) if name in wanted]
    return {**tables, "routes": routes.take(near), "services": services.take(wanted_services)}


@dataclass(frozen=True)
class KnownTables:
    """The tables that judge a message. ``chunks`` is called only if a request may be pending (section 5).

    ``other_instances`` is called only if a request for a route leaves the instance.
    """

    network: EstateNetwork
    dialogs: verdicts.KnownDialogs
    chunks: Chunks
    other_instances: OtherInstances = NO_OTHER_INSTANCES

    @classmethod
    def of_columns(
        cls,
        tables: Mapping[str, TableColumns],
        chunks: Chunks,
        other_instances: OtherInstances = NO_OTHER_INSTANCES,
    ) -> KnownTables:
        """Build the known tables from rows without a fault: the configuration, dialogs and route_requests."""
        return cls(network_of(tables), _dialogs_of(tables), chunks, other_instances)

    def judged_messages(
        self, message: RoutedMessage, as_of: int | None
    ) -> Iterator[tuple[RoutedMessage, DialogFacts]]:
        """Yield all messages of its instance for its service that can be judged, as they ask, with dialogs."""
        for chunk in self.chunks(message.instance, message.service):
            dialogs, rows = _dialogs_of(chunk), chunk["messages"].dicts()
            sound = (row for row in rows if not rejections(row, self.network.instances.get(row["instance_name"])))
            read = sorted((message_of(row, as_of) for row in sound), key=verdicts.order_of_asking)
            yield from ((other, dialogs.of(other)) for other in read)


def _dialogs_of(tables: Mapping[str, TableColumns]) -> verdicts.KnownDialogs:
    return verdicts.KnownDialogs.of_columns([tables["dialogs"]] if "dialogs" in tables else [])


@dataclass(frozen=True)
class QuestionedMessage:
    """The message of a question. ``as_of`` (microseconds) is the time of all messages, if one was set.

    A described message without conversation_id may belong to any dialog.
    """

    row: ReadRow
    is_described: bool
    as_of: int | None = None

    @property
    def is_of_any_dialog(self) -> bool:
        """Whether the dialog is not given."""
        return self.is_described and self.row["conversation_id"] is None


@dataclass(frozen=True)
class JudgedQuestion:
    """The message of a question with its case. ``requests`` are the requests on record and from messages.

    The case has a verdict for each broker instance that a dialog may get as ``possible``.
    """

    question: QuestionedMessage
    message: RoutedMessage
    dialog: DialogFacts
    case: MessageCase
    requests: InstanceRequests

    @property
    def may_leave(self) -> bool:
        """Whether some decision sends the message to another instance."""
        return any(verdict.outcome in LEAVES for verdict in self.case.possible)

    @property
    def services(self) -> set[str]:
        """The target service, and that of the acknowledgement."""
        names = self.message.service, self.case.from_service
        return {name for name in names if name is not None}


def judge_question(question: QuestionedMessage, known_tables: KnownTables) -> JudgedQuestion:
    """Judge a question by the known tables. Raises QuestionError if a run would reject the message."""
    _check(question, known_tables)
    message = message_of(question.row, question.as_of)
    dialog, messages = known_tables.dialogs.of(message), verdicts.MessageJudge(known_tables.network, is_exact=True)
    keyed, requests = messages.keyed(message, dialog), messages.requests[message.instance]
    if not dialog.is_expired(message.t):
        decisions = keyed.decisions(message.t)
        verdicts.open_requests(_asking_others(question, message, decisions, messages, known_tables), requests)
    # Where two decisions meet step 4 in one database, both open the message's request or neither does.
    possible = keyed.possible(message, dialog, requests)
    is_undecided = question.is_of_any_dialog and len(possible) > 1
    verdict = None if is_undecided else possible[verdicts.place_of_pick(possible, message)]
    from_service = empty_as_null(question.row["from_service_name"])
    place = message.instance, message.database, message.service, from_service
    case = MessageCase(*place, message.t, NO_STATUS, verdict, possible=possible)
    return JudgedQuestion(question, message, dialog, case, requests)


def _asking_others(
    question: QuestionedMessage,
    message: RoutedMessage,
    decisions: tuple[Decision, ...],
    messages: verdicts.MessageJudge,
    known_tables: KnownTables,
) -> Iterator[verdicts.AskingMessage]:
    """Yield the other messages that may open a request which this one asks for, until none can any more."""
    scopes = _asked_scopes(message, decisions, messages.requests[message.instance])
    # Other messages matter only if this one requests a route.
    for other, dialog in known_tables.judged_messages(message, question.as_of) if scopes else ():
        position = (other.t, other.message_id)
        if all(scope.is_settled(*position) for scope in scopes):
            return
        # A row of the same time and id gets this message's decision.
        if position != (message.t, message.message_id):
            yield verdicts.AskingMessage(other, dialog, messages.keyed(other, dialog).decision(other))


def _check(question: QuestionedMessage, known_tables: KnownTables) -> None:
    # Without a dialog, any dialog id is accepted.
    row = {**question.row, "conversation_id": ZERO_GUID} if question.is_of_any_dialog else question.row
    instance = known_tables.network.instances.get(row["instance_name"])
    reasons = rejections(row, instance)
    if reasons:
        is_only_named = instance is not None and instance.is_only_named
        raise QuestionError.rejected(reasons, row["instance_name"] if is_only_named else None)


def _asked_scopes(
    message: RoutedMessage, decisions: tuple[Decision, ...], requests: InstanceRequests
) -> list[RequestScope]:
    databases = [scope_of(message.database) for decision in decisions if decision.first.asks]
    databases += [ARRIVALS for decision in decisions if decision.asks_again]
    return [requests.of(database, message.service) for database in dict.fromkeys(databases)]


@dataclass(frozen=True)
class FollowedMessage:
    """A message with its path, or with several if an unknown dialog decides between them.

    ``from_service`` is the sending service, or None if it is unknown.
    """

    message: RoutedMessage
    from_service: str | None
    paths: tuple[PathWithReturn, ...]


def follow_question(judged: JudgedQuestion, network: EstateNetwork) -> FollowedMessage:
    """Follow the message of a question to its end, and its acknowledgement back."""
    message, from_service = judged.message, judged.case.from_service
    back_to = None if from_service is None else ServiceAddress.of_name(from_service)
    dialog, instance = message.conversation_id, network.instances[message.instance]
    sender = PathSender(instance, message.database, message.is_initiator, back_to, dialog)
    paths = PathPlanner(network, is_exact=True).paths(sender, message, judged.case.possible)
    return FollowedMessage(message, from_service, tuple(dict.fromkeys(paths)))


# The run_id of verdicts: no run wrote them.
RUN_ID = "explain"


def verdict_row(judged: JudgedQuestion) -> TableRow:
    """Return the columns of ``resolved_routes``, with null in columns that depend on an unknown dialog."""
    message_row = _of_message(judged.question, judged.message)
    rows = [{**message_row, **_columns_of(verdict)} for verdict in judged.case.verdicts]
    return {
        name: value if all(row[name] == value for row in rows) else None for name, value in rows[0].items()
    } | {"run_id": RUN_ID, "attempt": 1}


def _of_message(question: QuestionedMessage, message: RoutedMessage) -> TableRow:
    return {
        "message_id": message.message_id,
        "conversation_id": message.conversation_id,
        "is_initiator": message.is_initiator,
        "message_sequence_number": question.row["message_sequence_number"],
        "enqueue_time": moment_of(question.row["enqueue_time"]),
        "instance_name": message.instance,
        "database_name": message.database,
        "to_service_name": message.service,
        "to_broker_instance": message.broker,
        "decided_at": moment_of(message.t),
    }


def _columns_of(verdict: Verdict) -> TableRow:
    columns = verdict.plain()
    alternatives = columns["alternative_routes"]
    alternative_rows = [
        dict(zip(ALTERNATIVE_COLUMNS, alternative, strict=True)) for alternative in alternatives or ()
    ]
    return {**columns, "alternative_routes": alternative_rows or None}


@dataclass(frozen=True)
class RemedyFacts:
    """The facts of the estate for the remedy of a message.

    ``instances`` are all known ones with their routes, and with the services that have names like the message's.
    ``addresses`` are those of instances and of all routes. ``services_in_use`` are services of stored or waiting
    messages. ``server`` has the exports other than routing.
    """

    instances: Mapping[str, SqlInstance] = field(default_factory=dict)
    addresses: EstateAddresses = field(default_factory=lambda: EstateAddresses({}))
    services_in_use: Collection[str] = frozenset()
    server: ServerEvidence = NO_EVIDENCE

    @classmethod
    def of_instances(
        cls,
        instances: Mapping[str, SqlInstance],
        named: TableColumns,
        services_in_use: Collection[str],
        server: ServerEvidence = NO_EVIDENCE,
    ) -> RemedyFacts:
        """Return the facts of instances, whose addresses are in the rows of ``instances`` (``named``)."""
        rows = named.rows("instance_name", "addresses")
        written = {name: [address for address in addresses or () if address] for name, addresses in rows}
        addresses = EstateAddresses(written, list_route_addresses(instances))
        return cls(instances, addresses, services_in_use, server)

    @classmethod
    def of_columns(
        cls,
        tables: Mapping[str, TableColumns],
        services: Collection[str],
        services_in_use: Collection[str],
    ) -> RemedyFacts:
        """Return the facts from valid columns of instances, databases, services and routes.

        ``services`` are the target services of the message or its acknowledgement.
        """
        alike = _find_alike(tables["services"].values["name"], services)
        instances = instances_of({**tables, "services": tables["services"].naming("name", alike)})
        return cls.of_instances(instances, tables["instances"], services_in_use)


def find_spellings(names: Collection[str | None], services: Collection[str]) -> list[str]:
    """Return the names that differ from those of services only in case, blanks or slashes."""
    return sorted(_find_alike(names, services) - set(services))


def _find_alike(names: Iterable[str | None], services: Collection[str]) -> set[str]:
    """Return the names like those of services, which may be very long."""
    likenesses = set(map(likeness, services))
    return {name for name in set(names) if name is not None and likeness(name) in likenesses}
