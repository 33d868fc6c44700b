"""Collect the exports that routing does not need, such as endpoints, queues, certificates and permissions.

Every view and every column is optional. Missing exports are None, or missing from a list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from routing.cases import server_facts
from routing.groups import group_pairs
from routing.importing.catalog.covering import find_address_fault, list_queues
from routing.importing.catalog.replicas import Replicas, is_readable
from routing.importing.catalog.typed_rows import MARKER
from routing.importing.covered_rows import Unit, unit_of
from routing.rules import text
from routing.rules.text import collated
from routing.schemas import SEEN
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table
from routing.terms import TableRow

MANAGED_INSTANCE = 8
"""The engine edition of Azure SQL Managed Instance."""
_WITHOUT_BROKER = (5, 6, 11)
"""The engine editions of Azure SQL Database and Azure Synapse."""
_WAITING = itemgetter("instance_name", "database_name", "to_service_name", "from_service_name")
_KEPT = (
    *("databases", "routes", "service_broker_endpoints", "tcp_endpoints", "services"),
    *server_facts.TELLS,
)
_ALGORITHMS = frozenset(["NONE", "RC4", "AES"])
_TO_SECONDS = len("2026-01-01 00:00:00")
# The export of a log goes back as far. SQL Server's own files go back to its start.
_LOGGED_TIME = timedelta(days=7)


class WaitingKey(NamedTuple):
    """The sender and the services of messages in a transmission queue."""

    instance: str
    database: str
    to_service: str
    from_service: str | None


@dataclass(frozen=True)
class ServerEvidence:
    """The exported rows of servers that are not about routing.

    ``rows`` are those of each view, ``units`` the instances and databases that each view was exported of.
    ``counts`` are the conversation endpoints by state, ``dialogs`` the rows of their table. ``waiting_counts``
    counts the messages of the transmission queues. ``queues`` are rows of their table.
    """

    rows: Mapping[str, Sequence[TableRow]] = field(default_factory=dict)
    units: Mapping[str, Mapping[Unit, datetime]] = field(default_factory=dict)
    counts: Sequence[server_facts.EndpointCount] = ()
    dialogs: Sequence[TableRow] = ()
    waiting_counts: Mapping[WaitingKey, int] = field(default_factory=dict)
    queues: Sequence[TableRow] = ()

    def exported_at(self, instance: str) -> datetime | None:
        """Return when the newest view of an instance was exported."""
        return self._newest_exports.get(instance)

    @cached_property
    def _newest_exports(self) -> Mapping[str, datetime]:
        newest: dict[str, datetime] = {}
        for units in self.units.values():
            for (instance, _), at in units.items():
                newest[instance] = max(at, newest.get(instance, at))
        return newest

    def conversations(self, instance: str, database: str) -> frozenset[str] | None:
        """Return the ids of dialogs with an endpoint in a database, or None if endpoints were not exported."""
        if not self.was_exported("conversation_endpoints", instance, database):
            return None
        return self._conversations.get((instance, database), frozenset())

    @cached_property
    def _conversations(self) -> Mapping[Unit, frozenset[str]]:
        ids = group_pairs((unit_of(row), row["conversation_id"]) for row in self.dialogs)
        return {unit: frozenset(conversation_ids) for unit, conversation_ids in ids.items()}

    def was_exported(self, view: str, instance: str, database: str | None = None) -> bool:
        """Return True if a view of a database, or one of an instance, was exported."""
        return (instance, database) in self.units.get(view, {})

    def database(self, instance: str, name: str | None) -> server_facts.DatabaseFacts | None:
        """Return the facts of a database, or None if it was not exported."""
        return None if name is None else self._databases.get((instance, collated(name)))

    @cached_property
    def databases(self) -> Mapping[tuple[str, str], server_facts.DatabaseFacts]:
        """The facts of each database, by instance and name."""
        return {(instance, facts.name): facts for (instance, _), facts in self._databases.items()}

    def find_sa(self, instance: str) -> str:
        """Return the name of login sa in an instance, where it may have another one."""
        owned = (facts for (name, _), facts in self.databases.items() if name == instance)
        return next((facts.owner_name for facts in owned if facts.is_of_sa and facts.owner_name), "sa")

    @cached_property
    def closed_databases(self) -> Mapping[str, Sequence[str]]:
        """The databases of each instance that are not online."""
        return group_pairs(place for place, facts in self.databases.items() if facts.is_closed)

    def endpoint(self, instance: str) -> server_facts.EndpointFacts | None:
        """Return the Service Broker endpoint of an instance, or None if none was exported."""
        return self.endpoints.get(instance)

    def has_no_endpoint(self, instance: str) -> bool:
        """Return True if the export of an instance's endpoints has no Service Broker endpoint."""
        return self.was_exported("service_broker_endpoints", instance) and instance not in self.endpoints

    def queue_of(self, instance: str, database: str | None, service: str | None) -> server_facts.QueueFacts | None:
        """Return the queue of a service, or None if it was not exported."""
        queues = self._queues.get((instance, collated(database or "")), ())
        return next((queue for queue in queues if service in queue.services), None)

    def list_queues(self) -> Iterable[tuple[Unit, server_facts.QueueFacts]]:
        """Return all queues of services with their databases."""
        return ((unit, queue) for unit, queues in self._queue_units.items() for queue in queues)

    def count_waiting(self, instance: str, database: str, service: str) -> int:
        """Count the messages in a transmission queue that are for a service."""
        return sum(
            number for key, number in self.waiting_counts.items() if key[:3] == (instance, database, service)
        )

    def count_unread(self, instance: str, database: str, far_service: str) -> Mapping[str, int]:
        """Count the messages in the queues of local services that have dialogs with a service, by queue."""
        services = {
            count.service
            for count in self.counts
            if count[:2] == (instance, database) and count.far_service == far_service
        }
        services |= {
            key.from_service for key in self.waiting_counts if key[:3] == (instance, database, far_service)
        }
        return self.count_messages(instance, database, services)

    def count_messages(self, instance: str, database: str, services: Collection[str | None]) -> Mapping[str, int]:
        """Count the messages in the queues of services, by queue. Empty queues are left out."""
        queues = self._queues.get((instance, collated(database)), ())
        return {
            queue.name: queue.messages
            for queue in queues
            if queue.messages and set(services) & set(queue.services)
        }

    def certificates(self, instance: str, database: str) -> Sequence[server_facts.CertificateFacts]:
        """Return the certificates of a database."""
        return self._certificates.get((instance, collated(database)), ())

    def endpoint_certificate(self, instance: str) -> server_facts.CertificateFacts | None:
        """Return the certificate of an instance's endpoint, or None if it is unknown."""
        endpoint = self.endpoint(instance)
        if endpoint is None:
            return None
        certificates = self.certificates(instance, "master")
        by_id = (
            certificate
            for certificate in certificates
            if certificate.certificate_id == endpoint.certificate_id is not None
        )
        by_name = (certificate for certificate in certificates if certificate.name == endpoint.certificate_name)
        return next(by_id, None) or next(by_name, None)

    def has_binding(self, instance: str, database: str, service: str) -> bool | None:
        """Return True if a binding names the user that sends to a service, or None if bindings were not exported.

        With an anonymous binding, as without one, public sends.
        """
        if not self.was_exported("remote_service_bindings", instance, database):
            return None
        rows = self.bindings(instance, database)
        return any(row["remote_service_name"] == service and not row["is_anonymous_on"] for row in rows)

    def send_grants(self, instance: str, database: str, service: str) -> server_facts.Grants | None:
        """Return the grants and denials of SEND on a service, or None if permissions were not exported.

        CONTROL of the service or of its database includes SEND.
        """
        return self._grants(
            "database_permissions", instance, database, lambda row: server_facts.gives_send(row, service)
        )

    def roles_of(self, instance: str, database: str, user: str) -> frozenset[str] | None:
        """Return the roles of a user, also by other roles, or None if the members of roles were not exported."""
        if not self.was_exported("database_role_members", instance, database):
            return None
        rows = self._rows_of("database_role_members", instance, database)
        members, roles = {user}, set[str]()
        while members:
            members = {row["role_name"] for row in rows if row["member_name"] in members} - roles
            roles |= members
        return frozenset(roles)

    def connect_grants(self, instance: str) -> server_facts.Grants | None:
        """Return the grants and denials of CONNECT on its endpoint, or None if permissions were not exported."""
        endpoint = self.endpoint(instance)
        name = None if endpoint is None else endpoint.name
        return self._grants(
            "server_permissions", instance, None, lambda row: server_facts.gives_connect(row, name)
        )

    def _grants(
        self, view: str, instance: str, database: str | None, is_of: Callable[[TableRow], bool]
    ) -> server_facts.Grants | None:
        """Return the grants and denials of some rows, or None if the view was not exported with its holders."""
        rows = list(self._rows_of(view, instance, database))
        if not self.was_exported(view, instance, database) or not server_facts.are_named(rows):
            return None
        named = [row for row in rows if row["grantee_name"] and is_of(row)]
        granted, denied = (
            [row["grantee_name"] for row in named if server_facts.is_granted(row) is kind]
            for kind in (True, False)
        )
        return server_facts.Grants(granted, denied)

    def bindings(self, instance: str, database: str) -> Iterable[TableRow]:
        """Return the remote service bindings of a database."""
        return self._rows_of("remote_service_bindings", instance, database)

    def bound_user(self, instance: str, database: str, service: str) -> str | None:
        """Return the user of a service's remote service binding, or None if none is known."""
        rows = self.bindings(instance, database)
        return next((row["user_name"] for row in rows if row["remote_service_name"] == service), None)

    @property
    def bound_users(self) -> Mapping[tuple[str, str], Collection[str]]:
        """The users of remote service bindings, by instance and database."""
        bindings = self.rows.get("remote_service_bindings", ())
        named = (row for row in bindings if row["user_name"] is not None)
        users = (((row["instance_name"], row["database_name"]), row["user_name"]) for row in named)
        return group_pairs(dict.fromkeys(users))

    def has_master_key(self, instance: str, database: str) -> bool | None:
        """Return True if a database has a master key, or None if its keys were not exported."""
        if not self.was_exported("symmetric_keys", instance, database):
            return None
        rows = self._rows_of("symmetric_keys", instance, database)
        return any(row["name"] == "##MS_DatabaseMasterKey##" for row in rows)

    def edition(self, instance: str) -> str | None:
        """Return the edition of an instance, such as "Express Edition (64-bit)"."""
        return self._properties.get(instance, {}).get("edition")

    def is_client_only(self, instance: str) -> bool:
        """Return True if an instance is known to be of an edition that cannot send to another such edition."""
        return (self.edition(instance) or "").startswith(("Express", "Web"))

    def is_managed(self, instance: str) -> bool:
        """Return True if an instance is known to be a Managed Instance."""
        return self._engine_edition(instance) == MANAGED_INSTANCE

    def is_rds(self, instance: str) -> bool:
        """Return True if an instance is known to be one of Amazon RDS, by the database of its administrator."""
        return self.database(instance, "rdsadmin") is not None

    def has_no_broker(self, instance: str) -> bool:
        """Return True if an instance is known to be a service of Azure without Service Broker."""
        return self._engine_edition(instance) in _WITHOUT_BROKER

    def _engine_edition(self, instance: str) -> int | None:
        return self._properties.get(instance, {}).get("engine_edition")

    def invalid_routes(self, instance: str, database: str, service: str, broker: str | None) -> Sequence[TableRow]:
        """Return the rows of a database's routes for a service that have an invalid address.

        ``broker`` is the broker instance of the messages, if they are bound: routes to others do not count.
        """
        rows = self._rows_of("routes", instance, database)
        named = (row for row in rows if row["remote_service_name"] == service and row["address"])
        matching = (
            row for row in named if broker is None or text.broker_id(row["broker_instance"]) in (None, broker)
        )
        # The mirror address may have a fault of its own.
        return [row for row in matching if find_address_fault({**row, "mirror_address": None}) is not None]

    def listener(self, host: str | None) -> server_facts.AvailabilityListener | None:
        """Return the availability group listener with a host name, or None if no known listener has it."""
        if host is None:
            return None
        return self._listeners.get(host) or self._listeners.get(host.partition(".")[0])

    def secondaries(self) -> Collection[str]:
        """Return the instances that are known to hold a group's databases as a secondary replica."""
        roles, closed = self._replicas.roles, self._replicas.closed
        return {
            name
            for listener in self._listeners.values()
            for name in listener.replicas
            if name != listener.primary and (listener.primary or name in closed or roles.get(name) == "SECONDARY")
        }

    @cached_property
    def _replicas(self) -> Replicas:
        return Replicas(self.rows)

    def are_replicas(self, one: Unit, other: Unit) -> bool:
        """Return True if two databases are known to be replicas of one database of an availability group."""
        first, second = self.database(*one), self.database(*other)
        if first is None or second is None:
            return False
        return first.is_in_group and first.group_database_id == second.group_database_id

    def is_secondary(self, instance: str, database: str) -> bool:
        """Return True if a database is known to be the secondary replica of another instance's."""
        primaries, roles = self._replicas.primaries, self._replicas.roles
        if (instance, database) not in primaries:
            return False
        primary = primaries[instance, database]
        return roles.get(instance) == "SECONDARY" if primary is None else primary != instance

    def is_primary(self, instance: str) -> bool:
        """Return True if an instance is known to be the primary replica of a group."""
        return any(listener.primary == instance for listener in self._listeners.values())

    def listeners_of(self, instance: str) -> Sequence[server_facts.AvailabilityListener]:
        """Return the listeners that lead to the primary of a group which an instance is a replica of."""
        return [listener for listener in self._listeners.values() if instance in listener.replicas]

    def sharing_port(self, host: str | None, port: str | None) -> Sequence[str]:
        """Return the instances of one machine with endpoints on the same port. The list is empty below two."""
        if host is None or port is None:
            return ()
        machine = host.partition(".")[0]
        names = [
            name
            for name, endpoint in self.endpoints.items()
            if str(endpoint.port) == port
            and text.machine_of(name) in (machine, host)
            and endpoint.state in (None, "STARTED")
        ]
        return sorted(names) if len(names) > 1 else ()

    def log_lines(self, instance: str, *words: str) -> Sequence[str]:
        """Return the lines of an instance's error log that have one of some words, the newest first."""
        return [line for line in self._logs.get(instance, ()) if any(word in line for word in words)]

    @cached_property
    def _logs(self) -> Mapping[str, Sequence[str]]:
        rows = (row for row in self.rows.get("error_log", ()) if row["text"])
        logs = group_pairs((row["instance_name"], (row["log_date"] or "", row["text"])) for row in rows)
        return {instance: _order_log(lines) for instance, lines in logs.items()}

    @property
    def logging_instances(self) -> Collection[str]:
        """The instances with an exported error log."""
        return dict.fromkeys(row["instance_name"] for row in self.rows.get("error_log", ())).keys()

    def dropped(self, instance: str, conversations: Collection[str]) -> Sequence[server_facts.DroppedMessage]:
        """Return the messages that an instance discarded according to its events. Conversation ids are folded."""
        return [
            drop for drop in self._dropped.get(instance, ()) if text.fold(drop.conversation_id) in conversations
        ]

    @cached_property
    def _dropped(self) -> Mapping[str, Sequence[server_facts.DroppedMessage]]:
        events = ((row["instance_name"], row["event_data"] or "") for row in self.rows.get("broker_events", ()))
        drops = ((instance, server_facts.read_drop(event, instance)) for instance, event in events)
        return group_pairs((instance, drop) for instance, drop in drops if drop is not None)

    @cached_property
    def errors(self) -> Sequence[server_facts.ExportError]:
        """The parts of exports that were refused or cut off."""
        return [
            server_facts.ExportError(
                row["instance_name"], row["part"], row["of_database"], row["error_number"], row["left_out"]
            )
            for row in self.rows.get("export_errors", ())
            if row["part"]
        ]

    def _rows_of(self, view: str, instance: str, database: str | None) -> Iterable[TableRow]:
        if view not in self._by_unit:
            self._by_unit[view] = group_pairs((unit_of(row), row) for row in self.rows.get(view, ()))
        return self._by_unit[view].get((instance, database), ())

    @cached_property
    def _by_unit(self) -> dict[str, dict[Unit, list[TableRow]]]:
        return {}

    def list_refusals(self) -> list[server_facts.ExportRefusal]:
        """Return the refused and cut parts of exports. Equal refusals in several databases are one."""
        alike = group_pairs(
            (error._replace(database=None, left_out=None if error.left_out is None else 0), error)
            for error in self.errors
        )
        return [
            server_facts.ExportRefusal(
                key.instance,
                key.part,
                key.number,
                tuple(error.database for error in errors if error.database is not None),
                sum(error.left_out or 0 for error in errors),
                server_facts.find_permission(key.part, key.number),
            )
            for key, errors in alike.items()
        ]

    @cached_property
    def _properties(self) -> Mapping[str, TableRow]:
        return {row["instance_name"]: row for row in self.rows.get("server_properties", ())}

    @cached_property
    def _databases(self) -> Mapping[tuple[str, str], server_facts.DatabaseFacts]:
        mirrored = {
            (row["instance_name"], row["database_id"]): row
            for row in self.rows.get("database_mirroring", ())
            if row["mirroring_role_desc"]
        }
        with_owners = {
            row["instance_name"] for row in self.rows.get("databases", ()) if row["owner_name"] is not None
        }
        facts = {}
        for row in self.rows.get("databases", ()):
            mirror = mirrored.get((row["instance_name"], row["database_id"]), {})
            is_owner_known = row["owner_is_known"]
            if is_owner_known is None and row["instance_name"] in with_owners:
                is_owner_known = row["owner_name"] is not None
            facts[row["instance_name"], collated(row["name"])] = server_facts.DatabaseFacts(
                row["name"],
                row["owner_sid"],
                is_owner_known,
                row["is_trustworthy_on"],
                row["is_read_only"],
                row["state_desc"],
                row["user_access_desc"],
                row["group_database_id"],
                mirror.get("mirroring_role_desc"),
                mirror.get("mirroring_partner_instance"),
                is_readable(row),
                row["is_broker_enabled"],
                row["is_master_key_encrypted_by_server"],
                row["is_in_standby"],
                row["source_database_id"],
                row["owner_name"],
            )
        return facts

    @cached_property
    def endpoints(self) -> Mapping[str, server_facts.EndpointFacts]:
        """The Service Broker endpoint of each instance."""
        ports = {
            (row["instance_name"], row["endpoint_id"]): row
            for row in self.rows.get("tcp_endpoints", ())
            if row["endpoint_id"] is not None
        }
        endpoints = {}
        for row in self.rows.get("service_broker_endpoints", ()):
            if not server_facts.is_endpoint(row):
                continue
            tcp = ports.get((row["instance_name"], row["endpoint_id"]), {})
            algorithms = (row["encryption_algorithm_desc"] or "").upper().replace(",", " ").split()
            endpoints[row["instance_name"]] = server_facts.EndpointFacts(
                row["name"] or tcp.get("name"),
                row["state_desc"] or tcp.get("state_desc"),
                row["port"] if tcp.get("port") is None else tcp["port"],
                tcp.get("ip_address"),
                row["connection_auth_desc"],
                frozenset(algorithms) & _ALGORITHMS,
                row["certificate_id"],
                row["certificate_name"],
            )
        return endpoints

    @cached_property
    def _queue_units(self) -> Mapping[Unit, Sequence[server_facts.QueueFacts]]:
        return group_pairs((unit_of(row), server_facts.QueueFacts.of_row(row)) for row in self.queues)

    @cached_property
    def _queues(self) -> Mapping[tuple[str, str], Sequence[server_facts.QueueFacts]]:
        return {(unit[0], collated(unit[1] or "")): queues for unit, queues in self._queue_units.items()}

    @cached_property
    def _certificates(self) -> Mapping[tuple[str, str], Sequence[server_facts.CertificateFacts]]:
        named = (row for row in self.rows.get("certificates", ()) if row["name"] is not None)
        places = (((row["instance_name"], collated(row["database_name"])), row) for row in named)
        return group_pairs((place, server_facts.CertificateFacts.of_row(row)) for place, row in places)

    @cached_property
    def _listeners(self) -> Mapping[str, server_facts.AvailabilityListener]:
        """The listeners by folded name: of the listeners' view, and of the names that the queries export."""
        replicas: dict[str, set[str]] = defaultdict(set)
        for row in self.rows.get("service_broker_endpoints", ()):
            for name in (row["listener_names"] or "").replace(",", " ").split():
                replicas[text.fold(name.partition(".")[0])].add(row["instance_name"])
        for row in self.rows.get("availability_group_listeners", ()):
            if row["dns_name"]:
                replicas[text.fold(row["dns_name"])].add(row["instance_name"])
        return {
            name: server_facts.AvailabilityListener(
                name, self._replicas.find_primary(members), tuple(sorted(members))
            )
            for name, members in replicas.items()
        }


