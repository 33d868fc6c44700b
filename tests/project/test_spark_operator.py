"""The example for the Spark operator has fields of its types, and runs existing commands.

The fields are those of `api/v1beta2/sparkapplication_types.go` of kubeflow/spark-operator in 2026.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from routing import cli
from tests.project.platform_checks import ROOT, Change, changed

FILE = ROOT / "conf" / "examples" / "spark-application.yaml"
_TEXT, _TEXTS, _NUMBER = {"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "integer"}
_MAP = {"type": "object", "additionalProperties": _TEXT}
_OBJECTS = {"type": "array", "items": {"type": "object"}}


def _object(needed: tuple[str, ...] = (), **fields: object) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(needed), "additionalProperties": False}


def _named(kind: object, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), kind)


_POD: dict[str, Any] = {
    **_named(_NUMBER, "cores terminationGracePeriodSeconds"),
    **_named(_TEXT, "coreLimit coreRequest memory memoryOverhead image schedulerName serviceAccount javaOptions"),
    **_named(_TEXT, "priorityClassName runtimeClassName"),
    **_named(_OBJECTS, "configMaps secrets env envFrom volumeMounts tolerations sidecars initContainers ports"),
    **_named(_MAP, "labels annotations nodeSelector"),
    **_named({"type": "object"}, "template gpu affinity podSecurityContext securityContext lifecycle"),
}
_RETRIES = "onFailureRetries onFailureRetryInterval onSubmissionFailureRetries onSubmissionFailureRetryInterval"
_SPEC = _object(
    ("type", "sparkVersion", "mainApplicationFile", "driver", "executor"),
    type={"enum": ["Java", "Python", "Scala", "R"]},
    mode={"enum": ["cluster", "client"]},
    pythonVersion={"enum": ["2", "3"]},
    driver=_object(**_POD, **_named(_TEXT, "podName kubernetesMaster")),
    executor=_object(**_POD, instances=_NUMBER, deleteOnTermination={"type": "boolean"}),
    deps=_object(**_named(_TEXTS, "jars files pyFiles packages excludePackages repositories archives")),
    restartPolicy=_object(type={"enum": ["Never", "Always", "OnFailure"]}, **_named(_NUMBER, _RETRIES)),
    volumes=_OBJECTS,
    **_named(_TEXT, "sparkVersion proxyUser image imagePullPolicy mainClass mainApplicationFile sparkConfigMap"),
    **_named(_TEXT, "hadoopConfigMap memoryOverheadFactor batchScheduler"),
    **_named(_TEXTS, "arguments imagePullSecrets"),
    **_named(_MAP, "sparkConf hadoopConf nodeSelector"),
    **_named(_NUMBER, "failureRetries retryInterval timeToLiveSeconds"),
    **_named({"type": "object"}, "monitoring batchSchedulerOptions sparkUIOptions dynamicAllocation"),
)
SCHEMA = _object(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "sparkoperator.k8s.io/v1beta2"},
    kind={"const": "SparkApplication"},
    metadata={"type": "object"},
    spec=_SPEC,
)


def faults_of(application: Any) -> list[str]:
    """Describe each deviation of an application from the published types."""
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(application)]


@pytest.fixture
def applications() -> list[Any]:
    return list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))


def test_the_fields_are_as_published(applications: list[Any]) -> None:
    assert [fault for one in applications for fault in faults_of(one)] == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda a: a["spec"].update(schedule="@daily"), "'schedule' was unexpected"),
        (lambda a: a["spec"].pop("sparkVersion"), "'sparkVersion' is a required property"),
        (lambda a: a["spec"]["driver"].update(memory=8), "8 is not of type 'string'"),
        (lambda a: a["spec"]["restartPolicy"].update(type="Sometimes"), "'Sometimes' is not one of"),
    ],
)
def test_a_changed_field_is_found(applications: list[Any], change: Change, found: str) -> None:
    assert found in "\n".join(faults_of(changed(applications[0], change)))


def test_import_comes_before_resolve_and_both_are_commands(applications: list[Any]) -> None:
    for application, command in zip(applications, ("import", "resolve"), strict=True):
        spec, name = application["spec"], f"sbroute-{command}-x7k2p"
        job = Path(spec["mainApplicationFile"]).name
        assert (ROOT / "jobs" / job).is_file()
        assert application["metadata"]["generateName"] == name[:-5]
        arguments = [text.replace("$(RUN_ID)", name) for text in spec["arguments"]]
        options = cli._parser().parse_all([Path(job).stem.rstrip("_"), *arguments])
        assert (options.command, options.config) == (command, "/etc/sbroute/job.yaml")
        assert command == "import" or options.run_id == name


def test_both_applications_differ_only_in_the_run_id(applications: list[Any]) -> None:
    specs = [one["spec"] for one in applications]
    [variable] = specs[1]["driver"].pop("env")
    assert variable["name"] == "RUN_ID"
    for spec in specs:
        del spec["mainApplicationFile"], spec["arguments"]
    assert specs[0] == specs[1]
    mounts = [mount["name"] for mount in specs[0]["driver"]["volumeMounts"]]
    assert mounts == [volume["name"] for volume in specs[0]["volumes"]]
