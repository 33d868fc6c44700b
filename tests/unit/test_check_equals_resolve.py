"""check decides as import and ``resolve --as-of`` do with the same files, instance by instance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.exported_estates import FULL, NOON, SCRIPT, Exported, script_of, write_estates
from tests.imports import config_in, import_views, no_spark, rows_at
from tests.unit.test_local_engine import decide_locally

if TYPE_CHECKING:
    from routing import Config
    from routing.views.check.checking import Check

ESTATES, SCRIPTED = 16, 3
SEED = 20260302
COLUMNS = (
    *("outcome", "reason", "matching_step", "route_name", "address", "mirror_address"),
    *("destination_database", "broker_instance", "rerouted_from"),
)
Told = tuple[str, str]
End = tuple[Any, ...]


class Both(NamedTuple):
    """The results of check and resolve by instance and message, and the messages that resolve rejected."""

    done: Check
    instances: Mapping[str, Exported]
    resolved: Mapping[Told, End]
    rejected: frozenset[Told]


def import_all(folder: Path, config: Config, instances: list[Exported]) -> None:
    """Import the exports, then the scripts, without Spark."""
    from routing.importing.from_tsql import import_scripts
    from routing.importing.script_rows import read_scripts

    now = NOON + timedelta(days=1)
    import_views(no_spark(), config, [str(folder)], now)
    for each in instances:
        if each.variant == SCRIPT:
            scripts = read_scripts([str(script_of(folder, each))], instance=each.name)
            import_scripts(no_spark(), config, scripts, instance=each.name, now=now)


def resolve_at(config: Config, names: set[str], at: datetime) -> tuple[dict[Told, End], set[Told]]:
    """Return the results of resolve for the messages of some instances at one time."""
    keys = ("routes", "databases", "services", "instances", "messages", "dialogs")
    tables = {key: rows_at(config.tables[key]) for key in keys}
    tables["messages"] = [row for row in tables["messages"] if row["instance_name"] in names]
    done = decide_locally({**tables, "route_requests": []}, at)
    resolved = {
        (row["instance_name"], row["message_id"]): tuple(row[name] for name in COLUMNS)
        for row in done.resolved_routes
    }
    return resolved, {(row["instance_name"], row["message_id"]) for row in done.rejected_messages}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    from routing.views.check.checking import check

    folder = tmp_path_factory.mktemp("exports")
    instances = write_estates(random.Random(SEED), folder, range(ESTATES), less=2, scripted=SCRIPTED)
    config = config_in(tmp_path_factory.mktemp("tables"))
    with pytest.MonkeyPatch.context() as patch:
        # This process has a session, which may name another disk; the tables are to be deltalake's all the same.
        patch.setattr("routing.sessions.session.is_given", lambda: False)
        import_all(folder, config, instances)
    resolved: dict[Told, End] = {}
    rejected: set[Told] = set()
    for at in sorted({each.at for each in instances}):
        # Each instance is judged as of its newest export.
        there = resolve_at(config, {each.name for each in instances if each.at == at}, at)
        resolved |= there[0]
        rejected |= there[1]
    return Both(check([str(folder)]), {each.name: each for each in instances}, resolved, frozenset(rejected))


def test_every_verdict_is_that_of_resolve(both: Both) -> None:
    seen: Counter[str] = Counter()
    differing = []
    for result in both.done.results:
        if result.case.verdict is None:
            continue
        key = (result.row["instance_name"], result.row["message_id"])
        mine = tuple(getattr(result.case.verdict, name) for name in COLUMNS)
        seen[str(result.case.verdict.reason)] += 1
        if mine != both.resolved.get(key):
            differing.append((key, mine, both.resolved.get(key)))
    assert differing == []
    assert len(seen) >= 12, seen
    assert sum(seen.values()) > len(both.done.results) / 2


def test_messages_that_resolve_rejects_have_no_verdict(both: Both) -> None:
    """resolve rejects a message of an unknown database. import rejects a message without its endpoint."""
    not_known = [result for result in both.done.results if result.case.verdict is None]
    by_id = {
        (result.row["instance_name"], result.row["message_id"]): {gap.missing.name for gap in result.case.gaps}
        for result in not_known
        if "message_id" in result.row
    }
    assert both.rejected
    assert {key for key, gaps in by_id.items() if gaps & {"NOT_LISTED", "DATABASES"}} == both.rejected
    without_id = [result for result in not_known if "message_id" not in result.row]
    listed_count = len(both.resolved) + len(both.rejected) + len(without_id)
    assert listed_count == len(both.done.results)
    # Every message that import knows has one result.
    keys = [
        (result.row["instance_name"], result.row["message_id"])
        for result in both.done.results
        if "message_id" in result.row
    ]
    assert Counter(keys) == Counter([*both.resolved, *both.rejected])


def test_complete_estates_are_decided_as_by_resolve(both: Both) -> None:
    """With complete exports, check decides every message that resolve decides."""
    whole = {name for name, each in both.instances.items() if each.variant == FULL}
    undecided = {
        (result.row["instance_name"], result.row.get("message_id"))
        for result in both.done.results
        if result.case.verdict is None and result.row["instance_name"] in whole
    }
    assert undecided & set(both.resolved) == set()


def test_messages_without_a_verdict_may_be_decided_differently(both: Both) -> None:
    """The verdict of resolve for incomplete exports often differs from that for the complete estate."""
    ends = {
        (both.instances[name].estate, message): end
        for (name, message), end in both.resolved.items()
        if both.instances[name].variant == FULL
    }
    wrong: Counter[str] = Counter()
    for result in both.done.results:
        key = (result.row["instance_name"], result.row.get("message_id", ""))
        if result.case.verdict is None and key in both.resolved:
            right = ends[both.instances[key[0]].estate, key[1]]
            if both.resolved[key] != right:
                wrong.update(gap.missing.name for gap in result.case.gaps)
    assert set(wrong) >= {"ROUTES", "SERVICES", "ADDRESSES"}, wrong
