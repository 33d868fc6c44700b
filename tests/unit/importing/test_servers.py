"""Running servers, read by Microsoft's driver itself from a small server that speaks TDS."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import NoReturn
from uuid import UUID

import pytest

from routing import cli
from routing.commands import server_options
from routing.errors import InputError
from routing.importing.catalog import queries
from routing.importing.catalog.text_tables import result_sets
from routing.importing.servers import driver, server_exports
from routing.importing.servers.driver import ServerAccess
from routing.importing.servers.result_file import ResultFile
from routing.importing.servers.server_exports import ServerExport, ServersExport, export_servers
from tests.tds_server import Answer, Drop, Fault, Pause, Rows, TdsServer

EXAMPLES = Path("conf/examples/exports")
SHOP = EXAMPLES / "SHOP.csv"
PASSWORD = "Hunter2;{x}}=y"
LOGIN = ("--authentication", "sql", "--user", "reader")


def recorded(file: Path) -> list[Rows]:
    """The result sets that sqlcmd has written into a file, with the columns that the server sent."""
    blocks = file.read_text(encoding="utf-8").strip("\n").split("\n\n")
    return [_result_set(block) for block in blocks]


def _result_set(block: str) -> Rows:
    head, _, *lines = block.split("\n")
    names = head.split(",")
    rows = [_cells(line) for line in lines]
    kinds = [_kind(name) for name in names]
    values = [
        [None if cell == "NULL" else _typed(cell, kind) for cell, kind in zip(row, kinds, strict=True)]
        for row in rows
    ]
    return Rows(list(zip(names, kinds, strict=True)), values)


def _cells(line: str) -> list[str]:
    """The cells of a line with the quotation marks around texts, which the script itself writes."""
    cells, is_open = [""], False
    for character in line:
        is_open ^= character == '"'
        if character == "," and not is_open:
            cells.append("")
        else:
            cells[-1] += character
    return cells


def _kind(name: str) -> str:
    if name in ("conversation_handle", "conversation_id", "conversation_group_id", "service_broker_guid"):
        return "guid"
    if name.startswith("is_"):
        return "flag"
    if name in ("database_id", "endpoint_id", "port", "message_sequence_number", "error_number"):
        return "number"
    return "long text" if name == "transmission_status" else "text"


def _typed(cell: str, kind: str) -> object:
    if kind == "number":
        return int(cell)
    return cell == "1" if kind == "flag" else cell


@pytest.fixture(scope="module")
def loaded_driver() -> None:
    """Take the provider of the driver that needs no other libraries, where they are missing."""
    mssql = pytest.importorskip("mssql_python", reason="the driver is not installed (extra server)")
    if os.environ.get("MSSQL_PYTHON_NATIVE_PROVIDER") is None and not _has_library():
        mssql.native_provider = "mssql-odbc"
    try:
        mssql.connect("Server=127.0.0.1,1;Database=master;Encrypt=yes;ConnectRetryCount=0;UID=x;PWD=y;", timeout=1)
    except mssql.Error as error:
        if "Failed to load the driver" in str(error):
            pytest.skip("the driver's own libraries cannot be loaded here")


def _has_library() -> bool:
    command = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libltdl.so.7')"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections without encryption, and a password in the environment."""
    monkeypatch.setattr(server_options, "ServerAccess", partial(ServerAccess, is_encrypted=False))
    monkeypatch.setenv(server_options.PASSWORD_VARIABLE, PASSWORD)


@pytest.fixture
def serving(loaded_driver: None) -> Iterator[Serving]:
    with ExitStack() as stack:
        yield Serving(stack)


