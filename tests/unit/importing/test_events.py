"""Import of Extended Events: hand-written events, all file forms, hostile files, and repeated files."""

from __future__ import annotations

import csv
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
import yaml

from routing import cli
from routing.config import load
from routing.delta.opening import TableOpener
from routing.errors import InputError
from routing.importing.events.event_files import read_events
from routing.importing.events.event_rows import BrokenEventError, parse_event, read_event
from routing.importing.from_events import import_events
from routing.importing.import_files import on_this_disk
from routing.schemas import MESSAGES
from tests.estate_rows import database, endpoint
from tests.frames import arrow_of
from tests.half_imports import ended_after
from tests.hooks import Killed
from tests.stored import save_estate, store_local

CONVERSATION = "6B1F0B9A-6A0E-4A52-9C7B-0D6F6D9A0001"
FOLDED = CONVERSATION.lower()
AT = "2026-01-05T12:00:00.123Z"
NOON = datetime(2026, 1, 5, 12, 0, 0, 123_000, tzinfo=timezone.utc)
# Of a row that is read the columns that nothing of the event fills.
NOTHING = dict.fromkeys(
    (
        *("database_name", "conversation_handle", "message_sequence_number", "message_id", "status_text"),
        *("error_number", "to_service_name", "to_broker_instance", "from_service_name", "from_broker_instance"),
        *("next_hop", "fragment_number", "remaining_hop_count", "time_to_live_seconds", "live_time_seconds"),
        *("error_state", "error_severity"),
    )
)


def xml(name: str, at: str | None = AT, *, action: str = "", **fields: str | tuple[str, str]) -> str:
    """Return an event in XML. A mapped field has a value and a text."""
    data = ""
    for field, told in {"conversation_id": CONVERSATION, "is_initiator": "true", **fields}.items():
        value, text = told if isinstance(told, tuple) else (told, None)
        data += (
            f"<data name={quoteattr(field)}><value>{value}</value>{f'<text>{text}</text>' if text else ''}</data>"
        )
    time = "" if at is None else f" timestamp={quoteattr(at)}"
    return f'<event name="{name}" package="sqlserver"{time}>{data}{action}</event>'


def action(name: str, value: str) -> str:
    return f'<action name="{name}" package="sqlserver"><value>{value}</value></action>'


CLASSIFY = "broker_message_classify"
EVENTS: list[tuple[str, dict[str, Any]]] = [
    (
        xml(CLASSIFY, route_type=("2", "Remote"), to_service_name="//stock", message_source=("1", "local")),
        {"route_type": "REMOTE", "outcome": "SENT", "to_service_name": "//stock", "is_from_network": False},
    ),
    (
        xml(CLASSIFY, route_type="1", message_source="network", target_user_name="tcp://far:4022"),
        {"route_type": "LOCAL", "outcome": "DELIVERED", "is_from_network": True, "next_hop": "tcp://far:4022"},
    ),
    (
        xml(CLASSIFY, route_type="Remote", message_source="Network", to_broker_instance="{ABC}"),
        {"route_type": "REMOTE", "outcome": "FORWARDED", "is_from_network": True, "to_broker_instance": "{ABC}"},
    ),
    (
        xml("Broker:Message Classify", route_type="3", delayed_error_number="9793"),
        {"route_type": "DELAYED", "outcome": "DELAYED", "error_number": 9793, "is_from_network": None},
    ),
    # No number, numbers that are none, and one that does not fit.
    (
        xml(CLASSIFY, route_type="delayed", delayed_error_number="0"),
        {"route_type": "DELAYED", "outcome": "DELAYED", "is_from_network": None},
    ),
    (
        xml(CLASSIFY, route_type="delayed", delayed_error_number="x", error_state="99999999999"),
        {"route_type": "DELAYED", "outcome": "DELAYED", "is_from_network": None},
    ),
    (
        xml(
            "broker_forwarded_message_sent",
            message_sequence="7",
            fragment_number="0",
            time_to_live_sec="60",
            live_time_sec="5",
            remaining_hop_count="9",
            to_broker_name="abc",
            from_service_name="//orders",
            from_broker_name="def",
            target_login_name="tcp://next:4022",
        ),
        {
            "source": "FORWARD_SENT",
            "outcome": "FORWARDED",
            "is_from_network": True,
            "message_sequence_number": 7,
            "fragment_number": 0,
            "time_to_live_seconds": 60,
            "live_time_seconds": 5,
            "remaining_hop_count": 9,
            "to_broker_instance": "abc",
            "from_service_name": "//orders",
            "from_broker_instance": "def",
            "next_hop": "tcp://next:4022",
        },
    ),
    (
        xml(
            "broker_forwarded_message_dropped",
            is_initiator="false",
            message_sequence="1",
            dropped_reason=("4", "The hop count is used up"),
            error_number="28071",
            error_state="2",
            error_severity="10",
        ),
        {
            "source": "FORWARD_DROPPED",
            "outcome": "DROPPED",
            "is_from_network": True,
            "is_initiator": False,
            "message_sequence_number": 1,
            "status_text": "The hop count is used up",
            "error_number": 28071,
            "error_state": 2,
            "error_severity": 10,
        },
    ),
    (
        xml(
            "broker_message_undeliverable",
            message_drop_reason="off",
            error_number="28012",
            action=action("database_name", "Sales"),
        ),
        {
            "source": "UNDELIVERABLE",
            "outcome": "DROPPED",
            "is_from_network": None,
            "status_text": "off",
            "error_number": 28012,
            "database_name": "Sales",
        },
    ),
]


