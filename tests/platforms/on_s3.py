"""The separate process of test_s3, which needs a Java with the JARs of s3a."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark

import routing
from routing import cli, config
from routing.sessions import session
from tests.estate_rows import small_estate
from tests.frames import assert_same_frames

# hadoop-aws of the Hadoop that this Spark brings, and of the AWS SDK only what it calls.
_SDK = "2.29.52"
_MODULES = ("s3", "s3-transfer-manager", "apache-client", "sts", "netty-nio-client")
JARS = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.hadoop:hadoop-aws:3.4.2",
    *(f"software.amazon.awssdk:{module}:{_SDK}" for module in _MODULES),
)
SCHEMA = "shop"
_NAMED = ("tables.routes", "tables.messages", "output.resolved_routes", "output.runs")
# A second job has outputs of its own, whichever way each of them is named.
_ELSEWHERE = ("output.new_route_requests", "output.rejected_messages")


def main(file: str) -> int:
    """Store the small estate, resolve it by path and by catalog name, and compare both."""
    from routing.schemas import INPUTS
    from tests.frames import frame_of

    settings = config.load(file)
    spark = session.start(dict(settings.spark))
    hadoop = {path.name for path in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")}
    assert hadoop == {"hadoop-client-api-3.4.2.jar"}, hadoop
    for key, rows in small_estate().items():
        frame_of(spark, rows, INPUTS[key]).coalesce(1).write.format("delta").save(settings.tables[key].text)
    spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION 's3a://estate/{SCHEMA}'")
    for key in ("routes", "messages"):
        spark.sql(f"CREATE TABLE {SCHEMA}.{key} USING delta AS SELECT * FROM delta.`{settings.tables[key].text}`")
    line = ["resolve", "--config", file, "--quiet", "--format", "json"]
    status = cli.main(line)
    names = [f"{key}={SCHEMA}.{key.split('.')[1]}" for key in _NAMED]
    names += [f"{key}=s3a://estate/second/{key.split('.')[1]}" for key in _ELSEWHERE]
    status = status or cli.main([*line, *(part for name in names for part in ("--set", name))])
    if status == 0:
        _compare(spark, file, names)
    return status


def _compare(spark: pyspark.sql.SparkSession, file: str, names: list[str]) -> None:
    found = {}
    for how, overrides in (("by_path", []), ("by_name", names)):
        settings = config.load(file, overrides)
        runs = settings.output["runs"]
        table = spark.table(runs.text) if runs.is_name else spark.read.format("delta").load(runs.text)
        run_id = table.collect()[0]["run_id"]
        found[how] = routing.read_run(spark, settings, run_id).resolved_routes.drop("run_id")
    assert_same_frames(found["by_path"], found["by_name"])
    print(json.dumps({how: frame.count() for how, frame in found.items()}))  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
