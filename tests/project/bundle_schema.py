"""A JSON schema for the files of a Databricks bundle.

`databricks bundle schema` prints the official one. It is in no package registry, and its licence binds it to the
use of Databricks. The package databricks-bundles has typed models of jobs and alerts, made from the same source.
Each model becomes a schema here, so that jobs, tasks, clusters and alerts have the fields, types and words of the
installed release. The other parts (artifacts, targets, variables …) have no models and are listed below.
tests/platforms/test_bundle.py compares everything with the output of the command.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeAlias

import jsonschema
from databricks.bundles.alerts import Alert
from databricks.bundles.core import Resources, Variable
from databricks.bundles.jobs import Job, JobRunAs

Schema: TypeAlias = "dict[str, Any]"

_PLAIN: dict[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}
# Kinds of resources that have no model.
_OTHER_KINDS = {"postgres_branches", "postgres_endpoints", "postgres_projects"}
_REFERENCE = {"type": "string", "pattern": r"^\$\{[^{}]+\}$"}


def bundle_schema_faults(file: object) -> list[str]:
    """Describe each deviation of a bundle's file from the schema, with its path."""
    return schema_faults(bundle_schema(), file)


def schema_faults(schema: Schema, file: object) -> list[str]:
    """Describe each deviation of a file from a schema, with its path."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(file)
    return sorted(f"{error.json_path}: {error.message}"[:300] for error in errors)


@lru_cache
def bundle_schema() -> Schema:
    """Return the schema of databricks.yml and all included files, with its parts under ``$defs``."""
    models: dict[str, Schema] = {}
    # One property for each kind of resource; of them this project has jobs and alerts.
    kinds = {name for name, _ in inspect.getmembers(Resources, lambda member: isinstance(member, property))}
    named: dict[str, Schema] = {name: {"type": "object"} for name in (kinds - {"diagnostics"}) | _OTHER_KINDS}
    resources = _fields(
        {**named, "jobs": _map_of(_schema_of(Job, models)), "alerts": _map_of(_schema_of(Alert, models))}
    )
    frame = _frame(resources, _schema_of(JobRunAs, models))
    return {**_ref("Root"), "$defs": {**frame, **models}}


def _frame(resources: Schema, run_as: Schema) -> dict[str, Schema]:
    """Return the schema around the resources, as in the configuration reference of November 2026."""
    text, flag = {"type": "string"}, _or_reference({"type": "boolean"})
    texts = {"type": "array", "items": text}
    git = _fields({"branch": text, "origin_url": text})
    lock = _fields({"enabled": flag, "force": flag})
    bundle = dict.fromkeys(("name", "cluster_id", "compute_id", "databricks_cli_version", "uuid"), text)
    bundle["engine"] = _words("direct", "terraform")
    artifact = {"build": text, "dynamic_version": flag, "executable": _words("bash", "sh", "cmd"), "path": text}
    files = {"type": "array", "items": _fields({"source": text}, ["source"])}
    granted = {"group_name": text, "service_principal_name": text, "user_name": text}
    granted["level"] = _words("CAN_MANAGE", "CAN_RUN", "CAN_VIEW")
    either = {
        "artifacts": _map_of(_ref("Artifact")),
        "bundle": _ref("Bundle"),
        "permissions": {"type": "array", "items": _fields(granted, ["level"])},
        "presets": {"type": "object"},
        "resources": resources,
        "run_as": run_as,
        "sync": _fields({"exclude": texts, "include": texts, "paths": texts}),
        "workspace": {"type": "object"},
    }
    root = {"environments": _map_of(_ref("Target")), "targets": _map_of(_ref("Target"))}
    root |= {"include": texts, "variables": _map_of(_ref("Variable"))}
    root |= {name: {"type": "object"} for name in ("experimental", "python", "scripts")}
    target = {"cluster_id": text, "compute_id": text, "default": flag, "git": git, "variables": {"type": "object"}}
    deployment = _fields({"fail_on_active_runs": flag, "lock": lock})
    variable = {"default": {}, "description": text, "lookup": {"type": "object"}, "type": _words("complex")}
    return {
        "Root": _fields({**either, **root}),
        "Bundle": _fields({**bundle, "deployment": deployment, "git": git}, ["name"]),
        "Artifact": _fields({**artifact, "files": files, "type": _words("whl", "jar")}),
        "Target": _fields({**either, **target, "mode": _words("development", "production")}),
        "Variable": _fields(variable),
    }


def _schema_of(kind: Any, models: dict[str, Schema]) -> Schema:
    """Return the schema of a type hint. Models contain each other, so their schemas are shared by name."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        return _alternatives(inner, models)
    if origin is list:
        return {"type": "array", "items": _schema_of(inner[0], models)}
    if origin is dict:
        return _map_of(_schema_of(inner[1], models))
    if issubclass(kind, Enum):
        return {"enum": [word.value for word in kind]}
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name not in models:
        models[name] = {}  # so that a model that holds itself ends
        models[name] = _model(kind, models)
    return _ref(name)


def _model(kind: Any, models: dict[str, Schema]) -> Schema:
    missing = dataclasses.MISSING
    hints = typing.get_type_hints(kind)
    needed = [f.name for f in dataclasses.fields(kind) if f.default is missing and f.default_factory is missing]
    return _fields({f.name: _schema_of(hints[f.name], models) for f in dataclasses.fields(kind)}, needed)


def _alternatives(kinds: tuple[Any, ...], models: dict[str, Schema]) -> Schema:
    """Return the schema for a value or a reference to one. None allows a missing field, but not null."""
    values = [kind for kind in kinds if typing.get_origin(kind) is not Variable and kind is not NoneType]
    (value,) = (_schema_of(kind, models) for kind in values)
    return _or_reference(value)


def _or_reference(value: Schema) -> Schema:
    # By a condition, so that what is wrong inside the value is told as such.
    return {"if": _REFERENCE, "then": {}, "else": value}


def _fields(fields: dict[str, Schema], needed: list[str] | None = None) -> Schema:
    return {"type": "object", "properties": fields, "required": needed or [], "additionalProperties": False}


def _map_of(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _words(*words: str) -> Schema:
    return _or_reference({"enum": list(words)})


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
