"""The views that an export holds: their columns, by the names and in the order that they have."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from routing.errors import InputError
from routing.importing.catalog.cell_rows import CellRows
from routing.importing.catalog.evidence_views import EVIDENCE_VIEWS, EvidenceView
from routing.importing.import_faults import unreadable_file


class CellKind(Enum):
    """The kind of a column's cells."""

    TEXT = "text"
    GUID = "a GUID"
    INTEGER = "an integer"
    FLAG = "0 or 1"
    TIME = "a time"


@dataclass(frozen=True)
class ViewColumn:
    """A column that is read. A row without a value in a ``required`` column is rejected.

    ``longest`` is the maximal length of a text in SQL Server, in UTF-16 units, or None without a limit. A column
    with ``is_evidence`` is only used by `check`. No table needs it, and its unreadable values are NULL.
    """

    name: str
    kind: CellKind = CellKind.TEXT
    required: bool = False
    longest: int | None = None
    is_evidence: bool = False


@dataclass(frozen=True)
class CatalogView:
    """A view with the columns that are read, and the columns that identify it in files without a header.

    ``layout`` has the view's own columns in the manual's order. It is empty if versions of SQL Server differ.
    ``known_by`` has columns that no other view has together. ``exported`` has the columns of ``queries.sql``, and
    ``exported_before`` those of its earlier releases. A view of ``evidence`` shows causes other than routing. Only
    `check` reads it.
    """

    name: str
    columns: tuple[ViewColumn, ...]
    per_database: bool = True
    layout: tuple[str, ...] = ()
    known_by: frozenset[str] = frozenset()
    exported: tuple[str, ...] = ()
    exported_before: tuple[tuple[str, ...], ...] = ()
    evidence: bool = False

    @property
    def of_queries(self) -> tuple[tuple[str, ...], ...]:
        """Everything that ``queries.sql`` has ever exported, the columns of today first."""
        return (self.exported, *self.exported_before)

    @cached_property
    def own_names(self) -> frozenset[str]:
        """All names of its columns in any export."""
        return frozenset((*self.layout, *self.exported))

    @cached_property
    def added_columns(self) -> tuple[str, ...]:
        """The columns that the view itself has not."""
        return _added_columns(self.per_database)

    def column(self, name: str) -> ViewColumn | None:
        """Return the column of this name, those added to the view included."""
        return next((column for column in (*_ADDED, *self.columns) if column.name == name), None)


VIEW_NAME = "view_name"
"""The column by which a result set says what it is, whatever its file is called."""

_NAME, _SERVICE, _BROKER, _ADDRESS = 128, 256, 128, 256
_ADDED = (
    ViewColumn("instance_name", longest=256),
    ViewColumn("database_name", longest=_NAME),
    ViewColumn("exported_at", CellKind.TIME),
)


def _added_columns(per_database: bool) -> tuple[str, ...]:
    return tuple(column.name for column in _ADDED if per_database or column.name != "database_name")


def _view(
    name: str,
    columns: tuple[ViewColumn, ...],
    *,
    known_by: str,
    layout: str = "",
    added: tuple[str, ...] = (),
    per_database: bool = True,
) -> CatalogView:
    """Return a view; ``added`` are columns that the queries did not always export, the newest first.

    The evidence columns were all added together after these columns.
    """
    exported = (VIEW_NAME, *_added_columns(per_database), *(column.name for column in columns))
    evidence = tuple(column.name for column in columns if column.is_evidence)
    steps = [
        *([evidence] if evidence else []),
        *((*evidence, *added[:number]) for number in range(1, len(added) + 1)),
    ]
    before = tuple(tuple(column for column in exported if column not in step) for step in steps)
    layout_columns, known_by_columns = tuple(layout.split()), frozenset(known_by.split())
    return CatalogView(name, columns, per_database, layout_columns, known_by_columns, exported, before)


def evidence_columns(names: str, kind: CellKind = CellKind.TEXT) -> tuple[ViewColumn, ...]:
    """Return evidence columns of one kind, from their names."""
    return tuple(ViewColumn(name, kind, is_evidence=True) for name in names.split())


