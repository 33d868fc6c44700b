"""Rows of the tables → generated T-SQL → import → the same rows."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from routing.importing.covered_rows import Unit
from routing.importing.script_rows import changes_of, state_of
from routing.importing.tsql.instance_state import InstanceState
from routing.importing.tsql.script_reader import apply_script, read_script
from tests.examples import count_examples

Row = dict[str, Any]
AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
ROUTE = (
    *("instance_name", "database_name", "name", "remote_service_name", "broker_instance"),
    *("lifetime", "address", "mirror_address"),
)
NOTHING: dict[str, list[Row]] = {"routes": [], "services": [], "databases": [], "instances": []}

# What T-SQL has to quote, and what sqlcmd and templates would take for their own.
LETTERS = "abÄ '\"[]]-/*;%$(){}.\\<>,GO\t"
NAMES = st.text(LETTERS, min_size=1, max_size=12).filter(
    lambda name: not re.search(r"<|\$\(|[$#{]\{|\$\w[^$]*\$|\{.*\}|%.*%|\*\w+\*|\$[^\W\d]", name)
)
SERVICES = NAMES
SECONDS = st.one_of(st.none(), st.integers(1, 2**31 - 1))
ADDRESSES = st.sampled_from(["LOCAL", "local", "TCP://a.example:4022", "tcp://[::1]:4022", " TCP://b:1/ "])


def quote(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"


def bracketed(text: str) -> str:
    return "[" + text.replace("]", "]]") + "]"


def script_of(rows: list[Row], services: list[Row]) -> str:
    lines = []
    for row in rows:
        options = [f"ADDRESS = {quote(row['address'])}"]
        for word, column in (("SERVICE_NAME", "remote_service_name"), ("BROKER_INSTANCE", "broker_instance")):
            if row[column] is not None:
                options.append(f"{word} = {quote(row[column])}")
        if row["mirror_address"] is not None:
            options.append(f"MIRROR_ADDRESS = {quote(row['mirror_address'])}")
        if row["lifetime"] is not None:
            options.append(f"LIFETIME = {int((row['lifetime'] - AT).total_seconds())}")
        lines.append(f"USE {bracketed(row['database_name'])};")
        lines.append(f"CREATE ROUTE {bracketed(row['name'])} WITH {', '.join(options)};")
    for row in services:
        lines.append(f"USE {bracketed(row['database_name'])};")
        lines.append(f"CREATE SERVICE {bracketed(row['name'])} ON QUEUE q;")
    return "\n".join(lines)


@st.composite
def routes(draw: st.DrawFn) -> list[Row]:
    drawn = []
    for name in draw(st.lists(NAMES, max_size=6, unique_by=str.casefold)):
        service = draw(st.one_of(st.none(), SERVICES))
        broker = None if service is None else draw(st.one_of(st.none(), NAMES))
        address = draw(ADDRESSES)
        mirror = "TCP://mirror:1" if broker and "//" in address and draw(st.booleans()) else None
        seconds = draw(SECONDS)
        lifetime = None if seconds is None else AT + timedelta(seconds=seconds)
        values = (
            "hub",
            draw(st.sampled_from(["Shop", "St]ock"])),
            name,
            service,
            broker,
            lifetime,
            address,
            mirror,
        )
        drawn.append(dict(zip(ROUTE, values, strict=True)))
    return drawn


def imported(text: str, own: dict[str, list[Row]]) -> Any:
    script = read_script(text, file="f.sql", scripted_at=AT)
    assert script.problems == ()
    before = state_of(own, AT)
    result = apply_script(before, script)
    assert result.problems == ()
    times: dict[Unit, datetime] = {("hub", name): AT for name in ("Shop", "St]ock")}
    return changes_of(own, before, result.state, "hub", times, {"hub"})


@settings(max_examples=count_examples(150), deadline=timedelta(seconds=2))
@given(routes(), st.lists(SERVICES, max_size=3, unique=True))
def test_tables_survive_a_round_trip_through_a_script(rows: list[Row], names: list[str]) -> None:
    services = [{"instance_name": "hub", "database_name": "Shop", "name": name} for name in names]
    changes = imported(script_of(rows, services), NOTHING)
    written = [{name: row[name] for name in ROUTE} for row in changes["routes"].put]
    assert sorted(written, key=str) == sorted(rows, key=str)
    assert all(row["valid_from"] is None and row["valid_to"] is None for row in changes["routes"].put)
    assert sorted(changes["services"].put, key=str) == sorted(services, key=str)


def test_an_empty_script_over_stored_rows_changes_nothing() -> None:
    stored: list[Row] = [
        {
            **dict(zip(ROUTE, ("hub", "Shop", "r", "", "", None, "LOCAL", ""), strict=True)),
            "valid_from": None,
            "valid_to": None,
        }
    ]
    databases: list[Row] = [
        {
            "instance_name": "hub",
            "name": "Shop",
            "database_id": 5,
            "service_broker_guid": "x",
            "is_broker_enabled": None,
        }
    ]
    changes = imported("", {**NOTHING, "routes": stored, "databases": databases})
    assert not any(changes[key] for key in ("routes", "services", "databases"))
    assert state_of(NOTHING, AT) == InstanceState(endpoint=state_of(NOTHING, AT).endpoint)
