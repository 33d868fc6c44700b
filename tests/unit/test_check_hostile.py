"""A hostile estate passes through check, as text and as JSON, and comes out harmless."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from routing import cli
from tests.check_texts import UNWRAPPED, lines_to_run
from tests.hostile import NAMES
from tests.unit.test_hostile_names import bracketed, texted

AT = "2026-01-05T18:00:00Z"
LONGEST_LINE = 6_000
ENDLESS = "endless \x1b[2J" * 1_000
# What would be a statement of its own if a bracket, a quote, a comment or a line ended early.
STATEMENTS = [
    "a]; DROP DATABASE [b",
    "a'; SHUTDOWN; --",
    "a]]'' ; GRANT CONTROL TO public --",
    "a\nGO\nDROP DATABASE b\nGO\n",
    "a */ DROP DATABASE b /*",
    "$(b) :!!shutdown",
    "<a,sysname,b>",
    "-- a",
]
EVERY = [f"{number} {name}" for number, name in enumerate([*NAMES, ENDLESS, *STATEMENTS], start=10)]
# No instance of SQL Server has a longer name: nothing of a row that says so is read.
TOO_LONG = [name for name in EVERY if len(name.encode("utf-16-le", "surrogatepass")) > 2 * 256]
# No address holds a slash, a colon, a bracket or a blank.
ADDRESS = "tcp://h';--\x1b\u202e&<b>*:4022"


def guid(number: int) -> str:
    return f"{number:08d}-aaaa-4000-8000-000000000000"


def write(file: Path, at: str, **rows: list[dict[str, Any]]) -> None:
    """Write JSON lines by view in a new folder."""
    file.mkdir(parents=True, exist_ok=True)
    for view, view_rows in rows.items():
        lines = (json.dumps({**row, "exported_at": at}) for row in view_rows)
        (file / f"{view}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def views_of(number: int, name: str) -> dict[str, list[dict[str, Any]]]:
    """Return an instance with databases, routes and services of one name, and messages that fail in every way.

    `On` sends and `Off` is disabled. `name` has the service with its broker off. `Bare` has no routes, and the
    routes of `Unread` were not exported.
    """
    here = {"instance_name": name}
    senders = [f"On {name}", f"Off {name}", f"Bare {name}", f"Unread {name}", f"Gone {name}"]
    ids = {database: guid(number * 100 + place) for place, database in enumerate([name, *senders])}
    listed = [name, *senders[:4], "msdb"]
    services = [name, f"{name}/", f"Nobody {name}", f"Back {name}", f"Far {name}", f"tcp://{name}", f"Old {name}"]
    routes = [
        (senders[0], name, name, None, "LOCAL", None),
        (senders[0], f"Slash {name}", f"Nobody {name}/", None, ADDRESS, None),
        (senders[0], f"Back {name}", f"Back {name}", None, f"tcp://own{number}:4022", None),
        (senders[0], f"Far {name}", f"Far {name}", None, ADDRESS, None),
        (senders[0], f"Expired {name}", f"tcp://{name}", None, "tcp://h';--:4022", "2026-01-01T00:00:00Z"),
        (senders[0], f"Old {name}", f"Old {name}", f"id {name}", ADDRESS, None),
        (senders[0], f"Any {name}", None, None, "TRANSPORT", None),
        ("msdb", name, None, None, ADDRESS, None),
    ]
    empty = [{**here, "database_name": database} for database in senders[:4]]
    nowhere = [{**here, "database_name": database, "name": None, "address": None} for database in senders[1:3]]
    queue = [
        {
            **here,
            "database_name": sender,
            "conversation_handle": guid(number * 100_000 + place * 1_000 + turn),
            "to_service_name": service,
            "to_broker_instance": f"other {name}" if turn % 3 == 1 else None,
            "from_service_name": name,
            "enqueue_time": "2026-01-05T17:00:00Z",
            "message_sequence_number": turn,
            "transmission_status": name if turn % 2 else ENDLESS[:3_900],
        }
        for place, sender in enumerate(senders)
        for turn, service in enumerate([*services, name])
    ]
    return {
        "databases": [
            {
                **here,
                "name": each,
                "database_id": 5,
                "service_broker_guid": ids.get(each, guid(1)),
                "is_broker_enabled": on,
            }
            for each in listed
            for on in [int(each not in (name, senders[1]))]
        ],
        "services": [{**here, "database_name": name, "name": name}, *({**row, "name": None} for row in empty)],
        "routes": [
            *(
                {
                    **here,
                    "database_name": database,
                    "name": route,
                    "remote_service_name": service,
                    "broker_instance": broker,
                    "lifetime": lifetime,
                    "address": address,
                    "mirror_address": None,
                }
                for database, route, service, broker, address, lifetime in routes
            ),
            *nowhere,
        ],
        "service_broker_endpoints": [
            {
                **here,
                "endpoint_id": 5,
                "is_message_forwarding_enabled": 0,
                "machine_name": f"own{number}",
                "full_name": None,
                "listener_names": name,
                "port": 4022,
            }
        ],
        "conversation_endpoints": [
            {
                **here,
                "database_name": row["database_name"],
                "conversation_handle": row["conversation_handle"],
                "conversation_id": row["conversation_handle"],
                "is_initiator": 1,
                "conversation_group_id": None,
                "lifetime": None,
                "far_service": name,
                "far_broker_instance": f"far {name}" if row["message_sequence_number"] == 4 else None,
            }
            for row in queue
        ],
        "transmission_queue": queue,
    }


HOSTILE_FOLDER = 'it\'s \x1b[31m `a` "b" [c] $x ;-- *\n\u202e\u00df\u0130 <a,b,c>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / HOSTILE_FOLDER
    for number, name in enumerate(EVERY):
        views = views_of(number, name)
        if number % 3 == 2:
            views["routes"] = [row for row in views["routes"] if row["database_name"] != "msdb"]
        write(folder / f"{number} {HOSTILE_FOLDER}", AT, **views)
    # An instance of which only the queue is known, for which a script speaks.
    lone = views_of(len(EVERY), "lone \x1b[31m")
    write(folder / "lone", AT, transmission_queue=lone["transmission_queue"])
    script = folder / "lone \x1b[31m" / f"{HOSTILE_FOLDER}.sql"
    script.parent.mkdir()
    script.write_text(script_of(EVERY), encoding="utf-8")
    return folder


def script_of(names: list[str]) -> str:
    """Return statements with these names, all valid T-SQL. Many of them cannot be applied."""
    lines = []
    for name in names:
        usable = bracketed(re.sub("[\r\n]|[$][(]", "", name)[:128])
        lines += [f"USE {usable};", f"DROP ROUTE {usable};", f"DROP SERVICE {usable};"]
        lines += [
            f"CREATE ROUTE {usable} WITH SERVICE_NAME = {texted(name[:200])}, ADDRESS = {texted(name[:50])};"
        ]
        lines += [f"ALTER DATABASE {usable} SET DISABLE_BROKER;"]
    return "\nGO\n".join(lines)


@pytest.fixture
def try_options(tmp_path: Path) -> list[str]:
    """Return options that try a script turning the broker on, for each instance whose name can be a folder."""
    options = []
    for name in EVERY:
        if not re.search("[/\x00]", name) and len(name) < 100:
            file = tmp_path / name / f"{HOSTILE_FOLDER}.sql"
            file.parent.mkdir()
            usable = bracketed(name)
            file.write_text(
                f"ALTER DATABASE {usable} SET ENABLE_BROKER;\nDROP SERVICE {usable};", encoding="utf-8"
            )
            options += ["--then", str(file)]
    return options


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    got = cli.main(["check", *arguments])
    out, err = capsys.readouterr()
    assert got == status, err[:2_000]
    # On a slow machine a line says every ten seconds how far it is.
    err = re.sub(r"^check: .* \(\d+ s\)\n", "", err, flags=re.MULTILINE)
    err = re.sub(r"^[\d,]+ files? read, [\d,]+ skipped, [\d,]+ rows? refused\n", "", err, flags=re.MULTILINE)
    assert (out if status == 2 else err) == ""
    return err if status == 2 else out


def assert_harmless(text: str) -> None:
    """Assert that a text does not move the cursor, and has no colours, hidden characters or endless lines."""
    assert text.endswith("\n")
    for line in text.split("\n"):
        assert line.isprintable(), line[:300]
        assert len(line) <= LONGEST_LINE, (len(line), line[:300])


def test_the_report_of_hostile_names_is_harmless(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for options in (["--at", "2025-12-31T12:00:00Z"], ["--all"]):
        out = run(capsys, str(folder), "--verbose", *UNWRAPPED, *options)
        assert_harmless(out)
    for outcome in ("DELAYED", "DROPPED", "SENT", "NOT_KNOWN"):
        assert re.search(rf"^\d+\. {outcome}", out, re.MULTILINE)
    assert "near: " in out
    assert "Other findings of lint" in out
    assert "rejected: " in out
    # Markup is text.
    assert "[red]a[/red] [link=x] <b>b</b>" in out


def test_hostile_names_in_changes_are_harmless(
    capsys: pytest.CaptureFixture[str], folder: Path, try_options: list[str]
) -> None:
    out = run(capsys, str(folder), "--verbose", *UNWRAPPED, *try_options)
    assert_harmless(out)
    changes = out[out.index("\nWhat changes\n") : out.index("\n1. ")]
    assert re.search("BROKER_DISABLED, by route '.*' → DELIVERED, LOCAL_SERVICE, by route '.*', to '", changes)


def test_json_is_one_line_with_unchanged_names(
    capsys: pytest.CaptureFixture[str], folder: Path, try_options: list[str]
) -> None:
    out = run(capsys, str(folder), *try_options, "--format", "json")
    assert out.count("\n") == 1
    assert out[:-1].isascii()
    assert out[:-1].replace("\x7f", "").isprintable()
    answer = json.loads(out)
    fitting = [name for name in EVERY if name not in TOO_LONG]
    assert {group["instance_name"] for group in answer["groups"]} == {*fitting, "lone \x1b[31m"}
    queue = answer["read"]["rows"]["transmission_queue"]
    assert queue["rows"] == 40 * (len(EVERY) + 1)
    assert (
        answer["messages"]
        == sum(group["count"] for group in answer["groups"])
        == queue["rows"] - queue["rejected"]
    )
    assert queue["rejected"] >= 40 * len(TOO_LONG)
    statuses = {one["transmission_status"] for group in answer["groups"] for one in group["said"]}
    # What a script sets on another way has no status yet.
    assert statuses - {None} == {text.strip() for text in [*fitting, ENDLESS[:3_900]]} | {"lone \x1b[31m"}
    reasons = {group["reason"] for group in answer["groups"]}
    assert reasons >= {
        *("NO_ROUTE", "BROKER_DISABLED", "SCOPE_BROKER_DISABLED", "TRANSPORT_ADDRESS_INVALID"),
        *("FORWARDING_DISABLED", "NETWORK_ADDRESS", "BROKER_INSTANCE_NOT_FOUND", None),
    }


def statements_in(answer: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for group in answer["groups"]:
        if group["statement"] is not None:
            yield group["statement"], group["statement_is_complete"]


@pytest.fixture(scope="module")
def groups(folder: Path) -> dict[str, Any]:
    """Return check's groups for the folder, from JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main(["check", str(folder), "--format", "json"]) == 0
    return dict(json.loads(out.getvalue()))


