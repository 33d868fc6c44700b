"""Store the tables of a release: ``python -m tests.store_release tests/stored_by_0_2_0 tests/stored_by_NEXT``.

Run it with the code of the release itself, before any change of stored data. It copies the exports of the first
folder to the second, and lets the command line import and resolve them there:

- ``in`` has imports of catalog views, of a script and of events, one after another. - ``out`` has run ``first``
(full), run ``second`` (incremental, with waiting messages), and a third one that is killed with -9. It also has
paths of messages and a reconciliation after the second run. - ``catalog`` has the same by names of a catalog. Run
``second`` is recorded, and is killed before it replaces the view.

`test_stored_release` copies the folder and continues from there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.hooks import Killed, hooked, kill, once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

STORED_BY_0_2_0, STORED_BY_0_3_0 = (Path(__file__).with_name(f"stored_by_0_{n}_0") for n in (2, 3))
ROOT = Path(__file__).parents[1]
INPUTS = ("routes", "databases", "services", "instances", "messages", "dialogs", "observed_routing", "imports")
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs", "pending_messages")
BESIDE = ("route_candidates", "message_paths", "reconciliation")
TUESDAY, WEDNESDAY = (f"2026-01-{day}T20:00:00Z" for day in ("06", "07"))


def main() -> None:
    """Copy the exports, and store this release's tables from them."""
    exports, target = (Path(argument) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="sbroute-") as made:
        folder = Path(made, target.name)
        shutil.copytree(exports / "exported", folder / "exported")
        _store(folder)
        # Checksums of Hadoop's local disk.
        for file in folder.rglob(".*.crc"):
            file.unlink()
        shutil.copytree(folder, target, dirs_exist_ok=True)


def _store(folder: Path) -> None:
    paths = {key: f"in/{key}" for key in INPUTS}
    # What is named has its name in `runs`; a path beside names would be another table once it is moved.
    named = {**paths, "messages": f"{folder.name}.messages"}
    for name, tables, outputs in (
        ("job", paths, {key: f"out/{key}" for key in (*OUTPUTS, *BESIDE)}),
        ("catalog", named, {key: f"{folder.name}.{key}" for key in OUTPUTS}),
    ):
        content = {"tables": tables, "output": outputs, "resolve": {"mode": "incremental"}}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    with _session(folder) as spark:
        _import(folder, "catalog", "monday")
        _import(folder, "events", "events.jsonl")
        _resolve(folder, "--run-id", "first", "--set", "resolve.mode=full")
        spark.sql(f"CREATE TABLE {folder.name}.messages USING DELTA LOCATION '{folder / 'in' / 'messages'}'")
        _run_named(spark, folder, "first", TUESDAY)
        _import(folder, "tsql", "tuesday.sql", "--instance", "SHOP", "--scripted-at", "2026-01-06T09:00:00Z")
        _import(folder, "catalog", "tuesday")
        _resolve(folder, "--run-id", "second", "--now", TUESDAY)
        _sbroute(folder, "candidates")
        _sbroute(folder, "trace", "--all")
        _sbroute(folder, "reconcile")
        with hooked(once("after runs", kill)):
            _run_named(spark, folder, "second", TUESDAY)
        _import(folder, "catalog", "wednesday")
        _resolve(folder, "--run-id", "third", "--now", WEDNESDAY, point="before runs")
        [shown] = spark.sql(f"SHOW CREATE TABLE {folder.name}.current_routes").collect()
        (folder / "catalog" / "current_routes.sql").write_text(shown[0] + "\n", encoding="utf-8")


def _import(folder: Path, kind: str, source: str, *arguments: str) -> None:
    _sbroute(folder, "import", kind, str(folder / "exported" / source), *arguments)


def _resolve(folder: Path, *arguments: str, point: str | None = None) -> None:
    _sbroute(folder, "resolve", *arguments, point=point)


def _sbroute(folder: Path, *arguments: str, point: str | None = None) -> None:
    """Run the command in a separate process, and kill it at the point if one is given."""
    module = ["routing"] if point is None else ["tests.crash.dying", point]
    line = [sys.executable, "-m", *module, *arguments, "--config", str(folder / "job.yaml")]
    done = subprocess.run(line, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True)
    if (done.returncode != 0) == (point is None):
        raise SystemExit(f"exit code {done.returncode}: {' '.join(line)}")


def _run_named(spark: SparkSession, folder: Path, run_id: str, now: str) -> None:
    import routing

    config: Config = routing.load_config(str(folder / "catalog.yaml"), ())
    moment = datetime.fromisoformat(now.replace("Z", "+00:00")).astimezone(timezone.utc)
    with suppress(Killed):
        routing.run(spark, config, run_id=run_id, now=moment)


@contextmanager
def _session(folder: Path) -> Iterator[SparkSession]:
    """Return a session with a catalog that stores a schema's tables in the folder."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(folder.parent / "warehouse"))
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    spark.sql(f"CREATE SCHEMA {folder.name} LOCATION '{folder / 'catalog'}'")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
