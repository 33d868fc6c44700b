"""The example DAGs for Airflow and the jobs for Kubernetes run existing commands and know their exit codes.

`make test-airflow` lets Airflow itself import the DAG. This module uses stand-ins.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from routing import cli
from routing.delta.counted_runs import LONGEST_ID, check_run_id
from routing.errors import EXIT_CONTRACT, EXIT_DONE, EXIT_FAILED, EXIT_FOUND
from tests.project.aws_models import SAMPLES, filled
from tests.project.platform_checks import EMR, read_json

ROOT = Path(__file__).parents[2]
RUN = "scheduled__2026-11-23T00:00:00+00:00"


class _Failed(Exception):
    """A task of Airflow that may be tried again."""


class _FailedForGood(Exception):
    """One that may not."""


class _Hook:
    """A stand-in for the process, which ends with a given code."""

    code = 0

    def run_command(self, command: list[str]) -> Any:
        return SimpleNamespace(exit_code=self.code, output=f"sbroute: of {command[1]}")


class _Operator:
    def __init__(self, *, task_id: str, **options: Any) -> None:
        self.task_id, self.options = task_id, options

    def __rshift__(self, other: _Operator) -> _Operator:
        self.options["downstream"] = other.task_id
        return other


class _RunNow(_Operator):
    """The arguments in use, as in apache-airflow-providers-databricks 7.23.0."""

    def __init__(
        self,
        *,
        task_id: str,
        job_name: str,
        wait_for_termination: bool,
        retries: int,
        execution_timeout: timedelta,
    ) -> None:
        super().__init__(task_id=task_id, job_name=job_name, retries=retries)


class _StartJob(_Operator):
    """The arguments in use, as in apache-airflow-providers-amazon 9.39.0."""

    def __init__(
        self,
        *,
        task_id: str,
        name: str,
        application_id: str,
        execution_role_arn: str,
        job_driver: Any,
        configuration_overrides: Any,
        config: Any,
        waiter_delay: int,
        waiter_max_attempts: int,
    ) -> None:
        self.request = {
            "name": name,
            "applicationId": application_id,
            "executionRoleArn": execution_role_arn,
            "jobDriver": job_driver,
            "configurationOverrides": configuration_overrides,
            **config,
        }
        super().__init__(task_id=task_id)


class _Dag:
    def __init__(self, **options: Any) -> None:
        self.options = options

    def __enter__(self) -> _Dag:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def import_dag(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Import a DAG's file with stand-ins for the parts of Airflow that it uses."""
    parts: dict[str, dict[str, Any]] = {
        "airflow.sdk": {"DAG": _Dag, "BaseOperator": _Operator},
        "airflow.sdk.exceptions": {"AirflowException": _Failed, "AirflowFailException": _FailedForGood},
        "airflow.providers.standard.hooks.subprocess": {"SubprocessHook": _Hook},
        "airflow.providers.databricks.operators.databricks": {"DatabricksRunNowOperator": _RunNow},
        "airflow.providers.amazon.aws.operators.emr": {"EmrServerlessStartJobOperator": _StartJob},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("SBROUTE_CONFIG", raising=False)
    monkeypatch.delenv("SBROUTE_EXPORTS", raising=False)

    def load(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(name, ROOT / "deploy" / "airflow" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def dag(import_dag: Callable[[str], Any]) -> Any:
    """The DAG that runs commands on the worker."""
    return import_dag("sbroute_dag")


def test_the_dag_for_databricks_starts_the_job_of_the_bundle(import_dag: Callable[[str], Any]) -> None:
    module = import_dag("databricks_dag")
    job = yaml.safe_load((ROOT / "resources" / "nightly.job.yml").read_text(encoding="utf-8"))
    assert module.nightly.options == {"job_name": job["resources"]["jobs"]["nightly"]["name"], "retries": 0}
    assert module.dag.options["max_active_runs"] == 1


def test_the_dag_for_emr_sends_the_requests_of_the_files(
    import_dag: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBROUTE_EMR", str(EMR))
    for name, text in SAMPLES.items():
        monkeypatch.setenv(name, text)
    module = import_dag("emr_dag")
    for operator, file in ((module.import_, "serverless-import-job-run"), (module.resolve, "serverless-job-run")):
        request = json.dumps(operator.request).replace("{{ run_id }}", SAMPLES["RUN_ID"])
        assert json.loads(request) == filled(read_json(f"{file}.json"))
    assert "{{ run_id }}" in module.resolve.request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert module.import_.options["downstream"] == "resolve"


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (EXIT_DONE, None),
        (EXIT_FOUND, _FailedForGood),
        (EXIT_CONTRACT, _FailedForGood),
        (EXIT_FAILED, _Failed),
        (143, _Failed),
        (-9, _Failed),
    ],
)
def test_airflow_retries_only_some_exit_codes(dag: Any, code: int, raised: type[Exception] | None) -> None:
    dag.resolve.hook.code = code
    if raised is None:
        dag.resolve.execute({})
        return
    with pytest.raises(raised, match=f"^exit code {code}.*: sbroute: of resolve$"):
        dag.resolve.execute({})


def test_the_commands_of_the_dag_are_valid(dag: Any) -> None:
    """The commands parse. The run uses Airflow's own id, which is a valid run id."""
    assert dag.SbrouteOperator.template_fields == ("arguments",)
    assert "{{ run_id }}" in dag.resolve.arguments
    line = [argument.replace("{{ run_id }}", RUN) for argument in dag.resolve.arguments]
    options = cli._parser().parse_all(line)
    assert (options.command, options.run_id) == ("resolve", check_run_id(RUN))
    assert cli._parser().parse_all(dag.lint.arguments).fail_on == "error"
    assert cli._parser().parse_all(dag.import_.arguments).command == "import"
    assert (dag.import_.options["downstream"], dag.lint.options["downstream"]) == ("lint", "resolve")


def test_the_dag_has_one_run_at_a_time(dag: Any) -> None:
    options = dag.dag.options
    assert (options["max_active_runs"], options["catchup"]) == (1, False)
    assert options["default_args"]["retries"] > 0


@pytest.fixture
def cron_job() -> Any:
    return yaml.safe_load((ROOT / "deploy" / "kubernetes" / "job.yaml").read_text(encoding="utf-8"))


def container_of(cron_job: Any) -> Any:
    [container] = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return container


def test_the_cron_job_is_valid(cron_job: Any) -> None:
    assert (cron_job["apiVersion"], cron_job["kind"]) == ("batch/v1", "CronJob")
    assert set(cron_job) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(cron_job["spec"]) == {"schedule", "timeZone", "concurrencyPolicy", "jobTemplate"}
    assert cron_job["spec"]["concurrencyPolicy"] == "Forbid"
    # With eleven characters of Kubernetes' own at the end of a Job's name, of which 63 are allowed.
    assert len(cron_job["metadata"]["name"]) <= 52 < 63 <= LONGEST_ID


def test_kubernetes_retries_only_some_exit_codes(cron_job: Any) -> None:
    job = cron_job["spec"]["jobTemplate"]["spec"]
    assert set(job) == {"backoffLimit", "activeDeadlineSeconds", "podFailurePolicy", "template"}
    assert job["backoffLimit"] > 0
    # Kubernetes takes a policy only where pods are not started again in their place.
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    rules = job["podFailurePolicy"]["rules"]
    by_code = {rule["action"]: rule["onExitCodes"] for rule in rules if "onExitCodes" in rule}
    assert by_code == {
        "FailJob": {"operator": "In", "values": [EXIT_FOUND, EXIT_CONTRACT]},
        "Count": {"operator": "In", "values": [EXIT_FAILED]},
    }
    assert rules[-1] == {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }


def test_the_command_of_the_cron_job_is_valid(cron_job: Any) -> None:
    """The command parses. Its id is the name of the Job, which all its pods share."""
    container = container_of(cron_job)
    assert container["command"] == ["sbroute"]
    [variable] = container["env"]
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/job-name']"
    name = "sbroute-resolve-29400150"
    options = cli._parser().parse_all([text.replace("$(RUN_ID)", name) for text in container["args"]])
    assert (variable["name"], options.command, options.run_id) == ("RUN_ID", "resolve", name)
    [brought] = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["initContainers"]
    imported = cli._parser().parse_all(brought["args"])
    assert (imported.command, imported.config) == ("import", options.config)
    assert brought["image"] == container["image"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert options.config == f"{mounted['configuration']}/job.yaml"
    volumes = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"]
    assert [volume["name"] for volume in volumes] == list(mounted)
