"""The sides of a diff (scripts, versions, times and tables) and its result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from routing.cases import estate_differences
from routing.cases.compared_tables import Scripts, TableVersions, versions_of
from routing.cases.estate_differences import AffectedServices, PathDifference, find_affected
from routing.cases.estate_sides import DiffSides, GivenTables, OneSide, read
from routing.cli import main
from routing.errors import ContractError, InputError
from routing.result_schemas import KEY_CHANGES
from routing.schemas import ROUTES, SETTINGS
from routing.views.configuration_changes import find_route_changes
from routing.views.diff.arrow_diff import compare_messages
from routing.views.diff.decision_comparison import (
    FAILS,
    MessageChanges,
    count_changes,
    fails,
    words_of,
)
from routing.views.diff.diffing import Diff, diff
from tests.estate_rows import STOCK, STORE, conversation, database, instance, message, route, service, small_estate
from tests.frames import Tables, arrow, arrow_of
from tests.stored import config_of, config_text, save_estate
from tests.unit.explained_rows import columns_of_rows
from tests.unit.rules.by_rules import micros

AT = datetime(2026, 1, 5, 13, tzinfo=timezone.utc)
SCRIPT = """USE Sales;
DROP ROUTE Far;
DROP ROUTE Gone;
CREATE ROUTE Nowhere WITH SERVICE_NAME = '//nowhere', ADDRESS = 'TCP://nowhere.example:4022', LIFETIME = 60;
ALTER ROUTE Store WITH ADDRESS = 'TCP://store.example:4022';
GO
ALTER DATABASE Stock SET DISABLE_BROKER;
"""
DECIDED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")


Decisions = dict[str, tuple[list[Any], list[Any]]]


def rows_of(done: Diff) -> list[dict[str, Any]]:
    messages: Any = done.messages
    rows: list[dict[str, Any]] = messages.to_pylist()
    return rows


def decided(done: Diff) -> Decisions:
    """By message id the decisions before and after."""
    return {
        row["message_id"]: (
            [row[f"{name}_before"] for name in DECIDED],
            [row[f"{name}_after"] for name in DECIDED],
        )
        for row in rows_of(done)
    }


def written(folder: Path, text: str = SCRIPT) -> str:
    file = folder / "change.sql"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_script_applies_its_statements(tmp_path: Path) -> None:
    done = diff(arrow(small_estate()), Scripts([written(tmp_path)], "HUB"), at=AT, with_messages=True)
    assert decided(done) == {
        "m2": (
            ["DELIVERED", "LOCAL_SERVICE", "Store", "LOCAL", None, "Store"],
            ["SENT", "NETWORK_ADDRESS", "Store", "TCP://store.example:4022", None, None],
        ),
        "m1": (
            ["DELIVERED", "LOCAL_SERVICE", "Store", "LOCAL", None, "Store"],
            ["SENT", "NETWORK_ADDRESS", "Store", "TCP://store.example:4022", None, None],
        ),
        "m3": (
            ["SENT", "MIRROR_ADDRESS", "Far", "TCP://far.example:4022", "tcp://mirror.example:4022", None],
            ["DELAYED", "ROUTE_REQUESTED", None, None, None, None],
        ),
        "m4": (
            ["DELAYED", "ROUTE_REQUESTED", None, None, None, None],
            ["SENT", "NETWORK_ADDRESS", "Nowhere", "TCP://nowhere.example:4022", None, None],
        ),
    }
    assert [(row["change"], row["name"]) for row in done.routes] == [
        ("removed", "Far"),
        ("added", "Nowhere"),
        ("changed", "Store"),
    ]
    [lifetime] = [row["lifetime_after"] for row in done.routes if row["name"] == "Nowhere"]
    assert lifetime == AT.replace(minute=1)
    assert [(row["change"], row["code"], row["object"]) for row in done.findings if row["code"] == "SBR034"] == [
        ("comes", "SBR034", "Stock")
    ]
    assert done.script is not None
    [refused] = done.script.rejected
    assert "line 3: DROP ROUTE 'Gone'" in refused


def test_a_script_gives_the_tables_of_its_import(tmp_path: Path) -> None:
    """Beside another configuration: a copy of the tables into which the script was imported."""
    save_estate(small_estate(), tmp_path / "in")
    shutil.copytree(tmp_path / "in", tmp_path / "copy")
    text = config_text(tmp_path / "copy", tmp_path / "out", imports=tmp_path / "imports")
    (tmp_path / "copy.yaml").write_text(text, encoding="utf-8")
    script = written(tmp_path)
    at = ("--scripted-at", AT.isoformat())
    assert main(["import", "tsql", script, "--config", str(tmp_path / "copy.yaml"), "--instance", "hub", *at]) == 0
    job = config_of(tmp_path / "in", tmp_path / "out")
    imported = diff(job, config_of(tmp_path / "copy", tmp_path / "out"), at=AT, with_messages=True)
    tried = diff(job, Scripts([script], "hub"), at=AT, with_messages=True)
    assert len(rows_of(tried)) == 4
    for name in ("counts", "keys", "routes", "findings"):
        assert list(getattr(tried, name)) == list(getattr(imported, name)), name
    assert sorted(map(str, rows_of(tried))) == sorted(map(str, rows_of(imported)))
    assert not (tmp_path / "in" / "imports").exists()


def test_a_script_can_be_given_as_text(tmp_path: Path) -> None:
    tables = arrow(small_estate())
    done = diff(tables, Scripts.of_text(SCRIPT, "hub"), at=AT, with_messages=True)
    of_file = diff(tables, Scripts([written(tmp_path)], "hub"), at=AT, with_messages=True)
    assert len(rows_of(done)) == 4
    assert rows_of(done) == rows_of(of_file)
    assert done.after.label == "the given tables with the script on hub"
    assert done.script is not None
    [refused] = done.script.rejected
    assert "the script, line 3: DROP ROUTE 'Gone'" in refused
    without_use = "CREATE ROUTE [Elsewhere] WITH SERVICE_NAME = N'//far', ADDRESS = N'LOCAL';"
    in_use = diff(tables, Scripts.of_text(without_use, "hub", "Stock"), at=AT)
    assert [(row["database_name"], row["name"]) for row in in_use.routes] == [("Stock", "Elsewhere")]
    with pytest.raises(InputError, match="'the script' is not a script: no T-SQL statement is found"):
        diff(tables, Scripts.of_text("-- nothing", "hub"), at=AT)


REPLACED = """USE Sales;
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DROP ROUTE [{}];
CREATE ROUTE [Store] WITH SERVICE_NAME = N'//store', ADDRESS = N'TCP://store.example:4022';
COMMIT TRANSACTION;
"""


@pytest.mark.parametrize(("name", "found"), [("Store", [("changed", "Store")]), ("Gone", [])])
def test_a_route_that_is_replaced_in_one_transaction(name: str, found: list[tuple[str, str]]) -> None:
    """After an error nothing of it counts."""
    done = diff(arrow(small_estate()), Scripts.of_text(REPLACED.format(name), "hub"), at=AT)
    assert [(row["change"], row["name"]) for row in done.routes] == found
    assert done.script is not None
    assert len(done.script.rejected) == (0 if found else 2)


def test_a_time_without_a_zone_is_utc() -> None:
    done = diff(arrow(small_estate()), Scripts.of_text(SCRIPT, "hub"), at=AT.replace(tzinfo=None))
    assert (done.changed, done.after.moment) == (4, AT)


def test_a_script_for_an_unknown_instance_is_tried_on_a_new_one(tmp_path: Path) -> None:
    done = diff(arrow(small_estate()), Scripts([written(tmp_path)], "elsewhere"), at=AT)
    assert done.changed == 0
    assert done.script is not None
    assert "the tables have no instance 'elsewhere': the scripts are tried on a new one" in done.script.notes


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """Tables of which routes have three versions more, and databases one."""
    from deltalake import write_deltalake

    save_estate(small_estate(), tmp_path / "in")
    tables = small_estate()
    for address in ("tcp://first:1", "tcp://second:2"):
        rows = [route("Far", "//far", address), *tables["routes"][:2]]
        write_deltalake(str(tmp_path / "in" / "routes"), arrow_of(rows, ROUTES), mode="overwrite")
    return tmp_path / "in"


def test_a_version_of_a_table_is_compared_with_the_newest(versions: Path, tmp_path: Path) -> None:
    settings = config_of(versions, tmp_path / "out")
    done = diff(settings, TableVersions({"routes": 2}), at=AT, with_messages=True)
    sent = ["SENT", "NETWORK_ADDRESS", "Far"]
    assert decided(done) == {
        "m3": ([*sent, "tcp://first:1", None, None], [*sent, "tcp://second:2", None, None]),
    }
    assert done.before.label.endswith("config.yaml with routes at version 2")
    # Its two first versions are the small estate's halves.
    whole = diff(settings, TableVersions({"routes": 1}), at=AT, with_messages=True)
    mirror = ["SENT", "MIRROR_ADDRESS", "Far", "TCP://far.example:4022", "tcp://mirror.example:4022", None]
    assert decided(whole) == {
        "m3": (mirror, [*sent, "tcp://second:2", None, None]),
        "m4": (["DELAYED", "ROUTE_REQUESTED", *[None] * 4], ["DELAYED", "NO_ROUTE", *[None] * 4]),
    }
    # In its first version the table services has the first of two rows.
    with_services = diff(settings, TableVersions({"routes": 3, "services": 0}), at=AT, with_messages=True)
    expected = ["DELIVERED", "LOCAL_SERVICE", "Store", "LOCAL", None, "Store"]
    lost = (["DELAYED", "SERVICE_NOT_FOUND", "Store", None, None, None], expected)
    assert decided(with_services) == {"m1": lost, "m2": lost}
    assert with_services.before.label.endswith("with routes at version 3, services at version 0")


def test_a_missing_version_is_refused(versions: Path, tmp_path: Path) -> None:
    settings = config_of(versions, tmp_path / "out")
    with pytest.raises(InputError, match="has no version 9, its newest is 3"):
        diff(settings, TableVersions({"routes": 9}), at=AT)
    with pytest.raises(ContractError, match=r"tables.route_requests is not in the configuration"):
        diff(
            config_of(versions, tmp_path / "out", route_requests=None), TableVersions({"route_requests": 0}), at=AT
        )
    for file in (versions / "routes").glob("*.parquet"):
        file.unlink()
    with pytest.raises(InputError, match=r"table routes|version 2 cannot be read"):
        diff(settings, TableVersions({"routes": 2}), at=AT)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["3"], {"routes": 3}),
        (["0", "databases=12", "route_requests=1"], {"routes": 0, "databases": 12, "route_requests": 1}),
        (["routes=3"], {"routes": 3}),
    ],
)
def test_valid_versions_are_read(texts: list[str], found: dict[str, int]) -> None:
    assert versions_of(texts).by_key == found


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["3", "routes=4"], "--against-version gives a version of routes twice"),
        (["rotes=4"], r"'rotes' is not a table with versions to compare \(did you mean routes\?\)"),
        (["messages=4"], "'messages' is not a table with versions to compare"),
        (["-1"], "takes N or KEY=N with a version's number, not '-1'"),
        (["routes="], "takes N or KEY=N with a version's number, not 'routes='"),
        (["\u0663"], "takes N or KEY=N with a version's number"),
        ([""], "takes N or KEY=N"),
    ],
)
def test_invalid_versions_are_refused(texts: list[str], expected: str) -> None:
    with pytest.raises(ContractError, match=expected):
        versions_of(texts)


def test_values_of_fail_on_are_checked() -> None:
    assert words_of([]) == ()
    assert words_of(["delayed", "dropped, rejected", "delayed"]) == ("delayed", "dropped", "rejected")
    with pytest.raises(ContractError, match=r"unknown word 'delaid' \(did you mean delayed\?\)"):
        words_of(["dropped,delaid"])
    with pytest.raises(ContractError, match="unknown word ''"):
        words_of(["delayed,"])


# From the best to the worst; those of one rank are neither worse nor better than each other.
RANKED = (("DELIVERED", "NOT_KNOWN"), ("DELAYED", "NO_RETURN_PATH"), ("DROPPED", "LOOP"), ("REJECTED",))
WORDS = {
    "DELAYED": {"delayed"},
    "NO_RETURN_PATH": {"delayed", "no-return-path"},
    "DROPPED": {"dropped"},
    "LOOP": {"dropped", "loop"},
    "REJECTED": {"rejected"},
}


def test_failing_messages() -> None:
    """The end of the path counts, not its first hop."""
    for old, before in enumerate(RANKED):
        for new, after in enumerate(RANKED):
            for mine, theirs in product(before, after):
                ends = {"outcome_before": "DROPPED", "outcome_after": "SENT", "messages": 1}
                counts = [{**ends, "ending_before": mine, "ending_after": theirs}]
                failing = WORDS[theirs] if new > old else set()
                if (mine, theirs) == ("DELIVERED", "NOT_KNOWN"):
                    failing = {"not-known"}
                assert {word for word in FAILS if fails(counts, [word])} == failing
                assert fails(counts, FAILS) == bool(failing)
                assert not fails(counts, [])
    assert not fails([], FAILS)


def group(before: str, after: str, messages: int, reason: str = "X") -> Mapping[str, Any]:
    row = dict.fromkeys(KEY_CHANGES.names)
    ends = {"ending_before": before, "reason_before": reason, "ending_after": after, "reason_after": reason}
    return {**row, **ends, "messages": messages}


def test_worse_endings_come_first() -> None:
    groups = [
        group("DELAYED", "DELIVERED", 90),
        group("NOT_KNOWN", "DELIVERED", 80),
        group("DELIVERED", "DELAYED", 5),
        group("DELIVERED", "DELAYED", 7, "Y"),
        group("DELIVERED", "DELAYED", 2, "Y"),
        group("NO_RETURN_PATH", "LOOP", 1),
        group("REJECTED", "DROPPED", 3),
        group("DELIVERED", "REJECTED", 1),
        group("DROPPED", "DROPPED", 4),
    ]
    counts = count_changes(MessageChanges(1000, groups, [], None))
    assert [(row["ending_before"], row["ending_after"], row["messages"]) for row in counts] == [
        ("DELIVERED", "REJECTED", 1),
        ("NO_RETURN_PATH", "LOOP", 1),
        ("DELIVERED", "DELAYED", 9),
        ("DELIVERED", "DELAYED", 5),
        ("DROPPED", "DROPPED", 4),
        ("NOT_KNOWN", "DELIVERED", 80),
        ("REJECTED", "DROPPED", 3),
        ("DELAYED", "DELIVERED", 90),
    ]


def side_of(*routes: dict[str, Any], at: datetime = AT) -> OneSide:
    moment = micros(at)
    assert moment is not None
    return OneSide("side", moment, {"routes": columns_of_rows(list(routes), ROUTES)})


FAR = route("Far", "//far", "tcp://far:1", broker_instance="{ABC}", mirror_address="")
NOON = "2026-01-05T12:00:00Z"
TWO = "2026-01-05T14:00:00Z"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], [], []),
        ([FAR], [FAR], []),
        ([FAR], [{**FAR, "broker_instance": " abc", "mirror_address": None}], []),
        ([FAR], [{**FAR, "address": "TCP://far:1"}], [("changed", "Far")]),
        ([FAR], [{**FAR, "mirror_address": "tcp://far:2"}], [("changed", "Far")]),
        ([FAR], [{**FAR, "remote_service_name": None}], [("changed", "Far")]),
        ([{**FAR, "remote_service_name": ""}], [{**FAR, "remote_service_name": None}], []),
        ([FAR], [{**FAR, "lifetime": TWO}], [("changed", "Far")]),
        ([FAR], [{**FAR, "lifetime": AT}], [("removed", "Far")]),
        ([FAR], [{**FAR, "valid_to": NOON}], [("removed", "Far")]),
        ([FAR], [{**FAR, "valid_to": TWO}], []),
        ([{**FAR, "valid_from": TWO}], [{**FAR, "valid_from": AT}], [("added", "Far")]),
        ([FAR], [{**FAR, "name": "far"}], [("removed", "Far"), ("added", "far")]),
        ([FAR], [{**FAR, "database_name": "Other"}], [("added", "Far"), ("removed", "Far")]),
        # Versions of one route: the one in force counts.
        ([FAR], [{**FAR, "valid_to": NOON, "address": "tcp://old:1"}, {**FAR, "valid_from": NOON}], []),
    ],
)
def test_routes_that_differ(before: list[Any], after: list[Any], expected: list[Any]) -> None:
    changes = find_route_changes(DiffSides(side_of(*before), side_of(*after)))
    assert [(row["change"], row["name"]) for row in changes] == expected


def test_routes_of_two_times() -> None:
    ends = side_of({**FAR, "lifetime": TWO})
    later = OneSide("later", micros(datetime(2026, 1, 5, 14, tzinfo=timezone.utc)) or 0, ends.settings)
    [row] = find_route_changes(DiffSides(ends, later))
    assert row["change"] == "removed"
    assert row["lifetime_before"] == datetime(2026, 1, 5, 14, tzinfo=timezone.utc)
    assert row["lifetime_after"] is None


def test_affected_services_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[AffectedServices] = []

    def find(sides: DiffSides) -> AffectedServices:
        found.append(find_affected(sides))
        return found[-1]

    monkeypatch.setattr(estate_differences, "find_affected", find)
    nameless = {"instances": [{**HUB, "addresses": None}]}
    tables, other = (
        {**one, **nameless} for one in (added("routes"), altered("routes", 0, remote_service_name="//b"))
    )
    diff(arrow(tables), {"routes": arrow(other)["routes"]})
    assert len(found) == 1


def compared(given: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the ids of the messages that both sides decide. The second side has other tables."""
    before = {key: given[key] for key in SETTINGS if key in given}
    other = {**before, **after}
    both = read(*(GivenTables(name, micros(AT) or 0, one) for name, one in (("a", before), ("b", other))))
    found = compare_messages(given["messages"], given["dialogs"], PathDifference(both))
    batches = [] if found is None else found.batches()
    return {one for batch in batches for one in batch["message_id"].to_pylist()}


