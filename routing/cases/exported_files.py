"""Read the exports in PATHs and find the instance, database and time of each."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from routing.errors import InputError, join_bounded, quote
from routing.groups import group_pairs
from routing.importing.catalog import StandIns, TimeFormats
from routing.importing.catalog.cell_values import UnknownTime
from routing.importing.catalog.result_files import (
    FoundResultSet,
    SkippedFile,
    SourcesRead,
    find_result_sets,
    have_equal_rows,
)
from routing.importing.catalog.typed_rows import PLAIN_TIMES, CatalogExport, export_of, find_lack
from routing.importing.catalog.views import ASKED_QUEUE, OF_A_DATA_ROW, QUEUE, query_of
from routing.importing.import_files import as_shown
from routing.importing.sql_projects import SUFFIX as _PROJECT
from routing.render.wording import format_time, printable
from routing.terms import MSDB, SYSTEM_DATABASES

# Whose an export is and of what time, where neither a column nor an option says it: its place and file do.
# `check` and `lint` answer for the moment, and a note says what was taken. `import` asks instead: an old file's
# time could replace what is newer.


# A folder's name has one of these for the backslash of a named instance, and for the comma before a port.
_IN_FOLDER_NAMES = ("$", "_", "-")
_HANDLE = "conversation_handle"
_QUEUE_NAME = re.compile(r"transmission[ _-]*queue[^/\\]*$", re.IGNORECASE)
_NOT_IN_FOLDER_NAMES = re.compile(r"[\\,]")
# Words in file names that do not name a database.
_NO_DATABASE = frozenset(
    [*("sys", "transmission", "queue", "conversation", "endpoints"), *("routes", "services", "results", "export")]
)
_ANY_INSTANCE = "instance"
_NAMED = re.compile(r"(?<=\w)\$(?=\w)")


def stand_in_for(
    result_sets: Sequence[FoundResultSet], options: StandIns, notes: list[str]
) -> dict[str, StandIns]:
    """Return by file the instance, database and time for exports without these columns, and add notes on them.

    The values of ``options`` come first. Otherwise the time is the file's own. The first name that exists counts:

    - for an instance, a folder with the name of a known instance, the only instance in the folder's other exports,
      the subfolder of the folder with all exports, or that folder
    - for a database, a folder or a word in the file's name with the name of a known database, the only known
      database, or the folder if there are several. Otherwise the database stays unnamed.
    """
    if not result_sets:
        return {}
    parts = group_pairs((part.file, part) for part in result_sets)
    timeless, unnamed, without_database = (
        list(dict.fromkeys(part.file for part in result_sets if _lacks(part, column)))
        if options.as_row()[column] is None
        else []
        for column in ("exported_at", "instance_name", "database_name")
    )
    top = Path(os.path.commonpath([_folder_of(part.file) for part in result_sets]))
    if _folded(top.name) in _folded_databases(result_sets):
        # The folder with all exports is named like a database of theirs.
        top = top.parent
    times = {file: _time_of(file) for file in timeless}
    instances = dict(_instances(result_sets, top, unnamed))
    instance_by_file = {
        file: instances.get(file) or options.instance_name or _only_name(parts[file]) for file in parts
    }
    databases = dict(_databases(result_sets, top, instance_by_file, without_database))
    notes += _say_several(result_sets, instance_by_file, databases)
    notes += _note_defaults(times, instances, databases)
    return {
        file: StandIns(
            instances.get(file, options.instance_name),
            databases.get(file, options.database_name),
            times.get(file, options.exported_at),
        )
        for file in parts
    }


def stand_in_for_scripts(of_exports: Iterable[StandIns], options: StandIns) -> StandIns:
    """Return the options for scripts, with the one instance and database beside msdb that exports were given."""
    of_instances = list(of_exports)
    instances = {part.instance_name for part in of_instances}
    databases = {part.database_name for part in of_instances if part.database_name != MSDB}
    return StandIns(
        options.instance_name or (instances.pop() if len(instances) == 1 else None),
        options.database_name or (databases.pop() if len(databases) == 1 else None),
        options.exported_at,
    )


def find_in_folders(file: Path, known_instances: Iterable[str]) -> str | None:
    """Return the instance with the name of a folder of the file, nearest first, or None."""
    names = {_folded(spelt): name for name in known_instances for spelt in _as_folders(name)}
    folders = (_folded(folder.name) for folder in file.absolute().parents)
    return next((names[folder] for folder in folders if folder in names), None)


def _composed(name: str) -> str:
    """Return the name of a folder with its accents as SQL Server's tools write them: macOS takes them apart."""
    return unicodedata.normalize("NFC", as_shown(name))


def _folded(name: str) -> str:
    return _composed(name).casefold()


