"""The views that show causes other than routing, such as queues, certificates and the error log.

`check` reads them if they were exported. `resolve` never needs them. A file may lack some of their columns.
"""

from __future__ import annotations

from typing import NamedTuple

_DEFINITION, _STATE = "VIEW ANY DEFINITION", "VIEW SERVER STATE"


class EvidenceView(NamedTuple):
    """A view with the names of its columns by kind. ``known_by`` identifies it in a file with another name.

    ``purpose`` describes its use for `check`, and ``permission`` is the permission that its export needs.
    """

    name: str
    known_by: str
    purpose: str
    texts: str
    integers: str = ""
    flags: str = ""
    permission: str = _DEFINITION
    per_database: bool = True


EVIDENCE_VIEWS = (
    EvidenceView(
        "service_queues",
        "name is_receive_enabled is_enqueue_enabled",
        "whether the queue is on, how full it is and which procedure reads it",
        texts="schema_name name activation_procedure execute_as_name",
        integers="object_id max_readers messages",
        flags="is_activation_enabled is_receive_enabled is_enqueue_enabled is_poison_message_handling_enabled"
        " is_retention_enabled",
    ),
    EvidenceView(
        "dm_broker_queue_monitors",
        "queue_id last_activated_time tasks_waiting",
        "whether a program waits for the messages of the queue",
        permission=_STATE,
        texts="state last_empty_rowset_time last_activated_time",
        integers="database_id queue_id tasks_waiting",
        per_database=False,
    ),
    EvidenceView(
        "endpoint_counts",
        "state far_service endpoints",
        "how many conversation endpoints there are in each state",
        texts="state service_name far_service",
        integers="endpoints",
        flags="is_initiator",
    ),
    EvidenceView(
        "certificates",
        "name certificate_id pvt_key_encryption_type_desc",
        "whose certificates are there, and whether they are valid",
        texts="name subject issuer_name start_date expiry_date pvt_key_encryption_type_desc user_name",
        integers="certificate_id principal_id",
    ),
    EvidenceView(
        "remote_service_bindings",
        "name remote_service_name is_anonymous_on",
        "which user a dialog with encryption takes",
        texts="name remote_service_name user_name",
        flags="is_anonymous_on",
    ),
    EvidenceView(
        "database_permissions",
        "class_desc permission_name object_name grantee_name",
        "who may send to the service",
        texts="class_desc permission_name state_desc object_name grantee_name",
    ),
    EvidenceView(
        "database_role_members",
        "role_name member_name",
        "which users may send as members of a role",
        texts="role_name member_name",
    ),
    EvidenceView(
        "server_permissions",
        "class_desc permission_name endpoint_name grantee_name",
        "who may connect to the endpoint",
        texts="class_desc permission_name state_desc endpoint_name grantee_name",
        per_database=False,
    ),
    EvidenceView(
        "symmetric_keys",
        "name symmetric_key_id",
        "whether the database has a master key",
        texts="name",
        integers="symmetric_key_id",
    ),
    EvidenceView(
        "database_mirroring",
        "database_id mirroring_role_desc mirroring_partner_instance",
        "which partner of a mirroring session is the principal",
        texts="name mirroring_state_desc mirroring_role_desc mirroring_partner_instance",
        integers="database_id",
        per_database=False,
    ),
    EvidenceView(
        "availability_replicas",
        "replica_server_name role_desc",
        "which replica of an availability group is the primary",
        permission=_STATE,
        texts="group_name replica_server_name role_desc endpoint_url",
        flags="is_local",
        per_database=False,
    ),
    EvidenceView(
        "availability_group_listeners",
        "dns_name port",
        "which names lead to the primary of an availability group",
        texts="group_name dns_name",
        integers="port addresses",
        per_database=False,
    ),
    EvidenceView(
        "dm_broker_connections",
        "is_accept login_state_desc principal_name",
        "which connections are open, and how far their logins came",
        permission=_STATE,
        texts="state_desc login_state_desc principal_name remote_user_name connect_time last_activity_time",
        flags="is_accept",
        per_database=False,
    ),
    EvidenceView(
        "dm_broker_forwarded_messages",
        "adjacent_broker_address",
        "which messages the instance forwards now",
        permission=_STATE,
        texts="to_service_name to_broker_instance from_service_name adjacent_broker_address conversation_id",
        integers="hops_remaining message_sequence_number",
        per_database=False,
    ),
    EvidenceView(
        "server_properties",
        "engine_edition product_version",
        "which edition and version the instance is",
        permission="none",
        texts="machine_name full_name edition product_version",
        integers="engine_edition",
        per_database=False,
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