class Serving:
    """Starts servers that stand until the test ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, answers: Sequence[Answer] = (), **settings: object) -> TdsServer:
        return self._stack.enter_context(TdsServer(queries(), answers, **settings))  # type: ignore[arg-type]


def export(
    capsys: pytest.CaptureFixture[str], folder: Path, *servers: TdsServer | str, options: Sequence[str] = LOGIN
) -> tuple[int, str, str]:
    """Return the exit status and output of the command. No password occurs in the output or the files."""
    names = [one if isinstance(one, str) else one.name for one in servers]
    named = [word for name in names for word in ("--server", name)]
    status = cli.main(["export", *named, *options, "--out", str(folder), "--format", "json", "--verbose"])
    out, err = capsys.readouterr()
    written = [file.read_text(encoding="utf-8-sig") for file in folder.glob("*")] if folder.exists() else []
    assert not any("Hunter2" in text for text in (out, err, *written))
    return status, out, err


@pytest.mark.usefixtures("plain")
def test_an_export_is_the_file_that_sqlcmd_writes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, serving: Serving
) -> None:
    hub = serving([*recorded(SHOP)[:3], Fault(0, "a line of PRINT", 0), *recorded(SHOP)[3:]])
    status, out, err = export(capsys, tmp_path / "new", hub)
    file = tmp_path / "new" / f"127.0.0.1_{hub.port}.csv"
    assert file.read_text(encoding="utf-8-sig").strip("\n") == SHOP.read_text(encoding="utf-8").strip("\n")
    (read,) = json.loads(out)["servers"]
    assert read.pop("seconds") < 5
    assert read == {
        "server": hub.name,
        "instance_name": "SHOP",
        "file": str(file),
        "result_sets": 7,
        "rows": 27,
        "unread": [],
    }
    assert (status, err) == (0, f"note: '{hub.name}': a line of PRINT\n")
    # Whatever the driver sends by itself, the script comes as it is printed, in one batch, and once.
    assert [batch for batch in hub.batches if batch == queries()] == [queries()]
    (login,) = hub.logins
    assert (login.user, login.password, login.database) == ("reader", PASSWORD, "master")
    assert not login.is_read_only
    export(capsys, tmp_path / "new", hub, options=(*LOGIN, "--read-intent"))
    assert hub.logins[1].is_read_only
    # Nothing else stays in the folder.
    assert [path.name for path in (tmp_path / "new").iterdir()] == [file.name]


@pytest.mark.usefixtures("plain")
def test_check_answers_as_from_files(capsys: pytest.CaptureFixture[str], serving: Serving) -> None:
    shop, down = serving(recorded(SHOP)), serving(refusal=Fault(18456, "Login failed for user 'reader'.", 14))
    of_files = ["check", str(EXAMPLES / "STOCK"), str(SHOP), "--format", "json"]
    assert cli.main(of_files) == 0
    expected = json.loads(capsys.readouterr().out)
    of_server = ["check", str(EXAMPLES / "STOCK"), "--server", shop.name, *LOGIN, "--format", "json"]
    assert cli.main(of_server) == 0
    answer, err = capsys.readouterr()
    assert json.loads(answer) == expected
    closing = "8 files read, 0 skipped, 0 rows refused\n"
    assert err == closing

    # A server that is not read is a note of the answer, and another exit code.
    note = f"'{down.name}' cannot be read: Login failed for user 'reader'. (see --authentication and --user)"
    assert cli.main([*of_server, "--server", down.name]) == 3
    answer, err = capsys.readouterr()
    assert json.loads(answer) == {**expected, "notes": [note, *expected["notes"]]}
    assert err == f"note: {note}\n{closing}"
    assert cli.main([*of_server, "--server", down.name, "--fail-on", "delayed"]) == 1
    capsys.readouterr()
    # Without any server there is nothing to say.
    assert cli.main(["check", "--server", down.name, *LOGIN]) == 2
    assert capsys.readouterr() == ("", f"sbroute: {note}\n")
    assert cli.main(["check"]) == 2
    assert "--server NAME" in capsys.readouterr().err


@pytest.mark.usefixtures("plain")
def test_unreadable_parts_are_noted_and_the_rest_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, serving: Serving
) -> None:
    first, second = recorded(SHOP)[:2]
    names = [name for name, _ in first.columns]
    cut = Rows(first.columns, first.rows, Fault(3930, f"the password is {PASSWORD}"))
    many = Rows([("view_name", "text"), ("name", "text")], [("routes", "x" * 3_000)] * 20)
    dead = TdsServer(queries())
    with dead:
        pass
    servers = {
        "whole": serving([first, second]),
        "an error between": serving([first, Fault(916, "The server principal is not able"), second]),
        "an error within": serving([second, cut]),
        "a connection that ends": serving([first, many, Drop(missing=9_000)]),
        "no answer": serving([first, Pause(30), second]),
        "nobody": dead,
    }
    earlier = tmp_path / f"127.0.0.1_{dead.port}.csv"
    earlier.write_text("of yesterday", encoding="utf-8")
    started = time.monotonic()
    status, out, err = export(capsys, tmp_path, *servers.values(), options=(*LOGIN, "--time-limit", "1"))
    # All at once, and none longer than its limit.
    assert time.monotonic() - started < 4
    assert status == 3
    exports = dict(zip(servers, json.loads(out)["servers"], strict=True))
    sets = {name: one["result_sets"] for name, one in exports.items()}
    # After an error the ODBC library goes on with what follows, its successor does not.
    assert sets.pop("an error between") in (1, 2)
    assert sets == {"whole": 2, "an error within": 1, "a connection that ends": 1, "no answer": 1, "nobody": 0}
    unread = {name: " ".join(one["unread"]) for name, one in exports.items()}
    assert unread["whole"] == ""
    assert "was only partly read: The server principal is not able" in unread["an error between"]
    assert unread["an error within"].endswith("was only partly read: the password is …")
    assert "was only partly read: " in unread["a connection that ends"]
    assert "was only partly read: " in unread["no answer"]
    assert unread["nobody"].endswith(f"; '{earlier}' is from an earlier export")
    assert err.count("note: ") == 6
    assert "are the same instance 'SHOP'" in err
    assert earlier.read_text(encoding="utf-8") == "of yesterday"
    # What broke off is not in the file: its view would be taken as read to the end.
    text = (tmp_path / f"127.0.0.1_{servers['a connection that ends'].port}.csv").read_text(encoding="utf-8-sig")
    assert text.count("view_name") == 1
    assert text.startswith(",".join(names))


def test_no_connection_without_encryption(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(server_options.PASSWORD_VARIABLE, PASSWORD)
    server = serving(recorded(SHOP))
    status, out, err = export(capsys, tmp_path, server, options=(*LOGIN, "--trust-server-certificate"))
    assert (status, out) == (2, "")
    assert "(no connection is made without encryption)" in err
    assert server.logins == []


def test_a_certificate_must_be_trusted_by_default(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(server_options.PASSWORD_VARIABLE, PASSWORD)
    server = serving(recorded(SHOP), certificate=_certificate(tmp_path))
    status, out, err = export(capsys, tmp_path / "new", server)
    assert (status, out) == (2, "")
    assert "add --trust-server-certificate" in err
    assert server.logins == []
    status, out, _ = export(capsys, tmp_path / "new", server, options=(*LOGIN, "--trust-server-certificate"))
    assert (status, json.loads(out)["servers"][0]["rows"]) == (0, 27)
    assert server.logins[0].password == PASSWORD


def _certificate(folder: Path) -> tuple[str, str]:
    """A certificate that nobody has signed, and its key."""
    from datetime import datetime, timedelta, timezone

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub.example")])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    files = folder / "hub.pem", folder / "hub.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    return str(files[0]), str(files[1])


@pytest.mark.usefixtures("plain")
def test_servers_are_read_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path, serving: Serving) -> None:
    first = recorded(SHOP)[:1]
    servers = [serving([*first, Pause(0.5)]) for _ in range(4)]
    started = time.monotonic()
    status, out, _ = export(capsys, tmp_path, *servers)
    assert time.monotonic() - started < 1.8
    assert (status, [one["result_sets"] for one in json.loads(out)["servers"]]) == (0, [1] * 4)


def test_a_driver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    release = threading.Event()

    def hang(server: str, *_: object) -> tuple[list[str], list[str]]:
        if server == "SLOW":
            release.wait(30)
        return [], []

    monkeypatch.setattr(server_exports, "run_script", hang)
    done = export_servers(["FIRST", "SLOW", "LAST"], ServerAccess(), "SELECT 1", tmp_path, 0, grace=0.3)
    release.set()
    assert [(one.server, one.is_given_up, one.file is not None) for one in done.exports] == [
        ("FIRST", False, True),
        ("SLOW", True, False),
        ("LAST", False, True),
    ]
    assert done.unread == ["'SLOW' cannot be read: no answer within 0.3 s (see --time-limit)"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["FIRST.csv", "LAST.csv"]


def test_the_process_does_not_wait_for_a_thread_that_hangs() -> None:
    code = """