def _evidence(evidence_view: EvidenceView) -> CatalogView:
    columns = (
        *evidence_columns(evidence_view.texts),
        *evidence_columns(evidence_view.flags, CellKind.FLAG),
        *evidence_columns(evidence_view.integers, CellKind.INTEGER),
    )
    view = _view(
        evidence_view.name, columns, known_by=evidence_view.known_by, per_database=evidence_view.per_database
    )
    return replace(view, evidence=True)


VIEWS = {
    view.name: view
    for view in (
        _view(
            "routes",
            (
                ViewColumn("name", required=True, longest=_NAME),
                ViewColumn("remote_service_name", longest=_SERVICE),
                ViewColumn("broker_instance", longest=_BROKER),
                ViewColumn("lifetime", CellKind.TIME),
                ViewColumn("address", required=True, longest=_ADDRESS),
                ViewColumn("mirror_address", longest=_ADDRESS),
            ),
            known_by="name remote_service_name address",
            layout="name route_id principal_id remote_service_name broker_instance lifetime address"
            " mirror_address",
        ),
        _view(
            "databases",
            (
                ViewColumn("name", required=True, longest=_NAME),
                ViewColumn("database_id", CellKind.INTEGER),
                ViewColumn("service_broker_guid", CellKind.GUID, required=True),
                ViewColumn("is_broker_enabled", CellKind.FLAG),
                *evidence_columns("owner_sid owner_name state_desc user_access_desc containment_desc"),
                *evidence_columns("owner_is_known is_trustworthy_on is_read_only is_in_standby", CellKind.FLAG),
                *evidence_columns("is_master_key_encrypted_by_server", CellKind.FLAG),
                *evidence_columns("replica_id group_database_id", CellKind.GUID),
                *evidence_columns("source_database_id", CellKind.INTEGER),
            ),
            known_by="name service_broker_guid",
            per_database=False,
        ),
        _view(
            "services",
            (
                ViewColumn("name", required=True, longest=_NAME),
                *evidence_columns("service_id service_queue_id", CellKind.INTEGER),
            ),
            known_by="name service_queue_id",
            layout="name service_id principal_id service_queue_id",
        ),
        _view(
            "service_broker_endpoints",
            (
                ViewColumn("endpoint_id", CellKind.INTEGER),
                ViewColumn("is_message_forwarding_enabled", CellKind.FLAG),
                ViewColumn("machine_name", longest=256),
                ViewColumn("full_name", longest=512),
                ViewColumn("listener_names", longest=2000),
                ViewColumn("port", CellKind.INTEGER),
                *evidence_columns(
                    "name state_desc connection_auth_desc encryption_algorithm_desc certificate_name"
                ),
                *evidence_columns("certificate_id", CellKind.INTEGER),
            ),
            known_by="is_message_forwarding_enabled",
            per_database=False,
        ),
        _view(
            "tcp_endpoints",
            (
                ViewColumn("endpoint_id", CellKind.INTEGER, required=True),
                ViewColumn("port", CellKind.INTEGER),
                ViewColumn("ip_address", longest=45),
                *evidence_columns("name type_desc state_desc"),
            ),
            known_by="endpoint_id port ip_address",
            per_database=False,
        ),
        _view(
            "conversation_endpoints",
            (
                ViewColumn("conversation_handle", CellKind.GUID, required=True),
                ViewColumn("conversation_id", CellKind.GUID, required=True),
                ViewColumn("is_initiator", CellKind.FLAG, required=True),
                ViewColumn("conversation_group_id", CellKind.GUID),
                ViewColumn("lifetime", CellKind.TIME),
                ViewColumn("far_service", longest=_SERVICE),
                ViewColumn("far_broker_instance", longest=_BROKER),
                *evidence_columns("state service_name security_timestamp"),
                *evidence_columns("service_id far_principal_id", CellKind.INTEGER),
                *evidence_columns("is_system", CellKind.FLAG),
            ),
            known_by="conversation_handle conversation_id is_initiator",
            layout="conversation_handle conversation_id is_initiator service_contract_id conversation_group_id"
            " service_id lifetime state state_desc far_service far_broker_instance principal_id"
            " far_principal_id outbound_session_key_identifier inbound_session_key_identifier"
            " security_timestamp dialog_timer send_sequence last_send_tran_id end_dialog_sequence"
            " receive_sequence receive_sequence_frag system_sequence first_out_of_order_sequence"
            " last_out_of_order_sequence last_out_of_order_frag is_system priority",
        ),
        _view(
            "transmission_queue",
            (
                ViewColumn("conversation_handle", CellKind.GUID, required=True),
                ViewColumn("to_service_name", required=True, longest=_SERVICE),
                ViewColumn("to_broker_instance", longest=_BROKER),
                ViewColumn("from_service_name", longest=_SERVICE),
                ViewColumn("enqueue_time", CellKind.TIME, required=True),
                ViewColumn("message_sequence_number", CellKind.INTEGER, required=True),
                ViewColumn("transmission_status", longest=4000),
                # The view has it not: the queries look the status up in sys.messages of every language.
                ViewColumn("error_number", CellKind.INTEGER),
            ),
            known_by="conversation_handle to_service_name enqueue_time message_sequence_number",
            layout="conversation_handle to_service_name to_broker_instance from_service_name"
            " service_contract_name enqueue_time message_sequence_number message_type_name"
            " is_conversation_error is_end_of_dialog message_body transmission_status priority",
            # Since release 0.2.0 the sender, and since then the number of the status.
            added=("error_number", "from_service_name"),
        ),
        *(_evidence(evidence_view) for evidence_view in EVIDENCE_VIEWS),
    )
}