@pytest.mark.parametrize(("text", "expected"), EVENTS)
def test_an_event_becomes_a_row_with_its_facts(text: str, expected: dict[str, Any]) -> None:
    read = read_event(parse_event(text), "hub")
    assert read is not None
    row = {**read.row}
    assert len(row.pop("event_hash")) == 64
    known = {"instance_name": "hub", "conversation_id": FOLDED, "is_initiator": True, "observed_at": NOON}
    others = {} if "route_type" not in expected else {"source": "CLASSIFY_EVENT"}
    assert row == {**NOTHING, **known, **others, **expected}


@pytest.mark.parametrize(
    ("event", "stored_as", "message_id"),
    [
        pytest.param({"database_name": "Sales"}, None, f"{FOLDED}:I:7:Sales", id="sent-by-a-database"),
        pytest.param({"database_name": "Sales"}, "mine", "mine", id="its-stored-message-has-another-id"),
        pytest.param({"database_name": "Other"}, "mine", f"{FOLDED}:I:7:Other", id="another-database's-is-stored"),
        pytest.param({}, "mine", f"{FOLDED}:I:7", id="of-no-database"),
        pytest.param({"is_initiator": "false"}, "mine", f"{FOLDED}:T:7", id="of-the-target"),
        pytest.param({"message_sequence_number": "x"}, "mine", None, id="without-a-number"),
        pytest.param({"is_initiator": "x"}, "mine", None, id="without-a-role"),
    ],
)
def test_an_event_carries_the_id_of_its_message(
    job: Path, capsys: pytest.CaptureFixture[str], event: dict[str, str], stored_as: str | None, message_id: str
) -> None:
    if stored_as is not None:
        message = {
            "message_id": stored_as,
            "conversation_id": CONVERSATION,
            "is_initiator": True,
            "message_sequence_number": 7,
            "enqueue_time": NOON,
            "instance_name": "hub",
            "database_name": "Sales",
            "to_service_name": "//stock",
        }
        store_local(arrow_of([message], MESSAGES), job.parent / "messages")
    text = xml(CLASSIFY, route_type="2", message_source="local", **{"message_sequence_number": "7", **event})
    imported(job, capsys, str(as_csv(job.parent, [text])), "--instance", "hub")
    [row] = stored(job)
    assert row["message_id"] == message_id


def test_events_not_about_routes_are_skipped() -> None:
    assert read_event(parse_event(xml("broker_conversation")), "hub") is None
    sent = xml("broker_remote_message_acknowledgement", acknowledgement_type=("2", "Message with ack sent"))
    assert read_event(parse_event(sent), "hub") is None


def test_equal_events_have_one_hash() -> None:
    one = xml(CLASSIFY, route_type="1", message_source="local")
    other = one.replace("><", ">\n  <").replace('name="message_source"', 'name = "message_source"')
    assert parse_event(one).hash == parse_event(other).hash
    assert parse_event(one).hash != parse_event(one.replace("local", "network")).hash
    assert parse_event(one).hash != parse_event(one.replace(".123Z", ".124Z")).hash


