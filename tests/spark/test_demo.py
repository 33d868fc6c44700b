"""The demo runs once as for a user, with the right screen, folder and errors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from routing.cli import main
from routing.demo import build
from routing.demo.example_estates import document_estates
from routing.schemas import INPUTS
from tests.demo_screen import day_lines, estate_lines, summary_lines
from tests.frames import assert_same_frames
from tests.spark.conftest import DemoRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_demo_shows_the_estates_and_the_day_and_can_be_run_again(demo: DemoRun, tmp_path: Path) -> None:
    assert demo.status == 0
    screen = demo
    words = " ".join(screen.out.split())
    expected_lines = [line for estate in document_estates() for line in estate_lines(estate.title)]
    assert words.startswith(" ".join([*expected_lines, *day_lines(), *summary_lines()]))
    assert f"sbroute resolve --config {demo.folder / build.CONFIG_FILE}" in screen.out
    folder = tmp_path / "demo"
    shutil.copytree(demo.folder, folder)
    # demo replaces only a folder in which it created everything.
    assert {entry.name for entry in folder.iterdir()} == {"demo.yaml", "data", "out"}
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert main(["demo", "--out", str(folder)]) == 2
    assert (folder / "data" / "messages").is_dir()
    (folder / "notes.txt").unlink()
    build.check(folder)
    build.claim(folder)
    assert [entry.name for entry in folder.iterdir()] == ["demo.yaml"]
    assert (folder / "demo.yaml").read_text(encoding="utf-8") == (demo.folder / "demo.yaml").read_text(
        encoding="utf-8"
    )


@pytest.mark.long
def test_spark_and_deltalake_write_equal_demo_tables(spark: SparkSession, demo: DemoRun, tmp_path: Path) -> None:
    """The fixture's demo used Spark, because a session was given."""
    folder = tmp_path / "demo"
    build.claim(folder)
    build.write_tables(build.settings(folder, ()), None)
    for key in INPUTS:
        tables = [
            spark.read.format("delta").load(str(data_folder / "data" / key))
            for data_folder in (demo.folder, folder)
        ]
        by_spark, by_deltalake = tables
        assert by_deltalake.schema == by_spark.schema
        assert_same_frames(by_deltalake, by_spark)
        assert by_spark.count() > 0
        assert [commit["version"] for commit in DeltaTable(folder / "data" / key).history()] == [0]


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("resolv.mode=full", "unknown key 'resolv'"),
        ("tables.messages=/lake/messages", "--set tables.messages: demo makes its own tables"),
        ("output={}", "--set output: demo makes its own tables"),
    ],
)
def test_a_refused_demo_leaves_the_last_one(
    demo: DemoRun, override: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(demo.folder), "--set", override]) == 2
    assert why in capsys.readouterr().err
    assert (demo.folder / "data" / "messages").is_dir()


def test_the_demo_refuses_a_foreign_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign_file = tmp_path / "precious.txt"
    foreign_file.write_text("mine", encoding="utf-8")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert main(["demo", "--out", str(foreign_file)]) == 2
    screen = capsys.readouterr()
    assert screen.out == ""
    assert screen.err.count("has files that sbroute demo did not create (name another folder with --out)") == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["precious.txt"]
    assert foreign_file.read_text(encoding="utf-8") == "mine"
