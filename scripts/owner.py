"""Put the account on the code host into pyproject.toml and everywhere that an address of the project is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = "service-broker-routing"


def current_owner() -> str:
    """Return the account that pyproject.toml names."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf'^Source = "https://github\.com/([\w-]+)/{PROJECT}"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("pyproject.toml: [project.urls] has no Source")
    return found[1]


def addresses_of(owner: str) -> re.Pattern[str]:
    """Return the pattern of the project's addresses; its group is the account."""
    return re.compile(
        rf"(?<=https://github\.com/)({owner})(?=/{PROJECT})|(?<=https://)({owner})(?=\.github\.io/{PROJECT})"
    )


def main(owner: str) -> None:
    """Replace the account in every tracked file."""
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?", owner):
        raise SystemExit(f"{owner!r} is no account name")
    pattern = addresses_of(current_owner())
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in listed.stdout.rstrip("\0").split("\0"):
        path = ROOT / name
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        changed = pattern.sub(owner, text)
        if changed != text:
            path.write_text(changed, encoding="utf-8", newline="")
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        raise SystemExit("usage: make owner OWNER=name")
    main(sys.argv[1])
