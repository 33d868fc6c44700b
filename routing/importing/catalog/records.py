"""JSON lines and Parquet → result sets; each row brings its own columns."""

from __future__ import annotations

import json
from pathlib import Path

from routing.errors import first_sentence
from routing.importing.catalog.delimited import ResultSet
from routing.importing.faults import missing_package, unreadable_file


def json_lines(text: str, file: str) -> ResultSet:
    """One object a line, or one array of objects. Raises InputError where no line is an object."""
    found = ResultSet(())
    columns: dict[str, None] = {}
    for number, row in _objects(text):
        if isinstance(row, dict):
            lowered = {str(name).lower(): value for name, value in row.items()}
            columns.update(dict.fromkeys(lowered))
            found.rows.append((number, lowered))
        else:
            found.rejected.append((number, "it is no JSON object"))
    if not found.rows and found.rejected:
        raise unreadable_file(file, "no line of it is a JSON object")
    found.columns = tuple(columns)
    return found


def _objects(text: str) -> list[tuple[int, object]]:
    if text.lstrip().startswith("["):
        try:
            return list(enumerate(json.loads(text), start=1))
        except (ValueError, RecursionError):
            pass
    # Only these end a line: others, such as U+2028, may stand inside a JSON text.
    numbered = enumerate(text.replace("\r\n", "\n").split("\n"), start=1)
    return [(number, _object(line)) for number, line in numbered if line.strip()]


def _object(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def parquet(path: Path, file: str) -> ResultSet:
    """A Parquet file, or a folder of them. Raises InputError, and EnvironmentFault without pyarrow."""
    try:
        import pyarrow.parquet as reader
    except ImportError as error:
        raise missing_package("pyarrow", file) from error
    try:
        table = reader.read_table(str(path))
        rows = table.to_pylist()
    except Exception as error:
        raise unreadable_file(file, first_sentence(error)) from error
    lowered = [{name.lower(): value for name, value in row.items()} for row in rows]
    columns = tuple(name.lower() for name in table.column_names)
    return ResultSet(columns, list(enumerate(lowered, start=1)))
