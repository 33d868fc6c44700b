"""`explain` reads Arrow tables in all forms and files with the same result.

tests/spark/test_explain.py compares DataFrames with the same answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from routing.cases.question_source import ExplainSource, open_tables
from routing.cases.questions import DescribedMessage, Question, QuestionError, StoredMessage
from routing.errors import InputError
from routing.schemas import MESSAGES, OBSERVED_ROUTING, TABLES
from routing.tables.read_rows import condition_of
from routing.tables.table_columns import read_arrow
from routing.views.explain.explaining import Explanation, explain
from tests.crowded import BROKEN, NOON, OF_CONVERSATIONS, QUESTIONS, STATUSES, WRONG, crowded, handle
from tests.estate_rows import ASK, STORE, conversation, database, instance, message, route, small_estate
from tests.frames import arrow, arrow_of
from tests.golden_texts import assert_golden
from tests.imports import no_spark
from tests.stored import config_of, save_estate, store_local
from tests.unit.explained_rows import columns_of_rows

Given = Mapping[str, Any]


@pytest.fixture(scope="module")
def tables() -> Given:
    return arrow(crowded())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the same tables as files. Tests must not change them."""
    return save_estate(crowded(), tmp_path_factory.mktemp("saved"))


def opened(folder: Path, tmp_path: Path) -> Given:
    """Tables of a folder as datasets."""
    return open_tables(config_of(folder, tmp_path), no_spark())


def with_types(tables: Given, change: Callable[[Any], Any]) -> Given:
    """The tables with the type of each column changed."""
    import pyarrow

    def changed(table: Any) -> Any:
        return table.cast(pyarrow.schema([field.with_type(change(field.type)) for field in table.schema]))

    return {key: changed(table) for key, table in tables.items()}


def in_another_form(form: str, tables: Given) -> Given:
    """Return the same rows with columns of other types or names, or without columns of nulls."""
    import pyarrow

    is_text, is_time = pyarrow.types.is_string, pyarrow.types.is_timestamp
    if form == "large texts":
        return with_types(tables, lambda kind: pyarrow.large_string() if is_text(kind) else kind)
    if form == "views of texts":
        return with_types(tables, lambda kind: pyarrow.string_view() if is_text(kind) else kind)
    if form == "times without a zone":
        return with_types(tables, lambda kind: pyarrow.timestamp("us") if is_time(kind) else kind)
    if form == "names in capitals":
        return {
            key: table.rename_columns([n.upper() for n in table.column_names]) for key, table in tables.items()
        }
    assert form == "no empty columns"
    kept = {key: [n for n in t.column_names if t[n].null_count < len(t)] for key, t in tables.items()}
    return {key: table.select(kept[key]) for key, table in tables.items()}


FORMS = ("large texts", "views of texts", "times without a zone", "names in capitals", "no empty columns")


@pytest.fixture(scope="module")
def answers(tables: Given) -> list[Explanation]:
    """Return the answer to each question."""
    return [explain(tables, question) for question in QUESTIONS]


@pytest.mark.parametrize("form", ["files", *FORMS])
def test_the_answer_is_the_same_in_every_form(
    form: str, tables: Given, answers: list[Explanation], saved: Path, tmp_path: Path
) -> None:
    in_form = opened(saved, tmp_path) if form == "files" else in_another_form(form, tables)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        assert explain(in_form, question) == answer, question


@pytest.mark.parametrize(("question", "message_id", "others"), OF_CONVERSATIONS)
def test_the_oldest_message_of_an_end(tables: Given, question: Question, message_id: str, others: int) -> None:
    answer = explain(tables, question)
    [verdict] = answer.verdict
    assert (verdict["message_id"], answer.others) == (message_id, others)


def test_a_handle_names_the_dialog_of_a_description(tables: Given) -> None:
    by_id, by_handle = (
        explain(tables, DescribedMessage("hub", "Sales", "//stock", NOON, conversation_id=name))
        for name in (conversation(2), handle(2))
    )
    assert by_handle == by_id
    [verdict] = by_handle.verdict
    assert verdict["conversation_id"] == conversation(2).lower()
    assert verdict["broker_instance"] == STORE


