"""PATHs → exports and scripts, and whose each script is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from routing.features.check.check_faults import NoScriptError, no_instance, unreadable_script
from routing.features.check.unnamed_exports import find_in_folders, stand_in_for, stand_in_for_scripts
from routing.importing.catalog import StandIns, TimeFormats
from routing.importing.catalog.result_files import FoundResultSet, find_result_sets
from routing.importing.catalog.typed_rows import CatalogExport, export_of, find_lack
from routing.importing.listing import list_files
from routing.importing.reach import on_this_disk
from routing.importing.spelling import NameSpelling, say_servers
from routing.importing.tsql import ReadScript, read_file, servers_in
from routing.importing.tsql.servers import is_local, is_same_server

_SCRIPT = ".sql"


PLAIN_TIMES = TimeFormats()
"""ISO 8601, and UTC where no zone is named."""


@dataclass(frozen=True)
class FileOptions:
    """The options on files: whose and of what time rows are, whose scripts, and sqlcmd's variables.

    ``by_file``: a script of which nothing tells the instance stands for itself, under its file's name. ``clock``
    is the time of now: what says that it is of a later time gets a note, and none does where it is None.
    """

    stand_ins: StandIns = field(default_factory=StandIns)
    times: TimeFormats = PLAIN_TIMES
    variables: Mapping[str, str] = field(default_factory=dict)
    addresses: Sequence[str] = ()
    by_file: bool = False
    clock: datetime | None = None

    @property
    def instance(self) -> str | None:
        """Whose scripts are that say nothing themselves."""
        return self.stand_ins.instance_name


@dataclass(frozen=True)
class ScriptFiles:
    """Script files: those that were named, and those that lie in folders, which may turn out to be none."""

    named: Sequence[Path] = ()
    lying: Sequence[Path] = ()


def find_files(paths: Sequence[str]) -> tuple[list[str], ScriptFiles]:
    """Find files that may be exports, and the scripts (``.sql``): as they are named, and in folders at any depth.

    What is not read in a folder is named where its exports are read. Raises InputError for a URI, or a folder of
    too many files.
    """
    places = {path: on_this_disk(path) for path in paths}
    exports = [path for path in paths if places[path].suffix.lower() != _SCRIPT or places[path].is_dir()]
    folders = [places[path] for path in exports if places[path].is_dir()]
    named = [places[path] for path in paths if path not in exports]
    lying = [file for folder in folders for file in list_files(folder, []) if file.suffix.lower() == _SCRIPT]
    return exports, ScriptFiles(named, lying)


def read_exports(
    paths: Sequence[str], options: FileOptions, *, needed: str | None = None
) -> tuple[CatalogExport, FileOptions]:
    """Read exports of files and folders, possibly none, and find whose the scripts beside them are.

    Where neither a column nor an option says whose exports are, and of what time, their place and file do. Scripts
    of which nothing tells the instance or the database are for the one that stands in for all exports, if there is
    one. With ``needed`` only an export of that view has to have all its columns: others are left out, with a note.
    Raises InputError, EnvironmentFault.
    """
    result_sets, notes = find_result_sets(paths, others=(_SCRIPT,))
    if needed is not None:
        result_sets = _leave_short_ones_out(result_sets, needed, notes)
    stand_ins = stand_in_for(result_sets, options.stand_ins, notes)
    export = export_of(result_sets, notes, lambda part: stand_ins[part.file], options.times)
    return export, replace(options, stand_ins=stand_in_for_scripts(stand_ins.values(), options.stand_ins))


def _leave_short_ones_out(
    result_sets: Sequence[FoundResultSet], needed: str, notes: list[str]
) -> list[FoundResultSet]:
    complete_sets = []
    for part in result_sets:
        lack = None if part.view.name == needed else find_lack(part)
        if lack is None:
            complete_sets.append(part)
        else:
            notes.append(f"{part.file}: not read, {lack} (see sbroute import queries)")
    return complete_sets


def read_scripts(
    scripts: ScriptFiles,
    known_instances: Sequence[str],
    options: FileOptions,
    notes: list[str],
    scripted_at: datetime | None = None,
) -> Iterator[tuple[str, ReadScript]]:
    """Yield scripts with their instances, in the order of the files; one that names several comes with each.

    A batch belongs to the instance that its ``:connect`` names, else to that of ``known_instances`` that a
    folder of the file is named like, else to ``--instance``. Times as in `read_file`. ``notes`` learns of files in
    folders that are no scripts, and of servers whose names are nearly known. Raises InputError where none tells
    whose a script is, and for a named file that is none.
    """
    spelling = NameSpelling(known_instances)
    for file in scripts.named:
        yield from _read_by_instance(file, known_instances, spelling, options, scripted_at, notes)
    for file in scripts.lying:
        try:
            yield from _read_by_instance(file, known_instances, spelling, options, scripted_at, notes)
        except NoScriptError as none:
            notes.append(f"{file}: not read, {none.why}")


def _read_by_instance(
    file: Path,
    known_instances: Sequence[str],
    spelling: NameSpelling,
    options: FileOptions,
    scripted_at: datetime | None,
    notes: list[str],
) -> Iterator[tuple[str, ReadScript]]:
    own_instance = (
        find_in_folders(file, known_instances) or options.instance or (str(file) if options.by_file else None)
    )
    servers: dict[str | None, set[str | None]] = {}
    read: dict[str | None, ReadScript] = {}
    try:
        for server in servers_in(file, options.variables):
            name = own_instance if server is None or _is_own(server, own_instance) else server
            servers.setdefault(None if name is None else spelling.instance(name), set()).add(server)
        for instance, theirs in servers.items():
            read[instance] = read_file(
                file,
                scripted_at=scripted_at,
                database=options.stand_ins.database_name,
                variables=options.variables,
                servers=theirs,
            )
    except OSError as error:
        raise unreadable_script(str(file), error) from error
    except ValueError as error:
        raise NoScriptError.of_file(str(file), str(error)) from error
    if not any(script.statement_count or script.statements for script in read.values()):
        wrong = [
            f", line {problem.line}: {problem.why}" for script in read.values() for problem in script.problems
        ]
        raise NoScriptError.of_file(str(file), f"no T-SQL statement is found in it{next(iter(wrong), '')}")
    named = next(iter(read.values())).servers
    notes += say_servers(named, own_instance, [{"instance_name": name} for name in known_instances])
    for instance, script in read.items():
        if instance is not None:
            yield instance, script
        elif script.statements:
            raise no_instance(str(file))


def _is_own(server: str, own_instance: str | None) -> bool:
    """Return whether a server of ``:connect`` is the instance that the script is for."""
    return is_local(server) if own_instance is None else is_same_server(server, own_instance)
