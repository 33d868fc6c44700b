"""Collect the contents of files as the rows that an import would write, and the instance of each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from routing.cases.exported_files import FileOptions, no_queue, no_row, read_exports, say_unread
from routing.cases.script_files import KnownInstances, ScriptFiles, find_files, note_commented, read_scripts
from routing.cases.server_evidence import NO_EVIDENCE, ServerEvidence, collect_evidence
from routing.cases.server_facts import is_endpoint
from routing.errors import InputError, join_bounded, quote
from routing.importing.catalog import CatalogExport, StandIns, cover
from routing.importing.catalog.views import QUEUE
from routing.importing.covered_rows import CoveredRows, Doubt, ImportResult, Unit
from routing.importing.import_faults import find_exports_to_come, find_scripts_to_come
from routing.importing.import_files import on_this_disk
from routing.importing.script_rows import ROUTES, apply_all, rows_of, say_nothing, state_of
from routing.importing.spelling import NameSpelling
from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import (
    AlterDatabase,
    AlterDatabaseState,
    AlterEndpoint,
    AlterRoute,
    CreateDatabase,
    CreateEndpoint,
    CreateRoute,
    CreateService,
    DetachDatabase,
    DropDatabase,
    DropEndpoint,
    DropService,
    RenameDatabase,
    ScriptStatement,
    StatementProblem,
)
from routing.rules import text
from routing.rules.text import collated
from routing.schemas import INPUTS
from routing.tables.table_columns import TableColumns
from routing.terms import TableRow

VIEW_OF: dict[type[ScriptStatement], str] = {
    **dict.fromkeys(ROUTES, "routes"),
    **dict.fromkeys((CreateService, DropService), "services"),
    **dict.fromkeys((CreateDatabase, AlterDatabase, AlterDatabaseState, RenameDatabase), "databases"),
    **dict.fromkeys((DropDatabase, DetachDatabase), "databases"),
    **dict.fromkeys((CreateEndpoint, AlterEndpoint, DropEndpoint), "service_broker_endpoints"),
}
"""Which view says all of what statements speak of; the last two are the instance's own."""
_OF_A_DATABASE = ("routes", "services")
# One row represents the whole view for all other views.
_NAMED = (*_OF_A_DATABASE, "databases")
_INSTANCE = itemgetter("instance_name")
Spot = tuple[str, "int | None"]
"""A file, and the line of a script's statement."""


class SubjectKey(NamedTuple):
    """The subject of a row or a statement. ``database`` and ``name`` are empty if it has none.

    Names are folded as in a collation without case.
    """

    view: str
    instance: str
    database: str
    name: str


def subject_of(statement: ScriptStatement, instance: str, spelling: NameSpelling) -> tuple[str, Unit]:
    """Return the view of the rows that a statement changes, with the instance and database of these rows."""
    view = VIEW_OF[type(statement)]
    if view not in _OF_A_DATABASE or statement.database is None:
        return view, (instance, None)
    return view, (instance, spelling.database(instance, statement.database))


def subject_key(view: str, instance: str, database: str | None, name: str | None) -> SubjectKey:
    """Return the key of a subject with these names. A database is a subject of its instance."""
    return SubjectKey(view, instance, collated(database or ""), collated(name or ""))


def spots_of_export(views: Mapping[str, Sequence[TableRow]]) -> dict[SubjectKey, Spot]:
    """Return the file of each subject in an export. Views without names have one subject per database."""
    spots: dict[SubjectKey, Spot] = {}
    for view, rows in views.items():
        units = {(row["instance_name"], row.get("database_name")): row for row in reversed(rows)}
        for row in rows if view in _NAMED else units.values():
            spot = (row["place"].rpartition(", row ")[0] or row["place"], None)
            named = subject_key(view, row["instance_name"], row.get("database_name"), row.get("name"))
            spots.setdefault(named, spot)
            spots.setdefault(SubjectKey(view, named.instance, named.database, ""), spot)
    return spots


def spots_of_statements(
    statements: Iterable[ScriptStatement], instance: str, spelling: NameSpelling
) -> dict[SubjectKey, Spot]:
    """Return the file and line of the last statement that created or changed each subject."""
    return {
        key: (statement.file, statement.line)
        for key, statement in _statements_by_subject(statements, instance, spelling).items()
    }


