"""Work must grow as its input does: calls of functions are counted, for seconds differ between machines."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from routing.advice.stuck_messages import AdviceEstate
from routing.cases import judged_questions as judging
from routing.cases import message_cases
from routing.cases.exported_files import FileOptions
from routing.cases.known_estate import EstateKnowledge, KnowledgeGap
from routing.engines.arrow.message_keys import MessageRows
from routing.engines.arrow.resolved_batches import BatchResolver, MessageScan
from routing.importing.catalog import StandIns, text_tables, typed_rows
from routing.importing.catalog.cell_values import TimeForm, read_cell
from routing.importing.catalog.result_files import read_sources
from routing.importing.catalog.views import CellKind
from routing.lint.file_linting import lint_files
from routing.plan.checked_inputs import DialogSurvey, check_inputs
from routing.rules import text
from routing.rules.estate import Database, SqlInstance
from routing.rules.resolving import RoutedMessage, Verdict
from routing.rules.text import likeness, name_core
from routing.tables.read_rows import read_settings
from routing.terms import ReadRow
from routing.views.check import check_report
from routing.views.check.checking import check
from tests.estate_rows import database, estate, instance, message, route, service
from tests.frames import arrow
from tests.large_estates import LARGE, many_messages, many_routes_for_any_service
from tests.unit.explained_rows import KnownRows

SMALL = 25
MOST_GROWTH = 6.0
"""At four times the size, the work may be six times as much."""
MOST_CALLS = 780
"""The calls of functions that one more problem may cost."""


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls of functions, those of Python itself included."""
    count = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def grows(work: Callable[[int], object], small: int = SMALL) -> float:
    """Return the growth of the calls at four and sixteen times a size, without the fixed cost."""
    work(small)
    first, second, third = (count_calls(partial(work, size)) for size in (small, 4 * small, 16 * small))
    return (third - second) / (second - first)


def grows_with(kind: str, folder: Path, work: Callable[[str], object]) -> float:
    """Return `grows` of a command on folders of exports."""
    for size in (SMALL, 4 * SMALL, 16 * SMALL):
        LARGE[kind](folder / str(size), size)
    return grows(lambda size: work(str(folder / str(size))))


@pytest.mark.parametrize("kind", LARGE)
def test_check_is_linear(kind: str, tmp_path: Path) -> None:
    assert grows_with(kind, tmp_path, lambda path: check_report.make_document(check([path]))) < MOST_GROWTH


@pytest.mark.parametrize("kind", LARGE)
def test_lint_is_linear(kind: str, tmp_path: Path) -> None:
    now, options = datetime(2026, 1, 5, tzinfo=timezone.utc), FileOptions(StandIns())
    assert grows_with(kind, tmp_path, lambda path: lint_files([path], options, now=now)) < MOST_GROWTH


