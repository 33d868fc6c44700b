"""A group of messages as a paragraph: their end, what decided, what was near, what SQL Server says, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from routing.analysis.check.deciding import Fate
from routing.analysis.check.gaps import Knowledge
from routing.analysis.check.grouping import Group, GroupAdvice
from routing.analysis.check.near import ROUTE, NearMiss
from routing.analysis.check.pasting import named
from routing.analysis.check.path_lines import end_words, needed_lines, path_lines
from routing.analysis.check.phrases import SHOWN, gap_sentence, status, when, where
from routing.analysis.differing import AROUND, BROKER_OFF, CASE, EXPIRED, NOT_YET, OTHER_BROKER, SLASH
from routing.analysis.explain.background import Status
from routing.analysis.explain.wording import error_number
from routing.render.wording import count
from routing.rules.observed import Agreement
from routing.terms import NOT_KNOWN, Outcome

_V = TypeVar("_V", int, str)
_FEW = 3
_BETWEEN = "\n"
_DIFFERENCES = {
    CASE: "it differs in case",
    AROUND: "it differs in blanks around the name",
    SLASH: "it differs in a slash at its end",
    OTHER_BROKER: "it has another broker instance",
    EXPIRED: "it has expired",
    NOT_YET: "it is not valid yet",
    BROKER_OFF: "its broker is off",
}


def paragraph(number: int, group: Group, knowledge: Knowledge, findings: Sequence[str] = ()) -> str:
    """All that is told of a group; ``findings`` are lint's, as sentences."""
    lines = [_age(group), *_decided(group), *_path(group, knowledge), *_near(group.near), *_said(group)]
    lines += [f"lint: {sentence}" for sentence in findings]
    lines += [f"what would be needed: {gap_sentence(gap)}" for gap in group.gaps[:SHOWN]]
    text = "\n".join([f"{number}. {_head(group)}", *(f"   {line}" for line in lines)])
    several = len({advice.count for advice in group.advice}) > 1
    for advice in group.advice[:_FEW]:
        whose = len(group.fates) if several else None
        text += f"\n   {_what_to_do(advice, of=whose, is_certain=group.verdict is not None)}"
        if advice.remedy.statement is not None:
            statement = "\n".join(f"      {line}" for line in advice.remedy.statement.splitlines())
            text += f"\n\n{statement}{_BETWEEN if advice is not group.advice[:_FEW][-1] else ''}"
    if len(group.advice) > _FEW:
        text += f"\n   and {len(group.advice) - _FEW} more (--format json has all)"
    return text


def _what_to_do(advice: GroupAdvice, *, of: int | None, is_certain: bool) -> str:
    """Return a remedy with its instance; ``of`` how many messages it is, where remedies differ in that."""
    whose = "" if of is None else f" about {advice.count:,} of these {of:,} messages"
    whose += "" if is_certain else ", as far as is known"
    return f"what to do on {named(advice.instance)}{whose}: {advice.remedy.words}"


def _path(group: Group, knowledge: Knowledge) -> Iterator[str]:
    if group.path is not None:
        yield from path_lines(group.path)
        if group.is_failing or group.unacknowledged:
            yield from needed_lines(group.path, knowledge)


def _head(group: Group) -> str:
    row, verdict = group.first.row, group.verdict
    sender = where(row["instance_name"], row["database_name"])
    who = f"{count(len(group.fates), 'message')} from {sender} to service {named(row['to_service_name'])}"
    if verdict is None:
        return f"{NOT_KNOWN}: {who}"
    number = error_number(str(verdict.reason), group.first.scope)
    told = "" if number is None else f" (SQL Server's number: {number})"
    return f"{verdict.outcome}, {verdict.reason}{told}{end_words(group.path)}: {who}"


def _age(group: Group) -> str:
    oldest = "" if len(group.fates) == 1 else "the oldest was "
    return f"{oldest}enqueued at {when(group.oldest)}: {_name(group.first)}"


def _name(fate: Fate) -> str:
    """A message by its id; one of which no conversation is known by its handle."""
    message = fate.row.get("message_id")
    return f"conversation handle {named(fate.handle)}" if message is None else f"message {named(message)}"


