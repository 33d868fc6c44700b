"""The files of an import → result sets, each with the view that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from routing.errors import InputError
from routing.importing.catalog import records
from routing.importing.catalog.delimited import ResultSet, result_sets
from routing.importing.catalog.views import VIEW_NAME, VIEWS, View, find_view
from routing.importing.faults import unknown_view, unreadable_file
from routing.importing.tsql.decoding import decode

_DELIMITED = {".csv", ".txt", ".tsv", ".rpt", ".dat"}
_JSON = {".json", ".jsonl", ".ndjson"}
_PARQUET = {".parquet"}


@dataclass(frozen=True)
class Found:
    """One result set of one file, and its view."""

    file: str
    view: View
    rows: ResultSet


def read_sources(sources: Sequence[str], view: str | None) -> tuple[list[Found], list[str]]:
    """What the files and folders hold, and what is said about them.

    ``view`` is the view of the one file that is named. Raises InputError for a file that cannot be read,
    EnvironmentFault where a package is missing.
    """
    found, notes = find_result_sets(sources, _force(sources, view))
    if not found:
        raise unreadable_file(" ".join(sources), "it holds no export of a view")
    return found, notes


def find_result_sets(sources: Sequence[str], forced: View | None = None) -> tuple[list[Found], list[str]]:
    """As `read_sources`, of folders that may hold none."""
    found: list[Found] = []
    notes: list[str] = []
    for source in sources:
        path = Path(source)
        if not path.exists():
            raise unreadable_file(source, "there is no such file")
        if path.is_dir() and path.suffix.lower() not in _PARQUET:
            for file in _files_in(path):
                own = find_view(file.stem)
                named = _read(file, own)
                if named:
                    found.extend(named)
                else:
                    notes.append(f"{file}: its name is none of a view; passed over")
            continue
        named = _read(path, forced or find_view(path.stem))
        if not named:
            hint = "say which with --view"
            raise unreadable_file(source, "neither its name nor its columns tell its view", hint)
        found.extend(named)
    return found, notes


def _force(sources: Sequence[str], view: str | None) -> View | None:
    if view is None:
        return None
    forced = find_view(view)
    if forced is None:
        raise unknown_view(view, list(VIEWS))
    if len(sources) != 1 or Path(sources[0]).is_dir():
        raise InputError("--view needs exactly one file", "import the others by themselves")
    return forced


def _files_in(folder: Path) -> Iterator[Path]:
    """Data files at any depth, in the order of their names; a folder of Parquet files is one."""
    for entry in sorted(folder.iterdir(), key=lambda path: path.name):
        suffix = entry.suffix.lower()
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir() and suffix not in _PARQUET:
            yield from _files_in(entry)
        elif suffix in _DELIMITED | _JSON | _PARQUET:
            yield entry


def _read(path: Path, view: View | None) -> list[Found]:
    """The result sets of one file whose view is known; none where it is not."""
    file, suffix = str(path), path.suffix.lower()
    if suffix in _PARQUET:
        sets = [records.parquet(path, file)]
    else:
        try:
            decoded = decode(path.read_bytes())
        except OSError as error:
            raise unreadable_file(file, error.strerror or "the system says no more") from error
        if decoded.unreadable and decoded.unreadable > len(decoded.text) // 2:
            raise unreadable_file(file, f"it is no text in {decoded.encoding}")
        if suffix in _JSON:
            sets = [records.json_lines(decoded.text, file)]
        elif view is None and not _tells_its_view(decoded.text):
            return []
        else:
            sets = result_sets(decoded.text, file, view)
    found = []
    for rows in sets:
        told = _own_view(rows)
        # Of several result sets in one file each says what it is.
        of_rows = (told or view) if len(sets) > 1 else (view or told)
        if of_rows is not None:
            found.append(Found(file, of_rows, rows))
        elif rows.rows:
            raise unreadable_file(file, f"a result set in it has no column {VIEW_NAME}")
    return found


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
