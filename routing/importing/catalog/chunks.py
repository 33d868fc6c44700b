"""FOR JSON as the tools write it: one text in rows of 2,033 characters, under a header or under none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from routing.importing.catalog.export_cells import unquoted
from routing.importing.catalog.result_sets import are_dashes, is_remark, lines_of
from routing.importing.tsql.refusal import length

CHUNK = 2033
_TRIMMED = 100
"""So many blanks at the end of a chunk may have been taken off: no text of the views has longer runs of them."""

_HEADER = "json_f52e2b61-18a1-11d1-b105-00805f49916b"
_BEGINNINGS = ("[{", '{"', '"[{""', '"{""')
_HEAD = 200

Lines = list[tuple[int, str]]
"""Lines with their numbers; blank ones are left out."""


@dataclass
class ResultChunk:
    """The lines between two headers or remarks of the tools; ``is_for_json`` where they follow a header."""

    is_for_json: bool
    lines: Lines = field(default_factory=list)


def is_json(text: str) -> bool:
    """Return True if a text is JSON, whatever its file is called."""
    head = text[:_HEAD].lstrip()
    return head.lower().lstrip('"').startswith(_HEADER) or "".join(head.split()).startswith(_BEGINNINGS)


def json_documents(text: str) -> list[ResultChunk]:
    """Return the parts of a text, without what the tools write around them."""
    documents = [ResultChunk(is_for_json=False)]
    was_header = False
    for number, line in enumerate(lines_of(text), start=1):
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
    """Return the lines as they were before SSMS saved its grid as CSV."""
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
