"""The files for EMR Serverless and EMR clusters follow AWS's documentation and name only existing things."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.project.aws_models import request_faults, shape_faults
from tests.project.platform_checks import (
    EMR,
    Change,
    aws_cron_faults,
    changed,
    read_json,
    schedule_faults,
    serverless_faults,
    step_faults,
)


def upper_camel(value: Any) -> Any:
    """A request as EventBridge writes it: names begin with a capital."""
    if isinstance(value, dict):
        return {key[0].upper() + key[1:]: upper_camel(inner) for key, inner in value.items()}
    return value


def test_the_job_run_is_as_published_and_names_what_exists() -> None:
    assert serverless_faults(read_json("serverless-job-run.json")) == []
    assert serverless_faults(read_json("serverless-import-job-run.json")) == []


def test_a_night_goes_from_the_exports_to_the_answer() -> None:
    brought, resolved = read_json("ec2-step.json")
    assert [step["Name"] for step in (brought, resolved)] == ["sbroute-import", "sbroute-resolve"]
    # A failed import ends the night.
    assert brought["ActionOnFailure"] == "CANCEL_AND_WAIT"
    times = [read_json(f"serverless{kind}-schedule.json")["ScheduleExpression"] for kind in ("-import", "")]
    assert times == ["cron(0 2 * * ? *)", "cron(30 2 * * ? *)"]


def parameters(old: str, new: str) -> Change:
    """A change of text in the parameters for spark-submit."""

    def change(run: Any) -> None:
        submit = run["jobDriver"]["sparkSubmit"]
        submit["sparkSubmitParameters"] = submit["sparkSubmitParameters"].replace(old, new)

    return change


RUN_CHANGES: dict[str, tuple[Change, str]] = {
    "an unknown field": (
        lambda r: r["jobDriver"]["sparkSubmit"].update(args=[]),
        'Unknown parameter in jobDriver.sparkSubmit: "args"',
    ),
    "no role": (lambda r: r.pop("executionRoleArn"), 'Missing required parameter in input: "executionRoleArn"'),
    "two drivers": (lambda r: r["jobDriver"].update(hive={"query": "x"}), "jobDriver"),
    "an unknown mode": (lambda r: r.update(mode="NIGHTLY"), "mode is 'NIGHTLY', not one of BATCH, STREAMING"),
    "arguments as one text": (
        lambda r: r["jobDriver"]["sparkSubmit"].update(entryPointArguments="--config x"),
        "Invalid type for parameter jobDriver.sparkSubmit.entryPointArguments",
    ),
    "a role that is none": (lambda r: r.update(executionRoleArn="arn:aws:iam::1:user/x"), "is not of the form"),
    "an application in capitals": (lambda r: r.update(applicationId="00ABC"), "applicationId is '00ABC'"),
    "a job that is not there": (
        lambda r: r["jobDriver"]["sparkSubmit"].update(entryPoint="${SBROUTE_S3}/jobs/absent.py"),
        "jobs/absent.py is not uploaded",
    ),
    "an option that is not there": (
        lambda r: r["jobDriver"]["sparkSubmit"]["entryPointArguments"].append("--fast"),
        "unknown option '--fast'",
    ),
    "a configuration that is not there": (
        lambda r: r["jobDriver"]["sparkSubmit"]["entryPointArguments"].__setitem__(1, "s3://b/emr.yaml"),
        "s3://b/emr.yaml is not uploaded",
    ),
    "a package": (parameters("--py-files", "--packages io.delta:x:4.0.0 --py-files"), "--packages is not used"),
    "another Delta": (
        parameters("delta-spark.jar", "delta-spark_2.13-4.0.0.jar"),
        "not the platform's Delta JARs",
    ),
    "the platform's own Python": (
        parameters("driverEnv.PYSPARK_PYTHON=/usr/bin/python3.11", "driverEnv.PYSPARK_PYTHON=/usr/bin/python3"),
        "is no Python 3.11",
    ),
    "no extension": (parameters("spark.sql.extensions", "spark.sql.extension"), "spark.sql.extensions is not set"),
    "an unknown setting": (parameters("--py-files", "--conf spark.foo=1 --py-files"), "spark.foo is not known"),
    "no memory of the driver": (parameters("spark.driver.memory=", "spark.driver.memoryOverhead="), "no memory"),
    "no id of the run": (
        lambda r: r["jobDriver"]["sparkSubmit"].update(
            entryPointArguments=r["jobDriver"]["sparkSubmit"]["entryPointArguments"][:2]
        ),
        "a second start would be another run",
    ),
    "no end": (lambda r: r.update(executionTimeoutMinutes=0), "time-out"),
}


@pytest.mark.parametrize("what", list(RUN_CHANGES))
def test_a_changed_job_run_is_found(what: str) -> None:
    change, found = RUN_CHANGES[what]
    assert found in "\n".join(serverless_faults(changed(read_json("serverless-job-run.json"), change)))


def test_the_step_and_the_cluster_are_as_published() -> None:
    assert step_faults(read_json("ec2-step.json")) == []
    configurations = read_json("ec2-configurations.json")
    assert shape_faults("emr", "ConfigurationList", configurations) == []
    assert configurations == [{"Classification": "delta-defaults", "Properties": {"delta.enabled": "true"}}]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda c: c[0].update(Name="x"), 'Unknown parameter in [0]: "Name"'),
        (lambda c: c[0]["Properties"].update({"delta.enabled": True}), "Invalid type"),
        (lambda c: c[0].update(Configurations={}), "Invalid type for parameter [0].Configurations"),
    ],
)
def test_a_changed_cluster_is_found(change: Change, found: str) -> None:
    configurations = changed(read_json("ec2-configurations.json"), change)
    assert found in "\n".join(shape_faults("emr", "ConfigurationList", configurations))


def test_the_published_files_pass() -> None:
    run = changed(read_json("serverless-job-run.json"), lambda r: r.update(flexExecution={"enabled": True}))
    assert serverless_faults(run) == []
    logs = {"LogUri": "s3://a-bucket/logs", "ActionOnFailure": "TERMINATE_JOB_FLOW"}
    assert step_faults(changed(read_json("ec2-step.json"), lambda s: s[0].update(logs))) == []
    valid_event = {"EventBridgePutEventsV2Parameters": {"DetailType": "a type", "Source": "a.source"}}
    schedule = changed(read_json("ec2-schedule.json"), lambda s: s["Target"].update(valid_event))
    assert request_faults("scheduler", "CreateSchedule", schedule) == []


STEP_CHANGES: dict[str, tuple[Change, str]] = {
    "the form of the API": (lambda s: s[0].update(HadoopJarStep={}), 'HadoopJarStep: "HadoopJarStep"'),
    "a misspelt field": (lambda s: s[0].update(Arg=[]), 'HadoopJarStep: "Arg"'),
    "no name": (lambda s: s[0].pop("Name"), 'Missing required parameter in Steps[0]: "Name"'),
    "no JAR": (lambda s: s[0].pop("Jar"), 'Missing required parameter in Steps[0].HadoopJarStep: "Jar"'),
    "another action": (
        lambda s: s[0].update(ActionOnFailure="STOP"),
        "ActionOnFailure is 'STOP', not one of TERMINATE_JOB_FLOW, TERMINATE_CLUSTER, CANCEL_AND_WAIT, CONTINUE",
    ),
    "another JAR": (lambda s: s[0].update(Jar="script-runner.jar"), "does not run spark-submit"),
    "no zip": (lambda s: s[0]["Args"].__setitem__(-10, "s3://b/sbroute.zip"), "sbroute.zip is not uploaded"),
    "an old Python": (
        lambda s: s[0]["Args"].__setitem__(6, "spark.pyspark.python=/usr/bin/python3"),
        "spark.pyspark.python is no Python 3.11",
    ),
}


@pytest.mark.parametrize("what", list(STEP_CHANGES))
def test_a_changed_step_is_found(what: str) -> None:
    change, found = STEP_CHANGES[what]
    assert found in "\n".join(step_faults(changed(read_json("ec2-step.json"), change)))


def docker_faults(text: str) -> list[str]:
    """EMR Serverless needs an image on AWS's own base that runs as hadoop. The caller names the base."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    faults = [] if lines[:2] == ["ARG BASE", "FROM ${BASE}"] else ["the base is not the caller's"]
    if lines[-1] != "USER hadoop:hadoop":
        faults.append("the image does not run as hadoop")
    return faults if any("python3.11" in line for line in lines) else [*faults, "there is no Python 3.11"]


