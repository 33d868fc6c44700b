"""A command starts Spark if the local engine cannot read a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures

from tests.estate_rows import small_estate
from tests.stored import config_text, save_estate

# The second command uses the session of the first one.
_PROGRAM = """
import sys
from routing.cli import main
config = ["--config", sys.argv[1]]
sys.exit(main(["resolve", *config]) or main(["trace", "--all", *config, "--set", "output.message_paths=paths"]))
"""


@pytest.mark.long
def test_a_table_that_only_spark_reads(tmp_path: Path) -> None:
    save_estate(small_estate(), tmp_path / "in", files=1)
    feature = TableFeatures.DeletionVectors
    DeltaTable(tmp_path / "in" / "messages").alter.add_feature(feature, allow_protocol_versions_increase=True)
    file = tmp_path / "job.yaml"
    file.write_text(config_text(tmp_path / "in", tmp_path / "out"), encoding="utf-8")
    line = [sys.executable, "-c", _PROGRAM, str(file)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    spark_lines = [line for line in done.stderr.splitlines() if line.startswith("Spark: ")]
    assert spark_lines == [
        "Spark: tables.messages cannot be read by the local engine, its reader version is 3",
        "Spark: a Spark session is given",
    ]
    [engine] = DeltaTable(tmp_path / "out" / "runs").to_pyarrow_table(columns=["engine"])["engine"].to_pylist()
    assert engine == "spark"