@pytest.mark.parametrize("column", ["nothing", "ids"])
def test_without_handles_the_conversation_id_is_used(tables: Given, column: str) -> None:
    older = {key: table for key, table in tables.items() if key != "observed_routing"}
    if column != "nothing":
        older["observed_routing"] = tables["observed_routing"].drop_columns("conversation_handle")
    [verdict] = explain(older, StoredMessage(conversation=conversation(2))).verdict
    assert verdict["message_id"] == "m2"
    why = "only ids were looked up" if column == "nothing" else "handles in tables.observed_routing"
    with pytest.raises(QuestionError, match=f"no message of conversation '{handle(20)}' is stored .*{why}"):
        explain(older, StoredMessage(conversation=handle(20)))


def test_earlier_requests_and_the_first_possible_time_are_shown(tables: Given) -> None:
    # m9 finds that m4 has asked.
    requests = [row for row in explain(tables, StoredMessage("m9")).steps if row["item"] == "REQUEST"]
    assert [(row["finding"], row["name"]) for row in requests] == [("OPEN", "m4")]
    early = explain(tables, StoredMessage("early")).steps
    requests = [row for row in early if row["at"] is not None]
    assert [(row["item"], row["at"].year) for row in requests] == [("TIME", 1), ("IMPORT", 2026), ("ROUTE", 1)]


def test_the_last_possible_time_is_accepted(tables: Given) -> None:
    answer = explain(tables, StoredMessage("late"))
    [verdict] = answer.verdict
    assert (verdict["route_name"], verdict["decided_at"]) == ("Old", verdict["enqueue_time"])
    assert verdict["decided_at"] == datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)
    assert [(row["name"], row["at"].year) for row in answer.steps if row["reasons"]] == [("New", 9999)]


def test_a_described_message_uses_the_dialog_and_the_time(tables: Given) -> None:
    question = DescribedMessage("hub", "Sales", "//stock", NOON, conversation_id=conversation(2))
    [verdict] = explain(tables, question).verdict
    assert (verdict["broker_instance"], verdict["matching_step"], verdict["decided_at"]) == (STORE, 1, NOON)


def statuses(answer: Explanation) -> list[tuple[Any, ...]]:
    """Return SQL Server's statuses as (finding, minute, number, text), and the last of the lines."""
    rows = [row for row in answer.steps if row["item"] == "STATUS"]
    assert rows in ([], [list(answer.steps)[-1]])
    return [(row["finding"], row["at"].minute, row["error_number"], row["status_text"]) for row in rows]


def test_only_the_newest_status_of_the_message_is_shown(tables: Given) -> None:
    found_statuses = {
        name: statuses(explain(tables, StoredMessage(name))) for name in ("m1", "m2", "m3", "m5", "m9")
    }
    assert found_statuses == {
        "m1": [("CONTRADICTS", 3, 9754, "Connection attempt failed with error.")],
        "m2": [("SAYS_NOTHING", 1, None, "Gest\u00f6rt \x1b[31m")],
        "m3": [("SAYS_NOTHING", 1, None, None)],
        "m5": [],
        "m9": [("AGREES", 1, 9793, "No route.")],
    }
    # The newest of all, whatever the time of the decision.
    assert statuses(explain(tables, StoredMessage("m9", at=NOON))) == found_statuses["m9"]


def test_imports_after_the_decision_are_listed(tables: Given) -> None:
    """m9 is of a second after noon, m1 of noon."""
    late = datetime(2026, 1, 5, 12, 0, 0, 500_000, timezone.utc)
    asked: list[Question] = [StoredMessage("m1"), StoredMessage("m9"), StoredMessage("m1", at=late)]
    asked.append(DescribedMessage("hub", None, "//far", NOON))
    lines = [[row for row in explain(tables, question).steps if row["item"] == "IMPORT"] for question in asked]
    found_lines = [[(row["finding"], row["name"], row["at"]) for row in each] for each in lines]
    assert found_lines == [[("LATER", "hub", late)], [], [], [("LATER", "hub", late)]]


