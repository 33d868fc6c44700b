"""Reconcile without Spark: hand-written observations in episodes and classes, also through the command."""

from __future__ import annotations

import json
import random
import re
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import routing
from routing import cli
from routing.errors import InputError
from routing.process import no_search_for_cycles
from routing.result_schemas import BALANCED_PICKS, RECONCILED_CAUSES, RECONCILED_COUNTS
from routing.rules.reconciling import PairClass
from routing.schemas import OBSERVED_ROUTING, RECONCILIATION, TABLES
from routing.tables.arrow_rows import SchemaRows
from routing.tables.read_rows import read_settings
from routing.views.reconcile.arrow_reconcile import open_episodes
from routing.views.reconcile.episodes import ObservedEpisodes
from routing.views.reconcile.reconciling import Reconciliation
from tests.estate_rows import instance
from tests.frames import arrow_of, rows_in
from tests.golden_texts import assert_golden
from tests.reconciled import BALANCED, OBSERVED, ROWS, Row, arrival, estate, event, hostile
from tests.simulated.events import events_of
from tests.simulated.faults import case
from tests.simulated.proof import observe
from tests.stored import store_local

EXPECTED = [*OBSERVED, *BALANCED]


def observed_day(fault: str) -> tuple[dict[str, list[Row]], list[Row]]:
    """Return the tables of a day with a fault, and SQL Server's actions."""
    simulated = case(fault, 1)
    return simulated.tables, observe(simulated.day, events_of(random.Random(1), simulated.day))


def reconciled(rows: list[Row], **tables: list[Row]) -> Reconciliation:
    arrow_tables = {key: arrow_of(some, TABLES[key]) for key, some in {**estate(), **tables}.items()}
    return routing.reconcile({**arrow_tables, "observed_routing": arrow_of(rows, OBSERVED_ROUTING)})


def listed(done: Reconciliation) -> list[dict[str, Any]]:
    return rows_in(done.rows)


def test_every_episode_has_its_expected_class() -> None:
    found: dict[str, list[tuple[str, int]]] = {}
    # Backwards: the order of the rows does not matter.
    for row in listed(reconciled(ROWS[::-1])):
        found.setdefault(row["conversation_id"], []).append((row["class"], row["observations"]))
    assert found == {rows[0]["conversation_id"]: episodes for rows, episodes in EXPECTED}


def test_counts_of_a_reconciliation_add_up() -> None:
    done = reconciled(ROWS)
    told = [episode for _, episodes in EXPECTED for episode in episodes]
    assert done.observations == sum(observations for _, observations in told) == len(ROWS)
    assert sum(row["observations"] for row in done.counts) == len(ROWS)
    assert done.by_class == Counter(kind for kind, _ in told)
    assert sum(done.by_class.values()) == len(told) == 29
    assert done.percent == pytest.approx(100 * 17 / 28)
    # Of 90 nothing was observed.
    assert done.unobserved == 1


def test_how_often_the_predicted_id_was_picked() -> None:
    [picks] = reconciled(ROWS).balanced
    assert dict(picks) == {
        "instance_name": "hub",
        "to_service_name": "//balanced",
        "broker_instances": 2,
        "episodes": 2,
        "same": 1,
    }


def test_a_row_has_the_observation_and_the_prediction() -> None:
    [row] = [row for row in listed(reconciled(ROWS)) if row["observed_next_hop"] == "tcp://else.example:4022"]
    assert list(row) == RECONCILIATION.names
    told = ("observed_outcome", "predicted_outcome", "predicted_reason", "matching_step", "broker_instances")
    assert [row[name] for name in told] == ["SENT", "SENT", "NETWORK_ADDRESS", 3, 2]
    assert (row["route_name"], row["address"]) == ("East", "tcp://stock.example:4022")
    assert row["why"] == "SQL Server sent it to another address."


def test_an_episode_is_judged_as_of_its_start() -> None:
    """A route that is in force until ten seconds after noon, by two observations of it and one after."""
    routes = [{**estate()["routes"][0], "valid_to": "2026-01-05T12:00:10Z"}]
    rows = [event(1, "SENT", 9), event(1, "SENT", 11), event(2, "SENT", 10)]
    classes = [(row["conversation_id"][:9], row["class"]) for row in listed(reconciled(rows, routes=routes))]
    assert classes == [("c0000001-", "CONFIRMED"), ("c0000002-", "CONTRADICTED")]


def asking() -> tuple[dict[str, list[Row]], list[Row]]:
    """Three messages for a service without a route, in a database that asks for routes."""
    ask = {"remote_service_name": "SQL/ServiceBroker/BrokerConfiguration", "address": "LOCAL", "name": "Ask"}
    routes = [{**estate()["routes"][0], **ask}]
    rows = [event(n, "DELAYED", n, error_number=9770, to_service_name="//new") for n in (1, 2, 3)]
    return {**estate(), "routes": routes}, rows