import sys, threading, time
from routing import __main__, cli
def main(progress):
    progress.is_stuck = True
    threading.Thread(target=time.sleep, args=(60,)).start()
    print("the answer")
    return 3
cli.main = main
__main__.script()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "the answer\n", "")


def test_an_interrupted_export_leaves_no_folder(tmp_path: Path) -> None:
    with server_exports.scratch_folder(tmp_path) as folder:
        Path(folder, "HUB.csv.part").write_text("a", encoding="utf-8")
        server_exports.remove_scratch()
        assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("server", "instance", "note"),
    [
        ("HUB", "HUB", None),
        ("hub.shop.example", "HUB", None),
        ("tcp:HUB,1435", "HUB", None),
        ("HUB\\SALES", "hub\\sales", None),
        ("HUB,1435", "HUB\\SALES", None),
        ("127.0.0.1,1435", "HUB", None),
        ("(local)\\SALES", "HUB\\SALES", None),
        ("HUB", None, None),
        ("LISTENER", "NODE2", "'LISTENER' connected to the instance 'NODE2'"),
        ("HUB", "HUB\\SALES", "'HUB' connected to the instance 'HUB\\SALES'"),
        ("HUB\\SALES", "HUB\\STOCK", "'HUB\\SALES' connected to the instance 'HUB\\STOCK'"),
    ],
)
def test_the_name_is_compared_with_the_instance(server: str, instance: str | None, note: str | None) -> None:
    done = ServersExport([ServerExport(server, instance_name=instance)])
    assert done.notes == ([] if note is None else [note])


