"""Find the scripts in PATHs, and read each for the instances that it is for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath

from routing.cases.exported_files import FileOptions, find_in_folders
from routing.errors import InputError, join_bounded, quote
from routing.importing.import_faults import OtherFileError, UnopenedFileError, unreadable_file
from routing.importing.import_files import list_files, on_this_disk
from routing.importing.other_dialects import find_dialect
from routing.importing.other_formats import say_publish_profiles
from routing.importing.script_folders import arrange, find_used, refuse_unknown, should_execute
from routing.importing.spelling import NameSpelling, say_servers
from routing.importing.sql_projects import SUFFIX as _PROJECT
from routing.importing.tsql.script_reader import (
    ReadScript,
    ScriptOutline,
    find_servers,
    outline_of,
    read_comments,
    read_file,
    read_script,
)
from routing.importing.tsql.servers import find_instance, is_local, is_same_server
from routing.importing.tsql.sqlcmd import SourceText

_SCRIPT = ".sql"
_SCRIPTS = (_SCRIPT, _PROJECT)
_NO_STATEMENT = "no T-SQL statement is found in it"
KnownInstances = Mapping[str, Sequence[str]]
"""The instances that scripts may be for, each with its network addresses."""


@dataclass(frozen=True)
class ScriptFiles:
    """Named script files and possible scripts in folders.

    Files in folders need not be scripts. With ``is_lenient`` named files need not be scripts either.
    """

    named: Sequence[Path] = ()
    by_folder: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    is_lenient: bool = False

    @property
    def all_files(self) -> list[Path]:
        """All files."""
        return [*self.named, *(file for files in self.by_folder.values() for file in files)]


def find_files(paths: Sequence[str]) -> tuple[list[str], ScriptFiles]:
    """Find possible exports and scripts (``.sql``, ``.sqlproj``) among paths, and in folders at any depth.

    Reading the exports notes the skipped files of folders. Raises InputError for a URI, or a folder with too many
    files.
    """
    places = {path: on_this_disk(path) for path in paths}
    exports = [path for path in paths if places[path].suffix.lower() not in _SCRIPTS or places[path].is_dir()]
    named = [places[path] for path in paths if path not in exports]
    folders = [places[path] for path in exports if places[path].is_dir()]
    scripts = {
        folder: [file for file in list_files(folder, []) if file.suffix.lower() in _SCRIPTS] for folder in folders
    }
    return exports, ScriptFiles(named, scripts)


def no_instance(file: str) -> InputError:
    """Return the error that the instance of a script is not known."""
    return InputError(
        f"{quote(file)}: the instance of the script is unknown",
        "give --instance, put it into a folder named like an instance of the exports, or let it begin with"
        " :CONNECT NAME",
    )


def _no_script(file: str, why: str) -> OtherFileError:
    return OtherFileError.of_file(file, why, "leave it out", phrase="is not a script")


def unreadable_script(file: str, error: OSError) -> InputError:
    """Return a script that the system does not let us read."""
    return unreadable_file(file, error.strerror or str(error))


_Outlines = dict[Path, ScriptOutline]


def _choose(
    scripts: ScriptFiles, reader: _ScriptReader, unread: list[str], skip: Callable[[Path, str], None]
) -> tuple[list[Path], _Outlines]:
    """Return the scripts of folders to apply, in order and with their outlines.

    The reader's notes explain the choice, and so does ``unread`` if it leaves out all scripts of a folder.
    """
    notes, environment = reader.notes, reader.options.environment
    chosen: list[Path] = []
    outlines: _Outlines = {}
    environments: set[str] = set()
    for folder, files in scripts.by_folder.items():
        dialects: dict[str, list[str]] = defaultdict(list)
        own_outlines: _Outlines = {}
        why: list[str] = []
        databases = set(reader.databases)
        for file in files:
            try:
                runs = should_execute(file, reader.options.variables or {})
                if runs is False:
                    why.append(f"{file}: skipped, since shouldExecute is false in its settings")
                    continue
                if isinstance(runs, str):
                    skip(file, f"it is not known whether its settings run it: shouldExecute={runs}")
                    continue
                outline = reader.outline(file)
            except UnopenedFileError:
                raise
            except OtherFileError as none:
                skip(file, none.why)
                continue
            dialect = find_dialect(outline.text, PurePath(file.relative_to(folder)))
            if dialect is not None:
                dialects[dialect].append(str(file))
            else:
                own_outlines[file] = replace(outline, text="")
                databases |= find_used(outline.text)
        notes += [
            f"skipped, since they are scripts for {name}: {join_bounded(files, 'file')}"
            for name, files in dialects.items()
        ]
        alone = _leave_included_out(own_outlines, notes)
        included = own_outlines.keys() - set(alone)
        names = reader.known_instances, included, databases
        arranged = arrange(folder, alone, environment, why, environments, *names, reader.delimiters)
        notes += why
        if not arranged:
            unread += why
        chosen += arranged
        outlines.update(own_outlines)
    if scripts.by_folder:
        refuse_unknown(environment, environments)
    return chosen, outlines


def _leave_included_out(outlines: _Outlines, notes: list[str]) -> list[Path]:
    """Return the files that count by themselves: no script includes them, and they lie in no project."""
    places = {file.resolve(): file for file in outlines}
    included = {
        file: {places[place] for name in outline.included if (place := Path(name).resolve()) in places} - {file}
        for file, outline in outlines.items()
    }
    reached: set[Path] = set()
    inner = set[Path]().union(*included.values())
    tops = [file for file in outlines if file not in inner]
    # Scripts that include one another in a circle have no top: the first of them is taken for it.
    chosen: set[Path] = set()
    for file in [*tops, *outlines]:
        if file in reached or file in chosen:
            continue
        chosen.add(file)
        waiting = list(included[file])
        while waiting:
            script = waiting.pop()
            if script not in reached:
                reached.add(script)
                waiting += included[script]
    alone = [file for file in outlines if file in chosen]
    projects = [file for file in alone if file.suffix.lower() == _PROJECT]
    of_projects = set[Path]().union(*(included[file] for file in projects))
    only_included = reached - chosen - of_projects
    elsewhere = [str(file) for file in outlines if file in only_included]
    if elsewhere:
        notes.append(f"read only if another script includes them with :r: {join_bounded(elsewhere, 'file')}")
    folders = {project.parent for project in projects}
    of_project = [file for file in alone if folders.intersection(file.parents)] if folders else []
    unused = [file for file in of_project if file.suffix.lower() != _PROJECT]
    if unused:
        notes.append(
            f"skipped, since their project does not build them: {join_bounded(list(map(str, unused)), 'file')}"
        )
    left_out = set(unused)
    return [file for file in alone if file not in left_out]


def read_scripts(
    scripts: ScriptFiles,
    known_instances: KnownInstances,
    options: FileOptions,
    notes: list[str],
    scripted_at: datetime | None = None,
    instance: str | None = None,
    unread: list[str] | None = None,
    databases: Collection[str] = (),
) -> Iterator[tuple[str, ReadScript]]:
    """Yield scripts with their instances, in the order of the files. A script for several instances is split.

    A batch belongs to the instance of its ``:connect``. Without one, that is ``instance``, else a folder's name in
    ``known_instances``, else ``--instance``. Times are as in `read_file`. ``notes`` gets the skipped files of
    folders, and servers with almost known names. ``unread`` gets those of them that hold more than comments, and
    those of folders of which no script is read. Folders may have names of ``databases``. Raises InputError if a
    script has no instance, or if a named file is not a script.
    """
    unread_scripts = [] if unread is None else unread

    def skip(file: Path, why: str) -> None:
        sentence = f"{file}: not read, {why}"
        notes.append(sentence)
        if why != _NO_STATEMENT:
            unread_scripts.append(sentence)

    reader = _ScriptReader(known_instances, options, notes, scripted_at, databases)
    for file in scripts.named:
        outline = None
        try:
            outline = reader.outline(file)
            dialect = find_dialect(outline.text, PurePath(file.name))
            if dialect is not None:
                raise _no_script(str(file), f"it is one of {dialect}")
            yield from reader.read(file, outline, instance)
            if file.suffix.lower() == _PROJECT:
                notes += say_publish_profiles(file.parent)
        except OtherFileError as none:
            if scripts.is_lenient and outline is not None:
                skip(file, none.why)
            # Such as one whose statements all need a value first.
            elif outline is None or not _holds_only_comments(file):
                raise
    try:
        chosen, outlines = _choose(scripts, reader, unread_scripts, skip)
    except OSError as error:
        raise unreadable_script(str(error.filename), error) from error
    for file in chosen:
        try:
            yield from reader.read(file, outlines[file])
        except OtherFileError as none:
            skip(file, none.why)


def _holds_only_comments(file: Path) -> bool:
    try:
        return read_comments(file).is_all
    except (OSError, ValueError):
        return False


def note_commented(scripts: ScriptFiles) -> Iterator[str]:
    """Yield a note on each statement in a script's comments, which is not applied."""
    for file in scripts.named:
        comments = read_comments(file)
        for line, statement in comments.statements:
            yield f"{file}, line {line}: a comment, so it is not applied: {statement}"
        if comments.is_all and not comments.statements:
            yield f"{file}: it has only comments, so nothing is applied"


