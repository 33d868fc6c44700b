"""Exports as sqlcmd, bcp, SSMS and others write them end in the same rows."""

from __future__ import annotations

import codecs
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.errors import ContractError
from routing.importing.catalog import CatalogExport, StandIns, read_export

AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
HUB = StandIns("hub", "Shop", AT)
QUEUED = "aaaaaaaa-0000-0000-0000-000000000001"
ROUTES = [
    ("AutoCreatedLocal", None, None, None, "LOCAL", None),
    (
        "To stock, fast",
        "//stock",
        "4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88",
        datetime(2030, 1, 1, 8, 30, 0, 123000, tzinfo=timezone.utc),
        "TCP://stock:4022",
        "TCP://stock2:4022",
    ),
]
NAMES = ("name", "remote_service_name", "broker_instance", "lifetime", "address", "mirror_address")

# sqlcmd -s"|": a line of dashes, columns filled up with blanks, and its count at the end.
SQLCMD = """name            |route_id   |principal_id|remote_service_name|broker_instance                     |\
lifetime               |address         |mirror_address
----------------|-----------|------------|-------------------|------------------------------------|\
-----------------------|----------------|-----------------
AutoCreatedLocal|      65536|           1|NULL               |NULL                                |\
                   NULL|LOCAL           |NULL
To stock, fast  |      65537|           1|//stock            |4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88|\
2030-01-01 08:30:00.123|TCP://stock:4022|TCP://stock2:4022

(2 rows affected)
"""
# sqlcmd -s"," -W: the padding is gone.
SQLCMD_W = """name,remote_service_name,broker_instance,lifetime,address,mirror_address
----,-------------------,---------------,--------,-------,--------------
AutoCreatedLocal,NULL,NULL,NULL,LOCAL,NULL
"To stock, fast",//stock,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88,2030-01-01 08:30:00.123,TCP://stock:4022,TCP://stock2:4022
"""
# SSMS "Save Results As", with a header and in quotes where needed.
SSMS = """name,route_id,principal_id,remote_service_name,broker_instance,lifetime,address,mirror_address
AutoCreatedLocal,65536,1,NULL,NULL,NULL,LOCAL,NULL
"To stock, fast",65537,1,//stock,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88,2030-01-01 08:30:00.123,TCP://stock:4022,TCP://stock2:4022
"""
# bcp -c: tabs, no header, nothing for NULL.
BCP = (
    "AutoCreatedLocal\t65536\t1\t\t\t\tLOCAL\t\r\n"
    "To stock, fast\t65537\t1\t//stock\t4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88\t2030-01-01 08:30:00.123"
    "\tTCP://stock:4022\tTCP://stock2:4022\r\n"
)
JSON = """{"NAME":"AutoCreatedLocal","address":"LOCAL"}
{"name":"To stock, fast","remote_service_name":"//stock","broker_instance":"4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88",\
"lifetime":"2030-01-01T10:30:00.1230000+02:00","address":"TCP://stock:4022","mirror_address":"TCP://stock2:4022"}
"""


def read(
    tmp_path: Path, name: str, content: str | bytes, stand_ins: StandIns = HUB, **options: Any
) -> CatalogExport:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_export([str(file)], stand_ins, **options)


def routes(export: CatalogExport) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in NAMES) for row in export.rows["routes"]]


