"""Imports that end after any of their commits, and the tables after the next import.

A scenario has a first import, the interrupted import, and the import of the next day. After the interrupted import
or the next day's, the tables must be the same as without the interruption.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hooks import Killed, kill
from tests.imports import SHOP_ID, config_in, exports, locations_of, no_spark, rows_at

if TYPE_CHECKING:
    from routing.delta.opening import TableOpener

UTC = timezone.utc
FIRST, SECOND, THIRD = (datetime(2026, 1, day, 12, tzinfo=UTC) for day in (5, 6, 7))
Step = Callable[["TableOpener", Path], None]
"""One import into the tables of a folder."""
_COMMITS = ("make", "add_columns", "put", "add", "replace")


def views(at: datetime, instance: str = "HUB", **of_views: str) -> Step:
    """Return an import of views of the database Shop."""

    def bring(opener: TableOpener, folder: Path) -> None:
        from routing.importing.catalog import StandIns, read_export
        from routing.importing.from_catalog import import_export

        source = folder / f"exports {at:%d %H} {instance}"
        if not source.exists():
            exports(source, at, **of_views)
            for file in source.iterdir():
                file.write_text(file.read_text().replace(",HUB,", f",{instance},"), encoding="utf-8")
        import_export(opener, config_in(folder), read_export([str(source)], StandIns()), now=at)

    return bring


def script(at: datetime, text: str, *, snapshot: bool = False, name: str = "change.sql") -> Step:
    """Return an import of a script of HUB, in the database Shop."""

    def bring(opener: TableOpener, folder: Path) -> None:
        from routing.importing.from_tsql import import_scripts
        from routing.importing.script_rows import read_scripts

        file = folder / f"{at:%d} {name}"
        file.write_text(text, encoding="utf-8")
        scripts = read_scripts([str(file)], instance="HUB", database="Shop", scripted_at=at)
        import_scripts(opener, config_in(folder), scripts, instance="HUB", now=at, snapshot=snapshot)

    return bring


def both(*steps: Step) -> Step:
    """Return several imports as one step."""

    def bring(opener: TableOpener, folder: Path) -> None:
        for step in steps:
            step(opener, folder)

    return bring


@dataclass(frozen=True)
class Scenario:
    """The first import, the interrupted import, and the import of the next day."""

    ended: Step
    next_day: Step
    before: tuple[Step, ...] = field(default=())


_DATABASES = "name,database_id,service_broker_guid,is_broker_enabled\n"
_ROUTES = "name,remote_service_name,broker_instance,lifetime,address,mirror_address\n"
_LOCAL = "AutoCreatedLocal,NULL,NULL,NULL,LOCAL,NULL\n"
SHOP = f"Shop,5,{SHOP_ID},1\n"
BAR = "Bar,6,22222222-1d3e-4b7a-9d5e-2f0a6b1c7d88,1\n"


def route(name: str, address: str) -> str:
    """Return a line of sys.routes."""
    return f"{name},//{name},NULL,NULL,TCP://{address}:4022,NULL\n"


def conversation(number: int) -> str:
    """Return the id of a conversation."""
    return f"cccccccc-0000-0000-0000-00000000000{number}"


_ENDS = "conversation_handle,conversation_id,is_initiator,far_service,far_broker_instance\n"
_QUEUE = (
    "conversation_handle,to_service_name,to_broker_instance,from_service_name,enqueue_time,"
    "message_sequence_number,transmission_status\n"
)


def traffic(*numbers: int) -> dict[str, str]:
    """Return conversation endpoints and a message of each that waits."""
    ends = "".join(f"{conversation(n)},{conversation(n)},1,//stock,NULL\n" for n in numbers)
    waiting = "//stock,NULL,//shop,2026-01-05 11:00:00,0,The target service name could not be found."
    queue = "".join(f"{conversation(n)},{waiting}\n" for n in numbers)
    return {"conversation_endpoints": _ENDS + ends, "transmission_queue": _QUEUE + queue}


def estate(at: datetime, *lines: str, other_databases: str = BAR, **others: str) -> Step:
    """Return an export of an instance with two databases, of which Shop has these routes."""
    whole = {"databases": _DATABASES + SHOP + other_databases, "services": "name\n//shop\n"}
    return views(at, **whole, routes=_ROUTES + _LOCAL + "".join(lines), **others)


_STOCK, _BILLING = route("stock", "stock"), route("billing", "billing")
# In the database Bar, whose routes the exports do not have.
_OF_BAR = script(
    FIRST,
    "USE Bar\nCREATE ROUTE far WITH ADDRESS = 'TCP://far:4022'\nCREATE SERVICE s ON QUEUE q\n",
    name="bar.sql",
)
_LATER = script(THIRD, "CREATE ROUTE late WITH ADDRESS = 'TCP://late:4022'\n", name="later.sql")
SCENARIOS = {
    "the first export": Scenario(estate(FIRST, _STOCK), estate(SECOND, _STOCK, _BILLING)),
    "a changed export": Scenario(
        estate(SECOND, _BILLING, **traffic(2, 3)),
        estate(THIRD, route("stock", "new"), **traffic(3, 4)),
        (estate(FIRST, _STOCK, **traffic(1, 2)),),
    ),
    "a database that an export drops": Scenario(
        estate(SECOND, _STOCK, other_databases=""),
        estate(THIRD, _STOCK, other_databases=""),
        (estate(FIRST, _STOCK), _OF_BAR),
    ),
    "the first script": Scenario(
        script(
            FIRST, "CREATE DATABASE Shop\nGO\nUSE Shop\nCREATE ROUTE stock WITH ADDRESS = 'TCP://stock:4022'\n"
        ),
        _LATER,
    ),
    "a database is made": Scenario(
        script(SECOND, "CREATE DATABASE New\nGO\nUSE New\nCREATE ROUTE n WITH ADDRESS = 'TCP://n:4022'\n"),
        _LATER,
        (estate(FIRST, _STOCK),),
    ),
    "a database is renamed": Scenario(
        script(SECOND, "ALTER DATABASE Bar MODIFY NAME = Baz\n"), _LATER, (estate(FIRST, _STOCK), _OF_BAR)
    ),
    "names are exchanged": Scenario(
        script(
            SECOND,
            "USE master\nGO\nALTER DATABASE Bar MODIFY NAME = T\nGO\nALTER DATABASE Shop MODIFY NAME = Bar\nGO\n"
            "ALTER DATABASE T MODIFY NAME = Shop\n",
        ),
        _LATER,
        (estate(FIRST, _STOCK), _OF_BAR),
    ),
    "a route if there is none": Scenario(
        script(
            SECOND,
            "IF NOT EXISTS (SELECT * FROM sys.services WHERE name = 'orders')\nBEGIN\n"
            "  CREATE SERVICE orders ON QUEUE q\n  CREATE ROUTE orders WITH ADDRESS = 'TCP://orders:4022'\nEND\n",
        ),
        _LATER,
        (estate(FIRST, _STOCK),),
    ),
    "a route that toggles": Scenario(
        script(
            SECOND,
            "IF EXISTS (SELECT * FROM sys.routes WHERE name = 'billing')\n  DROP ROUTE billing\nELSE\n"
            "  CREATE ROUTE billing WITH ADDRESS = 'TCP://billing:4022'\n",
        ),
        _LATER,
        (estate(FIRST, _STOCK),),
    ),
    "a snapshot by a script": Scenario(
        script(
            SECOND,
            "CREATE DATABASE New\nGO\nUSE New\nCREATE ROUTE n WITH ADDRESS = 'TCP://n:4022'\n",
            snapshot=True,
        ),
        _LATER,
        (estate(FIRST, _STOCK),),
    ),
}
"""What `make test` and `make test-long` try in the process."""
MORE_SCENARIOS = {
    "the first messages": Scenario(
        estate(FIRST, _STOCK, **traffic(1, 2)), estate(SECOND, _STOCK, _BILLING, **traffic(2, 3))
    ),
    "the first export of two": Scenario(
        estate(FIRST, _STOCK), estate(SECOND, _STOCK, _BILLING), (views(FIRST, "OTHER", routes=_ROUTES + _LOCAL),)
    ),
    "an export of another instance next": Scenario(
        estate(SECOND, _BILLING), views(THIRD, "OTHER", routes=_ROUTES + _LOCAL), (estate(FIRST, _STOCK),)
    ),
}
"""What `make test-crash` tries besides."""


@contextmanager
def watched(tell: Callable[[str], None]) -> Iterator[None]:
    """Within it imports tell the name of each commit that they have made."""
    from routing.importing import stored_rows

    def hooked(method: Callable[..., None], name: str) -> Callable[..., None]:
        def write(self: Any, *arguments: Any) -> None:
            method(self, *arguments)
            tell(f"{name} {self.key}")

        return write

    with pytest.MonkeyPatch.context() as patch:
        for writer in (stored_rows.LocalWriter, stored_rows.SparkWriter):
            for name in (name for name in _COMMITS if hasattr(writer, name)):
                patch.setattr(writer, name, hooked(getattr(writer, name), name))
        yield


@contextmanager
def ended_after(commit: int | None, do: Callable[[], None] = kill) -> Iterator[list[str]]:
    """Count commits, and end the import after one of them, or do something else then.

    The list has a name for each commit that was made.
    """
    done: list[str] = []

    def tell(name: str) -> None:
        done.append(name)
        if len(done) - 1 == commit:
            do()

    with watched(tell):
        yield done


def state_of(folder: Path) -> dict[str, list[str]]:
    """Return the rows of all tables, the journal among them, without the times at which they were imported."""
    config = config_in(folder)
    rows_by_key = {}
    for key, location in {**locations_of(config), "unfinished_imports": config.journal}.items():
        if location is not None and Path(location.text, "_delta_log").is_dir():
            rows = [{**row, "imported_at": None} if key == "imports" else row for row in rows_at(location)]
            rows_by_key[key] = sorted(map(repr, rows))
    # A table that is empty may not have been made.
    return {key: rows for key, rows in rows_by_key.items() if rows}


def copy_of(folder: Path, to: Path) -> Path:
    """Return a copy of the tables and files of a folder."""
    shutil.copytree(folder, to)
    return to


@dataclass(frozen=True)
class Undisturbed:
    """The tables before the interrupted import, after a complete one, and after the next day's."""

    start: Path
    before: dict[str, list[str]]
    expected: Mapping[str, dict[str, list[str]]]
    commits: list[str]

    @classmethod
    def of(cls, scenario: Scenario, folder: Path) -> Undisturbed:
        """Import, one after the other."""
        start = folder / "start"
        start.mkdir()
        for step in scenario.before:
            step(no_spark(), start)
        whole = copy_of(start, folder / "whole")
        with ended_after(None) as commits:
            scenario.ended(no_spark(), whole)
        assert len(commits) > 1
        after = copy_of(whole, folder / "next whole")
        scenario.next_day(no_spark(), after)
        expected = {"again": state_of(whole), "next day": state_of(after)}
        return cls(start, state_of(start), expected, commits)

    def find_faults(
        self, scenario: Scenario, half: Path, moment: str, opener: Callable[[], TableOpener] = no_spark
    ) -> list[str]:
        """Return the differences after repeating the import, or importing the next day, over half an import.

        If the interrupted import has stored nothing, the next day's import need not include it.
        """
        faults = []
        steps = {"again": scenario.ended, "next day": scenario.next_day}
        if state_of(half) == self.before:
            del steps["next day"]
        for name, step in steps.items():
            after = copy_of(half, half.with_name(f"{half.name} {name}"))
            try:
                step(opener(), after)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                faults.append(f"{moment}, {name}: {error}")
                continue
            actual, expected = state_of(after), self.expected[name]
            faults += [
                f"{moment}, {name}: {key} {sorted(set(actual.get(key, [])) ^ set(expected.get(key, [])))}"
                for key in {*actual, *expected}
                if actual.get(key) != expected.get(key)
            ]
            shutil.rmtree(after)
        return faults


