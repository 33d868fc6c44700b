"""Define the facts of a report as plain values. The page and the pictures use only these.

Times are microseconds since 1970, UTC. Unknown or unrequested facts are None, never an empty list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from routing.advice.remedy import EstateTrouble
from routing.document import Block
from routing.engines.traffic_tables import TimePoint, name_end
from routing.lint.catalogue import Severity
from routing.render.wording import count
from routing.tables.arrow_rows import SchemaRows
from routing.terms import LEAVES, NOT_KNOWN, Outcome

CONNECTION_FAILS, NO_RETURN_PATH, LOOP = "CONNECTION_FAILS", "NO_RETURN_PATH", "LOOP"
_DELIVERED, _DELAYED, _DROPPED = map(str, (Outcome.DELIVERED, Outcome.DELAYED, Outcome.DROPPED))
STUCK = (_DELAYED, NO_RETURN_PATH, CONNECTION_FAILS, _DROPPED, LOOP)
"""The endings of messages that do not arrive or whose acknowledgement does not return."""
ENDINGS = (_DELIVERED, *STUCK, NOT_KNOWN)
"""Every ending, in the order of the page."""


@dataclass(frozen=True)
class MessageFlow:
    """Count the messages of one sender to one service with one outcome, reason and route.

    Args:
        instance: the instance that decided.
        database: the database that sent them, or None if they came over the network.
        service: the target service.
        outcome: a word of `Outcome`, or NOT_KNOWN.
        reason: a word of `Reason`, or None with NOT_KNOWN.
        route: the name of the route, if any.
        address: the address that they were sent to, if any.
        destination_database: the database that they were delivered to, if any.
        messages: the number of messages.
        oldest: the enqueue time of the oldest, in microseconds since 1970 (UTC).
        ending: DELIVERED, DELAYED, DROPPED, LOOP, NO_RETURN_PATH, CONNECTION_FAILS or NOT_KNOWN. None means the
            outcome, or NOT_KNOWN if the messages leave the instance.
        ending_reason: the word of `Reason` for the ending, or None if it equals ``reason`` or is unknown.
        ending_instance: the instance where they end, or None if it is unknown.

    Example:
        >>> found = routing.report(routing.load_config("job.yaml"))
        >>> [(flow.service, flow.outcome, flow.messages) for flow in found.flows if flow.route == "Far"]
        [('//far', 'SENT', 1)]
    """

    instance: str
    database: str | None
    service: str
    outcome: str
    reason: str | None
    route: str | None
    address: str | None
    destination_database: str | None
    messages: int
    oldest: int
    ending: str | None = None
    ending_reason: str | None = None
    ending_instance: str | None = None

    @property
    def end(self) -> str:
        """The word of `ENDINGS` for their end."""
        return name_end(self.outcome, self.ending)

    @property
    def why(self) -> str | None:
        """The reason for their end, or None if it is unknown."""
        return self.reason if self.outcome not in LEAVES else self.ending_reason


@dataclass(frozen=True)
class MessageSeries:
    """Messages over time, in steps of equal length. Empty steps are left out.

    ``last`` is the time of the last decision, or None without messages.
    """

    seconds: int
    points: Sequence[TimePoint]
    last: int | None = None


@dataclass(frozen=True)
class BalancedInstance:
    """The number of dialogs that were balanced to a broker instance, and its even share.

    ``owner`` is the database with that id (``instance.database``, or a list of several), or None if it is unknown.
    ``low`` and ``high`` bound a fair share. Both are None without a band.
    """

    broker_instance: str
    owner: str | None
    dialogs: int
    expected: float
    low: int | None
    high: int | None

    @property
    def is_fair(self) -> bool | None:
        """True if the share lies in the band, or None without a band."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.dialogs <= self.high


@dataclass(frozen=True)
class NeverPicked:
    """A broker instance to which a route never balances a dialog, and the reason.

    ``why`` is SHADOWED, DOUBLED, EXPIRED, or another word of `choices`. Only for COMES_BACK there may be dialogs
    that cannot be recognized.
    """

    broker_instance: str
    route: str
    why: str
    words: str


@dataclass(frozen=True)
class DialogBalance:
    """The dialogs of a scope to a service by broker instance, and how even their shares are.

    ``since`` and ``until`` bound the time in which the set of ids was the same, None where it always was.
    ``why_no_band`` says why the shares have no band, None where they have one.
    """

    instance: str
    database: str
    service: str
    since: int | None
    until: int | None
    picks: Sequence[BalancedInstance]
    never: Sequence[NeverPicked]
    why_no_band: str | None

    @property
    def is_fair(self) -> bool | None:
        """True if every share lies in its band, or None without a band."""
        if self.why_no_band is not None:
            return None
        return all(pick.is_fair for pick in self.picks)


@dataclass(frozen=True)
class ReportProblem:
    """Messages that need attention, with their age, cause and actions as `check` prints them.

    ``ending`` is the ending of most of them, or empty. ``evidence`` is the basis of the answer.
    """

    title: str
    ending: str
    blocks: Sequence[Block]
    evidence: Sequence[Block] = ()


