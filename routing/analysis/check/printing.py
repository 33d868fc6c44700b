"""A check as text for people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import starmap

from routing.analysis.check.changes import Change, End, find_changes
from routing.analysis.check.checking import Check
from routing.analysis.check.deciding import Fate
from routing.analysis.check.evidence import Evidence, ScriptRead
from routing.analysis.check.grouping import Group
from routing.analysis.check.linting import severity_of
from routing.analysis.check.notes import find_notes
from routing.analysis.check.paragraphs import paragraph
from routing.analysis.check.pasting import named
from routing.analysis.check.path_ends import PathEnd
from routing.analysis.check.phrases import bounded, cut, gap_sentence, status, when, where
from routing.analysis.check.reading import ViewRead, views_read
from routing.analysis.lint.catalogue import Severity
from routing.analysis.lint.finding import Found
from routing.analysis.statuses import WORDS, find_trouble
from routing.render.wording import count
from routing.storage.times import moment_of
from routing.terms import NOT_KNOWN, Outcome

MOST = 40
"""So many groups are printed, the others counted."""


def as_text(done: Check, *, with_all: bool = False) -> str:
    """All of it, for a terminal; messages that are simply on their way are counted unless ``with_all``."""
    told = [group for group in done.groups if with_all or group.needs_somebody]
    shown = told[:MOST]
    parts = [
        _section("Read", _read(done)),
        _section("Not known", bounded(map(gap_sentence, done.gaps), len(done.gaps))),
        summary(done),
        *_paragraphs(done, shown),
        _others(told[MOST:]),
        _rest(len(done.fates) - sum(len(group.fates) for group in told)),
        _section("What lint says about this", _findings(done)),
        *_tried(done),
    ]
    return "\n\n".join(part for part in parts if part)


def _paragraphs(done: Check, groups: Sequence[Group]) -> Iterator[str]:
    """The groups with lint's findings, each in full with the first group that it bears on."""
    first: dict[Found, int] = {}
    for number, group in enumerate(groups, start=1):
        found = done.findings_on(group)
        told = [
            f"{one.code} {severity_of(one)}, as in {first[one]}" if one in first else _finding(one)
            for one in found
        ]
        first |= {one: number for one in found if one not in first}
        yield paragraph(number, group, done.knowledge, list(bounded(told, len(told))))


def _section(title: str, lines: Iterator[str]) -> str:
    """A titled list; nothing where it is empty."""
    found = [f"  {line}" for line in lines]
    return "\n".join([title, *found]) if found else ""


def _read(done: Check) -> Iterator[str]:
    by_instance: dict[str, list[ViewRead]] = defaultdict(list)
    for one in views_read(done.evidence):
        by_instance[one.instance].append(one)
    yield from bounded(map(_instance, by_instance.values()), len(by_instance))
    yield from bounded(map(_script, done.evidence.scripts), len(done.evidence.scripts))
    yield from _uncounted(done.evidence)
    lists = {"left out": done.evidence.left_out, "rejected": done.evidence.rejected, "note": find_notes(done)}
    for what, sentences in lists.items():
        yield from (f"{what}: {cut(sentence)}" for sentence in bounded(sentences, len(sentences)))


def _instance(views: Sequence[ViewRead]) -> str:
    newest = max(one.newest for one in views)
    return f"{named(views[0].instance)}, exported at {when(newest)}: {', '.join(map(_view, views))}"


def _script(one: ScriptRead) -> str:
    rest = f", {one.left_out} left out" if one.left_out else ""
    rest += f", {one.rejected} rejected" if one.rejected else ""
    return f"{cut(one.file)} for {named(one.instance)}: {count(one.statements, 'statement')} in force{rest}"


def _uncounted(evidence: Evidence) -> Iterator[str]:
    """Of each view the rows that do not count."""
    for view, rows in evidence.rows_read.items():
        whats = {"rejected": evidence.rows_rejected, "left out, for a newer export tells": evidence.rows_left_out}
        told = [f"{of[view]:,} {what}" for what, of in whats.items() if of.get(view)]
        if told:
            yield f"of {count(rows, 'row')} of {view}: {', '.join(told)}"


def _view(one: ViewRead) -> str:
    of = f" of {count(one.databases, 'database')}" if one.databases else ""
    return f"{one.view} {count(one.rows, 'row')}{of}"


