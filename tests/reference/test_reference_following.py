"""The oracle follows every worked case of tracing as expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.cases import moment
from tests.reference.following import Network
from tests.reference.messages import read_message
from tests.reference.requests import RequestBook
from tests.reference.ways import Trace, Way

FILE = Path(__file__).resolve().parent.parent / "trace_cases" / "trace.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["cases"]
_END = ("end", "reason", "instance", "database", "address")


def _path_row(way: Way, like: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(way, name) for name in _END}
    assert {name for name in _END if row[name] is not None} <= like.keys()
    columns = ("instance", "scope", "step", "route", "address", "outcome", "reason")
    row["hops"] = [{name: getattr(hop, name) for name in columns} for hop in way.hops]
    return {name: row[name] for name in like}


def _is_like(trace: Trace, ways: list[dict[str, Any]]) -> bool:
    return [_path_row(way, like) for way, like in zip(trace.ways, ways, strict=True)] == ways


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    network, ask = Network(case["tables"]), case["ask"]
    row = {
        "message_id": "m",
        "conversation_id": ask["conversation_id"],
        "is_initiator": True,
        "enqueue_time": moment(case["at"]),
        "instance_name": ask["instance"],
        "database_name": ask["database"],
        "to_service_name": ask["service"],
        "hops_remaining": ask.get("hops_remaining"),
    }
    message = read_message(row, network.instances, {}, None)
    path = network.trace(message, RequestBook([]), ask["from_service"])
    assert _is_like(path.there, case["ways"])
    assert path.there.ways_agree is case["ways_agree"]
    assert path.there.multiple_targets is case["multiple_targets"]
    if "back" in case:
        assert path.back is not None
        assert _is_like(path.back, case["back"])
    else:
        assert path.back_end in (None, "DELAYED")


def test_all_cases_are_read() -> None:
    assert len(CASES) == 12
    assert sum("back" in case for case in CASES) == 3
