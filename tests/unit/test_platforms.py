"""The files for Databricks: as the platform documents them, and naming only what exists here.

Nothing is run on the platform. test_platforms_emr.py is the sister for EMR, test_platforms_pages.py looks at
configurations and pages.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.platform_checks import (
    ROOT,
    Change,
    bundle_faults,
    changed,
    command_faults,
    entry_point,
    quartz_faults,
)


def bundle_files() -> tuple[Any, Any]:
    bundle = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    (included,) = (file for pattern in bundle["include"] for file in sorted(ROOT.glob(pattern)))
    return bundle, yaml.safe_load(included.read_text(encoding="utf-8"))


def job_of(files: Any) -> Any:
    return files[1]["resources"]["jobs"]["resolve"]


def wheel_task(files: Any) -> Any:
    return job_of(files)["tasks"][0]["python_wheel_task"]


def in_target(files: Any, target: str) -> Any:
    return files[0]["targets"][target]["resources"]["jobs"]["resolve"]


def test_the_bundle_is_as_documented_and_names_what_exists() -> None:
    assert bundle_faults(*bundle_files()) == []


def test_the_bundle_has_both_kinds_of_compute() -> None:
    files = bundle_files()
    assert set(files[0]["targets"]) == {"serverless", "cluster"}
    assert "environments" in in_target(files, "serverless")
    assert "job_clusters" in in_target(files, "cluster")


BUNDLE_CHANGES: dict[str, tuple[Change, str]] = {
    "an unknown top-level key": (lambda f: f[0].update(job={}), "job is not documented"),
    "no name": (lambda f: f[0]["bundle"].pop("name"), "name is missing"),
    "an unknown field of the job": (lambda f: job_of(f).update(cron="* * *"), "cron is not documented"),
    "an unknown field of the task": (
        lambda f: wheel_task(f).update(entrypoint="x"),
        "entrypoint is not documented",
    ),
    "no entry point": (lambda f: wheel_task(f).pop("entry_point"), "entry_point is missing"),
    "another entry point": (lambda f: wheel_task(f).update(entry_point="resolve"), "no entry point"),
    "another package": (lambda f: wheel_task(f).update(package_name="routing"), "no distribution"),
    "an unknown option": (
        lambda f: wheel_task(f)["parameters"].append("--fast"),
        "unknown option '--fast'",
    ),
    "an unknown command": (
        lambda f: wheel_task(f)["parameters"].__setitem__(0, "route"),
        "unknown command 'route'",
    ),
    "a wrong pause status": (lambda f: job_of(f)["schedule"].update(pause_status="OFF"), "OFF"),
    "a Unix cron": (
        lambda f: job_of(f)["schedule"].update(quartz_cron_expression="30 2 * * *"),
        "six or seven fields",
    ),
    "no time zone": (lambda f: job_of(f)["schedule"].pop("timezone_id"), "timezone_id is missing"),
    "runs that overlap": (lambda f: job_of(f).update(max_concurrent_runs=2), "overlap"),
    "an undefined variable": (lambda f: f[0]["variables"].pop("run_as"), "${var.run_as} stands for nothing"),
    "a variable without use": (lambda f: f[0]["variables"].update(more={}), "nothing uses var.more"),
    "a configuration that is not there": (
        lambda f: f[0]["variables"]["configuration"].update(default="conf/absent.yaml"),
        "conf/absent.yaml does not exist",
    ),
    "a configuration that stays behind": (lambda f: f[0]["sync"].update(paths=["jobs"]), "is not uploaded"),
    "no environment version": (
        lambda f: in_target(f, "serverless")["environments"][0]["spec"].pop("environment_version"),
        "has no version",
    ),
    "a library on serverless": (
        lambda f: in_target(f, "serverless")["tasks"][0].update(libraries=[{"whl": "./dist/*.whl"}]),
        "the task installs",
    ),
    "an environment that is not there": (
        lambda f: in_target(f, "serverless")["tasks"][0].update(environment_key="other"),
        "the task installs []",
    ),
    "a cluster that is not there": (
        lambda f: in_target(f, "cluster")["tasks"][0].update(job_cluster_key="other"),
        "the cluster has no spark_version",
    ),
    "a cluster without workers": (
        lambda f: in_target(f, "cluster")["job_clusters"][0]["new_cluster"].pop("autoscale"),
        "either num_workers or autoscale",
    ),
    "an old runtime": (
        lambda f: in_target(f, "cluster")["job_clusters"][0]["new_cluster"].update(
            spark_version="13.3.x-scala2.12"
        ),
        "too old",
    ),
    "an unknown access mode": (
        lambda f: in_target(f, "cluster")["job_clusters"][0]["new_cluster"].update(data_security_mode="ANY"),
        "'ANY'",
    ),
    "no compute at all": (lambda f: in_target(f, "serverless").pop("tasks"), "the task runs on []"),
}


@pytest.mark.parametrize("what", list(BUNDLE_CHANGES))
def test_a_changed_bundle_is_found(what: str) -> None:
    change, found = BUNDLE_CHANGES[what]
    assert found in "\n".join(bundle_faults(*changed(bundle_files(), change)))


def test_the_entry_point_fails_by_an_exception_and_ends_without_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wheel task calls the function and looks at nothing but exceptions: a returned status would be lost."""
    run = entry_point(wheel_task(bundle_files())["entry_point"])
    # What tells it that signals are not its own.
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    monkeypatch.setattr("sys.argv", ["sbroute", "resolve", "--config", "absent.yaml"])
    with pytest.raises(SystemExit) as end:
        run()
    assert end.value.code == 2
    monkeypatch.setattr("sys.argv", ["sbroute", "--version"])
    run()
    assert capsys.readouterr().out.startswith("sbroute ")


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("0 30 2 * * ?", True),
        ("0 0 8 ? * MON-FRI 2027", True),
        ("30 2 * * *", False),
        ("0 30 2 * * *", False),
        ("0 30 2 ? * ?", False),
    ],
)
def test_quartz_expressions(expression: str, fine: bool) -> None:
    assert (quartz_faults(expression) == []) is fine


def test_a_wrong_command_line_is_found() -> None:
    assert command_faults(["resolve", "--config", "x"]) == []
    assert command_faults(["resolve"]) != []