EVIDENCE = frozenset(name for name, view in VIEWS.items() if view.evidence)
"""The views that only show causes beside the routing."""

KEPT = frozenset((VIEW_NAME, *(column.name for view in VIEWS.values() for column in (*_ADDED, *view.columns))))
"""The columns that are read of a file: others, such as the bodies of messages, may be large."""

LONGEST = {
    column.name: column.longest
    for view in VIEWS.values()
    for column in view.columns
    if column.longest is not None and column.name != "transmission_status"
}
"""The lengths of the texts that a message's way depends on, by column."""


# SSMS and PowerShell write these for a column without a name, which is empty in other tools.
_UNNAMED = re.compile(r"\([^()]+\)|column ?\d+|<(?:unnamed|anonymous)>").fullmatch
OTHER_NAMES = {"logdate": "log_date"}
_SERVER = r"server|datasource|srv|servidor|serveur|serwer|sunucu|сервер|サーバー?|服务器|伺服器|서버"
_INSTANCE = r"instan(?:ce|z|cia|za|s)"
_MACHINE = r"computer|host|machine|node|rechner|equipo|ordinateur|компьютер|コンピューター?|计算机"
_DATABASE = (
    r"db|database|catalog|datenbank|basededatos|basededonn[ée]es|bancodedados|bazadanych|базаданных"
    r"|データベース|数据库|資料庫|데이터베이스"
)
_IS_SERVER = re.compile(rf"(?:sql|ms|db)*(?:(?:{_SERVER})(?:{_INSTANCE})?|sql{_INSTANCE})(?:name|名)?").fullmatch
_IS_MACHINE = re.compile(rf"(?:ps)?(?:{_INSTANCE}|{_MACHINE})(?:name|名)?").fullmatch
_IS_DATABASE = re.compile(rf"(?:sql)?(?:{_DATABASE})(?:name|名)?").fullmatch
_OWNERS = (("instance_name", _IS_SERVER), ("instance_name", _IS_MACHINE), ("database_name", _IS_DATABASE))
"""The columns by which tools name the instance or database of a row. The first one in a result set counts."""
_MAY_BE_INSTANCE = re.compile(f"{_SERVER}|{_INSTANCE}|{_MACHINE}").search
_MAY_BE_DATABASE = re.compile(rf"(?<![a-z])db|db(?![a-z])|{_DATABASE.removeprefix('db|')}").search


