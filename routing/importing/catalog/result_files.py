"""The files of an import → result sets, each with the view that it holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from routing.errors import InputError
from routing.importing.catalog import records
from routing.importing.catalog.chunks import is_json
from routing.importing.catalog.delimited import result_sets
from routing.importing.catalog.export_cells import SEPARATORS
from routing.importing.catalog.fixed_width import fixed_width, is_fixed_width
from routing.importing.catalog.result_sets import ResultSet, lines_of
from routing.importing.catalog.texts import read_text
from routing.importing.catalog.views import VIEW_NAME, VIEWS, CatalogView, find_view, find_view_by_columns
from routing.importing.import_faults import NoTextError, unknown_view, unreadable_file
from routing.importing.listing import list_files
from routing.importing.reach import FilePlace, Reach, on_this_disk

_DELIMITED = {".csv", ".txt", ".tsv", ".rpt", ".dat"}
_JSON = {".json", ".jsonl", ".ndjson"}
_PARQUET = {".parquet"}
_ENDINGS = ", ".join(sorted(_DELIMITED | _JSON | _PARQUET))
_SHOWN, _LONGEST = 20, 200
_LONGEST_HEADER = 20_000
_TELLING = frozenset(max(view.known_by, key=len) for view in VIEWS.values())
"""The longest of the names that each view is known by."""


@dataclass(frozen=True)
class FoundResultSet:
    """One result set of one file, and its view."""

    file: str
    view: CatalogView
    rows: ResultSet


def read_sources(
    sources: Sequence[str], view: str | None, reach: Reach = on_this_disk
) -> tuple[list[FoundResultSet], list[str]]:
    """Read the result sets of files and folders, with the notes on them. Raises InputError.

    ``view`` is the view of the one file that is named, ``reach`` gives their places. Raises InputError for a file
    that cannot be read, EnvironmentFault where a package is missing.
    """
    places = [reach(source) for source in sources]
    sets, notes = _find_in(places, _force(places, view))
    if not sets:
        raise unreadable_file(" ".join(sources), "it holds no export of a view")
    return sets, notes


def find_result_sets(
    sources: Sequence[str], others: Collection[str] = ()
) -> tuple[list[FoundResultSet], list[str]]:
    """Read the result sets of folders that may hold none; ``others`` are endings of files to leave out."""
    return _find_in([on_this_disk(source) for source in sources], others=others)


def _find_in(
    places: Sequence[FilePlace], forced: CatalogView | None = None, others: Collection[str] = ()
) -> tuple[list[FoundResultSet], list[str]]:
    sets: list[FoundResultSet] = []
    unread: list[str] = []
    notes: list[str] = []
    for path in places:
        try:
            sets.extend(_read_all(path, forced, others, unread, notes))
        except OSError as error:
            raise unreadable_file(str(path), error.strerror or str(error)) from error
    return sets, [*_limit_sentences(unread, "files were not read"), *_limit_sentences(notes, "notes on files")]


def _read_all(
    path: FilePlace, forced: CatalogView | None, others: Collection[str], unread: list[str], notes: list[str]
) -> Iterator[FoundResultSet]:
    """Yield the result sets of one file, or of those in a folder."""
    if not path.exists():
        raise unreadable_file(str(path), "there is no such file")
    if path.is_dir() and path.suffix.lower() not in _PARQUET:
        for file in list_files(path, unread):
            if file.suffix.lower() not in others:
                yield from _read_one_of_many(file, unread, notes)
        return
    named = _read(path, forced, notes)
    if not named:
        hint = "copy a grid with its headers, or call the file like its view (import: --view)"
        raise unreadable_file(str(path), "neither its name nor its columns tell its view", hint)
    yield from named


def _read_one_of_many(path: FilePlace, unread: list[str], notes: list[str]) -> list[FoundResultSet]:
    """Return the result sets of a file in a folder; ``unread`` gets it and why, where it is no export."""
    if path.suffix.lower() not in _DELIMITED | _JSON | _PARQUET:
        unread.append(f"{path}: not read, its name ends in none of {_ENDINGS}")
        return []
    try:
        sets = _read(path, None, notes)
    except NoTextError:
        unread.append(f"{path}: not read, it is not text")
        return []
    if not sets:
        unread.append(f"{path}: not read, neither its name nor its columns tell a view")
    return sets


def _limit_sentences(sentences: Sequence[str], what: str) -> list[str]:
    rest = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], *([f"{rest} more {what}"] if rest > 0 else [])]


def _force(places: Sequence[FilePlace], view: str | None) -> CatalogView | None:
    if view is None:
        return None
    forced = find_view(view)
    if forced is None:
        raise unknown_view(view, list(VIEWS))
    if len(places) != 1 or places[0].is_dir():
        raise InputError("--view needs exactly one file", "import the others by themselves")
    return forced


def _read(path: FilePlace, forced: CatalogView | None, notes: list[str]) -> list[FoundResultSet]:
    """Return the result sets of one file; none where nothing tells their view.

    ``notes`` learns which view columns alone tell, and of result sets beside it that are of no view.
    """
    file, view = str(path), forced or find_view(path.stem)
    if path.suffix.lower() in _PARQUET:
        sets = [records.parquet(path, file)]
    else:
        sets = _read_text(file, read_text(path), path.suffix.lower() in _JSON, view)
    views = [forced or _view_of(rows, view, is_alone=len(sets) == 1) for rows in sets]
    if not any(views):
        return []
    if forced is None:
        notes += _say_by_columns(file, sets, views, view)
    return [FoundResultSet(file, view, rows) for rows, view in zip(sets, views, strict=True) if view is not None]


def _view_of(rows: ResultSet, named: CatalogView | None, *, is_alone: bool) -> CatalogView | None:
    """Return the view of a result set; ``named`` is what the file's name tells, which speaks of one alone.

    A name that the columns contradict is wrong: they lack what its view must have, and have those of another.
    """
    view_of_columns = _own_view(rows)
    if named is None or not is_alone:
        return view_of_columns or named
    needed = {column.name for column in named.columns if column.required}
    is_named_wrong = view_of_columns is not None and bool(rows.columns) and not needed <= set(rows.columns)
    return view_of_columns if is_named_wrong else named


def _say_by_columns(
    file: str, sets: Sequence[ResultSet], views: Sequence[CatalogView | None], named: CatalogView | None
) -> Iterator[str]:
    """Yield a note on each view that columns alone tell, and on rows that are of none."""
    views_of_columns = [view for rows, view in zip(sets, views, strict=True) if VIEW_NAME not in rows.columns]
    for view in dict.fromkeys(views_of_columns):
        if view is not None and view is not named:
            yield f"{file}: its columns tell that it holds sys.{view.name}"
    for rows, view in zip(sets, views, strict=True):
        if view is None and (rows.rows or rows.rejected):
            count = len(rows.rows) + len(rows.rejected)
            phrase = f"{count} rows beside it are not read, their columns tell no view"
            yield f"{file}: {phrase}: {', '.join(rows.columns)[:_LONGEST]}"


def _read_text(file: str, text: str, is_named_json: bool, view: CatalogView | None) -> list[ResultSet]:
    if is_named_json or is_json(text):
        return records.json_sets(text, file) if view is not None or _json_tells_its_view(text) else []
    if view is None and not _tells_its_view(text):
        return []
    return fixed_width(text, file) if is_fixed_width(text) else result_sets(text, file, view)


def _tells_its_view(text: str) -> bool:
    head = text.lstrip()[:2000].lower()
    is_named = VIEW_NAME in head or find_view(head.split(",", 1)[0].split("\t", 1)[0].strip('" ')) is not None
    return is_named or any(map(_is_header_of_a_view, lines_of(text)))


def _is_header_of_a_view(line: str) -> bool:
    """Return whether a line has the names of columns that tell a view, with any separator."""
    lowered = line[:_LONGEST_HEADER].lower()
    if not any(name in lowered for name in _TELLING):
        return False
    cells = (lowered.split(separator) for separator in (*SEPARATORS, None))
    return any(find_view_by_columns([cell.strip(' "') for cell in names]) is not None for names in cells)


def _json_tells_its_view(text: str) -> bool:
    lowered = text.lower()
    return VIEW_NAME in lowered or any(
        all(f'"{name}"' in lowered for name in view.known_by) for view in VIEWS.values()
    )


def _own_view(rows: ResultSet) -> CatalogView | None:
    """Return the view that the column ``view_name`` tells, else the one that the columns tell."""
    for _, cells in rows.rows:
        name = cells.get(VIEW_NAME)
        if isinstance(name, str):
            return find_view(name)
    columns = set(rows.columns)
    exported = next((view for view in VIEWS.values() if columns in map(set, view.of_queries)), None)
    return exported or find_view_by_columns(columns)