def refused(tmp_path: Path, name: str, content: str | bytes, stand_ins: StandIns = HUB, **options: Any) -> str:
    with pytest.raises(ContractError) as caught:
        read(tmp_path, name, content, stand_ins, **options)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("routes.txt", SQLCMD),
        ("sys.routes.csv", SQLCMD_W),
        ("Routes.CSV", SSMS),
        ("routes.csv", SSMS.partition("\n")[2]),
        ("routes.dat", BCP),
        ("routes.jsonl", JSON),
        ("routes.json", "[" + JSON.replace("}\n{", "},\n{") + "]"),
        ("routes.csv", SSMS.replace("\n", "\r\n")),
    ],
    ids=["sqlcmd", "sqlcmd -W", "SSMS", "SSMS without header", "bcp", "JSON lines", "JSON array", "CRLF"],
)
def test_each_tool_gives_the_same_rows(tmp_path: Path, name: str, text: str) -> None:
    export = read(tmp_path, name, text)
    assert routes(export) == ROUTES
    assert export.rejected == []
    assert export.rows_read == {"routes": 2}
    assert {(r["instance_name"], r["database_name"], r["exported_at"]) for r in export.rows["routes"]} == {
        ("hub", "Shop", AT)
    }


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + SSMS.replace("fast", "schnell ä").encode(),
        SSMS.replace("fast", "schnell ä").encode(),
        codecs.BOM_UTF16_LE + SSMS.replace("fast", "schnell ä").encode("utf-16-le"),
        SSMS.replace("fast", "schnell ä").encode("utf-16-le"),
        codecs.BOM_UTF16_BE + SSMS.replace("fast", "schnell ä").encode("utf-16-be"),
        SSMS.replace("fast", "schnell ä").encode("cp1252"),
    ],
    ids=["UTF-8 BOM", "UTF-8", "UTF-16 LE BOM", "UTF-16 LE", "UTF-16 BE BOM", "cp1252"],
)
def test_encodings(tmp_path: Path, data: bytes) -> None:
    assert [row[0] for row in routes(read(tmp_path, "routes.csv", data))] == [
        "AutoCreatedLocal",
        "To stock, schnell ä",
    ]


def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [dict(zip(NAMES, row, strict=True)) for row in ROUTES]
    file = tmp_path / "routes.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    assert routes(read_export([str(file)], HUB)) == ROUTES
    file.write_bytes(b"no parquet")
    with pytest.raises(ContractError, match="cannot be read"):
        read_export([str(file)], HUB)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    assert "the Python package pyarrow is missing (pip install pyarrow, or" in refused(
        tmp_path, "routes.parquet", b"PAR1"
    )


def test_folders_are_read_at_any_depth_and_skipped_files_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "routes.csv").write_text(SSMS, encoding="utf-8")
    (tmp_path / "a" / "b" / "services.csv").write_text("name\n//stock\n", encoding="utf-8")
    (tmp_path / "a" / "notes.txt").write_text("call me\n", encoding="utf-8")
    (tmp_path / "a" / "readme.doc").write_text("name\n", encoding="utf-8")
    export = read_export([str(tmp_path)], HUB)
    assert export.rows_read == {"routes": 2, "services": 1}
    endings = ".csv, .dat, .htm, .html, .json, .jsonl, .log, .md, .ndjson, .out, .parquet, .rpt, .rst, .tsv, .txt"
    assert export.notes == [
        f"{tmp_path}/a/notes.txt: not read, neither its name nor its columns identify a view",
        f"{tmp_path}/a/readme.doc: not read, its name does not end in any of {endings}",
    ]


def test_several_result_sets_in_one_file_name_their_views(tmp_path: Path) -> None:
    text = """view_name,instance_name,database_name,exported_at,name
---------,-------------,-------------,-----------,----
services,"hub","Shop",2026-01-05T12:00:00.0000000Z,"//trailing blanks  "
services,"hub","Empty",2026-01-05T12:00:00.0000000Z,NULL

view_name,instance_name,exported_at,name,database_id,service_broker_guid,is_broker_enabled
---------,-------------,-----------,----,-----------,-------------------,-----------------
databases,"hub",2026-01-05T12:00:00.0000000Z,"Sh""op",5,4C8C5A5C-1D3E-4B7A-9D5E-2F0A6B1C7D88,1
"""
    export = read(tmp_path, "HUB.csv", text, StandIns())
    assert export.rejected == []
    assert [(row.get("name"), row["database_name"]) for row in export.rows["services"]] == [
        ("//trailing blanks  ", "Shop"),
        (None, "Empty"),
    ]
    (database,) = export.rows["databases"]
    assert (database["name"], database["is_broker_enabled"]) == ('Sh"op', True)
    assert database["service_broker_guid"] == "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"


@pytest.mark.parametrize("header", [True, False])
def test_values_quoted_twice_by_ssms_are_read(tmp_path: Path, header: bool) -> None:
    names = "view_name,instance_name,database_name,exported_at,name\n"
    rows = 'services,"""hub""","""Shop""",2026-01-05T12:00:00Z,"""//stock, blanks  """\n'
    export = read(tmp_path, "services.csv", (names if header else "") + rows, StandIns())
    assert [(row["instance_name"], row["name"]) for row in export.rows["services"]] == [
        ("hub", "//stock, blanks  ")
    ]


