"""Jobs with a part of the instances each read and write only these, and share a view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing import cli
from routing.config import ConfigError
from routing.errors import InputError
from tests.estate_rows import database, instance, message, small_estate
from tests.imports import rows_at
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

SPOKES = ("spoke_1", "spoke_2", "spokes1")


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """Create a schema of the catalog."""
    spark.sql("CREATE SCHEMA jobs")
    yield "jobs"
    spark.sql("DROP SCHEMA jobs CASCADE")


def _inputs(folder: Path) -> Path:
    estate = small_estate()
    estate["instances"] += [instance(name) for name in SPOKES]
    estate["databases"] += [database(instance_name=name) for name in SPOKES]
    estate["messages"] += [
        message(20 + n, "//nowhere", instance_name=name) for n, name in enumerate((*SPOKES, None, "unlisted"))
    ]
    return save_estate(estate, folder / "in", files=1)


def _job(folder: Path, name: str, patterns: str | None, *overrides: str) -> Config:
    pending = f"output.pending_messages={folder / name / 'pending_messages'}"
    own = [] if patterns is None else [f"resolve.instances={patterns}"]
    return config_of(folder / "in", folder / name, pending, *own, *overrides)


def _read(config: Config) -> set[str | None]:
    rows: list[dict[str, Any]] = [
        *rows_at(config.output["resolved_routes"]),
        *rows_at(config.output["rejected_messages"]),
    ]
    return {row["instance_name"] for row in rows}


@pytest.mark.parametrize("mode", [pytest.param("full", marks=pytest.mark.long), "incremental"])
def test_a_job_reads_only_its_instances(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    _inputs(tmp_path)
    jobs = {
        "hub": _job(tmp_path, "hub", "hub", f"resolve.mode={mode}"),
        "spokes": _job(tmp_path, "spokes", "['spoke_*', unlisted]", f"resolve.mode={mode}"),
    }
    rows = {name: routing.run(spark, job).row for name, job in jobs.items()}
    # One message of the small estate belongs to an instance "spoke", which no pattern matches.
    assert (rows["hub"]["rows_read"], rows["spokes"]["rows_read"]) == (6, 3)
    assert _read(jobs["hub"]) == {"hub"}
    assert _read(jobs["spokes"]) == {"spoke_1", "spoke_2", "unlisted"}
    whole = _job(tmp_path, "whole", None, f"resolve.mode={mode}")
    routing.run(spark, whole)
    apart = [row for job in jobs.values() for row in rows_at(job.output["resolved_routes"])]
    decided = {(row["instance_name"], row["message_id"]): row["reason"] for row in apart}
    together = rows_at(whole.output["resolved_routes"])
    expected = {(row["instance_name"], row["message_id"]): row["reason"] for row in together}
    assert decided == {key: reason for key, reason in expected.items() if key[0] in ("hub", "spoke_1", "spoke_2")}
    assert routing.current_routes(spark, *jobs.values()).count() == len(apart)
    if mode == "incremental":
        save_estate(
            {"messages": [message(30, "//far"), message(31, "//far", instance_name="spokes1")]}, tmp_path / "in"
        )
        assert routing.run(spark, jobs["hub"], run_id="next").row["rows_resolved"] == 1
        with pytest.raises(InputError, match=r"had other resolve\.instances.*mode=full"):
            routing.run(spark, _job(tmp_path, "hub", "'*'", "resolve.mode=incremental"))
        with pytest.raises(ConfigError, match=r"'hub' of .* and '\*' of"):
            routing.current_routes(spark, jobs["hub"], whole)


@pytest.mark.long
def test_one_view_of_several_jobs(
    spark: SparkSession, schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _inputs(tmp_path)
    files = {}
    for name, patterns in (("hub", "[hub]"), ("spokes", "['spoke*']")):
        spark.sql(f"CREATE SCHEMA {schema}_{name}")
        files[name] = tmp_path / f"{name}.yaml"
        lines = [
            "tables:",
            *(f"  {key}: in/{key}" for key in ("instances", "databases", "services", "routes", "messages")),
        ]
        outputs = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
        lines += ["output:", *(f"  {key}: spark_catalog.{schema}_{name}.{key}" for key in outputs)]
        files[name].write_text("\n".join([*lines, "resolve:", f"  instances: {patterns}"]), encoding="utf-8")
    line = ["views", "--jobs", *map(str, files.values()), "--view", f"spark_catalog.{schema}.everything"]
    try:
        assert cli.main(line) == 2
        assert "run the job once" in capsys.readouterr().err
        done = {name: routing.run(spark, routing.load_config(str(file))) for name, file in files.items()}
        assert cli.main([*line, "--format", "json"]) == 0
        assert f"spark_catalog.{schema}_hub.current_routes" in capsys.readouterr().out
        view = spark.table(f"{schema}.everything")
        assert view.count() == sum(run.row["rows_resolved"] for run in done.values()) > 5
        # The view follows the next runs of its jobs.
        save_estate({"messages": [message(30, "//far")]}, tmp_path / "in")
        routing.run(spark, routing.load_config(str(files["hub"])))
        assert spark.table(f"{schema}.everything").where("message_id = 'm30'").count() == 1
        assert cli.main([*line[:2], str(files["hub"]), str(files["hub"]), *line[4:]]) == 2
        assert "two jobs may resolve the same instance" in capsys.readouterr().err
        assert cli.main([*line[:-1], "a/path"]) == 2
        assert "is not a name of a catalog" in capsys.readouterr().err
    finally:
        for name in files:
            spark.sql(f"DROP SCHEMA {schema}_{name} CASCADE")