ENTITY = '<!DOCTYPE x [<!ENTITY a "{}">]>'
HOSTILE = {
    "an entity": (ENTITY.format("b") + xml(CLASSIFY, route_type="&a;"), "declares a document type"),
    "a file": (
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + xml(CLASSIFY, route_type="&a;"),
        "declares a document type",
    ),
    "a host": ('<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">' + xml(CLASSIFY), "declares a document type"),
    "no entity": (xml(CLASSIFY, route_type="&a;"), "not well-formed XML: undefined entity"),
    "a part": (xml(CLASSIFY)[:-8], "not well-formed XML"),
    "depth": ("<a>" * 100_000, "more than 20 elements deep"),
    "length": (xml(CLASSIFY, route_type="x" * 1_000_000), "more than 1,000,000"),
    "half a character": (xml(CLASSIFY, route_type="\ud800"), "half of a character"),
    "another root": ("<row><x/></row>", "it has no event"),
    "no text": ("", "not well-formed XML"),
    "no conversation": (
        xml(CLASSIFY, conversation_id="x", route_type="1"),
        "its conversation_id is 'x' and not a GUID",
    ),
    "no time": (xml(CLASSIFY, None, route_type="1"), "its timestamp is 'None' and not an ISO 8601 time"),
    "a wrong time": (xml(CLASSIFY, "noon", route_type="1"), "its timestamp is 'noon'"),
    "no route type": (xml(CLASSIFY), "its route_type is 'None' and not Local, Remote or Delayed"),
    "another route type": (xml(CLASSIFY, route_type="4"), "its route_type is '4'"),
}


@pytest.mark.parametrize("what", list(HOSTILE))
def test_hostile_events_are_rejected(what: str) -> None:
    text, why = HOSTILE[what]
    with pytest.raises(BrokenEventError, match=why):
        read_event(parse_event(text), "hub")