def summary(done: Check) -> str:
    """How many messages, as of when, and what becomes of them."""
    outcomes = done.outcomes
    counts = [f"{outcomes[word]:,} {word}" for word in (*map(str, Outcome), NOT_KNOWN) if outcomes[word]]
    asked = {fate.row["instance_name"] for fate in done.fates}
    times = list(dict.fromkeys(when(moment_of(at)) for at in sorted(done.estate.times[name] for name in asked)))
    as_of = f" as of {times[0]}" + (f" to {times[-1]}" if len(times) > 1 else "") if times else ""
    told = f": {', '.join(counts)}" if counts else ""
    return f"{count(len(done.fates), 'message')} in the transmission queues{as_of}{told}{_failing(done)}"


def _failing(done: Check) -> str:
    """How many messages leave their instance and are not acknowledged, and where they end."""
    ends = Counter(fate.path.end for fate in done.fates if fate.path is not None and fate.path.failing)
    if not ends:
        return ""
    told = ", ".join(f"{ends[end]:,} {end}" for end in PathEnd if ends[end])
    return f"; of those that are sent: {told}"


def _others(groups: Sequence[Group]) -> str:
    messages = count(sum(len(group.fates) for group in groups), "message")
    return f"and {count(len(groups), 'more group')} with {messages} (--format json has all)" if groups else ""


def _rest(number: int) -> str:
    told = "about which SQL Server reports no trouble; --all lists them"
    return f"{count(number, 'message')} on the way, {told}" if number else ""


def _findings(done: Check) -> Iterator[str]:
    bearing, others = len(done.findings), done.other_findings
    if bearing:
        yield f"{count(bearing, 'finding')} about what these messages meet, told with them"
    if others:
        what = "others" if bearing else "nothing; about other things"
        yield f"{what}: {', '.join(starmap(_severity, others.items()))} (sbroute lint)"


def _severity(severity: str, many: int) -> str:
    """So many findings of a severity."""
    return f"{many:,} {severity}" if severity == Severity.INFO else count(many, severity)


def _finding(one: Found) -> str:
    whose = ", ".join(
        named(name) for name in (one.instance_name, one.database_name, one.object) if name is not None
    )
    return f"{one.code} {severity_of(one)}, {whose}: {cut(one.message)}"


def _tried(done: Check) -> Iterator[str]:
    tried = done.tried
    if tried is None:
        return
    scripts = tried.evidence.scripts
    yield "\n".join(bounded(map(_title, scripts), len(scripts)))
    changes, unchanged = find_changes(done.fates, tried.fates)

    def lines() -> Iterator[str]:
        for what, sentences in {"rejected": tried.evidence.rejected, "note": tried.evidence.notes}.items():
            yield from (f"{what}: {cut(sentence)}" for sentence in bounded(sentences, len(sentences)))
        yield from bounded(map(_change, changes), len(changes))
        yield f"{count(unchanged, 'message')} as before"

    yield _section("What changes", lines())


def _title(script: ScriptRead) -> str:
    title = f"With {cut(script.file)} in force on {named(script.instance)}"
    return f"{title} ({count(script.statements, 'statement')}, {script.rejected} rejected)"


def _change(one: Change) -> str:
    who = f"{count(len(one.fates), 'message')} from {where(one.instance, one.database)} to {named(one.service)}"
    return f"{who}: {_end(one.before)} → {_end(one.after)}"


def _end(end: End) -> str:
    to = None if end.destination is None else f"to {named(end.destination)}"
    by = None if end.route_name is None else f"by route {named(end.route_name)}"
    place = "" if end.end_instance is None else f" at {named(end.end_instance)}"
    is_shown = end.end not in (end.outcome, PathEnd.NOT_KNOWN)
    then = f"ends {end.end}{place}" if is_shown else None
    return ", ".join(part for part in (end.outcome, end.reason, by, to, then) if part is not None)


def not_known(fate: Fate) -> str:
    """Return what is told of a message without a verdict: what would be needed, and what SQL Server says."""
    row = fate.row
    sender = where(row["instance_name"], row["database_name"])
    head = f"{NOT_KNOWN}: a message from {sender} to service {named(row['to_service_name'])}"
    lines = [head, *(f"  what would be needed: {gap_sentence(gap)}" for gap in fate.gaps)]
    trouble = find_trouble(fate.said.number, fate.said.text)
    if trouble is not None:
        lines.append(f"  SQL Server says: {status(fate.said)}. {WORDS[trouble]}")
    return "\n".join(lines)