def test_a_described_message_has_no_status(tables: Given) -> None:
    rows = [{**STATUSES[0], "message_id": "described"}]
    with_statuses = {**tables, "observed_routing": arrow_of(rows, OBSERVED_ROUTING)}
    assert statuses(explain(with_statuses, DescribedMessage("hub", "Sales", "//far", NOON))) == []


def test_tables_of_imports_may_be_missing_or_old(saved: Path, tmp_path: Path) -> None:
    older = arrow_of(STATUSES, OBSERVED_ROUTING).select(
        ["instance_name", "conversation_id", "message_id", "observed_at", "source", "status_text", "error_number"]
    )
    there = config_of(saved, tmp_path, observed_routing=store_local(older, tmp_path / "older"))
    assert statuses(explain(there, StoredMessage("m9"))) == [("AGREES", 1, 9793, "No route.")]
    (tmp_path / "empty").mkdir()
    for place in (None, tmp_path / "nowhere", tmp_path / "empty"):
        settings = config_of(saved, tmp_path, observed_routing=place, imports=None)
        assert statuses(explain(settings, StoredMessage("m9"))) == []
    other = older.drop_columns("source")
    wrong = config_of(saved, tmp_path, observed_routing=store_local(other, tmp_path / "other"))
    with pytest.raises(InputError, match="observed_routing has 1 column fault: required column source is missing"):
        explain(wrong, StoredMessage("m9"))


def test_settings_of_the_configuration_apply(saved: Path, tmp_path: Path) -> None:
    answer = explain(config_of(saved, tmp_path, "resolve.as_of=2026-01-05T12:30:00Z"), StoredMessage("m2"))
    assert [row["finding"] for row in answer.steps if row["item"] == "TIME"] == ["AS_OF"]
    [verdict] = answer.verdict
    assert verdict["broker_instance"] == STORE


def test_unanswerable_questions_are_refused(tables: Given, saved: Path, tmp_path: Path) -> None:
    for input_tables in (tables, opened(saved, tmp_path)):
        texts = []
        for name, question in WRONG.items():
            with pytest.raises(QuestionError) as caught:
                explain(input_tables, question)
            assert caught.value.exit_code == 2
            texts.append(f"{name}: sbroute: {caught.value}\n")
        assert_golden("explain_refused.txt", "".join(texts))


def test_faults_that_concern_the_message_stop_it(tables: Given, saved: Path, tmp_path: Path) -> None:
    for input_tables in (tables, opened(saved, tmp_path)):
        with pytest.raises(InputError) as caught:
            explain(input_tables, StoredMessage("m4", BROKEN))
        text = str(caught.value)
        assert text.startswith("the input tables have 3 faulty rows: routes (broken, Sales, , NULL):")
    with pytest.raises(InputError, match="input tables are missing: routes "):
        explain(
            {key: tables[key] for key in ("databases", "services", "instances", "messages")}, StoredMessage("m1")
        )
    bad = tables["messages"].drop_columns("is_initiator")
    bad = bad.append_column("is_initiator", bad["message_id"])
    with pytest.raises(InputError, match="table messages has 1 column fault: column is_initiator is string"):
        explain({**tables, "messages": bad}, StoredMessage("m1"))


BACK = "tcp://hub:4022"


@pytest.mark.parametrize(
    ("routes", "step"),
    [
        ([], 4),
        ([route("Back", None, BACK)], 7),
        ([route("Back", "", BACK)], 7),
        ([route("Back", "//nowhere", BACK)], 7),
        ([route("Back", "//elsewhere", BACK)], 4),
        ([route("Back", None, BACK), route("Ask", ASK, "LOCAL")], 4),
    ],
    ids=["no route", "for any service", "for empty text", "for this service", "for another", "that asks itself"],
)
def test_routes_of_another_database_decide_earlier_requests(routes: list[Any], step: int) -> None:
    """A message of Sales that comes back asks where this one, which arrived, would ask."""
    tables = small_estate()
    tables["instances"] = [instance("hub", BACK)]
    tables["databases"].append(database("msdb", "m"))
    tables["routes"] = [route("Ask", ASK, "LOCAL", database_name="msdb"), *routes]
    later = message(9, "//nowhere", database_name=None, enqueue_time="2026-01-05T12:00:01Z")
    tables["messages"] = [message(1, "//nowhere"), later]
    [verdict] = explain(arrow(tables), StoredMessage("m9")).verdict
    assert verdict["matching_step"] == step


