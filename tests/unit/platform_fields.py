"""The fields that Databricks and AWS document for the files in this repository, and a check against them.

Looked up in November 2026 and pinned:

- Databricks: the bundle configuration reference and the job models of release 1.22.1 (CLI and databricks-bundles);
  fields that are in private preview there are left out;
- AWS: the service models of botocore 1.43.11: emr-serverless 2021-07-13, emr 2009-03-31, scheduler 2021-06-30;
  ``add-steps`` takes the AWS CLI's own form of a step, here that of release 1.45.11.

A type is a line of its fields: ``!`` for a required one; after a colon ``Type``, ``[Type]`` (a list), ``{Type}``
(a mapping with names of one's own) or the words it may hold, split by ``|``. Without a colon any value will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DATABRICKS = {
    "Bundle": "bundle!:Name artifacts:{Artifact} experimental include permissions:[Permission] presets python"
    " resources:Resources run_as:RunAs scripts sync:Sync targets:{Target} variables:{Variable} workspace",
    "Included": "resources!:Resources",
    "Name": "name! cluster_id databricks_cli_version deployment git uuid",
    "Artifact": "type!:whl|jar build dynamic_version executable files path",
    "Permission": "level!:CAN_MANAGE|CAN_RUN|CAN_VIEW group_name service_principal_name user_name",
    "RunAs": "service_principal_name user_name",
    "Sync": "exclude include paths",
    "Variable": "default description lookup type",
    "Target": "artifacts:{Artifact} bundle cluster_id default git mode:development|production"
    " permissions:[Permission] presets resources:Resources run_as:RunAs sync:Sync variables workspace",
    "Resources": "jobs:{Job} apps clusters dashboards experiments models pipelines schemas volumes",
    "Job": "budget_policy_id continuous description email_notifications environments:[JobEnvironment] git_source"
    " health job_clusters:[JobCluster] max_concurrent_runs name notification_settings parameters"
    " performance_target permissions:[Permission] queue:Queue run_as:RunAs schedule:Schedule tags tasks:[Task]"
    " timeout_seconds trigger webhook_notifications",
    "Queue": "enabled!",
    "Schedule": "quartz_cron_expression! timezone_id! pause_status:PAUSED|UNPAUSED",
    "Task": "task_key! condition_task dashboard_task dbt_task depends_on description disable_auto_optimization"
    " disabled email_notifications environment_key existing_cluster_id for_each_task health job_cluster_key"
    " libraries:[Library] max_retries min_retry_interval_millis new_cluster:Cluster notebook_task"
    " notification_settings pipeline_task python_wheel_task:WheelTask retry_on_timeout run_if run_job_task"
    " spark_jar_task spark_python_task spark_submit_task sql_task timeout_seconds webhook_notifications",
    "WheelTask": "package_name! entry_point! named_parameters parameters",
    "Library": "cran egg jar maven pypi requirements whl",
    "JobEnvironment": "environment_key! spec:Environment",
    "Environment": "base_environment dependencies environment_version java_dependencies",
    "JobCluster": "job_cluster_key! new_cluster!:Cluster",
    "Cluster": "spark_version! apply_policy_default_values autoscale:Autoscale autotermination_minutes"
    " aws_attributes azure_attributes cluster_log_conf cluster_name custom_tags docker_image"
    " data_security_mode:DATA_SECURITY_MODE_AUTO|DATA_SECURITY_MODE_DEDICATED|DATA_SECURITY_MODE_STANDARD"
    " driver_instance_pool_id driver_node_type_id enable_elastic_disk enable_local_disk_encryption gcp_attributes"
    " init_scripts instance_pool_id is_single_node kind node_type_id num_workers policy_id runtime_engine"
    " single_user_name spark_conf spark_env_vars ssh_public_keys use_ml_runtime workload_type",
    "Autoscale": "max_workers min_workers",
}

AWS = {
    # emr-serverless StartJobRun; the command line makes the clientToken itself.
    "StartJobRun": "applicationId! executionRoleArn! clientToken configurationOverrides:Overrides"
    " executionIamPolicy executionTimeoutMinutes jobDriver:JobDriver mode:BATCH|STREAMING name retryPolicy tags",
    "JobDriver": "hive sparkSubmit:SparkSubmit",
    "SparkSubmit": "entryPoint! entryPointArguments sparkSubmitParameters",
    "Overrides": "applicationConfiguration diskEncryptionConfiguration monitoringConfiguration:Monitoring",
    "Monitoring": "cloudWatchLoggingConfiguration managedPersistenceMonitoringConfiguration"
    " prometheusMonitoringConfiguration s3MonitoringConfiguration:S3Monitoring",
    "S3Monitoring": "encryptionKeyArn logUri",
    # aws emr add-steps --steps, and aws emr create-cluster --configurations.
    "Step": "ActionOnFailure:CANCEL_AND_WAIT|CONTINUE|TERMINATE_CLUSTER Args EncryptionKeyArn Jar LogUri MainClass"
    " Name Properties Type:CUSTOM_JAR|HIVE|IMPALA|PIG|STREAMING",
    "Classification": "Classification! Configurations:[Classification] Properties",
    # emr AddJobFlowSteps, as a schedule calls it.
    "AddJobFlowSteps": "JobFlowId! Steps!:[StepConfig] ExecutionRoleArn",
    "StepConfig": "Name! HadoopJarStep!:HadoopJarStep StepMonitoringConfiguration"
    " ActionOnFailure:CANCEL_AND_WAIT|CONTINUE|TERMINATE_CLUSTER|TERMINATE_JOB_FLOW",
    "HadoopJarStep": "Jar! Args MainClass Properties",
    "CreateSchedule": "Name! FlexibleTimeWindow!:Window ScheduleExpression! Target!:ScheduleTarget"
    " ActionAfterCompletion:DELETE|NONE ClientToken Description EndDate GroupName KmsKeyArn"
    " ScheduleExpressionTimezone StartDate State:DISABLED|ENABLED",
    "Window": "Mode!:FLEXIBLE|OFF MaximumWindowInMinutes",
    "ScheduleTarget": "Arn! RoleArn! DeadLetterConfig EcsParameters EventBridgeParameters Input KinesisParameters"
    " RetryPolicy:Retry SageMakerPipelineParameters SqsParameters",
    "Retry": "MaximumEventAgeInSeconds MaximumRetryAttempts",
}


def field_faults(tables: Mapping[str, str], kind: str, value: object, path: str = "") -> list[str]:
    """What in a value is not as documented, each with its path; ``kind`` is a type, ``[Type]`` or ``{Type}``."""
    if isinstance(value, str) and value.startswith("${"):
        return []  # a reference: what it stands for is looked at elsewhere
    if kind.startswith("["):
        return _each(tables, kind, dict(enumerate(value)) if isinstance(value, list) else None, path)
    if kind.startswith("{"):
        return _each(tables, kind, value if isinstance(value, dict) else None, path)
    if kind not in tables:
        return [] if value in kind.split("|") else [f"{path} is {value!r}, not {kind}"]
    if not isinstance(value, dict):
        return [f"{path} is no {kind}"]
    fields = dict(_field(word) for word in tables[kind].split())
    known = {name.rstrip("!") for name in fields}
    missing = {name[:-1] for name in fields if name.endswith("!")} - set(value)
    faults = [f"{path}.{name} is not documented" for name in value if name not in known]
    faults += [f"{path}.{name} is missing" for name in sorted(missing)]
    for name, inner in value.items():
        documented = fields.get(name) or fields.get(f"{name}!")
        if documented:
            faults += field_faults(tables, documented, inner, f"{path}.{name}")
    return faults


def _field(word: str) -> tuple[str, str]:
    name, _, kind = word.partition(":")
    return name, kind


def _each(tables: Mapping[str, str], kind: str, items: Mapping[Any, object] | None, path: str) -> list[str]:
    if items is None:
        return [f"{path} is no {kind}"]
    return [
        fault for key, item in items.items() for fault in field_faults(tables, kind[1:-1], item, f"{path}.{key}")
    ]