def test_names_never_add_statements(groups: dict[str, Any]) -> None:
    """The statements to paste are the intended ones, with the names of the estate."""
    from routing.importing.tsql.script_reader import read_script

    known_texts = set(_all_texts(groups))
    complete = [statement for statement, is_complete in statements_in(groups) if is_complete]
    assert len(complete) > 20
    noon = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
    kinds = set()
    for statement in complete:
        assert all(line.isprintable() for line in statement.split("\n"))
        assert re.search(r"\*/|\$\(|<[^>]*,[^>]*>|\ufffd|NEW_BROKER", statement) is None
        # What looks like a place that another tool fills in is refused.
        if re.search(r"<\w+>", statement):
            continue
        script = read_script(statement, file="x", scripted_at=noon)
        assert script.problems == ()
        # A line each, but for USE and the three lines of a transaction.
        around = 3 if "\nBEGIN TRANSACTION;\n" in statement else 0
        assert len(script.statements) == statement.count("\n") - around
        for one in script.statements:
            kinds.add(type(one).__name__)
            assert one.database is None or one.database in known_texts | {"master", "msdb"}
    assert kinds == {"CreateRoute", "AlterRoute", "DropRoute", "AlterDatabase"}
    for statement, is_complete in statements_in(groups):
        lines = statement.split("\n")
        assert is_complete or all(line.startswith("-- ") and line.isprintable() for line in lines)


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _all_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _all_texts(each)


