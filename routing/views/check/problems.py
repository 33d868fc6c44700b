"""Find problems in groups of messages, each with its cause and actions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from routing.advice.remedy import Remedy
from routing.advice.status_advice import CountedRemedy
from routing.advice.status_meanings import find_numbers
from routing.advice.transport_remedies import look_for_one_cause
from routing.cases.background import StatusText, status
from routing.cases.evidence import ReadLog
from routing.cases.known_estate import KnowledgeGap
from routing.cases.message_cases import MessageResult
from routing.errors import quote
from routing.groups import group_pairs
from routing.importing.catalog.cell_values import UnknownTime
from routing.render.phrases import count_places, named, when, where
from routing.render.wording import count, format_duration
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.timeline import moment_of
from routing.terms import NOT_KNOWN, Ending, Outcome, PathEnd
from routing.views.check.checking import Check
from routing.views.check.grouping import STUCK_KINDS, MessageGroup, ProblemKind


@dataclass(frozen=True)
class MessageProblem:
    """Groups of messages with one outcome, one cause and one remedy, the largest first.

    ``headline`` is the outcome with its reason and end. ``combined_group`` is all of them as one group.
    """

    kind: ProblemKind
    headline: str
    groups: Sequence[MessageGroup]
    combined_group: MessageGroup

    @property
    def why(self) -> str:
        """A sentence with the cause."""
        return state_cause(self.combined_group)

    @property
    def advice(self) -> Sequence[CountedRemedy]:
        """The remedies for all of them."""
        return self.combined_group.advice

    @property
    def count(self) -> int:
        """The number of its messages."""
        return len(self.combined_group.results)

    @property
    def first(self) -> MessageGroup:
        """The group with most messages."""
        return self.groups[0]

    def keeps(self, result: MessageResult) -> bool:
        """Return True if this problem keeps the message."""
        return any(one is result for one in self.combined_group.results)

    def state_messages(self) -> str:
        """State number, sender and service: "4 messages from 'A', database 'B' to …"."""
        cases = [group.case for group in self.groups]
        places = {(case.instance, case.database) for case in cases}
        sender = where(*next(iter(places))) if len(places) == 1 else count(len(places), "database")
        target = count_places((case.service for case in cases), "service")
        return f"{count(self.count, 'message')} from {sender} to {target}"


def state_waiting(result: MessageResult, times: Mapping[str, int]) -> str:
    """Return the waiting time of a message and its start. ``times`` are the decision times by instance."""
    since: datetime = result.row["enqueue_time"]
    if isinstance(since, UnknownTime):
        return "for an unknown time"
    waited = moment_of(times[result.row["instance_name"]]) - since
    if waited < timedelta():
        return f"since {when(since)}"
    return f"{format_duration(waited)}, since {when(since)}"


def find_problems(groups: Iterable[MessageGroup]) -> list[MessageProblem]:
    """Return the problems of groups, in the order of their first groups."""
    groups = list(groups)
    failing = _find_common_failures(groups)
    groups_by_cause = group_pairs((failing.get(id(group)) or _name_problem(group), group) for group in groups)
    return [
        _make_common_problem(cause, alike) if isinstance(cause, CommonFailure) else _make_problem(cause, alike)
        for cause, alike in groups_by_cause.items()
    ]


class _ProblemName(NamedTuple):
    """The facts that all groups of a problem share. ``alone`` is the id of a group that is a problem by itself."""

    kind: ProblemKind
    headline: str
    cause: object
    remedies: tuple[Remedy, ...]
    gaps: tuple[KnowledgeGap, ...]
    alone: int | None


def _name_problem(group: MessageGroup) -> _ProblemName:
    kind, remedies = group.kind, tuple(advice.remedy for advice in group.advice)
    alone = id(group) if kind is ProblemKind.NOTHING else None
    return _ProblemName(kind, state_outcome(group), _name_cause(group), remedies, group.case.gaps, alone)


class CommonFailure(NamedTuple):
    """A connection error that one instance has at many addresses."""

    instance: str
    error: str


MANY_ADDRESSES = 3
"""At so many addresses one error of an instance is one problem, and not a problem for each."""


def _find_common_failures(groups: Iterable[MessageGroup]) -> dict[int, CommonFailure]:
    """Return the groups, by id, whose connection fails as at many other addresses, and no statement mends it."""
    alike: dict[CommonFailure, list[MessageGroup]] = defaultdict(list)
    for group in groups:
        text = group.trouble
        if group.kind is not ProblemKind.CONNECTION_FAILS or text is None:
            continue
        if not any(advice.remedy.is_complete for advice in group.advice):
            inner = sorted(find_numbers(text.text or "") - {text.number})
            numbers = [str(text.number or "not numbered"), *map(str, inner)]
            alike[CommonFailure(group.case.instance, ", ".join(numbers))].append(group)
    return {
        id(group): failure
        for failure, failed_groups in alike.items()
        if len(_addresses_of(failed_groups)) >= MANY_ADDRESSES
        for group in failed_groups
    }


def _addresses_of(groups: Iterable[MessageGroup]) -> list[str]:
    addresses = (None if group.verdict is None else group.verdict.address for group in groups)
    return list(dict.fromkeys(address for address in addresses if address is not None))


def _make_common_problem(failure: CommonFailure, groups: Sequence[MessageGroup]) -> MessageProblem:
    addresses, results = _addresses_of(groups), _results_of(groups)
    remedy = look_for_one_cause(failure.instance, addresses, failure.error)
    advice = [CountedRemedy(remedy, len(results))]
    whole = replace(groups[0], results=results, advice=advice)
    title = f"connections to {len(addresses)} addresses fail"
    return MessageProblem(groups[0].kind, title, groups, whole)


def _make_problem(name: _ProblemName, groups: Sequence[MessageGroup]) -> MessageProblem:
    whole = groups[0]
    if len(groups) > 1:
        whole = replace(whole, results=_results_of(groups), advice=_sum_advice(groups))
    return MessageProblem(name.kind, name.headline, groups, whole)


def _results_of(groups: Iterable[MessageGroup]) -> list[MessageResult]:
    return sorted((result for group in groups for result in group.results), key=lambda result: result.age_order)


def _name_cause(group: MessageGroup) -> object:
    """Return the cause that groups share: the sentence of the rules, or SQL Server's status."""
    if group.kind in (ProblemKind.STUCK, ProblemKind.DROPPED):
        return state_cause(group)
    return None if group.trouble is None else (group.trouble.number, group.trouble.text)