def test_only_messages_that_may_differ_are_decided() -> None:
    """The changes are a service's route, a change for all messages of an instance, and one for a database."""
    tables = small_estate()
    other = [message(8, "//far", instance_name="rim"), message(9, "//stock", instance_name="rim")]
    tables["instances"].append(instance("rim"))
    tables["databases"].append({**tables["databases"][0], "instance_name": "rim"})
    tables["messages"] += other
    arrow_tables = arrow(tables)
    moved = [{**row, "address": "tcp://new:1"} if row["name"] == "Far" else row for row in tables["routes"]]
    routes = {"routes": arrow_of(moved, ROUTES)}
    assert diff(arrow_tables, routes, at=AT).changed == 1
    assert compared(arrow_tables, routes) == {"m3"}
    off = [{**row, "is_broker_enabled": row["service_broker_guid"] != STORE} for row in tables["databases"]]
    databases = {"databases": arrow({"databases": off})["databases"]}
    assert diff(arrow_tables, databases, at=AT).changed == 2
    assert compared(arrow_tables, databases) == {f"m{number}" for number in range(1, 7)}
    same = {"routes": arrow_tables["routes"]}
    assert diff(arrow_tables, same, at=AT).changed == 0
    assert compared(arrow_tables, same) == set()


def test_faults_name_their_side(tmp_path: Path) -> None:
    tables = small_estate()
    bad = {"routes": arrow_of([*tables["routes"], route("Odd", "//odd", "nowhere")], ROUTES)}
    with pytest.raises(
        InputError, match=r"^the tables given to compare with: the input tables have 1 faulty row:"
    ):
        diff(arrow(tables), bad, at=AT)
    with pytest.raises(InputError, match=r"^the given tables: the input tables have 1 faulty row: routes"):
        diff({**arrow(tables), **bad}, AT, at=AT)
    doubled = arrow({"dialogs": [*tables["dialogs"], tables["dialogs"][0]]})["dialogs"]
    with pytest.raises(InputError, match=r"^the given tables: .* 2 rows have this key"):
        diff({**arrow(tables), "dialogs": doubled}, AT, at=AT)
    with pytest.raises(InputError, match=r"^the tables given to compare with: table services has 1 column fault"):
        diff(arrow(tables), {"services": arrow(tables)["services"].drop(["name"])}, at=AT)
    save_estate(tables, tmp_path / "in")
    other = config_of(tmp_path / "in", tmp_path / "out", services=tmp_path / "none")
    with pytest.raises(InputError, match=r"config\.yaml: tables\.services: there is no Delta table"):
        diff(config_of(tmp_path / "in", tmp_path / "out"), other, at=AT)


