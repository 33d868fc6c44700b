"""A column that the rules decide is one field: in a copy of the package with one more it is found everywhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import routing

# Where a verdict has a field more, and where a hop has one; what a program then finds.
_VERDICT = ("rules/resolving.py", "    rerouted_from: str | None = None\n\n\nVERDICT_COLUMNS")
_HOP = ("rules/following.py", "    rerouted_from: str | None = None\n\n\nHOP_COLUMNS")
_PROGRAM = """
import json
from datetime import datetime
from routing.result_schemas import TRACED_HOPS
from routing.schemas import RESOLVED_ROUTES
from routing.cases.judged_questions import verdict_row
from routing.views.trace.tracing import hop_rows
from routing.plan.key_rows import CHOICE, decide_keys
from routing.plan.paths import PathPlanner
from routing.rules.network import ServiceAddress, EstateNetwork
from routing.rules.pathing import PathWithReturn, PathSender
from routing.tables.table_columns import TableColumns
from tests.unit.explained_rows import KnownRows
from tests.unit.rules.made import instance

hub = instance({"Orders": []})
[timeline] = decide_keys(
    TableColumns({"instance_name": ["hub"], "key_database": ["Orders"], "key_service": ["S"], "key_broker": [""],
             "key_kind": [1]}), {"hub": hub}).timelines
choice = dict(zip(CHOICE.names, timeline.rows[0][2][0]))
planner = PathPlanner(EstateNetwork({"hub": hub}))
timeline = planner.timeline(PathSender(hub, "Orders", True), ServiceAddress.of_name("S"), None)
[paths] = timeline.at(10, [None]).choices
[hop] = hop_rows(paths.paths[:1]).rows
message = {"message_id": "m", "conversation_id": "a" * 8 + "-0000-4000-8000-" + "a" * 12, "is_initiator": True,
           "enqueue_time": datetime(2026, 1, 5), "instance_name": "hub", "database_name": "Orders",
           "to_service_name": "S"}
tables = {"instances": [{"instance_name": "hub"}], "messages": [message],
          "databases": [{"instance_name": "hub", "name": "Orders", "service_broker_guid": "x"}]}
[explained] = KnownRows(tables).explain(message).verdict
print(json.dumps([choice.get("weight"), hop.get("weight"), explained.get("weight"),
                  *("weight" in schema.names for schema in (RESOLVED_ROUTES, TRACED_HOPS))]))
"""


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (None, [None, None, None, False, False]),
        (_VERDICT, ["heavy", None, "heavy", True, False]),
        (_HOP, [None, "heavy", None, False, True]),
    ],
    ids=["as it is", "a field of a verdict", "a field of a hop"],
)
def test_an_additional_field_is_carried_through_the_plan(
    where: tuple[str, str] | None, found: list[object], tmp_path: Path
) -> None:
    house = Path(routing.__file__).parent
    copy = shutil.copytree(house, tmp_path / "routing", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(house.parent / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    if where is not None:
        name, before = where
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(before) == 1
        more = before.replace(" = None\n", ' = None\n    weight: str | None = "heavy"\n', 1)
        (copy / name).write_text(text.replace(before, more), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == found
