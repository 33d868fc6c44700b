"""Define the facts about servers in exports other than routing. Facts that were not exported are None."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from routing.importing.catalog.evidence_views import EVIDENCE_VIEWS
from routing.importing.events.event_rows import BrokenEventError, parse_event, read_event
from routing.render.phrases import count_places, named
from routing.rules.observed import SENT_AGAIN
from routing.rules.text import collated
from routing.terms import FORWARD_DROPPED, UNDELIVERABLE, TableRow

TELLS = {view.name: (view.purpose, view.permission) for view in EVIDENCE_VIEWS}
"""The content of each view other than routing, and the permission that its export needs."""
_OWN_OWNER = "0x01"
_EVERY_PART = "every part"
# No permission: on an object, in a database, for a server's state, to open a database.
_DENIED = (229, 262, 297, 300, 916)


class DatabaseFacts(NamedTuple):
    """The facts of a database apart from its broker, such as owner, rights, state and replication."""

    name: str
    owner_sid: str | None
    owner_is_known: bool | None
    is_trustworthy: bool | None
    is_read_only: bool | None
    state: str | None
    user_access: str | None
    group_database_id: str | None
    mirroring_role: str | None
    mirroring_partner: str | None
    is_readable: bool
    is_broker_on: bool | None
    is_key_of_server: bool | None
    is_standby: bool | None
    source_database_id: int | None
    owner_name: str | None

    @property
    def is_closed(self) -> bool:
        """True if the database is not online."""
        return self.state not in (None, "ONLINE")

    @property
    def may_be_enabled(self) -> bool:
        """True if its broker may be enabled: it is online, writable, and neither a snapshot nor a replica."""
        is_open = self.is_readable and not self.is_closed and not self.is_read_only
        return is_open and not self.is_snapshot

    @property
    def is_snapshot(self) -> bool:
        """True if it is a snapshot of another database."""
        return self.source_database_id is not None

    @property
    def is_in_group(self) -> bool:
        """True if it belongs to an availability group."""
        return self.group_database_id is not None

    @property
    def is_mirrored(self) -> bool:
        """True if it belongs to a mirroring session."""
        return self.mirroring_role is not None

    @property
    def has_lost_owner(self) -> bool:
        """True if the export shows that its owner is not a login of the instance."""
        return self.owner_is_known is False and not self.has_valid_owner

    @property
    def has_valid_owner(self) -> bool:
        """True if the export shows that its owner is a login of the instance."""
        return self.owner_is_known is True or self.is_of_sa

    @property
    def is_of_sa(self) -> bool:
        """True if its owner is login sa, whatever its name."""
        return (self.owner_sid or "").lower() == _OWN_OWNER

    def is_owner_in(self, line: str) -> bool:
        """Return True if a text has the name of its owner in quotes."""
        return self.owner_name is not None and f"'{collated(self.owner_name)}'" in collated(line)


class EndpointFacts(NamedTuple):
    """The Service Broker endpoint of an instance. ``algorithms`` are empty if they were not exported."""

    name: str | None
    state: str | None
    port: int | None
    ip_address: str | None
    authentication: str | None
    algorithms: frozenset[str]
    certificate_id: int | None
    certificate_name: str | None


class QueueFacts(NamedTuple):
    """The queue of a service. ``messages`` counts its messages, ``waiting`` the programs that wait for one.

    ``services`` is empty if no service uses it, or if these are not known (``has_known_services``).
    ``max_readers`` and ``runs_as`` are those of its activation, ``monitor`` is the state of its queue monitor.
    """

    schema: str | None
    name: str
    is_receiving: bool | None
    is_enqueueing: bool | None
    activation: str | None
    is_activated: bool | None
    messages: int | None
    waiting: int | None
    services: tuple[str, ...]
    max_readers: int | None
    runs_as: str | None
    keeps_messages: bool | None
    monitor: str | None
    has_known_services: bool

    @classmethod
    def of_row(cls, row: TableRow) -> QueueFacts:
        """Read a row of ``queues``."""
        return cls(
            row["schema_name"],
            row["name"],
            row["is_receive_enabled"],
            row["is_enqueue_enabled"],
            row["activation_procedure"],
            row["is_activation_enabled"],
            row["messages"],
            row["tasks_waiting"],
            tuple(row["service_names"] or ()),
            row["max_readers"],
            row["execute_as_name"],
            row["is_retention_enabled"],
            row["monitor_state"],
            row["service_names"] is not None,
        )

    @property
    def is_off(self) -> bool:
        """True if the queue takes no messages, or nobody can receive from it."""
        return self.is_receiving is False or self.is_enqueueing is False


class EndpointCount(NamedTuple):
    """A number of equal conversation endpoints."""

    instance: str
    database: str
    state: str
    service: str | None
    far_service: str | None
    is_initiator: bool | None
    endpoints: int

    @classmethod
    def of_row(cls, row: TableRow) -> EndpointCount:
        """Read a row of ``endpoint_counts``."""
        place = row["instance_name"], row["database_name"], row["state"], row["service_name"]
        return cls(*place, row["far_service"], row["is_initiator"], row["endpoints"])


class CertificateFacts(NamedTuple):
    """A certificate of a database. Times are in UTC, as exported."""

    name: str
    certificate_id: int | None
    subject: str | None
    user_name: str | None
    starts: str | None
    expires: str | None
    has_private_key: bool | None
    has_password: bool
    principal_id: int | None

    @classmethod
    def of_row(cls, row: TableRow) -> CertificateFacts:
        """Read a row of sys.certificates with its user."""
        kind = row["pvt_key_encryption_type_desc"]
        return cls(
            row["name"],
            row["certificate_id"],
            row["subject"],
            row["user_name"],
            row["start_date"],
            row["expiry_date"],
            None if kind is None else kind != "NO_PRIVATE_KEY",
            kind == "ENCRYPTED_BY_PASSWORD",
            row["principal_id"],
        )

    def has_expired(self, now: datetime) -> bool:
        """Return True if its last day is before a time."""
        last = _read_time(self.expires)
        return last is not None and last < now

    def is_early(self, now: datetime) -> bool:
        """Return True if its first day is after a time."""
        first = _read_time(self.starts)
        return first is not None and first > now

    def is_copy_of(self, other: CertificateFacts) -> bool:
        """Return True if two certificates have the same subject and the same dates."""
        return (self.subject, self.starts, self.expires) == (other.subject, other.starts, other.expires)


class Grants(NamedTuple):
    """The logins or users with a grant of a permission, and those with a denial."""

    granted: Sequence[str] = ()
    denied: Sequence[str] = ()


class DroppedMessage(NamedTuple):
    """A message that an instance threw away, as its events recorded it."""

    conversation_id: str
    number: int | None
    reason: str | None


class ExportError(NamedTuple):
    """A part of an export that was refused, or cut off after a number of rows."""

    instance: str
    part: str
    database: str | None
    number: int | None
    left_out: int | None


class ExportRefusal(NamedTuple):
    """A part of an export that was refused in ``databases``, or cut off. ``permission`` is the required one."""

    instance: str
    part: str
    number: int | None
    databases: tuple[str, ...]
    left_out: int
    permission: str | None

    def state(self) -> str:
        """Return the sentence on the refusal, with the GRANT that the export needs."""
        where_to = f" of {count_places(self.databases, 'database')}" if self.databases else ""
        if self.left_out:
            return f"{named(self.instance)}: {self.left_out:,} rows of sys.{self.part}{where_to} were left out"
        view = "nothing" if self.part == _EVERY_PART else f"sys.{self.part}"
        export_state = f"{view}{where_to} was {'' if self.part == _EVERY_PART else 'not '}exported"
        number = "" if self.number is None else f" (error {self.number})"
        grant = "" if self.permission is None else f"; GRANT {self.permission} TO [<login>] lets it"
        return f"{named(self.instance)}: {export_state}{number}{grant}"


class AvailabilityListener(NamedTuple):
    """A name that leads to the primary of an availability group, with its replicas that were exported."""

    name: str
    primary: str | None
    replicas: tuple[str, ...]


def _read_time(text: str | None) -> datetime | None:
    """Return a time of a view, which is in UTC, or None if it is missing or not in ISO 8601."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)