def _order_log(dated: Sequence[tuple[str, str]]) -> Sequence[str]:
    """Return the dated lines of the last seven days, the newest first. SQL Server's own files end with it."""
    try:
        timed = [(datetime.fromisoformat(date[:_TO_SECONDS]), date, line) for date, line in dated]
    except ValueError:
        # Dates in the form of a language cannot be compared.
        return [line for _, line in dated]
    timed.sort(key=itemgetter(0, 1), reverse=True)
    return [line for time, _, line in timed if time >= timed[0][0] - _LOGGED_TIME]


NO_EVIDENCE = ServerEvidence()
"""The evidence without any exports other than routing."""


def collect_evidence(
    rows: Mapping[str, Sequence[TableRow]],
    units: Mapping[str, Mapping[Unit, datetime]],
    dialogs: Sequence[TableRow] = (),
    counts: Sequence[TableRow] = (),
) -> ServerEvidence:
    """Collect the facts other than routing from an export. ``rows`` are those of its views in their spelling.

    ``dialogs`` and ``counts`` are the rows of the tables ``dialogs`` and ``endpoint_counts``.
    """
    rows_by_view = {view: [row for row in rows[view] if MARKER not in row] for view in _KEPT if view in rows}
    queued = [row for row in rows.get("transmission_queue", ()) if MARKER not in row]
    waiting = Counter({WaitingKey(*key): number for key, number in Counter(map(_WAITING, queued)).items()})
    counted = [server_facts.EndpointCount.of_row(row) for row in counts]
    queues = tuple(list_queues(rows_by_view, units))
    return ServerEvidence(rows_by_view, units, counted, dialogs, waiting, queues)


def evidence_of_tables(tables: Mapping[str, Table]) -> ServerEvidence:
    """Return the facts of the tables ``queues`` and ``endpoint_counts``, if given."""
    rows = {key: read_rows(tables[key], SEEN[key]) for key in SEEN if key in tables}
    counts = [server_facts.EndpointCount.of_row(row) for row in rows.get("endpoint_counts", ())]
    return ServerEvidence(counts=counts, queues=rows.get("queues", ()))
