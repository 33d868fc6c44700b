"""Import T-SQL scripts: the state that the tables hold → statements applied → changes, as of the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import accumulate
from pathlib import Path

from routing.config import Config
from routing.delta.opening import TableOpener
from routing.importing import import_order, stored_tables
from routing.importing.completing import complete_imports, note_events
from routing.importing.covered_rows import ImportResult, Unit
from routing.importing.import_faults import find_scripts_to_come, latest_time, refuse_to_come
from routing.importing.script_rows import OF_A_DATABASE, TimedScript, apply_in_turn
from routing.importing.spelling import NameSpelling, say_near_names, say_servers
from routing.importing.tsql.script_reader import ReadScript
from routing.render.wording import format_time
from routing.terms import TableRow

_KEYS = ("databases", "services", "instances", "routes", "imports")


def import_scripts(
    opener: TableOpener,
    config: Config,
    scripts: Sequence[ReadScript],
    *,
    instance: str,
    now: datetime,
    snapshot: bool = False,
    dry_run: bool = False,
    drop_unfinished: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> ImportResult:
    """Apply scripts to the stored rows of an instance (docs/reference/scripts.md).

    A script opens and closes versions at its own time, or at that of the script before it if this is later. With
    ``snapshot`` the scripts contain all routes of each database with a route statement. ``now`` is the time of
    the import. An interrupted import is completed first, or removed from the journal with ``drop_unfinished``.
    Raises ContractError before any write, StorageError after it.
    """
    times = ((script.file, script.scripted_at) for script in scripts)
    hint = "--scripted-at sets the time, in the zone of --time-zone"
    refuse_to_come(find_scripts_to_come(times, now), hint)
    config = config.placed(opener.placed)
    with nullcontext() if dry_run else stored_tables.only_import(config, now):
        progress("reading the tables")
        earlier = complete_imports(opener, config, is_dry_run=dry_run, drops=drop_unfinished)
        store = stored_tables.open_stored(opener, config, _KEYS)
        done = _bring_scripts(store, scripts, instance, now, snapshot, dry_run, progress)
    done.notes[:0] = [*earlier.notes, *note_events(earlier)]
    return done


def _bring_scripts(
    store: stored_tables.StoredTables,
    scripts: Sequence[ReadScript],
    instance: str,
    now: datetime,
    snapshot: bool,
    dry_run: bool,
    progress: Callable[[str], None],
) -> ImportResult:
    databases, instances = store.rows("databases"), store.rows("instances")
    spelling = NameSpelling.of_tables(instances, databases)
    name = spelling.instance(instance)
    only = {"instance_name": [name]}
    instance_tables = {key: store.rows(key, only) for key in ("routes", "services", "imports")}
    instance_tables["databases"] = [row for row in databases if row["instance_name"] == name]
    instance_tables["instances"] = [row for row in instances if row["instance_name"] == name]
    named_rows = [*instances, *databases]
    servers = list(dict.fromkeys(server for script in scripts for server in script.servers))
    notes = [*say_near_names([name], named_rows), *say_servers(servers, name, named_rows)]
    done = ImportResult(dry_run, counted="statements", notes=notes)
    latest = latest_time(now)
    taken_back = import_order.take_back(instance_tables["routes"], instance_tables["imports"], latest)
    instance_tables["routes"], done.notes = list(taken_back.routes), [*done.notes, *taken_back.notes]
    fresh, rows = _leave_out_known(done, scripts, instance_tables["imports"], name, spelling, now, snapshot)
    import_order.refuse_older(instance_tables["imports"], rows, latest)
    first, instances_lost = import_order.find_first(
        instance_tables["imports"], [name], {row["instance_name"] for row in instance_tables["routes"]}
    )
    changes = apply_in_turn(
        done, instance_tables, fresh, spelling, name, snapshot=snapshot, is_first=bool(first), now=now
    )
    changes["routes"] = taken_back.with_changes(changes["routes"])
    done.notes += import_order.say_lost(instances_lost if changes["routes"] else ())
    for key, change in changes.items():
        done.count_written(key, change.counts)
    changes["imports"] = import_order.imports_changes(instance_tables["imports"], rows, latest)
    if not dry_run and (fresh or any(changes.values())):
        progress("writing the tables")
        stored_tables.commit_changes(store, changes, now)
    return done


def _leave_out_known(
    done: ImportResult,
    scripts: Sequence[ReadScript],
    imports: Sequence[TableRow],
    instance: str,
    spelling: NameSpelling,
    now: datetime,
    snapshot: bool,
) -> tuple[list[TimedScript], list[TableRow]]:
    """Return the scripts that were not imported before, with their rows of ``imports``, and note the others."""
    fresh: list[TimedScript] = []
    rows: list[TableRow] = []
    for script, at in zip(scripts, accumulate((script.scripted_at for script in scripts), max), strict=True):
        units, own_time = _units(script, instance, spelling), script.own_time or script.scripted_at
        if own_time < at:
            done.notes.append(
                f"{script.file}: its own time, {format_time(own_time.replace(microsecond=0))}, lies before that of"
                f" the previous script, whose time is used, {format_time(at.replace(microsecond=0))}"
                " (--scripted-at)"
            )
        digest = import_order.digest_script(script.content_digest, snapshot=snapshot)
        import_rows = import_order.rows_of_script(Path(script.file).name, units, at, now, digest)
        if import_order.is_known([*imports, *rows], import_rows):
            done.notes.append(f"{script.file}: it was already imported, so it is skipped")
        else:
            fresh.append(TimedScript(script, at, units))
            rows += import_rows
    return fresh, rows


def _units(script: ReadScript, instance: str, spelling: NameSpelling) -> set[Unit]:
    """Return the databases with routes or services in a script, and None for the instance itself."""
    units: set[Unit] = set()
    for statement in script.statements:
        is_of_database = isinstance(statement, OF_A_DATABASE) and statement.database is not None
        database = spelling.database(instance, str(statement.database)) if is_of_database else None
        units.add((instance, database))
    return units or {(instance, None)}
