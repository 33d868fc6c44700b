"""What the files for Databricks and EMR name must exist here: each check returns its findings as sentences.

A check takes parsed files, so that a changed copy can show that it finds something.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import shlex
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from routing import cli
from tests.unit.platform_fields import AWS, DATABRICKS, field_faults

ROOT = Path(__file__).parents[2]
EMR = ROOT / "deploy" / "emr"
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
DISTRIBUTION = re.findall(r'^name = "(.+)"$', PYPROJECT, re.MULTILINE)[0]
SCRIPTS = dict(
    re.findall(
        r'^([\w-]+) = "(.+)"$', PYPROJECT.partition("[project.scripts]")[2].partition("\n[")[0], re.MULTILINE
    )
)
# Where submit.sh uploads to: the folders of this repository, and what package.py builds.
S3 = "${SBROUTE_S3}/"
_BUILT = {"sbroute.zip"}
_COMPUTE = ("environment_key", "job_cluster_key", "existing_cluster_id", "new_cluster")
_DELTA_JARS = "/usr/share/aws/delta/lib/"
_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_SERVERLESS_PYTHON = {
    f"spark.emr-serverless.driverEnv.{name}" for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
} | {"spark.executorEnv.PYSPARK_PYTHON"}
_CLUSTER_PYTHON = {"spark.pyspark.driver.python", "spark.pyspark.python"}

Change = Callable[[Any], object]


def read_json(name: str) -> Any:
    """A file of deploy/emr."""
    return json.loads((EMR / name).read_text(encoding="utf-8"))


def changed(value: Any, change: Change) -> Any:
    """A changed copy; the change must be one."""
    other = copy.deepcopy(value)
    change(other)
    assert other != value
    return other


def entry_point(name: str) -> Any:
    """The function that a name under [project.scripts] stands for."""
    module, _, function = SCRIPTS[name].partition(":")
    return getattr(import_module(module), function)


def command_faults(arguments: Sequence[str]) -> list[str]:
    """What the parser of the command line says of these arguments."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        cli._parser().parse_args(list(arguments))
    return [said.getvalue().strip()] if said.getvalue() else []


def merged(base: Any, over: Any) -> Any:
    """A bundle's target laid over its resources: mappings by key, tasks by their task_key."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {key: merged(base.get(key), over.get(key)) for key in (*base, *(k for k in over if k not in base))}
    if isinstance(base, list) and isinstance(over, list):
        tasks = {task["task_key"]: task for task in base}
        for task in over:
            tasks[task["task_key"]] = merged(tasks.get(task["task_key"]), task)
        return list(tasks.values())
    return base if over is None else over


def bundle_faults(bundle: dict[str, Any], included: dict[str, Any]) -> list[str]:
    """Everything that is wrong with databricks.yml and the one file that it includes."""
    faults = field_faults(DATABRICKS, "Bundle", bundle) + field_faults(DATABRICKS, "Included", included)
    if faults:
        return faults
    faults += _reference_faults(bundle, json.dumps([bundle, included]))
    for target, over in bundle["targets"].items():
        jobs = merged(included["resources"], over["resources"])["jobs"]
        for key, job in jobs.items():
            faults += [f"{target}.{key}: {fault}" for fault in _job_faults(bundle, job)]
    return faults


def _reference_faults(bundle: dict[str, Any], text: str) -> list[str]:
    known = {f"var.{name}" for name in bundle["variables"]} | {"workspace.file_path"}
    used = set(re.findall(r"\$\{([^}]+)\}", text))
    faults = [f"${{{name}}} stands for nothing" for name in sorted(used - known)]
    unused = {name for name in known if name.startswith("var.")} - used
    return faults + [f"nothing uses {name}" for name in sorted(unused)]


def _job_faults(bundle: dict[str, Any], job: dict[str, Any]) -> list[str]:
    faults = quartz_faults(job["schedule"]["quartz_cron_expression"])
    if job.get("max_concurrent_runs") != 1:
        faults.append("two runs could overlap")
    for task in job["tasks"]:
        faults += _wheel_task_faults(bundle, task["python_wheel_task"])
        compute = [key for key in _COMPUTE if key in task]
        wheels = [library.get("whl") for library in task.get("libraries", [])]
        if compute == ["environment_key"]:
            found = {one["environment_key"]: one["spec"] for one in job.get("environments", [])}
            spec = found.get(task["environment_key"], {})
            wheels += spec.get("dependencies", [])
            if not {"environment_version", "base_environment"} & set(spec):
                faults.append("the environment has no version")
        elif compute == ["job_cluster_key"]:
            found = {one["job_cluster_key"]: one["new_cluster"] for one in job.get("job_clusters", [])}
            faults += _cluster_faults(found.get(task["job_cluster_key"], {}))
        else:
            faults.append(f"the task runs on {compute}")
        if wheels != [f"{bundle['artifacts']['sbroute']['path']}/dist/*.whl"]:
            faults.append(f"the task installs {wheels}")
    return faults


def _cluster_faults(cluster: dict[str, Any]) -> list[str]:
    faults = [f"the cluster has no {key}" for key in ("spark_version", "node_type_id") if key not in cluster]
    if ("num_workers" in cluster) == ("autoscale" in cluster):
        faults.append("the cluster needs either num_workers or autoscale")
    # The oldest runtime with a Spark that this project runs on.
    if int(str(cluster.get("spark_version", "0")).partition(".")[0]) < 15:
        faults.append("the runtime is too old")
    return faults


def _wheel_task_faults(bundle: dict[str, Any], task: dict[str, Any]) -> list[str]:
    faults = []
    if task["package_name"] != DISTRIBUTION:
        faults.append(f"no distribution is called {task['package_name']}")
    if task["entry_point"] not in SCRIPTS:
        faults.append(f"no entry point is called {task['entry_point']}")
    faults += command_faults(task["parameters"])
    file = bundle["variables"]["configuration"]["default"]
    if not (ROOT / file).is_file():
        faults.append(f"{file} does not exist")
    if file.partition("/")[0] not in bundle["sync"]["paths"]:
        faults.append(f"{file} is not uploaded")
    if "${workspace.file_path}/${var.configuration}" not in task["parameters"]:
        faults.append("the task does not read the uploaded configuration")
    return faults


def quartz_faults(expression: str) -> list[str]:
    """Quartz: six fields or seven with the year, one of day of month and day of week being a question mark."""
    fields = expression.split()
    if len(fields) not in (6, 7):
        return [f"a Quartz expression has six or seven fields, not {len(fields)}"]
    if (fields[3] == "?") == (fields[5] == "?"):
        return ["one of day of month and day of week has to be ?"]
    return []


def aws_cron_faults(expression: str) -> list[str]:
    """EventBridge Scheduler: cron(…) with minute first and the year last, one of the days being ``?``."""
    match = re.fullmatch(r"cron\((.+)\)", expression)
    fields = match.group(1).split() if match else []
    if len(fields) != 6:
        return [f"{expression} is no cron(…) of six fields"]
    return [] if (fields[2] == "?") != (fields[4] == "?") else ["one of the days has to be ?"]


def serverless_faults(job_run: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a request to start a job run on EMR Serverless."""
    faults = field_faults(AWS, "StartJobRun", job_run)
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
    faults = field_faults(AWS, "[Step]", steps)
    for step in steps if not faults else []:
        command, *words = step["Args"]
        if (step["Type"], step["Jar"], command) != ("CUSTOM_JAR", "command-runner.jar", "spark-submit"):
            faults.append("the step does not run spark-submit")
        faults += submit_faults(words, _CLUSTER_PYTHON)
    return faults


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """The settings that --conf gives."""
    pairs = [words[at + 1].partition("=") for at, word in enumerate(words[:-1]) if word == "--conf"]
    return {key: value for key, _, value in pairs}


