"""Read the files of an import of events: the text of each event with its place, a few at a time."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from routing.errors import first_sentence, quote
from routing.importing.catalog.text_lines import TYPE_LINE
from routing.importing.events.event_rows import LONGEST
from routing.importing.import_faults import missing_package, unreadable_file
from routing.importing.import_files import KEEP, FilePlace, Reach, copied, find_undecodable, list_files
from routing.tables.arrow_rows import plain_values

_TABULAR = {".csv", ".txt", ".tsv"}
_JSON = {".json", ".jsonl", ".ndjson"}
_PARQUET, _XML = {".parquet"}, {".xml"}
_ENDINGS = _TABULAR | _JSON | _PARQUET | _XML
_DATA, _INSTANCE = "event_data", "instance_name"
_AT_ONCE = 1 << 16
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_END, _SECTION, _SECTION_END = "</event>", "<![CDATA[", "]]>"
_MARK = re.compile(r"<event(?=[\s/>])|</event>|<!\[CDATA\[")
# A tag up to its end, or up to a character that no tag holds.
_TAG = re.compile(r"""<event(?:[^<>"']|"[^<"]*"|'[^<']*')*>?""")
_LONGEST_MARK = len(_SECTION)
_EVENT = re.compile(r"<event[\s/>]")
# SQL Server's tools end a result with its number of rows in any language, such as (2 Zeile(n) betroffen).
_ROW_COUNT = re.compile(r"\s*\(\d[\d.,]* [^<>]{1,100}\)\s*")
_NOT_CLOSED = f"it has no {quote(_END)}"


class RawEvent(NamedTuple):
    """A row with its location, the event's XML and the instance. ``why`` explains a row without an event."""

    place: str
    data: str | None
    instance: str | None = None
    why: str | None = None


def read_events(sources: Sequence[str], reach: Reach, notes: list[str]) -> Iterator[RawEvent]:
    """Read all rows of files, and of folders' files, in the order of their names.

    ``notes`` collects the skipped files of folders. Raises InputError for a file that cannot be read,
    EnvironmentFault for a missing package.
    """
    for place in [reach(source) for source in sources]:
        try:
            if not place.exists():
                raise unreadable_file(str(place), "there is no such file")
            of_folder = place.is_dir() and place.suffix.lower() not in _PARQUET
            for file in list_files(place, notes) if of_folder else [place]:
                if file.suffix.lower() in _ENDINGS:
                    why = _say_other_xml(file) if file.suffix.lower() in _XML else None
                    if why is None:
                        is_empty = True
                        for event in _read_file(file):
                            is_empty = False
                            yield event
                        if is_empty:
                            notes.append(f"{file}: it has no event")
                    elif of_folder:
                        notes.append(f"{file}: not read, {why}")
                    else:
                        hint = "record the broker's events with the script of sbroute import queries --events"
                        raise unreadable_file(str(file), why, hint)
                elif not of_folder:
                    hint = f"name a file that ends in {', '.join(sorted(_ENDINGS))}"
                    raise unreadable_file(str(file), "its name does not show its format", hint)
        except OSError as error:
            raise unreadable_file(str(place), error.strerror or str(error)) from error


def _read_file(place: FilePlace) -> Iterator[RawEvent]:
    suffix, file = place.suffix.lower(), str(place)
    with copied(place) as path:
        if suffix in _PARQUET:
            yield from _parquet(path, file)
            return
        with path.open(encoding=_encoding_of(path), errors=KEEP, newline="") as stream:
            if suffix in _XML:
                yield from _xml(stream, file)
            elif suffix in _JSON:
                yield from _json(stream, file)
            else:
                yield from _delimited(stream, file)


# The text before the root of a document, and the root.
_ROOT = re.compile(
    r"(?:\s|<\?[^>]*\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[[^\]]*\][^>]*)?>)*<(?:\w+:)?([\w.-]+)", re.DOTALL
)
_EVENT_ROOTS = frozenset(["event", "events", "RingBufferTarget"])
_OTHER_ROOTS = {
    "event_sessions": "the definition of an event session",
    "event_session": "the definition of an event session",
    "TraceData": "a trace that SQL Server Profiler saved, not Extended Events",
    "ShowPlanXML": "an execution plan",
    "deadlock-list": "a deadlock graph",
    "deadlock": "a deadlock graph",
    "databaseChangeLog": "a changelog of Liquibase",
}


def _say_other_xml(place: FilePlace) -> str | None:
    """Return a phrase on an XML file that is not a recording of events, or None for a recording."""
    with copied(place) as path, path.open(encoding=_encoding_of(path), errors=KEEP, newline="") as stream:
        head, tail = stream.read(_AT_ONCE), ""
        root = _ROOT.match(head)
        if root is not None and root[1] in _EVENT_ROOTS:
            return None
        if root is not None and root[1].startswith("event_session"):
            return f"it is {_OTHER_ROOTS[root[1]]}, and has no recorded events"
        for part in chain([head[root.end() if root else 0 :]], iter(lambda: stream.read(_AT_ONCE), "")):
            if _EVENT.search(tail + part):
                return None
            tail = part[-_LONGEST_MARK:]
    if root is None:
        return "it is not an XML document with events"
    return f"it is {_OTHER_ROOTS.get(root[1], f'an XML document <{root[1]}>')}, and has no <event>"


def _encoding_of(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(4)
    return next((name for byte_order_mark, name in _MARKS.items() if head.startswith(byte_order_mark)), "utf-8")


def _delimited(stream: IO[str], file: str) -> Iterator[RawEvent]:
    """Yield events from lines with a header, without blank lines, rules and the number of rows."""
    with _long_fields():
        first, above = stream.readline(), 1
        if first.startswith(TYPE_LINE):
            first, above = stream.readline(), 2
        separator = max(",;\t|", key=first.count)
        header = [name.strip().lower() for name in next(csv.reader([first], delimiter=separator), [])]
        _require(header, file)
        reader = csv.reader(stream, delimiter=separator)
        for number, row in enumerate(_rows_of(reader), start=above + 1):
            is_rule = not any(cell.strip(" -:") for cell in row)
            if is_rule or _ROW_COUNT.fullmatch(separator.join(row)):
                continue
            place = f"{file}, row {number}"
            why = find_undecodable(row)
            if why is None and len(row) != len(header):
                why = f"it has {len(row)} cells, the header {len(header)}"
            if why is not None:
                yield RawEvent(place, None, why=why)
                continue
            yield _raw(place, dict(zip(header, row, strict=True)))


def _rows_of(reader: Any) -> Iterator[list[str]]:
    """Yield rows of csv. A row that it cannot split gets too many empty cells."""
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield [f"{error}", ""] * 50


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow fields as long as an event, which csv would refuse, while the block runs."""
    before = csv.field_size_limit(1 << 30)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _require(names: Sequence[str], file: str) -> None:
    if _DATA not in names:
        hint = "export it with the script of sbroute import queries --events"
        raise unreadable_file(file, f"it has no column {_DATA}", hint)


def _raw(place: str, row: Mapping[str, object]) -> RawEvent:
    data, instance = row.get(_DATA), row.get(_INSTANCE)
    why = find_undecodable((data, instance))
    if why is not None:
        return RawEvent(place, None, why=why)
    if not isinstance(data, str) or not data.strip():
        return RawEvent(place, None, why=f"{_DATA} is empty")
    return RawEvent(place, data.strip(), instance.strip() or None if isinstance(instance, str) else None)


def _json(stream: IO[str], file: str) -> Iterator[RawEvent]:
    """Yield events from objects, one a line, or from a whole array of them."""
    first = stream.readline()
    if not first.lstrip().startswith("["):
        for number, line in enumerate(chain([first], stream), start=1):
            if line.strip():
                yield _of_value(f"{file}, row {number}", _value(line))
        return
    document = _value(first + stream.read())
    if not isinstance(document, list):
        raise unreadable_file(file, "it is neither a JSON array of objects nor an object a line")
    for number, value in enumerate(document, start=1):
        yield _of_value(f"{file}, row {number}", value)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_value(place: str, value: object) -> RawEvent:
    if not isinstance(value, dict):
        return RawEvent(place, None, why="it is not a JSON object")
    return _raw(place, {str(name).lower(): cell for name, cell in value.items()})


def _parquet(path: Path, file: str) -> Iterator[RawEvent]:
    try:
        import pyarrow.dataset as datasets
    except ImportError as error:
        raise missing_package("pyarrow", file) from error
    number = 0
    try:
        rows = datasets.dataset(path, format="parquet")
        names = {name.lower(): name for name in rows.schema.names}
        _require(list(names), file)
        read_names = [names[name] for name in (_DATA, _INSTANCE) if name in names]
        for batch in rows.to_batches(columns=read_names, batch_size=_AT_ONCE):
            columns = [plain_values(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                number += 1
                yield _raw(f"{file}, row {number}", dict(zip(map(str.lower, read_names), row, strict=True)))
    except (OSError, ValueError) as error:
        raise unreadable_file(file, first_sentence(error)) from error


def _xml(stream: IO[str], file: str) -> Iterator[RawEvent]:
    """Read the events of one or more documents in a file, and ignore the text around them."""
    cutter = _Cutter()
    parts = chain(iter(lambda: stream.read(_AT_ONCE), ""), (None,))
    event_texts = chain.from_iterable(map(cutter.cut, parts))
    for number, (text, why) in enumerate(event_texts, start=1):
        place = f"{file}, event {number}"
        yield _raw(place, {_DATA: text}) if why is None else RawEvent(place, None, why=why)


@dataclass
class _Cutter:
    """Cuts events out of a text that is read in parts. Each character is examined once, even in unclosed events.

    ``text`` is the part that may still belong to an event. ``at`` is the position after the examined text,
    ``begin`` the start of the open event. No CDATA section ends before ``closed_to``.
    """

    text: str = ""
    at: int = 0
    begin: int | None = None
    closed_to: int = 0

    def cut(self, part: str | None) -> Iterator[tuple[str, str | None]]:
        """Yield the events that end in the next part, or a reason for a broken event. None ends the text."""
        self.text += part or ""
        is_last = part is None
        while (match := _MARK.search(self.text, self.at)) is not None:
            end = self._find_end(match, is_last=is_last)
            if end is None:
                break
            yield from self._see(match, end)
            self.at = end
        if is_last:
            if self.begin is not None:
                yield "", _NOT_CLOSED
            return
        if match is None:
            # What may be the beginning of a mark.
            self.at = max(self.at, len(self.text) - _LONGEST_MARK)
        if self.begin is not None and len(self.text) - self.begin > LONGEST:
            yield "", f"it has more than {LONGEST:,} characters"
            self.begin = None
            if match is not None and match.group() == _SECTION:
                # One that takes so long is none.
                self.at = match.end()
        self._forget()

    def _find_end(self, match: re.Match[str], *, is_last: bool) -> int | None:
        """Return the end of a tag with its attributes, or of a section with its text. None asks for more text."""
        if match.group() == _END:
            return match.end()
        if match.group() == _SECTION:
            if self.begin is None:
                return match.end()
            end = self.text.find(_SECTION_END, max(match.end(), self.closed_to))
            self.closed_to = max(len(self.text) - len(_SECTION_END), self.closed_to) if end < 0 else end
            if end >= 0:
                return end + len(_SECTION_END)
        else:
            tag = _TAG.match(self.text, match.start())
            is_whole = tag is not None and tag.group().endswith(">")
            if tag is not None and (is_whole or self.text.find("<", match.end()) >= 0):
                return tag.end()
        is_too_long = len(self.text) - match.start() > LONGEST
        return match.end() if is_last or is_too_long else None

    def _see(self, match: re.Match[str], end: int) -> Iterator[tuple[str, str | None]]:
        if match.group() == _SECTION:
            return
        if match.group() == _END:
            if self.begin is not None:
                yield self.text[self.begin : end], None
            self.begin = None
            return
        if self.begin is not None:
            yield "", _NOT_CLOSED
        self.begin = match.start()
        if self.text.endswith("/>", match.start(), end):
            yield self.text[self.begin : end], None
            self.begin = None

    def _forget(self) -> None:
        forgotten = self.at if self.begin is None else self.begin
        self.text, self.at, self.closed_to = (
            self.text[forgotten:],
            self.at - forgotten,
            max(self.closed_to - forgotten, 0),
        )
        self.begin = None if self.begin is None else 0