def _as_folders(instance: str) -> Iterator[str]:
    yield instance
    yield from (_NOT_IN_FOLDER_NAMES.sub(sign, instance) for sign in _IN_FOLDER_NAMES)


def _lacks(part: FoundResultSet, column: str) -> bool:
    if column not in part.view.added_columns or (column == "database_name" and part.rows.database is not None):
        return False
    return column not in part.rows.columns or any(not _text(cell) for cell in part.rows.rows.different(column))


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _names(parts: Sequence[FoundResultSet], column: str) -> list[str]:
    """Return the distinct values of a column without case, each in its first spelling."""
    spelt: dict[str, str] = {}
    for part in parts:
        for name in map(_text, part.rows.rows.different(column)):
            if name:
                spelt.setdefault(name.casefold(), name)
    return list(spelt.values())


def _only_name(parts: Sequence[FoundResultSet]) -> str | None:
    names = _names(parts, "instance_name")
    return names[0] if len(names) == 1 else None


def _time_of(file: str) -> datetime:
    return datetime.fromtimestamp(int(Path(file).stat().st_mtime), timezone.utc)


def _folder_of(file: str) -> Path:
    return Path(file).absolute().parent


def _folded_databases(parts: Sequence[FoundResultSet]) -> set[str]:
    return {_folded(name) for name in [*_known_databases(parts), MSDB]}