def read_drop(event_data: str, instance: str) -> DroppedMessage | None:
    """Return the message of an event, or None if the event is not of a dropped message or cannot be read."""
    try:
        event = read_event(parse_event(event_data), instance)
    except BrokenEventError:
        return None
    if event is None or event.row["source"] not in (UNDELIVERABLE, FORWARD_DROPPED):
        return None
    if event.row["error_number"] in SENT_AGAIN:
        return None
    return DroppedMessage(event.row["conversation_id"], event.row["error_number"], event.row["status_text"])


def are_named(rows: Sequence[TableRow]) -> bool:
    """Return True if permissions name their holders. The views of SQL Server only have ids."""
    return not rows or any(row["grantee_name"] is not None for row in rows)


def gives_send(row: TableRow, service: str) -> bool:
    """Return True for a grant that includes SEND on a service, and for a denial of SEND itself."""
    if row["permission_name"] == "CONTROL" and is_granted(row):
        return bool(row["object_name"] == service or row["class_desc"] == "DATABASE")
    return (row["object_name"], row["permission_name"]) == (service, "SEND")


def gives_connect(row: TableRow, endpoint: str | None) -> bool:
    """Return True if a permission is about connections to an endpoint. None stands for any endpoint."""
    names = {None if name is None else collated(name) for name in (row["endpoint_name"], endpoint)}
    is_of_endpoint = None in names or len(names) == 1
    return is_of_endpoint and row["permission_name"] in ("CONNECT", "CONTROL")


def is_endpoint(row: TableRow) -> bool:
    """Return True if there is an endpoint: the queries export the names of an instance without one as well."""
    return any(row[name] is not None for name in ("endpoint_id", "is_message_forwarding_enabled"))


def is_granted(row: TableRow) -> bool:
    """Return True if a permission is granted, and False if it is denied."""
    return (row["state_desc"] or "GRANT").startswith("GRANT")


def find_permission(part: str, number: int | None) -> str | None:
    """Return the missing permission behind an error, or None if it has another cause."""
    if number not in _DENIED:
        return None
    if part == _EVERY_PART:
        return "CONNECT ANY DATABASE"
    permission = TELLS[part][1] if part in TELLS else "VIEW ANY DEFINITION"
    return permission.partition(",")[0]