HUB = instance("hub", "tcp://hub:4022", is_message_forwarding_enabled=True)


def altered(table: str, place: int, **columns: Any) -> Tables:
    """Return the small estate with one row changed. Its instance has an address."""
    tables = {**small_estate(), "instances": [HUB]}
    tables[table] = [{**row, **columns} if n == place else row for n, row in enumerate(tables[table])]
    return tables


def added(table: str, *rows: dict[str, Any]) -> Tables:
    tables = {**small_estate(), "instances": [HUB]}
    return {**tables, table: [*tables[table], *rows]}


ALL_OF_HUB = [{"instance_name": ["hub"]}]
END = "2026-01-05T12:30:00Z"


def of_services(*services: str) -> list[dict[str, list[str]]]:
    return [{"instance_name": ["hub"], "to_service_name": list(services)}]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (added("routes"), []),
        (altered("instances", 0, addresses=["tcp://hub:4023"]), ALL_OF_HUB),
        (altered("instances", 0, addresses=["TCP://HUB:4022/"]), []),
        (altered("instances", 0, is_message_forwarding_enabled=None), ALL_OF_HUB),
        (altered("instances", 0, instance_name="other"), [{"instance_name": ["hub", "other"]}]),
        (altered("databases", 1, is_broker_enabled=False), ALL_OF_HUB),
        (altered("databases", 1, is_broker_enabled=True), []),
        (altered("databases", 1, service_broker_guid=STORE), ALL_OF_HUB),
        (added("databases", database("New", "x")), ALL_OF_HUB),
        (altered("services", 0, database_name="Sales"), of_services("//stock")),
        (added("services", service("Sales", "//new")), of_services("//new")),
        (altered("routes", 2, address="tcp://far:1"), of_services("//far")),
        (altered("routes", 2, remote_service_name="//near"), of_services("//far", "//near")),
        (altered("routes", 2, remote_service_name=None), ALL_OF_HUB),
        (altered("routes", 2, database_name="msdb"), of_services("//far")),
        (altered("routes", 2, valid_to=NOON), of_services("//far")),
        (altered("routes", 3, address="tcp://ask:1"), ALL_OF_HUB),
        (added("routes", route("Past", "//past", "LOCAL", valid_to=NOON)), []),
        (added("routes", route("Other", "//x", "LOCAL", instance_name="unlisted")), []),
        (altered("route_requests", 0, ended_at=END), of_services("//elsewhere")),
        (altered("route_requests", 0, ended_at=TWO), []),
        (altered("route_requests", 0, requested_at=NOON), []),
        (altered("route_requests", 0, requested_at=AT), of_services("//elsewhere")),
        (altered("route_requests", 0, requested_at=TWO), of_services("//elsewhere")),
        (altered("route_requests", 0, message_id="m00"), []),
    ],
)
def test_messages_that_an_edit_may_change(after: Tables, expected: list[Any]) -> None:
    before = added("routes")
    both = [GivenTables(name, micros(AT) or 0, arrow(tables)) for name, tables in (("a", before), ("b", after))]
    settings_alone = [GivenTables(one.label, one.at, {key: one.tables[key] for key in SETTINGS}) for one in both]
    assert find_affected(read(*settings_alone)).filters == expected


