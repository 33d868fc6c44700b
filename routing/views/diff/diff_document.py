"""Write a comparison as a document: the changes for the worse, the improvements, then the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from routing.document import (
    Block,
    Cell,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    ListItem,
    Paragraph,
    TonedText,
    Words,
    make_columns,
)
from routing.groups import group_pairs
from routing.render.phrases import join_words, named
from routing.render.wording import count, format_time, mark_outcome, plain_words, write_json
from routing.result_schemas import SIDES
from routing.rules.path_changes import THERE
from routing.terms import LEAVES, PathEnd, ReadRow
from routing.views.configuration_changes import COMES, GOES, state_change
from routing.views.diff.decision_comparison import loses_sight, step_of
from routing.views.diff.diffing import Diff

SHOWN = 20
# The number of outcomes and reasons in a sentence. The table below has all.
_FEW = 5
_COUNTS = ("messages", "before", "after", "such as")
_WORSE, _BETTER, _NEITHER = 1, -1, 0
_TITLES = {
    _WORSE: "Messages that get worse",
    _BETTER: "Messages that get better",
    _NEITHER: "Messages that get neither worse nor better, but change",
}


def make_document(done: Diff) -> Document:
    """Describe a `diff`: the changes for the worse, the improvements, other changes, and the compared sides."""
    return [
        *_state_answers(done),
        *_state_unaddressed(done),
        Paragraph(_state_rest(done)),
        *_compared_sides(done),
        *_lists(done),
    ]


def _state_answers(done: Diff) -> Iterator[Block]:
    compared = count(done.compared, "message")
    if not done.changed:
        yield Paragraph(f"None of {compared} {_known_to(done, 'change')}.")
        return
    if not done.worse:
        yield Paragraph(f"None of {compared} {_known_to(done, 'get')} worse.")
    for step, rows in _by_step(done):
        messages = sum(row["messages"] for row in rows)
        s = "s" * (messages == 1)
        head, verbs = f"{messages:,} get{s} better", ("becomes", "become")
        if step == _WORSE:
            head = f"{messages:,} of {compared} get{s} worse"
        elif step == _NEITHER:
            head, verbs = f"{messages:,} change{s}, and get{s} neither worse nor better", ("is then", "are then")
        yield Paragraph(_state_changes(head, rows, verbs))
    if done.not_known:
        yield Paragraph(
            f"It is no longer known where {count(done.not_known, 'message')} end{'s' * (done.not_known == 1)}."
        )


def _by_step(done: Diff) -> Iterator[tuple[int, list[ReadRow]]]:
    """Yield the counts of messages that get worse, better, and neither, if there are any."""
    by_step = group_pairs((step_of(row), row) for row in done.counts)
    yield from ((step, by_step[step]) for step in _TITLES if step in by_step)


def _known_to(done: Diff, verb: str) -> str:
    """Write what no message does, limited to known messages if instances have no address."""
    return f"is known to {verb}" if done.unaddressed else f"{verb}s"


def _state_unaddressed(done: Diff) -> Iterator[Block]:
    if done.unaddressed:
        names = join_words(map(named, done.unaddressed))
        yield Paragraph(
            f"It is not known whether messages through {names} change: no address of an endpoint there is known."
        )


def _state_changes(head: str, rows: Sequence[ReadRow], verbs: tuple[str, str]) -> Words:
    becoming = Counter[tuple[str, str | None]]()
    for row in rows:
        columns = "outcome", "reason"
        if row["ending_after"] != PathEnd.NOT_KNOWN:
            columns = "ending", "ending_reason"
        becoming[row[f"{columns[0]}_after"], row[f"{columns[1]}_after"]] += row["messages"]
    parts: list[str | TonedText] = [head]
    for place, ((end, reason), messages) in enumerate(becoming.most_common(_FEW)):
        verb, why = verbs[messages != 1], "" if reason is None else f" ({reason})"
        parts += [f"{', ' if place else ': '}{messages:,} {verb} ", mark_outcome(end), why]
    other_messages = sum(becoming.values()) - sum(messages for _, messages in becoming.most_common(_FEW))
    return (*parts, f", {other_messages:,} for other reasons." if other_messages else ".")


def _state_rest(done: Diff) -> str:
    if not (done.counts or done.routes or done.findings):
        return "No route in force differs, and no lint finding appears or disappears."
    appeared = sum(row["change"] == COMES for row in done.findings)
    fixed = len(done.findings) - appeared
    changes, worse = f"none {_known_to(done, 'change')}", f"none {_known_to(done, 'get')} worse"
    if done.worse:
        worse = f"{done.worse:,} of them get{'s' * (done.worse == 1)} worse"
    if done.changed:
        changes = f"{done.changed:,} change{'s' * (done.changed == 1)}, {worse}"
    return (
        f"{count(done.compared, 'message')} compared: {changes}; {count(len(done.routes), 'route')} in force"
        f" differ{'s' * (len(done.routes) == 1)};"
        f" {count(appeared, 'lint finding')} appear{'s' * (appeared == 1)},"
        f" {fixed:,} disappear{'s' * (fixed == 1)}"
    )


def _compared_sides(done: Diff) -> Iterator[Block]:
    yield Paragraph("")
    for name, one_side in (("before", done.before), ("after", done.after)):
        yield LabelledFact(name, f"{one_side.label}, as of {format_time(one_side.moment)}")
    refused = 0 if done.script is None else len(done.script.rejected)
    if refused:
        yield Paragraph(
            f"{count(refused, 'statement')} would be refused, and change{'s' * (refused == 1)} nothing", 1
        )


def _lists(done: Diff) -> Iterator[Block]:
    for step, rows in _by_step(done):
        columns = make_columns(_COUNTS, ["messages"])
        yield DataTable(columns, list(map(_count, rows[:SHOWN])), _TITLES[step], max(len(rows) - SHOWN, 0))
    yield from _list_rows("Where they are, and what happens to them", list(done.keys), _key)
    yield from _list_rows("Routes in force that differ", list(done.routes), _route)
    for change, title in ((COMES, "Findings of lint that come"), (GOES, "Findings of lint that go")):
        yield from _list_rows(title, [row for row in done.findings if row["change"] == change], _finding)


def _list_rows(title: str, rows: Sequence[ReadRow], words: Callable[[ReadRow], Words]) -> Iterator[Block]:
    """Yield a list of the first rows and the number of further ones. Without rows it yields no blocks."""
    if rows:
        yield DocumentHeading(title)
        yield from (ListItem(words(row)) for row in rows[:SHOWN])
        if len(rows) > SHOWN:
            yield Paragraph(f"and {len(rows) - SHOWN:,} more; --format json prints all of them")


def _count(row: ReadRow) -> Sequence[Cell]:
    examples = (f"{_text(example['instance_name'])} {_text(example['message_id'])}" for example in row["examples"])
    before, after = (
        f"{row[f'outcome_{name}']} {row[f'reason_{name}']}" + plain_words(tuple(_end(row, name))) for name in SIDES
    )
    return row["messages"], before, after, ", ".join(examples)


def _end(row: ReadRow, name: str) -> Iterator[str | TonedText]:
    """Yield the end of a message that leaves its instance, if it is or was known."""
    if row[f"outcome_{name}"] in LEAVES and (row[f"ending_{name}"] != PathEnd.NOT_KNOWN or loses_sight(row)):
        reason = row[f"ending_reason_{name}"]
        yield from (", then ", mark_outcome(row[f"ending_{name}"]), "" if reason is None else f" {reason}")


def _key(row: ReadRow) -> Words:
    sender = _join_names(row, "instance_name", "database_name")
    messages = f"{count(row['messages'], 'message')} of {sender} to service {_text(row['to_service_name'])}: "
    return (messages, *_decision(row, "before"), " → ", *_decision(row, "after"), _part(row))


def _part(row: ReadRow) -> str:
    """Write at which hop the paths part, if it is not the first one."""
    if row["hop"] is None or (row["hop"] == 1 and row["hop_direction"] == THERE):
        return ""
    direction = "" if row["hop_direction"] == THERE else " of the return path"
    return f"; from hop {row['hop']}{direction} on, {_join_names(row, 'hop_instance_name', 'hop_scope')}"


def _decision(row: ReadRow, before_or_after: str) -> Iterator[str | TonedText]:
    outcome, reason, route, address, mirror, database = (
        row[f"{name}_{before_or_after}"]
        for name in ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
    )
    destination = f"to {address}" if database is None else f"into {database}"
    parts = [f" {reason}"]
    parts += [] if route is None else [f"by {route}"]
    parts += [] if database is None and address is None else [destination]
    parts += [] if mirror is None else [f"mirror {mirror}"]
    yield mark_outcome(outcome)
    yield " ".join(parts)
    yield from _end(row, before_or_after)
    ending = _join_names(row, *(f"ending_{name}_name_{before_or_after}" for name in ("instance", "database")))
    if outcome in LEAVES and ending:
        yield f" at {ending}"


def _route(row: ReadRow) -> Words:
    place = _join_names(row, "instance_name", "database_name")
    return f"{row['change']}: {row['name']} of {place}: {state_change(row)}"


def _finding(row: ReadRow) -> Words:
    place = _join_names(row, "instance_name", "database_name", "object")
    return f"{row['code']} {row['severity']}, {place}: {row['message']}"


def _join_names(row: ReadRow, *names: str) -> str:
    return ", ".join(str(row[name]) for name in names if row[name] is not None)


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def write_diff(done: Diff) -> str:
    """Return one line of JSON. See docs/reference/json.md for its keys."""
    sides_by_name = {"before": done.before, "after": done.after}
    return write_json(
        {
            **{name: {"what": one_side.label, "at": one_side.moment} for name, one_side in sides_by_name.items()},
            "compared": done.compared,
            "changed": done.changed,
            "worse": done.worse,
            "not_known": done.not_known,
            "unaddressed": done.unaddressed,
            **{name: [dict(row) for row in vars(done)[name]] for name in ("counts", "keys", "routes", "findings")},
            "script": None if done.script is None else done.script.as_json(),
        }
    )
