"""Checks that all names in the files for Databricks exist here. Each check returns its findings as sentences."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import sqlglot
import yaml

from routing import config
from routing.schemas import OUTPUTS
from tests.project.bundle_schema import bundle_schema_faults
from tests.project.platform_checks import PYPROJECT, ROOT, command_faults

DISTRIBUTION = re.findall(r'^name = "(.+)"$', PYPROJECT, re.MULTILINE)[0]
SCRIPTS = dict(
    re.findall(
        r'^([\w-]+) = "(.+)"$', PYPROJECT.partition("[project.scripts]")[2].partition("\n[")[0], re.MULTILINE
    )
)
# What import into tables of a catalog needs besides the wheel: Spark writes them, so deltalake is not needed.
_IMPORT_EXTRA = re.findall(r'"([\w-]+)', re.findall(r"^check = \[(.+)\]$", PYPROJECT, re.MULTILINE)[0])
_COMPUTE = ("environment_key", "job_cluster_key", "existing_cluster_id", "new_cluster")
_KINDS = ("python_wheel_task", "run_job_task")

Files = dict[str, Any]
"""The files of the bundle, parsed, by path."""


def bundle_files() -> Files:
    """Return databricks.yml and then its included files."""
    bundle = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    included = [path for pattern in bundle["include"] for path in sorted(ROOT.glob(pattern))]
    parsed = {
        path.relative_to(ROOT).as_posix(): yaml.safe_load(path.read_text(encoding="utf-8")) for path in included
    }
    return {"databricks.yml": bundle, **parsed}


def entry_point(name: str) -> Any:
    """Return the function behind a name under [project.scripts]."""
    module, _, function = SCRIPTS[name].partition(":")
    return getattr(import_module(module), function)


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


def bundle_faults(files: Files) -> list[str]:
    """Everything that is wrong with databricks.yml and the files that it includes."""
    faults = [f"{name}: {fault}" for name, file in files.items() for fault in bundle_schema_faults(file)]
    if faults:
        return faults
    bundle, *included = files.values()
    jobs = {key: job for file in included for key, job in file["resources"].get("jobs", {}).items()}
    alerts = {key: alert for file in included for key, alert in file["resources"].get("alerts", {}).items()}
    faults = _reference_faults(bundle, set(jobs), json.dumps(list(files.values())))
    faults += _artifact_faults(bundle["artifacts"]["sbroute"]) + _right_faults(bundle, jobs)
    for target, over in bundle["targets"].items():
        for key, job in merged(jobs, over["resources"]["jobs"]).items():
            faults += [f"{target}.{key}: {fault}" for fault in _job_faults(bundle, job)]
    for key, alert in alerts.items():
        faults += [f"{key}: {fault}" for fault in _alert_faults(bundle, alert)]
    return faults


def _reference_faults(bundle: dict[str, Any], jobs: set[str], text: str) -> list[str]:
    variables = {f"var.{name}" for name in bundle["variables"]}
    known = variables | {"workspace.file_path"} | {f"resources.jobs.{job}.id" for job in jobs}
    used = set(re.findall(r"\$\{([^}]+)\}", text))
    faults = [f"${{{name}}} stands for nothing" for name in sorted(used - known)]
    return faults + [f"nothing uses {name}" for name in sorted(variables - used)]


def _artifact_faults(artifact: dict[str, Any]) -> list[str]:
    """Compute with a wheel of this version must not install another. Only wheels have a patched version."""
    if artifact.get("type") == "whl" and artifact.get("dynamic_version") is True:
        return []
    return ["what is deployed anew may not be installed: its version stays"]


def _right_faults(bundle: dict[str, Any], jobs: dict[str, Any]) -> list[str]:
    """The principal of the jobs may read the files. Starting a job from another one needs more rights."""
    starts = any("run_job_task" in task for job in jobs.values() for task in job["tasks"])
    who = bundle["run_as"]["service_principal_name"]
    levels = {right["level"] for right in bundle["permissions"] if right.get("service_principal_name") == who}
    needed = {"CAN_RUN", "CAN_MANAGE"} if starts else {"CAN_VIEW", "CAN_RUN", "CAN_MANAGE"}
    return [] if levels & needed else [f"{who} may not do what the jobs do"]


def _alert_faults(bundle: dict[str, Any], alert: dict[str, Any]) -> list[str]:
    """Describe faults of an alert: its schedule, and the tables and columns of its query."""
    faults, query = quartz_faults(alert["schedule"]["quartz_cron_schedule"]), alert["query_text"]
    parsed = sqlglot.parse_one(
        query.replace("${var.results}", bundle["variables"]["results"]["default"]), "databricks"
    )
    settings = config.load(str(ROOT / "conf" / "databricks.yaml"))
    written = {location.text: key for key, location in settings.output.items()}
    names = [table.sql("databricks") for table in parsed.find_all(sqlglot.exp.Table)]
    faults += [f"the job does not write {name}" for name in names if name not in written]
    columns = {column for name in names if name in written for column in OUTPUTS[written[name]].names}
    faults += [
        f"no column is called {one.name}" for one in parsed.find_all(sqlglot.exp.Column) if one.name not in columns
    ]
    source = alert["evaluation"]["source"]["name"]
    selected = [one.alias_or_name for part in parsed.find_all(sqlglot.exp.Select) for one in part.expressions]
    return faults if source in selected else [*faults, f"the query has no {source}"]


def _job_faults(bundle: dict[str, Any], job: dict[str, Any]) -> list[str]:
    faults = quartz_faults(job["schedule"]["quartz_cron_expression"])
    slow = job["health"]["rules"][0]
    if slow["metric"] == "RUN_DURATION_SECONDS" and not slow["value"] < job["timeout_seconds"]:
        faults.append("the job ends before it is slow")
    if job.get("max_concurrent_runs") != 1:
        faults.append("two runs could overlap")
    before: set[str] = set()
    for task in job["tasks"]:
        waits = {one["task_key"] for one in task.get("depends_on", [])}
        faults += [f"{task['task_key']} waits for {name}, which does not come before" for name in waits - before]
        before.add(task["task_key"])
        kinds = [kind for kind in _KINDS if kind in task]
        if kinds == ["python_wheel_task"]:
            faults += _wheel_task_faults(bundle, task["python_wheel_task"]) + _compute_faults(bundle, job, task)
        elif kinds != ["run_job_task"]:
            faults.append(f"{task['task_key']} does {kinds}")
    return faults


def _compute_faults(bundle: dict[str, Any], job: dict[str, Any], task: dict[str, Any]) -> list[str]:
    """Describe faults of a task's compute and its libraries."""
    faults, compute = [], [key for key in _COMPUTE if key in task]
    installed = [one.get("whl") or one.get("pypi", {}).get("package") for one in task.get("libraries", [])]
    if compute == ["environment_key"]:
        found = {one["environment_key"]: one["spec"] for one in job.get("environments", [])}
        spec = found.get(task["environment_key"], {})
        installed += spec.get("dependencies", [])
        if not {"environment_version", "base_environment"} & set(spec):
            faults.append("the environment has no version")
    elif compute == ["job_cluster_key"]:
        found = {one["job_cluster_key"]: one["new_cluster"] for one in job.get("job_clusters", [])}
        faults += _cluster_faults(found.get(task["job_cluster_key"], {}))
    else:
        faults.append(f"the task runs on {compute}")
    extra = _IMPORT_EXTRA if task["python_wheel_task"]["parameters"][0] == "import" else []
    wheel = f"{bundle['artifacts']['sbroute']['path']}/dist/*.whl"
    # The tasks of a job may share an environment, so that one has what another needs.
    if installed[:1] != [wheel] or not set(extra) <= set(installed[1:]) <= set(_IMPORT_EXTRA):
        faults.append(f"{task['task_key']} installs {installed}")
    return faults


def _cluster_faults(cluster: dict[str, Any]) -> list[str]:
    needed = ("spark_version", "node_type_id", "driver_node_type_id")
    faults = [f"the cluster has no {key}" for key in needed if key not in cluster]
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