def _decided(group: Group) -> Iterator[str]:
    verdict = group.verdict
    if verdict is None:
        return
    step = f"step {_counted(group.steps)}" if group.steps else "before any step"
    route = "" if verdict.route_name is None else f", route {named(verdict.route_name)}"
    target = verdict.destination_database or verdict.address
    to = "" if target is None else f" to {named(target)}"
    back = "" if verdict.rerouted_from is None else f", led back by route {named(verdict.rerouted_from)}"
    yield f"{step}{route}{to}{back}; {_brokers(group.brokers)}"


def _brokers(brokers: Counter[str | None]) -> str:
    """The broker ids that messages are bound to; how many to each where these are several."""
    if set(brokers) == {None}:
        return "bound to no broker instance"
    ids = Counter({named(each): many for each, many in brokers.items() if each is not None})
    plural = "" if len(ids) == 1 else "s"
    is_mixed = None in brokers
    others = f"; {brokers[None]:,} to none" if is_mixed else ""
    return f"bound to broker instance{plural} {_counted(ids, is_mixed=is_mixed)}{others}"


def _counted(values: Counter[_V], *, is_mixed: bool = False) -> str:
    """The first values of a group, with how many messages have each where not all have one."""
    if len(values) == 1 and not is_mixed:
        return str(next(iter(values)))
    shown = ", ".join(f"{value} ({many:,})" for value, many in list(values.items())[:_FEW])
    return f"{shown} and {len(values) - _FEW} more" if len(values) > _FEW else shown


def _near(near: Sequence[NearMiss]) -> Iterator[str]:
    for miss in near[:_FEW]:
        place, why = (
            where(miss.instance, miss.database),
            ", ".join(_DIFFERENCES[word] for word in miss.differences),
        )
        if miss.what == ROUTE:
            yield f"near: route {named(miss.name)} of {place} names {named(miss.service)}: {why}"
        else:
            yield f"near: {place} holds service {named(miss.name)}: {why}"
    if len(near) > _FEW:
        yield f"near: and {len(near) - _FEW} more (--format json has all)"


def _said(group: Group) -> Iterator[str]:
    """What SQL Server itself says: how many of its statements agree, and what the others say."""
    agreeing = group.agreements[Agreement.AGREES]
    if agreeing:
        yield f"SQL Server says the same of {count(agreeing, 'message')}"
    others = [(said, many) for said, many in group.said.most_common() if said.text and not _agrees(group, said)]
    for said, many in _each_number_first(others)[:_FEW]:
        yield f"SQL Server says of {count(many, 'message')}: {status(said)}{_meaning(group, said)}"
    if len(others) > _FEW:
        rest = sum(many for _, many in _each_number_first(others)[_FEW:])
        yield f"SQL Server says other things of {count(rest, 'message')} (--format json has all)"
    blank = sum(many for said, many in group.said.items() if said.text is None)
    sent = group.unacknowledged
    if sent:
        since = "enqueued more than ten minutes before the export"
        is_here = group.verdict is not None and group.verdict.outcome is Outcome.DELIVERED
        what = "no queue has taken them" if is_here else "sent and not acknowledged"
        yield f"SQL Server says nothing of {count(sent, 'message')}, {since}: {what}"
    if blank > sent:
        young = count(blank - sent, "message")
        yield f"SQL Server says nothing of {young}: not tried yet, or sent and not acknowledged"


def _each_number_first(told: Sequence[tuple[Status, int]]) -> list[tuple[Status, int]]:
    """Return statuses in their order, those whose number no earlier one has before others."""
    numbers: Counter[int | None] = Counter()
    turns = []
    for said, many in told:
        turns.append((numbers[said.number], said, many))
        numbers[said.number] += 1
    return [(said, many) for _, said, many in sorted(turns, key=lambda turn: turn[0])]


def _agrees(group: Group, said: Status) -> bool:
    compared = group.compared(said)
    return compared is not None and compared.agreement is Agreement.AGREES


def _meaning(group: Group, said: Status) -> str:
    compared = group.compared(said)
    if compared is None or compared.agreement is Agreement.SAYS_NOTHING:
        return ""
    return f" ({compared.agreement}{'' if compared.why is None else f': {compared.why}'})"
