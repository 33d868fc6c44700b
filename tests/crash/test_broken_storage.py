"""A corrupt log or a missing file gives exit code 3, a full disk gives 2. The tables stay unchanged."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing import cli
from tests.crash.estate import NOW, Case, copied, run_ids


def _fails(case: Case, capsys: pytest.CaptureFixture[str], code: int = 3) -> str:
    """Run the command, which must end with an exit code and print one sentence, and return that."""
    assert cli.main(["resolve", "--config", str(case.file), "--quiet", "--now", NOW.isoformat()]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sbroute: the run failed while ")
    assert err.count("\n") == 1
    return err


def _newest_log(table: Path) -> Path:
    return max((table / "_delta_log").glob("*.json"))


@pytest.mark.parametrize("table", ["out/resolved_routes", "out/runs", "in/messages"])
def test_a_corrupted_log(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str) -> None:
    broken = copied(case, tmp_path / "case")
    log = _newest_log(broken.folder / table)
    log.write_text(log.read_text(encoding="utf-8")[:100] + "\n{", encoding="utf-8")
    # With a checksum file, the error would have other words.
    for checksum in log.parent.glob(f".{log.name}.crc"):
        checksum.unlink()
    _fails(broken, capsys)
    if table != "out/runs":
        assert run_ids(broken) == ["first"]


def test_a_missing_file(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file belongs to the new messages, and no maintenance has replaced it."""
    broken = copied(case, tmp_path / "case")
    newest = max((broken.folder / "in" / "messages").glob("*.parquet"), key=lambda file: file.stat().st_mtime)
    newest.unlink()
    _fails(broken, capsys)
    assert run_ids(broken) == ["first"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of one megabyte, which only root may do."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(case: Case, small_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = copied(case, small_disk / "case")
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(b"x" * max(free - 20_000, 0))
    # The exit code is 2, because the fault lasts until somebody frees space.
    err = _fails(full, capsys, 2)
    assert "space" in err, err
    assert run_ids(full) == ["first"]
    (small_disk / "ballast").unlink()
    assert cli.main(["resolve", "--config", str(full.file), "--quiet", "--now", NOW.isoformat()]) == 0
    assert len(run_ids(full)) == 2