def _statements_by_subject(
    statements: Iterable[ScriptStatement], instance: str, spelling: NameSpelling
) -> dict[SubjectKey, ScriptStatement]:
    last: dict[SubjectKey, ScriptStatement] = {}
    for statement in statements:
        view, (_, database) = subject_of(statement, instance, spelling)
        name = statement.new_name if isinstance(statement, RenameDatabase) else statement.name
        last[subject_key(view, instance, database, name)] = statement
    return last


_NO_QUEUE = "no transmission queue was exported: it is not known whether messages wait"
CONFIGURATION = ("instances", "databases", "services", "routes")


@dataclass(frozen=True)
class ScriptRead:
    """A script that was read: how many of its statements count, were left out, and were rejected."""

    file: str
    instance: str
    statements: int
    left_out: int
    rejected: int


@dataclass(frozen=True)
class ReadViews:
    """The views of each instance that were read, and their possible gaps.

    ``units`` has the instances and databases of each exported view with the times of the exports, and ``scripted``
    the ones that only scripts mention. Scripts of the instances ``in_part`` may create unknown routes.
    ``endpoints`` has the instances with an endpoint. ``doubts`` has the possible contents of unreadable rows by
    view.
    """

    units: Mapping[str, Mapping[Unit, datetime]]
    scripted: Mapping[str, Collection[Unit]]
    in_part: Collection[str]
    doubts: Mapping[str, Collection[Doubt]]
    endpoints: Collection[str]

    def was_exported(self, view: str, instance: str, database: str | None = None) -> bool:
        """Return True if a view of a database, or one of an instance, was exported."""
        return (instance, database) in self.units.get(view, {})

    def is_doubtful(self, view: str, instance: str, database: str | None = None) -> bool:
        """Return True if a row of a view that cannot be read may be one of a database, or of an instance."""
        if not self.doubts.get(view):
            return False
        doubts = {doubt[:2] for doubt in self.doubts[view]}
        names = (None if database is None else database.casefold(), None)
        return any(
            (database_name, name) in doubts for database_name in (instance.casefold(), None) for name in names
        )

    def newest(self, instance: str, *views: str) -> datetime | None:
        """Return the time of an instance's newest export of some views, or of any view, or None without one."""
        of_views = (units for view, units in self.units.items() if not views or view in views)
        return max((at for units in of_views for (name, _), at in units.items() if name == instance), default=None)


@dataclass(frozen=True)
class ReadLog:
    """The counts and notes of reading files.

    ``rows_of`` counts the rows by view and instance. By view, ``rows_read`` counts all rows, and ``rows_rejected``
    and ``rows_left_out`` the unused ones. ``left_out`` (statements on exported objects), ``rejected`` and
    ``notes`` are sentences. ``refused_messages`` counts the unreadable rows of queues. ``unread_queues`` has the
    unreadable files of queues, and ``unread`` sentences on other exports and scripts that are not read.
    """

    rows_of: Mapping[tuple[str, str], int]
    rows_read: Mapping[str, int]
    rows_rejected: Mapping[str, int]
    rows_left_out: Mapping[str, int]
    scripts: tuple[ScriptRead, ...] = ()
    left_out: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused_messages: int = 0
    unread_queues: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    files_read: int = 0
    files_skipped: int = 0


@dataclass(frozen=True)
class FileEvidence:
    """The rows of files, their views, and the notes made while reading them.

    ``rows`` are by table, as `import` would write them. ``queue`` has the row of a queue for each
    message, in the same order, and ``without_endpoint`` has those without an exported conversation endpoint.
    ``spots`` has the place of each definition, and ``problems`` those of scripts with their instances.
    ``of_scripts`` has the instance and database for scripts that name none. ``server`` has the exported facts
    other than routing. ``has_queue`` is True if a transmission queue was exported.
    """

    rows: Mapping[str, Sequence[TableRow]]
    queue: Sequence[TableRow]
    without_endpoint: Sequence[TableRow]
    views: ReadViews
    log: ReadLog
    spots: Mapping[SubjectKey, Spot]
    problems: tuple[tuple[str, StatementProblem], ...] = ()
    of_scripts: StandIns = field(default_factory=StandIns)
    server: ServerEvidence = NO_EVIDENCE
    has_queue: bool = True

    @cached_property
    def columns(self) -> Mapping[str, TableColumns]:
        """The columns of the tables in ``rows`` other than messages, as lint and the rules read them."""
        keys = (*CONFIGURATION, "dialogs")
        return {key: TableColumns.of_rows(self.rows[key], INPUTS[key]) for key in keys}

    @property
    def instances(self) -> list[str]:
        """The instances in the exports, even if only their name was read."""
        return sorted(row["instance_name"] for row in self.rows["instances"])


