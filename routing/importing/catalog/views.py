"""The views that an export holds: their columns, by the names and in the order that they have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files

from routing.errors import InputError
from routing.importing.catalog.cell_rows import CellRows
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
    """A column that the import reads; a row without a value in a ``required`` one is rejected.

    ``longest`` is the length of a text in SQL Server, in UTF-16 units; None where nothing bounds it.
    """

    name: str
    kind: CellKind = CellKind.TEXT
    required: bool = False
    longest: int | None = None


@dataclass(frozen=True)
class CatalogView:
    """A view: the columns that are read, and those that files without a header are known by.

    ``layout`` is the view's own columns as the manual lists them, empty where versions of SQL Server differ.
    ``known_by`` are columns that no other view has together. ``exported`` are the columns of ``queries.sql``,
    ``exported_before`` those of its earlier releases.
    """

    name: str
    columns: tuple[ViewColumn, ...]
    per_database: bool = True
    layout: tuple[str, ...] = ()
    known_by: frozenset[str] = frozenset()
    exported: tuple[str, ...] = ()
    exported_before: tuple[tuple[str, ...], ...] = ()

    @property
    def of_queries(self) -> tuple[tuple[str, ...], ...]:
        """Everything that ``queries.sql`` has ever exported, the columns of today first."""
        return (self.exported, *self.exported_before)

    @property
    def added_columns(self) -> tuple[str, ...]:
        """The columns that the view itself has not."""
        names = ("instance_name", "database_name", "exported_at")
        return names if self.per_database else (names[0], names[2])

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
_HEAD = (VIEW_NAME, "instance_name", "database_name", "exported_at")
_INSTANCE_HEAD = (VIEW_NAME, "instance_name", "exported_at")


def _view(
    name: str,
    columns: tuple[ViewColumn, ...],
    *,
    known_by: str,
    layout: str = "",
    added: tuple[str, ...] = (),
    per_database: bool = True,
) -> CatalogView:
    """Return a view; ``added`` are columns that the queries did not always export, the newest first."""
    head = _HEAD if per_database else _INSTANCE_HEAD
    exported = (*head, *(column.name for column in columns))
    before = tuple(
        tuple(column for column in exported if column not in added[:many]) for many in range(1, len(added) + 1)
    )
    layout_columns, known_by_columns = tuple(layout.split()), frozenset(known_by.split())
    return CatalogView(name, columns, per_database, layout_columns, known_by_columns, exported, before)


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
            ),
            known_by="name service_broker_guid",
            per_database=False,
        ),
        _view(
            "services",
            (ViewColumn("name", required=True, longest=_NAME),),
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
    )
}

KEPT = frozenset((VIEW_NAME, *(column.name for view in VIEWS.values() for column in (*_ADDED, *view.columns))))
"""The columns that are read of a file: others, such as the bodies of messages, may be large."""

LONGEST = {
    column.name: column.longest
    for view in VIEWS.values()
    for column in view.columns
    if column.longest is not None and column.name != "transmission_status"
}
"""The lengths of the texts that a message's way depends on, by column."""


_NOT_IN_NAMES = re.compile(r"[ _-]+")


def find_view(text: str) -> CatalogView | None:
    """Return the view of a name in any case, with or without ``sys.``, its words apart in any way.

    >>> view = find_view("sys_Transmission queue")
    >>> view and view.name
    'transmission_queue'
    """
    name = _NOT_IN_NAMES.sub("_", text.strip().lower())
    return VIEWS.get(name.removeprefix("sys.").removeprefix("sys_"))


_BY_COLUMNS = (
    *("transmission_queue", "conversation_endpoints", "service_broker_endpoints", "tcp_endpoints"),
    *("routes", "databases", "services"),
)
"""The order counts for joined views: what waits in a queue comes first."""


def find_view_by_columns(columns: Collection[str]) -> CatalogView | None:
    """Return the view that a result set of these columns (in lower case) is of; None where they do not tell."""
    names = frozenset(columns)
    return next((VIEWS[name] for name in _BY_COLUMNS if VIEWS[name].known_by <= names), None)


# One result set of a file, whatever the tool wrote it as; and the names by which columns are known.


OF_A_DATA_ROW = ("rowerror", "rowstate", "table", "itemarray", "haserrors")
"""The columns that PowerShell exports of a DataRow as well."""
NAMES = frozenset((*(name for view in VIEWS.values() for name in (*view.layout, *view.exported)), *OF_A_DATA_ROW))
"""The names that make a line a header."""

_SCREEN = 79
"""sqlcmd wraps at 80 characters where nothing else is said; a column of dashes as long as that was wrapped."""

SERVER_SAID = "it is what the server said of an error, no row"
_ERROR = re.compile(r"Msg \d+, *Level \d+, *State \d+\b")
# SQL Server counts rows in the language of the session, as in (5 Zeilen betroffen).
_REMARKS = re.compile(r"\(\d+ [^()\d]+\)|Changed database context to '.*'\.|Completion time: .*")


@dataclass
class ResultSet:
    """One result set: its column names in lower case, and a cell or None for each in every row.

    ``rows`` have the line's number, and the cells of the columns that any view has; ``rejected`` are (line number,
    why). ``omits_null`` where a row without a column may have had NULL in it.
    """

    columns: tuple[str, ...]
    rows: CellRows = field(default_factory=lambda: CellRows(KEPT))
    rejected: list[tuple[int, str]] = field(default_factory=list)
    omits_null: bool = False


def lines_of(text: str) -> list[str]:
    """Split a text at the line ends that tools write: others, such as U+2028, may be part of a value."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def is_remark(line: str) -> bool:
    """Return whether a line is blank, or a message of sqlcmd or SSMS between the rows."""
    return not line.strip() or _REMARKS.fullmatch(line.strip()) is not None


def errors_among(lines: Iterable[tuple[int, str]]) -> set[int]:
    """Return the numbers of lines in which the server names an error, and of the lines with its text below."""
    error_lines: set[int] = set()
    was_error = False
    for number, line in lines:
        is_error = _ERROR.match(line.strip()) is not None
        if is_error or was_error:
            error_lines.add(number)
        was_error = is_error
    return error_lines


def are_dashes(line: str) -> bool:
    """Return True if a line is what sqlcmd writes under a header, without a separator."""
    return "-" in line and not line.strip("- ")


def refuse_wrapped(line: str, below: str, file: str) -> None:
    """Raise InputError where dashes go on in the next line; a short name of dashes alone is a value there."""
    is_one_column = " " not in line.strip() and " " not in below.strip()
    if are_dashes(line) and are_dashes(below) and not (is_one_column and len(line) < _SCREEN):
        raise export_again(file, "sqlcmd has wrapped its lines", "-w 65535")


def export_again(file: str, why: str, option: str) -> InputError:
    """Return a file that another option of sqlcmd would have made readable."""
    return unreadable_file(file, why, f"export it again with {option}, or with sbroute import queries")


# The T-SQL scripts that export the views from an instance, and record and read its events.


def queries(*, of_events: bool = False) -> str:
    """Return the script as text; it only reads, and returns one result set a view.

    ``of_events``: the one that records the broker's events instead, and reads them.
    """
    name = "events.sql" if of_events else "queries.sql"
    return (files(__package__) / name).read_text(encoding="utf-8")