def _sum_advice(groups: Sequence[MessageGroup]) -> list[CountedRemedy]:
    counts = [sum(group.advice[at].count for group in groups) for at in range(len(groups[0].advice))]
    return [replace(advice, count=number) for advice, number in zip(groups[0].advice, counts, strict=True)]


def state_outcome(group: MessageGroup) -> str:
    """Return the outcome of messages with its reason, and their end if they have left their instance."""
    verdict = group.verdict
    if verdict is None:
        return f"{NOT_KNOWN}{_HINDRANCES.get(group.kind, '')}"
    return f"{verdict.outcome}, {verdict.reason}{_state_end(group.path) or _state_hindrance(group)}"


_HINDRANCES = {
    ProblemKind.CONNECTION_FAILS: ", but a connection fails",
    ProblemKind.REPORTED: ", but SQL Server reports trouble",
    ProblemKind.PASSING: ", and SQL Server tries again",
    ProblemKind.NOT_ACKNOWLEDGED: ", but not acknowledged",
}


def _state_hindrance(group: MessageGroup) -> str:
    """State the obstacle for messages that are on their way by the rules, or return an empty text."""
    if group.kind is ProblemKind.CONNECTION_FAILS and group.verdict is not None and group.verdict.addresses:
        return f", but the connection to {' or '.join(map(named, group.verdict.addresses))} fails"
    return _HINDRANCES.get(group.kind, "")


def _state_end(path: JudgedPath | None) -> str:
    failure = None if path is None else path.first_failure
    if path is None or failure is None:
        return ""
    failed_path, alike = failure.hop_path, path.return_paths if failure.is_return else path.forward_paths
    failing = sum(possible_path in path.failing_paths for possible_path in alike)
    by = "" if failing == len(alike) else f"by {failing:,} of {len(alike):,} paths "
    end = "no acknowledgement comes back from" if failure.is_return else f"{path.end} at"
    return f", but {by}{end} {named(failed_path.instance)} ({_name_reason(failure)})"


def _name_reason(failure: PossiblePath) -> str:
    hop_path = failure.hop_path
    if hop_path.ending is Ending.LOOP:
        return f"it comes back to {named(hop_path.instance)}"
    if hop_path.ending is Ending.DELIVERED:
        return f"it is delivered to {named(hop_path.database)} of {named(hop_path.instance)}"
    return str(hop_path.reason)


