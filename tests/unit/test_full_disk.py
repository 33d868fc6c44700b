"""Commands on a full disk, on a read-only disk, and in another user's folder.

Each ends with exit code 2 and names the place and the cause. Once there is space, the same command succeeds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml

from routing import cli
from tests.estate_rows import small_estate
from tests.small_disks import full, nearly_full, of_somebody_else, read_only, small_disk
from tests.stored import save_job

EXAMPLES = Path(__file__).parents[2] / "conf" / "examples"
OUTPUTS = (
    *("resolved_routes", "new_route_requests", "rejected_messages", "runs"),
    *("message_paths", "reconciliation", "pending_messages"),
)


@pytest.fixture
def disk() -> Iterator[Path]:
    """Mount a small disk."""
    with small_disk() as place:
        yield place


FAULTS = [
    (full, "No space left on device", "run again once there is free space"),
    (nearly_full, "No space left on device", "run again once there is free space"),
    (read_only, "Read-only file system", "run again once the file system is mounted read-write"),
    (of_somebody_else, "Permission denied", "run again once this user has write permission"),
]


def commands(folder: Path, disk: Path) -> dict[str, list[str]]:
    """Return commands that read from a folder and write to a disk, by the name in each one's error."""
    job = save_job(small_estate() | {"observed_routing": []}, folder)
    config = yaml.safe_load(job.read_text(encoding="utf-8"))
    config["output"] = {key: f"{disk}/{key}" for key in OUTPUTS}
    job.write_text(yaml.safe_dump(config), encoding="utf-8")
    to_import = folder / "import.yaml"
    imported = (EXAMPLES / "import.yaml").read_text(encoding="utf-8").replace("../../build/demo-import", str(disk))
    to_import.write_text(imported, encoding="utf-8")
    of_job = ["--config", str(job)]
    return {
        f"{disk}/data/imports": ["import", "catalog", str(EXAMPLES / "exports"), "--config", str(to_import)],
        f"{disk}/": ["resolve", "--engine", "local", *of_job],
        f"{disk}/message_paths": ["trace", "--all", *of_job],
        f"{disk}/reconciliation": ["reconcile", *of_job],
        f"{disk}/diff": ["diff", "--against-time", "2026-01-05T00:00:00Z", "--out", f"{disk}/diff", *of_job],
        f"{disk}/report.html": ["report", "--out", f"{disk}/report.html", *of_job],
        f"{disk}/check.html": ["check", str(EXAMPLES / "exports"), "--html", f"{disk}/check.html"],
    }


@pytest.mark.parametrize(("fault", "cause", "hint"), FAULTS, ids=[fault.__name__ for fault, *_ in FAULTS])
def test_a_fault_of_the_disk_is_named(
    fault: Callable[[Path], AbstractContextManager[None]],
    cause: str,
    hint: str,
    disk: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place, command in commands(disk.parent, disk).items():
        if "report" in command:
            assert cli.main(["resolve", "--engine", "local", *command[-2:]]) == 0
        capsys.readouterr()
        with fault(disk):
            status = cli.main([*command, "--quiet"])
        err = " ".join(capsys.readouterr().err.split())
        assert status == 2, (command, err)
        assert place in err
        assert cause in err
        assert hint in err
        assert cli.main([*command, "--quiet"]) == 0, (command, capsys.readouterr().err)
        for left in disk.iterdir():
            subprocess.run(["rm", "-rf", str(left)], check=True)
