"""Collect the facts behind a status of SQL Server, for the advice on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from routing.advice.remedy import UNKNOWN_INSTANCE, RemedyPlace
from routing.advice.status_meanings import StatusTrouble, find_numbers
from routing.advice.stuck_messages import AdviceEstate, UsedRoute
from routing.advice.trouble_catalogue import STATUSES, TroubleEntry
from routing.cases.message_cases import MessageCase
from routing.cases.server_evidence import ServerEvidence
from routing.rules import text
from routing.rules.estate import Database, SqlInstance
from routing.rules.locating import has_id
from routing.rules.resolving import Verdict

_IN_QUOTES = re.compile(r"\"([^\"]+)\"|'([^']+)'|«([^«»]+)»|„([^„“”]+)[“”]|“([^“”]+)”|「([^「」]+)」")


@dataclass(frozen=True)
class ReportedStatus:
    """The status of SQL Server in a case, with the origin and target of its messages by the files.

    ``trouble`` is the meaning of the status. ``broker`` is the broker instance of the messages, or None if it is
    unknown. ``supposed`` is the verdict of the case. If there is none, it is the common verdict for all possible
    contents of the missing exports, or None. ``peer`` is the other end of the connection if it is known without an
    address.
    """

    trouble: StatusTrouble
    case: MessageCase
    estate: AdviceEstate
    broker: str | None
    supposed: Verdict | None
    peer: str | None = None

    @property
    def instance(self) -> str:
        """The instance that reports the status, which is the sender's unless an error log is read."""
        return self.case.instance

    @property
    def database(self) -> str:
        """The sender's database."""
        return self.case.database or ""

    @property
    def service(self) -> str:
        """The service that the messages are for."""
        return self.case.service

    @property
    def sender_instance(self) -> SqlInstance:
        """The sender's instance."""
        return self.estate.find_instance(self.instance)

    @property
    def server(self) -> ServerEvidence:
        """The exports other than those of the routing."""
        return self.estate.server

    @property
    def place(self) -> RemedyPlace:
        """The sender's database."""
        return RemedyPlace(self.instance, self.database)

    @property
    def entry(self) -> TroubleEntry:
        """The words of the catalogue on the trouble."""
        return STATUSES[self.trouble]

    @property
    def address(self) -> str | None:
        """The network address of the messages, or None if they stay or it is unknown.

        Of a route with a mirror it is the address of the partner that is known to hold the service.
        """
        supposed = self.supposed
        address = None if supposed is None else supposed.address
        if text.host(address) is None:
            return None
        mirror = None if supposed is None else supposed.mirror_address
        return mirror if mirror is not None and self._holds(mirror) and not self._holds(address) else address

    @property
    def leads_to_mirror(self) -> bool:
        """Return True if the route's mirror address is the one at which the service is known to be."""
        return self.supposed is not None and self.address not in (None, self.supposed.address)

    @property
    def addresses(self) -> list[str]:
        """The addresses between which SQL Server chooses, or only that of the mirror with the service."""
        if self.address is None or self.supposed is None:
            return []
        return [self.address] if self.leads_to_mirror else self.supposed.addresses

    @property
    def scope(self) -> str:
        """The database of the route that decided: the sender's, or msdb after a route led back."""
        last = None if self.supposed is None else self.supposed.last
        return self.database if last is None else last.scope

    @property
    def route_place(self) -> RemedyPlace:
        """The place of the route that decided."""
        return RemedyPlace(self.instance, self.scope)

    @property
    def route(self) -> str | None:
        """The route that decided, or None if it is unknown."""
        return None if self.supposed is None else self.supposed.route_name

    @property
    def on_route(self) -> UsedRoute:
        """The use of the route that decided."""
        return UsedRoute(self.estate, self.address, self.service, self.route_place, self.route)

    @property
    def quoted_names(self) -> list[str]:
        """The quoted names in the text, in the quotes of any language."""
        return find_quoted(self.case.status_text.text or "")

    @property
    def numbers(self) -> set[int | None]:
        """SQL Server's number for the status, and those of exceptions and systems that its text names."""
        return {self.case.status_text.number, *find_numbers(self.case.status_text.text or "")}

    def has_no_endpoint(self, instance: str) -> bool:
        """Return True if the export of an instance's endpoints was read and has no Service Broker endpoint.

        An instance with an address has an endpoint: a script that was read creates it.
        """
        return self.server.has_no_endpoint(instance) and not self.estate.instances[instance].own_addresses

    def find_target_instance(self) -> SqlInstance | None:
        """Find the instance that listens at the address. Return None unless there is exactly one."""
        if self.address is None:
            return None
        owners = self.estate.network.owners(self.address, self.sender_instance)
        return owners[0] if len(owners) == 1 else None

    def find_peer(self) -> SqlInstance | None:
        """Find the instance at the other end of the connection, or the only one on the machine in the address.

        A listener leads to the current primary of its availability group.
        """
        if self.peer is not None:
            return self.estate.instances.get(self.peer)
        listener = self.server.listener(text.host(self.address))
        if listener is not None and listener.primary is not None:
            return self.estate.instances.get(listener.primary)
        return self.find_target_instance() or self.estate.find_instance_of_host(self.address)

    def find_peer_name(self) -> str | None:
        """Return the name of the other end of the connection, or None if it is unknown."""
        peer = self.find_peer()
        return None if peer is None else peer.name

    def find_target(self) -> RemedyPlace | None:
        """Return the place where the messages should arrive: the verdict's, or else the only possible one."""
        verdict = self.supposed
        if verdict is not None and verdict.destination_database is not None:
            return RemedyPlace(self.instance, verdict.destination_database)
        at_address = self.find_target_instance()
        if at_address is not None:
            return RemedyPlace(at_address.name, _only(self.list_holders(at_address)))
        if self.address is not None:
            on_machine = self.estate.find_instance_of_host(self.address)
            by_name = None if on_machine is None else _only(self.list_holders(on_machine))
            return None if on_machine is None or by_name is None else RemedyPlace(on_machine.name, by_name)
        own_database = _only(self.list_holders(self.sender_instance))
        if own_database is not None:
            return RemedyPlace(self.instance, own_database)
        targets = [
            RemedyPlace(name, _only(holders))
            for name, instance in self.estate.instances.items()
            if (holders := self.list_holders(instance))
        ]
        return targets[0] if len(targets) == 1 else None

    def list_owners(self, address: str | None) -> list[SqlInstance]:
        """Return the instances that listen at an address, or else the only one on its machine."""
        owners = self.estate.network.owners(address or "", self.sender_instance)
        on_machine = None if owners else self.estate.find_instance_of_host(address)
        return [*owners, *([] if on_machine is None else [on_machine])]

    def knows_endpoint_at(self, address: str | None) -> bool:
        """Return True if a known instance has an address, and by the exports may have an endpoint."""
        return not all(self.has_no_endpoint(owner.name) for owner in self.list_owners(address))

    def find_database_in_text(self) -> RemedyPlace | None:
        """Return the last database of the sender's instance that the text names in quotes, or None."""
        known_databases = {*self.sender_instance.databases, self.database}
        quoted_databases = [name for name in self.quoted_names if name in known_databases]
        return RemedyPlace(self.instance, quoted_databases[-1]) if quoted_databases else None

    def _holds(self, address: str | None) -> bool:
        return any(map(self.list_holders, self.list_owners(address)))

    def place_at_target(self) -> RemedyPlace:
        """Return the target's place, or that of an unknown instance."""
        return self.find_target() or RemedyPlace(UNKNOWN_INSTANCE)

    def list_holders(self, instance: SqlInstance) -> list[Database]:
        """Return the databases of an instance with the service that the messages may be for."""
        holders = instance.holders_of(self.service)
        in_own_database = [
            holder for holder in holders if instance.name == self.instance and holder.name == self.database
        ]
        return (
            in_own_database
            if in_own_database and self.broker is None
            else [database for database in holders if has_id(database, self.broker)]
        )


def find_quoted(line: str) -> list[str]:
    """Return the names in a text that stand in the quotes of any language."""
    return [next(name.strip() for name in groups if name) for groups in _IN_QUOTES.findall(line)]


def _only(databases: Sequence[Database]) -> str | None:
    return databases[0].name if len(databases) == 1 else None
