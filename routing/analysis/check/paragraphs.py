"""A group of messages as a paragraph: their end, what decided, what was near, what SQL Server says, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routing.analysis.check.deciding import Fate
from routing.analysis.check.grouping import Group
from routing.analysis.check.near import ROUTE, NearMiss
from routing.analysis.check.pasting import named
from routing.analysis.check.phrases import SHOWN, cut, gap_sentence, when, where
from routing.analysis.differing import AROUND, BROKER_OFF, CASE, EXPIRED, NOT_YET, OTHER_BROKER, SLASH
from routing.analysis.explain.background import Status
from routing.analysis.explain.wording import error_number
from routing.rules.observed import Agreement
from routing.show import count
from routing.terms import NOT_KNOWN

_FEW = 3
_DIFFERENCES = {
    CASE: "it differs in case",
    AROUND: "it differs in blanks around the name",
    SLASH: "it differs in a slash at its end",
    OTHER_BROKER: "it has another broker instance",
    EXPIRED: "it has expired",
    NOT_YET: "it is not valid yet",
    BROKER_OFF: "its broker is off",
}


def paragraph(number: int, group: Group) -> str:
    """All that is told of a group."""
    lines = [_age(group), *_decided(group), *_near(group.near), *_said(group)]
    lines += [f"what would be needed: {gap_sentence(gap)}" for gap in group.gaps[:SHOWN]]
    if group.remedy is not None:
        lines.append(f"what to do on {named(group.first.row['instance_name'])}: {group.remedy.words}")
    text = "\n".join([f"{number}. {_head(group)}", *(f"   {line}" for line in lines)])
    if group.remedy is None or group.remedy.statement is None:
        return text
    statement = "\n".join(f"      {line}" for line in group.remedy.statement.splitlines())
    return f"{text}\n\n{statement}"


def _head(group: Group) -> str:
    row, verdict = group.first.row, group.verdict
    sender = where(row["instance_name"], row["database_name"])
    who = f"{count(len(group.fates), 'message')} from {sender} to service {named(row['to_service_name'])}"
    if verdict is None:
        return f"{NOT_KNOWN}: {who}"
    number = error_number(str(verdict.reason), group.first.scope)
    told = "" if number is None else f" (SQL Server's number: {number})"
    return f"{verdict.outcome}, {verdict.reason}{told}: {who}"


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
    step = f"step {', '.join(map(str, group.steps))}" if group.steps else "before any step"
    route = "" if verdict.route_name is None else f", route {named(verdict.route_name)}"
    target = verdict.destination_database or verdict.address
    to = "" if target is None else f" to {named(target)}"
    back = "" if verdict.rerouted_from is None else f", led back by route {named(verdict.rerouted_from)}"
    yield f"{step}{route}{to}{back}; {_brokers(group.brokers)}"


def _brokers(brokers: Sequence[str | None]) -> str:
    ids = [named(each) for each in brokers if each is not None]
    if not ids:
        return "bound to no broker instance"
    more = f" and {len(ids) - _FEW} more" if len(ids) > _FEW else ""
    others = ", some to none" if None in brokers else ""
    plural = "" if len(ids) == 1 else "s"
    return f"bound to broker instance{plural} {', '.join(ids[:_FEW])}{more}{others}"


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
    for said, many in others[:_FEW]:
        yield f"SQL Server says of {count(many, 'message')}: {_status(said)}{_meaning(group, said)}"
    if len(others) > _FEW:
        rest = sum(many for _, many in others[_FEW:])
        yield f"SQL Server says other things of {count(rest, 'message')} (--format json has all)"
    blank = sum(many for said, many in group.said.items() if said.text is None)
    if blank:
        yield f"SQL Server says nothing of {count(blank, 'message')}: not tried yet, or sent and not acknowledged"


def _agrees(group: Group, said: Status) -> bool:
    compared = group.compared(said)
    return compared is not None and compared.agreement is Agreement.AGREES


def _status(said: Status) -> str:
    number = "" if said.number is None else f"{said.number}, "
    return f"{number}'{cut(said.text or '')}'"


def _meaning(group: Group, said: Status) -> str:
    compared = group.compared(said)
    if compared is None or compared.agreement is Agreement.SAYS_NOTHING:
        return ""
    return f" ({compared.agreement}{'' if compared.why is None else f': {compared.why}'})"
