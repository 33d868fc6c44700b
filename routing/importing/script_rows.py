"""Convert an instance's rows of the tables to the state for scripts and back, in pure Python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path

from routing.importing import history
from routing.importing.covered_rows import ON, ImportResult, Unit
from routing.importing.history import TableChanges
from routing.importing.import_faults import no_statement, unreadable_file
from routing.importing.import_files import Reach, on_this_disk
from routing.importing.spelling import NameSpelling
from routing.importing.tsql import script_statements
from routing.importing.tsql.instance_state import (
    DATABASES,
    SERVICES,
    DatabaseState,
    EndpointState,
    InstanceState,
    RouteState,
    ServiceState,
)
from routing.importing.tsql.instance_state import ROUTES as VIEW_OF_ROUTES
from routing.importing.tsql.script_reader import ReadScript, apply_script, read_comments, read_file
from routing.importing.tsql.state_changes import NOTHING_TELLS
from routing.render.wording import format_time
from routing.terms import ZERO_GUID, TableRow

InstanceTables = Mapping[str, Sequence[TableRow]]
"""The rows of one instance by table."""

ROUTES = (script_statements.CreateRoute, script_statements.AlterRoute, script_statements.DropRoute)
OF_A_DATABASE = (*ROUTES, script_statements.CreateService, script_statements.DropService)
"""The statements on a database's routes and services. All others are about the instance."""

_NONE_TO_DROP = 15151


def state_of(instance_tables: InstanceTables, at: datetime) -> InstanceState:
    """Build the state of the instance from the tables, as of a time."""
    row = instance_tables["instances"][0] if instance_tables["instances"] else None
    forwards = bool(row and row["is_message_forwarding_enabled"])
    return InstanceState(
        routes=tuple(_route(row) for row in instance_tables["routes"] if history.stands(row, at)),
        services=tuple(ServiceState(row["database_name"], row["name"]) for row in instance_tables["services"]),
        databases=tuple(_database(row) for row in instance_tables["databases"]),
        # No table holds its name and port.
        endpoint=EndpointState(is_message_forwarding_enabled=forwards),
        in_part=_find_in_part(instance_tables.get("imports", ())),
    )


def _find_in_part(imports: Sequence[TableRow]) -> frozenset[tuple[str, str]]:
    """Return the views and databases that only scripts have covered, so that rows may be missing."""
    views = (VIEW_OF_ROUTES, SERVICES, DATABASES)
    exported = {(row["view_or_file"], row["database_name"] or "") for row in imports}
    scripted = {row["database_name"] or "" for row in imports if row["view_or_file"] not in views}
    return frozenset(
        (view, database)
        for database in scripted
        for view in views
        if (view == DATABASES) == (database == "") and (view, database) not in exported
    )


def _route(row: TableRow) -> RouteState:
    return RouteState(
        row["database_name"],
        row["name"],
        row["address"],
        remote_service_name=row["remote_service_name"] or None,
        broker_instance=row["broker_instance"] or None,
        lifetime=row["lifetime"],
        mirror_address=row["mirror_address"] or None,
    )


def _database(row: TableRow) -> DatabaseState:
    return DatabaseState(
        row["name"], row["service_broker_guid"], row["is_broker_enabled"] is not False, row["database_id"]
    )


@dataclass(frozen=True)
class TimedScript:
    """A script of an import with a time. ``units`` are its databases, or None for the instance."""

    script: ReadScript
    at: datetime
    units: Collection[Unit]


