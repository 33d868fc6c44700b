"""Write the T-SQL script that exports the views from an instance: one query for each, tried by itself."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from textwrap import wrap
from typing import NamedTuple

from routing.importing.catalog.evidence_views import EVIDENCE_VIEWS
from routing.importing.catalog.views import VIEWS, CellKind
from routing.rules.observed import NUMBERS

MOST_ENDPOINTS = 1_000_000
"""The most conversation endpoints, and rows of the queue, that the script exports of a database by default."""


class QueryPart(NamedTuple):
    """The query of one view.

    ``source`` is the text after FROM. ``columns`` has expressions for columns that the view does not have. The
    columns in ``people`` name logins and owners.
    """

    view: str
    source: str
    columns: Mapping[str, str] = {}
    people: frozenset[str] = frozenset()
    only_with_people: bool = False


_ONE = "(SELECT 1 AS one) AS one LEFT JOIN "
_USER = "(SELECT u.name FROM {db}.sys.database_principals AS u WHERE u.principal_id = v."
_MESSAGES = (
    "(SELECT SUM(p.rows) FROM {db}.sys.internal_tables AS i JOIN {db}.sys.partitions AS p"
    " ON p.object_id = i.object_id AND p.index_id IN (0, 1)"
    " WHERE i.parent_object_id = v.object_id AND i.internal_type = 201)"
)

PARTS = (
    QueryPart(
        "databases",
        "sys.databases AS v",
        {
            "owner_sid": "CONVERT(varchar(180), v.owner_sid, 1)",
            "owner_name": "SUSER_SNAME(v.owner_sid)",
            "owner_is_known": "CASE WHEN SUSER_SNAME(v.owner_sid) IS NULL THEN 0 ELSE 1 END",
        },
        people=frozenset(["owner_sid", "owner_name"]),
    ),
    QueryPart(
        "service_broker_endpoints",
        f"{_ONE}sys.service_broker_endpoints AS v ON 1 = 1"
        " LEFT JOIN sys.tcp_endpoints AS t ON t.endpoint_id = v.endpoint_id",
        {
            **{name: f"@{name}" for name in ("machine_name", "full_name", "listener_names")},
            "port": "t.port",
            "certificate_name": "(SELECT c.name FROM master.sys.certificates AS c"
            " WHERE c.certificate_id = v.certificate_id)",
        },
    ),
    QueryPart("tcp_endpoints", "sys.tcp_endpoints AS v WHERE v.type = 3"),
    QueryPart(
        "routes", f"{_ONE}{{db}}.sys.routes AS v ON 1 = 1", {"lifetime": "CONVERT(varchar(30), v.lifetime, 126)"}
    ),
    QueryPart("services", f"{_ONE}{{db}}.sys.services AS v ON 1 = 1"),
    QueryPart(
        "service_queues",
        f"{_ONE}{{db}}.sys.service_queues AS v ON v.is_ms_shipped = 0",
        {
            "schema_name": "(SELECT s.name FROM {db}.sys.schemas AS s WHERE s.schema_id = v.schema_id)",
            "execute_as_name": f"{_USER}execute_as_principal_id)",
            "messages": _MESSAGES,
        },
        people=frozenset(["execute_as_name"]),
    ),
    QueryPart("dm_broker_queue_monitors", f"{_ONE}sys.dm_broker_queue_monitors AS v ON 1 = 1"),
    QueryPart(
        "endpoint_counts",
        f"{_ONE}(SELECT e.state, s.name COLLATE DATABASE_DEFAULT AS service_name,"
        " e.far_service COLLATE DATABASE_DEFAULT AS far_service,"
        " e.is_initiator, COUNT_BIG(*) AS endpoints FROM {db}.sys.conversation_endpoints AS e"
        " LEFT JOIN {db}.sys.services AS s ON s.service_id = e.service_id"
        " GROUP BY e.state, s.name, e.far_service, e.is_initiator) AS v ON 1 = 1",
    ),
    QueryPart(
        "certificates",
        f"{_ONE}{{db}}.sys.certificates AS v ON v.name NOT LIKE N'##%'",
        {"user_name": f"{_USER}principal_id)"},
    ),
    QueryPart(
        "remote_service_bindings",
        f"{_ONE}{{db}}.sys.remote_service_bindings AS v ON 1 = 1",
        {"user_name": f"{_USER}remote_principal_id)"},
    ),
    QueryPart(
        "database_permissions",
        f"{_ONE}({{db}}.sys.database_permissions AS v"
        " LEFT JOIN {db}.sys.services AS s ON v.class = 17 AND s.service_id = v.major_id AND s.service_id >= 65536"
        " JOIN {db}.sys.database_principals AS g ON g.principal_id = v.grantee_principal_id)"
        " ON s.service_id IS NOT NULL OR v.class = 0 AND v.permission_name = N'CONTROL'",
        {"object_name": "s.name", "grantee_name": "g.name"},
    ),
    QueryPart(
        "database_role_members",
        f"{_ONE}({{db}}.sys.database_role_members AS v"
        " JOIN {db}.sys.database_principals AS r ON r.principal_id = v.role_principal_id"
        " JOIN {db}.sys.database_principals AS m ON m.principal_id = v.member_principal_id) ON 1 = 1",
        {"role_name": "r.name", "member_name": "m.name"},
    ),
    QueryPart(
        "server_permissions",
        f"{_ONE}(sys.server_permissions AS v JOIN sys.endpoints AS e ON e.endpoint_id = v.major_id AND e.type = 3"
        " JOIN sys.server_principals AS g ON g.principal_id = v.grantee_principal_id) ON v.class = 105",
        {"endpoint_name": "e.name", "grantee_name": "g.name"},
        only_with_people=True,
    ),
    QueryPart("symmetric_keys", f"{_ONE}{{db}}.sys.symmetric_keys AS v ON v.name = N'##MS_DatabaseMasterKey##'"),
    QueryPart(
        "database_mirroring",
        f"{_ONE}(sys.database_mirroring AS v JOIN sys.databases AS d ON d.database_id = v.database_id)"
        " ON v.mirroring_guid IS NOT NULL",
        {"name": "d.name"},
    ),
    QueryPart(
        "availability_replicas",
        f"{_ONE}(sys.availability_replicas AS v JOIN sys.availability_groups AS g ON g.group_id = v.group_id"
        " LEFT JOIN sys.dm_hadr_availability_replica_states AS s ON s.replica_id = v.replica_id) ON 1 = 1",
        {"group_name": "g.name", "role_desc": "s.role_desc", "is_local": "s.is_local"},
    ),
    QueryPart(
        "availability_group_listeners",
        f"{_ONE}(sys.availability_group_listeners AS v JOIN sys.availability_groups AS g"
        " ON g.group_id = v.group_id) ON 1 = 1",
        {
            "group_name": "g.name",
            "addresses": "(SELECT COUNT(*) FROM sys.availability_group_listener_ip_addresses AS i"
            " WHERE i.listener_id = v.listener_id)",
        },
    ),
    QueryPart(
        "dm_broker_connections",
        f"{_ONE}sys.dm_broker_connections AS v ON 1 = 1",
        people=frozenset(["principal_name", "remote_user_name"]),
    ),
    QueryPart("dm_broker_forwarded_messages", f"{_ONE}sys.dm_broker_forwarded_messages AS v ON 1 = 1"),
    QueryPart(
        "server_properties",
        "(SELECT 1 AS one) AS v",
        {
            "machine_name": "@machine_name",
            "full_name": "@full_name",
            "edition": "CONVERT(nvarchar(128), SERVERPROPERTY('Edition'))",
            "product_version": "CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion'))",
            "engine_edition": "CONVERT(int, SERVERPROPERTY('EngineEdition'))",
        },
    ),
)
"""The parts that come by way of a table, in the order in which they are tried."""

_ENDPOINTS = QueryPart(
    "conversation_endpoints",
    f"{_ONE}{{db}}.sys.conversation_endpoints AS v ON v.state <> 'CD' OR EXISTS (SELECT 1"
    " FROM {db}.sys.transmission_queue AS q WHERE q.conversation_handle = v.conversation_handle)",
    {
        "lifetime": "CONVERT(varchar(30), v.lifetime, 126)",
        "security_timestamp": "CONVERT(varchar(30), v.security_timestamp, 126)",
        "service_name": "(SELECT s.name FROM {db}.sys.services AS s WHERE s.service_id = v.service_id)",
    },
)
# Of the error log, when people are not to be named: its lines name logins and addresses.
_READ_LOG = """BEGIN TRY
    DECLARE @since datetime;
    SET @since = DATEADD(day, -7, GETDATE());
    INSERT INTO @log EXEC master.sys.xp_readerrorlog 0, 1, NULL, NULL, @since, NULL, N'desc';