def gather(paths: Sequence[str], options: FileOptions) -> FileEvidence:
    """Read files and folders. Raises InputError if there is no export, or if the only queue cannot be read."""
    exports, scripts = find_files(paths)
    export, options = read_exports(exports, options)
    if QUEUE not in export.rows and (export.unread_queues or not export.rows):
        beginnings = tuple(f"{file}: " for file in export.unread_queues)
        unread = [why for why in export.rejected if why.startswith(beginnings)]
        raise no_queue(paths, [*unread, *export.notes])
    evidence = weigh(export, scripts, options)
    if QUEUE in export.rows:
        return evidence
    notes = (_NO_QUEUE, *evidence.log.notes)
    return replace(evidence, has_queue=False, log=replace(evidence.log, notes=notes))


def gather_beside(paths: Sequence[str]) -> FileEvidence | None:
    """Read exports with causes beside the routing, or return None without paths. Raises InputError.

    These exports need no transmission queue. Scripts among them count too.
    """
    if not paths:
        return None
    options = FileOptions()
    exports, scripts = find_files(paths)
    export, options = read_exports(exports, options)
    if not export.rows:
        raise InputError(
            f"there is no export in {say_unread(paths, export.notes)}", "name files of exports, or their folders"
        )
    return weigh(export, scripts, options)


def weigh(
    export: CatalogExport, scripts: ScriptFiles, options: FileOptions, scripted_at: datetime | None = None
) -> FileEvidence:
    """Combine an export with scripts, as of a time or of their files' own times. Raises InputError."""
    # A row that is there twice is fully known: the doubts that `cover` adds for it are none here.
    doubts = {view: frozenset(doubts_of_view) for view, doubts_of_view in export.doubts.items()}
    notes = _note_future_times(export, scripts, options)
    refused_messages = export.rejected_of[QUEUE]
    covered = cover(export, NameSpelling(), options.addresses)
    if export.rows and not covered.instances:
        raise no_row(covered.rejected)
    evidence = _of_exports(export, covered, doubts)
    named, changes = {str(file) for file in scripts.named}, dict[SubjectKey, dict[str, ScriptStatement]]()
    unread_scripts: list[str] = []
    files_read: set[Path] = set()
    instances = _known_instances(evidence, options)
    databases = {unit[1] for units in covered.units.values() for unit in units if unit[1] is not None}
    databases.update(row["name"] for row in evidence.rows["databases"])
    read = read_scripts(
        scripts, instances, options, notes, scripted_at, unread=unread_scripts, databases=databases
    )
    for instance, script in read:
        files_read.update(Path(file).resolve() for file in (script.file, *script.included))
        # Statements on subjects that were not exported count as if they had always applied.
        evidence = _apply(
            evidence, script, instance, partial(_is_exported, evidence, instance, _spelling(evidence))
        )
        if script.file not in named:
            spelling = _spelling(evidence)
            for key, statement in _statements_by_subject(script.statements, instance, spelling).items():
                if key.name and not _is_exported(evidence, instance, spelling, statement):
                    changes.setdefault(key, {})[script.file] = statement
    notes += _note_changed_twice(changes)
    log = replace(
        evidence.log,
        notes=(*evidence.log.notes, *notes),
        refused_messages=refused_messages,
        unread_queues=tuple(export.unread_queues),
        unread=(*export.unread, *unread_scripts),
        files_read=export.files_read + len(files_read),
        files_skipped=export.files_skipped + len({file.resolve() for file in scripts.all_files} - files_read),
    )
    return replace(evidence, log=log, of_scripts=options.stand_ins)


