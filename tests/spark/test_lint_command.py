"""``sbroute lint`` as a user runs it: one line of JSON, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routing import cli
from tests.golden_texts import assert_golden
from tests.stored import config_text


def test_lint_from_tables(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(config_text(stored, tmp_path), encoding="utf-8")
    line = f"lint --config {file} --now 2026-01-05T12:00:00Z --format json --quiet --fail-under 100"
    # No message takes route Ask: it only says that routes can be asked for.
    assert cli.main(line.split()) == 1
    out, _ = capsys.readouterr()
    assert out.count("\n") == 1
    assert_golden("lint_stored.json", json.dumps(json.loads(out), indent=1, ensure_ascii=False))
