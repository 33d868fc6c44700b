"""Lint's claims on LOCAL routes, open routes and requests equal the results of the tests' own walk."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from routing.lint.lint_estate import LintFinding
from routing.lint.linting import find_all
from routing.rules.timeline import micros_of
from routing.schemas import TABLES
from routing.tables.table_columns import TableColumns
from tests.open_messages import CONVERSATIONS, message_to
from tests.reference import estate_words as words
from tests.reference.following import Network
from tests.reference.instances import Instance
from tests.reference.networks import SENDERS, SERVICES, random_network
from tests.reference.requests import RequestBook
from tests.reference.text import address_key, broker_id
from tests.reference.ways import Trace, Way

NETWORKS, SEED = 150, 20261125
CODES = ("SBR043", "SBR044", "SBR045", "SBR046")
ASKED = words.CONFIGURATION_SERVICE
Tables = dict[str, list[dict[str, Any]]]
Claims = dict[str, set[tuple[str, str, str | None]]]


class Walker:
    """Follows messages with the tests' own walk and every dialog hash."""

    def __init__(self, tables: Tables, now: datetime) -> None:
        self.tables, self.now = tables, now
        self.network = Network({**tables, "route_requests": []})
        self.forwarding = {
            row["instance_name"]: row["is_message_forwarding_enabled"] for row in tables["instances"]
        }
        self.live = [row for row in tables["routes"] if is_live(row, now)]

    def traces(
        self, instance: Instance, scope: str, service: str, *, is_arrival: bool, broker: str | None = None
    ) -> list[Trace]:
        found = []
        for conversation in CONVERSATIONS:
            message = message_to(
                instance,
                None if is_arrival else scope,
                service,
                self.now,
                conversation=conversation,
                broker=broker,
            )
            found.append(self.network.follow(message, RequestBook([])))
            if not any(hop.step == 3 for way in found[-1].ways for hop in way.hops):
                break
        return found

    def scopes(self) -> Iterator[tuple[Instance, str]]:
        for instance in self.network.instances.values():
            for scope in sorted({*instance.databases, "msdb"}):
                yield instance, scope

    def routes_of(self, instance: Instance, scope: str) -> Iterator[dict[str, Any]]:
        for row in self.live:
            if (row["instance_name"], row["database_name"]) == (instance.name, scope):
                yield row


def is_live(row: dict[str, Any], now: datetime) -> bool:
    begins, ends, lifetime = row["valid_from"], row["valid_to"], row["lifetime"]
    return (begins is None or begins <= now) and all(end is None or now < end for end in (ends, lifetime))


def lost_requests(walker: Walker) -> Iterator[tuple[str, str, str | None]]:
    """Return databases with known paths where requests are never delivered."""
    for instance, scope in walker.scopes():
        if any(row["remote_service_name"] == ASKED for row in walker.routes_of(instance, scope)):
            traces = walker.traces(instance, scope, ASKED, is_arrival=False)
            first = traces[0].ways[0].hops[0]
            ways = [way for trace in traces for way in trace.ways]
            is_off = (first.reason, first.scope) == ("SCOPE_BROKER_DISABLED", scope)
            if not is_off and all(is_lost(walker, way) for way in ways):
                yield instance.name, scope, first.route


def is_lost(walker: Walker, way: Way) -> bool:
    if way.end not in ("DELAYED", "DROPPED", "LOOP"):
        return False
    return way.reason != "FORWARDING_DISABLED" or walker.forwarding[way.instance or ""] is not None


def lacking_services(walker: Walker) -> Iterator[tuple[str, str, str | None]]:
    """Return LOCAL routes for services that their instance does not have."""
    for instance, scope in walker.scopes():
        for row in walker.routes_of(instance, scope):
            service = row["remote_service_name"]
            if service not in (None, "", ASKED) and address_key(row["address"]) == "local":
                for broker in {None, broker_id(row["broker_instance"])}:
                    is_arrival = scope == "msdb"
                    traces = walker.traces(instance, scope, service, is_arrival=is_arrival, broker=broker)
                    for hop in (trace.ways[0].hops[0] for trace in traces):
                        if (
                            hop.reason == "SERVICE_NOT_FOUND"
                            and hop.broker == broker
                            and hop.rerouted_from is None
                        ):
                            yield instance.name, scope, hop.route


def caught_services(walker: Walker) -> Iterator[tuple[str, str, str | None]]:
    """Services that databases of their instance reach by routes for any service, and none by its name."""
    for instance in walker.network.instances.values():
        databases = sorted(database for database in instance.databases if database != "msdb")
        for service in {*SERVICES, *SENDERS}:
            holders = [
                row["database_name"]
                for row in walker.tables["services"]
                if (row["instance_name"], row["name"]) == (instance.name, service)
                and row["database_name"] in instance.databases
            ]
            hops = [
                trace.ways[0].hops[0]
                for scope in databases
                for trace in walker.traces(instance, scope, service, is_arrival=False)
            ]
            steps = {hop.step for hop in hops if hop.outcome == "DELIVERED" and hop.rerouted_from is None}
            if holders and 5 in steps and not steps & {2, 3}:
                yield instance.name, min(holders), service