def _note_changed_twice(changes: Mapping[SubjectKey, Mapping[str, ScriptStatement]]) -> list[str]:
    shown = []
    for key, statement_by_file in changes.items():
        if len(statement_by_file) > 1:
            name = str(next(iter(statement_by_file.values())).name)
            shown.append(f"{key.view.removesuffix('s')} {quote(name)} ({', '.join(statement_by_file)})")
    why = "several scripts change one object, and are applied in this order"
    return [f"{why}: {join_bounded(shown, 'object')}"] if shown else []


def _note_future_times(export: CatalogExport, scripts: ScriptFiles, options: FileOptions) -> list[str]:
    if options.clock is None:
        return []
    files = [file for file in scripts.all_files if file.exists()]
    times = ((str(file), datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)) for file in files)
    of_exports = find_exports_to_come(export.rows, options.clock)
    return [f"{timed_export} (--time-zone)" for timed_export in of_exports] + find_scripts_to_come(
        times, options.clock
    )


def try_scripts(
    evidence: FileEvidence, paths: Sequence[str], options: FileOptions, scripted_at: datetime
) -> FileEvidence:
    """Apply scripts to the evidence as of a time. They may change exported objects. Raises InputError."""
    scripts = ScriptFiles(named=[on_this_disk(path) for path in paths])
    options = replace(options, stand_ins=evidence.of_scripts)
    tried = replace(evidence, log=replace(evidence.log, scripts=(), left_out=(), rejected=(), notes=()))
    for instance, script in read_scripts(scripts, _known_instances(evidence, options), options, [], scripted_at):
        tried = _apply(tried, script, instance, lambda statement: False)
    return replace(tried, log=replace(tried.log, notes=(*tried.log.notes, *note_commented(scripts))))


def _known_instances(evidence: FileEvidence, options: FileOptions) -> KnownInstances:
    named_instance = options.stand_ins.instance_name
    instances = {row["instance_name"]: row["addresses"] or () for row in evidence.rows["instances"]}
    return instances if named_instance is None else {named_instance: (), **instances}


def _of_exports(
    export: CatalogExport, covered: CoveredRows, doubts: Mapping[str, Collection[Doubt]]
) -> FileEvidence:
    rows = {key: covered.rows.get(key, []) for key in (*CONFIGURATION, "dialogs", "messages")}
    endpoints = export.rows.get("service_broker_endpoints", ())
    views = ReadViews(
        units=covered.units,
        scripted={},
        in_part=frozenset(),
        doubts=doubts,
        endpoints={row["instance_name"] for row in endpoints if is_endpoint(row)},
    )
    log = ReadLog(
        rows_of=Counter(
            {
                (view, instance): count
                for view, rows in export.rows.items()
                for instance, count in Counter(map(_INSTANCE, rows)).items()
            }
        ),
        rows_read=export.rows_read,
        rows_rejected=covered.rejected_of,
        rows_left_out=export.left_out,
        rejected=tuple(covered.rejected),
        notes=tuple(covered.notes),
    )
    server = collect_evidence(export.rows, covered.units, rows["dialogs"], covered.rows.get("endpoint_counts", ()))
    rows["instances"] = _without_listeners(rows["instances"], server)
    spots = spots_of_export(export.rows)
    return FileEvidence(rows, covered.queue, covered.without_endpoint, views, log, spots, server=server)


def _without_listeners(rows: Sequence[TableRow], server: ServerEvidence) -> list[TableRow]:
    """Return the instances, those of a secondary replica without its listeners: these lead to the primary."""
    secondaries = server.secondaries()

    def direct(addresses: Sequence[str]) -> list[str] | None:
        return [address for address in addresses if server.listener(text.host(address)) is None] or None

    return [
        {**row, "addresses": direct(row["addresses"] or ())} if row["instance_name"] in secondaries else row
        for row in rows
    ]


