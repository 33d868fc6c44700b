"""From typed rows to rows of the tables: joins, spellings, addresses and coverage."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.errors import InputError
from routing.importing.catalog import VIEWS, CatalogExport, StandIns, cover, queries, read_export
from routing.importing.catalog.conversation_rows import observations, reject_without_endpoint
from routing.importing.covered_rows import CoveredRows
from routing.importing.spelling import NameSpelling
from routing.rules.observed import NUMBERS

AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
EARLIER = datetime(2026, 1, 4, 12, tzinfo=timezone.utc)
HANDLE = "aaaaaaaa-0000-0000-0000-00000000000{}"
GUIDS = "dddddddd-0000-0000-0000-000000000000,eeeeeeee-0000-0000-0000-000000000000"
DIALOG = "cccccccc-0000-0000-0000-00000000000{}"


def export_of(tmp_path: Path, **views: str) -> CatalogExport:
    for view, text in views.items():
        (tmp_path / f"{view}.csv").write_text(text, encoding="utf-8")
    return read_export([str(tmp_path)], StandIns("HUB", "shop", AT))


def covered_of(tmp_path: Path, *addresses: str, spelling: NameSpelling | None = None, **views: str) -> CoveredRows:
    return cover(export_of(tmp_path, **views), spelling or NameSpelling(), addresses)


ENDPOINTS = f"""conversation_handle,conversation_id,is_initiator,conversation_group_id,lifetime,far_service,\
far_broker_instance
{HANDLE.format(1)},{DIALOG.format(1).upper()},1,NULL,2030-01-01,//stock,NULL
{HANDLE.format(2)},{DIALOG.format(1).upper()},0,NULL,2030-01-01,//shop,X-Y
"""
QUEUE = f"""conversation_handle,to_service_name,to_broker_instance,from_service_name,enqueue_time,\
message_sequence_number,transmission_status
{HANDLE.format(1).upper()},//stock,NULL,//Shop,2026-01-05 11:00:00,0,The target service name could not be found.
{HANDLE.format(1)},//stock,NULL,NULL,2026-01-05 11:01:00,1,
{HANDLE.format(2)},//shop,x-y,//stock ,2026-01-05 11:02:00,7,Nobody knows this text
{HANDLE.format(3)},//lost,NULL,//shop,2026-01-05 11:03:00,0,
"""


def test_messages_find_their_dialog_by_handle(tmp_path: Path) -> None:
    covered = covered_of(tmp_path, conversation_endpoints=ENDPOINTS, transmission_queue=QUEUE)
    keys = ("message_id", "conversation_id", "is_initiator", "to_broker_instance", "observed_at", "database_name")
    assert [tuple(row[key] for key in keys) for row in covered.rows["messages"]] == [
        (f"{DIALOG.format(1)}:I:0:shop", DIALOG.format(1), True, None, AT, "shop"),
        (f"{DIALOG.format(1)}:I:1:shop", DIALOG.format(1), True, None, AT, "shop"),
        (f"{DIALOG.format(1)}:T:7:shop", DIALOG.format(1), False, "x-y", AT, "shop"),
    ]
    assert [row["from_service_name"] for row in covered.rows["messages"]] == ["//Shop", None, "//stock "]
    assert [row["conversation_handle"] for row in observations(covered)] == [
        HANDLE.format(1),
        HANDLE.format(1),
        HANDLE.format(2),
    ]
    observed = ("message_id", "observed_at", "source", "status_text", "error_number", "outcome")
    assert [tuple(row[key] for key in observed) for row in observations(covered)] == [
        (
            f"{DIALOG.format(1)}:I:0:shop",
            AT,
            "TRANSMISSION_QUEUE",
            "The target service name could not be found.",
            9793,
            "DELAYED",
        ),
        (f"{DIALOG.format(1)}:I:1:shop", AT, "TRANSMISSION_QUEUE", None, None, None),
        (f"{DIALOG.format(1)}:T:7:shop", AT, "TRANSMISSION_QUEUE", "Nobody knows this text", None, None),
    ]
    assert not covered.rejected
    reject_without_endpoint(covered)
    assert [text.partition("row ")[2] for text in covered.rejected] == [
        f"5: no conversation endpoint has its handle {HANDLE.format(3)}"
    ]
    assert covered.notes == [
        "1 message has a blank transmission_status: not tried yet, or sent and not acknowledged",
        (
            "1 message has a transmission_status that is not recognised, such as 'Nobody knows this text'; if it"
            " is in another language than English, export the queue by sbroute import queries, which adds SQL"
            " Server's number"
        ),
    ]


def test_a_queue_without_its_endpoints_names_the_view(tmp_path: Path) -> None:
    rows = [line for line in QUEUE.splitlines()[1:] if HANDLE.format(1) in line.lower()]
    queue = (
        QUEUE.splitlines()[0] + ",database_name\n" + "".join(f"{row},{name}\n" for row in rows for name in "ab")
    )
    endpoints = f"conversation_handle,conversation_id,is_initiator,database_name\n{GUIDS},1,b\n"
    covered = covered_of(tmp_path, conversation_endpoints=endpoints, transmission_queue=queue)
    reject_without_endpoint(covered)
    missing = "sys.conversation_endpoints of HUB.a is missing: export it as well"
    other = f"no conversation endpoint has its handle {HANDLE.format(1)}"
    assert [text.partition(", row ")[2] for text in covered.rejected] == [
        f"2: {missing}",
        f"3: {other}",
        f"4: {missing}",
        f"5: {other}",
    ]


def test_a_message_without_an_exported_endpoint_is_rejected(tmp_path: Path) -> None:
    endpoints = ENDPOINTS.splitlines()[0] + "\n"
    covered = covered_of(tmp_path, conversation_endpoints=endpoints, transmission_queue=QUEUE)
    reject_without_endpoint(covered)
    assert [text.partition(": ")[2] for text in covered.rejected[:1]] == [
        f"no conversation endpoint has its handle {HANDLE.format(1)}"
    ]


def test_an_export_never_sets_the_acknowledgement_of_a_dialog(tmp_path: Path) -> None:
    first, second = covered_of(tmp_path, conversation_endpoints=ENDPOINTS).rows["dialogs"]
    assert (first["far_broker_instance"], second["far_broker_instance"]) == (None, "X-Y")
    for row in (first, second):
        assert (row["acknowledged_at"], row["acknowledged_broker_instance"]) == (None, None)


def test_names_are_spelled_as_the_tables_spell_them(tmp_path: Path) -> None:
    covered = covered_of(
        tmp_path,
        spelling=NameSpelling(["Hub"], [("Hub", "SHOP")]),
        databases="name,service_broker_guid\nShop,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88\n",
        routes="name,address\nr,LOCAL\n",
    )
    assert [(row["instance_name"], row["name"]) for row in covered.rows["databases"]] == [("Hub", "SHOP")]
    assert [(row["instance_name"], row["database_name"]) for row in covered.rows["routes"]] == [("Hub", "SHOP")]
    assert covered.units == {"databases": {("Hub", None): AT}, "routes": {("Hub", "SHOP"): AT}}


def test_names_in_an_export_use_the_spelling_of_its_databases(tmp_path: Path) -> None:
    text = "name,service_broker_guid\nSHOP,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88\n"
    text += "Shop,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D89\nStock,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D90\n"
    services = "name,database_name\n//a,Shop\n//b,SHOP\n//c,STOCK\n"
    covered = covered_of(tmp_path, databases=text, services=services)
    assert [row["name"] for row in covered.rows["databases"]] == ["SHOP", "Shop", "Stock"]
    assert [row["database_name"] for row in covered.rows["services"]] == ["Shop", "SHOP", "Stock"]


def test_rows_that_resolve_would_refuse_are_rejected(tmp_path: Path) -> None:
    routes = "name,address,mirror_address\ngood, tcp://a:1/ ,tcp://b:1\nx,http://a,NULL\ny,local,tcp://b:1\n"
    routes += "z,tcp://a:1,LOCAL\ngood,LOCAL,NULL\nGOOD,LOCAL,NULL\n"
    databases = "name,service_broker_guid,database_id\na,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88,99999999999\n"
    # Without these columns, a name that occurs twice is of two databases.
    routes, services = (
        f"instance_name,database_name,{text[:-1]}\n".replace("\n", "\nHUB,Shop,", text.count("\n") - 1)
        for text in (routes, "name\n//a\n//a\n//A\n")
    )
    covered = covered_of(tmp_path, routes=routes, databases=databases, services=services)
    assert [row["name"] for row in covered.rows["routes"]] == ["good", "GOOD"]
    assert [row["name"] for row in covered.rows["services"]] == ["//a", "//A"]
    assert sorted(re.sub(r".*, row ", "", text) for text in covered.rejected) == [
        "2: database_id: '99999999999' does not fit an int (a)",
        "3: ADDRESS 'http://a' is not a valid address (x)",
        "3: the service appears twice (//a)",
        "4: it has a mirror address in addition to the address local (y)",
        "5: MIRROR_ADDRESS 'LOCAL' is not a network address (z)",
        "6: the route appears twice (good)",
    ]
    # What could not be read may be in the table: such a row is not closed.
    assert covered.is_doubtful("routes", {"instance_name": "hub", "database_name": "Shop", "name": "X"})
    assert not covered.is_doubtful("routes", {"instance_name": "hub", "database_name": "Shop", "name": "w"})
    assert covered.is_doubtful("databases", {"instance_name": "hub", "name": "A"})


def test_an_object_of_a_broken_row_is_doubtful(tmp_path: Path) -> None:
    covered = covered_of(
        tmp_path,
        databases="name,service_broker_guid\nodd,no guid\n",
        routes="name,lifetime,address\nodd,soon,LOCAL\nr,NULL,LOCAL\n",
        services="name,service_id\n//a,b,c\n",
    )
    shop = {"instance_name": "HUB", "database_name": "shop"}
    assert covered.is_doubtful("databases", {"instance_name": "HUB", "name": "Odd"})
    assert not covered.is_doubtful("databases", {"instance_name": "HUB", "name": "Shop"})
    assert covered.is_doubtful("routes", {**shop, "name": "odd"})
    assert not covered.is_doubtful("routes", {**shop, "name": "gone"})
    # Of a line with too many cells nothing is known.
    assert covered.is_doubtful("services", {**shop, "name": "//any"})


def instance(covered: CoveredRows) -> dict[str, Any]:
    (row,) = covered.rows["instances"]
    return row


def test_addresses_of_an_instance(tmp_path: Path) -> None:
    endpoints = "endpoint_id,is_message_forwarding_enabled,machine_name,full_name,listener_names\n"
    endpoints += "65537,1,HUBBOX,hubbox.example,ag1 ag2\n"
    tcp = "endpoint_id,port,ip_address\n65537,4022,NULL\n2,1433,NULL\n"
    covered = covered_of(tmp_path, "tcp://10.0.0.1:4022", service_broker_endpoints=endpoints, tcp_endpoints=tcp)
    assert instance(covered) == {
        "instance_name": "HUB",
        "is_message_forwarding_enabled": True,
        "addresses": [
            "tcp://HUBBOX:4022",
            "tcp://hubbox.example:4022",
            "tcp://ag1:4022",
            "tcp://ag2:4022",
            "tcp://10.0.0.1:4022",
        ],
    }


def test_an_instance_without_rows_stays_unchanged(tmp_path: Path) -> None:
    row = instance(covered_of(tmp_path, services="name\n//a\n"))
    assert (row["is_message_forwarding_enabled"], row["addresses"]) == (None, None)


def test_an_instance_without_an_endpoint_forwards_nothing(tmp_path: Path) -> None:
    text = "endpoint_id,is_message_forwarding_enabled,machine_name\nNULL,NULL,HUBBOX\n"
    row = instance(covered_of(tmp_path, service_broker_endpoints=text))
    assert (row["is_message_forwarding_enabled"], row["addresses"]) == (False, None)


def test_an_endpoint_without_names_or_port(tmp_path: Path) -> None:
    text = "endpoint_id,is_message_forwarding_enabled\n65537,0\n"
    covered = covered_of(tmp_path, service_broker_endpoints=text)
    assert instance(covered)["addresses"] is None
    assert [note.partition("row ")[2] for note in covered.notes] == [
        "2: the port is unknown, so there is no address of HUB"
    ]


def test_an_address_belongs_to_one_instance(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--address is for one instance, and the export has 2"):
        covered_of(tmp_path, "tcp://a:1", services="name,instance_name\n//a,one\n//b,two\n")


def test_the_newest_of_several_exports_counts(tmp_path: Path) -> None:
    text = "name,exported_at,database_name\n//old,2026-01-04T12:00:00Z,shop\n//new,2026-01-05T12:00:00Z,Shop\n"
    export = export_of(tmp_path, services=text + "//other,2026-01-04T12:00:00Z,other\n")
    covered = cover(export, NameSpelling())
    assert [row["name"] for row in covered.rows["services"]] == ["//new", "//other"]
    assert export.left_out == {"services": 1}
    assert covered.units["services"] == {("HUB", "Shop"): AT, ("HUB", "other"): EARLIER}


def test_the_queries_export_all_imported_columns() -> None:
    script = queries()
    selects = re.split(r"SELECT (?:TOP \(@most\) )?'+(?=[a-z_]+'+ AS view_name)", script)[1:]
    exported = {}
    for select in selects:
        name = select.partition("'")[0]
        exported[name] = ("view_name", *re.findall(r" AS (\w+)(?=,\n|\nFROM)", select.partition(";")[0])[1:])
    assert exported == {name: view.exported for name, view in VIEWS.items()}


def test_the_queries_only_read() -> None:
    script = re.sub(r"--.*", "", queries())
    words = set(re.findall(r"[A-Z]{3,}", script))
    assert not words & {"DELETE", "MERGE", "DROP", "ALTER", "CREATE", "TRUNCATE", "RECEIVE", "SEND"}
    # Into variables of its own, which updates name by an alias.
    declared = set(re.findall(r"DECLARE (@\w+) TABLE", script))
    aliases = dict(re.findall(r"FROM (@\w+) AS (\w+)", script))
    assert set(re.findall(r"INTO (\S+)", script)) == declared
    assert set(re.findall(r"UPDATE (\w+)\n", script)) == {aliases["@texts"], aliases["@statuses"]} == {"t", "s"}
    assert "SET LOCK_TIMEOUT 5000;" in script
    assert not set(re.findall(r"[a-z_]+", script)) & {"message_body", "thumbprint", "key_guid", "private_key"}
    assert script.count("UPDATE ") == 3


def test_the_queries_look_up_every_known_number() -> None:
    listed = queries().partition("m.message_id IN (")[2].partition(")")[0]
    assert [int(number) for number in listed.split(",")] == sorted(NUMBERS)


# What the server found, the text, and the number that counts.
NUMBERED = [
    ("9793", "Der Name des Zieldiensts wurde nicht gefunden.", 9793),
    ("28005", "Une exception s'est produite. Erreur : 15517, État : 1.", 28005),
    ("9754", "The target service name could not be found.", 9754),
    ("NULL", "The target service name could not be found.", 9793),
    ("", "Der Name des Zieldiensts wurde nicht gefunden.", None),
    ("0", "The target service name could not be found.", 9793),
    ("9793", "", None),
    ("9793", "NULL", None),
]


@pytest.mark.parametrize(("number", "text", "expected"), NUMBERED)
def test_the_exported_error_number_has_priority_over_the_text(
    number: str, text: str, expected: int | None, tmp_path: Path
) -> None:
    head = QUEUE.partition("\n")[0] + ",error_number\n"
    cell = text if text in ("", "NULL") else f'"{text}"'
    row = f"{HANDLE.format(1)},//stock,NULL,NULL,2026-01-05 11:00:00,0,{cell},{number}\n"
    covered = covered_of(tmp_path, conversation_endpoints=ENDPOINTS, transmission_queue=head + row)
    assert [row["error_number"] for row in observations(covered)] == [expected]


def test_an_invalid_number_rejects_its_row(tmp_path: Path) -> None:
    head = QUEUE.partition("\n")[0] + ",error_number\n"
    row = f"{HANDLE.format(1)},//stock,NULL,NULL,2026-01-05 11:00:00,0,text,{2**31}\n"
    covered = covered_of(tmp_path, conversation_endpoints=ENDPOINTS, transmission_queue=head + row)
    assert any("error_number" in why for why in covered.rejected), covered.rejected


def test_the_queries_are_read_by_the_tsql_reader_without_a_complaint() -> None:
    from routing.importing.tsql.script_reader import read_script

    script = read_script(queries(), file="queries.sql", scripted_at=AT)
    assert script.statements == ()


def test_names_that_only_an_earlier_export_of_an_endpoint_has(tmp_path: Path) -> None:
    columns = "exported_at,endpoint_id,is_message_forwarding_enabled"
    named = f"{columns},machine_name,full_name,listener_names,port\n{{}},7,1,BOX,box.example,list,4022\n"
    later, earlier = tmp_path / "later", tmp_path / "earlier"
    for folder, text in ((later, f"{columns}\n2026-01-05T12:00:00Z,7,0\n"), (earlier, named)):
        folder.mkdir()
        file = folder / "service_broker_endpoints.csv"
        file.write_text(text.format("2026-01-04T12:00:00Z"), encoding="utf-8")
    export = read_export([str(tmp_path)], StandIns("HUB", None, AT))
    [instance] = cover(export, NameSpelling()).rows["instances"]
    assert instance["is_message_forwarding_enabled"] is False
    assert instance["addresses"] == [f"tcp://{host}:4022" for host in ("BOX", "box.example", "list")]
