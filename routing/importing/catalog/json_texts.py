"""Read the JSON of files: objects one after another, and the one text that FOR JSON breaks into many rows.

Values go into columns as they are read, so that a large file is never in memory as objects. FOR JSON is written as
the tools do: one text in rows of 2,033 characters, under a header or under none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from math import inf, nan
from typing import cast

from routing.importing.catalog.cell_rows import SharedTexts
from routing.importing.catalog.printed_lines import are_dashes, is_remark, lines_of
from routing.importing.catalog.row_check import note_unnamed
from routing.importing.catalog.text_lines import unquoted
from routing.importing.catalog.views import VIEW_NAME, ResultSet, fold_columns
from routing.importing.import_faults import unreadable_file
from routing.importing.tsql.script_statements import length

_BETWEEN = re.compile(r"[\s,]*")
_BLANKS = re.compile(r"[ \t\n\r]*")
NO_OBJECT = "it is not a JSON object"
_NO_VALUE = (ValueError, RecursionError)
_AT_ONCE = 1_000
_OBJECTS = frozenset((dict, list))
_COLLECTION = frozenset(["value", "Count"])
"""The members that ConvertTo-Json of Windows PowerShell writes for a wrapped collection."""


class ClashingObject(str):
    """Replaces an object with several values of one key. Its text names the key."""


def _as_row(pairs: list[tuple[str, object]]) -> dict[str, object] | ClashingObject:
    row = dict(pairs)
    if len(row) < len(pairs):
        clash = next((name for name, cell in pairs if cell != row[name]), None)
        if clash is not None:
            return ClashingObject(f"{clash} is in it several times, and the values differ")
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_as_row)
_MARK, _MARKED = object(), "-Infinity"
"""Stands between the values of lines that are read together."""
_CONSTANTS = {_MARKED: _MARK, "Infinity": inf, "NaN": nan}
_OF_LINES = json.JSONDecoder(object_pairs_hook=_as_row, parse_constant=_CONSTANTS.__getitem__)

Lines = list[tuple[int, str]]
"""Lines with their numbers; blank ones are left out."""
_Row = Mapping[str, object]


class JsonRows:
    """The rows of a document as they come, by the view that they name, in lower case.

    A value that is not an object belongs to the row before it.
    """

    def __init__(self, texts: SharedTexts, *, is_plain: bool) -> None:
        self._texts, self._is_plain = texts, is_plain
        self._last: str | None = None
        self._by_view: dict[str | None, ResultSet] = {}
        self._before: list[tuple[int, str]] = []

    def add(self, numbers: Sequence[int], values: Sequence[object]) -> None:
        """Add some values."""
        places = [place for place, value in enumerate(values) if not isinstance(value, dict)]
        start = 0
        for place in (*places, len(values)):
            rows = values[start:place]
            if rows:
                self._take(numbers[start:place], cast("Sequence[_Row]", rows))
            if place < len(values):
                rejected = self._by_view[self._last].rejected if self._by_view else self._before
                value = values[place]
                why = str(value) if isinstance(value, ClashingObject) else NO_OBJECT
                rejected.append((numbers[place], why))
            start = place + 1

    def append(self, other: JsonRows) -> None:
        """Add the rows of the next document."""
        self.add([number for number, _ in other._before], [None] * len(other._before))
        for view, part in other._by_view.items():
            own_part = self._by_view.setdefault(view, part)
            if own_part is not part:
                own_part.columns = tuple(dict.fromkeys((*own_part.columns, *part.columns)))
                own_part.rows.take_over(part.rows)
                own_part.rejected += part.rejected
                for name, names in part.nested.items():
                    own_part.nested.setdefault(name, set()).update(names)
                own_part.is_joined = True
            self._last = other._last

    def note_joined(self) -> None:
        """Note that the rows were in several results."""
        for part in self._by_view.values():
            part.is_joined = True

    def sets(self) -> list[ResultSet]:
        """Return the result sets, without any row an empty one."""
        for part in self._by_view.values():
            part.rows.read_null_texts()
        sets = list(self._by_view.values()) or [ResultSet((), omits_null=True)]
        sets[0].rejected[:0] = self._before
        return sets

    def _take(self, numbers: Sequence[int], rows: Sequence[_Row]) -> None:
        shapes = dict.fromkeys(map(tuple, rows))
        written = list(dict.fromkeys(chain.from_iterable(shapes)))
        names = dict(zip(written, fold_columns(written), strict=True))
        if len(set(names.values())) < len(names):
            self.add(numbers, [_as_row([(names[name], cell) for name, cell in row.items()]) for row in rows])
            return
        views = _views(rows, names)
        self._last = views[-1]
        for view in dict.fromkeys(views):
            places = [place for place, view_of_row in enumerate(views) if view_of_row == view]
            if len(places) == len(rows):
                self._take_of_view(view, numbers, rows, shapes, names)
            else:
                own_rows = [rows[place] for place in places]
                own_shapes = dict.fromkeys(map(tuple, own_rows))
                self._take_of_view(view, [numbers[place] for place in places], own_rows, own_shapes, names)

    def _take_of_view(
        self,
        view: str | None,
        numbers: Sequence[int],
        rows: Sequence[_Row],
        shapes: Collection[tuple[str, ...]],
        names: Mapping[str, str],
    ) -> None:
        own_names = dict.fromkeys(chain.from_iterable(shapes))
        if len(shapes) == 1:
            cells = zip(*(row.values() for row in rows), strict=True)
            columns = dict(zip((names[name] for name in own_names), cells, strict=True))
        else:
            columns = {names[name]: tuple(row.get(name) for row in rows) for name in own_names}
        part = self._by_view.setdefault(view, ResultSet((), omits_null=True))
        part.columns = tuple(dict.fromkeys((*part.columns, *columns)))
        for name, values in columns.items():
            if not _OBJECTS.isdisjoint(map(type, values)):
                # ConvertTo-Json of Windows PowerShell writes NULL as an empty object.
                columns[name] = tuple(None if cell == {} else cell for cell in values)
                part.nested.setdefault(name, set()).update(*_nested_names(values))
        note_unnamed(part.rows, len(part.rows), columns)
        part.rows.add(numbers, columns, self._texts, is_plain=self._is_plain)


def _views(rows: Sequence[_Row], names: Mapping[str, str]) -> list[str | None]:
    """Return the view that each row names, in lower case."""
    written = next((name for name, lowered in names.items() if lowered == VIEW_NAME), None)
    if written is None:
        return [None] * len(rows)
    cells = (row.get(written) for row in rows)
    return [cell.lower() if isinstance(cell, str) else None for cell in cells]


def _nested_names(cells: tuple[object, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the names in the objects of a column, as FOR JSON AUTO writes a joined table."""
    items = chain.from_iterable(cell if isinstance(cell, list) else [cell] for cell in cells)
    yield from map(fold_columns, dict.fromkeys(tuple(item) for item in items if isinstance(item, dict)))


