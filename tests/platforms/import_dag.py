"""``build/airflow/bin/python tests/platforms/import_dag.py`` imports and runs sbroute_dag.py in Airflow.

Only the Python of `make test-airflow` has Airflow. Airflow's own DagBag reads the DAG. Its operator then runs a
stand-in for the command with each exit code. Ends with 1 on any fault.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "deploy" / "airflow"
# What becomes of a task whose command ends with a code.
BECOMES = {
    0: "success",
    1: "AirflowFailException",
    2: "AirflowFailException",
    3: "AirflowException",
    143: "AirflowException",
}


def main() -> int:
    """Import, list, run."""
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder) / "sbroute"
        command.write_text('#!/bin/sh\necho "$@"\nexit "$1"\n', encoding="utf-8")
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        os.environ["SBROUTE"] = str(command)
        from airflow import __version__
        from airflow.dag_processing.dagbag import DagBag

        bag = DagBag(dag_folder=str(FOLDER / "sbroute_dag.py"))
        say(f"Airflow {__version__}: {len(bag.dags)} DAG, import errors: {bag.import_errors or 'none'}")
        if bag.import_errors or list(bag.dags) != ["sbroute"]:
            return 1
        tasks = bag.dags["sbroute"].tasks
        for task in tasks:
            say(f"{task.task_id} -> {', '.join(sorted(task.downstream_task_ids)) or 'end'}: {task.arguments}")
        found = {code: run(bag.dags["sbroute"].get_task("lint"), code) for code in BECOMES}
        say(f"exit codes: {found}")
        rendered = render(bag.dags["sbroute"].get_task("resolve"))
        say(f"rendered: {rendered}")
    return int(found != BECOMES or "scheduled__2026-11-23T00:00:00+00:00" not in rendered)


def run(task: object, code: int) -> str:
    """Return the state of a task whose command ends with this exit code."""
    task.arguments = [str(code)]  # type: ignore[attr-defined]
    try:
        task.execute({})  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - its kind is what Airflow decides by
        return type(error).__name__
    return "success"


def render(task: object) -> list[str]:
    """The arguments of a task in a run of Airflow's schedule."""
    task.render_template_fields({"run_id": "scheduled__2026-11-23T00:00:00+00:00"})  # type: ignore[attr-defined]
    return list(task.arguments)  # type: ignore[attr-defined]


def say(line: str) -> None:
    """Print a line on the progress."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