def apply_in_turn(
    done: ImportResult,
    instance_tables: InstanceTables,
    scripts: Sequence[TimedScript],
    spelling: NameSpelling,
    instance: str,
    *,
    snapshot: bool,
    is_first: bool,
    now: datetime,
) -> dict[str, TableChanges]:
    """Apply scripts in the order of their times, and return the changes by table in the order of writing.

    Scripts with the same time change the tables together, and ``done`` notes the skipped statements. With
    ``snapshot`` they contain all routes of their databases. Dropping a missing route is then correct, and other
    routes are closed at the time of the last script on their database. ``is_first`` is True if no routes of the
    instance were imported before, so the first routes have no begin.
    """
    first_at = next(
        (timed_script.at for timed_script in scripts if any(name is not None for _, name in timed_script.units)),
        now,
    )
    last_at = scripts[-1].at if scripts else now
    groups = [(at, list(of_one_time)) for at, of_one_time in groupby(scripts, lambda script: script.at)]
    all_of = [_databases_of_routes(group, spelling, instance) if snapshot else set() for _, group in groups]
    # By database the routes that scripts of this import have defined, if they define all.
    routes_by_database: dict[str, tuple[RouteState, ...]] = {}
    routes, touched = list(instance_tables["routes"]), set[str]()
    begins = state = state_of(instance_tables, groups[0][0] if groups else now)
    for place, (at, group) in enumerate(groups):
        before = replace(state, routes=state_of({**instance_tables, "routes": routes}, at).routes)
        untouched_routes = (route for route in before.routes if route.database_name not in all_of[place])
        earlier_routes = (route for name in sorted(all_of[place]) for route in routes_by_database.get(name, ()))
        state = replace(before, routes=(*untouched_routes, *earlier_routes))
        state = apply_all(done, state, [timed_script.script for timed_script in group], ignores_missing=snapshot)
        for name in all_of[place]:
            routes_by_database[name] = tuple(route for route in state.routes if route.database_name == name)
        later = set[str]().union(*all_of[place + 1 :])
        after = replace(state, routes=(*state.routes, *_find_unsaid(before, state, all_of[place] & later)))
        times = {unit: at for timed_script in group for unit in timed_script.units}
        first = {instance} if is_first and at == first_at else set[str]()
        now_touched = _touched(before, after)
        changes = _routes(routes, _route_rows(after, instance), now_touched, instance, times, first)
        routes, touched = history.apply_changes("routes", routes, changes), touched | now_touched
    route_table_changes = history.changes_between("routes", instance_tables["routes"], routes)
    route_table_changes.counts = history.count_versions(instance_tables["routes"], routes, touched, last_at)
    return {
        **_present_changes(instance_tables, begins, state, instance, is_said=bool(scripts)),
        "routes": route_table_changes,
    }


def _databases_of_routes(scripts: Iterable[TimedScript], spelling: NameSpelling, instance: str) -> set[str]:
    return {
        spelling.database(instance, statement.database)
        for timed_script in scripts
        for statement in timed_script.script.statements
        if isinstance(statement, ROUTES) and statement.database is not None
    }


def _find_unsaid(before: InstanceState, after: InstanceState, databases: Collection[str]) -> Iterator[RouteState]:
    """Return the routes of some databases that no script has mentioned yet. A later script may mention them."""
    names = {(route.database_name, route.name) for route in after.routes}
    for route in before.routes:
        if route.database_name in databases and (route.database_name, route.name) not in names:
            yield route


def apply_all(
    done: ImportResult,
    before: InstanceState,
    scripts: Sequence[ReadScript],
    *,
    ignores_missing: bool = False,
    leaves_out: Callable[[script_statements.ScriptStatement], bool] = lambda statement: False,
) -> InstanceState:
    """Return the state after all scripts. ``done`` notes the skipped statements.

    ``ignores_missing`` allows dropping a missing route. Statements that ``leaves_out`` selects change no row.
    """
    state = before
    for script in scripts:
        result = apply_script(state, script, leaves_out)
        state = result.state
        problems = [problem for problem in result.problems if not (ignores_missing and _is_no_route(problem))]
        done.problems += problems
        done.rejected += [phrase(problem) for problem in problems if not problem.counted]
        done.notes += [phrase(problem) for problem in problems if problem.counted]
        if not script.statements and not problems:
            done.notes.append(say_nothing(script))
        name = Path(script.file).name
        done.rows_read[script.file if name in done.rows_read else name] = (
            len(result.statements) + len(result.passed_over) + result.refused,
            sum(not problem.counted for problem in problems),
            len(result.passed_over),
        )
    return state


def _is_no_route(problem: script_statements.StatementProblem) -> bool:
    is_missing = problem.number == _NONE_TO_DROP or NOTHING_TELLS in problem.why
    return is_missing and problem.why.startswith(f"{script_statements.DropRoute.words} ")


def say_nothing(script: ReadScript) -> str:
    """Return the note on a script without routing."""
    return f"{script.file}: none of its {script.statement_count} statements is about routing"


def phrase(problem: script_statements.StatementProblem) -> str:
    """Return a problem as a sentence with its file, line, reason and SQL Server's error number."""
    number = "" if problem.number is None else f" (SQL Server's error {problem.number})"
    return f"{problem.file}, line {problem.line}: {problem.why}{number}"


def changes_of(
    instance_tables: InstanceTables,
    before: InstanceState,
    after: InstanceState,
    instance: str,
    times: Mapping[Unit, datetime],
    first: set[str],
) -> dict[str, TableChanges]:
    """Find the changes by table, in the order of writing, for the difference between two states.

    ``times`` are those of the scripts by database. ``first`` is as in `route_changes`.
    """
    route_rows = _route_rows(after, instance)
    return {
        **_present_changes(instance_tables, before, after, instance, is_said=bool(times)),
        "routes": _routes(instance_tables["routes"], route_rows, _touched(before, after), instance, times, first),
    }


