"""Read FOR JSON as the tools write it: one text in rows of 2,033 characters, under a header or under none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from routing.importing.catalog.json_rows import (
    NO_OBJECT,
    ClashingObject,
    JsonReader,
    JsonRows,
    Lines,
    unwrapped,
    value_of,
)
from routing.importing.catalog.printed_lines import are_dashes, is_remark, lines_of
from routing.importing.catalog.text_lines import unquoted
from routing.importing.catalog.views import ResultSet
from routing.importing.import_faults import unreadable_file
from routing.importing.tsql.script_statements import length

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
    reader = JsonReader(text)
    rows: JsonRows | None = None
    for document in json_documents(text):
        if _is_nothing(document.lines):
            continue
        own_rows = (
            reader.whole(joined(document.lines)) if document.is_for_json else _rows_of(reader, document.lines)
        )
        if own_rows is None:
            why = "the text below its header JSON_F52E2B61-… is not complete JSON"
            raise unreadable_file(file, why, "sqlcmd cuts it off without -y 0 -w 65535")
        if rows is None:
            rows = own_rows
        else:
            rows.append(own_rows)
    sets = [ResultSet((), omits_null=True)] if rows is None else rows.sets()
    if {why for part in sets for _, why in part.rejected} == {NO_OBJECT} and not any(
        len(part.rows) for part in sets
    ):
        raise unreadable_file(file, "it has no line with a JSON object")
    return sets


def _is_nothing(lines: Lines) -> bool:
    """Return True if lines are all of them `is_json_of_nothing`; most are seen by their beginning."""
    head = "".join(line[:_HEAD] for _, line in lines[:1])
    is_short = len("".join(head.split())) <= max(map(len, _JSON_OF_NOTHING))
    return is_short and is_json_of_nothing("".join(line for _, line in lines))


def _rows_of(reader: JsonReader, lines: Lines) -> JsonRows:
    """Return the values of numbered lines: by lines where each is a value, else all of them as one text."""
    first = value_of(lines[0][1]) if lines and lines[0][1].lstrip().startswith("{") else None
    if not isinstance(first, (dict, ClashingObject)) or unwrapped(first) is not None:
        whole = reader.whole("\n".join(line for _, line in lines))
        whole = reader.whole(joined(lines)) if whole is None else whole
        if whole is not None:
            return whole
    return reader.by_lines(lines)
