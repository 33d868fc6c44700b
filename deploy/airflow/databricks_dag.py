"""Example DAG for Airflow 3: run job `nightly` of the Databricks bundle, which imports and then resolves.

It needs apache-airflow-providers-databricks and its connection `databricks_default`. Leave the schedules of the
bundle paused (docs/how-to/schedule.md).
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.databricks.operators.databricks import DatabricksRunNowOperator
from airflow.sdk import DAG

with DAG(
    dag_id="sbroute_databricks",
    description="Where every Service Broker message goes, and why, on Databricks",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
) as dag:
    nightly = DatabricksRunNowOperator(
        task_id="nightly",
        # As in resources/nightly.job.yml.
        job_name="sbroute nightly",
        wait_for_termination=True,
        # The job tries its tasks again itself. A second start here would be another run.
        retries=0,
        execution_timeout=timedelta(hours=6),
    )
