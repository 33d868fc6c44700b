"""Explain one message that waits, step by step (``--message``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from routing.advice.status_meanings import find_trouble
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.background import MessageBackground, OtherInstances, find_gap, status
from routing.cases.exported_files import unknown_message
from routing.cases.judged_questions import KnownTables, QuestionedMessage, judge_question, narrow_to
from routing.cases.message_cases import CheckedEstate, MessageResult
from routing.document import Block, DocumentHeading, LabelledFact, Paragraph
from routing.groups import group_pairs
from routing.importing.covered_rows import name_message
from routing.render.phrases import cut, named, where
from routing.render.wording import count
from routing.rules.following import PathHop
from routing.rules.text import fold, printed_guid
from routing.schemas import INPUTS
from routing.tables.table_columns import TableColumns
from routing.terms import JsonObject, ReadRow, TableRow
from routing.views.check.check_json import gap_object, path_object
from routing.views.check.check_report import describe_message
from routing.views.check.checking import Check, notes_on_times
from routing.views.check.grouping import ProblemKind
from routing.views.check.problem_evidence import ReportLimits, list_needed, list_path, name_result
from routing.views.check.problems import MessageProblem, find_problems
from routing.views.explain.explain_document import list_steps, write_explanation
from routing.views.explain.explaining import Explanation, answer

_TABLES = ("instances", "databases", "services", "routes", "dialogs")


def find_messages(done: Check, message: str) -> list[MessageResult]:
    """Return the messages of an id, or the oldest of each end of a conversation (id or handle).

    An id without the database at its end matches a message of each database. Raises InputError.
    """
    folded_id = fold(message.strip())
    ids = [result for result in done.results if folded_id in _ids_of(result.row)]
    results = ids or _of_conversation(done.results, message)
    ends = group_pairs((_end_of(result.row), result) for result in results)
    if not ends:
        raise unknown_message(message)
    return [min(theirs, key=lambda result: result.row["message_sequence_number"]) for theirs in ends.values()]


def _end_of(row: ReadRow) -> tuple[object, ...]:
    """Return the conversation endpoint of a message, with None for what was not exported."""
    return row["instance_name"], row["database_name"], row.get("conversation_id"), row.get("is_initiator")


def _ids_of(row: ReadRow) -> set[str]:
    """Return the id of a message with and without its database, in the form for comparison."""
    if not row.get("message_id"):
        return set()
    return {fold(row["message_id"].strip()), fold(name_message({**row, "database_name": None}))}


def _of_conversation(results: Sequence[MessageResult], conversation: str) -> Iterator[MessageResult]:
    guid = printed_guid(conversation)
    ids = ((result, (result.row.get("conversation_id"), result.handle)) for result in results)
    return (result for result, theirs in ids if guid is not None and guid in theirs)


def explain_as_object(done: Check, message: str) -> JsonObject:
    """Explain the messages as JSON values. Messages without a verdict list the exports that they need."""
    matching_results = find_messages(done, message)
    problems = find_problems(done.groups)
    return {
        "explained": [_as_object(done, result, _problem_of(result, problems)) for result in matching_results],
        "notes": _notes(done, matching_results),
    }


def explain_messages(done: Check, message: str, limits: ReportLimits | None = None) -> list[Block]:
    """Return a document with the outcome of each message, the actions, and the path of the decision."""
    matching_results = find_messages(done, message)
    limits = limits or ReportLimits()
    problems = find_problems(done.groups)
    document: list[Block] = []
    for result in matching_results:
        document += _explain(done, result, _problem_of(result, problems), limits)
    return [*document, *(Paragraph(f"note: {cut(note)}") for note in _notes(done, matching_results))]


def _problem_of(result: MessageResult, problems: Sequence[MessageProblem]) -> MessageProblem:
    return next(problem for problem in problems if problem.keeps(result))


def _notes(done: Check, results: Iterable[MessageResult]) -> list[str]:
    return notes_on_times(done, sorted({result.row["instance_name"] for result in results}))


def _explain(done: Check, result: MessageResult, problem: MessageProblem, limits: ReportLimits) -> Iterator[Block]:
    """Yield the answer for one message, the actions, then the decision and the path."""
    yield DocumentHeading(_state_answer(result, problem), 1)
    yield from describe_message(done, result, problem, limits)
    status_text = result.case.status_text
    if result.case.verdict is None:
        trouble = find_trouble(status_text.number, status_text.text)
        if trouble is not None:
            yield LabelledFact("SQL Server says", f"{status(status_text)}. {STATUSES[trouble].text}", 1)
        return
    yield DocumentHeading("How it was decided")
    yield from list_steps(explain_result(done.estate, result).steps)
    if result.case.path is not None:
        yield DocumentHeading(f"Followed from there, it ends {result.case.end}")
        yield from list_path(result.case.path, limits.hops, limits.evidence)
        yield from list_needed(result.case.path, done.knowledge, limits.sentences)


_ANSWERS = {
    ProblemKind.STUCK: "is stuck",
    ProblemKind.DROPPED: "is dropped",
    ProblemKind.CONNECTION_FAILS: "waits for a connection that fails",
    ProblemKind.REPORTED: "waits, and SQL Server reports why",
    ProblemKind.NOT_KNOWN: "waits; its outcome is not known",
    ProblemKind.NOT_ACKNOWLEDGED: "was sent and is not acknowledged",
    ProblemKind.PASSING: "waits for the next attempt of SQL Server",
    ProblemKind.NOTHING: "is on its way",
}


def _state_answer(result: MessageResult, problem: MessageProblem) -> str:
    name, row = name_result(result), result.row
    sender = where(row["instance_name"], row["database_name"])
    other_count = problem.count - 1
    like = f", like {count(other_count, 'other message')}" if other_count else ""
    target = f"from {sender} to service {named(row['to_service_name'])}"
    return f"{name[:1].upper()}{name[1:]} {_ANSWERS[problem.kind]}{like}: {problem.headline}, {target}."


def _as_object(done: Check, result: MessageResult, problem: MessageProblem) -> object:
    remedies = tuple(advice.remedy for advice in problem.advice)
    if result.case.verdict is None:
        return {
            "verdict": None,
            "not_known": [gap_object(gap) for gap in result.case.gaps],
            "remedies": [remedy.as_object() for remedy in remedies],
            "error_number": result.case.status_text.number,
            "transmission_status": result.case.status_text.text,
        }
    explanation = replace(explain_result(done.estate, result), remedies=remedies)
    path = None if result.case.path is None else path_object(result.case.path, done.knowledge)
    return {**json.loads(write_explanation(explanation)), "end": result.case.end, "path": path}


def explain_result(estate: CheckedEstate, result: MessageResult) -> Explanation:
    """Yield the path of a message that has a verdict."""
    rows, name = estate.evidence.rows, result.row["instance_name"]
    tables = {key: _of_instance(rows[key], name, key) for key in _TABLES}
    [row] = TableColumns.of_rows([result.row], INPUTS["messages"]).dicts()
    question = QuestionedMessage(row, is_described=False, as_of=estate.times[name])

    def chunks(instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
        theirs = [row for row in rows["messages"] if row["to_service_name"] == service]
        yield {"messages": _of_instance(theirs, instance, "messages"), "dialogs": tables["dialogs"]}

    knowledge = estate.knowledge

    def is_known(hop: PathHop) -> bool:
        return hop.verdict is None or not knowledge.of_verdict(hop.instance_name, hop.verdict)

    other_instances = OtherInstances(lambda: estate.instances, is_known)
    known_tables = KnownTables.of_columns(narrow_to(tables, row), chunks, other_instances)
    judged = judge_question(question, known_tables)
    return answer(judged, known_tables, MessageBackground(find_gap(tables), result.case.status_text))


def _of_instance(rows: Sequence[TableRow], instance: str, key: str) -> TableColumns:
    return TableColumns.of_rows([row for row in rows if row["instance_name"] == instance], INPUTS[key])