def _by_lines(rows: JsonRows, lines: Lines) -> JsonRows:
    """Read one value from each line. A line that is not JSON counts as a value that is not an object."""
    for start in range(0, len(lines), _AT_ONCE):
        chunk = lines[start : start + _AT_ONCE]
        rows.add([number for number, _ in chunk], _values_of([line for _, line in chunk]))
    return rows


def _values_of(lines: Sequence[str]) -> list[object]:
    """Return the value of each line, or None if it is not JSON. Reading many as one array takes half the time."""
    text, count = f",{_MARKED},".join(lines), len(lines)
    try:
        values = _OF_LINES.decode(f"[{text}]") if text.count(_MARKED) == count - 1 else []
    except _NO_VALUE:
        values = []
    # Nobody else wrote a mark. If all of them are between values, each line is one value.
    is_one_a_line = len(values) == 2 * count - 1 and values[1::2].count(_MARK) == count - 1
    return values[::2] if is_one_a_line else [value_of(line) for line in lines]


def _whole(rows: JsonRows, text: str | None) -> JsonRows | None:
    """Read all consecutive values, with or without commas. Return None if there is anything else.

    The values in an array count each by itself, and so do the rows of ``FOR JSON …, ROOT('name')``.
    """
    if text is None:
        return None
    arrays = list[int]()
    try:
        values, first = _values(text, arrays), 1
        while chunk := list(islice(values, _AT_ONCE)):
            rows.add(range(first, first + len(chunk)), chunk)
            first += len(chunk)
    except _NO_VALUE:
        return None
    if len(arrays) > 1:
        rows.note_joined()
    return rows


