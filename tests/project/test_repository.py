"""The top-level files of the repository: addresses, forms, the workflow, and the image for Kubernetes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RELEASE = version("service-broker-routing")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [name for name in listed.rstrip("\0").split("\0") if (ROOT / name).is_file()]


def addresses(content: str) -> set[str]:
    found = re.findall(
        r"https://github\.com/([\w-]+)/service-broker-routing|https://([\w-]+)\.github\.io/service-broker", content
    )
    return {first or second for first, second in found}


def test_every_address_of_the_project_has_the_account_of_pyproject() -> None:
    [owner] = addresses(text("pyproject.toml"))
    others = {}
    for name in tracked():
        try:
            found = addresses(text(name))
        except UnicodeDecodeError:
            continue
        if found and not name.startswith("tests/"):
            others[name] = found
    assert {"README.md", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"} <= others.keys()
    assert all(found == {owner} for found in others.values()), others


def test_one_command_fills_in_the_account(tmp_path: Path) -> None:
    names = ["pyproject.toml", "README.md", ".github/ISSUE_TEMPLATE/config.yml", "scripts/owner.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=tmp_path, check=True)
    script = [sys.executable, "scripts/owner.py"]
    assert subprocess.run([*script, "no name"], cwd=tmp_path, capture_output=True, check=False).returncode == 1
    subprocess.run([*script, "some-body"], cwd=tmp_path, check=True, capture_output=True)
    for name in names[:3]:
        assert addresses((tmp_path / name).read_text(encoding="utf-8")) == {"some-body"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_has_what_the_code_host_asks_for(form: Path) -> None:
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    if form.stem == "config":
        assert {"blank_issues_enabled", "contact_links"} == content.keys()
        assert all({"name", "url", "about"} == link.keys() for link in content["contact_links"])
        return
    assert {"name", "description", "body"} <= content.keys()
    ids = [field["id"] for field in content["body"]]
    assert len(ids) == len(set(ids))
    for field in content["body"]:
        assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]


def test_a_form_asks_for_the_output_of_check() -> None:
    assert any("sbroute check" in form.read_text(encoding="utf-8") for form in FORMS)


def test_the_workflow_runs_what_the_readme_says() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    targets = set(re.findall(r"^([a-z0-9-]+):", text("Makefile"), re.MULTILINE))
    assert all(command == ".ci/run" or command.removeprefix("make ") in targets for command in commands)
    assert "actions/workflows/ci.yml/badge.svg" in text("README.md")


def test_the_image_for_kubernetes_is_made_of_what_exists() -> None:
    """The image itself was not built: no machine of the tests has a builder."""
    lines = text("deploy/kubernetes/Dockerfile")
    [copied] = re.findall(r"^COPY (.+) /tmp/$", lines, re.MULTILINE)
    lock, wheel = copied.split()
    assert (ROOT / lock).is_file()
    assert wheel == f"dist/service_broker_routing-{RELEASE}-py3-none-any.whl"
    assert lines.count(f"service_broker_routing-{RELEASE}-py3") == 2
    assert f"sbroute:{RELEASE}" in lines
    [python] = re.findall(r"^FROM python:(3\.\d+)-slim-bookworm$", lines, re.MULTILINE)
    assert f'"Programming Language :: Python :: {python}"' in text("pyproject.toml")
    extras = {extra for found in re.findall(r"EXTRA=([\w,]+)", lines) for extra in found.split(",")}
    assert extras == {"import", "local"}
    assert all(re.search(rf"^{extra} = \[", text("pyproject.toml"), re.MULTILINE) for extra in extras)
    [image] = set(re.findall(r"image: (\S+)", text("deploy/kubernetes/job.yaml")))
    assert image.endswith(f"/sbroute:{RELEASE}")


def test_the_pins_of_the_image_are_those_of_the_lock(tmp_path: Path) -> None:
    [program] = re.findall(r"RUN (sed .+) /tmp/requirements.lock", text("deploy/kubernetes/Dockerfile"))
    done = subprocess.run(["sh", "-c", f"{program} requirements.lock"], cwd=ROOT, capture_output=True, check=True)
    pins = [line for line in done.stdout.decode().splitlines() if line]
    assert len(pins) == len(re.findall(r"^[\w.-]+(?:\[[\w,-]+\])?==", text("requirements.lock"), re.MULTILINE))
    assert all(re.fullmatch(r"[\w.-]+(\[[\w,-]+\])?==[^ \\]+( ; .+)?", pin) for pin in pins)


def test_names_of_the_wheel_have_the_version_of_the_project() -> None:
    pages = [name for name in tracked() if name.endswith((".md", ".yaml", ".yml", ".json", ".sh", "Dockerfile"))]
    named = {
        (page, release)
        for page in pages
        if page != "CHANGELOG.md" and not page.startswith("tests/")
        for release in re.findall(r"service_broker_routing-(\d[\w.]*?)-py3", text(page))
    }
    assert named
    assert {release for _, release in named} == {RELEASE}


def test_the_linter_and_the_editor_agree_on_the_length_of_lines() -> None:
    [ruff] = re.findall(r"^line-length = (\d+)$", text("pyproject.toml"), re.MULTILINE)
    [editor] = re.findall(r"^max_line_length = (\d+)$", text(".editorconfig"), re.MULTILINE)
    assert ruff == editor
