"""Bad input gives exit code 2 and one sentence with table, key and fault, and writes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing import cli
from routing.config import ConfigError
from routing.errors import InputError
from routing.schemas import MESSAGES
from routing.sessions import session
from tests.estate_rows import route, small_estate
from tests.faulty_rows import faulty_rows
from tests.frames import arrow_of, frames
from tests.golden_texts import GOLDEN, assert_golden
from tests.stored import config_text, store_local, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core


def test_every_faulty_row_is_found(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from routing.messages.validate import check, read

    tables = frames(spark, faulty_rows())
    too_large = F.when(F.col("name") == "zero guid", F.lit(-(2**31) - 1)).otherwise(F.lit(2**31 - 1))
    tables["databases"] = tables["databases"].withColumn("database_id", too_large)
    lines = (GOLDEN / "faulty_rows.txt").read_text(encoding="utf-8").splitlines()
    with pytest.raises(InputError, match=f"^the input tables have {len(lines)} faulty rows: ") as caught:
        check(read(tables))
    text = str(caught.value)
    assert text.endswith(f"; and {len(lines) - 20} more (correct these rows; nothing was written)")
    assert sum(line in text for line in lines) == 20


def test_missing_frames_are_refused(spark: SparkSession) -> None:
    tables = frames(spark, small_estate())
    del tables["routes"], tables["services"]
    with pytest.raises(InputError, match="input tables are missing: routes, services") as caught:
        routing.resolve(spark, tables)
    assert caught.value.exit_code == 2


class Stand:
    """The folder of one test, in which inputs and outputs can be replaced before the command runs."""

    def __init__(self, inputs: Path, folder: Path) -> None:
        self.inputs, self.folder = inputs, folder
        self.tables: dict[str, Path | None] = {}
        self.overrides: list[str] = []

    def replace(self, key: str, rows: list[dict[str, Any]], *drop: str) -> None:
        """Replace an input by another table, without some of its columns."""
        from routing.schemas import INPUTS

        table = arrow_of(rows, INPUTS[key]).drop_columns([*drop])
        self.tables[key] = store_local(table, self.folder / f"other_{key}")

    def file(self, name: str) -> Path:
        """Write a plain file, and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not a table", encoding="utf-8")
        return path

    def resolve(self) -> int:
        """Run ``sbroute resolve``, and return its exit status."""
        file = self.folder / "job.yaml"
        file.write_text(config_text(self.inputs, self.folder / "out", **self.tables), encoding="utf-8")
        sets = [part for override in self.overrides for part in ("--set", override)]
        return cli.main(["resolve", "--config", str(file), "--quiet", *sets])


def _missing_table(stand: Stand) -> None:
    stand.tables["services"] = stand.folder / "nowhere"


def _plain_files_as_input(stand: Stand) -> None:
    stand.tables["routes"] = stand.file("csv/routes.csv").parent


def _missing_catalog_table(stand: Stand) -> None:
    stand.overrides.append("tables.routes=no_such_schema.routes")


def _missing_column(stand: Stand) -> None:
    stand.replace("routes", small_estate()["routes"], "address", "name")


def _faulty_row(stand: Stand) -> None:
    stand.replace("routes", [*small_estate()["routes"], route("Far", "//far", "LOCAL")])


def _output_under_a_file(stand: Stand) -> None:
    stand.overrides.append(f"output.runs={stand.file('plain')}/deep/runs")


def _output_is_a_file(stand: Stand) -> None:
    stand.overrides.append(f"output.resolved_routes={stand.file('plain')}")


def _output_on_an_input(stand: Stand) -> None:
    stand.overrides.append(f"output.rejected_messages={stand.inputs / 'messages'}")


def _output_of_another_schema(stand: Stand) -> None:
    other = store_local(arrow_of(small_estate()["messages"], MESSAGES), stand.folder / "other")
    stand.overrides.append(f"output.rejected_messages={other}")


def _output_of_plain_files(stand: Stand) -> None:
    stand.overrides.append(f"output.runs={stand.file('mine/notes.txt').parent}")


def _broken_yaml(stand: Stand) -> None:
    stand.overrides.append("resolve.as_of=[")


BAD = (
    _missing_table,
    _plain_files_as_input,
    _missing_catalog_table,
    _missing_column,
    _faulty_row,
    _output_under_a_file,
    _output_is_a_file,
    _output_on_an_input,
    _output_of_another_schema,
    _output_of_plain_files,
    _broken_yaml,
)


@pytest.mark.parametrize("spoil", BAD, ids=[f.__name__.strip("_") for f in BAD])
def test_the_command_stops_and_writes_nothing(
    spark: SparkSession, stored: Path, tmp_path: Path, spoil: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stand = Stand(stored, tmp_path)
    spoil(stand)
    (tmp_path / "job.yaml").touch()
    before = [written(stored), [line for line in written(tmp_path) if not line.startswith("job.yaml")]]
    assert stand.resolve() == 2
    after = [written(stored), [line for line in written(tmp_path) if not line.startswith("job.yaml")]]
    assert after == before
    assert not (tmp_path / "out").exists()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    text = err.replace(str(tmp_path), "FOLDER").replace(str(stored), "INPUTS")
    assert_golden(f"bad_input/{spoil.__name__.strip('_')}.txt", text)


def test_start_settings_in_a_file_read_by_spark_are_refused(
    spark: SparkSession, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routing.commands import command_context

    file = tmp_path / "job.yaml"
    late = "spark:\n  spark.driver.memory: 64g\n  spark.sql.shuffle.partitions: 7\n"
    file.write_text(config_text(stored, tmp_path / "out") + late, encoding="utf-8")
    monkeypatch.setattr(command_context, "session", lambda *_: spark)
    options = argparse.Namespace(config=file.as_uri(), overrides=[], verbose=False)
    # A given session is used as it is.
    assert command_context.load(options).spark["spark.driver.memory"] == "64g"
    monkeypatch.setattr(session, "is_given", lambda: False)
    with pytest.raises(ConfigError, match=r"too early for spark\.driver\.memory \(copy the file"):
        command_context.load(options)


def test_optional_tables_that_are_not_there_are_left_out(
    spark: SparkSession, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One missing table is named by path, and one by a catalog name."""
    stand = Stand(stored, tmp_path)
    stand.tables["dialogs"] = tmp_path / "nowhere"
    stand.overrides.append("tables.route_requests=no_such_schema.route_requests")
    assert stand.resolve() == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert notes == [
        f"note: tables.dialogs: no table at '{tmp_path / 'nowhere'}', so it is left out",
        "note: tables.route_requests: no table at 'no_such_schema.route_requests', so it is left out",
    ]
