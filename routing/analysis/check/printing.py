"""A check as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from routing.analysis.check.changes import Change, End, find_changes
from routing.analysis.check.checking import Check, Tried
from routing.analysis.check.deciding import NOT_KNOWN, Fate
from routing.analysis.check.gaps import Gap
from routing.analysis.check.grouping import Group
from routing.analysis.check.linting import severity_of
from routing.analysis.check.near import NearMiss
from routing.analysis.check.notes import find_notes
from routing.analysis.check.pasting import named
from routing.analysis.check.reading import ViewRead, views_read
from routing.analysis.explain.background import Status
from routing.analysis.explain.wording import error_number, moment
from routing.rules.observed import Agreement
from routing.show import printable
from routing.storage.times import moment_of
from routing.terms import Outcome

SHOWN = 20
_ON_THEIR_WAY = (Outcome.DELIVERED, Outcome.SENT, Outcome.FORWARDED)
_TEXT = 200


def as_text(done: Check, *, with_all: bool = False) -> str:
    """All of it, for a terminal; messages that are simply on their way are counted unless ``with_all``."""
    parts = [_read(done), _gaps(done.gaps), _summary(done)]
    shown = [one for one in done.groups if with_all or one.needs_somebody]
    parts += [_group(number, one) for number, one in enumerate(shown, start=1)]
    rest = sum(len(one.fates) for one in done.groups if not with_all and not one.needs_somebody)
    if rest:
        parts.append(f"{_messages(rest)} on their way, of which SQL Server tells no trouble (--all lists them)")
    parts += [_findings(done), _tried(done)]
    return "\n\n".join(part for part in parts if part)


def _read(done: Check) -> str:
    lines = ["Read"]
    lines += [f"  {one}" for one in map(_view, views_read(done.evidence))]
    for script in done.evidence.scripts:
        counts = (
            f"{_count(script.statements, 'statement')}, {script.left_out} left out, {script.rejected} rejected"
        )
        lines.append(f"  script {named(script.file)} for {named(script.instance)}: {counts}")
    lines += _listed("left out", done.evidence.left_out)
    lines += _listed("rejected", done.evidence.rejected)
    lines += _listed("note", find_notes(done))
    return "\n".join(lines)


def _view(one: ViewRead) -> str:
    whose = (
        named(one.instance)
        if one.databases == 0
        else f"{named(one.instance)}, {_count(one.databases, 'database')}"
    )
    return f"sys.{one.view} of {whose}: {_count(one.rows, 'row')}, exported at {moment(one.newest)}"


def _listed(what: str, sentences: Sequence[str]) -> Iterator[str]:
    for sentence in sentences[:SHOWN]:
        yield f"  {what}: {_cut(printable(sentence))}"
    if len(sentences) > SHOWN:
        yield f"  {what}: and {len(sentences) - SHOWN:,} more (--format json has all)"


def _gaps(gaps: Sequence[Gap]) -> str:
    if not gaps:
        return ""
    return "\n".join(["Not known", *_bounded(map(_gap, gaps), len(gaps))])


def _bounded(sentences: Iterable[str], total: int) -> list[str]:
    shown = [f"  {sentence}" for sentence, _ in zip(sentences, range(SHOWN), strict=False)]
    return [*shown, f"  and {total - SHOWN:,} more (--format json has all)"] if total > SHOWN else shown


def _gap(gap: Gap) -> str:
    return f"{_where(gap.instance, gap.database)}: {gap.what.words}; export {gap.what.view}"


def _where(instance: str, database: str | None) -> str:
    return named(instance) if database is None else f"{named(instance)}, database {named(database)}"


def _summary(done: Check) -> str:
    outcomes = done.outcomes
    counts = [f"{outcomes[word]:,} {word}" for word in (*map(str, Outcome), NOT_KNOWN) if outcomes[word]]
    told = f": {', '.join(counts)}" if counts else ""
    asked = {fate.row["instance_name"] for fate in done.fates}
    times = [moment(moment_of(time)) for time in sorted({done.estate.times[name] for name in asked})]
    as_of = "" if not times else f" as of {times[0]}" if len(times) == 1 else f" as of {times[0]} to {times[-1]}"
    return f"{_messages(len(done.fates))} in the transmission queues{as_of}{told}"


def _group(number: int, one: Group) -> str:
    lines = [f"{number}. {_head(one)}", f"   {_age(one)}"]
    lines += [f"   {line}" for line in (_decided(one), *_near(one.near), *_said(one)) if line]
    lines += [f"   what would be needed: {_gap(gap)}" for gap in one.gaps[:SHOWN]]
    return "\n".join([*lines, *_remedy(one)])


def _head(one: Group) -> str:
    row, verdict = one.first.row, one.verdict
    who = f"{_messages(len(one.fates))} from {_where(row['instance_name'], row['database_name'])}"
    what = f"{who} to service {named(row['to_service_name'])}"
    if verdict is None:
        return f"{NOT_KNOWN}: {what}"
    number = error_number(str(verdict.reason), one.first.scope)
    told = "" if number is None else f" (SQL Server's number: {number})"
    return f"{verdict.outcome}, {verdict.reason}{told}: {what}"


def _age(one: Group) -> str:
    oldest = "" if len(one.fates) == 1 else "the oldest "
    message = one.first.row.get("message_id")
    which = f"message {named(message)}" if message else f"conversation handle {named(one.first.handle)}"
    return f"{oldest}of {moment(one.oldest)}, {which}"


def _decided(one: Group) -> str:
    verdict = one.verdict
    if verdict is None:
        return ""
    steps = f"step {', '.join(map(str, one.steps))}" if one.steps else "no step"
    route = "no route" if verdict.route_name is None else f"route {named(verdict.route_name)}"
    where = verdict.destination_database or verdict.address
    to = "" if where is None else f" to {named(where)}"
    again = "" if verdict.rerouted_from is None else f", led back here by route {named(verdict.rerouted_from)}"
    return f"{steps}, {route}{to}{again}; {_brokers(one.brokers)}"


def _brokers(brokers: Sequence[str | None]) -> str:
    ids = [named(each) for each in brokers if each is not None]
    if not ids:
        return "bound to no broker instance"
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    is_open = ", some to none" if None in brokers else ""
    return f"bound to broker instance {', '.join(ids[:3])}{more}{is_open}"


def _near(near: Sequence[NearMiss]) -> Iterator[str]:
    for miss in near[:3]:
        where = _where(miss.instance, miss.database)
        why = ", ".join(_DIFFERENCES[word] for word in miss.differences)
        if miss.what == "route":
            yield f"near: route {named(miss.name)} of {where} names {named(miss.service)}: {why}"
        else:
            yield f"near: {where} holds service {named(miss.name)}: {why}"
    if len(near) > 3:
        yield f"near: and {len(near) - 3} more (--format json has all)"


_DIFFERENCES = {
    "NAME_CASE": "it differs in case",
    "NAME_BLANKS": "it differs in blanks around the name",
    "NAME_SLASH": "it differs in a slash at its end",
    "OTHER_BROKER_INSTANCE": "another broker instance",
    "EXPIRED": "expired",
    "NOT_YET_VALID": "not yet valid",
    "BROKER_DISABLED": "its broker is off",
}


def _said(one: Group) -> Iterator[str]:
    """What SQL Server itself says: how many of its statements agree, and what the others say."""
    agreeing = one.agreements[Agreement.AGREES]
    if agreeing:
        yield f"SQL Server says the same of {agreeing:,}"
    others = [
        (said, count) for said, count in one.said.most_common() if said.text is not None and not _agrees(one, said)
    ]
    for said, count in others[:3]:
        yield f"SQL Server says of {count:,}: {_status(said)}{_meaning(one, said)}"
    if len(others) > 3:
        yield f"SQL Server says other things of {sum(count for _, count in others[3:]):,} (--format json has all)"
    blank = sum(count for said, count in one.said.items() if said.text is None)
    if blank:
        yield f"SQL Server says nothing of {blank:,}: not tried yet, or sent and not acknowledged"


def _agrees(one: Group, said: Status) -> bool:
    compared = one.compared(said)
    return compared is not None and compared.agreement is Agreement.AGREES


def _status(said: Status) -> str:
    number = "" if said.number is None else f"{said.number}, "
    return f"{number}'{_cut(printable(said.text or ''))}'"


def _meaning(one: Group, said: Status) -> str:
    compared = one.compared(said)
    if compared is None or compared.agreement is Agreement.SAYS_NOTHING:
        return ""
    why = "" if compared.why is None else f": {compared.why}"
    return f" ({compared.agreement}{why})"


def _remedy(one: Group) -> Iterator[str]:
    if one.remedy is None:
        return
    yield f"   What to do: {one.remedy.words}"
    if one.remedy.statement is not None:
        yield ""
        yield from (f"      {line}" for line in one.remedy.statement.splitlines())


def _findings(done: Check) -> str:
    found, others = done.findings, done.other_findings
    lines = [
        f"  {one.code} {severity_of(one)}, {_whose(one.instance_name, one.database_name, one.object)}: {_cut(printable(one.message))}"
        for one in found[:SHOWN]
    ]
    if len(found) > SHOWN:
        lines.append(f"  and {len(found) - SHOWN:,} more (--format json has all)")
    rest = ", ".join(f"{count:,} {severity}" for severity, count in others.items())
    lines += [f"  others of lint: {rest}"] if rest else []
    return "\n".join(["What lint says of these messages' routes", *lines]) if lines else ""


def _whose(*names: str | None) -> str:
    return ", ".join(named(name) for name in names if name is not None)


def _tried(done: Check) -> str:
    tried = done.tried
    if tried is None:
        return ""
    changes, unchanged = find_changes(done.fates, tried.fates)
    lines = [f"With {_scripts(tried)} in force"]
    lines += _listed("rejected", tried.evidence.rejected)
    lines += _listed("note", tried.evidence.notes)
    lines += _bounded(map(_change, changes), len(changes))
    lines.append(f"  {_messages(unchanged)} {'does' if unchanged == 1 else 'do'} not change")
    return "\n".join(lines)


def _scripts(tried: Tried) -> str:
    return ", ".join(
        f"{named(one.file)} for {named(one.instance)} ({_count(one.statements, 'statement')})"
        for one in tried.evidence.scripts
    )


def _change(one: Change) -> str:
    who = f"{_messages(len(one.fates))} from {_where(one.instance, one.database)} to service {named(one.service)}"
    return f"{who}: {_end(one.before)} → {_end(one.after)}"


def _end(end: End) -> str:
    outcome, reason, route, where = end
    parts = [
        outcome,
        reason,
        None if where is None else named(where),
        None if route is None else f"route {named(route)}",
    ]
    return ", ".join(part for part in parts if part is not None)


def not_known(fate: Fate) -> str:
    """A message that has no verdict, and what would be needed."""
    row = fate.row
    head = f"{NOT_KNOWN}: a message from {_where(row['instance_name'], row['database_name'])} to {named(row['to_service_name'])}"
    return "\n".join([head, *(f"  what would be needed: {_gap(gap)}" for gap in fate.gaps)])


def _messages(count: int) -> str:
    return _count(count, "message")


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"