def test_rows_without_an_instance_match_no_message() -> None:
    """A message without an instance has nothing to do with rows that lack theirs, but is no message."""
    nowhere = small_estate()
    nowhere["messages"].append(message(9, "//far", instance_name=None))
    nowhere["routes"].append({**nowhere["routes"][0], "instance_name": None})
    with pytest.raises(QuestionError, match="the message would be rejected: MISSING_INSTANCE_NAME"):
        explain(arrow(nowhere), StoredMessage("m9"))
    routes = arrow(nowhere)["routes"]
    selected = read_arrow(routes, "routes", condition_of(routes, {"instance_name": ["hub", "spoke", None]}))
    assert set(selected.values["instance_name"]) == {"hub"}


@pytest.mark.parametrize("as_of", [None, 0])
@pytest.mark.parametrize("form", ["table", "files"])
def test_other_messages_keep_their_order_in_any_files(as_of: int | None, form: str, tmp_path: Path) -> None:
    """Rows of equal times and ids among them, rows without a time, and as many parts as it takes."""
    rng = random.Random(7)
    rows = [
        message(
            n % 9,
            rng.choice(["//nowhere", "//nowhere", "//far"]),
            enqueue_time=rng.choice([None, *(f"2026-01-05T12:00:0{second}Z" for second in range(4))]),
            observed_at=rng.choice([None, None, "2026-01-05T12:00:02Z"]),
            database_name=rng.choice(["Sales", "Stock", None]),
        )
        for n in range(90)
    ]
    saved = save_estate({**small_estate(), "messages": rows}, tmp_path)
    given = {**arrow(small_estate()), "messages": arrow_of(rows, MESSAGES)}
    tables = given if form == "table" else opened(saved, tmp_path)
    source = replace(ExplainSource.of(tables), first_part=7)
    parts = list(source.chunks(as_of)("hub", "//nowhere"))
    assert len(parts) > 1
    assert len(parts[0]["messages"]) >= 7

    def place(row: Mapping[str, Any]) -> Any:
        seen = row["enqueue_time"] if row["observed_at"] is None else row["observed_at"]
        return row["message_id"] if as_of is not None else seen

    spans = [sorted({place(row) for row in part["messages"].dicts()}) for part in parts]
    assert all(one[-1] < other[0] for one, other in pairwise(spans))
    mine = [row for row in columns_of_rows(rows, MESSAGES).dicts() if row["to_service_name"] == "//nowhere"]
    found = [row for part in parts for row in part["messages"].dicts()]
    assert sorted(map(repr, found)) == sorted(repr(row) for row in mine if place(row) is not None)
    dialogs = {found for part in parts for found in part["dialogs"].values["conversation_id"]}
    assert dialogs == {conversation(2)}


def test_names_are_found_despite_cut_file_statistics(tmp_path: Path) -> None:
    """Delta's log holds the beginning of the least and the greatest name of a file, and no more."""
    from tests.hostile import NAMES

    estate = small_estate()
    names = [*NAMES, "\U0010ffff" * 80, "\x7f" * 80, "\uffff" * 80, f"{'x' * 31}\U0010ffff\U0010ffff"]
    estate["messages"] = [message(1, name, message_id=f"{name} id") for name in names]
    opened_tables = opened(save_estate(estate, tmp_path), tmp_path)
    for name in names:
        [verdict] = explain(opened_tables, StoredMessage(f"{name} id")).verdict
        assert verdict["to_service_name"] == name


def test_the_test_estate_has_unrelated_rows_in_every_table() -> None:
    assert set(TABLES) == {*crowded()}
