"""T-SQL scripts into the tables: what the tables hold → statements applied → what changed, as of the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import accumulate
from pathlib import Path

from routing.config import Config
from routing.delta.opening import TableOpener
from routing.importing import order, stored_tables
from routing.importing.completing import complete_imports, note_events
from routing.importing.covered import Row, Unit
from routing.importing.moments import find_scripts_to_come, latest_time, refuse_to_come
from routing.importing.result import ImportResult
from routing.importing.script_rows import OF_A_DATABASE, TimedScript, apply_in_turn
from routing.importing.spelling import NameSpelling, say_near_names, say_servers
from routing.importing.tsql import ReadScript
from routing.render.wording import format_time

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
    """Apply scripts to what the tables hold of an instance (docs/reference/scripts.md).

    What each changes is opened and closed at its own time, or that of the script before it if this is later. With
    ``snapshot`` they say all of the routes of each database whose routes they speak of. ``now`` is the time of
    the import. An import that was ended half-way is completed first, or taken from the journal with
    ``drop_unfinished``. Raises ContractError before anything is written, StorageError after.
    """
    times = ((script.file, script.scripted_at) for script in scripts)
    hint = "--scripted-at says the time, on the clock of --time-zone"
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
    own = {key: store.rows(key, {"instance_name": [name]}) for key in ("routes", "services", "imports")}
    own["databases"] = [row for row in databases if row["instance_name"] == name]
    own["instances"] = [row for row in instances if row["instance_name"] == name]
    known = [*instances, *databases]
    servers = list(dict.fromkeys(server for script in scripts for server in script.servers))
    notes = [*say_near_names([name], known), *say_servers(servers, name, known)]
    done = ImportResult(dry_run, counted="statements", notes=notes)
    latest = latest_time(now)
    taken_back = order.take_back(own["routes"], own["imports"], latest)
    own["routes"], done.notes = list(taken_back.routes), [*done.notes, *taken_back.notes]
    fresh, rows = _leave_out_known(done, scripts, own["imports"], name, spelling, now, snapshot)
    order.refuse_older(own["imports"], rows, latest)
    first, lost = order.find_first(own["imports"], [name], {row["instance_name"] for row in own["routes"]})
    changes = apply_in_turn(done, own, fresh, spelling, name, snapshot=snapshot, is_first=bool(first), now=now)
    changes["routes"] = taken_back.with_changes(changes["routes"])
    done.notes += order.say_lost(lost if changes["routes"] else ())
    for key, change in changes.items():
        done.tell(key, change.counts)
    changes["imports"] = order.imports_changes(own["imports"], rows, latest)
    if not dry_run and (fresh or any(changes.values())):
        progress("writing the tables")
        stored_tables.commit_changes(store, changes, now)
    return done


def _leave_out_known(
    done: ImportResult,
    scripts: Sequence[ReadScript],
    imports: Sequence[Row],
    instance: str,
    spelling: NameSpelling,
    now: datetime,
    snapshot: bool,
) -> tuple[list[TimedScript], list[Row]]:
    """Return the scripts that were not imported before, and their rows of ``imports``; the others are noted."""
    fresh: list[TimedScript] = []
    rows: list[Row] = []
    for script, at in zip(scripts, accumulate((script.scripted_at for script in scripts), max), strict=True):
        units, own_time = _units(script, instance, spelling), script.own_time or script.scripted_at
        if own_time < at:
            done.notes.append(
                f"{script.file}: its own time, {format_time(own_time.replace(microsecond=0))}, lies before that of"
                f" the script before it, whose time is taken, {format_time(at.replace(microsecond=0))}"
                " (--scripted-at)"
            )
        digest = order.digest_script(script.content_digest, snapshot=snapshot)
        own = order.rows_of_script(Path(script.file).name, units, at, now, digest)
        if order.is_known([*imports, *rows], own):
            done.notes.append(f"{script.file}: it was imported before; nothing of it is done again")
        else:
            fresh.append(TimedScript(script, at, units))
            rows += own
    return fresh, rows


def _units(script: ReadScript, instance: str, spelling: NameSpelling) -> set[Unit]:
    """Return the databases whose routes and services a script speaks of, and None for the instance's own."""
    found: set[Unit] = set()
    for statement in script.statements:
        is_of_database = isinstance(statement, OF_A_DATABASE) and statement.database is not None
        database = spelling.database(instance, str(statement.database)) if is_of_database else None
        found.add((instance, database))
    return found or {(instance, None)}
