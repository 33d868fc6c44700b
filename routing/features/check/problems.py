"""Groups of messages → problems: what keeps messages, why, and what to do about it, each told once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from routing.features.check.grouping import GroupAdvice, MessageGroup, ProblemKind
from routing.features.check.message_results import MessageResult
from routing.features.check.pasting import named
from routing.features.check.path_ends import MessagePath, PathWay
from routing.features.check.phrases import REASON_WORDS, count_places, split_sentences, status, when, where
from routing.features.explain.background import StatusText
from routing.features.explain.path_sentences import advice as advice_for
from routing.render.wording import count, format_duration
from routing.tables.times import moment_of
from routing.terms import NOT_KNOWN, Ending, Outcome, Reason

# What remedies of these reasons say first is what to do.
_REASONS_OF_THE_DIALOG = (Reason.HOP_LIMIT, Reason.DIALOG_EXPIRED, Reason.ROUTE_REQUESTED)


@dataclass(frozen=True)
class MessageProblem:
    """Groups of messages with one outcome, one cause and one remedy, the largest first.

    ``what`` is the outcome with its reason and where it ends, ``why`` a sentence. ``advice`` is about all of them,
    and ``whole`` is all of them as one group.
    """

    kind: ProblemKind
    what: str
    why: str
    groups: Sequence[MessageGroup]
    advice: Sequence[GroupAdvice]
    whole: MessageGroup

    @property
    def count(self) -> int:
        """How many messages it keeps."""
        return len(self.whole.results)

    @property
    def first(self) -> MessageGroup:
        """The group with most messages."""
        return self.groups[0]

    def keeps(self, result: MessageResult) -> bool:
        """Return True if it keeps this very message."""
        return any(one is result for one in self.whole.results)

    @property
    def has_explained_cause(self) -> bool:
        """Return True if ``why`` is the first sentence of the first remedy by the rules."""
        return _sentence_of_cause(self.first) == self.why

    def state_messages(self) -> str:
        """State number, sender and service: "4 messages from 'A', database 'B' to …"."""
        rows = [group.first.row for group in self.groups]
        places = {(row["instance_name"], row["database_name"]) for row in rows}
        sender = where(*next(iter(places))) if len(places) == 1 else count(len(places), "database")
        target = count_places((row["to_service_name"] for row in rows), "service")
        return f"{count(self.count, 'message')} from {sender} to {target}"

    def list_actions(self, advice: GroupAdvice) -> list[str]:
        """List the actions to take, a sentence each, without the one that gives the cause."""
        sentences = split_sentences(advice.remedy.words)
        if self.has_explained_cause and advice.remedy == _advice_of_routes(self.first)[0].remedy:
            sentences = sentences[1:]
        if sentences:
            return sentences
        return ["Run this:" if advice.remedy.is_complete else "Uncomment what is right, and run it:"]


def state_waiting(result: MessageResult, times: Mapping[str, int]) -> str:
    """Return for how long a message waits, and since when; ``times`` are those of the decision, by instance."""
    since: datetime = result.row["enqueue_time"]
    waited = moment_of(times[result.row["instance_name"]]) - since
    if waited < timedelta():
        return f"since {when(since)}"
    return f"{format_duration(waited)}, since {when(since)}"


def find_problems(groups: Iterable[MessageGroup]) -> list[MessageProblem]:
    """Return the problems of groups, in the order of their first groups."""
    groups_by_cause: dict[object, list[MessageGroup]] = defaultdict(list)
    for group in groups:
        what, cause = state_outcome(group), _name_cause(group)
        remedies = tuple((advice.instance, advice.remedy) for advice in group.advice)
        alone = id(group) if group.kind is ProblemKind.NOTHING else None
        groups_by_cause[group.kind, what, cause, remedies, group.gaps, alone].append(group)
    return [_make_problem(alike) for alike in groups_by_cause.values()]


def _make_problem(groups: Sequence[MessageGroup]) -> MessageProblem:
    advice = _sum_advice(groups)
    every = [result for group in groups for result in group.results]
    every.sort(key=lambda one: (one.row["enqueue_time"], one.row["message_sequence_number"]))
    whole = groups[0] if len(groups) == 1 else replace(groups[0], results=every, advice=advice)
    return MessageProblem(groups[0].kind, state_outcome(groups[0]), state_cause(whole), groups, advice, whole)


def _name_cause(group: MessageGroup) -> object:
    """Return the cause that groups share: the sentence of the rules, or SQL Server's status."""
    if group.kind in (ProblemKind.STUCK, ProblemKind.DROPPED):
        return state_cause(group)
    return None if group.trouble is None else (group.trouble.number, group.trouble.text)


