"""Decide each message of the queues by the rules, or name the missing knowledge."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from routing.cases.background import StatusText
from routing.cases.evidence import FileEvidence
from routing.cases.known_estate import OF_ROUTES, EstateKnowledge, KnowledgeGap, MissingKnowledge
from routing.groups import group_pairs
from routing.importing.catalog.conversation_rows import read_status
from routing.plan.checked_inputs import instances_of
from routing.plan.verdicts import KnownDialogs, MessageJudge, may_ask
from routing.rules import text
from routing.rules.estate import SharedTuple, SqlInstance
from routing.rules.judging import JudgedPath
from routing.rules.network import EstateNetwork
from routing.rules.observed import NumberAgreement, ReasonComparison
from routing.rules.path_changes import ending_of
from routing.rules.resolving import MESSAGE_COLUMNS, NO_DIALOG, DialogFacts, RoutedMessage, Verdict
from routing.rules.timeline import micros_of
from routing.terms import MSDB, NOT_KNOWN, ON_ITS_WAY, PathEnd, ReadRow, SortKey, TableRow

# The verdicts that a message may have whose dialog, or whose estate, is not wholly known.
#
# A dialog without a conversation endpoint is open, or bound to a broker instance: the planner decides for each
# that is known of the service. What all of these verdicts have in common holds without knowing which one is
# right.


_ANY_MESSAGE = ""
_MESSAGE_VALUES = itemgetter(*MESSAGE_COLUMNS)
_ADDRESS = itemgetter("instance_name", "database_name", "to_service_name", "from_service_name")
_STATUS = itemgetter("exported_at", "transmission_status", "error_number")
_OTHERS = itemgetter("to_broker_instance", "hops_remaining", "is_initiator")


def message_of(row: ReadRow, as_of: int | None) -> RoutedMessage:
    """Read a valid row as the rules do (section 0). ``as_of`` is the time of all messages, if any."""
    return RoutedMessage.of_row(*_MESSAGE_VALUES(row), as_of=as_of)


class PossibleVerdicts:
    """The possible verdicts on messages, with one time (microseconds) for each instance."""

    def __init__(self, instances: Mapping[str, SqlInstance], times: Mapping[str, int]) -> None:
        self._instances, self._times = instances, times
        self._judges: dict[str, MessageJudge] = {}
        self._known: dict[RoutedMessage, tuple[Verdict, ...]] = {}

    def of_row(self, row: TableRow) -> tuple[Verdict, ...]:
        """Return the verdicts on a row of a queue with an unknown dialog."""
        broker = text.broker_id(row["to_broker_instance"])
        instance, t = row["instance_name"], self._times[row["instance_name"]]
        place = instance, row["database_name"], row["to_service_name"], broker
        message = RoutedMessage(_ANY_MESSAGE, None, True, t, *place)
        if message not in self._known:
            brokers = [broker] if broker is not None else [None, *sorted(self._brokers_of(message))]
            possible_verdicts = (
                case for broker in brokers for case in self.of_message(message, DialogFacts(far_broker=broker))
            )
            self._known[message] = tuple(possible_verdicts)
        return self._known[message]

    def of_message(self, message: RoutedMessage, dialog: DialogFacts) -> Iterator[Verdict]:
        """Yield the verdicts of a message with a dialog, several if the dialog's hash or a request decides."""
        judge = self._judge(message.instance)
        if dialog is not NO_DIALOG and dialog.is_expired(message.t):
            return
        yield from judge.keyed(message, dialog).verdicts_at(message.t, message.hops_remaining)

    def _judge(self, instance: str) -> MessageJudge:
        if instance not in self._judges:
            self._judges[instance] = MessageJudge(
                EstateNetwork({instance: self._instances[instance]}), is_exact=True
            )
        return self._judges[instance]

    def _brokers_of(self, message: RoutedMessage) -> set[str]:
        """Return the broker instances that are known of a service: of databases and of routes of the sender."""
        holders = (
            holder for instance in self._instances.values() for holder in instance.holders_of(message.service)
        )
        routes = self._instances[message.instance].routes.values()
        named = (route for by_service in routes for route in by_service.get(message.service, ()))
        known_brokers = [*(holder.broker for holder in holders), *(route.broker for route in named)]
        return {broker for broker in known_brokers if broker is not None}