@dataclass(frozen=True)
class EstateInstance:
    """An instance of the estate: its own addresses and its databases."""

    instance: str
    addresses: Sequence[str]
    databases: Sequence[str]


@dataclass(frozen=True)
class WordCount:
    """The numbers of messages with an outcome, or a reason, in the run before and now."""

    word: str
    before: int
    now: int


def count_words(words: Iterable[str], before: Mapping[Any, int], now: Mapping[Any, int]) -> list[WordCount]:
    """Return each of these words that messages were counted of, before or now, in the words' order."""
    pairs = ((str(word), before.get(word) or 0, now.get(word) or 0) for word in words)
    return [WordCount(*pair) for pair in pairs if any(pair[1:])]


def count_severity(severity: str, number: int) -> str:
    """Write a number of findings: "2 errors, 1 warning, 3 info"."""
    return f"{number:,} {severity}" if severity == Severity.INFO else count(number, severity)


@dataclass(frozen=True)
class RouteChange:
    """A route that was ADDED, REMOVED or CHANGED between two runs. The change is described in words."""

    instance: str
    database: str
    route: str
    change: str
    words: str


@dataclass(frozen=True)
class ReportChanges:
    """The changes since the previous run, with its id, end and counts. Routes are None if they cannot be read.

    If scripts were tried, the earlier state is the one without them, so ``run_id`` and ``finished_at`` are None.

    Runs record ``outcomes`` and ``reasons`` separately, so both appear here. An incremental run records only its
    own decisions: new messages and retried ones. Two such runs count different messages.
    """

    run_id: str | None
    finished_at: int | None
    is_incremental: bool
    outcomes: Sequence[WordCount]
    reasons: Sequence[WordCount]
    routes: Sequence[RouteChange] | None


@dataclass(frozen=True)
class ObservedCause:
    """The most likely fault of an instance found by `reconcile`, and the number of explained episodes."""

    instance: str
    cause: str
    words: str
    episodes: int


@dataclass(frozen=True)
class ContradictedEpisodes:
    """Episodes in which SQL Server contradicted the rules. ``database`` is None for arrivals over the network."""

    instance: str
    database: str | None
    service: str
    seen_outcome: str | None
    seen_number: int | None
    outcome: str
    reason: str
    why: str | None
    episodes: int


@dataclass(frozen=True)
class ObservedCounts:
    """The counts of a reconciliation: episodes by instance and class, causes and contradictions.

    Of both lists those of most episodes come first.
    """

    classes: Mapping[tuple[str, str], int]
    causes: Sequence[ObservedCause]
    contradictions: Sequence[ContradictedEpisodes]


@dataclass(frozen=True)
class Report:
    """Hold the result of `report`, which `write_page` shows.

    Args:
        headline: the extent of the report in one line.
        not_known: the facts that could not be determined, a sentence each.
        made_at: the time for which ages are computed, in microseconds since 1970 (UTC).
        flows: the messages by sender, service and outcome.
        places: the instances with their databases and addresses.
        series: the messages over time, or None if no time is known.
        balances: the dialogs by broker instance where step 3 picks (rule book, section 2), or None if unknown.
        findings: the findings of lint, or None if the configuration is unknown.
        coverage: the number of used routes of each instance.
        changes: the changes since the previous run, or None if there is no such run.
        observed: the counts of the last reconciliation, or None if there is none.
        answer: the first line of the page, or None for the number of stuck messages among the flows.
        problems: the reasons that keep messages, each with actions, most urgent first. None if unknown.
        troubles: what is wrong beside the messages, the worst first, or None if no table shows it.

    Example:
        >>> routing.report(routing.load_config("job.yaml")).outcomes
        {'DELAYED': 2, 'DELIVERED': 2, 'SENT': 1}
    """

    headline: str
    not_known: Sequence[str]
    made_at: int
    flows: Sequence[MessageFlow]
    places: Sequence[EstateInstance]
    series: MessageSeries | None = None
    balances: Sequence[DialogBalance] | None = None
    findings: SchemaRows | None = None
    coverage: SchemaRows | None = None
    changes: ReportChanges | None = None
    observed: ObservedCounts | None = None
    answer: str | None = None
    problems: Sequence[ReportProblem] | None = None
    troubles: Sequence[EstateTrouble] | None = None

    @cached_property
    def outcomes(self) -> Mapping[str, int]:
        """The number of messages with each outcome at their own instance, most first."""
        return _most_first((flow.outcome, flow.messages) for flow in self.flows)

    @cached_property
    def endings(self) -> Mapping[str, int]:
        """The number of messages with each ending (`ENDINGS`), most first."""
        return _most_first((flow.end, flow.messages) for flow in self.flows)


def _most_first(counted: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    counts = Counter[str]()
    for word, messages in counted:
        counts[word] += messages
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