def test_the_image_has_python_and_the_required_user() -> None:
    text = (EMR / "Dockerfile").read_text(encoding="utf-8")
    assert docker_faults(text) == []
    for old in ("ARG BASE", "USER hadoop:hadoop", "python3.11 &&"):
        assert docker_faults(text.replace(old, "USER root")) != []


def read_nightly(name: str) -> Any:
    """A file with the run id of a schedule, which is that of its time, so that another try is the same run."""
    return json.loads(json.dumps(read_json(name)).replace("${RUN_ID}", "night-<aws.scheduler.scheduled-time>"))


def scheduled(kind: str) -> tuple[Any, str]:
    """Return the required request of this kind of schedule, and its API call."""
    if kind != "ec2":
        asked = {
            "ClientToken": "<aws.scheduler.execution-id>",
            **upper_camel(read_nightly(f"{kind}-job-run.json")),
        }
        return asked, "emrserverless:startJobRun"
    steps = [
        {
            "Name": step["Name"],
            "ActionOnFailure": step["ActionOnFailure"],
            "HadoopJarStep": {"Jar": step["Jar"], "Args": step["Args"]},
        }
        for step in read_nightly("ec2-step.json")
    ]
    asked = {"JobFlowId": "${CLUSTER_ID}", "Steps": steps}
    assert request_faults("emr", "AddJobFlowSteps", asked) == []
    return asked, "emr:addJobFlowSteps"