def read_text_by_instance(
    text: str,
    file: str,
    known_instances: KnownInstances,
    options: FileOptions,
    notes: list[str],
    scripted_at: datetime,
    instance: str | None = None,
) -> Iterator[tuple[str, ReadScript]]:
    """Yield the parts of a script's text with their instances, as `read_scripts`. ``file`` is its shown name."""

    def read(servers: Collection[str | None], name: str | None) -> ReadScript:
        return read_script(
            text,
            instance=name,
            file=file,
            scripted_at=scripted_at,
            database=options.stand_ins.database_name,
            variables=options.variables,
            servers=servers,
        )

    servers = find_servers([SourceText(text, file)], options.variables, None)
    yield from _split_by_instance(
        file, servers, read, instance or options.stand_ins.instance_name, known_instances, notes
    )


@dataclass(frozen=True)
class _ScriptReader:
    known_instances: KnownInstances
    options: FileOptions
    notes: list[str]
    scripted_at: datetime | None
    databases: Collection[str]
    delimiters: dict[Path, str] = field(default_factory=dict)

    def outline(self, file: Path) -> ScriptOutline:
        """Return a file's outline. Raises InputError."""
        try:
            return outline_of(file, self.options.variables)
        except OSError as error:
            raise unreadable_script(str(file), error) from error
        except ValueError as error:
            raise _no_script(str(file), str(error)) from error

    def read(
        self, file: Path, outline: ScriptOutline, instance: str | None = None
    ) -> Iterator[tuple[str, ReadScript]]:
        """Yield the parts of a file for each instance. Raises InputError."""
        options = self.options
        by_file = str(file) if options.by_file else None
        own_instance = (
            instance or find_in_folders(file, self.known_instances) or options.stand_ins.instance_name or by_file
        )

        def read(servers: Collection[str | None], name: str | None) -> ReadScript:
            return read_file(
                file,
                instance=name,
                scripted_at=self.scripted_at,
                database=options.stand_ins.database_name,
                variables=options.variables,
                servers=servers,
                delimiter=self.delimiters.get(file, ""),
            )

        try:
            split = _split_by_instance(
                str(file), outline.servers, read, own_instance, self.known_instances, self.notes
            )
            parts = list(split)
        except OSError as error:
            raise unreadable_script(str(file), error) from error
        self.notes.extend(dict.fromkeys(guess for _, script in parts for guess in script.guesses))
        yield from parts


