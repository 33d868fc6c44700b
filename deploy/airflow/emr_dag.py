"""Example DAG for Airflow 3: import, then resolve on EMR Serverless, as deploy/emr/submit.sh does.

It needs apache-airflow-providers-amazon, its connection `aws_default`, and the job runs of deploy/emr in
the folder SBROUTE_EMR. The variables of the files are environment variables: SBROUTE_S3, APPLICATION_ID and
EXECUTION_ROLE_ARN. `resolve` gets Airflow's id of the run, and counts once under it (docs/how-to/schedule.md).
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from string import Template

from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from airflow.sdk import DAG

FOLDER = Path(os.environ.get("SBROUTE_EMR", "/etc/sbroute/emr"))


def job_run(task_id: str, file: str) -> EmrServerlessStartJobOperator:
    """Return a task that starts the job run of a file and waits for its end."""
    text = Template((FOLDER / file).read_text(encoding="utf-8"))
    request = json.loads(text.substitute(os.environ, RUN_ID="{{ run_id }}"))
    minutes = request["executionTimeoutMinutes"]
    return EmrServerlessStartJobOperator(
        task_id=task_id,
        name=request["name"],
        application_id=request["applicationId"],
        execution_role_arn=request["executionRoleArn"],
        job_driver=request["jobDriver"],
        configuration_overrides=request["configurationOverrides"],
        config={"executionTimeoutMinutes": minutes},
        waiter_delay=60,
        # A run may also wait in the queue of the application.
        waiter_max_attempts=2 * minutes,
    )


with DAG(
    dag_id="sbroute_emr",
    description="Where every Service Broker message goes, and why, on EMR Serverless",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=5)},
) as dag:
    import_ = job_run("import", "serverless-import-job-run.json")
    resolve = job_run("resolve", "serverless-job-run.json")
    import_ >> resolve
