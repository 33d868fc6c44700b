"""Every message of random estates, explained: the verdict is what `resolve` says, and the path agrees with it."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.frames import frames, rows_of
from tests.reference.estates import joined, random_estate
from tests.spark.test_random_estates import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ESTATES, MESSAGES, SEED = 14, 40, 20260105
Row = dict[str, Any]


class Explained(NamedTuple):
    """What resolve says of every message, and what explain does; paths by question."""

    resolved: list[Row]
    verdicts: list[Row]
    paths: dict[int, list[Row]]


@pytest.fixture(scope="module")
def explained(spark: SparkSession) -> Explained:
    """All messages of all estates in one job."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    import routing
    from routing.analysis.explain import RUN_ID
    from routing.analysis.explain import explained as explain_all

    rng = random.Random(SEED)
    tables = frames(spark, joined([random_estate(rng, MESSAGES, f"e{n}/") for n in range(ESTATES)]))
    done = routing.resolve(spark, tables, run_id=RUN_ID)
    resolved = rows_of(done.resolved_routes)
    done.unpersist()
    number = F.row_number().over(Window.orderBy("instance_name", "message_id", "conversation_id", "enqueue_time"))
    questions = tables["messages"].withColumns(
        {"question": number, "is_described": F.lit(False), "any_dialog": F.lit(False)}
    )
    answer = explain_all(tables, questions)
    paths = defaultdict(list)
    for row in rows_of(answer.steps):
        paths[row["question"]].append(row)
    verdicts = rows_of(answer.verdict)
    answer.unpersist()
    return Explained(resolved, verdicts, dict(paths))


def test_the_verdict_is_that_of_resolve(explained: Explained) -> None:
    bare = [{name: value for name, value in row.items() if name != "question"} for row in explained.verdicts]
    assert_same(bare, explained.resolved, "verdicts")
    questions = [row["question"] for row in explained.verdicts]
    assert questions == sorted(set(questions))
    assert set(explained.paths) == set(questions)


def test_the_path_agrees_with_the_verdict(explained: Explained) -> None:
    """What is read off the trace, held against the verdict, which the test above holds against `resolve`."""
    for verdict in explained.verdicts:
        path = explained.paths[verdict["question"]]
        assert [row["position"] for row in path] == list(range(1, len(path) + 1))
        last = path[-1]
        assert (last["item"], last["outcome"], last["reason"]) == (
            "OUTCOME",
            verdict["outcome"],
            verdict["reason"],
        )
        came_back = [row["name"] for row in path if row["finding"] == "CAME_BACK"]
        assert came_back == [name for name in [verdict["rerouted_from"]] if name is not None]
        _assert_search_agrees(path, verdict, search=1 + len(came_back))


def _assert_search_agrees(path: list[Row], verdict: Row, search: int) -> None:
    """The search that decided: its step, its route, its database."""
    mine = [row for row in path if row["search"] == search]
    steps = {row["step"]: row["finding"] for row in mine if row["item"] == "STEP"}
    won = [step for step, finding in steps.items() if finding == "MATCHED"]
    if verdict["matching_step"] in (None, 0):
        assert steps == {}
        assert [row["finding"] for row in mine if row["item"] == "REPLY"] == ["MATCHED"] or (
            verdict["reason"] in ("DIALOG_EXPIRED", "SCOPE_BROKER_DISABLED")
        )
        return
    assert sorted(steps) == [1, 2, 3, 4, 5, 6, 7]
    assert won == [verdict["matching_step"]]
    matched = [row["name"] for row in mine if row["item"] == "ROUTE" and row["finding"] == "MATCHED"]
    if verdict["route_name"] is not None:
        assert verdict["route_name"] in matched, (verdict, mine)
    if verdict["matching_step"] == 3:
        (picked,) = (row for row in mine if row["item"] == "ID" and row["finding"] == "PICKED")
        assert picked["broker_instance"] == verdict["broker_instance"]
        assert (picked["outcome"], picked["reason"]) == (verdict["outcome"], verdict["reason"])
    located = [row["name"] for row in mine if row["item"] == "DATABASE" and row["finding"] == "LOCATED"]
    assert located == [name for name in [verdict["destination_database"]] if name is not None]


def test_every_kind_of_decision_is_among_them(explained: Explained) -> None:
    kinds = {(row["matching_step"], row["rerouted_from"] is not None) for row in explained.verdicts}
    assert {step for step, _ in kinds} == {None, 0, 1, 2, 3, 4, 5, 6, 7}
    assert {step for step, rerouted in kinds if rerouted} >= {0, 1, 2, 5, 7}
    items = {row["item"] for path in explained.paths.values() for row in path}
    assert items >= {"ID", "OWN_ADDRESS", "DATABASE"}