END TRY
BEGIN CATCH
    INSERT INTO @errors (part, error_number, message) VALUES ('error_log', ERROR_NUMBER(), ERROR_MESSAGE());
END CATCH;"""
_SKIP_LOG = """INSERT INTO @errors (part, message) VALUES ('error_log', N'left out by --no-people');"""
_TIMES = frozenset(
    [f"{name}_time" for name in ("connect", "last_activity", "last_empty_rowset", "last_activated")]
    + ["start_date", "expiry_date"]
)


def queries(*, of_events: bool = False, with_people: bool = True, most_endpoints: int = MOST_ENDPOINTS) -> str:
    """Return the script as text; it only reads, and returns one result set a view.

    ``of_events``: the one that records the broker's events instead, and reads them. Without ``with_people`` it
    leaves logins, owners and client addresses out. It exports at most ``most_endpoints`` conversation endpoints,
    and as many rows of the queue, of a database.
    """
    if of_events:
        return _text("events.sql")
    parts = [part for part in PARTS if with_people or not part.only_with_people]
    width = max(len(VIEWS[part.view].columns) for part in PARTS)
    counts = [column.name for column in VIEWS["endpoint_counts"].columns]
    filled_in = {
        "permissions": "\n".join(_permissions()),
        "most": str(most_endpoints),
        "columns": ", ".join(f"c{number} nvarchar(4000)" for number in range(1, width + 1)),
        "parts": "\n".join(_insert(part, width, with_people=with_people) for part in parts),
        "selects": "\n\n".join(map(_select, parts)),
        "endpoints": _double(_stream(_ENDPOINTS)),
        "count_of_endpoints": f"c{counts.index('endpoints') + 1}",
        "state_of_endpoints": f"c{counts.index('state') + 1}",
        "numbers": "\n    ".join(["", *wrap(", ".join(map(str, sorted(NUMBERS))), 110)]),
        "read_log": _READ_LOG if with_people else _SKIP_LOG,
    }
    script = _text("queries.sql")
    for name, value in filled_in.items():
        script = script.replace(f"{{{name}}}", value)
    return script


def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _permissions() -> list[str]:
    by_permission: dict[str, list[str]] = {}
    for view in EVIDENCE_VIEWS:
        by_permission.setdefault(view.permission, []).append(view.name)
    needed = ((permission, names) for permission, names in by_permission.items() if permission != "none")
    return [f"--   {permission}: {', '.join(names)}" for permission, names in needed]


def _double(text: str) -> str:
    return text.replace("'", "''")


def _expressions(part: QueryPart, *, with_people: bool) -> list[str]:
    return [
        "NULL"
        if not with_people and column.name in part.people
        else part.columns.get(column.name)
        or (f"CONVERT(varchar(30), v.{column.name}, 126)" if column.name in _TIMES else f"v.{column.name}")
        for column in VIEWS[part.view].columns
    ]


def _insert(part: QueryPart, width: int, *, with_people: bool) -> str:
    """Write the statement that adds a part; its query pads its columns to a width."""
    expressions = _expressions(part, with_people=with_people)
    padded = [f"'{part.view}'", "{name}", *expressions, *["NULL"] * (width - len(expressions))]
    query = f"SELECT {', '.join(padded)} FROM {part.source}"
    is_of_databases = int(VIEWS[part.view].per_database)
    return (
        f"INSERT INTO @parts (part, is_of_databases, query) VALUES ('{part.view}', {is_of_databases},\n"
        f"    N'{_double(query)}');"
    )


def _quoted(expression: str) -> str:
    return f"""'"' + REPLACE({expression}, '"', '""') + '"'"""


def _head(part: QueryPart, database: str) -> list[str]:
    head = [f"'{part.view}' AS view_name", f"{_quoted('@instance_name')} AS instance_name"]
    if VIEWS[part.view].per_database:
        head.append(f"{_quoted(database)} AS database_name")
    return [*head, "@exported_at AS exported_at"]


def _select(part: QueryPart) -> str:
    columns = [
        f"{_quoted(f'r.c{number}') if column.kind is CellKind.TEXT else f'r.c{number}'} AS {column.name}"
        for number, column in enumerate(VIEWS[part.view].columns, 1)
    ]
    lines = ",\n    ".join([*_head(part, "r.database_name"), *columns])
    return f"SELECT {lines}\nFROM @rows AS r\nWHERE r.part = '{part.view}';"


def _stream(part: QueryPart) -> str:
    """Write the query of a part that sends each row to the client at once."""
    columns = []
    for column in VIEWS[part.view].columns:
        expression = part.columns.get(column.name) or f"v.{column.name}"
        is_text = column.kind is CellKind.TEXT
        value = _quoted(f"{expression} COLLATE Latin1_General_BIN") if is_text else expression
        columns.append(f"{value} AS {column.name}")
    lines = ",\n    ".join([*_head(part, "{name}"), *columns])
    return f"SELECT TOP (@most) {lines}\nFROM {part.source}"