def test_files_of_servers_have_different_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server_exports, "run_script", lambda *_: ([], []))
    names = ["HUB", "tcp:hub,1433", "HUB_1433", "HUB\\SALES", "../x", "größe", "(local)\\A"]
    done = export_servers(names, ServerAccess(), "SELECT 1", tmp_path, 5)
    assert [one.file.name for one in done.exports if one.file] == [
        *("HUB.csv", "hub_1433.csv", "HUB_1433-2.csv", "HUB$SALES.csv", "x.csv", "größe.csv", "local_$A.csv")
    ]


def test_connection_strings_of_each_authentication() -> None:
    login = ServerAccess("sql", "a;b", "p}q;Encrypt=no").connection_string("HUB\\SALES,1435")
    assert login.endswith("UID={a;b};PWD={p}}q;Encrypt=no};")
    strings = {
        authentication: ServerAccess(authentication).connection_string("HUB")
        for authentication in driver.AUTHENTICATIONS
    }
    for text in strings.values():
        assert text.startswith("Server={HUB};Database=master;ConnectRetryCount=0;Encrypt=yes;")
        assert "ApplicationIntent" not in text
        assert "TrustServerCertificate" not in text
    assert "Trusted_Connection=yes;" in strings["windows"]
    assert "Authentication=ActiveDirectoryDefault;" in strings["entra"]
    assert "Authentication=ActiveDirectoryInteractive;" in strings["entra-interactive"]
    string = ServerAccess(trusts_certificate=True, has_read_intent=True).connection_string("HUB")
    assert "TrustServerCertificate=yes;ApplicationIntent=ReadOnly;" in string
    assert "Hunter2" not in repr(ServerAccess("sql", "reader", PASSWORD))


@pytest.mark.usefixtures("loaded_driver")
def test_the_password_comes_from_the_environment_or_a_prompt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str) -> str:
        assert cli.main(["export", *words, "--out", "/nowhere/new", "--verbose"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "unter2" not in err
        return err.splitlines()[-1]

    monkeypatch.delenv(server_options.PASSWORD_VARIABLE, raising=False)
    assert "set the environment variable SBROUTE_SQL_PASSWORD" in said("--server", "HUB", *LOGIN)
    assert "needs --user" in said("--server", "HUB", "--authentication", "sql")
    assert "--user is the login" in said("--server", "HUB", "--user", "reader")
    for name in (f"Server=HUB;Password={PASSWORD}", f"HUB;PWD={PASSWORD}", "", "HUB\n"):
        assert "--server takes the name of a server (" in said("--server", name)

    asked: list[str] = []
    prompts: list[object] = []

    def refuse(*values: object, **_: object) -> NoReturn:
        prompts.extend(values)
        raise InputError("not now")

    def answer(text: str) -> str:
        asked.append(text)
        return PASSWORD

    monkeypatch.setattr("getpass.getpass", answer)
    monkeypatch.setattr(server_options, "ServerAccess", refuse)
    monkeypatch.setattr(sys, "stdin", _Terminal())
    assert said("--server", "HUB", *LOGIN) == "sbroute: not now"
    assert (asked, prompts) == (["Password of reader: "], ["sql", "reader", PASSWORD])


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_missing_driver_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mssql_python", None)
    assert cli.main(["check", "--server", "HUB"]) == 2
    assert (
        "the Python package mssql-python is missing (in a clone: pip install '.[server]')"
        in capsys.readouterr().err
    )


def test_values_survive_a_round_trip(tmp_path: Path) -> None:
    """A script need not put its texts in quotes."""
    values = {
        "name": 'a, "b"',
        "remote_service_name": "two\nlines",
        "broker_instance": " blanks ",
        "lifetime": None,
        "address": "",
        "mirror_address": "NULL",
        "owner_sid": b"\x01\xff",
        "is_on": True,
        "guid": UUID("a1a1a1a1-0000-4000-8000-00000000000a"),
    }
    with closing(ResultFile(tmp_path / "a.csv")) as results:
        results.begin(list(values))
        results.add([list(values.values())])
        results.end()
        results.begin(["name"])
        results.add([["half of a set"], ["\ud800"]])
        results.drop()
        results.begin(["name", "x"])
        results.add([["half \ud800", 1]])
        results.end()
    text = (tmp_path / "a.csv").read_text(encoding="utf-8-sig", errors="surrogatepass")
    first, second = result_sets(text, "a.csv", None)
    read = first.rows.row(0)
    assert {name: read[name] for name in list(values)[:6]} == {name: values[name] for name in list(values)[:6]}
    assert text.splitlines()[3].endswith(",0x01FF,1,A1A1A1A1-0000-4000-8000-00000000000A")
    assert second.rows.row(0)["name"] == "half \ud800"
    assert (results.sets, results.rows) == (2, 2)


def test_the_script_is_one_batch() -> None:
    assert not any(line.strip().upper() == "GO" or line.startswith(":") for line in queries().splitlines())
