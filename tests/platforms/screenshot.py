"""Make the picture of the demo's page that the README shows: `make screenshot`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from routing import cli
from tests.demo_runs import store_demo_runs
from tests.platforms.browser import ROOT, browser
from tests.platforms.shown_page import wait_for_script

PICTURE = ROOT / "docs" / "images" / "report.png"
NOW = "2026-01-07T09:00:00Z"


def write_demo_page(folder: Path) -> Path:
    """Write the page of the demo's last run, with its tables and configuration in the same folder."""
    file = folder / "report.html"
    config = store_demo_runs(folder / "sbroute-demo")
    status = cli.main(["report", "--config", str(config), "--out", str(file), "--now", NOW, "--quiet"])
    if status != 0:
        raise SystemExit(status)
    return file


def main() -> None:
    """Write the picture of a wide window, extended a little below."""
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as shown:
        shown.open(write_demo_page(Path(folder)), height=1150)
        wait_for_script(shown)
        shown.picture(PICTURE, whole=False)
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
