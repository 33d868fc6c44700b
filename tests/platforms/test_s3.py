"""An S3-compatible store (moto's server) through s3a: inputs, outputs, and catalog names for tables there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.platforms.processes import answer, free_port, running, until

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "build" / "moto" / "bin" / "moto_server"
BUCKET = "estate"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a store with one empty bucket."""
    log = tmp_path_factory.mktemp("moto") / "server.log"
    port = free_port()
    with running([str(SERVER), "--host", "127.0.0.1", "--port", str(port)], log):
        endpoint = f"http://127.0.0.1:{port}"
        until(lambda: bool(answer(f"{endpoint}/moto-api/")), "the store's answer", log)
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=30).close()
        yield endpoint


def _configuration(folder: Path, endpoint: str) -> Path:
    """Return a configuration with all tables in the bucket, and a user's settings of s3a in their section."""
    from tests.platforms.on_s3 import JARS

    tables = ("routes", "databases", "services", "instances", "messages", "dialogs", "route_requests")
    outputs = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
    content = {
        "tables": {key: f"s3a://{BUCKET}/in/{key}" for key in tables},
        "output": {key: f"s3a://{BUCKET}/out/{key}" for key in outputs},
        "spark": {
            "spark.jars.packages": ",".join(JARS),
            # Half a gigabyte of clients for every service; the modules that s3a needs are named above.
            "spark.jars.excludes": "software.amazon.awssdk:bundle",
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        },
    }
    file = folder / "s3.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def test_inputs_outputs_and_catalog_names_on_s3(store: str, tmp_path: Path) -> None:
    file = _configuration(tmp_path, store)
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.platforms.on_s3", str(file)],
        env={**environment, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    by_path, by_name, read_back = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    # The small estate of tests/estate_rows.py: seven messages, two of them to be rejected.
    counts = {"rows_read": 7, "rows_resolved": 5, "rows_rejected": 2}
    for row in (by_path, by_name):
        assert {name: row[name] for name in counts} == counts
    assert by_path["outcome_counts"] == by_name["outcome_counts"]
    assert set(by_name["output_versions"]) == {"new_route_requests", "rejected_messages", "resolved_routes"}
    assert read_back == {"by_path": 5, "by_name": 5}
    listing = answer(f"{store}/{BUCKET}?list-type=2&prefix=out/")
    assert "<Key>out/runs/_delta_log/00000000000000000000.json</Key>" in listing
    assert "<Key>out/resolved_routes/_delta_log/00000000000000000000.json</Key>" in listing