def tell_differences(
    scenario: Scenario, folder: Path, opener: Callable[[], TableOpener] = no_spark, *, every: int = 1
) -> list[str]:
    """Return a line for each interrupted commit with different tables after the next import.

    ``opener`` opens the tables for these imports. Only each ``every``-th commit is tried.
    """
    undisturbed, faults = Undisturbed.of(scenario, folder), []
    halves = copy_halves(scenario.ended, undisturbed.start, folder, opener)
    assert [name for name, _ in halves] == undisturbed.commits
    for name, half in halves[::every]:
        faults += undisturbed.find_faults(scenario, half, f"after {name}", opener)
    return faults


def copy_halves(
    step: Step, start: Path, folder: Path, opener: Callable[[], TableOpener] = no_spark
) -> list[tuple[str, Path]]:
    """Import once, and return each commit with a copy of the tables after it, as a kill leaves them."""
    halves: list[tuple[str, Path]] = []
    interrupted_copy = copy_of(start, folder / "course")
    with watched(lambda name: halves.append((name, copy_of(interrupted_copy, folder / f"half {len(halves)}")))):
        step(opener(), interrupted_copy)
    return halves


def tell_differences_of_completing(scenario: Scenario, folder: Path) -> list[str]:
    """Return the same where the next day's import is ended as well, while it completes the first or later."""
    undisturbed, faults = Undisturbed.of(scenario, folder), []
    half = copy_of(undisturbed.start, folder / "half")
    # The configuration is written, and nothing else.
    with ended_after(2), pytest.raises(Killed):
        scenario.ended(no_spark(), half)
    for name, again in copy_halves(scenario.next_day, half, folder):
        scenario.next_day(no_spark(), again)
        actual, expected = state_of(again), undisturbed.expected["next day"]
        faults += [f"after {name}: {key}" for key in expected if actual.get(key) != expected[key]]
    return faults