def _split_by_instance(
    file: str,
    servers: Sequence[str | None],
    read: Callable[[Collection[str | None], str | None], ReadScript],
    own_instance: str | None,
    known_instances: KnownInstances,
    notes: list[str],
) -> Iterator[tuple[str, ReadScript]]:
    """Yield the parts of a script for each instance. ``read`` reads the batches of an instance's servers."""
    spelling, servers_by_instance = NameSpelling(known_instances), dict[str | None, set[str | None]]()
    # A script without batches is also read, to report faults such as a missing :r file.
    for server in servers or (None,):
        name = own_instance if server is None else _find_instance(server, own_instance, known_instances)
        servers_by_instance.setdefault(None if name is None else spelling.instance(name), set()).add(server)
    scripts = {instance: read(servers, instance) for instance, servers in servers_by_instance.items()}
    if not any(script.says_anything for script in scripts.values()):
        wrong = [
            f", line {problem.line}: {problem.why}" for script in scripts.values() for problem in script.problems
        ]
        raise _no_script(file, f"{_NO_STATEMENT}{next(iter(wrong), '')}")
    named = next(iter(scripts.values())).servers
    rows = [{"instance_name": name, "addresses": addresses} for name, addresses in known_instances.items()]
    # A script without an instance is named by its file, which no server name resembles.
    notes += say_servers(named, None if own_instance == file else own_instance, rows)
    for instance, script in scripts.items():
        if instance is not None:
            yield instance, script
        elif script.statements:
            raise no_instance(file)


def _find_instance(server: str, own_instance: str | None, known_instances: KnownInstances) -> str | None:
    """Return the instance that a server of ``:connect`` is: a known one, the script's own, or one that is new."""
    is_own = is_local(server) if own_instance is None else is_same_server(server, own_instance)
    known_name = find_instance(server, known_instances, known_instances)
    return known_name or (own_instance if is_own else server)