def test_the_sql_format_has_the_same_statements(
    capsys: pytest.CaptureFixture[str], folder: Path, groups: dict[str, Any]
) -> None:
    """All that is no comment is a statement that JSON has, and is read as the one that is meant."""
    from routing.importing.tsql.script_reader import read_script

    alone = run(capsys, str(folder), "--format", "sql")
    assert_harmless(alone)
    wanted = {
        line for statement, is_complete in statements_in(groups) if is_complete for line in statement.split("\n")
    }
    # No server has most of these names: what is for one of them is a comment.
    assert set(lines_to_run(alone)) <= wanted
    uncommented = [line.removeprefix("-- ") for line in alone.split("\n")]
    assert wanted <= set(uncommented)
    meant = [line for line in uncommented if line in wanted or line == "GO"]
    script = read_script("\n".join(meant), file="x", scripted_at=datetime(2026, 1, 5, 12, tzinfo=timezone.utc))
    # A name such as <b> looks like a place that another tool fills in: its statements are refused, and named.
    whys = [problem.why for problem in script.problems]
    assert [why for why in whys if "was not filled in" not in why] == []
    count = sum(re.match("CREATE|ALTER|DROP", line) is not None for line in meant)
    assert len(script.statements) + sum(not why.startswith("USE") for why in whys) == count
    assert re.search(r"\$\(|\$\{|\{\{|#\{", alone) is None


