"""``--message``: one message that waits, explained step by step."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from routing.analysis.check.checking import Check
from routing.analysis.check.deciding import Estate, Fate
from routing.analysis.check.faults import unknown_message
from routing.analysis.check.json_form import gap_object, path_object
from routing.analysis.check.notes import notes_on_times
from routing.analysis.check.path_lines import needed_lines, path_lines
from routing.analysis.check.phrases import cut
from routing.analysis.check.printing import not_known
from routing.analysis.explain import printing
from routing.analysis.explain.background import Background, find_gap
from routing.analysis.explain.explaining import Explanation, answer
from routing.analysis.explain.judging import Asked
from routing.analysis.explain.known import Known, narrow_to
from routing.analysis.explain.request_path import OtherInstances
from routing.importing.covered import Row
from routing.importing.keyed import name_message
from routing.rules.text import fold, printed_guid
from routing.rules.ways import Hop
from routing.schemas import INPUTS
from routing.storage.columns import Columns

_TABLES = ("instances", "databases", "services", "routes", "dialogs")
_End = tuple[str, str, object, object]


def find_messages(done: Check, asked: str) -> list[Fate]:
    """Return the messages of an id, or the oldest of each end of a conversation (id or handle).

    An id without the database at its end is that of a message of each database. Raises InputError.
    """
    wanted = fold(asked.strip())
    ids = [fate for fate in done.fates if wanted in _ids_of(fate.row)]
    ends: dict[_End, list[Fate]] = defaultdict(list)
    for fate in ids or _of_conversation(done.fates, asked):
        row = fate.row
        ends[
            row["instance_name"], row["database_name"], row.get("conversation_id"), row.get("is_initiator")
        ].append(fate)
    if not ends:
        raise unknown_message(asked)
    return [min(theirs, key=lambda fate: fate.row["message_sequence_number"]) for theirs in ends.values()]


def _ids_of(row: Row) -> set[str]:
    """Return the id of a message, and the same without its database, both as they are compared."""
    if not row.get("message_id"):
        return set()
    return {fold(row["message_id"].strip()), fold(name_message({**row, "database_name": None}))}


def _of_conversation(fates: Sequence[Fate], asked: str) -> Iterator[Fate]:
    wanted = printed_guid(asked)
    ids = ((fate, (fate.row.get("conversation_id"), fate.handle)) for fate in fates)
    return (fate for fate, theirs in ids if wanted is not None and wanted in theirs)


def explain_messages(done: Check, asked: str, *, as_json: bool) -> str:
    """What `explain` says of the messages; of one without a verdict what would be needed for one."""
    found = find_messages(done, asked)
    notes = notes_on_times(done, sorted({fate.row["instance_name"] for fate in found}))
    if as_json:
        return json.dumps({"explained": [_as_object(done, fate) for fate in found], "notes": notes})
    told = (not_known(fate) if fate.verdict is None else _as_text(done, fate) for fate in found)
    return "\n\n".join([*(f"note: {cut(note)}" for note in notes), *told])


def _as_text(done: Check, fate: Fate) -> str:
    steps = printing.as_text(explain_fate(done.estate, fate).steps)
    if fate.path is None:
        return steps
    beyond = [*path_lines(fate.path), *needed_lines(fate.path, done.knowledge)]
    return "\n".join([f"{steps}\n", f"followed from here, it ends {fate.end}", *beyond])


def _as_object(done: Check, fate: Fate) -> object:
    if fate.verdict is None:
        gaps = [gap_object(gap) for gap in fate.gaps]
        said = {"error_number": fate.said.number, "transmission_status": fate.said.text}
        return {"verdict": None, "not_known": gaps, **said}
    told = explain_fate(done.estate, fate)
    [verdict] = told.verdict
    path = None if fate.path is None else path_object(fate.path, done.knowledge)
    return {**json.loads(printing.as_json(verdict, told.steps.rows)), "end": fate.end, "path": path}


def explain_fate(estate: Estate, fate: Fate) -> Explanation:
    """The path of a message that has a verdict."""
    rows, name = estate.evidence.rows, fate.row["instance_name"]
    tables = {key: _of_instance(rows[key], name, key) for key in _TABLES}
    [row] = Columns.of_rows([fate.row], INPUTS["messages"]).dicts()
    asked = Asked(row, is_described=False, as_of=estate.times[name])

    def chunks(instance: str, service: str) -> Iterator[Mapping[str, Columns]]:
        theirs = [one for one in rows["messages"] if one["to_service_name"] == service]
        yield {"messages": _of_instance(theirs, instance, "messages"), "dialogs": tables["dialogs"]}

    knowledge = estate.knowledge

    def is_known(hop: Hop) -> bool:
        return hop.verdict is None or not knowledge.of_verdict(hop.instance_name, hop.verdict)

    others = OtherInstances(lambda: estate.instances, is_known)
    known = Known.of_columns(narrow_to(tables, row), chunks, others)
    return answer(asked, known, Background(find_gap(tables), fate.said))


def _of_instance(rows: Sequence[Row], instance: str, key: str) -> Columns:
    return Columns.of_rows([row for row in rows if row["instance_name"] == instance], INPUTS[key])
