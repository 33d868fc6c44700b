"""Show the evidence of a problem: the deciding step and route, misses, statuses, path and findings of lint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from routing.advice.trouble_catalogue import error_number
from routing.cases.background import StatusText
from routing.cases.exported_files import is_untold
from routing.cases.known_estate import EstateKnowledge, gap_sentence, gaps_on
from routing.cases.message_cases import MessageResult
from routing.cases.near_misses import ROUTE, NearMiss
from routing.document import Block, Cell, DataTable, ListItem, Paragraph, Tone, TonedText, make_columns
from routing.lint.lint_estate import LintFinding
from routing.render.phrases import cut, join_words, named, shorten, when, where
from routing.render.wording import count
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.observed import NumberAgreement
from routing.rules.text import AROUND, BROKER_OFF, CASE, EXPIRED, NOT_YET, OTHER_BROKER, SLASH
from routing.terms import Ending
from routing.views.check.checking import Check, severity_of
from routing.views.check.grouping import MessageGroup
from routing.views.check.problems import MessageProblem, state_silence, state_status
from routing.views.path_words import ENDING_WORDS, HAZARD, path_blocks

_V = TypeVar("_V", int, str)
_FEW = 3
_GROUPS = 10
_DIFFERENCES = {
    CASE: "it differs in case",
    AROUND: "it differs in blanks around the name",
    SLASH: "it differs in a slash at its end",
    OTHER_BROKER: "it has another broker instance",
    EXPIRED: "it has expired",
    NOT_YET: "it is not valid yet",
    BROKER_OFF: "its broker is off",
}
VIEWS_OF_AN_INSTANCE = (
    *("sys.databases", "sys.routes", "sys.services"),
    *("sys.service_broker_endpoints", "sys.tcp_endpoints"),
)
"""The views that determine the decision for messages arriving at an instance."""
_ENDINGS = {**ENDING_WORDS, Ending.NOT_KNOWN: "the deciding exports are missing"}


@dataclass(frozen=True)
class ReportLimits:
    """The maximal lengths of a report's lists, or None for no limit. Further items are counted."""

    problems: int | None = 20
    remedies: int | None = 3
    evidence: int | None = 3
    hops: int | None = 20
    sentences: int | None = 10
    notes: int | None = 20
    changes: int | None = 20


class EvidencePlaces:
    """Remembers the problem that shows a path, a remedy or a finding of lint in full."""

    def __init__(self, done: Check, limits: ReportLimits) -> None:
        self._done, self.knowledge, self.limits = done, done.knowledge, limits
        self._first: dict[object, int] = {}

    def find_first(self, fact: object, number: int) -> int | None:
        """Return the earlier problem that shows this fact in full, or None if this problem is the first."""
        first = self._first.setdefault(fact, number)
        return None if first == number else first

    def list_findings(self, number: int, group: MessageGroup) -> Iterator[str]:
        """Yield the findings of lint about objects on the path of a group."""
        for finding in self._done.findings_on(group):
            first = self.find_first(finding, number)
            again = f"{finding.code} {severity_of(finding)}, as in {first}"
            yield _state_finding(finding) if first is None else again


def list_evidence(number: int, problem: MessageProblem, places: EvidencePlaces) -> Iterator[Block]:
    """Yield the evidence of a problem, as a list."""
    limits = places.limits
    yield Paragraph((TonedText("evidence:", Tone.QUIET),), 1)
    if len(problem.groups) > 1:
        yield _table_of_groups(problem, limits)
    lines: dict[str, None] = {}
    for group in problem.groups:
        lines |= dict.fromkeys(_state_decision(group))
        lines |= dict.fromkeys(_list_near(group.near_misses, limits.evidence))
    lines |= dict.fromkeys(_list_statuses(problem, problem.combined_group, limits.evidence))
    line_limit = None if limits.evidence is None else limits.evidence * 4
    yield from (ListItem(line, indent=1) for line in shorten(lines, line_limit))
    yield from _list_paths(number, problem, places)
    findings = (finding for group in problem.groups for finding in places.list_findings(number, group))
    lint_lines = list(dict.fromkeys(f"lint: {finding}" for finding in findings))
    yield from (ListItem(line, indent=1) for line in shorten(lint_lines, limits.sentences))
    yield ListItem(_name_oldest(problem), indent=1)


def _table_of_groups(problem: MessageProblem, limits: ReportLimits) -> DataTable:
    shown = problem.groups if limits.problems is None else problem.groups[:_GROUPS]
    rows: list[list[Cell]] = [
        [
            len(group.results),
            where(group.case.instance, group.case.database),
            named(group.case.service),
            when(group.oldest),
        ]
        for group in shown
    ]
    columns = make_columns(["messages", "from", "to service", "since"], ["messages"])
    return DataTable(columns, rows, more=len(problem.groups) - len(shown))


