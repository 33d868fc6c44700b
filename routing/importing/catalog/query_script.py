"""Write the T-SQL script that exports the views from an instance: one query for each, tried by itself."""

from __future__ import annotations

from importlib.resources import files
from textwrap import wrap

from routing.importing.catalog.evidence_views import EVIDENCE_VIEWS, ONE, ViewQuery
from routing.importing.catalog.views import VIEWS, CatalogView, CellKind
from routing.rules.observed import NUMBERS

MOST_ENDPOINTS = 1_000_000
"""The most conversation endpoints, and rows of the queue, that the script exports of a database by default."""


QUERIES = {
    "databases": ViewQuery(
        "sys.databases AS v",
        {
            "owner_sid": "CONVERT(varchar(180), v.owner_sid, 1)",
            "owner_name": "SUSER_SNAME(v.owner_sid)",
            "owner_is_known": "CASE WHEN SUSER_SNAME(v.owner_sid) IS NULL THEN 0 ELSE 1 END",
        },
        people=frozenset(["owner_sid", "owner_name"]),
    ),
    "service_broker_endpoints": ViewQuery(
        f"{ONE}sys.service_broker_endpoints AS v ON 1 = 1"
        " LEFT JOIN sys.tcp_endpoints AS t ON t.endpoint_id = v.endpoint_id",
        {
            **{name: f"@{name}" for name in ("machine_name", "full_name", "listener_names")},
            "port": "t.port",
            "certificate_name": "(SELECT c.name FROM master.sys.certificates AS c"
            " WHERE c.certificate_id = v.certificate_id)",
        },
    ),
    "tcp_endpoints": ViewQuery("sys.tcp_endpoints AS v WHERE v.type = 3"),
    "routes": ViewQuery(
        f"{ONE}{{db}}.sys.routes AS v ON 1 = 1", {"lifetime": "CONVERT(varchar(30), v.lifetime, 126)"}
    ),
    "services": ViewQuery(f"{ONE}{{db}}.sys.services AS v ON 1 = 1"),
    **{view.name: view.query for view in EVIDENCE_VIEWS if view.query is not None},
}
"""The queries by their view, in the order in which they are tried."""

_ENDPOINTS = ViewQuery(
    f"{ONE}{{db}}.sys.conversation_endpoints AS v ON v.state <> 'CD' OR EXISTS (SELECT 1"
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
    parts = {VIEWS[name]: query for name, query in QUERIES.items() if with_people or not query.only_with_people}
    width = max(len(VIEWS[name].columns) for name in QUERIES)
    counts = [column.name for column in VIEWS["endpoint_counts"].columns]
    filled_in = {
        "permissions": "\n".join(_permissions()),
        "most": str(most_endpoints),
        "columns": ", ".join(f"c{number} nvarchar(4000)" for number in range(1, width + 1)),
        "parts": "\n".join(_insert(view, query, width, with_people=with_people) for view, query in parts.items()),
        "selects": "\n\n".join(map(_select, parts)),
        "endpoints": _double(_stream(VIEWS["conversation_endpoints"], _ENDPOINTS)),
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


def _expressions(view: CatalogView, query: ViewQuery, *, with_people: bool) -> list[str]:
    return [
        "NULL"
        if not with_people and column.name in query.people
        else query.columns.get(column.name)
        or (f"CONVERT(varchar(30), v.{column.name}, 126)" if column.name in _TIMES else f"v.{column.name}")
        for column in view.columns
    ]


def _insert(view: CatalogView, query: ViewQuery, width: int, *, with_people: bool) -> str:
    """Write the statement that adds a part; its query pads its columns to a width."""
    expressions = _expressions(view, query, with_people=with_people)
    padded = [f"'{view.name}'", "{name}", *expressions, *["NULL"] * (width - len(expressions))]
    text = f"SELECT {', '.join(padded)} FROM {query.source}"
    is_of_databases = int(view.per_database)
    return (
        f"INSERT INTO @parts (part, is_of_databases, query) VALUES ('{view.name}', {is_of_databases},\n"
        f"    N'{_double(text)}');"
    )


def _quoted(expression: str) -> str:
    return f"""'"' + REPLACE({expression}, '"', '""') + '"'"""


def _head(view: CatalogView, database: str) -> list[str]:
    head = [f"'{view.name}' AS view_name", f"{_quoted('@instance_name')} AS instance_name"]
    if view.per_database:
        head.append(f"{_quoted(database)} AS database_name")
    return [*head, "@exported_at AS exported_at"]


def _select(view: CatalogView) -> str:
    columns = [
        f"{_quoted(f'r.c{number}') if column.kind is CellKind.TEXT else f'r.c{number}'} AS {column.name}"
        for number, column in enumerate(view.columns, 1)
    ]
    lines = ",\n    ".join([*_head(view, "r.database_name"), *columns])
    return f"SELECT {lines}\nFROM @rows AS r\nWHERE r.part = '{view.name}';"


def _stream(view: CatalogView, query: ViewQuery) -> str:
    """Write the query of a view that sends each row to the client at once."""
    columns = []
    for column in view.columns:
        expression = query.columns.get(column.name) or f"v.{column.name}"
        is_text = column.kind is CellKind.TEXT
        value = _quoted(f"{expression} COLLATE Latin1_General_BIN") if is_text else expression
        columns.append(f"{value} AS {column.name}")
    lines = ",\n    ".join([*_head(view, "{name}"), *columns])
    return f"SELECT TOP (@most) {lines}\nFROM {query.source}"
