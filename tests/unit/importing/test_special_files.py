"""A pipe or a device that is named on the command line: each command ends with a sentence, and reads nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing.errors import ContractError
from routing.importing.catalog import StandIns, read_export
from routing.importing.events.event_files import read_events
from routing.importing.import_files import on_this_disk
from routing.importing.script_rows import read_scripts
from tests.without import SPARK, CommandsWithout

WHY = "it is a pipe, device or socket, and only ordinary files are read"
ROUTES = "name,remote_service_name,broker_instance,lifetime,address,mirror_address\nA,NULL,NULL,NULL,LOCAL,NULL\n"


@pytest.fixture(scope="module")
def commands() -> Iterator[CommandsWithout]:
    with CommandsWithout(SPARK) as found:
        yield found


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["check", "PIPE.csv"], id="check"),
        pytest.param(["check", "PIPE.sql"], id="check, a script"),
        pytest.param(["check", "/dev/zero"], id="check, a device without an end"),
        pytest.param(["lint", "PIPE.sql"], id="lint"),
        pytest.param(["lint", "FILE", "--rules", "PIPE.sql"], id="lint, its rules"),
        pytest.param(["lint", "--config", "PIPE.csv"], id="a configuration"),
    ],
)
def test_a_command_ends_at_a_pipe(commands: CommandsWithout, tmp_path: Path, arguments: list[str]) -> None:
    for name in ("pipe.csv", "pipe.sql"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "routes.csv").write_text(ROUTES, encoding="utf-8")
    named = [
        one.replace("PIPE", f"{tmp_path}/pipe").replace("FILE", f"{tmp_path}/routes.csv") for one in arguments
    ]
    done = commands.run(*named)
    assert (done.returncode, WHY in done.stderr) == (2, True), done.stderr


def test_each_import_refuses_a_pipe(tmp_path: Path) -> None:
    for name in ("routes.csv", "s.sql", "e.xml"):
        os.mkfifo(tmp_path / name)
    imports = (
        lambda: read_export([str(tmp_path / "routes.csv")], StandIns("hub", "Shop")),
        lambda: read_scripts([str(tmp_path / "s.sql")], instance="hub", reach=on_this_disk),
        lambda: list(read_events([str(tmp_path / "e.xml")], on_this_disk, [])),
    )
    for read in imports:
        with pytest.raises(ContractError, match=WHY):
            read()


def test_an_ordinary_file_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "routes.csv").write_text(ROUTES, encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(tmp_path / "routes.csv")
    assert on_this_disk(str(tmp_path / "link.csv")) == tmp_path / "link.csv"