def _instances(parts: Sequence[FoundResultSet], top: Path, lacking: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of unnamed instances with the names that these are given."""
    known_names, databases = _names(parts, "instance_name"), _folded_databases(parts)
    parts_by_folder = group_pairs((_folder_of(part.file), part) for part in parts)
    servers = {part.file: part.rows.server for part in parts if part.rows.server}
    names_by_folder = group_pairs((_folder_of(file), name) for file, name in servers.items())
    for file in lacking:
        folder = _folder_of(file)
        if file in servers and len(set(names_by_folder[folder])) > 1:
            yield file, servers[file]
            continue
        instance = find_in_folders(Path(file), known_names) or _only_name(parts_by_folder[folder])
        below = [name for name in folder.relative_to(top).parts[:1] if _folded(name) not in databases]
        yield file, instance or _NAMED.sub(r"\\", _composed(next(iter(below), top.name)), count=1) or _ANY_INSTANCE


def _databases(
    parts: Sequence[FoundResultSet], top: Path, instance_by_file: Mapping[str, str | None], lacking: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the files of unnamed databases with the names that these are given."""
    for instance, of_instance in group_pairs((instance_by_file[part.file], part) for part in parts).items():
        files = [file for file in lacking if instance_by_file[file] == instance]
        database_names = _known_databases(of_instance)
        names_by_file = {file: _named_by(Path(file), top, [*database_names, MSDB]) for file in files}
        users = [name for name in database_names if name.casefold() not in SYSTEM_DATABASES]
        folders = {_folder_of(file) for file in files if names_by_file[file] is None}
        own_folders = {_folded(name) for name in _as_folders(instance or "")}
        for file in files:
            folder = _folder_of(file)
            is_own = len(folders) > 1 and folder != top and _folded(folder.name) not in own_folders
            only = users[0] if len(users) == 1 else None
            yield file, names_by_file[file] or only or (_composed(folder.name) if is_own else UNNAMED_DATABASE)


def _known_databases(parts: Sequence[FoundResultSet]) -> list[str]:
    listed_names = _names([part for part in parts if part.view.name == "databases"], "name")
    exported_names = _names(parts, "database_name")
    return list({name.casefold(): name for name in (*exported_names, *listed_names)}.values())


def _named_by(file: Path, top: Path, known_databases: Sequence[str]) -> str | None:
    """Return the known database that a folder of a file, or a part of its name, is named like."""
    names = {_folded(name): name for name in known_databases if _folded(name) not in _NO_DATABASE}
    for folder in file.absolute().parents:
        if _folded(folder.name) in names:
            return names[_folded(folder.name)]
        if folder == top:
            break
    stem = _folded(file.stem)
    for name in sorted(names, key=len, reverse=True):
        if _is_part(name, stem):
            return names[name]
    return None


def _is_part(name: str, stem: str) -> bool:
    """Return whether a file's name contains a name as a whole word."""
    start = stem.find(name)
    while start >= 0:
        around = (stem[start - 1 : start], stem[start + len(name) : start + len(name) + 1])
        if not any(character.isalnum() for character in around):
            return True
        start = stem.find(name, start + 1)
    return False


def _note_defaults(
    times: Mapping[str, datetime], instances: Mapping[str, str], databases: Mapping[str, str]
) -> Iterator[str]:
    if times:
        shown = [f"{file}: {format_time(at.replace(microsecond=0))}" for file, at in times.items()]
        yield f"there is no exported_at, so the file's time is used (--exported-at): {join_bounded(shown, 'file')}"
    for name, files in group_pairs((name, file) for file, name in instances.items()).items():
        yield f"there is no instance_name, so {quote(name)} is used (--instance): {join_bounded(files, 'file')}"
    for name, files in group_pairs((name, file) for file, name in databases.items()).items():
        shown_name = quote(name) if name != UNNAMED_DATABASE else "an unnamed one"
        yield f"there is no database_name, so {shown_name} is used (--database): {join_bounded(files, 'file')}"


def _say_several(
    parts: Sequence[FoundResultSet], instance_by_file: Mapping[str, str | None], databases: Mapping[str, str]
) -> Iterator[str]:
    """Yield a note if several files have one view and database that no column names: the newest counts."""
    counts = Counter(
        (part.view.name, instance_by_file[part.file], databases[part.file])
        for part in parts
        if part.view.per_database and part.file in databases
    )
    for (view, instance, _), number in counts.items():
        if number > 1:
            files = f"{number} files of sys.{view} of instance {quote(instance)}"
            yield (
                f"{files} are assumed to be of one database, so only the newest counts; name"
                " folders like their databases"
            )


# What can be wrong with a check, each phrased once; all of it means exit code 2.


_SHOWN_NOTES, _SHOWN_CHARACTERS = 3, 300


def no_queue(paths: Sequence[str], notes: Sequence[str] = ()) -> InputError:
    """Return the error for paths without a transmission queue, with ``notes`` on skipped files."""
    return InputError(
        f"there is no transmission queue in {say_unread(paths, notes)}",
        "export sys.transmission_queue; sbroute import queries prints the T-SQL for it",
    )


def say_unread(paths: Sequence[str], notes: Sequence[str]) -> str:
    """Return the paths and the first notes on skipped files."""
    named = join_bounded([quote(path) for path in paths], "path")
    unread = [printable(note[:_SHOWN_CHARACTERS]) for note in notes[:_SHOWN_NOTES]]
    return f"{named}; {join_bounded(unread, 'note', len(notes))}" if notes else named


def no_row(rejected: Sequence[str]) -> InputError:
    """Say that every row of the exports was rejected."""
    return InputError(f"no row of the exports can be read, {join_bounded(rejected[:3], 'row', len(rejected))}")


def unknown_message(message_id: str) -> InputError:
    """Say that no message waits that has this id, or belongs to this conversation."""
    return InputError(
        f"no message of the transmission queues has the id {quote(message_id)},"
        " nor its conversation this id or handle",
        "--format json lists all ids",
    )


_SCRIPT = ".sql"


@dataclass(frozen=True)
class FileOptions:
    """The options for reading files: instance, database and time of rows and scripts, and sqlcmd's variables.

    With ``by_file``, a script without an instance is its own instance, named like its file. ``clock`` is the
    current time. Files of a later time get a note, unless it is None. ``environment`` selects the scripts of one
    environment.
    """

    stand_ins: StandIns = field(default_factory=StandIns)
    times: TimeFormats = PLAIN_TIMES
    variables: Mapping[str, str] = field(default_factory=dict)
    addresses: Sequence[str] = ()
    by_file: bool = False
    clock: datetime | None = None
    environment: str | None = None


def read_exports(paths: Sequence[str], options: FileOptions) -> tuple[CatalogExport, FileOptions]:
    """Read any exports in files and folders, and return them with the options for the scripts beside them.

    Folders and files give the instance, database and time of exports if no column or option does. Scripts without
    an instance or database get the one of the exports if these have only one. Exports without a required column
    are skipped with a note. Raises InputError, EnvironmentFault.
    """
    found = find_result_sets(paths, skipped=(_SCRIPT, _PROJECT))
    result_sets = _without_copies(found.sets, found.notes)
    found.notes.extend(note for part in result_sets if (note := _complete_queue(part)) is not None)
    result_sets = _leave_out_incomplete(result_sets, found)
    unread = _without_links(found)
    # A file that is not read may be called like the transmission queue, or have columns of it.
    unread_queues = [file for file in unread if file.view == QUEUE or _QUEUE_NAME.search(file.file) is not None]
    own_notes = {file.note for file in unread_queues}
    notes = [note for note in found.notes if note not in own_notes]
    stand_ins = stand_in_for(result_sets, options.stand_ins, notes)
    export = export_of(
        result_sets, notes, lambda part: stand_ins[part.file], replace(options.times, is_lenient=True)
    )
    export.files_skipped = len(found.skipped)
    export.unread = [file.note for file in found.skipped if file.is_export and file not in unread_queues]
    for queue in unread_queues:
        # Its messages are not known, as those of an unreadable row are not.
        export.rejected.append(queue.note)
        export.doubts.setdefault(QUEUE, set()).add((None, None, None))
        export.unread_queues.append(queue.file)
    return export, replace(options, stand_ins=stand_in_for_scripts(stand_ins.values(), options.stand_ins))


def _without_links(found: SourcesRead) -> list[SkippedFile]:
    """Return the skipped files without links to a file that is read or skipped under its own name."""
    skipped = {file.file for file in found.skipped if not Path(file.file).is_symlink()}
    listed = {os.path.realpath(file) for file in (*skipped, *(part.file for part in found.sets))}
    return [file for file in found.skipped if file.file in skipped or os.path.realpath(file.file) not in listed]


def _without_copies(result_sets: Sequence[FoundResultSet], notes: list[str]) -> list[FoundResultSet]:
    """Return the result sets without copies and earlier exports of the same conversations.

    Only one database can have the handle of a conversation. If no column names the database and its instance, the
    folders of copies could seem to be others.
    """
    with_handles = [part for part in result_sets if _HANDLE in part.rows.columns and len(part.rows.rows)]
    counts = Counter(part.view.name for part in with_handles)
    parts = [part for part in with_handles if counts[part.view.name] > 1]
    times = {part.file: _time_of(part.file) for part in parts}
    parts.sort(key=lambda part: (times[part.file], part.file), reverse=True)
    # JSON may have an object for a handle.
    handles = {id(part): list(map(str, part.rows.rows.column(_HANDLE))) for part in parts}
    first_by_key: dict[object, FoundResultSet] = {}
    left_out: dict[int, str] = {}
    for part in sorted(parts, key=lambda part: len(Path(part.file).parts)):
        first = first_by_key.setdefault((part.view.name, *handles[id(part)]), part)
        if first is not part and have_equal_rows([first.rows, part.rows]):
            left_out[id(part)] = f"it has the same rows as {first.file}"
    newest_by_handle: dict[object, FoundResultSet] = {}
    for part in parts:
        if id(part) in left_out or not any(_lacks(part, name) for name in part.view.added_columns):
            continue
        others = [newest_by_handle.setdefault((part.view.name, handle), part) for handle in handles[id(part)]]
        newer = next((other for other in others if other is not part), part)
        if times[newer.file] > times[part.file] or _folder_of(newer.file) != _folder_of(part.file):
            left_out[id(part)] = f"{newer.file} is newer and has the same conversations"
    notes += [f"{part.file}: not read, {left_out[id(part)]}" for part in parts if id(part) in left_out]
    return [part for part in result_sets if id(part) not in left_out]


def _leave_out_incomplete(result_sets: Sequence[FoundResultSet], found: SourcesRead) -> list[FoundResultSet]:
    complete = []
    for part in result_sets:
        lack = find_lack(part)
        if lack is None:
            complete.append(part)
            continue
        why = f"{lack} (export it with {query_of(part.view)})"
        found.skip(part.file, why, part.view.name, is_export=True)
        found.notes.append(found.skipped[-1].note)
    return complete


_UNTOLD_HANDLE = "00000000-0000-0000-0000-"


def is_untold(handle: str) -> bool:
    """Return True if a conversation handle replaces a missing one."""
    return handle.startswith(_UNTOLD_HANDLE)


def _complete_queue(part: FoundResultSet) -> str | None:
    """Complete a queue that was exported with only services and statuses, and return a note on it.

    Each row becomes a message with its own conversation and an unknown time. Rows with a column of another name
    are refused, because it may count the messages of a group.
    """
    columns = set(part.rows.columns)
    if part.view.name != QUEUE or not columns >= ASKED_QUEUE or _HANDLE in columns:
        return None
    allowed = {*part.view.own_names, *part.view.added_columns, *OF_A_DATA_ROW}
    counting = next((name for name in part.rows.columns if name not in allowed), None)
    if counting is not None:
        part.rows.reject_all(
            f"its column {counting or 'without a name'} may count messages: {query_of(part.view)} lists them"
        )
    numbers = part.rows.rows.numbers
    columns_by_name: dict[str, list[object]] = {
        _HANDLE: [f"{_UNTOLD_HANDLE}{number:012}" for number in numbers],
        "enqueue_time": [_UNTOLD_TIME] * len(numbers),
        "message_sequence_number": list(numbers),
    }
    lacking = [name for name in columns_by_name if name not in columns]
    part.rows.rows.complete({name: columns_by_name[name] for name in lacking})
    part.rows.columns = (*part.rows.columns, *lacking)
    consequence = "each row counts as a message with its own conversation"
    return f"{part.file}: it lacks {', '.join(lacking)}, so {consequence} ({query_of(part.view)} has them)"


_UNTOLD_TIME = UnknownTime(1, 1, 1)
UNNAMED_DATABASE = "(not named)"
"""The name of a database whose exports do not name it. Statements never contain it."""
