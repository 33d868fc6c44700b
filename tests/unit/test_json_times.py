"""Times in the JSON of commands that ask stored tables: one form, ISO 8601 with Z."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routing import cli
from tests.estate_rows import small_estate
from tests.stored import save_job
from tests.unit.test_messages_command import made

TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(\S{1,6}?)[\"', ;.:)]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with the outputs of a run, and another estate. Tests must not change it."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "listed").mkdir()
    made(folder / "listed")
    save_job(small_estate(), folder)
    (folder / "change.sql").write_text("USE Sales; DROP ROUTE Far;", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "explain --config job.yaml --message-id m1",
        "trace --config job.yaml --message-id m1",
        "trace --config job.yaml --all --set output.message_paths=paths",
        "messages --config listed/job.yaml",
        "diff --config job.yaml --against-time 2026-01-06",
        "diff --config job.yaml --with-script change.sql --instance hub",
        "resolve --config job.yaml --engine local",
        "lint --config job.yaml",
    ],
)
def test_a_time_in_json_ends_in_z(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main([*line.split(), "--format", "json"]) in (0, 1)
    out = capsys.readouterr().out
    assert "+00:00" not in out
    times = TIME.findall(out)
    assert set(times) <= {"Z"}
    if not line.startswith(("trace --config job.yaml --all", "lint")):
        assert times