def _present_changes(
    instance_tables: InstanceTables, before: InstanceState, after: InstanceState, instance: str, *, is_said: bool
) -> dict[str, TableChanges]:
    """Find the changes to tables without a history. ``is_said`` is True if scripts name the instance."""
    rows_by_key = rows_of(instance_tables, before, after, instance)
    changes = {
        key: history.present_changes(instance_tables[key], rows_by_key[key], ON[key])
        for key in ("databases", "services")
    }
    wanted_instances = rows_by_key["instances"] if is_said else []
    changes["instances"] = history.present_changes(
        instance_tables["instances"], wanted_instances, ON["instances"], lambda row: False
    )
    return changes


def rows_of(
    instance_tables: InstanceTables, before: InstanceState, after: InstanceState, instance: str
) -> dict[str, list[TableRow]]:
    """Return the rows of an instance after a change of state. Routes have no times of their history."""
    return {
        "databases": _databases(instance_tables, after, instance),
        "services": [{"instance_name": instance, **vars(service)} for service in after.services],
        "instances": history.instance_rows(instance_tables["instances"], [_instance(instance, before, after)]),
        "routes": _route_rows(after, instance),
    }


def _route_rows(state: InstanceState, instance: str) -> list[TableRow]:
    return [{"instance_name": instance, **vars(route)} for route in state.routes]


def _databases(instance_tables: InstanceTables, after: InstanceState, instance: str) -> list[TableRow]:
    rows_by_name = {row["name"]: row for row in instance_tables["databases"]}
    rows = []
    for database in after.databases:
        row = rows_by_name.get(database.name)
        if row is not None and _database(row) == database:
            rows.append(row)
            continue
        rows.append(
            {
                "instance_name": instance,
                "name": database.name,
                "database_id": database.database_id,
                # A new id that only the server knows is like none: it is nobody's.
                "service_broker_guid": database.service_broker_guid or ZERO_GUID,
                "is_broker_enabled": database.is_broker_enabled,
            }
        )
    return rows


def _instance(instance: str, before: InstanceState, after: InstanceState) -> TableRow:
    forwards = after.endpoint.is_message_forwarding_enabled if after.endpoint else False
    return {
        "instance_name": instance,
        "is_message_forwarding_enabled": None if before.endpoint == after.endpoint else forwards,
        "addresses": None,
    }


def _touched(before: InstanceState, after: InstanceState) -> set[str]:
    return {route.database_name for route in set(before.routes) ^ set(after.routes)}


def _routes(
    stored: Sequence[TableRow],
    route_rows: Sequence[TableRow],
    touched: set[str],
    instance: str,
    times: Mapping[Unit, datetime],
    first: set[str],
) -> TableChanges:
    latest = max(times.values(), default=history.SINCE_EVER)
    # Dropping a database also drops its routes, at the time of the statements on the instance.
    covered: dict[Unit, datetime] = {(instance, name): times.get((instance, name), latest) for name in touched}
    return history.route_changes(stored, route_rows, covered, first)


# Files of T-SQL, or a text, → scripts; no Spark here, so that a faulty file is reported at once.


def read_scripts(
    files: Sequence[str],
    *,
    instance: str,
    database: str | None = None,
    scripted_at: datetime | None = None,
    variables: Mapping[str, str] | None = None,
    reach: Reach = on_this_disk,
    note: Callable[[str], None] = lambda text: None,
) -> list[ReadScript]:
    """Return the scripts in order, with times that never decrease. ``reach`` returns their paths.

    The time of each is ``scripted_at``, or else its file's own, but no earlier than that of the script before it.
    In the latter case ``own_time`` is its own. ``note`` gets a sentence on each time from a file. Raises
    InputError for a file that cannot be read or is not a script.
    """
    scripts: list[ReadScript] = []
    for file in files:
        try:
            place = reach(file)
            own_time = scripted_at or datetime.fromtimestamp(place.stat().st_mtime, timezone.utc)
            at = max([own_time, *(last.scripted_at for last in scripts[-1:])])
            script = read_file(place, scripted_at=at, database=database, instance=instance, variables=variables)
        except OSError as error:
            raise unreadable_file(file, error.strerror or str(error)) from error
        except ValueError as error:
            raise unreadable_file(file, str(error)) from error
        for guess in script.guesses:
            note(guess)
        if at > own_time:
            script = replace(script, own_time=own_time)
        elif scripted_at is None:
            when = format_time(own_time.replace(microsecond=0))
            note(f"{place}: its time is {when}, the file's own (--scripted-at)")
        if script.says_anything:
            scripts.append(script)
        elif read_comments(place).is_all:
            note(f"{place}: it has only comments, so nothing is applied")
        else:
            wrong = [f"line {problem.line}: {problem.why}" for problem in script.problems]
            raise no_statement(file, wrong[0] if wrong else None)
    return scripts
