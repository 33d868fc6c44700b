"""Check that the cells of a line fit their columns, and join a value that an unquoted separator has split."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from routing.errors import quote
from routing.importing.catalog.cell_rows import CellRows
from routing.importing.catalog.cell_values import is_flag
from routing.importing.catalog.views import VIEWS, CellKind

# Spreadsheets write large numbers with an exponent, and with separators.
_NUMBER = re.compile(r"[+-]?\d[\d.,' \u00a0\u202f]*(?:[eE][+-]?\d+)?").fullmatch
_GUID = re.compile(r"\{?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?|0[xX][0-9A-Fa-f]+").fullmatch
_TIME = re.compile(r"(?=.*\d)[\w:./,+\- \u00a0\u202f]{1,60}").fullmatch
_HEX = re.compile(r"0[xX][0-9A-Fa-f]*").fullmatch

_INTEGERS = (
    *("route_id", "principal_id", "service_id", "service_queue_id", "service_contract_id", "far_principal_id"),
    *("send_sequence", "end_dialog_sequence", "receive_sequence", "receive_sequence_frag", "system_sequence"),
    *("first_out_of_order_sequence", "last_out_of_order_sequence", "last_out_of_order_frag"),
    "source_database_id",
)
_ADDRESS = re.compile(r"(?i:local|transport)/*|.*//.*", re.DOTALL).fullmatch
_FLAGS = ("is_conversation_error", "is_end_of_dialog", "is_system")
_REQUIRED = frozenset(("route_id", "service_id"))
_UNREAD: dict[str, tuple[Callable[[str], object], str]] = {
    **dict.fromkeys(_INTEGERS, (_NUMBER, "a number")),
    **dict.fromkeys(_FLAGS, (is_flag, "0 or 1")),
    # SQL Server has no route with another one.
    "address": (_ADDRESS, "an address"),
    # A column without a name has numbers of rows, or an expression such as DB_NAME().
    "": (_NUMBER, "the number of a row"),
}
"""The columns whose values tell a row from a printed line, though no table takes them or takes any text."""
_BY_KIND: dict[CellKind, Callable[[str], object]] = {
    CellKind.GUID: _GUID,
    CellKind.INTEGER: _NUMBER,
    CellKind.FLAG: is_flag,
    CellKind.TIME: _TIME,
}
_READ = {
    column.name: _BY_KIND[column.kind]
    for view in VIEWS.values()
    for column in view.columns
    if column.kind in _BY_KIND
}
_EVERY: dict[str, Callable[[str], object]] = {
    **{name: check for name, (check, _) in _UNREAD.items()},
    **_READ,
    **dict.fromkeys(("broker_instance", "to_broker_instance", "far_broker_instance"), _GUID),
    **dict.fromkeys(("outbound_session_key_identifier", "inbound_session_key_identifier"), _GUID),
    **dict.fromkeys(("exported_at", "security_timestamp", "dialog_timer"), _TIME),
    **dict.fromkeys(("priority",), _NUMBER),
    **dict.fromkeys(("message_body", "last_send_tran_id"), _HEX),
}


def checks(name: str) -> bool:
    """Return True if `find_misfits` looks at a column."""
    return name in _UNREAD


def find_misfits(name: str, cells: Sequence[str | None], *, is_complete: bool) -> Iterator[tuple[int, str]]:
    """Yield the places of cells that do not fit a column of `checks`, and why.

    ``is_complete`` where each cell of the column holds something, as in text of fixed width.
    """
    check, expected = _UNREAD[name]
    fault_by_cell: dict[str | None, str | None] = {}
    for cell in set(cells):
        if cell is None or not cell.strip():
            is_missing = name in _REQUIRED or (cell is not None and is_complete)
            fault_by_cell[cell] = f"{name} is missing" if is_missing else None
        else:
            fault_by_cell[cell] = (
                None
                if check(cell.strip())
                else f"{name or 'a column without a name'}: {quote(cell)} is not {expected}"
            )
    if any(fault_by_cell.values()):
        for place, cell in enumerate(cells):
            why = fault_by_cell[cell]
            if why is not None:
                yield place, why


def note_unnamed(rows: CellRows, start: int, columns: Mapping[str, Sequence[object]]) -> None:
    """Note the faults of rows from a place on whose column without a name holds more than numbers."""
    cells = [None if cell is None else str(cell) for cell in columns.get("", ())]
    rows.faults |= {start + place: why for place, why in find_misfits("", cells, is_complete=False)}


def fits(names: Sequence[str], cells: Sequence[str | None], *, are_texts_enough: bool = False) -> bool:
    """Return True if all cells fit their columns, and at least one column that is not text has a value.

    With ``are_texts_enough`` any two values will do.
    """
    if len(names) != len(cells):
        return False
    texts = ((name, cell.strip()) for name, cell in zip(names, cells, strict=True) if cell)
    values = [(_EVERY.get(name), text) for name, text in texts if text and text != "NULL"]
    checks_of_values = [(check, text) for check, text in values if check is not None]
    is_enough = bool(checks_of_values) or (are_texts_enough and len(values) > 1)
    return is_enough and all(check(text) for check, text in checks_of_values)


def is_wrapped(names: Sequence[str], above: Sequence[str], cells: Sequence[str]) -> bool:
    """Return True if a line only has text, and the row above it also has numbers, GUIDs or times."""
    typed = [place for place, name in enumerate(names) if name in _EVERY]
    return any(above[place] for place in typed) and not any(cells[place] for place in typed)


def find_clash(twice: Sequence[str], names: Sequence[str], cells: Sequence[str]) -> str | None:
    """Return the reason to reject a row if its columns of one name have different values, else None."""
    for name in twice:
        if len({cell.strip() for column, cell in zip(names, cells, strict=True) if column == name}) > 1:
            return f"{name} is in several columns, and their values differ"
    return None


def join_surplus(names: Sequence[str], cells: Sequence[str], separator: str) -> list[str] | None:
    """Return cells in which the value of one text is joined again that unquoted separators have split.

    None where no column, or more than one, can have held it: every other cell has to fit its own.
    """
    surplus = len(cells) - len(names)
    joined: list[list[str]] = []
    if any("\n" in cell or "\r" in cell for cell in cells):
        # Quotation marks of two lines may enclose the text between them.
        return None
    for place, name in enumerate(names):
        if name not in _EVERY:
            end = place + surplus + 1
            whole = [*cells[:place], separator.join(cells[place:end]), *cells[end:]]
            if fits(names, whole):
                joined.append(whole)
    return joined[0] if len(joined) == 1 else None