def _name_oldest(problem: MessageProblem) -> str:
    name = name_result(problem.combined_group.first)
    return name if problem.count == 1 else f"the oldest is {name}"


def name_result(result: MessageResult) -> str:
    """Return the name of a message: its id, or its conversation handle if the conversation is unknown."""
    message = result.row.get("message_id")
    if message is None and is_untold(result.handle):
        return "a message whose conversation handle was not exported"
    if message is None:
        return f"the message of conversation handle {named(result.handle)}"
    return f"message {named(message)}"


def _state_decision(group: MessageGroup) -> Iterator[str]:
    verdict = group.verdict
    if verdict is None:
        return
    step = f"step {_count_values(group.steps)}" if group.steps else "before any step"
    route = "" if verdict.route_name is None else f", route {named(verdict.route_name)}"
    target = verdict.destination_database or verdict.address
    to = "" if target is None else f" to {named(target)}"
    back = "" if verdict.rerouted_from is None else f", led back by route {named(verdict.rerouted_from)}"
    number = error_number(str(verdict.reason), group.case.scope)
    numbered = "" if number is None else f" (SQL Server's number: {number})"
    yield f"{step}{route}{to}{back}; {_state_brokers(group.brokers)}{numbered}"


def _state_brokers(brokers: Counter[str | None]) -> str:
    if set(brokers) == {None}:
        return "bound to no broker instance"
    ids = Counter({named(broker): number for broker, number in brokers.items() if broker is not None})
    plural = "" if len(ids) == 1 else "s"
    is_mixed = None in brokers
    unbound = f"; {brokers[None]:,} to none" if is_mixed else ""
    return f"bound to broker instance{plural} {_count_values(ids, is_mixed=is_mixed)}{unbound}"


def _count_values(values: Counter[_V], *, is_mixed: bool = False) -> str:
    """Return the first values of a group, with counts unless all messages share one value."""
    if len(values) == 1 and not is_mixed:
        return str(next(iter(values)))
    shown = ", ".join(f"{value} ({number:,})" for value, number in list(values.items())[:_FEW])
    return f"{shown} and {len(values) - _FEW} more" if len(values) > _FEW else shown


def _list_near(near: Sequence[NearMiss], most: int | None) -> Iterator[str]:
    def state(miss: NearMiss) -> str:
        place = where(miss.instance, miss.database)
        why = ", ".join(_DIFFERENCES[word] for word in miss.differences)
        if miss.object_type == ROUTE:
            return f"near: route {named(miss.name)} of {place} names {named(miss.service)}: {why}"
        return f"near: {place} holds service {named(miss.name)}: {why}"

    yield from shorten(near, most, state)


def _list_statuses(problem: MessageProblem, group: MessageGroup, most: int | None) -> Iterator[str]:
    """Yield the statuses of SQL Server: the number that agree, and the others in full."""
    agreeing = group.agreements[NumberAgreement.AGREES]
    if agreeing:
        yield f"SQL Server reports the same for {count(agreeing, 'message')}"
    statuses = [
        (status_text, number)
        for status_text, number in group.status_texts.most_common()
        if status_text.text and not _agrees(group, status_text)
    ]
    ordered = _each_number_first(statuses)
    for status_text, _ in ordered[:most]:
        meaning = _state_meaning(group, status_text)
        # A status that is the cause is already quoted there.
        quoted = state_status(group, status_text)
        if quoted != problem.why:
            yield f"{quoted}{meaning and f' (it {meaning})'}"
        elif meaning:
            yield f"the status {meaning}"
    if most is not None and len(ordered) > most:
        other_messages = sum(number for _, number in ordered[most:])
        yield f"SQL Server reports other statuses for {count(other_messages, 'message')} (--verbose lists all)"
    sent = group.unacknowledged
    silence = state_silence(group)
    if sent and silence != problem.why:
        yield silence
    blank = sum(number for status_text, number in group.status_texts.items() if status_text.text is None)
    if blank > sent:
        young = count(blank - sent, "message")
        yield f"SQL Server reports nothing for {young}: not tried yet, or sent and not acknowledged"


def _each_number_first(counted_statuses: Sequence[tuple[StatusText, int]]) -> list[tuple[StatusText, int]]:
    """Return statuses in their order, but the first status of each error number before the others."""
    numbers: Counter[int | None] = Counter()
    turns = []
    for status_text, number in counted_statuses:
        turns.append((numbers[status_text.number], status_text, number))
        numbers[status_text.number] += 1
    return [(status_text, number) for _, status_text, number in sorted(turns, key=lambda turn: turn[0])]


def _agrees(group: MessageGroup, status_text: StatusText) -> bool:
    compared = group.case.compare(status_text)
    return compared is not None and compared.agreement is NumberAgreement.AGREES


