"""Read the files of an import into result sets, each with the view that it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from routing.errors import InputError, first_sentence, quote
from routing.importing.catalog import views
from routing.importing.catalog.cell_rows import CellRows, SharedTexts
from routing.importing.catalog.json_texts import is_json, json_sets
from routing.importing.catalog.printed_lines import lines_of
from routing.importing.catalog.row_check import note_unnamed
from routing.importing.catalog.text_lines import SEPARATORS, is_html
from routing.importing.catalog.text_tables import read_error_log, result_sets
from routing.importing.catalog.views import VIEW_NAME, VIEWS, CatalogView, ResultSet
from routing.importing.encodings import GUESS, is_guessed, is_plausible, option_for, say_guess
from routing.importing.import_faults import (
    OtherFileError,
    UnopenedFileError,
    missing_package,
    unknown_view,
    unreadable_file,
)
from routing.importing.import_files import KEEP, FilePlace, Reach, as_shown, copied, find_files, on_this_disk
from routing.importing.other_formats import find_foreign_text, other_format_of
from routing.importing.tsql.script_reader import DecodedScript, decode
from routing.importing.tsql.vocabulary import UNSEEN, name_character
from routing.rules.text import host
from routing.tables.arrow_rows import plain_values

# Read files as text, or say why they hold none.


_SAMPLE, _RARE = 100_000, 50
# Texts may have line ends, tabs, form feeds and the old end-of-file character.
_OTHER_CONTROLS = frozenset(chr(code) for code in (*range(1, 32), 127)) - set("\t\n\r\f\x1a")


def read_text(path: FilePlace) -> DecodedScript:
    """Read the text of a file, in which undecodable bytes are kept until their row is rejected.

    Raises UnopenedFileError if it cannot be read, OtherFileError if it is not text.
    """
    try:
        decoded = decode(path.read_bytes(), KEEP)
    except OSError as error:
        raise UnopenedFileError.of_file(str(path), error.strerror or "the system says no more") from error
    except ValueError as error:
        raise UnopenedFileError.of_file(str(path), str(error)) from error
    if not is_text(decoded):
        raise OtherFileError.of_file(str(path), "it is not text")
    foreign_text = find_foreign_text(decoded.text)
    if foreign_text is not None:
        view = views.find_view_by_columns(re.findall(r"\w+", decoded.text.lower()))
        raise (OtherFileError if view is None else UnopenedFileError).of_file(str(path), foreign_text)
    return decoded


def is_text(decoded: DecodedScript) -> bool:
    """Return True if this is text: control characters are rare in it.

    bcp writes an empty value as the character 0, so that one may be more frequent.
    """
    sample = decoded.text[:_SAMPLE]
    strange = sum(map(_OTHER_CONTROLS.__contains__, sample))
    return (
        _RARE * strange <= len(sample)
        and 2 * sample.count("\x00") <= len(sample)
        and 2 * decoded.unreadable <= len(decoded.text)
    )


def parquet(path: FilePlace, file: str) -> ResultSet:
    """Read a Parquet file, or a folder of them. Raises UnopenedFileError, and EnvironmentFault without pyarrow."""
    try:
        import pyarrow.parquet as reader
    except ImportError as error:
        raise missing_package("pyarrow", file) from error
    try:
        with copied(path) as local_copy:
            table = reader.read_table(str(local_copy))
        names = views.fold_columns(table.column_names)
        columns = {name: plain_values(cells) for name, cells in zip(names, table.columns, strict=True)}
    except Exception as error:
        raise UnopenedFileError.of_file(file, first_sentence(error)) from error
    if not columns:
        raise UnopenedFileError.of_file(file, "it has no columns")
    if len(columns) < len(names):
        raise UnopenedFileError.of_file(file, f"it has several columns {max(names, key=names.count)}")
    part = ResultSet(tuple(columns))
    note_unnamed(part.rows, 0, columns)
    part.rows.add(range(1, table.num_rows + 1), columns, SharedTexts(), is_plain=False)
    return part


_TEXT = {".csv", ".txt", ".tsv", ".rpt", ".dat", ".out", ".log", ".md", ".rst", ".html", ".htm"}
_JSON, _PARQUET = {".json", ".jsonl", ".ndjson"}, {".parquet"}
_ENDINGS = ", ".join(sorted(_TEXT | _JSON | _PARQUET))
_SHOWN, _SHOWN_WHY, _LONGEST = 20, 3, 200
_LONGEST_HEADER, _HEADS = 20_000, 100
_AROUND_NAME = ' "*`'
_FIRST_WORD = re.compile(r"\W*(\w+)").match
_TELLING = frozenset(
    (
        max(views.ASKED_QUEUE, key=len),
        *(max(view.known_by, key=len) for view in VIEWS.values()),
        *views.OTHER_NAMES,
    )
)
"""The longest of the names that each view is known by, and the names of other programs."""


@dataclass(frozen=True)
class FoundResultSet:
    """One result set of one file, and its view."""

    file: str
    view: CatalogView
    rows: ResultSet


class SkippedFile(NamedTuple):
    """A file that is skipped for some reason, and the view that it seems to be of.

    ``is_export`` is True if it seems to be an export that cannot be read.
    """

    file: str
    why: str
    view: str | None = None
    is_export: bool = False

    @property
    def note(self) -> str:
        """A sentence on it."""
        return f"{self.file}: {self.why}"


class SourcesRead(NamedTuple):
    """The result sets of files, the notes on these, and the files of folders that are skipped."""

    sets: list[FoundResultSet]
    notes: list[str]
    skipped: list[SkippedFile]

    def skip(self, file: str, why: str, view: str | None = None, *, is_export: bool = False) -> None:
        """Note a file of a folder that is not read."""
        self.skipped.append(SkippedFile(file, f"not read, {why}", view, is_export))


def read_sources(sources: Sequence[str], view: str | None, reach: Reach = on_this_disk) -> SourcesRead:
    """Read the result sets of files and folders, with the notes on them. Raises InputError.

    ``view`` is the view of the one file that is named, ``reach`` gives their places. Raises InputError for a file
    that cannot be read, EnvironmentFault if a package is missing.
    """
    places = [reach(source) for source in sources]
    done = _find_in(places, _force(places, view))
    if not done.sets:
        why = "; ".join(["it has no export of a view", *(file.note for file in done.skipped[:_SHOWN_WHY])])
        raise unreadable_file(" ".join(sources), why)
    return done


def find_result_sets(sources: Sequence[str], skipped: Collection[str] = ()) -> SourcesRead:
    """Read the result sets of folders that may hold none. ``skipped`` are file suffixes to leave out."""
    return _find_in([on_this_disk(source) for source in sources], skipped=skipped)


def _find_in(
    places: Sequence[FilePlace], forced: CatalogView | None = None, skipped: Collection[str] = ()
) -> SourcesRead:
    done = SourcesRead([], [], [])
    for path in places:
        try:
            _read_all(path, forced, skipped, done)
        except OSError as error:
            raise unreadable_file(str(path), error.strerror or str(error)) from error
    unread = _limit_sentences([file.note for file in done.skipped], "files were not read")
    return done._replace(notes=[*unread, *_limit_sentences(done.notes, "notes on files")])


def _read_all(path: FilePlace, forced: CatalogView | None, skipped: Collection[str], done: SourcesRead) -> None:
    if not path.exists():
        raise unreadable_file(str(path), "there is no such file")
    if path.is_dir() and path.suffix.lower() not in _PARQUET:
        for file in find_files(path, lambda name, why: done.skipped.append(SkippedFile(name, why))):
            if file.suffix.lower() not in skipped:
                _read_one_of_many(file, done, is_lenient=bool(skipped))
        return
    if forced is None:
        _refuse_other_format(path)
    named = _read(path, forced, done.notes)
    if not named:
        lack, _ = _find_lack(path)
        if lack is not None:
            raise unreadable_file(str(path), lack)
        hint = "copy the grid with its headers, or name the file after its view (import: --view)"
        raise unreadable_file(str(path), "neither its name nor its columns identify its view", hint)
    done.sets.extend(named)


def _refuse_other_format(path: FilePlace) -> None:
    try:
        other_format = other_format_of(path)
    except OSError as error:
        raise UnopenedFileError.of_file(str(path), error.strerror or str(error)) from error
    if other_format is not None:
        raise OtherFileError.of_file(str(path), other_format)


def _read_one_of_many(path: FilePlace, done: SourcesRead, *, is_lenient: bool) -> None:
    """Read a file in a folder, or note that it is not an export.

    ``is_lenient`` where a file may be called like a view without being one.
    """
    suffix = path.suffix.lower()
    try:
        _refuse_other_format(path)
        if suffix not in _TEXT | _JSON | _PARQUET and path.stem.lower() != "errorlog":
            done.skip(str(path), f"its name does not end in any of {_ENDINGS}")
            return
        sets = _read(path, None, done.notes)
    except OtherFileError as error:
        is_unopened = isinstance(error, UnopenedFileError)
        if is_unopened and not is_lenient:
            raise
        done.skip(str(path), error.note, error.view, is_export=is_unopened)
        return
    if not sets:
        lack, view = _find_lack(path)
        why = lack or "neither its name nor its columns identify a view"
        done.skip(str(path), why, view, is_export=lack is not None)
    done.sets.extend(sets)


def _find_lack(path: FilePlace) -> tuple[str, str] | tuple[None, None]:
    """Return why a file is not an export of the view that it resembles most, and this view, or None for both.

    The columns of a text count before its name.
    """
    if path.suffix.lower() in _PARQUET:
        return None, None
    if path.suffix.lower() in _TEXT:
        lines = [line[:_LONGEST_HEADER].lower() for line in lines_of(read_text(path).text)[:_HEADS]]
        for names in chain.from_iterable(map(_possible_cells, lines)):
            lack = views.find_lack(names)
            if lack is not None:
                return lack
        view = views.find_view_by_columns([word[1] for word in map(_FIRST_WORD, lines) if word])
        if view is not None:
            why = f"each cell of sys.{view.name} is on a line of its own: export it with {views.query_of(view)}"
            return why, view.name
    return views.find_lack_by_name(path.stem, lambda: read_text(path).text) or (None, None)


def _possible_cells(line: str) -> Iterator[list[str]]:
    return ([cell.strip(_AROUND_NAME) for cell in line.split(separator)] for separator in (*SEPARATORS, None))


def _limit_sentences(sentences: Sequence[str], kind: str) -> list[str]:
    omitted = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], *([f"{omitted} more {kind}"] if omitted > 0 else [])]


def _force(places: Sequence[FilePlace], view: str | None) -> CatalogView | None:
    if view is None:
        return None
    forced = views.find_view(view)
    if forced is None:
        raise unknown_view(view, list(VIEWS))
    if len(places) != 1 or places[0].is_dir():
        raise InputError("--view needs exactly one file", "import the others separately")
    return forced


def _read(path: FilePlace, forced: CatalogView | None, notes: list[str]) -> list[FoundResultSet]:
    """Return the result sets of one file with a known view.

    ``notes`` gets a sentence on a view that was recognised by its columns, and on result sets of unknown views.
    """
    file, view, decoded = str(path), forced or views.find_view(path.stem), None
    if path.suffix.lower() in _PARQUET:
        sets = [parquet(path, file)]
    else:
        decoded = read_text(path)
        try:
            sets = _read_text(file, decoded.text, path.suffix.lower() in _JSON, view)
        except UnopenedFileError as error:
            if views.ASKED_QUEUE.intersection(re.findall(r"\w+", decoded.text.lower())):
                error.note += f", but it has columns of sys.{views.QUEUE}"
                error.view = views.QUEUE
            raise
    viewed = [(rows, forced or _view_of(rows, view, is_alone=len(sets) == 1)) for rows in sets]
    for rows, own_view in viewed:
        _refuse_nested(file, rows, own_view)
    if not any(own_view for _, own_view in viewed):
        return []
    if forced is None and view is not None and len(viewed) == 1 and viewed[0][1] == view:
        _refuse_other_columns(file, sets[0], view, "" if decoded is None else decoded.text)
    if forced is None:
        notes += _say_by_columns(path, viewed, view)
    known_sets = [FoundResultSet(file, own_view, rows) for rows, own_view in viewed if own_view is not None]
    _tell_apart(known_sets)
    if decoded is None or not decoded.text.isascii():
        notes += _say_invisible(known_sets)
    if decoded is not None and decoded.encoding == GUESS:
        notes.append(say_guess(file, decoded.text))
        _refuse_implausible([part.rows.rows for part in known_sets])
    return known_sets


def _refuse_nested(file: str, rows: ResultSet, view: CatalogView | None) -> None:
    """Refuse rows with columns of a view in nested objects, as FOR JSON AUTO writes those of a joined table."""
    for member, names in rows.nested.items():
        lacking = sorted(names.difference(rows.columns))
        nested_view = view or views.find_view_by_columns({*rows.columns, *names})
        own_names = [name for name in lacking if nested_view is not None and name in nested_view.own_names]
        if own_names:
            why = f"the objects below {quote(member)} have columns that its rows lack: {', '.join(own_names)}"
            raise unreadable_file(file, why, "write rows without objects in them, as FOR JSON PATH does")


def _say_invisible(sets: Sequence[FoundResultSet]) -> Iterator[str]:
    """Yield a note on each name with an invisible character, by which names that look equal differ, once."""
    for part in sets:
        rows = part.rows.rows
        for column in (*part.view.added_columns, *views.LONGEST):
            texts = (cell for cell in rows.different(column) if isinstance(cell, str) and not cell.isascii())
            unseen = {cell: match.group() for cell in texts if (match := UNSEEN.search(cell)) is not None}
            for number, cell in zip(rows.numbers, rows.column(column), strict=True) if unseen else ():
                if isinstance(cell, str) and cell in unseen:
                    sign = name_character(unseen.pop(cell))
                    which = f"{column} {quote(cell)}"
                    yield f"{part.file}, row {number}: {which} contains the invisible character {sign}"


def _refuse_implausible(parts: Sequence[CellRows]) -> None:
    """Refuse rows with letters outside ASCII in names if the guessed encoding makes any name implausible."""
    columns = [(rows, name, rows.column(name)) for rows in parts for name in views.LONGEST]
    names = [
        (rows, name, place, cell)
        for rows, name, cells in columns
        for place, cell in enumerate(cells)
        if isinstance(cell, str) and not cell.isascii()
    ]
    if all(is_plausible(cell) for _, _, _, cell in names):
        return
    option = option_for("\n".join(cell for _, _, _, cell in names))
    for rows, name, place, cell in names:
        if is_guessed(cell):
            why = f"{name}: {quote(as_shown(cell))} is not a likely name in {GUESS}: give {option}"
            rows.faults.setdefault(place, why)


def _tell_apart(known_sets: Sequence[FoundResultSet]) -> None:
    """Reject several result sets of one view if their instance or database is unknown.

    Lines around them may name databases. For a single result set such a line does not count, because a script may
    have used another database before.
    """
    parts_by_view: dict[str, list[FoundResultSet]] = {}
    for part in known_sets:
        owner = "database_name" if part.view.per_database else "instance_name"
        if owner not in part.rows.columns and part.rows.columns and not part.rows.omits_null:
            parts_by_view.setdefault(part.view.name, []).append(part)
    is_one_database = len({part.rows.database for part in known_sets}) == 1
    if is_one_database and all(len(parts) == 1 for parts in parts_by_view.values()):
        for part in known_sets:
            part.rows.database = None
    for part in known_sets:
        is_doubtful = part.rows.database is not None and not part.rows.has_certain_database
        if is_doubtful and part.view.per_database and "database_name" not in part.rows.columns:
            part.rows.reject_all(f"it is not certain which database the line {quote(part.rows.database)} names")
        if part.rows.is_joined and part.view.per_database and "database_name" not in part.rows.columns:
            part.rows.reject_all("several JSON results are in the file, and no member says of which database")
        _refuse_mixed(part)
    for parts in parts_by_view.values():
        _refuse_repeated(parts)
        unnamed = [part.rows for part in parts if part.rows.database is None or not part.view.per_database]
        if len(parts) > 1 and unnamed and (len(unnamed) < len(parts) or not have_equal_rows(unnamed)):
            kind = "database" if parts[0].view.per_database else "instance"
            why = f"{len(parts)} result sets of sys.{parts[0].view.name} are in the file"
            for rows in unnamed:
                rows.reject_all(f"{why}, and no column or line says of which {kind} this one is")


_NAMED_ONCE = frozenset(["routes", "services", "databases"])


def _refuse_mixed(part: FoundResultSet) -> None:
    """Reject the rows if a name occurs twice and no column shows to which database or instance each belongs.

    A grid that was copied twice has every row equally often. A column with a name like a server's may show it too.
    """
    rows, owners = part.rows, part.view.added_columns
    lacking = [name for name in owners[:-1] if name not in rows.columns]
    owner = None if part.view.evidence else views.find_owner(rows.columns, part.view)
    if owner is not None:
        rows.reject_all("its column {} may be the {} of a row: call it so, or remove it".format(*owner))
    if part.view.name == "routes" and owners[-1] not in rows.columns and _are_hosts_of_addresses(rows.rows):
        why = "the instance of each row is only the host of its address"
        rows.reject_all(f"{why}: remove that column, or export @@SERVERNAME AS instance_name")
    if part.view.name not in _NAMED_ONCE or not lacking:
        return
    keys = list(zip(*(map(str, rows.rows.column(name)) for name in (*owners, "name")), strict=True))
    counts = Counter(keys)
    if len(counts) == len(keys):
        return
    different = {tuple(map(str, row.values())) for _, row in rows.rows}
    if len(different) > len(counts) or len(set(counts.values())) > 1:
        name = counts.most_common(1)[0][0][-1]
        kind = lacking[-1].partition("_")[0]
        rows.reject_all(f"{quote(name)} is in the file twice, and no column says of which {kind} a row is")


def _are_hosts_of_addresses(rows: CellRows) -> bool:
    """Return True if the instances of routes are those of the addresses beside them, and none is of LOCAL."""
    cells = zip(rows.column("instance_name"), rows.column("address"), strict=True)
    pairs = [(host(f"tcp://{instance}"), host(str(address))) for instance, address in cells]
    addressed = [(named, reached) for named, reached in pairs if reached is not None]
    local = {named for named, reached in pairs if reached is None}
    return bool(addressed) and all(named == reached and named not in local for named, reached in addressed)


def _refuse_repeated(parts: Sequence[FoundResultSet]) -> None:
    """Reject result sets below another one of the same database, since a line between them may not be known."""
    first_by_database: dict[str, ResultSet] = {}
    for part in parts:
        name = part.rows.database
        if name is not None and part.view.per_database:
            first = first_by_database.setdefault(name.casefold(), part.rows)
            if first is not part.rows and not have_equal_rows([first, part.rows]):
                part.rows.reject_all(f"it is the second result set below a line with the database {quote(name)}")


def have_equal_rows(sets: Sequence[ResultSet]) -> bool:
    """Return whether result sets have the same rows, so that their order does not matter."""
    first, *other_sets = [(part.columns, [row for _, row in part.rows]) for part in sets]
    return all(rows == first for rows in other_sets)


# Names of columns that files of any program have.
_COMMON = frozenset(["name", "address", "port", "lifetime"])
_NAME = re.compile(r"\bname\b", re.IGNORECASE)


def _refuse_other_columns(file: str, rows: ResultSet, view: CatalogView, text: str) -> None:
    """Raise OtherFileError for a file named like a view, but with the columns of another program."""
    columns, own_names = set(rows.columns), view.own_names
    if not columns and len(rows.rows):
        why = f"it is named like sys.{view.name}, but has no columns"
        raise OtherFileError.of_file(file, why, view=view.name)
    heading = _NAME.search(text) if columns - {*views.OF_A_DATA_ROW} == {"name"} else None
    if heading is not None and (heading[0] != "name" or text.lstrip().startswith(("[", "{"))):
        # SQL Server writes name, and other programs have JSON of it too.
        why = f"its only column is {heading[0]}, as other programs write it"
        hint = f"{views.say_lack(view, columns)}: export it with {views.query_of(view)}"
        raise OtherFileError.of_file(file, why, hint, view=view.name)
    foreign = [name for name in rows.columns if name not in own_names and name not in views.OF_A_DATA_ROW]
    required = {column.name for column in view.columns if column.required}
    has_required, telling = required <= columns, columns & own_names - _COMMON
    # One column may be called so by chance.
    expected = 1 if required and has_required else 2
    if columns and (len(telling) < expected if foreign else not (telling or has_required)):
        shown = ", ".join(foreign or rows.columns)[:_LONGEST]
        why = f"it is named like sys.{view.name}, but its columns are others: {shown}"
        raise OtherFileError.of_file(file, why, view=view.name)


def _view_of(rows: ResultSet, named: CatalogView | None, *, is_alone: bool) -> CatalogView | None:
    """Return the view of a result set. ``named`` is the view in the file's name, which applies to a single set.

    The columns decide if they lack a required column of the named view and fit another view.
    """
    view_of_columns = _own_view(rows)
    if named is None or not is_alone:
        return view_of_columns or named
    needed = {column.name for column in named.columns if column.required}
    is_named_wrong = view_of_columns is not None and bool(rows.columns) and not needed <= set(rows.columns)
    return view_of_columns if is_named_wrong else named


def _say_by_columns(
    path: FilePlace, viewed: Sequence[tuple[ResultSet, CatalogView | None]], named: CatalogView | None
) -> Iterator[str]:
    """Yield a note on each view that its columns tell but not the file name, and on rows that are of no view."""
    views_of_columns = [view for rows, view in viewed if VIEW_NAME not in rows.columns]
    recognised = [
        f"sys.{view.name}"
        for view in dict.fromkeys(views_of_columns)
        if view is not None and view is not named and view.name not in path.stem.lower()
    ]
    if recognised:
        yield f"{path}: recognised by its columns as {', '.join(recognised)}"
    by_columns = [rows for rows, view in viewed if view is None and (len(rows.rows) or rows.rejected)]
    if by_columns:
        count = sum(len(rows.rows) + len(rows.rejected) for rows in by_columns)
        columns = "; ".join(dict.fromkeys(", ".join(rows.columns) for rows in by_columns))
        yield f"{path}: {count} other rows are skipped, their columns match no view: {columns[:_LONGEST]}"


def _read_text(file: str, text: str, is_named_json: bool, view: CatalogView | None) -> list[ResultSet]:
    if is_named_json or is_json(text):
        return json_sets(text, file) if view is not None or _json_tells_its_view(text) else []
    logged = read_error_log(text)
    if logged is not None:
        return [logged]
    if view is None and not _tells_its_view(text):
        return []
    return result_sets(text, file, view)


def _tells_its_view(text: str) -> bool:
    head = text.lstrip()[:2000].lower()
    if is_html(text):
        return views.find_view_by_columns(re.findall(r"\w+", text.lower())) is not None
    first_cell = head.split(",", 1)[0].split("\t", 1)[0].strip('" ')
    is_named = VIEW_NAME in head or views.find_view(first_cell) is not None
    return is_named or any(map(_is_header_of_a_view, lines_of(text)))


def _is_header_of_a_view(line: str) -> bool:
    # Markdown may escape underscores.
    lowered = line[:_LONGEST_HEADER].lower().replace("\\_", "_")
    return any(name in lowered for name in _TELLING) and any(
        views.find_view_by_columns([views.fold_column(cell) for cell in cells])
        for cells in _possible_cells(lowered)
    )


def _json_tells_its_view(text: str) -> bool:
    lowered = text.lower()
    telling = (views.ASKED_QUEUE, *(view.known_by for view in VIEWS.values()))
    return VIEW_NAME in lowered or any(all(f'"{name}"' in lowered for name in names) for names in telling)


def _own_view(rows: ResultSet) -> CatalogView | None:
    """Return the view in the column ``view_name``, else the view that the columns identify."""
    named = next((name for name in rows.rows.different(VIEW_NAME) if isinstance(name, str)), None)
    if named is not None:
        return views.find_view(named)
    columns = set(rows.columns)
    exported = next((view for view in VIEWS.values() if columns in map(set, view.of_queries)), None)
    return exported or views.find_view_by_columns(columns)
