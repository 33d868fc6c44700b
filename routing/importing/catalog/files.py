"""The files of an import → result sets, each with the view that it holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from routing.errors import InputError
from routing.importing.catalog import records
from routing.importing.catalog.chunks import is_json
from routing.importing.catalog.delimited import result_sets
from routing.importing.catalog.fixed_width import fixed_width, is_fixed_width
from routing.importing.catalog.result_sets import ResultSet
from routing.importing.catalog.texts import read_text
from routing.importing.catalog.views import VIEW_NAME, VIEWS, View, find_view
from routing.importing.faults import NoTextError, unknown_view, unreadable_file
from routing.importing.listing import list_files
from routing.importing.reach import Place, Reach, on_this_disk

_DELIMITED = {".csv", ".txt", ".tsv", ".rpt", ".dat"}
_JSON = {".json", ".jsonl", ".ndjson"}
_PARQUET = {".parquet"}
_ENDINGS = ", ".join(sorted(_DELIMITED | _JSON | _PARQUET))
_SHOWN_UNREAD = 20


@dataclass(frozen=True)
class Found:
    """One result set of one file, and its view."""

    file: str
    view: View
    rows: ResultSet


def read_sources(
    sources: Sequence[str], view: str | None, reach: Reach = on_this_disk
) -> tuple[list[Found], list[str]]:
    """What the files and folders hold, and what is said about them.

    ``view`` is the view of the one file that is named, ``reach`` gives their places. Raises InputError for a file
    that cannot be read, EnvironmentFault where a package is missing.
    """
    places = [reach(source) for source in sources]
    found, notes = _find_in(places, _force(places, view))
    if not found:
        raise unreadable_file(" ".join(sources), "it holds no export of a view")
    return found, notes


def find_result_sets(sources: Sequence[str], others: Collection[str] = ()) -> tuple[list[Found], list[str]]:
    """As `read_sources`, of folders that may hold none; ``others`` are endings of files that others read."""
    return _find_in([on_this_disk(source) for source in sources], others=others)


def _find_in(
    places: Sequence[Place], forced: View | None = None, others: Collection[str] = ()
) -> tuple[list[Found], list[str]]:
    found: list[Found] = []
    unread: list[str] = []
    for path in places:
        try:
            found.extend(_read_all(path, forced, others, unread))
        except OSError as error:
            raise unreadable_file(str(path), error.strerror or str(error)) from error
    return found, _say_unread(unread)


def _read_all(path: Place, forced: View | None, others: Collection[str], unread: list[str]) -> Iterator[Found]:
    """The result sets of one file, or of those in a folder."""
    if not path.exists():
        raise unreadable_file(str(path), "there is no such file")
    if path.is_dir() and path.suffix.lower() not in _PARQUET:
        for file in list_files(path, unread):
            if file.suffix.lower() not in others:
                yield from _read_one_of_many(file, unread)
        return
    named = _read(path, forced or find_view(path.stem))
    if not named:
        hint = "say which with --view"
        raise unreadable_file(str(path), "neither its name nor its columns tell its view", hint)
    yield from named


def _read_one_of_many(path: Place, unread: list[str]) -> list[Found]:
    """The result sets of a file in a folder; ``unread`` gets it and why, where it is no export."""
    if path.suffix.lower() not in _DELIMITED | _JSON | _PARQUET:
        unread.append(f"{path}: not read, its name ends in none of {_ENDINGS}")
        return []
    try:
        found = _read(path, find_view(path.stem))
    except NoTextError:
        unread.append(f"{path}: not read, it is not text")
        return []
    if not found:
        unread.append(f"{path}: not read, its name is none of a view")
    return found


def _say_unread(unread: Sequence[str]) -> list[str]:
    rest = len(unread) - _SHOWN_UNREAD
    return [*unread[:_SHOWN_UNREAD], *([f"{rest} more files were not read"] if rest > 0 else [])]


def _force(places: Sequence[Place], view: str | None) -> View | None:
    if view is None:
        return None
    forced = find_view(view)
    if forced is None:
        raise unknown_view(view, list(VIEWS))
    if len(places) != 1 or places[0].is_dir():
        raise InputError("--view needs exactly one file", "import the others by themselves")
    return forced


def _read(path: Place, view: View | None) -> list[Found]:
    """The result sets of one file; none where nothing tells their view. ``view`` is what its name tells."""
    file = str(path)
    if path.suffix.lower() in _PARQUET:
        sets = [records.parquet(path, file)]
    else:
        sets = _read_text(file, read_text(path), path.suffix.lower() in _JSON, view)
    found = []
    for rows in sets:
        told = _own_view(rows)
        # Of several result sets in one file each says what it is.
        of_rows = (told or view) if len(sets) > 1 else (view or told)
        if of_rows is not None:
            found.append(Found(file, of_rows, rows))
        elif rows.rows or rows.rejected:
            raise unreadable_file(file, f"a result set in it has no column {VIEW_NAME}")
    return found


def _read_text(file: str, text: str, is_named_json: bool, view: View | None) -> list[ResultSet]:
    if is_named_json or is_json(text):
        return records.json_sets(text, file) if view is not None or VIEW_NAME in text.lower() else []
    if view is None and not _tells_its_view(text):
        return []
    return fixed_width(text, file) if is_fixed_width(text) else result_sets(text, file, view)


def _tells_its_view(text: str) -> bool:
    head = text.lstrip()[:2000].lower()
    return VIEW_NAME in head or find_view(head.split(",", 1)[0].split("\t", 1)[0].strip('" ')) is not None


def _own_view(rows: ResultSet) -> View | None:
    """The view that the column ``view_name`` tells; without rows, the one of which the queries export these."""
    for _, cells in rows.rows:
        name = cells.get(VIEW_NAME)
        if isinstance(name, str):
            return find_view(name)
    columns = set(rows.columns)
    return next((view for view in VIEWS.values() if columns in map(set, view.of_queries)), None)
