"""The pages on lint show code hosts and custom rules as the command handles them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from routing import cli
from tests.pages import ROOT

GATE, RULES, JSON_KEYS = (
    (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for page in ("how-to/pull-request-gate", "how-to/lint-rules", "reference/json")
)
SCRIPT = "CREATE ROUTE R WITH SERVICE_NAME = '//a', ADDRESS = 'TCP://old.example:4022';\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GATE + RULES, re.DOTALL)


def shown(key: str) -> dict[str, Any]:
    """The block of YAML that has a key at its top."""
    [found] = [read for block in blocks("yaml") if key in (read := yaml.safe_load(block))]
    return dict(found)


def installed(command: str) -> bool:
    return "service-broker-routing[check] @ git+https://" in command


def test_the_github_workflow_runs_lint() -> None:
    # YAML reads the word `on` as true.
    workflows = [read for block in blocks("yaml") if True in (read := yaml.safe_load(block))]
    [workflow] = [read for read in workflows if "lint" in read["jobs"]]
    steps = workflow["jobs"]["lint"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert installed(runs[0])
    command, _, file = runs[1].partition(" > ")
    asked = cli._parser().parse_all(shlex.split(command)[1:])
    assert (asked.command, asked.paths, asked.format, asked.fail_on) == ("lint", ["routes"], "sarif", "error")
    [upload] = [step for step in steps if step.get("uses", "").startswith("github/codeql-action/upload-sarif@")]
    assert upload["with"]["sarif_file"] == file
    assert upload["if"] == "success() || failure()"
    assert workflow["permissions"]["security-events"] == "write"


def test_the_gitlab_job_runs_lint() -> None:
    jobs = [yaml.safe_load(block).get("lint", {}) for block in blocks("yaml")]
    [job] = [job for job in jobs if "image" in job]
    assert installed(job["script"][0])
    command, _, file = job["script"][1].partition(" > ")
    asked = cli._parser().parse_all(shlex.split(command)[1:])
    assert (asked.command, asked.format) == ("lint", "junit")
    assert job["artifacts"] == {"when": "always", "reports": {"junit": file}}


def test_the_pre_commit_hook_runs_lint() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    [used] = shown("repos")["repos"][0]["hooks"]
    assert hook["id"] == used["id"]
    assert (hook["language"], hook["pass_filenames"]) == ("python", True)
    assert re.search(hook["files"], "routes/a.sql")
    assert not re.search(hook["files"], "routes/a.sql.md")
    for arguments in (hook["args"], used["args"]):
        asked = cli._parser().parse_all([*hook["entry"].split()[1:], *arguments, "a.sql", "b.sql"])
        assert (asked.command, asked.paths, asked.fail_on) == ("lint", ["a.sql", "b.sql"], "error")
    # What reads T-SQL comes with this extra.
    assert hook["additional_dependencies"] == [".[check]"]
    assert 'check = ["sqlglot"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_example_of_a_custom_rule_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [rules] = [block for block in blocks("python") if "routing.finding" in block]
    [section] = [block for block in blocks("yaml") if "shop_rules.py" in block]
    monkeypatch.chdir(tmp_path)
    for name, text in (("shop_rules.py", rules), ("lint.yaml", section), ("a.sql", SCRIPT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    arguments = ["lint", "a.sql", "--database", "Sales", "--config", "lint.yaml", "--format", "json"]
    assert cli.main([*arguments, "--fail-on", "error"]) == 1
    [found] = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["line"], found["advice"]) == ("SHOP001", 1, "point it at gate.example")
    assert found["message"] == "address 'TCP://old.example:4022' is the old gateway's"
    assert cli.main([*arguments, "--instance", "lab", "--fail-on", "error"]) == 0
    assert json.loads(capsys.readouterr().out)["suppressed"] == 1


def test_every_key_of_json_is_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.sql").write_text(SCRIPT, encoding="utf-8")
    assert cli.main(["lint", str(tmp_path), "--format", "json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert tuple(done) == (
        *("findings", "suppressed", "not_judged", "not_known", "rejected", "not_taken", "unread", "left_out"),
        "notes",
    )
    assert [key for key in done if f"`{key}`" not in JSON_KEYS] == []