LATER = datetime(2026, 1, 5, 14, tzinfo=timezone.utc)
LAST = "2026-01-05T13:59:59.999999Z"
STOCKED = ["DELIVERED", "LOCAL_SERVICE", "Stock", "LOCAL", None, "Stock"]
STORED = ["DELIVERED", "LOCAL_SERVICE", "Store", "LOCAL", None, "Store"]
EXPIRED = ["DROPPED", "DIALOG_EXPIRED", None, None, None, None]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, {}),
        # Between 13:00 and 14:00, the end included and the beginning not.
        ({"lifetime": AT}, {}),
        ({"lifetime": "2026-01-05T13:00:00.000001Z"}, {"m2": (STORED, EXPIRED)}),
        ({"lifetime": TWO}, {"m2": (STORED, EXPIRED)}),
        ({"lifetime": "2026-01-05T14:00:00.000001Z"}, {}),
        ({"acknowledged_at": AT, "acknowledged_broker_instance": STOCK}, {}),
        ({"acknowledged_at": LAST, "acknowledged_broker_instance": STOCK}, {"m2": (STORED, STOCKED)}),
        ({"acknowledged_at": TWO, "acknowledged_broker_instance": STOCK}, {"m2": (STORED, STOCKED)}),
        ({"acknowledged_at": "2026-01-05T14:00:00.000001Z", "acknowledged_broker_instance": STOCK}, {}),
    ],
)
def test_dialogs_that_end_between_two_times(columns: dict[str, Any], expected: Decisions) -> None:
    tables = small_estate()
    tables["dialogs"][0] |= {"conversation_id": conversation(2).swapcase(), **columns}
    assert decided(diff(arrow(tables), LATER, at=AT, with_messages=True)) == expected
    # The other way round as well.
    back = {message_id: (new, old) for message_id, (old, new) in expected.items()}
    assert decided(diff(arrow(tables), AT, at=LATER, with_messages=True)) == back