GOOD = [
    xml(CLASSIFY, route_type="3", delayed_error_number="9793", action=action("database_id", "5")),
    xml(CLASSIFY, route_type="3", at="2026-01-05T12:00:04Z", delayed_error_number="9793"),
    xml("broker_conversation"),
    xml(CLASSIFY, route_type="1", message_source="network", action=action("database_id", "77")),
]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Write a configuration for an observed_routing that does not exist yet."""
    earlier = datetime(2026, 1, 1, tzinfo=timezone.utc)
    another = endpoint(2, conversation_id=f"{FOLDED[:-1]}2", acknowledged_at=earlier)
    dialogs = [endpoint(1, conversation_id=FOLDED), another]
    save_estate({"databases": [database(database_id=5)], "dialogs": dialogs}, tmp_path, files=1)
    keys = ("routes", "databases", "services", "instances", "messages", "dialogs", "observed_routing", "imports")
    outputs = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
    config = {"tables": {key: key for key in keys}, "output": {key: f"out/{key}" for key in outputs}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return tmp_path / "job.yaml"


def imported(job: Path, capsys: pytest.CaptureFixture[str], *line: str, status: int = 0) -> dict[str, Any]:
    """Return the JSON output of an import, or its error."""
    assert cli.main(["import", "events", "--config", str(job), "--format", "json", *line]) == status
    out, err = capsys.readouterr()
    return {"error": err} if status else dict(json.loads(out))


def stored(job: Path, key: str = "observed_routing") -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    return list(DeltaTable(job.parent / key).to_pyarrow_dataset().to_table().to_pylist())


def as_csv(folder: Path, events: list[str], encoding: str = "utf-8-sig") -> Path:
    with (folder / "events.csv").open("w", encoding=encoding, newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["instance_name", "object_name", "event_data", "file_name", "file_offset"])
        writer.writerows(["HUB", "x", event, "x.xel", number] for number, event in enumerate(events))
    return folder / "events.csv"


def as_json_lines(folder: Path, events: list[str]) -> Path:
    lines = [json.dumps({"Instance_Name": "hub", "EVENT_DATA": event}) for event in events]
    (folder / "events.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "events.jsonl"


def as_json_array(folder: Path, events: list[str]) -> Path:
    rows = [{"instance_name": "hub", "event_data": event} for event in events]
    (folder / "events.json").write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return folder / "events.json"


def as_parquet(folder: Path, events: list[str]) -> Path:
    import pyarrow
    import pyarrow.parquet

    rows = pyarrow.table({"instance_name": ["hub"] * len(events), "event_data": events})
    pyarrow.parquet.write_table(rows, folder / "events.parquet")
    return folder / "events.parquet"


def as_xml(folder: Path, events: list[str]) -> Path:
    text = f'<?xml version="1.0"?>\n<Events>\n{chr(10).join(events)}\n</Events>'
    (folder / "events.xml").write_text(text, encoding="utf-8")
    return folder / "events.xml"


def as_xml_after_another(folder: Path, events: list[str]) -> Path:
    (folder / "events.xml").write_text("\n".join(events), encoding="utf-16")
    return folder / "events.xml"


def as_text_of_sqlcmd(folder: Path, events: list[str]) -> Path:
    """Write the events as sqlcmd prints them, with the number of rows in German."""
    lines = ["event_data", "-" * 400, *events, "", f"({len(events)} Zeile(n) betroffen)", ""]
    (folder / "events.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder / "events.txt"


def as_markdown(folder: Path, events: list[str]) -> Path:
    lines = ["| event_data |", "|:---|", *(f"| {event} |" for event in events)]
    (folder / "events.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder / "events.txt"


def as_csv_of_powershell(folder: Path, events: list[str]) -> Path:
    with (folder / "events.csv").open("w", encoding="utf-8", newline="") as stream:
        stream.write("#TYPE System.Data.DataRow\r\n")
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([["event_data"], *([event] for event in events)])
    return folder / "events.csv"


FORMS = (
    as_csv,
    as_csv_of_powershell,
    as_text_of_sqlcmd,
    as_markdown,
    as_json_lines,
    as_json_array,
    as_parquet,
    as_xml,
    as_xml_after_another,
)


UNKNOWN_ID = (
    "tables.databases has no database_id 77 on hub: 1 of its events have no database_name"
    " (import its databases first)"
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_gives_the_same_rows(form: Any, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--instance", "hub")
    done = imported(job, capsys, str(form(job.parent, GOOD)), *options)
    [read] = done["read"].values()
    assert (read, done["rejected"]) == ({"rows": 4, "rejected": 0, "left_out": 0}, [])
    assert done["written"] == {"observed_routing": {"added": 3}, "dialogs": {}}
    assert done["notes"] == [
        "1 of broker_conversation were skipped, since they are not about routes",
        UNKNOWN_ID,
    ]
    rows = sorted(stored(job), key=lambda row: (row["observed_at"], row["outcome"]))
    facts = [(row["instance_name"], row["database_name"], row["outcome"], row["error_number"]) for row in rows]
    assert facts == [
        ("hub", "Sales", "DELAYED", 9793),
        ("hub", None, "DELIVERED", None),
        ("hub", None, "DELAYED", 9793),
    ]
    # The same again, in another form.
    again = imported(job, capsys, str(as_csv(job.parent, GOOD)), "--instance", "hub")
    assert again["written"] == {"observed_routing": {"unchanged": 3}, "dialogs": {}}
    assert sorted(stored(job), key=lambda row: (row["observed_at"], row["outcome"])) == rows


def test_a_dry_run_writes_nothing(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = imported(job, capsys, str(as_csv(job.parent, GOOD)), "--dry-run")
    assert done["written"]["observed_routing"] == {"added": 3}
    assert not (job.parent / "observed_routing").exists()


def test_rejected_rows_do_not_stop_an_import(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = [text for what, (text, _) in HOSTILE.items() if what != "half a character"]
    done = imported(job, capsys, str(as_csv(job.parent, [*bad, GOOD[0]])))
    [read] = done["read"].values()
    assert read == {"rows": len(bad) + 1, "rejected": len(bad), "left_out": 0}
    assert len(done["rejected"]) == len(bad)
    assert done["rejected"][0].endswith(
        "events.csv, row 2: it declares a document type or an entity, which no event does"
    )
    assert done["written"]["observed_routing"] == {"added": 1}


def test_lines_that_are_not_rows_are_rejected(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = as_csv(job.parent, [])
    with file.open("a", encoding="utf-8") as stream:
        stream.write('hub,x\n-----,---,---,---,--\nhub,x,"",x,1\n,x,"' + GOOD[1].replace('"', '""') + '",x,1\n')
    lines = as_json_lines(job.parent, [])
    lines.write_text('{"instance_name": "hub"}\n[1]\nno JSON\n', encoding="utf-8")
    done = imported(job, capsys, str(file), str(lines))
    assert [sentence.rpartition("/")[2] for sentence in done["rejected"]] == [
        "events.csv, row 2: it has 2 cells, the header 5",
        "events.csv, row 4: event_data is empty",
        "events.csv, row 5: its instance is unknown (--instance)",
        "events.jsonl, row 1: event_data is empty",
        "events.jsonl, row 2: it is not a JSON object",
        "events.jsonl, row 3: it is not a JSON object",
    ]


def test_a_truncated_document_keeps_its_complete_events(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (job.parent / "events.xml").write_text(f"<Events>{GOOD[0]}{GOOD[1][:-8]}", encoding="utf-8")
    done = imported(job, capsys, str(job.parent / "events.xml"), "--instance", "hub")
    assert [sentence.rpartition("/")[2] for sentence in done["rejected"]] == ["event>'"]
    assert done["rejected"][0].endswith("events.xml, event 2: it has no '</event>'")
    assert done["written"]["observed_routing"] == {"added": 1}


def test_an_acknowledgement_sets_the_time_of_a_dialog(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "broker_remote_message_acknowledgement"
    received: dict[str, Any] = {"acknowledgement_type": ("3", "Message with ack received")}
    events = [
        xml(name, "2026-01-05T13:00:00Z", **received),
        xml(name, **received),
        xml(name, conversation_id=f"{FOLDED[:-1]}2", **received),
        xml(name, conversation_id=f"{FOLDED[:-1]}3", **received),
        xml(name, is_initiator="false", **received),
    ]
    done = imported(job, capsys, str(as_csv(job.parent, events)))
    assert done["written"] == {"observed_routing": {}, "dialogs": {"changed": 1, "unchanged": 1}}
    assert done["notes"] == ["2 acknowledgements are for conversations that are missing in tables.dialogs"]
    times = {row["conversation_id"]: row["acknowledged_at"] for row in stored(job, "dialogs")}
    assert times[FOLDED] == NOON
    assert times[f"{FOLDED[:-1]}2"] == datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("events.xel", "x", "its name does not show its format"),
        ("none.csv", None, "there is no such file"),
        ("events.csv", "a,b\n1,2\n", "it has no column event_data"),
        ("events.json", "[1,", "it is neither a JSON array of objects nor an object a line"),
        ("events.parquet", "x", "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(
    name: str, content: str | None, why: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (job.parent / name).write_text(content, encoding="utf-8")
    assert why in imported(job, capsys, str(job.parent / name), status=2)["error"]


def test_the_script_records_and_reads_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    from routing.importing.events.event_rows import SOURCES

    assert cli.main(["import", "queries", "--events"]) == 0
    script = capsys.readouterr().out
    for name in SOURCES:
        assert f"ADD EVENT sqlserver.{name} (" in script or ":" in name
    assert "sys.fn_xe_file_target_read_file(N'sbroute*.xel', NULL, NULL, NULL)" in script


def _half_done(job: Path, commit: int) -> tuple[Path, list[str]]:
    """Return the file and the commits of an import of events that ended after one commit for one event."""
    events = [xml(CLASSIFY, f"2026-01-05T12:00:0{number}Z", route_type="Remote") for number in range(3)]
    acknowledged = xml("broker_remote_message_acknowledgement", acknowledgement_type="received")
    file = as_csv(job.parent, [*events, acknowledged])
    opener, now = TableOpener.of_settings({}, None), datetime.now(timezone.utc)
    with ended_after(commit) as commits, pytest.raises(Killed):
        import_events(opener, load(str(job)), [str(file)], on_this_disk, now=now, rows_at_once=1)
    return file, commits


def _journal(job: Path) -> list[dict[str, Any]]:
    rows = stored(job, "imports_unfinished")
    return [{**row, "rows": json.loads(row["rows"])} for row in rows]


@pytest.mark.parametrize(
    ("commit", "last", "missing"),
    [
        (3, "replace unfinished_imports", 3),
        (4, "add observed_routing", 2),
        (5, "add observed_routing", 1),
        (6, "add observed_routing", 0),
        (7, "put dialogs", 0),
    ],
)
def test_the_same_command_completes_an_import_of_events(
    commit: int,
    last: str,
    missing: int,
    job: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before these commits the tables that are missing are made."""
    file, commits = _half_done(job, commit)
    capsys.readouterr()
    assert commits[-1] == last
    [row] = _journal(job)
    assert (row["table_key"], row["action"], row["part"]) == ("observed_routing", "put", 0)
    assert row["rows"] == {"files": [str(file)], "instance": None}
    done = imported(job, capsys, str(file))
    assert done["written"]["observed_routing"].get("added", 0) == missing
    assert len(done["notes"]) == 1
    assert done["notes"][0].endswith(" is completed by this one")
    assert _journal(job) == []
    assert len(stored(job)) == 3
    assert [row["acknowledged_at"] is None for row in stored(job, "dialogs")] == [False, False]


