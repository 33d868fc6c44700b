"""The files for Databricks follow the platform's documentation and name only existing things.

Nothing runs on the platform. test_platforms_emr.py covers EMR, test_platforms_pages.py configurations and pages,
and tests/platforms/test_bundle.py uses the Databricks CLI.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.project.bundle_checks import Files, bundle_faults, bundle_files, entry_point, quartz_faults
from tests.project.bundle_schema import bundle_schema_faults
from tests.project.platform_checks import Change, changed, command_faults

RESOLVE, NIGHTLY = "resources/resolve.job.yml", "resources/nightly.job.yml"


def bundle(files: Files) -> Any:
    return files["databricks.yml"]


def job_of(files: Files, job: str = "resolve") -> Any:
    return files[f"resources/{job}.job.yml"]["resources"]["jobs"][job]


def wheel_task(files: Files) -> Any:
    return job_of(files)["tasks"][0]["python_wheel_task"]


def task(files: Files, key: str) -> Any:
    return next(one for one in job_of(files, "nightly")["tasks"] if one["task_key"] == key)


def in_target(files: Files, target: str, job: str = "resolve") -> Any:
    return bundle(files)["targets"][target]["resources"]["jobs"][job]


def alert_of(files: Files, alert: str = "late") -> Any:
    return files["resources/runs.alert.yml"]["resources"]["alerts"][alert]


def cluster_of(files: Files) -> Any:
    return in_target(files, "cluster")["job_clusters"][0]["new_cluster"]


def environment_of(files: Files, job: str = "resolve") -> Any:
    return in_target(files, "serverless", job)["environments"][0]["spec"]


def test_the_bundle_is_as_published_and_names_what_exists() -> None:
    assert bundle_faults(bundle_files()) == []


def test_the_bundle_has_both_kinds_of_compute() -> None:
    files = bundle_files()
    assert set(bundle(files)["targets"]) == {"serverless", "cluster"}
    for job in ("resolve", "nightly"):
        assert "environments" in in_target(files, "serverless", job)
        assert "job_clusters" in in_target(files, "cluster", job)


def test_the_night_goes_from_the_exports_to_the_answer() -> None:
    files = bundle_files()
    brought = task(files, "import")["python_wheel_task"]["parameters"]
    linted = task(files, "lint")["python_wheel_task"]["parameters"]
    assert brought[:3] == ["import", "catalog", "${var.exports}"]
    assert linted[0] == "lint"
    assert linted[linted.index("--fail-on") + 1] == "error"
    assert task(files, "resolve")["run_job_task"] == {"job_id": "${resources.jobs.resolve.id}"}
    assert task(files, "lint")["depends_on"] == task(files, "resolve")["depends_on"] == [{"task_key": "import"}]


# A field of its own in every file: what the files may hold, whatever else is right.
FIELD_CHANGES: dict[str, tuple[Change, str]] = {
    "an unknown top-level key": (lambda f: bundle(f).update(job={}), "'job' was unexpected"),
    "no name": (lambda f: bundle(f)["bundle"].pop("name"), "'name' is a required property"),
    "a misspelt field of the artifact": (
        lambda f: bundle(f)["artifacts"]["sbroute"].update(dynamic_versions=True),
        "'dynamic_versions' was unexpected",
    ),
    "an unknown kind of artifact": (
        lambda f: bundle(f)["artifacts"]["sbroute"].update(type="wheel"),
        "'wheel' is not one of ['whl', 'jar']",
    ),
    "a text for a switch": (
        lambda f: bundle(f)["artifacts"]["sbroute"].update(dynamic_version="always"),
        "'always' is not of type 'boolean'",
    ),
    "an unknown mode": (lambda f: bundle(f)["targets"]["cluster"].update(mode="prod"), "'prod' is not one of"),
    "a misspelt field of a target": (
        lambda f: bundle(f)["targets"]["cluster"].update(resource={}),
        "'resource' was unexpected",
    ),
    "an unknown right": (lambda f: bundle(f)["permissions"][0].update(level="CAN_USE"), "'CAN_USE' is not one of"),
    "a right without level": (
        lambda f: bundle(f)["permissions"][0].pop("level"),
        "'level' is a required property",
    ),
    "a misspelt field of a variable": (
        lambda f: bundle(f)["variables"]["run_as"].update(defaults="x"),
        "'defaults' was unexpected",
    ),
    "a misspelt identity": (
        lambda f: bundle(f)["run_as"].update(service_principal="x"),
        "'service_principal' was unexpected",
    ),
    "an unknown kind of resource": (lambda f: f[NIGHTLY]["resources"].update(job={}), "'job' was unexpected"),
    "an unknown field of the job": (lambda f: job_of(f).update(cron="* * *"), "'cron' was unexpected"),
    "a time-out in words": (
        lambda f: job_of(f).update(timeout_seconds="4 hours"),
        "'4 hours' is not of type 'integer'",
    ),
    "a wrong pause status": (lambda f: job_of(f)["schedule"].update(pause_status="OFF"), "'OFF' is not one of"),
    "no time zone": (
        lambda f: job_of(f)["schedule"].pop("timezone_id"),
        "'timezone_id' is a required property",
    ),
    "an unknown field of the task": (
        lambda f: wheel_task(f).update(entrypoint="x"),
        "'entrypoint' was unexpected",
    ),
    "no entry point": (lambda f: wheel_task(f).pop("entry_point"), "'entry_point' is a required property"),
    "parameters as one text": (
        lambda f: wheel_task(f).update(parameters="resolve --config x"),
        "'resolve --config x' is not of type 'array'",
    ),
    "a task without key": (lambda f: task(f, "lint").pop("task_key"), "'task_key' is a required property"),
    "an unknown condition": (lambda f: task(f, "lint").update(run_if="ALWAYS"), "'ALWAYS' is not one of"),
    "an unknown field of what a task waits for": (
        lambda f: task(f, "lint")["depends_on"][0].update(key="import"),
        "'key' was unexpected",
    ),
    "an unknown field of the environment": (
        lambda f: environment_of(f).update(version="5"),
        "'version' was unexpected",
    ),
    "an environment version as a number": (
        lambda f: environment_of(f).update(environment_version=5),
        "5 is not of type 'string'",
    ),
    "an unknown access mode": (
        lambda f: cluster_of(f).update(data_security_mode="ANY"),
        "'ANY' is not one of",
    ),
    "an unknown field of the cluster": (
        lambda f: cluster_of(f)["autoscale"].update(workers=4),
        "'workers' was unexpected",
    ),
    "an unknown measure of health": (
        lambda f: job_of(f)["health"]["rules"][0].update(metric="RUN_SECONDS"),
        "'RUN_SECONDS' is not one of",
    ),
    "an unknown occasion for a mail": (
        lambda f: job_of(f)["email_notifications"].update(on_error=["a@b.c"]),
        "'on_error' was unexpected",
    ),
    "an alert without a warehouse": (
        lambda f: alert_of(f).pop("warehouse_id"),
        "'warehouse_id' is a required property",
    ),
    "an unknown comparison": (
        lambda f: alert_of(f)["evaluation"].update(comparison_operator="MORE"),
        "'MORE' is not one of",
    ),
    "an alert with the schedule of a job": (
        lambda f: alert_of(f)["schedule"].update(quartz_cron_expression="0 30 3 * * ?"),
        "'quartz_cron_expression' was unexpected",
    ),
}

BUNDLE_CHANGES: dict[str, tuple[Change, str]] = {
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
    "an unknown level of findings": (
        lambda f: task(f, "lint")["python_wheel_task"]["parameters"].__setitem__(-3, "fault"),
        "fault",
    ),
    "no folder of exports": (
        lambda f: task(f, "import")["python_wheel_task"]["parameters"].remove("${var.exports}"),
        "nothing uses var.exports",
    ),
    "a Unix cron": (
        lambda f: job_of(f)["schedule"].update(quartz_cron_expression="30 2 * * *"),
        "six or seven fields",
    ),
    "a Unix cron of an alert": (
        lambda f: alert_of(f)["schedule"].update(quartz_cron_schedule="30 3 * * *"),
        "six or seven fields",
    ),
    "an alert on another table": (
        lambda f: bundle(f)["variables"]["results"].update(default="service_broker.estate"),
        "the job does not write service_broker.estate.runs",
    ),
    "an alert on an unknown column": (
        lambda f: alert_of(f).update(query_text=alert_of(f)["query_text"].replace("finished_at", "ended_at")),
        "no column is called ended_at",
    ),
    "an alert on a value that its query lacks": (
        lambda f: alert_of(f)["evaluation"]["source"].update(name="days"),
        "the query has no days",
    ),
    "a job that is slow too late": (
        lambda f: job_of(f)["health"]["rules"][0].update(value=14400),
        "the job ends before it is slow",
    ),
    "no driver": (lambda f: cluster_of(f).pop("driver_node_type_id"), "the cluster has no driver_node_type_id"),
    "runs that overlap": (lambda f: job_of(f, "nightly").update(max_concurrent_runs=2), "overlap"),
    "an undefined variable": (
        lambda f: bundle(f)["variables"].pop("run_as"),
        "${var.run_as} stands for nothing",
    ),
    "a variable without use": (lambda f: bundle(f)["variables"].update(more={}), "nothing uses var.more"),
    "a job that is not there": (
        lambda f: task(f, "resolve")["run_job_task"].update(job_id="${resources.jobs.route.id}"),
        "${resources.jobs.route.id} stands for nothing",
    ),
    "a task that is not there": (
        lambda f: task(f, "lint")["depends_on"][0].update(task_key="catalog"),
        "lint waits for catalog, which does not come before",
    ),
    "a task that does nothing": (lambda f: task(f, "resolve").pop("run_job_task"), "resolve does []"),
    "a principal that may only look": (
        lambda f: bundle(f)["permissions"][0].update(level="CAN_VIEW"),
        "${var.run_as} may not do what the jobs do",
    ),
    "a wheel that keeps its version": (
        lambda f: bundle(f)["artifacts"]["sbroute"].pop("dynamic_version"),
        "its version stays",
    ),
    "a configuration that is not there": (
        lambda f: bundle(f)["variables"]["configuration"].update(default="conf/absent.yaml"),
        "conf/absent.yaml does not exist",
    ),
    "a configuration that stays behind": (
        lambda f: bundle(f)["sync"].update(paths=["jobs"]),
        "is not uploaded",
    ),
    "no environment version": (
        lambda f: environment_of(f).pop("environment_version"),
        "has no version",
    ),
    "an import that cannot read T-SQL": (
        lambda f: environment_of(f, "nightly")["dependencies"].remove("sqlglot"),
        "import installs ['./dist/*.whl']",
    ),
    "a library on serverless": (
        lambda f: in_target(f, "serverless")["tasks"][0].update(libraries=[{"whl": "./dist/*.whl"}]),
        "resolve installs ['./dist/*.whl', './dist/*.whl']",
    ),
    "an environment that is not there": (
        lambda f: in_target(f, "serverless")["tasks"][0].update(environment_key="other"),
        "resolve installs []",
    ),
    "a cluster that is not there": (
        lambda f: in_target(f, "cluster")["tasks"][0].update(job_cluster_key="other"),
        "the cluster has no spark_version",
    ),
    "a cluster without workers": (lambda f: cluster_of(f).pop("autoscale"), "either num_workers or autoscale"),
    "an old runtime": (lambda f: cluster_of(f).update(spark_version="13.3.x-scala2.12"), "too old"),
    "no compute at all": (
        lambda f: in_target(f, "serverless", "nightly").pop("tasks"),
        "the task runs on []",
    ),
}


@pytest.mark.parametrize("what", list(FIELD_CHANGES))
def test_a_field_that_is_not_as_published_is_found(what: str) -> None:
    change, found = FIELD_CHANGES[what]
    files = changed(bundle_files(), change)
    assert found in "\n".join(fault for file in files.values() for fault in bundle_schema_faults(file))


def test_an_unknown_field_is_found_in_every_file() -> None:
    for name in bundle_files():
        files = changed(bundle_files(), lambda f, name=name: f[name].update(resource={}))  # type: ignore[misc]
        assert [fault.partition(":")[0] for fault in bundle_faults(files)] == [name]


VALID: dict[str, Change] = {
    "a mode by its older name": lambda f: cluster_of(f).update(data_security_mode="SINGLE_USER"),
    "another older name": lambda f: cluster_of(f).update(data_security_mode="USER_ISOLATION"),
    "a word of one's own variable": lambda f: cluster_of(f).update(data_security_mode="${var.mode}"),
    "other machines where one is short": lambda f: cluster_of(f).update(
        worker_node_type_flexibility={"alternate_node_type_ids": ["i3.2xlarge"]}
    ),
    "an environment by its older key": lambda f: environment_of(f).update(client="5"),
    "a policy of costs": lambda f: job_of(f).update(usage_policy_id="a-policy"),
    "a job that a mistake does not remove": lambda f: job_of(f).update(lifecycle={"prevent_destroy": True}),
    "rights on one job": lambda f: job_of(f).update(
        permissions=[{"group_name": "dba", "level": "CAN_MANAGE_RUN"}, {"user_name": "a@b.c", "level": "IS_OWNER"}]
    ),
    "a job that runs as a group": lambda f: job_of(f).update(run_as={"group_name": "dba"}),
    "a task of another kind": lambda f: job_of(f)["tasks"].append({"task_key": "told", "alert_task": {}}),
    "a task that repeats another": lambda f: job_of(f)["tasks"].append(
        {"task_key": "each", "for_each_task": {"inputs": "[1]", "task": {"task_key": "one"}}}
    ),
    "other resources": lambda f: f[NIGHTLY]["resources"].update(
        secret_scopes={}, catalogs={}, postgres_branches={}
    ),
    "a switch of one's own variable": lambda f: bundle(f)["artifacts"]["sbroute"].update(
        dynamic_version="${var.patched}"
    ),
    "targets by their older name": lambda f: bundle(f).update(environments=bundle(f).pop("targets")),
    "a lock": lambda f: bundle(f)["bundle"].update(deployment={"lock": {"enabled": True}}),
    "a way to deploy": lambda f: bundle(f)["bundle"].update(engine="direct"),
}


@pytest.mark.parametrize("what", list(VALID))
def test_the_published_files_pass(what: str) -> None:
    files = changed(bundle_files(), VALID[what])
    assert [fault for file in files.values() for fault in bundle_schema_faults(file)] == []


@pytest.mark.parametrize("what", list(BUNDLE_CHANGES))
def test_a_changed_bundle_is_found(what: str) -> None:
    change, found = BUNDLE_CHANGES[what]
    assert found in "\n".join(bundle_faults(changed(bundle_files(), change)))


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