def test_a_request_for_a_route_is_opened_once() -> None:
    tables, rows = asking()
    classes = [(row["predicted_reason"], row["class"]) for row in listed(reconciled(rows, **tables))]
    assert classes == [("ROUTE_REQUESTED", "CONFIRMED"), ("NO_ROUTE", "COMPATIBLE"), ("NO_ROUTE", "COMPATIBLE")]


def test_messages_of_an_expired_dialog_are_compared() -> None:
    dialog = {**estate()["dialogs"][0], "lifetime": "2026-01-05T12:00:05Z", "far_broker_instance": None}
    rows = [event(21, "SENT", 4), event(21, "DROPPED", 5)]
    classes = [(row["predicted_reason"], row["class"]) for row in listed(reconciled(rows, dialogs=[dialog]))]
    assert classes == [("NETWORK_ADDRESS", "CONFIRMED"), ("DIALOG_EXPIRED", "COMPATIBLE")]


def in_buckets(
    tables: dict[str, list[Row]], rows: list[Row], rows_of_one: int
) -> tuple[ObservedEpisodes, list[str]]:
    """Reconcile with some rows in each bucket and the rows in another order."""
    arrow_tables = {key: arrow_of(some, TABLES[key].optional()) for key, some in tables.items()}
    arrow_tables["observed_routing"] = arrow_of(rows, OBSERVED_ROUTING.optional())
    with open_episodes(arrow_tables, read_settings(arrow_tables), lambda text: None, rows_of_one) as judged:
        episode_rows = judged.make_rows()
    return judged.counted, sorted(str(row) for row in rows_in(episode_rows))