def fold_column(name: str) -> str:
    """Return the name of a column as the queries spell it: xp_readerrorlog has its own names.

    >>> fold_column("LogDate")
    'log_date'
    """
    folded = name.lower()
    return "" if _UNNAMED(folded) else OTHER_NAMES.get(folded, folded)


def fold_columns(written: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a result set's columns as the queries spell them.

    Files of other programs have a server or database too, so those are only known beside columns of a view.
    """
    names = tuple(map(fold_column, written))
    view = find_view_by_columns(names)
    if view is None:
        return names
    for owner, is_owner in _OWNERS:
        if owner not in names:
            names = tuple(
                owner if name not in view.own_names and is_owner(_NOT_IN_OWNERS.sub("", name)) else name
                for name in names
            )
    return names


def find_owner(names: Iterable[str], view: CatalogView) -> tuple[str, str] | None:
    """Return a column that may name the instance or database of a row, and the name that it should have."""
    foreign = [name for name in names if name not in view.own_names]
    is_named = {owner: owner in names for owner in view.added_columns}
    for owner, may_be in (("instance_name", _MAY_BE_INSTANCE), ("database_name", _MAY_BE_DATABASE)):
        column = next(filter(may_be, foreign), None)
        if column is not None and not is_named.get(owner, True):
            return column, owner
    return None


def names_server(label: str) -> bool:
    """Return whether a label in lower case, such as ``server name``, is of a server, machine or instance."""
    folded = _NOT_IN_OWNERS.sub("", label)
    return bool(_IS_SERVER(folded) or _IS_MACHINE(folded))


def names_database(label: str) -> bool:
    """Return whether a label in lower case, such as ``db_name``, is of a database."""
    return _IS_DATABASE(_NOT_IN_OWNERS.sub("", label)) is not None


_NOT_IN_OWNERS = re.compile(r"[\W_]+")
_NOT_IN_NAMES = re.compile(r"[ _-]+")


def find_view(text: str) -> CatalogView | None:
    """Return the view of a name in any case, with or without ``sys.``, its words apart in any way.

    >>> view = find_view("sys_Transmission queue")
    >>> view and view.name
    'transmission_queue'
    """
    return VIEWS.get(_fold_view_name(text))


def _fold_view_name(text: str) -> str:
    name = _NOT_IN_NAMES.sub("_", text.strip().lower())
    return name.removeprefix("sys.").removeprefix("sys_")


_BY_COLUMNS = (
    *("transmission_queue", "conversation_endpoints", "service_broker_endpoints", "tcp_endpoints"),
    *("routes", "databases", "services"),
    *sorted(EVIDENCE),
)
"""The order counts for joined views: what waits in a queue comes first."""
QUEUE = "transmission_queue"
ASKED_QUEUE = frozenset(["to_service_name", "transmission_status"])
"""The columns of a queue that questions show most often. `check` needs no others."""


def find_view_by_columns(columns: Collection[str]) -> CatalogView | None:
    """Return the view that a result set of these columns (in lower case) is of; None where they do not tell."""
    names = frozenset(columns)
    if names >= ASKED_QUEUE:
        return VIEWS[QUEUE]
    return next((VIEWS[name] for name in _BY_COLUMNS if VIEWS[name].known_by <= names), None)


_ALL = {
    name: {*view.layout, *(column.name for column in view.columns)}
    for name, view in VIEWS.items()
    if not view.evidence
}
_OWN = {
    name: columns.difference(*(other_columns for other_name, other_columns in _ALL.items() if other_name != name))
    for name, columns in _ALL.items()
}
"""The columns that no other view of the routing has."""


_OF_ALL_ENDPOINTS = frozenset(["endpoint_id", "is_admin_endpoint"])
_ALSO_OF_ENDPOINTS = _OF_ALL_ENDPOINTS | {"protocol_desc", "type_desc", "state_desc"}
_WORDS = re.compile(r"\w+").findall
_HINT_ON_ENDPOINTS = (
    "sys.endpoints has no ports, authentication or forwarding: export sys.service_broker_endpoints and"
    " sys.tcp_endpoints instead, or with sbroute import queries"
)
_LACK_OF_ENDPOINTS = _HINT_ON_ENDPOINTS, "service_broker_endpoints"


def find_nearest_view(columns: Collection[str]) -> CatalogView | None:
    """Return the view that has at least two of the columns (in lower case) to itself, or None."""
    return next((VIEWS[name] for name in _OWN if len(_OWN[name].intersection(columns)) > 1), None)


def find_lack(columns: Collection[str]) -> tuple[str, str] | None:
    """Return why a result set (columns in lower case) is of no view, and the nearest view, or None."""
    view = find_nearest_view(columns)
    if view is not None:
        return f"{say_lack(view, columns)}: export it with {query_of(view)}", view.name
    return _LACK_OF_ENDPOINTS if _OF_ALL_ENDPOINTS.issubset(columns) else None


def find_lack_by_name(file_name: str, read: Callable[[], str]) -> tuple[str, str] | None:
    """Return what `find_lack` does, for a file with the name of another view and one of its columns, or None.

    ``read`` reads the text of the file, and is only called for such a name.
    """
    if _fold_view_name(file_name) != "endpoints":
        return None
    is_of_endpoints = not _ALSO_OF_ENDPOINTS.isdisjoint(_WORDS(read().lower()))
    return _LACK_OF_ENDPOINTS if is_of_endpoints else None


def say_lack(view: CatalogView, columns: Collection[str]) -> str:
    """State which columns a result set lacks that its view needs."""
    needed = dict.fromkeys((*(c.name for c in view.columns if c.required), *sorted(view.known_by)))
    lacking = [name for name in needed if name not in columns]
    return f"as sys.{view.name} it lacks {', '.join(lacking)}"


def query_of(view: CatalogView) -> str:
    """Return the query that exports a view."""
    return f"SELECT * FROM sys.{view.name}, or with sbroute import queries"


# One result set of a file, in any tool's format, and the names of its columns.


OF_A_DATA_ROW = ("rowerror", "rowstate", "table", "itemarray", "haserrors")
"""The columns that PowerShell exports of a DataRow as well."""
NAMES = frozenset((*(name for view in VIEWS.values() for name in view.own_names), *OF_A_DATA_ROW))
"""The names that make a line a header."""


@dataclass
class ResultSet:
    """One result set: its column names in lower case, and a cell or None for each in every row.

    ``rows`` have the line's number, and the cells of the columns that any view has; ``rejected`` are (line number,
    why). ``omits_null`` where a row without a column may have had NULL in it. ``is_joined`` if the rows were in
    several results. ``database`` is the one that the text around the rows names, for certain or not. ``server`` is
    that of a line such as ``Server: HUB``. ``servers`` and ``titles`` are words of lines above that may name it.
    ``nested`` has the names in objects below a column of JSON.
    """

    columns: tuple[str, ...]
    rows: CellRows = field(default_factory=lambda: CellRows(KEPT))
    rejected: list[tuple[int, str]] = field(default_factory=list)
    omits_null: bool = False
    is_joined: bool = False
    database: str | None = None
    has_certain_database: bool = True
    server: str | None = None
    servers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    titles: Sequence[tuple[str, frozenset[str]]] = ()
    nested: dict[str, set[str]] = field(default_factory=dict)

    def reject_all(self, why: str) -> None:
        """Reject all rows for one reason."""
        self.rejected += [(number, why) for number in self.rows.numbers]
        self.rows.clear()


def export_again(file: str, why: str, option: str) -> InputError:
    """Return a file that another option of sqlcmd would have made readable."""
    return unreadable_file(file, why, f"export it again with {option}, or with sbroute import queries")
