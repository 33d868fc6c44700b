"""The files of an import of events → the text of each event with its place, a few at a time."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from routing.errors import first_sentence, quote
from routing.importing.catalog.files import files_in
from routing.importing.events.parsing import LONGEST
from routing.importing.faults import missing_package, unreadable_file
from routing.importing.reach import Place, Reach, copied

_TABULAR = {".csv", ".txt", ".tsv"}
_JSON = {".json", ".jsonl", ".ndjson"}
_PARQUET, _XML = {".parquet"}, {".xml"}
_ENDINGS = _TABULAR | _JSON | _PARQUET | _XML
_DATA, _INSTANCE = "event_data", "instance_name"
_AT_ONCE = 1 << 16
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BEGIN = re.compile(r"<event[\s>]")
_END = "</event>"


class Raw(NamedTuple):
    """A row as it is read: where, the event's XML, and the instance that it names; ``why`` it is none."""

    place: str
    data: str | None
    instance: str | None = None
    why: str | None = None


def read_events(sources: Sequence[str], reach: Reach) -> Iterator[Raw]:
    """All rows of files, and of folders' files, in the order of their names.

    Raises InputError for a file that cannot be read, EnvironmentFault where a package is missing.
    """
    for place in [reach(source) for source in sources]:
        try:
            if not place.exists():
                raise unreadable_file(str(place), "there is no such file")
            of_folder = place.is_dir() and place.suffix.lower() not in _PARQUET
            for file in files_in(place) if of_folder else (place,):
                if file.suffix.lower() in _ENDINGS:
                    yield from _read_file(file)
                elif not of_folder:
                    hint = f"name a file that ends in {', '.join(sorted(_ENDINGS))}"
                    raise unreadable_file(str(file), "its name does not tell what it holds", hint)
        except OSError as error:
            raise unreadable_file(str(place), error.strerror or str(error)) from error


def _read_file(place: Place) -> Iterator[Raw]:
    suffix, file = place.suffix.lower(), str(place)
    with copied(place) as path:
        if suffix in _PARQUET:
            yield from _parquet(path, file)
            return
        with path.open(encoding=_encoding_of(path), errors="replace", newline="") as stream:
            if suffix in _XML:
                yield from _xml(stream, file)
            elif suffix in _JSON:
                yield from _json(stream, file)
            else:
                yield from _delimited(stream, file)


def _encoding_of(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(4)
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")


def _delimited(stream: IO[str], file: str) -> Iterator[Raw]:
    """Lines with a header; sqlcmd's line of dashes is left out."""
    with _long_fields():
        first = stream.readline()
        separator = max(",;\t|", key=first.count)
        header = [name.strip().lower() for name in next(csv.reader([first], delimiter=separator), [])]
        _require(header, file)
        reader = csv.reader(stream, delimiter=separator)
        for number, row in enumerate(_rows_of(reader), start=2):
            if not any(row) or all(cell and not cell.strip("-") for cell in row):
                continue
            place = f"{file}, row {number}"
            if len(row) != len(header):
                yield Raw(place, None, why=f"it has {len(row)} cells, the header {len(header)}")
                continue
            yield _raw(place, dict(zip(header, row, strict=True)))


def _rows_of(reader: Any) -> Iterator[list[str]]:
    """Rows of csv; one that it cannot split is an empty cell too many."""
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield [f"{error}", ""] * 50


@contextmanager
def _long_fields() -> Iterator[None]:
    """A field may be as long as an event, and is looked at then; csv refuses the file otherwise."""
    before = csv.field_size_limit(1 << 30)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _require(names: Sequence[str], file: str) -> None:
    if _DATA not in names:
        hint = "export it by the script of sbroute import queries --events"
        raise unreadable_file(file, f"it has no column {_DATA}", hint)


def _raw(place: str, row: Mapping[str, object]) -> Raw:
    data, instance = row.get(_DATA), row.get(_INSTANCE)
    if not isinstance(data, str) or not data.strip():
        return Raw(place, None, why=f"{_DATA} is empty")
    return Raw(place, data.strip(), instance.strip() or None if isinstance(instance, str) else None)


def _json(stream: IO[str], file: str) -> Iterator[Raw]:
    """Objects, one a line; or a whole array of them."""
    first = stream.readline()
    if not first.lstrip().startswith("["):
        for number, line in enumerate(_lines(first, stream), start=1):
            if line.strip():
                yield _of_value(f"{file}, row {number}", _value(line))
        return
    found = _value(first + stream.read())
    if not isinstance(found, list):
        raise unreadable_file(file, "it is no JSON array of objects, and no object a line")
    for number, value in enumerate(found, start=1):
        yield _of_value(f"{file}, row {number}", value)


def _lines(first: str, stream: IO[str]) -> Iterator[str]:
    yield first
    yield from stream


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_value(place: str, value: object) -> Raw:
    if not isinstance(value, dict):
        return Raw(place, None, why="it is not a JSON object")
    return _raw(place, {str(name).lower(): cell for name, cell in value.items()})


def _parquet(path: Path, file: str) -> Iterator[Raw]:
    try:
        import pyarrow.dataset as datasets
    except ImportError as error:
        raise missing_package("pyarrow", file) from error
    number = 0
    try:
        rows = datasets.dataset(path, format="parquet")
        names = {name.lower(): name for name in rows.schema.names}
        _require(list(names), file)
        wanted = [names[name] for name in (_DATA, _INSTANCE) if name in names]
        for batch in rows.to_batches(columns=wanted, batch_size=_AT_ONCE):
            for row in batch.to_pylist():
                number += 1
                yield _raw(f"{file}, row {number}", {name.lower(): cell for name, cell in row.items()})
    except (OSError, ValueError) as error:
        raise unreadable_file(file, first_sentence(error)) from error


def _xml(stream: IO[str], file: str) -> Iterator[Raw]:
    """The events of a document, or of many one after another; what stands around them is not looked at."""
    rest, number = "", 0
    for part in iter(lambda: stream.read(_AT_ONCE), ""):
        rest += part
        while (begin := _BEGIN.search(rest)) is not None:
            end = rest.find(_END, begin.start())
            if end < 0:
                break
            number += 1
            yield _raw(f"{file}, event {number}", {_DATA: rest[begin.start() : end + len(_END)]})
            rest = rest[end + len(_END) :]
        if begin is None:
            # As much as may be the beginning of one.
            rest = rest[-len("<event") :]
        elif len(rest) - begin.start() > LONGEST:
            number += 1
            yield Raw(f"{file}, event {number}", None, why=f"it has more than {LONGEST:,} characters")
            rest = rest[begin.end() :]
    if _BEGIN.search(rest) is not None:
        yield Raw(f"{file}, event {number + 1}", None, why=f"it has no {quote(_END)}")
