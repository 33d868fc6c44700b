"""Remedies of estates that nobody thought of: names that break out, and routes in any mixture."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from routing.advice.remedy import AlteredRoute, Confidence, Remedy
from routing.importing.tsql.instance_state import RouteState
from routing.importing.tsql.script_statements import (
    AlterDatabase,
    AlterRoute,
    BrokerSetting,
    CreateRoute,
    RouteOptions,
    ScriptStatement,
)
from routing.rules.resolving import Verdict
from routing.terms import Outcome, Reason
from tests.hostile import TEXTS
from tests.unit.remedied import OLD, PAST, A, Asked, B, C, D, read, route, server

ON_ITS_WAY = {Outcome.DELIVERED, Outcome.SENT, Outcome.FORWARDED}
PLAIN = "AaBb19 .,:;-_#@!?&%+=*(){}[]'\"`~^|\\/$<>é字"
# Names as people and machines write them, with all that closes a name or a text; no placeholders of tools.
PASTED = st.text(st.sampled_from(PLAIN), min_size=1, max_size=40).filter(
    lambda name: re.search(r"[$#{]\{|[<{%@$]\s*\w|<%|<#=|__|\[\[|\(\(|([~!|^*#])\w+\1", name) is None
)
BREAKING = [
    "a]; DROP ROUTE [b",
    "a'; DROP ROUTE b; --",
    "a*/ DROP ROUTE b /*",
    "a\nGO\nDROP ROUTE b",
    "$(x)",
    "${x}",
    "{{ x }}",
    "#{x}",
    "$x$",
    "<name, sysname, other>",
    "\u202eabc",
    "\u034f",
    "a\u00a0b",
    "a\u2028b",
    "\ud800",
    "\ufffd",
    "a" * 10_000,
    "\U0001f600" * 129,
    "",
]


def statements(remedy: Remedy) -> list[tuple[str, str | None, str, object]]:
    """Return kind, database, name and options of a remedy's statements."""

    def said(one: ScriptStatement) -> tuple[str, str | None, str, object]:
        more = one.options if isinstance(one, (AlterRoute, CreateRoute)) else None
        return (one.words, one.database, one.name, one.setting if isinstance(one, AlterDatabase) else more)

    return [said(one) for one in read(remedy).statements]


def check_words(remedy: Remedy) -> None:
    assert remedy.actions
    assert all(sentence.endswith(".") for sentence in (remedy.cause, *remedy.actions))
    assert not (remedy.is_complete and remedy.confidence is Confidence.TO_BE_CHECKED)
    assert all(sentence.isprintable() for sentence in (remedy.text, remedy.risk or " "))
    assert len(remedy.text) < 1_200


names = st.one_of(PASTED, PASTED, TEXTS, st.sampled_from(BREAKING))


@given(names, names, names)
def test_an_altered_route_is_the_chosen_one(database: str, name: str, service: str) -> None:
    estate = Asked(
        {"hub": server({database: (A, True)}, (), [route(database, name, "tcp://shop:4022", f"{service}/")])},
        service=service,
        database=database,
    )
    remedy = estate.remedy()
    check_words(remedy)
    if remedy.statement is not None:
        intended = [("ALTER ROUTE", database, name, RouteOptions(service_name=service))]
        assert (statements(remedy), remedy.is_complete) == (intended, True)
        assert remedy.altered == AlteredRoute(name, "SERVICE_NAME")
        assert estate.apply_remedy(remedy).verdict().outcome is Outcome.SENT


@given(names, names, names)
def test_a_replaced_route_keeps_its_options(database: str, name: str, service: str) -> None:
    old = route(database, name, " TCP://Shop.example:4022/", service, "it's ]me", PAST)
    estate = Asked({"hub": server({database: (A, True)}, (), [old])}, service=service, database=database)
    remedy = estate.remedy()
    check_words(remedy)
    if remedy.statement is not None:
        options = RouteOptions(service, "it's ]me", address=" TCP://Shop.example:4022/")
        intended = [("DROP ROUTE", database, name, None), ("CREATE ROUTE", database, name, options)]
        assert statements(remedy) == intended


@given(names, names)
def test_only_a_disabled_broker_is_enabled(database: str, service: str) -> None:
    hub = server(
        {"Orders": (A, True), database: (C, False)}, [(database, service)], [route("Orders", "r", "LOCAL")]
    )
    assume(database != "Orders")
    remedy = Asked({"hub": hub}, service=service).remedy()
    check_words(remedy)
    if remedy.statement is not None:
        assert statements(remedy) == [("ALTER DATABASE", "master", database, BrokerSetting.ENABLE)]
        assert "NEW_BROKER" not in remedy.statement


@given(names, names, st.booleans())
def test_an_incomplete_remedy_has_only_comments(database: str, service: str, is_here: bool) -> None:
    holding = [(database, service)] if is_here else []
    hub = server({database: (A, True)}, holding, [route(database, "r", "LOCAL")])
    remedy = Asked({"hub": hub}, service=service, database=database).remedy()
    check_words(remedy)
    assert not remedy.is_complete
    assert all(line.startswith("-- ") for line in (remedy.statement or "-- ").split("\n"))
    assert read(remedy).statements == ()


