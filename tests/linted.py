"""``sbroute lint --fail-under`` over the small estate, whichever engine resolves its messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routing import cli
from tests.golden_texts import assert_golden
from tests.stored import config_text


def assert_lint_of_stored(inputs: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Assert the golden findings and coverage, and return the output on standard error."""
    file = folder / "job.yaml"
    file.write_text(config_text(inputs, folder / "out"), encoding="utf-8")
    line = f"lint --config {file} --now 2026-01-05T12:00:00Z --format json --verbose --fail-under 100"
    # No message takes route Ask: it only says that routes can be asked for.
    assert cli.main(line.split()) == 1
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert_golden("lint_stored.json", json.dumps(json.loads(out), indent=1, ensure_ascii=False))
    assert not (folder / "out").exists()
    return err