def state_cause(group: MessageGroup) -> str:
    """State the cause of waiting in one sentence, or return an empty text for messages on their way."""
    if group.trouble is not None and group.advice and not group.advice[0].is_of_routes:
        # A hop that fails further on comes later.
        return state_status(group, group.trouble)
    if group.kind in (ProblemKind.STUCK, ProblemKind.DROPPED):
        by_rules = (advice.remedy.cause for advice in group.advice if advice.is_of_routes)
        return next(by_rules, "")
    if group.trouble is not None:
        return state_status(group, group.trouble)
    if group.kind is ProblemKind.NOT_KNOWN:
        return "The deciding exports are missing."
    if group.kind is ProblemKind.NOT_ACKNOWLEDGED:
        return state_silence(group)
    if group.kind is ProblemKind.CONNECTION_FAILS:
        instance = named(group.case.instance)
        return f"{instance} has no Service Broker endpoint, and they are for another instance."
    return ""


def state_status(group: MessageGroup, status_text: StatusText) -> str:
    """State SQL Server's status of some messages of a group."""
    return f"SQL Server reports for {count(group.status_texts[status_text], 'message')}: {status(status_text)}"


def state_silence(group: MessageGroup) -> str:
    """State that SQL Server reports nothing of messages which were sent long ago."""
    since = "enqueued more than ten minutes before the export"
    is_here = group.verdict is not None and group.verdict.outcome is Outcome.DELIVERED
    is_kept = group.verdict is not None and not group.case.is_on_its_way
    state = "no queue has taken them" if is_here else "not sent" if is_kept else "sent and not acknowledged"
    return f"SQL Server reports nothing for {count(group.unacknowledged, 'message')}, {since}: {state}"


def count_kinds(problems: Iterable[MessageProblem]) -> Counter[ProblemKind]:
    """Count the messages of each kind of problem."""
    kinds: Counter[ProblemKind] = Counter()
    for problem in problems:
        kinds[problem.kind] += problem.count
    return kinds


_NO_QUEUE = "It is not known whether messages wait, since no transmission queue was exported."


def state_answer(done: Check, problems: Sequence[MessageProblem]) -> str:
    """State in one line how many of all messages are stuck, and what else is wrong.

    ``problems`` include messages on their way. The worst trouble beside the messages is named.
    """
    total, troubles = done.messages, done.troubles
    line = _NO_QUEUE if total is None else _state_refused(problems, total, done.evidence.log)
    if not troubles:
        return line
    more_troubles = f", and {count(len(troubles) - 1, 'more trouble')}" if troubles[1:] else ""
    where_found = "the other exports show" if total is None else "beside them"
    return f"{line[:-1]}; {where_found}: {troubles[0].summary}{more_troubles}."


def _state_refused(problems: Sequence[MessageProblem], total: int, log: ReadLog) -> str:
    files = [f"the queue in {quote(file)}" for file in log.unread_queues]
    if len(files) > 1:
        files = [f"{files[0]} and {count(len(files) - 1, 'more queue')}"]
    rows = log.refused_messages
    unread = " and ".join([*([f"{count(rows, 'row')} of the transmission queues"] if rows else []), *files])
    if not unread:
        return _state_messages(problems, total)
    one = {(1, 0): "its message", (0, 1): "its messages"}
    owner = one.get((rows, len(log.unread_queues)), "their messages")
    answer = f"{unread[:1].upper()}{unread[1:]} cannot be read: the outcome of {owner} is not known."
    return answer if total == 0 else f"{answer} {_state_messages(problems, total)}"


def _state_messages(problems: Sequence[MessageProblem], total: int) -> str:
    if total == 0:
        return "No message waits in the transmission queues."
    kinds = count_kinds(problems)
    unknown = _count_unknown_ends(problems)
    end = "ends" if unknown == 1 else "end"
    if kinds[ProblemKind.NOTHING] == total:
        all_messages = f"All {total:,} messages are on their way"
        if total == 1:
            all_messages = "The only message is on its way"
        pronoun = f"{unknown:,} of them"
        if unknown == total:
            pronoun, end = ("it", "ends") if total == 1 else ("they", "end")
        where_to = f"; it is not known where {pronoun} {end}" if unknown else ""
        return f"{all_messages}; nothing is stuck{where_to}."
    parts = list(_state_parts(problems, kinds, total))
    if unknown:
        parts.append(f"it is not known where {count(unknown, 'message')} on the way {end}")
    is_decided = all(problem.first.verdict is not None for problem in problems)
    if is_decided and not (kinds[ProblemKind.STUCK] or kinds[ProblemKind.DROPPED]):
        parts.append("routing keeps no message back")
    line = "; ".join(parts)
    return f"{line[:1].upper()}{line[1:]}."