@pytest.mark.parametrize("kind", ["serverless-import", "serverless", "ec2"])
def test_a_schedule_starts_what_the_job_file_says(kind: str) -> None:
    schedule = read_json(f"{kind}-schedule.json")
    assert schedule_faults(schedule, *scheduled(kind)) == []
    for change, found in (
        (lambda s: s.update(State="PAUSED"), "State is 'PAUSED', not one of ENABLED, DISABLED"),
        (lambda s: s.update(Name="every night"), "Name is 'every night', which is not of the form"),
        (lambda s: s["Target"]["RetryPolicy"].update(MaximumRetryAttempts=200), "is greater than 185"),
        (lambda s: s.pop("FlexibleTimeWindow"), 'Missing required parameter in input: "FlexibleTimeWindow"'),
        (lambda s: s.update(Cron="x"), 'Unknown parameter in input: "Cron"'),
        (lambda s: s.update(ScheduleExpression="cron(30 2 * * *)"), "no cron(…) of six fields"),
        (lambda s: s["Target"].update(Arn="arn:aws:scheduler:::aws-sdk:emr:runJobFlow"), "the target is"),
        (
            lambda s: s["Target"].update(Input=s["Target"]["Input"].replace("--format", "--quiet")),
            "different things",
        ),
    ):
        assert found in "\n".join(schedule_faults(changed(schedule, change), *scheduled(kind)))


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("cron(30 2 * * ? *)", True),
        ("cron(0 30 2 * * ?)", False),
        ("cron(30 2 * * * *)", False),
        ("30 2 * * ?", False),
    ],
)
def test_expressions_of_the_scheduler(expression: str, fine: bool) -> None:
    assert (aws_cron_faults(expression) == []) is fine