def _apply(
    evidence: FileEvidence, script: ReadScript, instance: str, leaves_out: Callable[[ScriptStatement], bool]
) -> FileEvidence:
    spelling, done = _spelling(evidence), ImportResult(is_dry_run=True)
    left_out = [statement for statement in script.statements if leaves_out(statement)]
    counting = [statement for statement in script.statements if not leaves_out(statement)]
    is_open = any(not problem.counted for problem in script.problems) or _alters_unknown(
        evidence.rows["routes"], counting, instance, spelling
    )
    rows = _apply_to_rows(evidence.rows, script, instance, done, leaves_out)
    scripted = {view: set(units) for view, units in evidence.views.scripted.items()}
    for statement in counting:
        view, unit = subject_of(statement, instance, spelling)
        scripted.setdefault(view, set()).add(unit)
    [(statements, rejected, _)] = done.rows_read.values()
    # A script whose statements are all skipped or comments still has statements.
    says_nothing = not left_out and script.statement_count > 0
    notes = [note for note in done.notes if says_nothing or note != say_nothing(script)]
    script_read = ScriptRead(script.file, instance, statements - rejected, len(left_out), rejected)
    views, log = evidence.views, evidence.log
    in_part = {*views.in_part, *([instance] if is_open else [])}
    return replace(
        evidence,
        rows=rows,
        views=replace(views, scripted=scripted, in_part=in_part),
        log=replace(
            log,
            scripts=(*log.scripts, script_read),
            left_out=(*log.left_out, *map(_phrase, left_out)),
            rejected=(*log.rejected, *done.rejected),
            notes=(*log.notes, *notes),
        ),
        spots={**evidence.spots, **spots_of_statements(counting, instance, spelling)},
        problems=(*evidence.problems, *((instance, problem) for problem in done.problems)),
    )


def _alters_unknown(
    routes: Sequence[TableRow], statements: Sequence[ScriptStatement], instance: str, spelling: NameSpelling
) -> bool:
    """Return whether a script alters a route that nothing else defines, so that it may name any service."""
    known_routes = {((row["instance_name"], row["database_name"]), collated(row["name"])) for row in routes}
    for statement in statements:
        place = (subject_of(statement, instance, spelling)[1], collated(statement.name))
        if isinstance(statement, AlterRoute) and place not in known_routes:
            return True
        if isinstance(statement, CreateRoute):
            known_routes.add(place)
    return False


def _spelling(evidence: FileEvidence) -> NameSpelling:
    return NameSpelling.of_tables(evidence.rows["instances"], evidence.rows["databases"])


def _is_exported(
    evidence: FileEvidence, instance: str, spelling: NameSpelling, statement: ScriptStatement
) -> bool:
    view, unit = subject_of(statement, instance, spelling)
    return evidence.views.was_exported(view, *unit)


def _phrase(left_out: ScriptStatement) -> str:
    view = VIEW_OF[type(left_out)]
    why = f"sys.{view} was exported; check --then tries it"
    return f"{left_out.file}, line {left_out.line}: {left_out.title} ({why})"


def _apply_to_rows(
    rows: Mapping[str, Sequence[TableRow]],
    script: ReadScript,
    instance: str,
    done: ImportResult,
    leaves_out: Callable[[ScriptStatement], bool],
) -> dict[str, Sequence[TableRow]]:
    """Return all rows after applying a script to those of one instance. ``done`` collects failed statements."""
    instance_rows = {key: [row for row in rows[key] if row["instance_name"] == instance] for key in CONFIGURATION}
    rows_elsewhere = {key: [row for row in rows[key] if row["instance_name"] != instance] for key in CONFIGURATION}
    before = state_of(instance_rows, script.scripted_at)
    after = apply_all(done, before, [script], leaves_out=leaves_out)
    changed = rows_of(instance_rows, before, after, instance)
    return {**rows, **{key: [*rows_elsewhere[key], *changed[key]] for key in CONFIGURATION}}


@dataclass(frozen=True)
class ViewRead:
    """A view of one instance: of how many databases (0 for an instance's own), how many rows, how new."""

    view: str
    instance: str
    databases: int
    rows: int
    newest: datetime


def views_read(evidence: FileEvidence) -> Iterator[ViewRead]:
    """Yield every exported view of every instance."""
    for instance in evidence.instances:
        for view, units in evidence.views.units.items():
            time_by_database = {database: at for (name, database), at in units.items() if name == instance}
            if time_by_database:
                databases = sum(database is not None for database in time_by_database)
                rows = evidence.log.rows_of[view, instance]
                yield ViewRead(view, instance, databases, rows, max(time_by_database.values()))