def _count_unknown_ends(problems: Iterable[MessageProblem]) -> int:
    groups = (problem.combined_group for problem in problems if problem.kind is ProblemKind.NOTHING)
    return sum(result.case.end == NOT_KNOWN for group in groups for result in group.results)


def _state_parts(
    problems: Sequence[MessageProblem], kinds: Mapping[ProblemKind, int], total: int
) -> Iterator[str]:
    is_first = True

    def share(number: int, noun: str = "message") -> str:
        nonlocal is_first
        of = f"{number:,} of {count(total, noun)}" if is_first and total > 1 else count(number, noun)
        is_first = False
        return of

    stuck = sum(kinds[kind] for kind in STUCK_KINDS)
    if stuck:
        reasons = sum(problem.kind in STUCK_KINDS for problem in problems)
        verb = "is" if stuck == 1 else "are"
        yield f"{share(stuck)} {verb} stuck for {count(reasons, 'reason')}{_state_kinds(problems, kinds, stuck)}"
    if kinds[ProblemKind.REPORTED]:
        groups = _groups_of(problems, ProblemKind.REPORTED)
        reported = sum(result.case.status_text.text is not None for group in groups for result in group.results)
        yield f"SQL Server reports trouble with {share(reported)}"
    if kinds[ProblemKind.NOT_KNOWN]:
        yield f"the outcome of {share(kinds[ProblemKind.NOT_KNOWN])} is not known"
    silent = sum(group.unacknowledged for group in _groups_of(problems, ProblemKind.NOT_ACKNOWLEDGED))
    if silent:
        was, is_now = ("was", "is") if silent == 1 else ("were", "are")
        yield f"{share(silent)} {was} sent and {is_now} not acknowledged"
    if kinds[ProblemKind.PASSING]:
        number = kinds[ProblemKind.PASSING]
        yield f"{share(number)} {'waits' if number == 1 else 'wait'} for the next attempt of SQL Server"


def _state_kinds(problems: Sequence[MessageProblem], kinds: Mapping[ProblemKind, int], stuck: int) -> str:
    dropped, failing = kinds[ProblemKind.DROPPED], kinds[ProblemKind.CONNECTION_FAILS]
    parts = []
    if dropped:
        number = "all" if dropped == stuck > 1 else f"{dropped:,}"
        parts.append("it is dropped" if stuck == 1 else f"{number} {'is' if dropped == 1 else 'are'} dropped")
    if failing:
        connections = _count_connections(problems)
        failure = "a connection fails" if connections == 1 else f"{connections:,} connections fail"
        wait = "waits" if failing == 1 else "wait"
        parts.append(failure if failing == stuck else f"{failing:,} {wait} because {failure}")
    return f": {', '.join(parts)}" if parts else ""


def _count_connections(problems: Sequence[MessageProblem]) -> int:
    return len(
        {
            (group.case.instance, None if group.verdict is None else group.verdict.address)
            for group in _groups_of(problems, ProblemKind.CONNECTION_FAILS)
        }
    )


def _groups_of(problems: Iterable[MessageProblem], kind: ProblemKind) -> list[MessageGroup]:
    return [group for problem in problems if problem.kind is kind for group in problem.groups]


def state_counts(done: Check) -> str:
    """State the number of waiting messages and the decision time, with counts of outcomes and ends."""
    if done.messages is None:
        return "Export sys.transmission_queue too (sbroute import queries)"
    outcomes = done.outcomes
    counts = [f"{outcomes[word]:,} {word}" for word in (*map(str, Outcome), NOT_KNOWN) if outcomes[word]]
    instances = {result.row["instance_name"] for result in done.results}
    decided_at = sorted(done.estate.times[name] for name in instances)
    times = list(dict.fromkeys(when(moment_of(at)) for at in decided_at))
    as_of = f" as of {times[0]}" + (f" to {times[-1]}" if len(times) > 1 else "") if times else ""
    counts_text = f": {', '.join(counts)}" if counts else ""
    return (
        f"{count(len(done.results), 'message')} in the transmission queues{as_of}{counts_text}{_state_ends(done)}"
    )


def _state_ends(done: Check) -> str:
    ends = Counter(
        result.case.path.end
        for result in done.results
        if result.case.path is not None and result.case.path.failing_paths
    )
    if not ends:
        return ""
    end_counts = ", ".join(f"{ends[end]:,} {end}" for end in PathEnd if ends[end])
    return f"; of those that are sent: {end_counts}"