def test_a_name_that_is_also_a_column_is_no_header(tmp_path: Path) -> None:
    export = read(tmp_path, "services.csv", "name,service_id\n//a,1\nname,2\npriority,3\n")
    assert [row["name"] for row in export.rows["services"]] == ["//a", "name", "priority"]


def test_a_grid_without_header_of_a_view_that_is_empty_everywhere(tmp_path: Path) -> None:
    row = 'transmission_queue,"""hub""","""{}""",2026-01-05T12:00:00Z,NULL,NULL,NULL,NULL,NULL,NULL\n'
    export = read(tmp_path, "Results7.csv", row.format("Shop") + row.format("msdb"), StandIns())
    assert [(row["database_name"], row["is_empty"]) for row in export.rows["transmission_queue"]] == [
        ("Shop", True),
        ("msdb", True),
    ]


@pytest.mark.parametrize("release", ["0.1.0", "0.2.0"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("is_empty", [True, False])
def test_the_queue_as_the_queries_of_each_release_export_it(
    tmp_path: Path, release: str, header: bool, is_empty: bool
) -> None:
    """The queries of 0.1.0 left the sending service out."""
    names = ["view_name", "instance_name", "database_name", "exported_at", "conversation_handle"]
    names += ["to_service_name", "to_broker_instance", "enqueue_time", "message_sequence_number"]
    names.append("transmission_status")
    row = ["transmission_queue", "hub", "Shop", "2026-01-05T12:00:00Z"]
    row += ["NULL"] * 6 if is_empty else [QUEUED, "//stock", "NULL", "2026-01-05T11:00:00", "7", ""]
    if release == "0.2.0":
        names.insert(7, "from_service_name")
        row.insert(7, "NULL" if is_empty else "//shop")
    text = (",".join(names) + "\n" if header else "") + ",".join(row) + "\n"
    export = read(tmp_path, "Results7.csv", text, StandIns())
    (found,) = export.rows["transmission_queue"]
    if is_empty:
        assert found["is_empty"] is True
    else:
        expected = ("//stock", "//shop" if release == "0.2.0" else None, 7)
        assert (found["to_service_name"], found["from_service_name"], found["message_sequence_number"]) == expected
    missing = f"{tmp_path / 'Results7.csv'}: from_service_name missing, read as NULL"
    assert export.notes == ([missing] if release == "0.1.0" else [])
    assert export.rejected == []


@pytest.mark.parametrize("columns", ["to_broker_instance,from_service_name", "to_broker_instance"])
def test_an_empty_queue_is_recognised_by_its_columns(tmp_path: Path, columns: str) -> None:
    head = f"view_name,instance_name,database_name,exported_at,conversation_handle,to_service_name,{columns}"
    text = f"{head},enqueue_time,message_sequence_number,transmission_status\n"
    export = read(tmp_path, "Results7.csv", text, HUB)
    assert list(export.rows) == ["transmission_queue"]


def test_a_column_has_priority_over_its_option(tmp_path: Path) -> None:
    text = "name,database_name,exported_at\n//a,Other,2026-01-06 10:00:00 +02:00\n//b,NULL,NULL\n"
    export = read(tmp_path, "services.csv", text)
    assert [(r["name"], r["database_name"], r["exported_at"]) for r in export.rows["services"]] == [
        ("//a", "Other", datetime(2026, 1, 6, 8, tzinfo=timezone.utc)),
        ("//b", "Shop", AT),
    ]


def test_invalid_rows_are_rejected_and_others_are_read(tmp_path: Path) -> None:
    text = """name,lifetime,address,mirror_address
good,NULL,LOCAL,NULL
no address,NULL,NULL,NULL
bad time,next week,LOCAL,NULL
too,many,cells,LOCAL,NULL
also good,,TCP://x:1,
"""
    export = read(tmp_path, "routes.csv", text)
    assert [row["name"] for row in export.rows["routes"]] == ["good", "also good"]
    file = tmp_path / "routes.csv"
    no_time = "'next week' is not a time of the form 2026-01-05 12:00:00 (--date-format names another)"
    assert sorted(export.rejected) == [
        f"{file}, row 3: address is missing (no address)",
        f"{file}, row 4: lifetime: {no_time} (bad time)",
        f"{file}, row 5: it has 5 cells, the header 4",
    ]
    assert export.rejected_of == {"routes": 3}
    assert export.notes == [f"{file}: remote_service_name, broker_instance missing, read as NULL"]


def test_a_bad_line_of_json_is_one_row(tmp_path: Path) -> None:
    export = read(tmp_path, "services.json", '{"name":"//a","service_id":1}\n{"name":\n[1]\n{"name":["//b"]}\n')
    assert [row["name"] for row in export.rows["services"]] == ["//a"]
    assert export.rejected_of == {"services": 3}


def test_an_unclosed_quotation_mark_is_part_of_its_cell(tmp_path: Path) -> None:
    export = read(tmp_path, "services.csv", 'name,service_id\n"//a,1\n//b,2\n5" //c,3\n')
    assert [row["name"] for row in export.rows["services"]] == ['"//a', "//b", '5" //c']


ENDPOINT = "Broker,65536"
HINT_ON_ENDPOINTS = "sys.endpoints has no ports, authentication or forwarding: export sys.service_broker_endpoints"


@pytest.mark.parametrize(
    ("name", "content", "stand_ins", "why"),
    [
        ("routes.csv", SSMS, StandIns("hub", "Shop"), "has no column exported_at (give --exported-at)"),
        ("routes.csv", SSMS, StandIns(None, "Shop", AT), "has no column instance_name (give --instance)"),
        ("routes.csv", SSMS, StandIns("hub", None, AT), "has no column database_name (give --database)"),
        ("routes.csv", "name,route_id\nx,1\n", HUB, "as sys.routes it lacks address"),
        ("x.csv", f"name,endpoint_id,is_admin_endpoint\n{ENDPOINT},0\n", HUB, HINT_ON_ENDPOINTS),
        ("sys.endpoints.csv", f"name,endpoint_id\n{ENDPOINT}\n", HUB, HINT_ON_ENDPOINTS),
        ("endpoints.json", '{"name": "Broker", "state_desc": "STARTED"}\n', HUB, HINT_ON_ENDPOINTS),
        ("endpoints.json", '{"orders": "https://h"}\n', HUB, "neither its name nor its columns identify its view"),
        (
            "endpoints.csv",
            "conversation_handle;far_service;far_broker_instance\nA;//x;B\n",
            HUB,
            "as sys.conversation_endpoints it lacks conversation_id",
        ),
        ("routes.csv", "", HUB, "it is empty"),
        ("routes.csv", "a,b,c\n1,2,3\n", HUB, "its 3 columns are unknown (export it with a header"),
        ("databases.csv", "Shop,5,x\n", HUB, "its 3 columns are unknown"),
        ("routes.json", "no json\n", HUB, "it has no line with a JSON object"),
        (
            "nothing.csv",
            "a,b,c\n1,2,3\n",
            HUB,
            "neither its name nor its columns identify its view",
        ),
    ],
)
def test_a_file_that_cannot_be_read(
    tmp_path: Path, name: str, content: str, stand_ins: StandIns, why: str
) -> None:
    assert why in refused(tmp_path, name, content, stand_ins)


def test_the_view_option(tmp_path: Path) -> None:
    assert routes(read(tmp_path, "export1.csv", SSMS, view="sys.Routes")) == ROUTES
    assert "--view 'queues' is not a view that import reads" in refused(tmp_path, "x.csv", SSMS, view="queues")
    with pytest.raises(ContractError, match="--view needs exactly one file"):
        read_export([str(tmp_path)], HUB, "routes")
    with pytest.raises(ContractError, match="there is no such file"):
        read_export([str(tmp_path / "missing.csv")], HUB)


def test_an_empty_view_of_a_named_database_is_covered(tmp_path: Path) -> None:
    export = read(tmp_path, "routes.csv", "name,address\n----,-------\n\n(0 rows affected)\n")
    assert [(row["database_name"], row["is_empty"]) for row in export.rows["routes"]] == [("Shop", True)]
