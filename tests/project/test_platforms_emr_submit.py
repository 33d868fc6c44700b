"""The script that brings a run to EMR, against a stand-in for ``aws``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.project.aws_models import SAMPLES, filled
from tests.project.platform_checks import EMR, ROOT, S3, read_json

SCRIPT = EMR / "submit.sh"
VARIABLES = {**SAMPLES, "POLL_SECONDS": "0"}
# Notes its arguments and the files that they name; answers what the test says, the last answer again and again.
FAKE_AWS = """#!{python}
import json, os, pathlib, sys
key = " ".join(sys.argv[1:3])
notes = pathlib.Path(os.environ["AWS_NOTES"])
before = [json.loads(line) for line in notes.read_text().splitlines()]
files = [pathlib.Path(word[7:]).read_text() for word in sys.argv if word.startswith("file://")]
with notes.open("a") as out:
    out.write(json.dumps({{"key": key, "args": sys.argv[3:], "files": files}}) + "\\n")
answers = json.loads(os.environ["AWS_ANSWERS"]).get(key, [""])
answer = answers[min(sum(one["key"] == key for one in before), len(answers) - 1)]
sys.exit(255) if answer is None else print(answer)
"""

Ended = tuple[int, str, list[dict[str, Any]]]


@pytest.fixture
def submit(tmp_path: Path) -> Callable[..., Ended]:
    """Run a copy of the script, and return its exit code, its output and its calls of aws."""
    clone, tools, notes = tmp_path / "clone", tmp_path / "tools", tmp_path / "notes"
    for folder in ("deploy/emr", "jobs", "conf"):
        shutil.copytree(ROOT / folder, clone / folder)
    (clone / "build/emr").mkdir(parents=True)
    (clone / "build/emr/sbroute.zip").write_text("a zip")
    tools.mkdir()
    (tools / "aws").write_text(FAKE_AWS.format(python=sys.executable))
    (tools / "aws").chmod(0o755)

    def run(*arguments: str, answers: object = None, **variables: str | None) -> Ended:
        notes.write_text("")
        merged = {**VARIABLES, **variables}
        environment = {name: value for name, value in merged.items() if value is not None}
        environment["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
        environment |= {"AWS_NOTES": str(notes), "AWS_ANSWERS": json.dumps(answers or {})}
        ended = subprocess.run(
            ["bash", str(clone / "deploy/emr/submit.sh"), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        calls = [json.loads(line) for line in notes.read_text().splitlines()]
        return ended.returncode, ended.stdout + ended.stderr, calls

    return run


def option(call: dict[str, Any], name: str) -> str:
    return str(call["args"][call["args"].index(name) + 1])


def test_upload_brings_everything_that_the_jobs_name(submit: Callable[..., Ended]) -> None:
    code, _, calls = submit("upload")
    assert code == 0
    assert [call["key"] for call in calls] == ["s3 cp"] * 4
    copies = [(call["args"][-2], call["args"][-1]) for call in calls]
    assert [Path(source).name for source, _ in copies] == ["sbroute.zip", "import_.py", "resolve.py", "emr.yaml"]
    targets = {target.removeprefix(VARIABLES["SBROUTE_S3"] + "/") for _, target in copies}
    named = re.findall(re.escape(S3) + r"([\w./-]*\w)", "".join(p.read_text() for p in EMR.glob("*.json")))
    assert set(named) - {"logs", "exports"} == targets


def test_upload_takes_another_configuration(submit: Callable[..., Ended], tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("tables: {}")
    _, _, calls = submit("upload", SBROUTE_CONFIG=str(mine))
    assert calls[-1]["args"][-2:] == [str(mine), "s3://a-bucket/some/folder/conf/emr.yaml"]
    assert submit("upload", SBROUTE_CONFIG=str(tmp_path / "absent.yaml"))[0] == 2


def test_upload_refuses_a_zip_that_is_older_than_the_wheel(submit: Callable[..., Ended], tmp_path: Path) -> None:
    wheel = tmp_path / "clone" / "dist" / "some.whl"
    wheel.parent.mkdir()
    wheel.write_text("a wheel")
    for seconds, expected in ((-60, 0), (60, 2)):
        built = (tmp_path / "clone/build/emr/sbroute.zip").stat().st_mtime
        os.utime(wheel, (built + seconds, built + seconds))
        code, err, calls = submit("upload")
        assert (code, len(calls)) == (expected, 0 if expected else 4)
        assert ("newer than the zip" in err) is (expected == 2)


def test_a_run_on_serverless_is_started_and_waited_for(submit: Callable[..., Ended]) -> None:
    states = ["SUBMITTED", "RUNNING", "SUCCESS"]
    answers = {"emr-serverless start-job-run": ["run1"], "emr-serverless get-job-run": states}
    code, err, calls = submit("serverless", answers=answers)
    assert (code, err.splitlines()[-1]) == (0, "submit: ended as SUCCESS")
    waits = ["start-job-run", *["get-job-run"] * 3]
    assert [call["key"].split()[1] for call in calls] == [*waits, *waits[:2]]
    assert json.loads(calls[0]["files"][0]) == filled(read_json("serverless-import-job-run.json"))
    assert json.loads(calls[4]["files"][0]) == filled(read_json("serverless-job-run.json"))
    assert option(calls[0], "--query") == "jobRunId"
    assert [option(calls[1], name) for name in ("--application-id", "--job-run-id")] == ["00abc123", "run1"]


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_failed_run_on_serverless_is_exit_code_3_and_says_why(submit: Callable[..., Ended], state: str) -> None:
    answers = {"emr-serverless start-job-run": ["run1"], "emr-serverless get-job-run": [state, "the reason"]}
    code, err, calls = submit("serverless", answers=answers)
    assert (code, err.splitlines()[-1]) == (3, "submit: the reason")
    assert option(calls[-1], "--query") == "jobRun.stateDetails"


def test_steps_are_added_and_waited_for(submit: Callable[..., Ended]) -> None:
    answers = {"emr add-steps": ["s-1\ts-2"], "emr describe-step": ["PENDING", "COMPLETED"]}
    code, _, calls = submit("ec2", answers=answers)
    assert code == 0
    assert json.loads(calls[0]["files"][0]) == filled(read_json("ec2-step.json"))
    assert option(calls[0], "--cluster-id") == option(calls[1], "--cluster-id") == "j-2AXXXXXXGAPLF"
    assert [option(call, "--step-id") for call in calls[1:]] == ["s-1", "s-1", "s-2"]


def test_a_run_uses_the_given_id_or_makes_one(submit: Callable[..., Ended]) -> None:
    answers = {"emr add-steps": ["s-1"], "emr describe-step": ["COMPLETED"]}
    for run_id, pattern in (("airflow-7", "airflow-7"), (None, r"hand-\d{8}T\d{6}Z")):
        _, _, calls = submit("ec2", answers=answers, RUN_ID=run_id)
        arguments = json.loads(calls[0]["files"][0])[-1]["Args"]
        assert re.fullmatch(pattern, arguments[arguments.index("--run-id") + 1])
    assert submit("ec2", answers=answers, RUN_ID='a "b"')[0] == 2


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "INTERRUPTED"])
def test_a_failed_step_is_exit_code_3(submit: Callable[..., Ended], state: str) -> None:
    code, _, _ = submit("ec2", answers={"emr add-steps": ["s-1"], "emr describe-step": [state, "why"]})
    assert code == 3


def test_an_unknown_result_is_exit_code_4(submit: Callable[..., Ended]) -> None:
    answers = {"emr-serverless start-job-run": ["run1"], "emr-serverless get-job-run": ["RUNNING", None]}
    assert submit("serverless", answers=answers)[0] == 4


def test_a_run_that_aws_refuses_ends_with_its_exit_code(submit: Callable[..., Ended]) -> None:
    code, _, calls = submit("ec2", answers={"emr add-steps": [None]})
    assert (code, len(calls)) == (255, 1)


@pytest.mark.parametrize(
    ("kind", "files"), [("serverless", ["serverless-import", "serverless"]), ("ec2", ["ec2"])]
)
def test_a_schedule_is_made_with_everything_filled_in(
    submit: Callable[..., Ended], kind: str, files: list[str]
) -> None:
    code, _, calls = submit(f"schedule-{kind}")
    assert code == 0
    assert [call["key"] for call in calls] == ["scheduler create-schedule"] * len(files)
    for file, call in zip(files, calls, strict=True):
        asked = json.loads(call["files"][0])
        assert asked == filled(read_json(f"{file}-schedule.json"))
        assert "${" not in call["files"][0]
        assert json.loads(asked["Target"]["Input"])


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        ((), {}, "say what"),
        (("run",), {}, "say what"),
        (("upload",), {"SBROUTE_S3": None}, "set SBROUTE_S3"),
        (("upload",), {"SBROUTE_S3": "a-bucket/folder"}, "SBROUTE_S3 does not look right"),
        (("upload",), {"SBROUTE_S3": "s3://a-bucket/"}, "SBROUTE_S3 does not look right"),
        (("serverless",), {"APPLICATION_ID": None}, "set APPLICATION_ID"),
        (("serverless",), {"APPLICATION_ID": 'x", "y": "'}, "APPLICATION_ID does not look right"),
        (("serverless",), {"EXECUTION_ROLE_ARN": "job-role"}, "EXECUTION_ROLE_ARN does not look right"),
        (("ec2",), {"CLUSTER_ID": None}, "set CLUSTER_ID"),
        (("schedule-ec2",), {"SCHEDULE_ROLE_ARN": None}, "set SCHEDULE_ROLE_ARN"),
        (("ec2",), {"RUN_ID": "a night"}, "RUN_ID does not look right"),
        (("ec2",), {"POLL_SECONDS": "often"}, "POLL_SECONDS does not look right"),
    ],
)
def test_missing_parts_are_reported_before_submitting(
    submit: Callable[..., Ended], arguments: tuple[str, ...], variables: dict[str, str | None], expected: str
) -> None:
    code, output, calls = submit(*arguments, **variables)
    assert (code, calls) == (2, [])
    assert expected in output


def hygiene(script: str) -> list[str]:
    """Return forbidden parts of a script of this project."""
    faults = [] if "\nset -euo pipefail\n" in script else ["it goes on after a failure"]
    faults += [f"an account, {found}" for found in re.findall(r"\b\d{12}\b", script)]
    faults += [f"a key, {found}" for found in re.findall(r"\bA[KS]IA[A-Z0-9]+", script)]
    faults += [f"a region, {found}" for found in re.findall(r"\b[a-z]{2}-[a-z]+-\d\b", script)]
    return faults + [f"eval, in {found}" for found in re.findall(r"\beval .*", script)]


def test_the_script_is_sound(tmp_path: Path) -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert os.access(SCRIPT, os.X_OK)
    assert hygiene(text) == []
    assert subprocess.run(["bash", "-n", str(SCRIPT)], check=False).returncode == 0
    broken = tmp_path / "broken.sh"
    broken.write_text(text.replace("esac", "", 1))
    assert subprocess.run(["bash", "-n", str(broken)], check=False, capture_output=True).returncode != 0
    for added in ("account=123456789012", "AKIAABCDEFGH", "--region eu-west-1", "eval $text"):
        assert hygiene(f"{text}\n{added}\n")
    assert hygiene(text.replace("set -euo pipefail", "set -e"))