def test_shared_facts_are_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten messages to each of ten services: ids differ, everything else is the same in many rows."""
    cells: Counter[object] = Counter()
    verdicts: Counter[int] = Counter()
    of_verdict, message_of = EstateKnowledge.of_verdict, message_cases.message_of
    read_messages: list[object] = []

    def read(cell: object, kind: CellKind, form: TimeForm | None = None) -> object:
        cells[cell] += isinstance(cell, str)
        return read_cell(cell, kind, form)

    def judge(knowledge: EstateKnowledge, instance: str, verdict: Verdict) -> tuple[KnowledgeGap, ...]:
        verdicts[id(verdict)] += 1
        return of_verdict(knowledge, instance, verdict)

    def read_message(row: ReadRow, as_of: int | None) -> RoutedMessage:
        read_messages.append(row)
        return message_of(row, as_of)

    monkeypatch.setattr(typed_rows, "read_cell", read)
    monkeypatch.setattr(message_cases, "message_of", read_message)
    monkeypatch.setattr(EstateKnowledge, "of_verdict", judge)
    done = check([str(many_messages(tmp_path / "exports", 100, 10))])
    assert len(done.results) == 100
    # Once in the queue and once in the endpoints; the instance once in each of the six views, and in each row of a
    # view that may be empty.
    assert cells["//any3"] == 2
    assert cells["SHOP"] <= 10
    assert len(read_messages) == len({id(result.case) for result in done.results}) == 10
    # No service has a route of its own, so one verdict is right for all of them.
    assert list(verdicts.values()) == [1]
    assert len({id(result.row["to_service_name"]) for result in done.results}) == 10
    assert len({id(result.case.status_text) for result in done.results}) == 1


def test_a_message_to_another_missing_service_costs_few_calls(tmp_path: Path) -> None:
    """Each such message is a problem of its own, and only the first problems are printed."""

    def calls(count: int) -> int:
        exports = str(many_messages(tmp_path / str(count), count, count))
        check([exports])
        return count_calls(lambda: check_report.make_document(check([exports])))

    assert (calls(200) - calls(100)) / 100 < MOST_CALLS


def test_rows_of_result_sets_are_streamed(tmp_path: Path) -> None:
    found, notes, _ = read_sources([str(many_messages(tmp_path / "exports", 10, 10))], None)
    export = typed_rows.export_of(found, notes, lambda part: StandIns())
    assert len(export.rows["transmission_queue"]) == 10
    assert not any(len(part.rows.rows) for part in found)


def test_empty_cells_are_not_copied_one_by_one() -> None:
    """Copies call nothing, so that processor time tells: four times the cells, sixteen times the copying."""

    def seconds(size: int) -> float:
        text = f"database_name,name\nOrders,//orders{',' * size}\n"
        begun = time.process_time()
        [found] = text_tables.result_sets(text, "services.csv", None)
        assert [row for _, row in found.rows] == [{"database_name": "Orders", "name": "//orders"}]
        return time.process_time() - begun

    small, large = (min(seconds(size) for _ in range(2)) for size in (10_000, 40_000))
    assert large < 8 * small


def test_a_long_name_is_folded_once_for_all_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = "//Stock" + "x" * 1_000
    folded: list[str] = []

    def fold(name: str) -> str:
        folded.append(name)
        return likeness(name)

    monkeypatch.setattr(judging, "likeness", fold)
    names = [f"//other{number}" for number in range(50)]
    assert judging.find_spellings([*names, asked.lower(), asked, None], {asked}) == [asked.lower()]
    assert folded.count(asked) == 2
    assert len(folded) == 53


@pytest.mark.parametrize("kind", ["one instance", "an instance for each"])
def test_resolve_is_linear_in_databases(kind: str) -> None:
    """Each database holds the same service, sends to it, and is named again by nothing but its rows."""
    looked = 0

    class Counted(dict[str, Database]):
        def __iter__(self) -> Iterator[str]:
            nonlocal looked
            looked += len(self)
            return super().__iter__()

    def look_ups(size: int) -> int:
        nonlocal looked
        names = ["hub"] * size if kind == "one instance" else [f"i{number}" for number in range(size)]
        places = [{"instance_name": name, "database_name": f"d{n}"} for n, name in enumerate(names)]
        tables = arrow(
            estate(
                instances=[instance(name) for name in sorted({*names})],
                databases=[
                    database(f"d{n}", f"{n:08x}-aaaa-bbbb-cccc-000000000000", instance_name=name)
                    for n, name in enumerate(names)
                ],
                services=[service(name="//s", **place) for place in places],
                routes=[route("Any", None, "LOCAL", **place) for place in places],
                messages=[message(n, "//s", **place) for n, place in enumerate(places)],
            )
        )
        checked = check_inputs(read_settings(tables), None, DialogSurvey())
        vars(checked)["instances"] = {
            name: replace(one, databases=Counted(one.databases)) for name, one in checked.instances.items()
        }
        looked = 0
        scan = MessageScan.of(MessageRows.of(tables["messages"], None), None, checked)
        resolver = BatchResolver(scan)
        assert sum(len(resolver.key(batch).rows) for batch in scan.batches()) == size
        return looked

    assert 0 < look_ups(400) <= MOST_GROWTH * look_ups(100)


def test_a_long_name_is_spelled_once_for_all_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of a name of five million characters for each of many routes would take minutes."""
    asked = "//Stock" + "x" * 1_000
    cores: list[str] = []

    def core(name: str) -> str:
        cores.append(name)
        return name_core(name)

    monkeypatch.setattr(text, "name_core", core)
    tables = estate(
        routes=[route(f"r{number}", f"//other{number}", "LOCAL") for number in range(100)]
        + [route(f"near{number}", asked.upper(), "LOCAL", broker_instance=f"b{number}") for number in range(100)]
    )
    explained = KnownRows({**tables, "messages": [message(1, asked)]}).explain(message(1, asked))
    assert explained.remedy is not None
    assert cores.count(asked) + cores.count(asked.upper()) <= 10


def test_machines_of_shared_paths_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of forty messages may take each of forty routes."""
    hosts: list[str | None] = []
    find = AdviceEstate.find_on_machine

    def note(estate: AdviceEstate, host: str | None) -> SqlInstance | None:
        hosts.append(host)
        return find(estate, host)

    monkeypatch.setattr(AdviceEstate, "find_on_machine", note)
    done = check([str(many_routes_for_any_service(tmp_path / "exports", 40))])
    check_report.make_document(done)
    assert 0 < len(hosts) == len(set(hosts)) <= 41