def value_of(line: str) -> object:
    """Return the value of a line, or None if it is not JSON."""
    line = line.strip(" \t\r\n")
    try:
        value, end = _DECODER.raw_decode(line)
    except _NO_VALUE:
        return None
    return value if end == len(line) else None


def unwrapped(value: object) -> list[object] | None:
    """Return the rows of ``FOR JSON …, ROOT('name')`` or of a collection of PowerShell, or None."""
    if not isinstance(value, dict) or not (len(value) == 1 or value.keys() == _COLLECTION):
        return None
    rows = next(iter(value.values())) if len(value) == 1 else value["value"]
    is_rows = isinstance(rows, list) and all(isinstance(row, (dict, ClashingObject)) for row in rows)
    return rows if is_rows and value.get("Count", rows) in (rows, len(rows)) else None


def _values(text: str, arrays: list[int]) -> Iterator[object]:
    """Yield the values of a text; ``arrays`` gets the places of its arrays that are not empty.

    Raises ValueError, RecursionError if there is anything else between them.
    """
    position = _end_of(_BETWEEN.match(text, 0))
    while position < len(text):
        if text[position] == "[":
            start, position = position, (yield from _elements(text, position + 1))
            if _end_of(_BLANKS.match(text, start + 1)) < position - 1:
                arrays.append(start)
        else:
            value, position = _DECODER.raw_decode(text, position)
            rows = unwrapped(value)
            if rows:
                arrays.append(position)
            yield from [value] if rows is None else rows
        position = _end_of(_BETWEEN.match(text, position))


def _elements(text: str, position: int) -> Generator[object, None, int]:
    """Yield the values of an array, and return where it ends. Raises ValueError, RecursionError as `_values`."""
    position = _end_of(_BLANKS.match(text, position))
    if text.startswith("]", position):
        return position + 1
    while True:
        value, position = _DECODER.raw_decode(text, position)
        yield value
        position = _end_of(_BLANKS.match(text, position))
        if text.startswith("]", position):
            return position + 1
        if not text.startswith(",", position):
            raise ValueError("the array is not closed")
        position = _end_of(_BLANKS.match(text, position + 1))


def _end_of(gap: re.Match[str] | None) -> int:
    assert gap is not None  # the expressions match nothing as well
    return gap.end()


# The lines of a file that hold JSON.


CHUNK = 2033
_TRIMMED = 100
"""So many blanks at the end of a chunk may have been taken off: no text of the views has longer runs of them."""

_HEADER = "json_f52e2b61-18a1-11d1-b105-00805f49916b"
_BEGINNINGS = ("[{", '{"', '"[{""', '"{""')
_JSON_OF_NOTHING = frozenset(("null", "[]", "[null]", '""', '"[]"'))
_HEAD = 200


@dataclass
class ResultChunk:
    """The lines between two headers or remarks of the tools; ``is_for_json`` where they follow a header."""

    is_for_json: bool
    lines: Lines = field(default_factory=list)


def is_json(text: str) -> bool:
    """Return whether a text is JSON, with any file name."""
    head = text[:_HEAD].lstrip()
    if len(text) < _HEAD and is_json_of_nothing(text):
        return True
    return head.lower().lstrip('"').startswith(_HEADER) or "".join(head.split()).startswith(_BEGINNINGS)


def is_json_of_nothing(text: str) -> bool:
    """Return whether a text is an empty result of FOR JSON: NULL, an empty array or two quotes."""
    return "".join(text.split()).lower() in _JSON_OF_NOTHING


