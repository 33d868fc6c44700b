"""Which scopes lint proves to lead open dialogs to several targets: as the tests' own walk has it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from routing.lint.endpoint_hazards import OpenChoice, OpenMessageFollower, prove_hazards
from routing.lint.lint_estate import estate_of
from routing.rules.timeline import micros_of
from routing.schemas import TABLES
from routing.tables.table_columns import TableColumns
from tests.open_messages import CONVERSATIONS, message_to
from tests.reference import estate_words as words
from tests.reference.following import Network
from tests.reference.networks import SENDERS, SERVICES, random_network
from tests.reference.requests import RequestBook
from tests.reference.ways import Trace

NETWORKS, SEED = 150, 20260107
Tables = dict[str, list[dict[str, Any]]]
Ends = dict[str, str]


def _proved(tables: Tables, now: datetime) -> dict[OpenChoice, Ends]:
    keys = ("routes", "databases", "services", "instances")
    columns = {key: TableColumns.of_rows(tables[key], TABLES[key]) for key in keys}
    estate = estate_of(columns, micros_of(now), 30)
    return {
        choice: dict(hazard.ends) for choice, hazard in prove_hazards(estate, OpenMessageFollower(estate)).items()
    }


def _by_own_walk(tables: Tables, now: datetime) -> dict[OpenChoice, list[Ends]]:
    """Each choice with all that any dialog's hash shows, from every scope for every service."""
    network = Network({**tables, "route_requests": []})
    hazards: dict[OpenChoice, list[Ends]] = {}
    for instance in network.instances.values():
        for scope in {*instance.databases, "msdb"}:
            for service in {*SERVICES, *SENDERS}:
                choice = OpenChoice(instance.name, scope, service)
                sender = None if scope == "msdb" else scope
                for conversation in CONVERSATIONS:
                    message = message_to(instance, sender, service, now, conversation=conversation)
                    trace = network.follow(message, RequestBook([]))
                    hazards.setdefault(choice, []).extend(_different_ends(trace, choice))
                    if len(trace.ways) == 1 and not any(hop.step == 3 for hop in trace.ways[0].hops):
                        break
    return {choice: ends for choice, ends in hazards.items() if ends}


def _different_ends(trace: Trace, choice: OpenChoice) -> Iterator[Ends]:
    """Return the ends of the routes out of the scope, if they have different ids."""
    by_way_out: dict[tuple[str | None, str], Ends] = {}
    for way in trace.ways:
        first = way.hops[0]
        if way.end == "DELIVERED" and way.target is not None and (first.instance, first.scope) == choice[:2]:
            out = (first.address, way.hops[1].instance if len(way.hops) > 1 else "")
            by_way_out.setdefault(out, {})[f"{way.instance}.{way.database}"] = way.target
    for one in by_way_out.values():
        for other in by_way_out.values():
            differ = any(mine != theirs for mine in one.values() for theirs in other.values())
            if one is not other and differ and trace.multiple_targets:
                yield {name: target for ends in by_way_out.values() for name, target in ends.items()}
                return


def _enrich(tables: Tables) -> None:
    """Let there be something to choose from: databases of many ids that hold services, routes without an id."""
    names = ("instance_name", "database_name", "name")
    service_keys = {tuple(row[name] for name in names) for row in tables["services"]}
    for number, row in enumerate(tables["databases"]):
        row["service_broker_guid"] = words.ZERO if number % 9 == 8 else f"id-{number % 9}"
        row["is_broker_enabled"] = number % 7 != 6
        service_keys |= {(row["instance_name"], row["name"], service) for service in SERVICES[:4]}
    tables["services"] = [dict(zip(names, key, strict=True)) for key in sorted(service_keys)]
    for number, row in enumerate(tables["routes"]):
        if number % 3:
            row["broker_instance"] = None
        if number % 4 == 0 and row["address"].strip().startswith("tcp") and not row["mirror_address"]:
            row["remote_service_name"] = None if number % 8 else SERVICES[0]
            row["valid_from"] = row["valid_to"] = row["lifetime"] = None


def test_hazards_equal_a_walk_by_the_reference() -> None:
    rng = random.Random(SEED)
    count, by_any = 0, 0
    for _ in range(NETWORKS):
        tables, now = random_network(rng, 0), rng.choice(words.MOMENTS)
        _enrich(tables)
        proved, by_reference = _proved(tables, now), _by_own_walk(tables, now)
        assert proved.keys() == by_reference.keys()
        assert all(proved[choice] in ends for choice, ends in by_reference.items())
        count += len(by_reference)
        names = {
            (row["instance_name"], row["database_name"], row["remote_service_name"]) for row in tables["routes"]
        }
        by_any += sum(choice not in names for choice in by_reference)
    assert min(count - 60, by_any - 20) > 0, (count, by_any)
