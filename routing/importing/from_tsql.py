"""T-SQL scripts into the tables: what the tables hold → statements applied → what changed, as of the script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

from routing.config import Config
from routing.importing import order, storing
from routing.importing.covered import Unit
from routing.importing.history import Changes
from routing.importing.result import Imported
from routing.importing.scripted import OF_A_DATABASE, apply_all, changes_of, state_of
from routing.importing.spelling import Spelling, say_near_names, say_servers
from routing.importing.tsql import Script
from routing.storage.opening import Opener

_KEYS = ("databases", "services", "instances", "routes", "imports")


def import_scripts(
    opener: Opener,
    config: Config,
    scripts: Sequence[Script],
    *,
    instance: str,
    now: datetime,
    snapshot: bool = False,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Imported:
    """Apply scripts to what the tables hold of an instance (docs/importing.md).

    What they change is opened and closed at the scripts' time. With ``snapshot`` they say all of the routes
    of each database whose routes they speak of. ``now`` is the time of the import. Raises ContractError
    before anything is written, StorageError after.
    """
    config = config.placed(opener.placed)
    with nullcontext() if dry_run else storing.only_import(config, now):
        progress("reading the tables")
        store = storing.open_stored(opener, config, _KEYS)
        return _bring_scripts(store, scripts, instance, now, snapshot, dry_run, progress)


def _bring_scripts(
    store: storing.Stored,
    scripts: Sequence[Script],
    instance: str,
    now: datetime,
    snapshot: bool,
    dry_run: bool,
    progress: Callable[[str], None],
) -> Imported:
    databases, instances = store.rows("databases"), store.rows("instances")
    spelling = Spelling.of_tables(instances, databases)
    name = spelling.instance(instance)
    own = {key: store.rows(key, {"instance_name": [name]}) for key in ("routes", "services", "imports")}
    own["databases"] = [row for row in databases if row["instance_name"] == name]
    own["instances"] = [row for row in instances if row["instance_name"] == name]
    known = [*instances, *databases]
    servers = list(dict.fromkeys(server for script in scripts for server in script.servers))
    notes = [*say_near_names([name], known), *say_servers(servers, name, known)]
    done = Imported(dry_run, counted="statements", notes=notes)
    units = {Path(script.file).name: _units(script, name, spelling) for script in scripts}
    fresh = [s for s in scripts if not order.is_known(own["imports"], Path(s.file).name, units[Path(s.file).name])]
    for script in scripts:
        if script not in fresh:
            done.notes.append(f"{script.file}: it was imported before; nothing of it is done again")
    fresh_units = {Path(script.file).name: units[Path(script.file).name] for script in fresh}
    order.refuse_older(own["imports"], fresh_units)
    times = _times(fresh_units.values())
    before = state_of(own, max(times.values(), default=now))
    after = apply_all(done, before, fresh, spelling, name, snapshot)
    changes = changes_of(own, before, after, name, times, order.find_without_routes(own["imports"], [name]))
    if not dry_run and fresh:
        progress("writing the tables")
        storing.make_ready(store)
    for key, change in changes.items():
        if not dry_run:
            storing.put(store, key, change)
        done.tell(key, change.counts)
    if not dry_run:
        storing.put(store, "imports", Changes(put=order.newer_rows(own["imports"], fresh_units, now)))
    return done


def _units(script: Script, instance: str, spelling: Spelling) -> dict[Unit, datetime]:
    """The databases whose routes and services a script speaks of, and None for the instance's own."""
    found: dict[Unit, datetime] = {}
    for statement in script.statements:
        is_of_database = isinstance(statement, OF_A_DATABASE) and statement.database is not None
        database = spelling.database(instance, str(statement.database)) if is_of_database else None
        found[instance, database] = script.scripted_at
    return found or {(instance, None): script.scripted_at}


def _times(many: Iterable[Mapping[Unit, datetime]]) -> dict[Unit, datetime]:
    """The latest time of each unit."""
    times: dict[Unit, datetime] = {}
    for units in many:
        for unit, at in units.items():
            times[unit] = max(times.get(unit, at), at)
    return times