def json_documents(text: str) -> list[ResultChunk]:
    """Return the chunks of JSON in a text, without the lines that tools write around them."""
    documents = [ResultChunk(is_for_json=False)]
    was_header = False
    for number, line in enumerate(lines_of(text), start=1):
        if line.startswith("{"):
            documents[-1].lines.append((number, line))
            was_header = False
            continue
        is_header = line.strip(' "').lower() == _HEADER
        if is_header or is_remark(line):
            if line.strip():
                documents.append(ResultChunk(is_header))
        elif not (was_header and are_dashes(line)):
            documents[-1].lines.append((number, line))
        was_header = is_header
    return [
        ResultChunk(document.is_for_json, _unquoted(document.lines))
        for document in documents
        if document.lines or document.is_for_json
    ]


def _unquoted(lines: Lines) -> Lines:
    """Undo the quoting of lines in a grid that SSMS saved as CSV."""
    if not lines or not lines[0][1].lstrip().startswith(('"[', '"{')):
        return lines
    inside = ((number, line, unquoted(line.strip())) for number, line in lines)
    return [(number, line if text is None else text) for number, line, text in inside]


def joined(lines: Sequence[tuple[int, str]]) -> str | None:
    """Return the text that was broken into lines of 2,033 characters; None where they are of another length.

    A chunk may have been filled up with blanks, or its own blanks at the end taken off.
    """
    chunks = [line for _, line in lines[:-1]]
    stripped = [chunk.rstrip(" ") for chunk in chunks]
    lengths = [length(text) for text in stripped]
    for chunk, size in zip(chunks, lengths, strict=True):
        if size > CHUNK or length(chunk) < CHUNK - _TRIMMED:
            return None
    whole = (text + " " * (CHUNK - size) for text, size in zip(stripped, lengths, strict=True))
    return "".join((*whole, *(line for _, line in lines[-1:])))


def json_sets(text: str, file: str) -> list[ResultSet]:
    """Read objects, one a line or in arrays, into a result set for each view.

    Objects may be broken into lines as by FOR JSON. Raises InputError if the text has no object.
    """
    # Half a character may be written as an escape.
    new_rows = partial(JsonRows, SharedTexts(), is_plain=text.isascii() and "\\u" not in text)
    rows: JsonRows | None = None
    for document in json_documents(text):
        if _is_nothing(document.lines):
            continue
        own_rows = (
            _whole(new_rows(), joined(document.lines))
            if document.is_for_json
            else _rows_of(new_rows, document.lines)
        )
        if own_rows is None:
            why = "the text below its header JSON_F52E2B61-… is not complete JSON"
            raise unreadable_file(file, why, "sqlcmd cuts it off without -y 0 -w 65535")
        if rows is None:
            rows = own_rows
        else:
            rows.append(own_rows)
    sets = [ResultSet((), omits_null=True)] if rows is None else rows.sets()
    reasons = {why for part in sets for _, why in part.rejected}
    if reasons == {NO_OBJECT} and not any(len(part.rows) for part in sets):
        raise unreadable_file(file, "it has no line with a JSON object")
    return sets


def _is_nothing(lines: Lines) -> bool:
    """Return True if lines are all of them `is_json_of_nothing`; most are seen by their beginning."""
    head = "".join(line[:_HEAD] for _, line in lines[:1])
    is_short = len("".join(head.split())) <= max(map(len, _JSON_OF_NOTHING))
    return is_short and is_json_of_nothing("".join(line for _, line in lines))


def _rows_of(new_rows: Callable[[], JsonRows], lines: Lines) -> JsonRows:
    """Return the values of numbered lines: by lines where each is a value, else all of them as one text."""
    first = value_of(lines[0][1]) if lines and lines[0][1].lstrip().startswith("{") else None
    if not isinstance(first, (dict, ClashingObject)) or unwrapped(first) is not None:
        whole = _whole(new_rows(), "\n".join(line for _, line in lines))
        whole = _whole(new_rows(), joined(lines)) if whole is None else whole
        if whole is not None:
            return whole
    return _by_lines(new_rows(), lines)
