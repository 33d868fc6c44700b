"""Write the rows of the input tables a line at a time, whole rows in a fixed column order."""

from __future__ import annotations

from datetime import datetime

from routing.schemas import INPUTS

Row = dict[str, object]
Tables = dict[str, list[Row]]

_FIRST_USER_DATABASE_ID = 5
_MSDB_ID = 4


class EstateDraft:
    """Tables under construction. Every row has every column, with null as default."""

    def __init__(self) -> None:
        self.tables: Tables = {name: [] for name in INPUTS}
        self._database_ids: dict[str, int] = {}

    def _add(self, table: str, **values: object) -> None:
        columns = INPUTS[table].names
        unknown = values.keys() - set(columns)
        if unknown:
            raise TypeError(f"{table} has no column {', '.join(sorted(unknown))}")
        self.tables[table].append({column: values.get(column) for column in columns})

    def instance(self, name: str, *addresses: str, forwarding: bool | None = False) -> None:
        """Add an instance with its own network addresses. ``forwarding`` is None if it is unknown."""
        self._add(
            "instances",
            instance_name=name,
            is_message_forwarding_enabled=forwarding,
            addresses=list(addresses),
        )

    def database(self, instance: str, name: str, broker_id: str, *services: str, enabled: bool = True) -> None:
        """Add a database with its broker instance and the services that it holds."""
        database_id = _MSDB_ID
        if name != "msdb":
            database_id = self._database_ids.get(instance, _FIRST_USER_DATABASE_ID)
            self._database_ids[instance] = database_id + 1
        self._add(
            "databases",
            instance_name=instance,
            name=name,
            database_id=database_id,
            service_broker_guid=broker_id,
            is_broker_enabled=enabled,
        )
        for service in services:
            self._add("services", instance_name=instance, database_name=name, name=service)

    def route(
        self,
        instance: str,
        database: str,
        name: str,
        address: str,
        service: str | None = None,
        broker: str | None = None,
        **other_columns: object,
    ) -> None:
        """Add a route. ``other_columns`` may have mirror_address, lifetime, valid_from and valid_to."""
        self._add(
            "routes",
            instance_name=instance,
            database_name=database,
            name=name,
            address=address,
            remote_service_name=service,
            broker_instance=broker,
            **other_columns,
        )

    def local(self, instance: str, *databases: str) -> None:
        """Add the route AutoCreatedLocal, which every new database has, to each of the databases."""
        for database in databases:
            self.route(instance, database, "AutoCreatedLocal", "LOCAL")

    def message(
        self,
        message_id: str,
        conversation_id: str,
        at: datetime,
        instance: str,
        database: str | None,
        service: str,
        broker: str | None = None,
        *,
        is_initiator: bool = True,
        sequence: int = 0,
        **other_columns: object,
    ) -> None:
        """Add a message sent from a database, or with None one that arrived over the network.

        ``other_columns``: observed_at, hops_remaining, from_service_name.
        """
        self._add(
            "messages",
            message_id=message_id,
            conversation_id=conversation_id,
            is_initiator=is_initiator,
            message_sequence_number=sequence,
            enqueue_time=at,
            instance_name=instance,
            database_name=database,
            to_service_name=service,
            to_broker_instance=broker,
            **other_columns,
        )

    def dialog(
        self,
        instance: str,
        database: str,
        conversation_id: str,
        *,
        is_initiator: bool = True,
        **other_columns: object,
    ) -> None:
        """Add one endpoint of a conversation. ``other_columns`` has other columns of dialogs."""
        self._add(
            "dialogs",
            instance_name=instance,
            database_name=database,
            conversation_id=conversation_id,
            is_initiator=is_initiator,
            **other_columns,
        )

    def request(
        self,
        instance: str,
        database: str,
        service: str,
        at: datetime,
        message_id: str,
        ended_at: datetime | None = None,
        conversation: str | None = None,
    ) -> None:
        """Add a route request to the record, open without ``ended_at``, with its conversation if known."""
        self._add(
            "route_requests",
            instance_name=instance,
            database_name=database,
            service_name=service,
            requested_at=at,
            message_id=message_id,
            ended_at=ended_at,
            conversation_id=conversation,
            is_initiator=None if conversation is None else True,
        )