def _state_meaning(group: MessageGroup, status_text: StatusText) -> str:
    compared = group.case.compare(status_text)
    if compared is None or compared.agreement is NumberAgreement.SAYS_NOTHING:
        return ""
    verb = "CONTRADICTS" if compared.agreement is NumberAgreement.CONTRADICTS else f"is {compared.agreement} with"
    return f"{verb} this routing{'.' if compared.why is None else f': {compared.why}'}"


def _state_finding(finding: LintFinding) -> str:
    names = finding.instance_name, finding.database_name, finding.object
    place = ", ".join(named(name) for name in names if name is not None)
    return f"{finding.code} {severity_of(finding)}, {place}: {cut(finding.message)}"


def _list_paths(number: int, problem: MessageProblem, places: EvidencePlaces) -> Iterator[Block]:
    limits = places.limits
    for group in problem.groups if limits.evidence is None else problem.groups[: limits.evidence]:
        if group.path is None:
            continue
        blocks = tuple(list_path(group.path, limits.hops, limits.evidence, 1))
        first = places.find_first(blocks, number) if blocks else None
        if first is None:
            yield from blocks
        else:
            yield ListItem(f"the path is that of {first}", indent=1)
        if group.case.is_failing or group.unacknowledged:
            yield from list_needed(group.path, places.knowledge, limits.sentences, 1)


def list_path(path: JudgedPath, hops: int | None, most: int | None, indent: int = 0) -> Iterator[Block]:
    """Yield the paths there and back, failing ones first. Paths above the limit are counted."""
    if not path.forward_paths:
        yield ListItem("there are more paths than are followed", indent=indent)
        return
    if len(path.forward_paths) == 1 and len(path.forward_paths[0].hop_path.hops) == 1:
        # Only the target address is known, which is printed above.
        return
    yield from _list_direction("there", path.forward_paths, path, hops, most, indent)
    if path.has_multiple_targets:
        yield ListItem(HAZARD, indent=indent)
    if path.return_paths:
        yield from _list_direction("and back, the acknowledgement", path.return_paths, path, hops, most, indent)
    elif path.is_back_unknown:
        words = "and back: not known, because the sending service or its broker instance is not known"
        yield ListItem(words, indent=indent)
    for address, instance in path.assumed[:hops]:
        unknown = "its own addresses are not known"
        yield ListItem(
            f"judging by its name, {named(instance)} listens at {named(address)}: {unknown}", indent=indent
        )


def _list_direction(
    title: str,
    possible_paths: Sequence[PossiblePath],
    path: JudgedPath,
    hops: int | None,
    most: int | None,
    indent: int,
) -> Iterator[Block]:
    failing = set(path.failing_paths)
    ordered = sorted(possible_paths, key=lambda possible_path: possible_path not in failing)
    if len(possible_paths) == 1:
        yield ListItem(f"{title}:", indent=indent)
    else:
        or_more = " or more" if path.is_cut else ""
        number = sum(possible_path in failing for possible_path in possible_paths)
        fail = "fails" if number == 1 else "fail"
        which = f"{len(possible_paths)}{or_more} paths that the transport may take; {number or 'none'} {fail}"
        yield ListItem(f"{title}, by {which}:", indent=indent)
    for number, possible_path in enumerate(ordered[:most], 1):
        if len(possible_paths) > 1:
            yield Paragraph(f"path {number}", indent + 1)
        yield from path_blocks(possible_path.hop_path, _ENDINGS, hops, indent + 1)
    if most is not None and len(possible_paths) > most:
        yield Paragraph(f"and {len(possible_paths) - most} more paths (--verbose lists all)", indent + 1)


def list_needed(
    path: JudgedPath, knowledge: EstateKnowledge, most: int | None, indent: int = 0
) -> Iterator[Block]:
    """Yield the missing exports for a path."""
    for gap in gaps_on(path)[:most]:
        yield ListItem(f"to learn more: {gap_sentence(gap)}", indent=indent)
    views = f"{', '.join(VIEWS_OF_AN_INSTANCE[:-1])} and {VIEWS_OF_AN_INSTANCE[-1]}"
    for address in path.unread_addresses[:most]:
        yield ListItem(f"to learn more: {_state_unread(address, knowledge, views)}", indent=indent)


def _state_unread(address: str, knowledge: EstateKnowledge, views: str) -> str:
    maybe = ", ".join(map(named, knowledge.may_be_at(address)[:_FEW]))
    if maybe:
        return (
            f"the instance at {named(address)} may be {maybe}, whose address is not known; export its"
            " sys.service_broker_endpoints, or give --address"
        )
    others = [f"{named(name)} listens on port {port}" for name, port in knowledge.at_other_ports(address)]
    if others:
        return (
            f"no exported instance of this host listens at {named(address)}: {join_words(others)}; correct the"
            f" port, or export {views} of another instance there"
        )
    return f"the instance at {named(address)} was not exported; export its {views}"
