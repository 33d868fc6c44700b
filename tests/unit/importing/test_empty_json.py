"""Exports of a view without rows, as the tools write FOR JSON of nothing: the file's name tells the view."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from routing import cli
from routing.errors import InputError
from routing.importing.catalog.result_files import read_sources

HEADER = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B"
EXAMPLES = Path(__file__).parents[3] / "conf" / "examples"
OF_NOTHING = {
    "an empty file": "",
    "a blank line": "\n",
    "only what sqlcmd says of rows": "\n(0 rows affected)\n",
    "a header": f"{HEADER}\n{'-' * 40}\n\n(0 rows affected)\n",
    "NULL under a header": f"{HEADER}\n{'-' * 40}\nNULL\n\n(1 rows affected)\n",
    "NULL": "NULL\n",
    "null": "null",
    "an array": "[]",
    "an array in quotes": '"[]"',
    "an array over lines": "[\n]\n",
    "an array of null": "[null]",
    "two quotes": '""',
    "a root": '{"rows": []}',
}


@pytest.mark.parametrize("text", OF_NOTHING.values(), ids=OF_NOTHING)
def test_empty_json_is_an_empty_view(text: str, tmp_path: Path) -> None:
    file = tmp_path / "transmission_queue.json"
    file.write_text(text, encoding="utf-8")
    [part], notes, _ = read_sources([str(file)], None)
    assert (part.view.name, list(part.rows.rows), part.rows.rejected, notes) == ("transmission_queue", [], [], [])


@pytest.mark.parametrize("text", ["NULL", "[]", "null\n"])
def test_empty_json_is_read_with_any_file_extension(text: str, tmp_path: Path) -> None:
    file = tmp_path / "transmission_queue.txt"
    file.write_text(text, encoding="utf-8")
    [part], _, _ = read_sources([str(file)], None)
    assert (part.view.name, list(part.rows.rows)) == ("transmission_queue", [])


@pytest.mark.parametrize("text", ["NULL", "[]", ""])
def test_without_a_view_in_its_name_it_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "queue of today.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="neither its name nor its columns identify its view"):
        read_sources([str(file)], None)
    [part], _, _ = read_sources([str(file)], "transmission_queue")
    assert list(part.rows.rows) == []


def test_null_between_rows_is_rejected(tmp_path: Path) -> None:
    """Only a file that says nothing else is an empty view."""
    file = tmp_path / "transmission_queue.json"
    file.write_text('null\n{"conversation_handle": "x"}\n', encoding="utf-8")
    [part], _, _ = read_sources([str(file)], None)
    assert (len(part.rows.rows), len(part.rows.rejected)) == (1, 1)


@pytest.mark.parametrize("text", OF_NOTHING.values(), ids=OF_NOTHING)
def test_check_and_import_accept_empty_json(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exports = tmp_path / "exports"
    shutil.copytree(EXAMPLES / "exports", exports)
    (exports / "STOCK" / "transmission_queue.jsonl").write_text(text, encoding="utf-8")
    assert cli.main(["check", str(exports), "--quiet"]) in (0, 1), capsys.readouterr().err
    job = tmp_path / "job.yaml"
    config = (EXAMPLES / "import.yaml").read_text(encoding="utf-8").replace("../../build/demo-import/", "")
    job.write_text(config, encoding="utf-8")
    status = cli.main(["import", "catalog", str(exports), "--config", str(job), "--dry-run", "--quiet"])
    assert status == 0, capsys.readouterr().err
