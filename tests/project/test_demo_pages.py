"""What the pages show of the demo's tables is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing import cli
from routing.demo.build import claim, settings, write_tables
from tests.pages import ROOT, excerpt

LABELS = ROOT / "conf" / "examples" / "labels.sql"
SHOWN = {
    "trace": (["trace", "--message-id", "d00263-i0", "--instance", "depot-east"], 0),
    "hazard": (["trace", "--message-id", "sent", "--instance", "two-open-routes/ServerA"], 0),
    "diff": (
        [
            *("diff", "--with-script", str(LABELS), "--instance", "depot-east"),
            *("--at", "2026-01-05T12:00Z", "--fail-on", "delayed,dropped"),
        ],
        1,
    ),
}
PAGES = [
    ("docs/how-to/trace.md", "trace"),
    ("README.md", "trace"),
    ("docs/how-to/trace.md", "hazard"),
    ("README.md", "diff"),
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the demo was built."""
    folder = tmp_path_factory.mktemp("built")
    claim(folder / "sbroute-demo")
    write_tables(settings(folder / "sbroute-demo", []), None)
    return folder


def test_pages_show_what_is_printed(
    demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(demo)
    printed = {}
    for name, ((command, *options), status) in SHOWN.items():
        assert cli.main([command, "--config", "sbroute-demo/demo.yaml", *options]) == status
        lines = capsys.readouterr().out.splitlines()
        printed[name] = "".join(f"{line.rstrip()}\n" for line in lines)
    assert {(page, name): excerpt(page, name) for page, name in PAGES} == {
        (page, name): printed[name] for page, name in PAGES
    }
