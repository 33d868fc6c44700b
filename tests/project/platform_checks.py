"""Checks that all names in the files for EMR exist here. Each check returns its findings as sentences.

A check takes parsed files, so that a changed copy can show that it finds faults. bundle_checks.py does the same
for Databricks.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from routing import cli
from tests.project.aws_models import request_faults

ROOT = Path(__file__).parents[2]
EMR = ROOT / "deploy" / "emr"
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# Where submit.sh uploads to: the folders of this repository, and what package.py builds.
S3 = "${SBROUTE_S3}/"
_BUILT = {"sbroute.zip"}
# The reader's own export jobs write there.
_EXPORTS = "exports"
_DELTA_JARS = "/usr/share/aws/delta/lib/"
_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_SERVERLESS_PYTHON = {
    f"spark.emr-serverless.driverEnv.{name}" for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
} | {"spark.executorEnv.PYSPARK_PYTHON"}
_MEMORY = {"spark.driver.memory", "spark.driver.memoryOverhead"}
_CLUSTER_PYTHON = {"spark.pyspark.driver.python", "spark.pyspark.python"}

Change = Callable[[Any], object]


def read_json(name: str) -> Any:
    """A file of deploy/emr."""
    return json.loads((EMR / name).read_text(encoding="utf-8"))


def changed(value: Any, change: Change) -> Any:
    """Return a copy with a change, which must have an effect."""
    other = copy.deepcopy(value)
    change(other)
    assert other != value
    return other


def command_faults(arguments: Sequence[str]) -> list[str]:
    """Return the errors of the command line's parser for these arguments."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        cli._parser().parse_args(list(arguments))
    return [errors.getvalue().strip()] if errors.getvalue() else []


def aws_cron_faults(expression: str) -> list[str]:
    """EventBridge Scheduler: cron(…) with minute first and the year last, one of the days being ``?``."""
    match = re.fullmatch(r"cron\((.+)\)", expression)
    fields = match.group(1).split() if match else []
    if len(fields) != 6:
        return [f"{expression} is no cron(…) of six fields"]
    return [] if (fields[2] == "?") != (fields[4] == "?") else ["one of the days has to be ?"]


def serverless_faults(job_run: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a request to start a job run on EMR Serverless."""
    faults = request_faults("emr-serverless", "StartJobRun", job_run)
    if faults:
        return faults
    submit = job_run["jobDriver"]["sparkSubmit"]
    words = shlex.split(submit["sparkSubmitParameters"])
    faults += submit_faults([*words, submit["entryPoint"], *submit["entryPointArguments"]], _SERVERLESS_PYTHON)
    jars = settings_of(words).get("spark.jars", "").split(",")
    if [jar.removeprefix(_DELTA_JARS) for jar in jars] != ["delta-spark.jar", "delta-storage.jar"]:
        faults.append(f"these are not the platform's Delta JARs: {jars}")
    # Since release 7.11: no batch run without an end, and none longer than seven days.
    if not 0 < job_run.get("executionTimeoutMinutes", 720) <= 7 * 24 * 60:
        faults.append("the time-out is refused")
    return faults


def step_faults(steps: list[dict[str, Any]]) -> list[str]:
    """Everything that is wrong with the steps for an EMR cluster."""
    faults = request_faults("emr", "AddJobFlowSteps", steps_request(steps))
    for step in steps if not faults else []:
        command, *words = step["Args"]
        if (step["Type"], step["Jar"], command) != ("CUSTOM_JAR", "command-runner.jar", "spark-submit"):
            faults.append("the step does not run spark-submit")
        faults += submit_faults(words, _CLUSTER_PYTHON)
    return faults


def steps_request(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The request that `aws emr add-steps` makes of a file of steps for JARs."""
    return {"JobFlowId": "${CLUSTER_ID}", "Steps": [_step_config(step) for step in steps]}


def _step_config(step: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of the JAR, without the step's own part and its logs."""
    parts: dict[str, dict[str, Any]] = {"own": {}, "logs": {}, "jar": {}}
    places = {"Type": "", "Name": "own", "ActionOnFailure": "own", "LogUri": "logs", "EncryptionKeyArn": "logs"}
    for name, value in step.items():
        parts.setdefault(places.get(name, "jar"), {})[name] = value
    logs = {"StepMonitoringConfiguration": {"S3MonitoringConfiguration": parts["logs"]}} if parts["logs"] else {}
    return {**parts["own"], **logs, "HadoopJarStep": parts["jar"]}


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """The settings that --conf gives."""
    pairs = [words[at + 1].partition("=") for at, word in enumerate(words[:-1]) if word == "--conf"]
    return {key: value for key, _, value in pairs}


def submit_faults(words: Sequence[str], pythons: set[str]) -> list[str]:
    """Describe faults of a spark-submit command: its options, the job, and the job's arguments."""
    options, rest = {}, list(words)
    while rest and rest[0].startswith("--"):
        options[rest[0]], rest = rest[1], rest[2:]
    # The platform brings Delta: packages would come from elsewhere, and another Delta beside it breaks both.
    faults = [f"{option} is not used here" for option in set(options) - {"--conf", "--py-files", "--deploy-mode"}]
    job, *arguments = rest
    for file in (options.get("--py-files", ""), job, *(word for word in arguments if word.startswith((S3, "s3")))):
        faults += uploaded_faults(file)
    command = Path(job).stem.rstrip("_")
    faults += command_faults([command, *arguments])
    if command == "resolve" and "--run-id" not in arguments:
        faults.append("a second start would be another run")
    settings = settings_of(words)
    wrong = {key for key, value in _DELTA_SETTINGS.items() if settings.get(key) != value}
    faults += [f"{key} is not set for Delta" for key in sorted(wrong)]
    faults += [f"{key} is no Python 3.11" for key in pythons if settings.get(key) != "/usr/bin/python3.11"]
    if "spark.driver.memory" not in settings:
        faults.append("the driver has no memory of its own")
    unknown = set(settings) - set(_DELTA_SETTINGS) - pythons - {"spark.jars", *_MEMORY}
    return faults + [f"{key} is not known" for key in sorted(unknown)]


def uploaded_faults(uri: str) -> list[str]:
    """Whether a file under SBROUTE_S3 is one that this repository has or builds."""
    path = uri.removeprefix(S3)
    if path == uri or not (path in (*_BUILT, _EXPORTS) or (ROOT / path).is_file()):
        return [f"{uri} is not uploaded from here"]
    return []


def schedule_faults(schedule: dict[str, Any], request: dict[str, Any], call: str) -> list[str]:
    """Describe faults of a schedule with this request of this API call."""
    faults = request_faults("scheduler", "CreateSchedule", schedule)
    if faults:
        return faults
    faults += aws_cron_faults(schedule["ScheduleExpression"])
    if schedule["Target"]["Arn"] != f"arn:aws:scheduler:::aws-sdk:{call}":
        faults.append(f"the target is {schedule['Target']['Arn']}")
    if json.loads(schedule["Target"]["Input"]) != request:
        faults.append("the schedule and the job file start different things")
    return faults