@dataclass(frozen=True, slots=True, eq=False)
class MessageCase:
    """The result that messages with the same sender, service, decision, path and status share.

    ``verdict`` is None if ``gaps`` or an unknown dialog leave it open, and ``possible`` has the possible verdicts.
    ``path`` is the path from their instance, or None if they stay. ``status_text`` is the status of SQL Server.
    ``t`` is the decision time.
    """

    instance: str
    database: str | None
    service: str
    from_service: str | None
    t: int
    status_text: StatusText
    verdict: Verdict | None
    gaps: tuple[KnowledgeGap, ...] = ()
    path: JudgedPath | None = None
    possible: tuple[Verdict, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict, or the possible ones."""
        return self.possible if self.verdict is None else (self.verdict,)

    @property
    def outcome(self) -> str:
        """The outcome, or NOT_KNOWN."""
        return NOT_KNOWN if self.verdict is None else str(self.verdict.outcome)

    @property
    def is_on_its_way(self) -> bool:
        """Whether routing neither keeps nor drops the messages at their own instance."""
        return self.verdict is not None and self.verdict.outcome in ON_ITS_WAY

    @property
    def is_failing(self) -> bool:
        """Whether the messages leave their instance and do not arrive or are not acknowledged."""
        return self.path is not None and bool(self.path.failing_paths)

    @property
    def end(self) -> str:
        """The end of the messages: the outcome, or a word of `PathEnd` for messages that leave their instance."""
        return self.outcome if self.path is None else str(self.path.end)

    @property
    def end_instance(self) -> str | None:
        """The instance where the messages end, or None if it is unknown."""
        if self.path is None:
            return None if self.verdict is None else self.instance
        return None if self.path.end is PathEnd.NOT_KNOWN else ending_of(self.path).ending_instance_name

    @property
    def ends(self) -> frozenset[str]:
        """All possible ends of the messages, several if the transport may take branches that fail differently."""
        return frozenset([self.outcome]) if self.path is None else frozenset(map(str, self.path.ends))

    @property
    def scope(self) -> str:
        """The database with the last searched routes."""
        last = None if self.verdict is None else self.verdict.last
        return str(self.database if last is None else last.scope)

    @property
    def compared(self) -> ReasonComparison | None:
        """The comparison of SQL Server's status with the verdict, or None without a verdict."""
        return self.compare(self.status_text)

    def compare(self, status_text: StatusText) -> ReasonComparison | None:
        """Compare a status of SQL Server with the verdict. Returns None without a verdict."""
        if self.verdict is None:
            return None
        return status_text.compared(self.verdict.reason, in_msdb=self.scope == MSDB)

    @property
    def is_contradicted(self) -> bool:
        """Whether SQL Server's status shows that it routed the messages differently."""
        return self.compared is not None and self.compared.agreement is NumberAgreement.CONTRADICTS


class SharedCases:
    """The cases of an estate, each once. ``times`` are the decision times by instance."""

    def __init__(self, times: Mapping[str, int]) -> None:
        self._times, self._read_status = times, cache(_read_status)
        self._cases: dict[Hashable, MessageCase] = {}

    def find(
        self,
        queued: TableRow,
        verdict: Verdict | None,
        gaps: tuple[KnowledgeGap, ...] = (),
        possible: tuple[Verdict, ...] = (),
    ) -> MessageCase:
        """Return the case of a row of a queue with a verdict, or with the verdicts that are possible."""
        instance, database, service, sender = _ADDRESS(queued)
        status_text = self._read_status(*_STATUS(queued))
        # Verdicts and gaps are kept by their case, so that no other object gets their ids.
        address, t = (instance, database, service, sender), self._times[instance]
        key = *address, status_text, id(verdict), gaps, tuple(map(id, possible))
        case = self._cases.get(key)
        if case is None:
            case = self._cases[key] = MessageCase(*address, t, status_text, verdict, gaps, possible=possible)
        return case


def _read_status(exported_at: datetime, written: str | None, known_number: int | None) -> StatusText:
    status, number = read_status(written, known_number)
    return StatusText(micros_of(exported_at), number, status)


class ChangedCases:
    """Cases with one part replaced, each once."""

    def __init__(self) -> None:
        self._cases: dict[tuple[int, int], tuple[MessageCase, object, MessageCase]] = {}

    def change(self, result: MessageResult, part: object, **changes: Any) -> MessageResult:
        """Return a result with a changed case, which results with the same case and ``part`` share."""
        key = id(result.case), id(part)
        if key not in self._cases:
            self._cases[key] = result.case, part, replace(result.case, **changes)
        return result._replace(case=self._cases[key][2])


class MessageResult(NamedTuple):
    """A message with its case.

    ``row`` comes from ``messages``, or from the queue if no conversation endpoint was exported. ``handle`` is that
    of its conversation.
    """

    row: ReadRow
    handle: str
    case: MessageCase

    @property
    def age_order(self) -> SortKey:
        """The sort key that puts older messages first."""
        return self.row["enqueue_time"], self.row["message_sequence_number"]

    @property
    def is_unacknowledged(self) -> bool:
        """True if SQL Server reports no status long after the message was enqueued, because it was sent."""
        return self.case.status_text.is_silence(micros_of(self.row["enqueue_time"]))


@dataclass(frozen=True)
class CheckedEstate:
    """The estate for the rules, and the time of decisions for each instance."""

    evidence: FileEvidence
    instances: Mapping[str, SqlInstance]
    times: Mapping[str, int]

    @classmethod
    def of(cls, evidence: FileEvidence, times: Mapping[str, int]) -> CheckedEstate:
        """Return the estate of exported views."""
        return cls(evidence, instances_of(evidence.columns), times)

    @cached_property
    def knowledge(self) -> EstateKnowledge:
        """The known and missing facts of the estate."""
        return EstateKnowledge(self.evidence, self.instances)


SAID_EVERY = 1_000
"""The number of judged messages between two reports of progress."""


def decide_all(
    estate: CheckedEstate, on_progress: Callable[[str], None] = lambda text: None
) -> list[MessageResult]:
    """Return the results of all messages of the queues: every row that was read, and not rejected, is one.

    ``on_progress`` is called with how many messages are judged.
    """
    evidence, knowledge = estate.evidence, estate.knowledge
    dialogs = KnownDialogs.of_columns([evidence.columns["dialogs"]])
    pairs = zip(evidence.rows["messages"], evidence.queue, strict=True)
    by_instance = group_pairs((pair[0]["instance_name"], pair) for pair in pairs)
    results, count = list[MessageResult](), len(evidence.rows["messages"])
    possible, cases = PossibleVerdicts(estate.instances, estate.times), SharedCases(estate.times)
    for name, of_instance in by_instance.items():
        messages = _InstanceMessages(estate, name, dialogs, possible, cases)
        of_instance.sort(key=lambda pair: pair[0]["message_id"])
        messages.find_openers(row for row, _ in of_instance)
        for row, queued in of_instance:
            if len(results) % SAID_EVERY == 0:
                on_progress(f"judged {len(results):,} of {count:,} messages")
            results.append(messages.judge(row, queued))
    results += [_without_endpoint(row, knowledge, possible, cases) for row in evidence.without_endpoint]
    return _remove_uncertain_requests(results)


_MAY_COME = OF_ROUTES.union(
    (MissingKnowledge.ENDPOINTS_OF_DIALOGS, MissingKnowledge.ENDPOINT_OF_DIALOG),
    (MissingKnowledge.SERVICES, MissingKnowledge.ALL_SERVICES, MissingKnowledge.UNREADABLE_SERVICE),
)


def _remove_uncertain_requests(results: Sequence[MessageResult]) -> list[MessageResult]:
    """Remove verdicts that ask msdb for a route after another message may have asked for it.

    Only msdb gets requests from several databases, so gaps in another database may hide the first one.
    """
    asking = {_requested_route(result) for result in results if _asks_msdb(result)}
    if not asking:
        return list(results)
    routed = ((_requested_route(result), result) for result in results)
    known_gaps = {(route, result.case.gaps) for route, result in routed if route in asking}
    gaps = group_pairs((route, gap) for route, of in known_gaps for gap in of if gap.missing in _MAY_COME)
    ordered = {route: SharedTuple(sorted(set(of), key=lambda gap: gap.place)) for route, of in gaps.items()}
    changed, certain = ChangedCases(), list[MessageResult]()
    for result in results:
        shared = ordered.get(_requested_route(result)) if _asks_msdb(result) else None
        certain.append(result if shared is None else changed.change(result, shared, verdict=None, gaps=shared))
    return certain


def _requested_route(result: MessageResult) -> tuple[str, str]:
    return result.row["instance_name"], result.row["to_service_name"]


def _asks_msdb(result: MessageResult) -> bool:
    """Return True if a message has come back and met step 4 there."""
    verdict = result.case.verdict
    if verdict is None or verdict.decision is None or not verdict.decision.asks_again:
        return False
    return verdict.requested_in in (None, MSDB)


class _InstanceMessages:
    def __init__(
        self,
        estate: CheckedEstate,
        name: str,
        dialogs: KnownDialogs,
        possible: PossibleVerdicts,
        cases: SharedCases,
    ) -> None:
        self._possible, self._cases = possible, cases
        self.name, self.t, self.knowledge = name, estate.times[name], estate.knowledge
        self._instance, self._dialogs = estate.instances[name], dialogs
        self._judge = MessageJudge(EstateNetwork({name: self._instance}), is_exact=True)
        # By the verdict's id. The verdicts are kept, for the id of one that is gone may be given again.
        self._gaps: dict[int, tuple[Verdict, tuple[KnowledgeGap, ...]]] = {}
        # By everything that decides a message except its ids. The facts of dialogs are kept, as verdicts are.
        self._shared: dict[Hashable, MessageCase] = {}

    def find_openers(self, rows: Iterable[TableRow]) -> None:
        """Find out which of all messages open a request for a route."""
        if not any(may_ask(self._instance, database) for database in (None, *self._instance.databases)):
            return
        messages = (message_of(row, self.t) for row in rows)
        self._judge.find_openers((one, self._dialogs.of(one)) for one in messages if self._is_listed(one))

    def judge(self, row: TableRow, queued: TableRow) -> MessageResult:
        folded_id = text.fold(row["conversation_id"])
        dialog = self._dialogs.find(self.name, row["database_name"], folded_id, row["is_initiator"])
        alike = *_ADDRESS(row), *_OTHERS(row), *_STATUS(queued), id(dialog)
        case = self._shared.get(alike)
        if case is None:
            case, is_shared = self._find_case(queued, message_of(row, self.t), dialog)
            if is_shared:
                self._shared[alike] = case
        return MessageResult(row, queued["conversation_handle"], case)

    def _find_case(
        self, queued: TableRow, message: RoutedMessage, dialog: DialogFacts
    ) -> tuple[MessageCase, bool]:
        """Return the case of a message, and whether all messages with these facts of a dialog share it."""
        if not self._is_listed(message):
            possible = tuple(self._possible.of_message(message, dialog))
            return self._cases.find(queued, None, (self._unlisted(queued["database_name"]),), possible), False
        keyed = self._judge.keyed(message, dialog)
        verdict = keyed.verdict(message, dialog, self._judge.requests[self.name])
        gaps = self._gaps_of(verdict)
        case = self._cases.find(queued, None, gaps, (verdict,)) if gaps else self._cases.find(queued, verdict)
        return case, keyed.is_shared(message.t, dialog)

    def _is_listed(self, message: RoutedMessage) -> bool:
        """Return True if the database is known. Rows with other faults were rejected earlier."""
        return message.database is None or message.database in self._instance.databases

    def _gaps_of(self, verdict: Verdict) -> tuple[KnowledgeGap, ...]:
        """Return the gaps behind a verdict. They are found once for the messages that share it."""
        cached_gaps = self._gaps.get(id(verdict))
        if cached_gaps is None:
            cached_gaps = self._gaps[id(verdict)] = verdict, self.knowledge.of_verdict(self.name, verdict)
        return cached_gaps[1]

    def _unlisted(self, database: str) -> KnowledgeGap:
        was_read = self.knowledge.evidence.views.was_exported("databases", self.name)
        if was_read:
            return KnowledgeGap(self.name, database, MissingKnowledge.NOT_LISTED)
        return KnowledgeGap(self.name, None, MissingKnowledge.DATABASES)


def _without_endpoint(
    row: TableRow, knowledge: EstateKnowledge, possible: PossibleVerdicts, cases: SharedCases
) -> MessageResult:
    """Return the result of a message without a known dialog, and so without a known id or broker instance."""
    place = row["instance_name"], row["database_name"]
    was_read = knowledge.evidence.views.was_exported("conversation_endpoints", *place)
    missing_view = MissingKnowledge.ENDPOINT_OF_DIALOG if was_read else MissingKnowledge.ENDPOINTS_OF_DIALOGS
    case = cases.find(row, None, (KnowledgeGap(*place, missing_view),), possible.of_row(row))
    return MessageResult(row, row["conversation_handle"], case)
