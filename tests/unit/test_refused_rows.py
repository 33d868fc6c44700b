"""Unreadable rows of a queue and files with a guessed encoding are always reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routing import cli

HANDLE, OTHER = "932ab1c3-b6a1-af71-0c2a-bdd44551d9cd", "0cf76918-ed9f-dcc8-6087-647fab8d5311"
QUEUE = "conversation_handle;to_service_name;enqueue_time;message_sequence_number;transmission_status\n"
ENDS = f"conversation_handle;conversation_id;is_initiator;lifetime\n{HANDLE};{OTHER};1;14:07,0\n"


def check(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    status = cli.main(["check", str(folder), "--instance", "HUB", "--database", "Shop", *options])
    printed = capsys.readouterr()
    return status, " ".join(printed.out.split()), printed.err


def write(folder: Path, *rows: str) -> None:
    (folder / "sys.transmission_queue.csv").write_text(QUEUE + "".join(row + "\n" for row in rows), "utf-8")
    (folder / "sys.conversation_endpoints.csv").write_text(ENDS, "utf-8")


def test_the_outcome_of_a_refused_row_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "no handle;//a;2026-01-05 10:00:00;0;", f"{HANDLE};//a;soon;1;")
    status, out, err = check(tmp_path, capsys, "--fail-on", "not-known")
    assert status == 1
    assert out.startswith(
        "2 rows of the transmission queues cannot be read: the outcome of their messages is not known."
    )
    assert "No message waits" not in out
    assert err.splitlines()[-1] == "2 files read, 0 skipped, 2 rows refused"
    assert json.loads(check(tmp_path, capsys, "--format", "json")[1])["refused_messages"] == 2


@pytest.mark.parametrize("text", ["", "a;b\n1;2\n", "Msg 229, Level 14, State 5, Line 1\nDenied.\n"])
def test_an_unread_file_of_a_queue_is_unknown(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    (tmp_path / "transmission_queue Stock.txt").write_text(text, "utf-8")
    status, out, err = check(tmp_path, capsys, "--fail-on", "not-known")
    assert (status, "No message waits" in out) == (1, False)
    assert out.replace(" ", "").startswith(
        f"Thequeuein'{tmp_path}/transmission_queueStock.txt'cannotberead:".replace(" ", "")
    )
    assert "the outcome of its messages is not known." in out
    assert err.splitlines()[-1].endswith("1 skipped, 0 rows refused")
    done = json.loads(check(tmp_path, capsys, "--format", "json")[1])
    # The number of its rows is not known.
    assert done["refused_messages"] == 0
    assert done["unread_queues"] == [f"{tmp_path}/transmission_queue Stock.txt"]
    assert "Stock.txt:notread" in out.replace(" ", "").partition("rejected:")[2]


def test_a_message_whose_time_a_spreadsheet_lost_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, f"{HANDLE};//a;40:15,9;0;")
    _, out, _ = check(tmp_path, capsys)
    assert "1 message in the transmission queues" in out
    assert "waiting: for an unknown time" in out
    [group] = json.loads(check(tmp_path, capsys, "--format", "json")[1])["groups"]
    assert (group["oldest"], group["messages"][0]["enqueue_time"]) == (None, None)


def test_scripts_in_a_code_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def lint(name: str, encoding: str, *options: str) -> tuple[str, str]:
        text = f"USE Shop;\nGO\nCREATE ROUTE [{name}] WITH ADDRESS = 'TCP://far';\n"
        (tmp_path / "r.sql").write_bytes(text.encode(encoding))
        cli.main(["lint", str(tmp_path / "r.sql"), *options])
        printed = capsys.readouterr()
        return " ".join(printed.out.split()), printed.err

    out, err = lint("\u0444\u0438\u043b", "cp1251")
    assert "line 3: read as Windows-1252, since it is not UTF-8 (--encoding names another)" in err
    out, err = lint("\u0444\u0438\u043b", "cp1251", "--encoding", "cp1251")
    assert "Shop.\u0444\u0438\u043b: " in out
    assert "Windows-1252" not in err
    # 0x94 in Windows-1252 is a quotation mark.
    out, err = lint("St\u00f6ck", "cp850")
    assert "SBR031" not in out
    assert "contains a character that cannot be read in its encoding" in err
