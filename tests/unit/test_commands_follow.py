"""One message in an estate where the order of steps, and of tiers, decides: every command says the same of it.

`make mutants` swaps two neighbours of each in a copy, and demands that every row here turns red.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routing import StoredMessage, diff, explain, trace
from routing.plan.candidate_lists import LISTED_CANDIDATE, CandidateLists
from routing.plan.key_rows import CHOICE, decide_keys
from routing.views.check.checking import check
from tests.arrow_keys import check_tables, count_keys
from tests.estate_rows import message, route, small_estate
from tests.exported import route as exported_route
from tests.exported import waiting, whole_shop
from tests.frames import Tables, arrow

FAR, NEAR = "TCP://far.example:4022", "TCP://near.example:4022"
ID = "5a5a5a5a-0000-4000-8000-000000000000"
# Steps 2 and 3: a route without and one with a broker instance; tiers B and C: LOCAL and a network address.
STEPS, TIERS = "//stepped", "//stock"
ROUTES: dict[str, list[dict[str, Any]]] = {
    STEPS: [{"name": "Open", "address": NEAR}, {"name": "Picked", "address": FAR, "broker_instance": ID}],
    TIERS: [{"name": "Home", "address": "LOCAL"}, {"name": "Away", "address": FAR}],
}
FIRST = {STEPS: "Open", TIERS: "Home"}


def _tables(service: str) -> Tables:
    estate = small_estate()
    routes = [
        route(one["name"], service, one["address"], broker_instance=one.get("broker_instance"))
        for one in ROUTES[service]
    ]
    return {**estate, "routes": routes, "messages": [message(1, service)], "dialogs": [], "route_requests": []}


def _resolved(service: str, folder: Path) -> str | None:
    """Return the verdict of the plan that a run joins to the message."""
    arrow_tables = arrow(_tables(service))
    checked = check_tables(arrow_tables)
    counts = count_keys(arrow_tables["messages"], None, checked, None)
    decided = decide_keys(counts.keys, checked.instances_for(counts.keys.values["key_service"]))
    [(_, _, [choice])] = decided.timelines[0].rows
    name: str | None = choice[CHOICE.names.index("route_name")]
    return name


def _ranked(service: str, folder: Path) -> str | None:
    """The first of the candidates with which `candidates` joins the message."""
    arrow_tables, lists = arrow(_tables(service)), CandidateLists()
    checked = check_tables(arrow_tables)
    counts = count_keys(arrow_tables["messages"], None, checked, None)
    lists.decide_keys(counts.keys, checked.instances_for(counts.keys.values["key_service"]))
    name: str | None = lists.rows[0][LISTED_CANDIDATE.names.index("route_name")]
    return name


def _explained(service: str, folder: Path) -> str | None:
    [row] = explain(arrow(_tables(service)), StoredMessage("m1", None)).verdict
    name: str | None = row["route_name"]
    return name


def _traced(service: str, folder: Path) -> str | None:
    [path] = trace(arrow(_tables(service)), StoredMessage("m1", None)).paths
    return path.there.hop_paths[0].hops[0].route_name


def _checked(service: str, folder: Path) -> str | None:
    routes = [exported_route(one.pop("name"), service, **one) for one in map(dict, ROUTES[service])]
    services = {"msdb": [], "Orders": [{"name": TIERS}]}
    views: dict[str, Any] = {"routes": {"msdb": [], "Orders": routes}, "services": services}
    [result] = check([str(whole_shop(folder, [waiting(1, service)], **views))]).results
    return None if result.case.verdict is None else result.case.verdict.route_name


def _compared(service: str, folder: Path) -> str | None:
    tables = _tables(service)
    without = {"routes": arrow({**tables, "routes": []})["routes"]}
    done = diff(arrow(tables), without, with_messages=True)
    changed: Any = done.messages
    [row] = changed.to_pylist()
    name: str | None = row["route_name_before"]
    return name


COMMANDS: dict[str, Callable[[str, Path], str | None]] = {
    "resolve": _resolved,
    "candidates": _ranked,
    "explain": _explained,
    "trace": _traced,
    "check": _checked,
    "diff": _compared,
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("service", [STEPS, TIERS], ids=["steps", "tiers"])
def test_all_commands_use_the_same_first_route(service: str, command: str, tmp_path: Path) -> None:
    assert COMMANDS[command](service, tmp_path) == FIRST[service]