def sole_targets(walker: Walker) -> Iterator[tuple[str, str, str | None]]:
    """Return routes without a broker instance that always lead to the only one of their service."""
    brokers = {
        (name, database): found.broker
        for name, instance in walker.network.instances.items()
        for database, found in instance.databases.items()
    }
    owned: dict[str, set[str | None]] = {}
    for row in walker.tables["services"]:
        place = row["instance_name"], row["database_name"]
        if place in brokers:
            owned.setdefault(row["name"], set()).add(brokers[place])
    for instance, scope in walker.scopes():
        for row in walker.routes_of(instance, scope):
            service = row["remote_service_name"]
            is_open = (
                broker_id(row["broker_instance"]) is None
                and not row["mirror_address"]
                and service not in (None, "", ASKED)
            )
            if is_open and len(owned.get(service, ())) == 1 and None not in owned[service]:
                traces = walker.traces(instance, scope, service, is_arrival=scope == "msdb")
                ways = [way for trace in traces for way in trace.ways]
                ends = {way.target for way in ways if way.end == "DELIVERED"}
                firsts = {way.hops[0].route for way in ways if way.hops[0].scope == scope}
                whole = all(way.end == "DELIVERED" for way in ways) and not any(one.is_cut for one in traces)
                if whole and ends == owned[service] and row["name"] in firsts:
                    yield instance.name, scope, row["name"]


def by_own_walk(tables: Tables, now: datetime) -> Claims:
    walker = Walker(tables, now)
    makers = (lost_requests, lacking_services, caught_services, sole_targets)
    return {code: set(maker(walker)) for code, maker in zip(CODES, makers, strict=True)}


def _findings_of(tables: Tables, now: datetime) -> set[LintFinding]:
    keys = ("routes", "databases", "services", "instances")
    columns = {key: TableColumns.of_rows(tables[key], TABLES[key]) for key in keys}
    return find_all(columns, micros_of(now))


def by_lint(tables: Tables, now: datetime) -> Claims:
    claims: Claims = {code: set() for code in CODES}
    for one in _findings_of(tables, now):
        if one.code in claims and one.instance_name is not None and one.database_name is not None:
            claims[one.code].add((one.instance_name, one.database_name, one.object))
    return claims


def _enrich(rng: random.Random, tables: Tables) -> None:
    """Let some services be missing, or at one instance alone, and requests go elsewhere."""
    names = [row["instance_name"] for row in tables["instances"]]
    sole, keeper = SERVICES[0], rng.choice(names)
    if rng.random() < 0.6:
        tables["services"] = [
            row for row in tables["services"] if row["name"] != sole or row["instance_name"] == keeper
        ]
    if rng.random() < 0.5:
        gone = rng.choice(names)
        tables["services"] = [
            row for row in tables["services"] if row["instance_name"] != gone or row["name"] not in SENDERS
        ]
    databases = [row for row in tables["databases"] if row["name"] != "msdb"]
    if databases and rng.random() < 0.5:
        place = rng.choice(databases)
        tables["services"].append(
            {"instance_name": place["instance_name"], "database_name": place["name"], "name": ASKED}
        )
    for number, row in enumerate(tables["routes"]):
        if row["remote_service_name"] == ASKED and rng.random() < 0.7:
            row["address"] = f"tcp://{rng.choice(names)}:4022"
        elif row["name"] == "Rest" and number % 2:
            row["address"] = "LOCAL"


def test_claims_of_findings_equal_a_walk_by_the_reference() -> None:
    rng, counts = random.Random(SEED), Counter[str]()
    for number in range(NETWORKS):
        tables, now = random_network(rng, 0), rng.choice(words.MOMENTS)
        _enrich(rng, tables)
        by_reference, claimed = by_own_walk(tables, now), by_lint(tables, now)
        for code in CODES:
            assert claimed[code] == by_reference[code], (number, code)
            counts[code] += len(by_reference[code])
    # It is no test where nothing is claimed.
    assert min(counts[code] for code in CODES) >= 20, counts


def test_arrivals_without_a_route_equal_a_walk_by_the_reference() -> None:
    """SBR024: an open message waits, one that is bound to a holder's id is delivered where the holder takes it."""
    rng, counts = random.Random(SEED), Counter[bool]()
    for number in range(NETWORKS):
        tables, now = random_network(rng, 0), rng.choice(words.MOMENTS)
        _enrich(rng, tables)
        walker = Walker(tables, now)
        for one in _findings_of(tables, now):
            if one.code == "SBR024" and one.object is not None:
                instance = walker.network.instances[one.instance_name or ""]
                [way] = walker.traces(instance, "msdb", one.object, is_arrival=True)[0].ways
                expected = f"an open message that arrives for it is {way.end} ({way.reason})"
                brokers = [database.broker for database in instance.holding[one.object] if database.broker]
                ends = {
                    trace.end
                    for broker in brokers
                    for trace in walker.traces(instance, "msdb", one.object, is_arrival=True, broker=broker)
                }
                is_taken = "DELIVERED" in ends
                if is_taken:
                    expected += "; bound to the broker instance of a database that holds it, it is delivered"
                assert one.message == expected, (number, one)
                counts[is_taken] += 1
    assert min(counts[True], counts[False]) >= 5, counts
