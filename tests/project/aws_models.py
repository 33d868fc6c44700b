"""Requests to AWS, checked against the service models that AWS publishes, in the installed release of botocore.

botocore's validator checks fields, types and required values. The models also have words, patterns and maximal
lengths, which the services check.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

SAMPLES = {
    "SBROUTE_S3": "s3://a-bucket/some/folder",
    "APPLICATION_ID": "00abc123",
    "RUN_ID": "night-1",
    "CLUSTER_ID": "j-2AXXXXXXGAPLF",
    "EXECUTION_ROLE_ARN": "arn:aws:iam::123456789012:role/path/job-role",
    "SCHEDULE_ROLE_ARN": "arn:aws:iam::123456789012:role/schedule-role",
}
"""What stands for the variables of the files: a pattern holds for what is sent."""


def filled(value: Any) -> Any:
    """A parsed file with the samples in place of its variables."""
    return json.loads(re.sub(r"\$\{(\w+)\}", lambda match: SAMPLES[match.group(1)], json.dumps(value)))


def request_faults(service: str, operation: str, request: dict[str, Any]) -> list[str]:
    """Describe each deviation of an operation's request from AWS's model, with its path."""
    model = _service(service).operation_model(operation)
    # Whoever sends a request makes these.
    tokens = {name: "a-token" for name in model.idempotent_members if name not in request}
    return shape_faults(service, model.input_shape.name, {**request, **tokens})


def shape_faults(service: str, shape: str, value: Any) -> list[str]:
    """Describe each deviation of a value from a shape of the service's model."""
    model, sent = _service(service).shape_for(shape), filled(value)
    found = ParamValidator().validate(sent, model)
    return found.generate_report().splitlines() if found.has_errors() else list(_word_faults(sent, model, ""))


@lru_cache
def _service(name: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(name, "service-2"))


def _word_faults(value: Any, shape: Any, path: str) -> list[str]:
    """Describe words that a value must not have. Its fields and types are already correct."""
    if shape.type_name == "structure":
        parts = [(inner, shape.members[name], f"{path}.{name}") for name, inner in value.items()]
    elif shape.type_name == "list":
        parts = [(inner, shape.member, f"{path}[{at}]") for at, inner in enumerate(value)]
    elif shape.type_name == "map":
        parts = [(inner, shape.value, f"{path}.{name}") for name, inner in value.items()]
        parts += [(name, shape.key, f"{path}.{name}") for name in value]
    else:
        return _own_faults(value, shape, path)
    return [fault for part in parts for fault in _word_faults(*part)]


def _own_faults(value: Any, shape: Any, path: str) -> list[str]:
    faults = []
    if (words := shape.metadata.get("enum")) and value not in words:
        faults.append(f"{path} is {value!r}, not one of {', '.join(words)}")
    if (pattern := shape.metadata.get("pattern")) and not re.fullmatch(_python_pattern(pattern), value):
        faults.append(f"{path} is {value!r}, which is not of the form {pattern}")
    most = shape.metadata.get("max")
    if most is not None and (value if isinstance(value, int) else len(value)) > most:
        faults.append(f"{path} is greater than {most}")
    return faults


def _python_pattern(pattern: str) -> str:
    """Characters beyond the first 65,536 are pairs of two in Java's patterns, and one in Python's."""
    return pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