def _sum_advice(groups: Sequence[MessageGroup]) -> list[GroupAdvice]:
    """Return the advice of groups that have the same, with the messages of all of them."""
    counts = [sum(group.advice[at].count for group in groups) for at in range(len(groups[0].advice))]
    return [replace(advice, count=number) for advice, number in zip(groups[0].advice, counts, strict=True)]


def state_outcome(group: MessageGroup) -> str:
    """Return the outcome of messages with its reason, and where it ends after they have left their instance."""
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
    """State the hindrance of messages that are on their way by the rules; empty without one."""
    address = None if group.verdict is None else group.verdict.address
    if group.kind is ProblemKind.CONNECTION_FAILS and address is not None:
        return f", but the connection to {named(address)} fails"
    return _HINDRANCES.get(group.kind, "")


def _state_end(path: MessagePath | None) -> str:
    failure = None if path is None else path.first_failure
    if path is None or failure is None:
        return ""
    failed_path, alike = failure.hop_path, path.back if failure.is_return else path.there
    failing = sum(one in path.failing for one in alike)
    by = "" if failing == len(alike) else f"by {failing:,} of {len(alike):,} ways "
    end = "no acknowledgement comes back from" if failure.is_return else f"{path.end} at"
    return f", but {by}{end} {named(failed_path.instance)} ({_name_reason(failure)})"


def _name_reason(failure: PathWay) -> str:
    hop_path = failure.hop_path
    if hop_path.ending is Ending.LOOP:
        return f"it comes back to {named(hop_path.instance)}"
    if hop_path.ending is Ending.DELIVERED:
        return f"it is delivered to {named(hop_path.database)} of {named(hop_path.instance)}"
    return str(hop_path.reason)


def state_cause(group: MessageGroup) -> str:
    """State the cause of waiting in one sentence; empty for messages that are on their way."""
    if group.kind in (ProblemKind.STUCK, ProblemKind.DROPPED):
        return _sentence_of_cause(group) or _state_reason(group)
    if group.trouble is not None:
        return state_status(group, group.trouble)
    if group.kind is ProblemKind.NOT_KNOWN:
        return "What decides was not read."
    if group.kind is ProblemKind.NOT_ACKNOWLEDGED:
        return state_silence(group)
    if group.kind is ProblemKind.CONNECTION_FAILS:
        instance = named(group.first.row["instance_name"])
        return f"{instance} has no Service Broker endpoint, and they are for another instance."
    return ""


def _advice_of_routes(group: MessageGroup) -> list[GroupAdvice]:
    return [advice for advice in group.advice if advice.is_of_routes]


def _sentence_of_cause(group: MessageGroup) -> str | None:
    """Return the first sentence of the first remedy by the rules, where that says why; else None."""
    advice = _advice_of_routes(group)
    reason = _find_reason(group)
    if group.kind not in (ProblemKind.STUCK, ProblemKind.DROPPED) or not advice or reason is None:
        return None
    words = advice[0].remedy.words
    says_what_to_do = reason in _REASONS_OF_THE_DIALOG or words == advice_for(str(reason))
    return None if says_what_to_do else split_sentences(words)[0]


def _find_reason(group: MessageGroup) -> Reason | None:
    """Return the reason that keeps messages: that of the hop where they get stuck."""
    failure = None if group.path is None else group.path.first_failure
    if failure is not None:
        return failure.hop_path.reason if failure.hop_path.reason is not None else Reason.ROUTING_LOOP
    return None if group.verdict is None else group.verdict.reason


def _state_reason(group: MessageGroup) -> str:
    reason = _find_reason(group)
    words = "" if reason is None else REASON_WORDS[reason]
    return f"{words[:1].upper()}{words[1:]}."


def state_status(group: MessageGroup, status_text: StatusText) -> str:
    """State SQL Server's status of some messages of a group."""
    return f"SQL Server says of {count(group.status_texts[status_text], 'message')}: {status(status_text)}"


def state_silence(group: MessageGroup) -> str:
    """State that SQL Server reports nothing of messages which were sent long ago."""
    since = "enqueued more than ten minutes before the export"
    is_here = group.verdict is not None and group.verdict.outcome is Outcome.DELIVERED
    what = "no queue has taken them" if is_here else "sent and not acknowledged"
    return f"SQL Server says nothing of {count(group.unacknowledged, 'message')}, {since}: {what}"


def count_kinds(problems: Iterable[MessageProblem]) -> Counter[ProblemKind]:
    """Count the messages of each kind of problem."""
    kinds: Counter[ProblemKind] = Counter()
    for problem in problems:
        kinds[problem.kind] += problem.count
    return kinds