@contextlib.contextmanager
def _count_calls(module: ModuleType) -> Iterator[Counter[str]]:
    """Count the calls of a module's functions by name."""
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == module.__file__:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def test_thousands_of_groups_are_bounded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of lists as long as the estate is large the first are printed and the others counted, in linear time."""
    from routing.views.check import checking

    many = 200
    place = {"instance_name": "SHOP", "database_name": "Orders"}
    views = views_of(0, "SHOP")
    views["databases"].append({**views["databases"][0], "name": "Orders", "is_broker_enabled": 1})
    views["services"].append({**place, "name": None})
    route = {**views["routes"][0], **place, "broker_instance": None}
    views["routes"] = [
        # Without a port, which lint warns of; each just misses a message.
        {**route, "name": f"r{number}", "remote_service_name": f"s{number}/", "address": "tcp://x"}
        for number in range(many)
    ]
    end, waits = views["conversation_endpoints"][0], views["transmission_queue"][0]
    views["conversation_endpoints"] = [
        {**end, **place, "conversation_handle": guid(number), "conversation_id": guid(number)}
        for number in range(many)
    ]
    views["transmission_queue"] = [
        {
            **waits,
            **place,
            "conversation_handle": guid(number),
            "to_service_name": f"s{number}",
            "transmission_status": f"status {number}",
        }
        for number in range(many)
    ]
    bare = dict.fromkeys(("name", "database_id", "service_broker_guid", "is_broker_enabled"))
    write(tmp_path / "bare", AT, databases=[{"instance_name": f"i{each}", **bare} for each in range(many)])
    write(tmp_path, AT, **views)
    script = tmp_path / "SHOP" / "all.sql"
    script.parent.mkdir()
    script.write_text(
        "\nGO\n".join(
            f"CREATE ROUTE n{each} WITH SERVICE_NAME = 's{each}', ADDRESS = 'LOCAL';" for each in range(many)
        )
    )
    with _count_calls(checking) as calls:
        out = run(capsys, str(tmp_path), "--all", "--database", "Orders", "--then", str(script))
    assert_harmless(out)
    assert out.count("\n") < 700
    assert "\nand 180 more problems with 180 messages (--verbose lists all)\n" in out
    # Each group is looked at once, however many findings there are.
    assert calls["_names"] == many


@pytest.mark.parametrize("name", EVERY)
def test_one_message_is_explained(capsys: pytest.CaptureFixture[str], folder: Path, name: str) -> None:
    number = EVERY.index(name)
    handle = guid(number * 100_000)
    file = next(folder.glob(f"{number} *"))
    if name in TOO_LONG:
        assert_harmless(run(capsys, str(file), "--message", handle, status=2))
        return
    # Each form of an id with a third of the names.
    asked = (f"{handle}:I:0", handle, "{" + handle.upper() + "}")[number % 3]
    assert_harmless(run(capsys, str(file), "--message", asked))
    out = run(capsys, str(file), "--message", handle, "--format", "json")
    assert out.count("\n") == 1
    assert len(json.loads(out)["explained"]) == 1
    # One of a database that is not listed has no verdict.
    assert_harmless(run(capsys, str(file), "--message", guid(number * 100_000 + 4_000)))


@pytest.mark.parametrize("name", EVERY)
def test_errors_are_one_harmless_line(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, name: str
) -> None:
    usable = re.sub("[\x00/]", "_", name)[:60]
    script = tmp_path / f"{usable}.sql"
    script.write_text("DROP ROUTE r;", encoding="utf-8")
    nothing = tmp_path / usable
    nothing.mkdir()
    queue = folder / "lone"
    wrong = tmp_path / f"{usable}.json"
    wrong.write_text(json.dumps({name: name}), encoding="utf-8")
    for arguments in (
        [str(queue), "--message", name],
        [str(nothing)],
        [str(tmp_path / f"{usable} missing")],
        [str(queue), str(script)],
        [str(queue), str(wrong)],
        [str(queue), "--at", name],
        [str(queue), "-v", f"={name}"],
        [str(queue), "--instance", "a", "--address", name, "--then", str(script)],
    ):
        err = run(capsys, *arguments, status=2)
        assert err.count("\n") == 1
        assert_harmless(err)


_BYTES = os.fsdecode(b"und\xff")
FOLDERS = ["a\x1b[31mred", "line\nsbroute: done", "[bold]x[red]", "bell\x07", "rtl\u202e", "\rcr", _BYTES]
_HEADER = (
    "conversation_handle,to_service_name,to_broker_instance,from_service_name,enqueue_time,message_sequence_number,"
    "message_body,is_conversation_error,transmission_status,is_end_of_dialog,priority,service_contract_name,"
    "message_type_name\n"
)


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("holds", ["a queue", "nothing", "a folder of that name", "a script of that name"])
def test_a_hostile_folder_is_printed_harmlessly(
    name: str, holds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    file = folder / "transmission_queue.csv"
    if holds == "a folder of that name":
        (folder / f"sub{name}").mkdir()
        file = folder / f"sub{name}" / file.name
    elif holds == "a script of that name":
        (folder / f"{name}.sql").write_text(":r missing.sql", encoding="utf-8")
    if holds != "nothing":
        file.write_text(_HEADER, encoding="utf-8")
    monkeypatch.chdir(folder)
    is_read = holds != "nothing" and not (holds == "a folder of that name" and "und" in name)
    for arguments in ([], ["--format", "json"]):
        assert cli.main(["check", ".", *arguments]) == (0 if is_read else 2)
        out, err = capfd.readouterr()
        output = out + err
        assert output.replace("\n", "").isprintable()
        assert "\nsbroute: done" not in f"\n{output}"
        assert not re.search("[\ud800-\udfff]", output)
        assert not re.search(r"(?<!\\)\\ud[89a-f]", output)
        if not is_read and holds != "nothing":
            assert r"subund\xff: not read, its name is not UTF-8" in output
        if holds == "a script of that name" and not arguments:
            assert "the file 'missing.sql' of :r is not read" in " ".join(output.split()) or "not UTF-8" in output
