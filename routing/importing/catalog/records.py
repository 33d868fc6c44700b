"""JSON and Parquet → result sets; each row brings its own columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from routing.errors import first_sentence
from routing.importing.catalog.chunks import joined, json_documents
from routing.importing.catalog.result_sets import ResultSet
from routing.importing.catalog.views import VIEW_NAME
from routing.importing.import_faults import missing_package, unreadable_file
from routing.importing.reach import FilePlace, copied
from routing.tables.arrow_rows import plain_values

_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def json_sets(text: str, file: str) -> list[ResultSet]:
    """Read objects, one a line or in arrays, whole or as FOR JSON breaks them, into a result set for each view.

    Raises InputError where nothing of it is an object.
    """
    numbered_values: list[tuple[int, object]] = []
    for document in json_documents(text):
        rows = _values(joined(document.lines)) if document.is_for_json else _rows_of(document.lines)
        if rows is None:
            why = "what stands under its header JSON_F52E2B61-… is not complete JSON"
            raise unreadable_file(file, why, "sqlcmd cuts it off without -y 0 -w 65535")
        numbered_values += rows
    sets = _by_view(numbered_values)
    if numbered_values and not any(part.rows for part in sets):
        raise unreadable_file(file, "no line of it is a JSON object")
    return sets


def _rows_of(lines: Sequence[tuple[int, str]]) -> list[tuple[int, object]]:
    """Return the values of numbered lines: by lines where each is a value, else all of them as one text."""
    first = _value(lines[0][1]) if lines else None
    if not isinstance(first, dict) or _unwrapped(first) is not None:
        whole = _values("\n".join(line for _, line in lines))
        whole = _values(joined(lines)) if whole is None else whole
        if whole is not None:
            return whole
    return [(number, _value(line)) for number, line in lines]


def _value(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _values(text: str | None) -> list[tuple[int, object]] | None:
    """Return all values that stand one after another, with or without commas; None where something else does."""
    if text is None:
        return None
    values: list[object] = []
    position = _end_of_gap(text, 0)
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        rows = value if isinstance(value, list) else _unwrapped(value)
        values += [value] if rows is None else rows
        position = _end_of_gap(text, position)
    return list(enumerate(values, start=1))


def _end_of_gap(text: str, position: int) -> int:
    gap = _BETWEEN.match(text, position)
    assert gap is not None  # it matches nothing as well
    return gap.end()


def _unwrapped(value: object) -> list[object] | None:
    """Return the rows of ``FOR JSON …, ROOT('name')``; None for anything else."""
    if isinstance(value, dict) and len(value) == 1:
        (rows,) = value.values()
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
            return rows
    return None


def _by_view(numbered_values: Sequence[tuple[int, object]]) -> list[ResultSet]:
    """Return the rows of each view that they name, those of none together; without any row, an empty set.

    What is no object goes with the row before it.
    """
    sets: dict[str | None, ResultSet] = {}
    view = next((_view_of(value) for _, value in numbered_values if isinstance(value, dict)), None)
    for number, value in numbered_values:
        if isinstance(value, dict):
            view = _view_of(value)
        part = sets.setdefault(view, ResultSet((), omits_null=True))
        if isinstance(value, dict):
            part.rows.append((number, _lowered(value)))
        else:
            part.rejected.append((number, "it is not a JSON object"))
    for part in sets.values():
        part.columns = tuple(dict.fromkeys(name for _, row in part.rows for name in row))
    return list(sets.values()) or [ResultSet((), omits_null=True)]


def _lowered(row: Mapping[str, object]) -> dict[str, object]:
    # ConvertTo-Json of Windows PowerShell writes NULL as an object without anything.
    return {name.lower(): None if value == {} else value for name, value in row.items()}


def _view_of(row: Mapping[str, object]) -> str | None:
    name = _lowered(row).get(VIEW_NAME)
    return name.lower() if isinstance(name, str) else None


def parquet(path: FilePlace, file: str) -> ResultSet:
    """Return a Parquet file, or a folder of them. Raises InputError, and EnvironmentFault without pyarrow."""
    try:
        import pyarrow.parquet as reader
    except ImportError as error:
        raise missing_package("pyarrow", file) from error
    try:
        with copied(path) as local_copy:
            table = reader.read_table(str(local_copy))
        columns = {name.lower(): plain_values(table[name]) for name in table.column_names}
    except Exception as error:
        raise unreadable_file(file, first_sentence(error)) from error
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return ResultSet(tuple(columns), list(enumerate(rows, start=1)))
