"""The views that show causes other than routing, such as queues, certificates and the error log.

`check` reads them if they were exported. `resolve` never needs them. A file may lack some of their columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_DEFINITION, _STATE = "VIEW ANY DEFINITION", "VIEW SERVER STATE"


class ViewQuery(NamedTuple):
    """The query that exports a view by way of a table.

    ``source`` is the text after FROM. ``columns`` has expressions for columns that the view does not have. The
    columns in ``people`` name logins and owners.
    """

    source: str
    columns: Mapping[str, str] = {}
    people: frozenset[str] = frozenset()
    only_with_people: bool = False


class EvidenceView(NamedTuple):
    """A view with the names of its columns by kind. ``known_by`` identifies it in a file with another name.

    ``purpose`` describes its use for `check`, and ``permission`` is the permission that its export needs.
    ``query`` is None if the script of queries exports it otherwise.
    """

    name: str
    known_by: str
    purpose: str
    texts: str
    integers: str = ""
    flags: str = ""
    permission: str = _DEFINITION
    per_database: bool = True
    query: ViewQuery | None = None


ONE = "(SELECT 1 AS one) AS one LEFT JOIN "
"""Joins a view to one row, so that an empty view has a row in the export too."""
_USER = "(SELECT u.name FROM {db}.sys.database_principals AS u WHERE u.principal_id = v."
_MESSAGES = (
    "(SELECT SUM(p.rows) FROM {db}.sys.internal_tables AS i JOIN {db}.sys.partitions AS p"
    " ON p.object_id = i.object_id AND p.index_id IN (0, 1)"
    " WHERE i.parent_object_id = v.object_id AND i.internal_type = 201)"
)

EVIDENCE_VIEWS = (
    EvidenceView(
        "service_queues",
        "name is_receive_enabled is_enqueue_enabled",
        "whether the queue is on, how full it is and which procedure reads it",
        texts="schema_name name activation_procedure execute_as_name",
        integers="object_id max_readers messages",
        flags="is_activation_enabled is_receive_enabled is_enqueue_enabled is_poison_message_handling_enabled"
        " is_retention_enabled",
        query=ViewQuery(
            f"{ONE}{{db}}.sys.service_queues AS v ON v.is_ms_shipped = 0",
            {
                "schema_name": "(SELECT s.name FROM {db}.sys.schemas AS s WHERE s.schema_id = v.schema_id)",
                "execute_as_name": f"{_USER}execute_as_principal_id)",
                "messages": _MESSAGES,
            },
            people=frozenset(["execute_as_name"]),
        ),
    ),
    EvidenceView(
        "dm_broker_queue_monitors",
        "queue_id last_activated_time tasks_waiting",
        "whether a program waits for the messages of the queue",
        permission=_STATE,
        texts="state last_empty_rowset_time last_activated_time",
        integers="database_id queue_id tasks_waiting",
        per_database=False,
        query=ViewQuery(f"{ONE}sys.dm_broker_queue_monitors AS v ON 1 = 1"),
    ),
    EvidenceView(
        "endpoint_counts",
        "state far_service endpoints",
        "how many conversation endpoints there are in each state",
        texts="state service_name far_service",
        integers="endpoints",
        flags="is_initiator",
        query=ViewQuery(
            f"{ONE}(SELECT e.state, s.name COLLATE DATABASE_DEFAULT AS service_name,"
            " e.far_service COLLATE DATABASE_DEFAULT AS far_service,"
            " e.is_initiator, COUNT_BIG(*) AS endpoints FROM {db}.sys.conversation_endpoints AS e"
            " LEFT JOIN {db}.sys.services AS s ON s.service_id = e.service_id"
            " GROUP BY e.state, s.name, e.far_service, e.is_initiator) AS v ON 1 = 1"
        ),
    ),
    EvidenceView(
        "certificates",
        "name certificate_id pvt_key_encryption_type_desc",
        "whose certificates are there, and whether they are valid",
        texts="name subject issuer_name start_date expiry_date pvt_key_encryption_type_desc user_name",
        integers="certificate_id principal_id",
        query=ViewQuery(
            f"{ONE}{{db}}.sys.certificates AS v ON v.name NOT LIKE N'##%'", {"user_name": f"{_USER}principal_id)"}
        ),
    ),
    EvidenceView(
        "remote_service_bindings",
        "name remote_service_name is_anonymous_on",
        "which user a dialog with encryption takes",
        texts="name remote_service_name user_name",
        flags="is_anonymous_on",
        query=ViewQuery(
            f"{ONE}{{db}}.sys.remote_service_bindings AS v ON 1 = 1", {"user_name": f"{_USER}remote_principal_id)"}
        ),
    ),
    EvidenceView(
        "database_permissions",
        "class_desc permission_name object_name grantee_name",
        "who may send to the service",
        texts="class_desc permission_name state_desc object_name grantee_name",
        query=ViewQuery(
            f"{ONE}({{db}}.sys.database_permissions AS v"
            " LEFT JOIN {db}.sys.services AS s ON v.class = 17 AND s.service_id = v.major_id"
            " AND s.service_id >= 65536"
            " JOIN {db}.sys.database_principals AS g ON g.principal_id = v.grantee_principal_id)"
            " ON s.service_id IS NOT NULL OR v.class = 0 AND v.permission_name = N'CONTROL'",
            {"object_name": "s.name", "grantee_name": "g.name"},
        ),
    ),
    EvidenceView(
        "database_role_members",
        "role_name member_name",
        "which users may send as members of a role",
        texts="role_name member_name",
        query=ViewQuery(
            f"{ONE}({{db}}.sys.database_role_members AS v"
            " JOIN {db}.sys.database_principals AS r ON r.principal_id = v.role_principal_id"
            " JOIN {db}.sys.database_principals AS m ON m.principal_id = v.member_principal_id) ON 1 = 1",
            {"role_name": "r.name", "member_name": "m.name"},
        ),
    ),
    EvidenceView(
        "server_permissions",
        "class_desc permission_name endpoint_name grantee_name",
        "who may connect to the endpoint",
        texts="class_desc permission_name state_desc endpoint_name grantee_name",
        per_database=False,
        query=ViewQuery(
            f"{ONE}(sys.server_permissions AS v JOIN sys.endpoints AS e ON e.endpoint_id = v.major_id"
            " AND e.type = 3"
            " JOIN sys.server_principals AS g ON g.principal_id = v.grantee_principal_id) ON v.class = 105",
            {"endpoint_name": "e.name", "grantee_name": "g.name"},
            only_with_people=True,
        ),
    ),
    EvidenceView(
        "symmetric_keys",
        "name symmetric_key_id",
        "whether the database has a master key",
        texts="name",
        integers="symmetric_key_id",
        query=ViewQuery(f"{ONE}{{db}}.sys.symmetric_keys AS v ON v.name = N'##MS_DatabaseMasterKey##'"),
    ),
    EvidenceView(
        "database_mirroring",
        "database_id mirroring_role_desc mirroring_partner_instance",
        "which partner of a mirroring session is the principal",
        texts="name mirroring_state_desc mirroring_role_desc mirroring_partner_instance",
        integers="database_id",
        per_database=False,
        query=ViewQuery(
            f"{ONE}(sys.database_mirroring AS v JOIN sys.databases AS d ON d.database_id = v.database_id)"
            " ON v.mirroring_guid IS NOT NULL",
            {"name": "d.name"},
        ),
    ),
    EvidenceView(
        "availability_replicas",
        "replica_server_name role_desc",
        "which replica of an availability group is the primary",
        permission=_STATE,
        texts="group_name replica_server_name role_desc endpoint_url",
        flags="is_local",
        per_database=False,
        query=ViewQuery(
            f"{ONE}(sys.availability_replicas AS v JOIN sys.availability_groups AS g ON g.group_id = v.group_id"
            " LEFT JOIN sys.dm_hadr_availability_replica_states AS s ON s.replica_id = v.replica_id) ON 1 = 1",
            {"group_name": "g.name", "role_desc": "s.role_desc", "is_local": "s.is_local"},
        ),
    ),
    EvidenceView(
        "availability_group_listeners",
        "dns_name port",
        "which names lead to the primary of an availability group",
        texts="group_name dns_name",
        integers="port addresses",
        per_database=False,
        query=ViewQuery(
            f"{ONE}(sys.availability_group_listeners AS v JOIN sys.availability_groups AS g"
            " ON g.group_id = v.group_id) ON 1 = 1",
            {
                "group_name": "g.name",
                "addresses": "(SELECT COUNT(*) FROM sys.availability_group_listener_ip_addresses AS i"
                " WHERE i.listener_id = v.listener_id)",
            },
        ),
    ),
    EvidenceView(
        "dm_broker_connections",
        "is_accept login_state_desc principal_name",
        "which connections are open, and how far their logins came",
        permission=_STATE,
        texts="state_desc login_state_desc principal_name remote_user_name connect_time last_activity_time",
        flags="is_accept",
        per_database=False,
        query=ViewQuery(
            f"{ONE}sys.dm_broker_connections AS v ON 1 = 1",
            people=frozenset(["principal_name", "remote_user_name"]),
        ),
    ),
    EvidenceView(
        "dm_broker_forwarded_messages",
        "adjacent_broker_address",
        "which messages the instance forwards now",
        permission=_STATE,
        texts="to_service_name to_broker_instance from_service_name adjacent_broker_address conversation_id",
        integers="hops_remaining message_sequence_number",
        per_database=False,
        query=ViewQuery(f"{ONE}sys.dm_broker_forwarded_messages AS v ON 1 = 1"),
    ),
    EvidenceView(
        "server_properties",
        "engine_edition product_version",
        "which edition and version the instance is",
        permission="none",
        texts="machine_name full_name edition product_version",
        integers="engine_edition",
        per_database=False,
        query=ViewQuery(
            "(SELECT 1 AS one) AS v",
            {
                "machine_name": "@machine_name",
                "full_name": "@full_name",
                "edition": "CONVERT(nvarchar(128), SERVERPROPERTY('Edition'))",
                "product_version": "CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion'))",
                "engine_edition": "CONVERT(int, SERVERPROPERTY('EngineEdition'))",
            },
        ),
    ),
    EvidenceView(
        "error_log",
        "log_date text",
        "what the instance wrote about Service Broker in the last 7 days",
        permission="EXECUTE on master.sys.xp_readerrorlog, or membership in securityadmin",
        texts="log_date text",
        per_database=False,
    ),
    EvidenceView(
        "broker_events",
        "event_name event_data",
        "which messages the instance threw away, if it runs the session of sbroute import queries --events",
        permission=_STATE,
        texts="event_name event_data",
        per_database=False,
    ),
    EvidenceView(
        "export_errors",
        "part of_database error_number",
        "which parts of an export were refused",
        permission="none",
        texts="part of_database message",
        integers="error_number left_out",
        per_database=False,
    ),
)
"""In the order in which the queries export them."""