def submit_faults(words: Sequence[str], pythons: set[str]) -> list[str]:
    """What is wrong with a spark-submit command: its options, the job, the job's arguments."""
    options, rest = {}, list(words)
    while rest and rest[0].startswith("--"):
        options[rest[0]], rest = rest[1], rest[2:]
    # The platform brings Delta: packages would come from elsewhere, and another Delta beside it breaks both.
    faults = [f"{option} is not used here" for option in set(options) - {"--conf", "--py-files", "--deploy-mode"}]
    job, *arguments = rest
    for file in (options.get("--py-files", ""), job, *(word for word in arguments if word.startswith("s3"))):
        faults += uploaded_faults(file)
    faults += command_faults([Path(job).stem, *arguments])
    settings = settings_of(words)
    wrong = {key for key, value in _DELTA_SETTINGS.items() if settings.get(key) != value}
    faults += [f"{key} is not set for Delta" for key in sorted(wrong)]
    faults += [f"{key} is no Python 3.11" for key in pythons if settings.get(key) != "/usr/bin/python3.11"]
    unknown = set(settings) - set(_DELTA_SETTINGS) - pythons - {"spark.jars"}
    return faults + [f"{key} is not known" for key in sorted(unknown)]


def uploaded_faults(uri: str) -> list[str]:
    """Whether a file under SBROUTE_S3 is one that this repository has or builds."""
    path = uri.removeprefix(S3)
    if path == uri or not (path in _BUILT or (ROOT / path).is_file()):
        return [f"{uri} is not uploaded from here"]
    return []


def schedule_faults(schedule: dict[str, Any], request: dict[str, Any], call: str) -> list[str]:
    """What is wrong with a schedule that makes this request of this API call."""
    faults = field_faults(AWS, "CreateSchedule", schedule)
    if faults:
        return faults
    faults += aws_cron_faults(schedule["ScheduleExpression"])
    if schedule["Target"]["Arn"] != f"arn:aws:scheduler:::aws-sdk:{call}":
        faults.append(f"the target is {schedule['Target']['Arn']}")
    if json.loads(schedule["Target"]["Input"]) != request:
        faults.append("the schedule and the job file start different things")
    return faults
