"""The zip for ``--py-files``: a bare Python runs the job from it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackagePath
from pathlib import Path
from typing import Any

import pytest

from tests.project.platform_checks import EMR, PYPROJECT, ROOT


def package_script() -> Any:
    spec = importlib.util.spec_from_file_location("emr_package", EMR / "package.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with the package's files and the requirements of pyproject.toml."""
    needed = re.findall(r'"(.+?)"', re.findall(r"^dependencies = \[(.+)\]$", PYPROJECT, re.MULTILINE)[0])
    requires = "".join(f"Requires-Dist: {line}\n" for line in [*needed, 'pyspark==4.1.4; extra == "local"'])
    path = tmp_path / "service_broker_routing-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as built:
        for file in sorted((ROOT / "routing").rglob("*.py*")):
            if file.suffix == ".pyc":
                continue
            built.write(file, file.relative_to(ROOT))
        info = "service_broker_routing-1.2.3.dist-info/METADATA"
        built.writestr(info, f"Metadata-Version: 2.4\nName: service-broker-routing\nVersion: 1.2.3\n{requires}")
    return path


def test_a_bare_python_runs_the_job_from_the_zip(wheel: Path, tmp_path: Path) -> None:
    packed = tmp_path / "out" / "sbroute.zip"
    libraries = package_script().pack(wheel, packed)
    assert list(libraries) == ["markdown-it-py", "mdurl", "packaging", "pygments", "pyyaml", "rich", "sqlglot"]
    assert [name for name in zipfile.ZipFile(packed).namelist() if name.endswith((".so", ".pyd", ".pyc"))] == []

    def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
        # -S: no installed library is found, only the zip.
        command = [sys.executable, "-S", *arguments]
        environment = {"PYTHONPATH": str(packed), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    ended = bare(str(ROOT / "jobs/resolve.py"), "--config", "absent.yaml")
    assert ended.returncode == 2
    assert "'absent.yaml' cannot be read" in ended.stderr
    loaded = bare("-c", f"from routing import config, render; config.load({str(ROOT / 'conf/emr.yaml')!r})")
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert bare("-m", "routing", "--version").stdout == "sbroute 1.2.3\n"


def test_equal_content_gives_an_equal_zip(wheel: Path, tmp_path: Path) -> None:
    script = package_script()
    for name in ("one", "two"):
        script.pack(wheel, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_library_with_compiled_code_is_refused() -> None:
    class Compiled:
        files = (PackagePath("fast/_speed.so"),)

    with pytest.raises(ValueError, match="fast holds compiled code"):
        package_script().files_of("fast", Compiled())


def test_packing_without_a_wheel_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert package_script().main(tmp_path) == 2
    assert "run make wheel" in capsys.readouterr().err


def test_packing_takes_the_only_wheel_and_names_what_is_in_the_zip(
    wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = package_script()
    (tmp_path / "dist").mkdir()
    shutil.copy(wheel, tmp_path / "dist")
    assert script.main(tmp_path) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"build/emr/sbroute.zip: {wheel.name} with markdown-it-py ")
    assert zipfile.is_zipfile(tmp_path / "build/emr/sbroute.zip")
    shutil.copy(wheel, tmp_path / "dist" / "another.whl")
    assert script.main(tmp_path) == 2