def test_other_imports_note_an_import_of_events_and_leave_it(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _half_done(job, 4)
    capsys.readouterr()
    other = job.parent / "other"
    other.mkdir()
    first = imported(job, capsys, str(as_csv(other, [xml(CLASSIFY, "2026-01-06T12:00:00Z", route_type="Local")])))
    script = job.parent / "s.sql"
    script.write_text("CREATE ROUTE r WITH ADDRESS = 'TCP://r:1'", encoding="utf-8")
    line = ["import", "tsql", str(script), "--config", str(job), "--instance", "hub", "--database", "Sales"]
    assert cli.main([*line, "--format", "json"]) == 0
    second = json.loads(capsys.readouterr().out)
    for done in (first, second):
        assert [note.partition(" began at ")[0] for note in done["notes"]] == ["the import of events that"]
        assert done["notes"][0].endswith(" is not finished: the same command completes it")
    assert len(_journal(job)) == 1
    dropped = imported(job, capsys, str(other / "events.csv"), "--drop-unfinished")
    assert dropped["notes"][0].endswith(" was dropped: run the same command to add the rest")
    assert _journal(job) == []


OTHER_XML = {
    "a trace that SQL Server Profiler saved": '<?xml version="1.0" encoding="utf-16"?>\n<!-- <event> -->\n'
    '<TraceData xmlns="http://tempuri.org/TracePersistence.xsd"><Events><Event id="1" /></Events></TraceData>',
    "an execution plan": '<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan" />',
    "a deadlock graph": "<deadlock-list><deadlock /></deadlock-list>",
    "an XML document <Project>": '<!DOCTYPE Project [<!ENTITY a "<event>">]>\n<Project></Project>',
    "the definition of an event session": "<event_sessions><event_session>"
    '<event name="a" /></event_session></event_sessions>',
    "not an XML document": "name,event_data\n",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("what", OTHER_XML)
def test_an_xml_file_of_another_kind_is_named(what: str, encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(OTHER_XML[what], encoding=encoding)
    with pytest.raises(InputError, match=what):
        list(read_events([str(file)], on_this_disk, []))
    notes: list[str] = []
    assert list(read_events([str(tmp_path)], on_this_disk, notes)) == []
    [note] = notes
    assert note.startswith(f"{file}: not read, it is {what}")


def test_rows_below_the_line_of_powershell_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("#TYPE System.Data.DataRow\nevent_data,file_name\na\n", encoding="utf-8")
    [row] = read_events([str(file)], on_this_disk, [])
    assert (row.place, row.why) == (f"{file}, row 3", "it has 1 cells, the header 2")


def test_an_error_below_the_rows_is_a_rejected_row(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(f"event_data\n-----\n{xml(CLASSIFY)}\n\nMsg 916, Level 14 (1 error)\n", encoding="utf-8")
    assert [row.place for row in read_events([str(file)], on_this_disk, [])] == [
        f"{file}, row 3",
        f"{file}, row 5",
    ]


@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_a_table_without_events_is_noted(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("event_data\n\n(0 rows affected)\n", encoding="utf-8")
    notes: list[str] = []
    assert list(read_events([str(tmp_path / name)], on_this_disk, notes)) == []
    assert notes == [f"{tmp_path / name}: it has no event"]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("<events></events>", 0),
        ('<RingBufferTarget truncated="0" eventCount="0" />', 0),
        ("<dump>" + 40_000 * "<x />" + xml(CLASSIFY) + "</dump>", 1),
        ("-- result\n" + xml(CLASSIFY), 1),
    ],
)
def test_an_xml_file_without_events_is_noted(text: str, events: int, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(text, encoding="utf-8")
    notes: list[str] = []
    assert len(list(read_events([str(file)], on_this_disk, notes))) == events
    assert notes == ([] if events else [f"{file}: it has no event"])
