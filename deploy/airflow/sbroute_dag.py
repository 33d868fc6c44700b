"""Example DAG for Airflow 3: import the exports every night, look for faults of the configuration, then resolve.

A second start of a task continues the same run, whether Airflow or a person starts it. `resolve` gets Airflow's id
of the run, and counts once under it (docs/how-to/schedule.md).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# The command in an environment of its own, so that neither Spark nor Airflow decides what the other may have.
SBROUTE = os.environ.get("SBROUTE", "sbroute")
CONFIG = os.environ.get("SBROUTE_CONFIG", "/etc/sbroute/job.yaml")
EXPORTS = os.environ.get("SBROUTE_EXPORTS", "/var/lib/sbroute/exports")
# 1: it found what it was told to fail on. 2: the command line, the configuration or an input is at fault. The same
# would come of another try; whatever else fails may pass.
NOT_RETRIED = (1, 2)


class SbrouteOperator(BaseOperator):
    """One command of sbroute: its lines go to the task's log, its exit code says whether to try again."""

    template_fields = ("arguments",)

    def __init__(self, *, arguments: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self.arguments = list(arguments)
        self.hook = SubprocessHook()

    def execute(self, context: Any) -> None:
        """Run the command to its end. Its last line is part of the task's error."""
        ended = self.hook.run_command([SBROUTE, *self.arguments])
        if ended.exit_code in NOT_RETRIED:
            raise AirflowFailException(f"exit code {ended.exit_code}, not to be tried again: {ended.output}")
        if ended.exit_code:
            raise AirflowException(f"exit code {ended.exit_code}: {ended.output}")

    def on_kill(self) -> None:
        """Have the command end itself, Java included, when the task is marked or runs out of time."""
        self.hook.send_sigterm()


with DAG(
    dag_id="sbroute",
    description="Where every Service Broker message goes, and why",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    # A second run would find the first at work, and end with exit code 3.
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5), "retry_exponential_backoff": True},
) as dag:
    import_ = SbrouteOperator(
        task_id="import",
        arguments=["import", "catalog", EXPORTS, "--config", CONFIG, "--log-format", "json"],
        execution_timeout=timedelta(hours=1),
    )
    lint = SbrouteOperator(
        task_id="lint",
        arguments=["lint", "--config", CONFIG, "--fail-on", "error", "--log-format", "json"],
        execution_timeout=timedelta(minutes=15),
    )
    resolve = SbrouteOperator(
        task_id="resolve",
        arguments=["resolve", "--config", CONFIG, "--run-id", "{{ run_id }}", "--log-format", "json"],
        execution_timeout=timedelta(hours=2),
    )
    import_ >> lint >> resolve