@given(names)
def test_a_new_route_has_a_valid_name(service: str) -> None:
    hub = server({"Orders": (A, True)}, (), [route("Orders", "all", "LOCAL")])
    estate = Asked({"hub": hub, "shop": server({"Stock": (C, True)}, [("Stock", service)])}, service=service)
    remedy = estate.remedy()
    check_words(remedy)
    if remedy.statement is not None:
        ((words, database, name, options),) = statements(remedy)
        assert (words, database, options) == (
            "CREATE ROUTE",
            "Orders",
            RouteOptions(service, address="TCP://Shop.example:4022"),
        )
        assert f"Route to {service}".startswith(name)
        assert estate.apply_remedy(remedy).verdict().outcome is Outcome.SENT


@pytest.mark.parametrize("name", BREAKING)
@pytest.mark.parametrize("place", range(3))
def test_a_name_that_cannot_be_pasted_gives_words(name: str, place: int) -> None:
    parts = ["Orders", "r", "S"]
    parts[place] = name
    database, route_name, service = parts
    hub = server({database: (A, True)}, (), [route(database, route_name, "tcp://shop:4022", f"{service}/")])
    remedy = Asked({"hub": hub}, service=service, database=database).remedy()
    check_words(remedy)
    can_be = name in BREAKING[:2]
    assert (remedy.statement is not None) == can_be


@given(PASTED, PASTED, PASTED)
def test_ordinary_names_give_complete_statements(database: str, name: str, service: str) -> None:
    assume(not any(re.search(r"\*/|\$\(|<[^<>,]+,[^<>,]*,[^<>]*>", text) for text in (database, name, service)))
    hub = server({database: (A, True)}, (), [route(database, name, "tcp://shop:4022", f"{service}/")])
    remedy = Asked({"hub": hub}, service=service, database=database).remedy()
    assert remedy.is_complete


ADDRESSES = ("LOCAL", "tcp://shop:4022", "tcp://depot:4022")


def draw_routes(chance: random.Random, databases: Sequence[str]) -> list[RouteState]:
    """Routes that SQL Server would take."""
    routes = []
    for database in databases:
        for number in range(chance.randrange(4)):
            service = chance.choice(["S", "S", "s", "S/", "T", None, None])
            broker = None if service is None else chance.choice([None, None, C, D, OLD])
            address = chance.choice(
                ["LOCAL", "tcp://shop:4022", "tcp://depot:4022", "TCP://HUB:4022/", "TRANSPORT"]
            )
            if address == "TRANSPORT" and service is not None:
                address = "LOCAL"
            mirror = "tcp://twin:4022" if broker and address[0] == "t" and chance.random() < 0.1 else None
            lifetime = PAST if chance.random() < 0.2 else None
            routes.append(route(database, f"r{number}", address, service, broker, lifetime, mirror))
    return routes


def draw(seed: int) -> Asked:
    """A small estate: a hub with the sender, and two instances that the service may be in as well."""
    chance = random.Random(seed)
    ids = [B, C, D]
    chance.shuffle(ids)
    mine = {"Orders": (A, chance.random() < 0.9), "msdb": (None, chance.random() < 0.9)}
    mine |= {"Stock": (ids[0], chance.random() < 0.7)} if chance.random() < 0.6 else {}
    held = [(name, service) for name in mine for service in ("S", "s", "T") if chance.random() < 0.25]
    hub = server(mine, held, draw_routes(chance, ["Orders", "msdb"]), forwards=chance.random() < 0.5)
    others = {
        name: server({"There": (broker, True)}, [("There", chance.choice(["S", "S", "s"]))])
        for name, broker in (("shop", ids[1]), ("depot", ids[2]))
        if chance.random() < 0.6
    }
    addresses = {"hub": ["tcp://hub:4022"], "shop": ["tcp://shop:4022"], "depot": ["tcp://depot:4022"]}
    known_addresses = {name: where for name, where in addresses.items() if name == "hub" or chance.random() < 0.8}
    return Asked({"hub": hub, **others}, "S", chance.choice([None, None, B, C, D, OLD]), known_addresses)


def reason_and_scope(verdict: Verdict) -> tuple[Reason, str | None]:
    """Return the reason and the database of the last search."""
    return verdict.reason, None if verdict.decision is None else verdict.decision.last.scope


def test_statements_to_run_get_messages_moving() -> None:
    ran: Counter[str] = Counter()
    for seed in range(2_000):
        estate = draw(seed)
        before = estate.verdict()
        remedy = estate.remedy()
        check_words(remedy)
        if not remedy.is_complete:
            assert remedy.statement is None or read(remedy).statements == ()
            continue
        assert before.outcome not in ON_ITS_WAY, seed
        after = estate.apply_remedy(remedy).verdict()
        if "END CONVERSATION" in remedy.text:
            # It helps dialogs that begin after it, and are bound to the id of today.
            ids = {one.options.broker_instance for one in read(remedy).statements if isinstance(one, AlterRoute)}
            after = replace(estate, broker=ids.pop()).apply_remedy(remedy).verdict()
        # Behind a scope whose broker was off there may be another fault.
        is_first_step = before.reason is Reason.SCOPE_BROKER_DISABLED and reason_and_scope(
            after
        ) != reason_and_scope(before)
        assert after.outcome in ON_ITS_WAY or is_first_step, (seed, before.reason, after.reason, remedy)
        ran[str(before.reason)] += 1
    assert set(ran) == {
        "BROKER_DISABLED",
        "BROKER_INSTANCE_NOT_FOUND",
        "FORWARDING_DISABLED",
        "NO_ROUTE",
        "ROUTING_LOOP",
        "SCOPE_BROKER_DISABLED",
        "SERVICE_NOT_FOUND",
        "TRANSPORT_ADDRESS_INVALID",
    }