@pytest.mark.parametrize(
    ("make", "rows_of_one"),
    [
        pytest.param(hostile, 5, id="told by hand"),
        pytest.param(asking, 1, id="messages that ask for a route"),
        pytest.param(lambda: observed_day("changed"), 5, id="a route that changed", marks=pytest.mark.long),
        pytest.param(lambda: observed_day("hidden"), 50, id="a hidden route"),
    ],
)
def test_buckets_in_files_find_the_same(
    make: Callable[[], tuple[dict[str, list[Row]], list[Row]]],
    rows_of_one: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tables, rows = make()
    summary, told = in_buckets(tables, rows, 1_000_000)
    spilled, again = in_buckets(tables, rows, rows_of_one)
    assert again == told
    assert (spilled.observations, spilled.unobserved) == (summary.observations, summary.unobserved)
    assert spilled.counts == summary.counts
    assert spilled.causes == summary.causes
    assert spilled.balanced == summary.balanced
    assert list(tmp_path.iterdir()) == []


def peak_of(services: int) -> int:
    """The most bytes of Python's at a time where so many services have an observation each."""
    rows = [event(number, "SENT", to_service_name=f"//stock/{number}") for number in range(services)]
    routes = [{**estate()["routes"][0], "remote_service_name": None}]
    arrow_tables = {key: arrow_of(some, TABLES[key]) for key, some in {**estate(), "routes": routes}.items()}
    arrow_tables["observed_routing"] = arrow_of(rows, OBSERVED_ROUTING)
    settings = read_settings(arrow_tables)
    tracemalloc.start()
    try:
        with open_episodes(arrow_tables, settings, lambda text: None, rows_of_one=250) as judged:
            assert judged.counted.counts["hub", PairClass.CONFIRMED].episodes == services
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_questions_of_one_bucket_are_in_memory() -> None:
    # A full collection of garbage empties Python's lists of free objects, which the first call fills again.
    with no_search_for_cycles():
        _, few, many = peak_of(2_000), peak_of(500), peak_of(2_000)
    assert many < 1.2 * few


def test_without_observations_nothing_is_compared() -> None:
    done = reconciled([])
    assert (done.observations, done.percent, listed(done), list(done.counts)) == (0, None, [], [])
    assert done.unobserved == 5


def test_the_hop_count_of_a_dropped_message_is_compared() -> None:
    off = {"instances": [instance(is_message_forwarding_enabled=True)]}
    out = [{**estate()["routes"][0], "database_name": "msdb"}]
    dropped: Row = {"source": "FORWARD_DROPPED", "to_service_name": "//stock"}
    rows = [
        arrival(1, "DROPPED", remaining_hop_count=0, **dropped),
        arrival(2, "DROPPED", remaining_hop_count=1, **dropped),
        arrival(3, "DROPPED", time_to_live_seconds=60, live_time_seconds=61, **dropped),
    ]
    classes = [row["class"] for row in listed(reconciled(rows, routes=out, **off))]
    assert classes == ["CONFIRMED", "CONTRADICTED", "COMPATIBLE"]


def test_a_row_without_a_time_is_refused() -> None:
    rows = arrow_of(ROWS, OBSERVED_ROUTING.optional())
    import pyarrow

    times = pyarrow.nulls(len(rows), rows.schema.field("observed_at").type)
    broken = rows.set_column(rows.column_names.index("observed_at"), "observed_at", times)
    arrow_tables = {key: arrow_of(some, TABLES[key]) for key, some in estate().items()}
    with pytest.raises(InputError, match="table observed_routing has 37 rows without observed_at"):
        routing.reconcile({**arrow_tables, "observed_routing": broken})


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reconciled")
    tables = {**estate(), "observed_routing": ROWS}
    for key, rows in tables.items():
        store_local(arrow_of(rows, TABLES[key]), folder / key)
    output = ("resolved_routes", "new_route_requests", "rejected_messages", "runs", "reconciliation")
    config = {"tables": {key: key for key in tables}, "output": {key: f"out/{key}" for key in output}}
    (folder / "job.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder / "job.yaml"


def test_the_table_is_replaced(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from deltalake import DeltaTable

    for version in (0, 1):
        assert cli.main(["reconcile", "--config", str(job), "--format", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        table = DeltaTable(job.parent / "out" / "reconciliation")
        assert answer["version"] == table.version() == version + 1
        assert answer["observations"] == len(ROWS)
        stored = table.to_pyarrow_dataset().to_table()
        assert sum(stored["observations"].to_pylist()) == len(ROWS)
        assert stored.column_names == RECONCILIATION.names


@pytest.mark.parametrize(("percent", "status"), [("60.7", 0), ("60.8", 1)])
def test_fail_under_sets_the_exit_code(
    job: Path, percent: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["reconcile", "--config", str(job), "--fail-under", percent]) == status
    assert "60.7 % of the observed episodes match" in " ".join(capsys.readouterr().out.split())


def test_a_missing_table_of_observations_is_reported(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without = yaml.safe_load(job.read_text(encoding="utf-8"))
    del without["tables"]["observed_routing"]
    file = job.with_name("without.yaml")
    file.write_text(yaml.safe_dump(without), encoding="utf-8")
    assert cli.main(["reconcile", "--config", str(file)]) == 2
    assert "has no tables.observed_routing, which reconcile reads" in capsys.readouterr().err


EXCERPT = re.compile(
    r"<!-- reconcile excerpt -->\n```text\n(.*?)\n```\n<!-- end of reconcile excerpt -->", re.DOTALL
)


def test_the_printed_answer_is_on_the_page(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reconcile", "--config", str(job)]) == 0
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert_golden("reconcile_table.txt", shown)
    again = routing.text_of(routing.reconcile(routing.load_config(str(job))), width=80)
    assert again == shown.rstrip("\n")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "reconcile.md").read_text(encoding="utf-8")
    [excerpt] = EXCERPT.findall(page)
    first, last = excerpt.split("\n…\n")
    assert shown.startswith(f"{first}\n")
    assert shown.rstrip("\n").endswith(last)


def _counted(causes: list[tuple[str, int]] | None = None, **classes: int) -> Reconciliation:
    """A reconciliation of so many episodes of each class."""
    counts = [
        {"instance_name": "hub", "class": name, "episodes": number, "observations": number}
        for name, number in classes.items()
    ]
    named = [
        {"instance_name": "hub", "cause": cause, "cause_text": f"text {number}", "episodes": number}
        for cause, number in causes or []
    ]
    empty = SchemaRows(BALANCED_PICKS, ())
    episodes = arrow_of([], RECONCILIATION)
    tables = SchemaRows(RECONCILED_COUNTS, tuple(counts)), SchemaRows(RECONCILED_CAUSES, tuple(named))
    return Reconciliation(sum(classes.values()), *tables, empty, 0, episodes)


@pytest.mark.parametrize(
    ("done", "answer"),
    [
        (_counted(CONFIRMED=1_500, COMPATIBLE=2, CONTRADICTED=40, NOT_OBSERVED=9), "40 of 1,542 .* differently"),
        (_counted(CONFIRMED=3, NOT_PREDICTED=1), "0 of 4 .* differently.* nothing for 1 other"),
        (_counted(CONFIRMED=3, COMPATIBLE=1, NOT_OBSERVED=5), "all 4 .* as the tables predict"),
        (_counted(CONFIRMED=1), "the one episode as the tables predict"),
        (_counted(NOT_OBSERVED=5), "No decision .* in 5 episodes"),
        (_counted(), "no observations"),
    ],
)
def test_the_answer_comes_first(done: Reconciliation, answer: str) -> None:
    assert re.search(answer, routing.text_of(done, width=200).splitlines()[0])


def test_the_kind_of_cause_that_explains_most_comes_first() -> None:
    """By the episodes of all its causes together."""
    done = _counted([("ROUTE", 5), ("NAME", 4), ("NAME", 3)], CONTRADICTED=12)
    lines = routing.text_of(done, width=200).splitlines()
    assert lines[2:9] == [
        "NAME explains most: 7 episodes",
        "- hub, 4 episodes: text 4",
        "- hub, 3 episodes: text 3",
        "",
        "ROUTE: 5 episodes",
        "- hub, 5 episodes: text 5",
        "",
    ]
