"""Explain the destination of one message: its path through the rule book as lines, by the rules of `resolve`.

`explain` reads the required tables, and `answer` works on known facts in plain Python. A path has the facts of the
message, its searches of routing tables, and the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

from routing.advice.question_remedies import advise_on_question
from routing.advice.remedy import Remedy
from routing.arguments import checked
from routing.cases.background import NOTHING, SHOWN, Line, MessageBackground, line, number_lines, request_lines
from routing.cases.judged_questions import (
    FollowedMessage,
    JudgedQuestion,
    KnownTables,
    RemedyFacts,
    follow_question,
    judge_question,
    verdict_row,
)
from routing.cases.question_source import open_source, pose
from routing.cases.questions import Question
from routing.config import Config
from routing.plan.checked_inputs import CheckedInputs
from routing.result_schemas import EXPLAINED_STEPS
from routing.rules.estate import Database, SqlInstance
from routing.rules.locating import has_id
from routing.rules.matching import STEPS, comes_before
from routing.rules.requesting import RouteRequest
from routing.rules.resolving import Verdict, bound_broker
from routing.schemas import RESOLVED_ROUTES
from routing.tables.arrow_rows import SchemaRows
from routing.tables.table_columns import Table
from routing.terms import MSDB, MatchingStep, Outcome, Reason, TableRow
from routing.views.explain import route_lines
from routing.views.explain.route_lines import ShownSearch, searches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def holder_lines(search: ShownSearch) -> list[Line]:
    """Return up to `SHOWN` databases that hold the service, and whether each could be the destination."""
    return [
        line(
            "DATABASE",
            _holder(holder, search),
            search=search.number,
            database_name=holder.name,
            name=holder.name,
            broker_instance=holder.broker,
        )
        for holder in search.route_search.holders[:SHOWN]
    ]


def _holder(holder: Database, search: ShownSearch) -> str:
    if holder.name == search.route_search.location.destination:
        return "LOCATED"
    if not has_id(holder, search.route_search.known_broker):
        return "OTHER_BROKER_INSTANCE"
    return "NOT_FIRST" if holder.is_enabled else "DISABLED"


def id_lines(judged: JudgedQuestion, search: ShownSearch) -> list[Line]:
    """List the verdict for each broker instance that may be picked, this dialog's first, up to `SHOWN`."""
    route_search = search.route_search
    if route_search.pick is None:
        return []
    place = {"search": search.number, "step": int(MatchingStep.BALANCED)}
    picked = None if search.is_undecided else route_search.pick
    verdicts = sorted(
        judged.case.possible, key=lambda one: (one.broker_instance != picked, one.broker_instance or "")
    )
    shown = sorted(verdicts[:SHOWN], key=lambda one: (one.broker_instance != picked, one.route_name or ""))
    lines = [
        line(
            "ID",
            "POSSIBLE" if search.is_undecided else "PICKED" if verdict.broker_instance == picked else "OTHER",
            **place,
            broker_instance=verdict.broker_instance,
            name=verdict.route_name,
            address=verdict.address,
            database_name=verdict.destination_database,
            outcome=str(verdict.outcome),
            reason=str(verdict.reason),
        )
        for verdict in shown
    ]
    unlisted = len(verdicts) - SHOWN
    return [*lines, line("OTHER_IDS", "MORE", **place, count=unlisted)] if unlisted > 0 else lines


def find_awaited(judged: JudgedQuestion, search: ShownSearch) -> RouteRequest | None:
    """Return the request that the message's conversation waits for (D10), or None."""
    if not search.is_requested:
        return None
    message = judged.message
    scope = judged.requests.of(search.route_search.scope, message.service)
    return scope.find_awaited(message.t, message.message_id, message.endpoint)


def pending_request_lines(judged: JudgedQuestion, search: ShownSearch, step: int) -> list[Line]:
    """Return up to `SHOWN` other requests for the service in this scope, newest first.

    The request that the message's conversation waits for comes first.
    """
    message, awaited = judged.message, find_awaited(judged, search)
    requests = judged.requests.of(search.route_search.scope, message.service).all()
    other_requests = [request for request in requests if not request.is_of(message.t, message.message_id)]
    other_requests.sort(
        key=lambda request: (request is awaited, request.requested_at, request.message_id), reverse=True
    )
    return [
        line(
            "REQUEST",
            "OPEN" if request.ended_at is None else "ENDED",
            search=search.number,
            step=step,
            name=request.message_id,
            valid_from=request.requested_at,
            valid_to=request.ended_at,
        )
        for request in other_requests[:SHOWN]
    ]


def path(
    judged: JudgedQuestion, known_tables: KnownTables, verdict: TableRow, background: MessageBackground
) -> list[Line]:
    """Return all lines of a question in their order. ``verdict`` is its row (`verdicts.verdict_row`)."""
    shown_searches, instance = searches(judged), known_tables.network.instances[judged.message.instance]
    lines = [*_message_lines(judged), *background.before_the_path(instance.name, judged.message.t)]
    for search in shown_searches:
        came_by = shown_searches[0] if search.number > 1 else None
        lines += _scope_lines(judged, search, came_by)
        if search.looks_at_routes:
            lines += _step_lines(judged, search, instance)
        lines += [*_tier_lines(search), *_location_lines(judged, search)]
        lines += _transport_lines(judged, search, instance)
    if verdict["reason"] == Reason.ROUTE_REQUESTED:
        lines += request_lines(
            instance, shown_searches[-1].route_search.scope, judged.message.t, known_tables.other_instances
        )
    in_msdb = bool(shown_searches) and shown_searches[-1].route_search.scope == MSDB
    status_lines = background.after_the_verdict(verdict["outcome"], verdict["reason"], in_msdb=in_msdb)
    return [*lines, _outcome_line(verdict), *status_lines]


def _message_lines(judged: JudgedQuestion) -> list[Line]:
    """List the lines on the message's own columns (section 0)."""
    message, dialog, is_described = judged.message, judged.dialog, judged.question.is_described
    sent_by = "INITIATOR" if message.is_initiator else "TARGET"
    lines = [
        line(
            "MESSAGE",
            "DESCRIBED" if is_described else "STORED",
            name=message.message_id,
            service_name=message.service,
            database_name=message.database,
            reason=sent_by,
        ),
        line("TIME", _time(judged), at=message.t),
        _broker_line(judged),
    ]
    later = dialog.acknowledged_at is not None and dialog.acknowledged_at > message.t
    if message.broker is None and later and dialog.acknowledged_broker is not None:
        at, broker = dialog.acknowledged_at, dialog.acknowledged_broker
        lines.append(line("ACKNOWLEDGEMENT", "LATER", broker_instance=broker, at=at))
    if dialog.is_expired(message.t):
        lines.append(line("DIALOG", "EXPIRED", at=dialog.lifetime))
    return lines


def _time(judged: JudgedQuestion) -> str:
    if judged.question.as_of is not None:
        return "AS_OF"
    if judged.question.is_described:
        return "ASKED"
    return "ENQUEUED" if judged.question.row["observed_at"] is None else "OBSERVED"


def _broker_line(judged: JudgedQuestion) -> Line:
    message, dialog = judged.message, judged.dialog
    broker = bound_broker(message, dialog)
    if broker is None:
        return line("BROKER_INSTANCE", "OPEN")
    if message.broker is not None:
        return line("BROKER_INSTANCE", "MESSAGE", broker_instance=broker)
    if dialog.acknowledged(message.t) is not None:
        return line("BROKER_INSTANCE", "ACKNOWLEDGEMENT", broker_instance=broker, at=dialog.acknowledged_at)
    return line("BROKER_INSTANCE", "FAR_BROKER_INSTANCE", broker_instance=broker)


def _scope_lines(judged: JudgedQuestion, search: ShownSearch, came_by: ShownSearch | None) -> list[Line]:
    """Return the scope, the check for a reply (section 1) and of the scope's broker."""
    route_search, number = search.route_search, search.number
    scope = {"search": number, "database_name": route_search.scope}
    if came_by is None:
        lines = [line("SCOPE", "ARRIVED" if route_search.is_from_network else "SENT_HERE", **scope)]
    else:
        address = came_by.address(judged.message.service)
        lines = [line("SCOPE", "CAME_BACK", **scope, name=came_by.route_search.route_name, address=address)]
    if route_search.is_from_network:
        place = {"search": number, "step": int(MatchingStep.REPLY)}
        lines.append(line("REPLY", _reply(judged, search), **place, broker_instance=route_search.broker))
    if not route_search.is_reply:
        lines.append(line("BROKER", "DISABLED" if route_search.match is None else "ENABLED", **scope))
    return lines


def _reply(judged: JudgedQuestion, search: ShownSearch) -> str:
    if search.route_search.is_reply:
        return "MATCHED"
    if judged.message.is_initiator:
        return "SENT_BY_INITIATOR"
    return "OPEN" if search.route_search.broker is None else "NOT_HERE"


def _step_lines(judged: JudgedQuestion, search: ShownSearch, instance: SqlInstance) -> list[Line]:
    """Return each step with its routes, the destinations of step 3, and the earlier requests of step 4."""
    searched_routes = route_lines.searched_routes(judged.message, search, instance)
    routes = route_lines.list_routes(searched_routes, search.number)
    lines = []
    for step in (*(step.number for step in STEPS), MatchingStep.NO_MATCH):
        common = {"search": search.number, "step": int(step)}
        awaited = find_awaited(judged, search) if step is MatchingStep.ROUTE_REQUEST else None
        opening_message = None if awaited is None else awaited.message_id
        broker = search.route_search.broker
        lines.append(line("STEP", _step(step, search), **common, broker_instance=broker, name=opening_message))
        lines += routes.get(step, [])
        if step is search.route_search.step:
            lines += id_lines(judged, search)
        if step is MatchingStep.ROUTE_REQUEST and search.route_search.asks:
            lines += pending_request_lines(judged, search, int(step))
    return [*lines, *route_lines.count_far(searched_routes, search.number)]


def _step(step: MatchingStep, search: ShownSearch) -> str:
    stop = search.stop
    if step is stop:
        return "MATCHED"
    if stop is not None and comes_before(stop, step):
        return "NOT_REACHED"
    return "PENDING" if step is MatchingStep.ROUTE_REQUEST and search.route_search.asks else "NO_MATCH"


def _tier_lines(search: ShownSearch) -> list[Line]:
    """List the tiers with routes, and the used one (section 3). An implied route belongs to no tier."""
    lines = []
    for tier, routes, finding in search.tiers():
        names = [route.name for route in routes if not route.is_implied]
        if names:
            why = tier.why_not(search.route_search.situation) if finding == "NOT_USABLE" else None
            reason = None if why is None else str(why)
            tier_values = {"routes": names[:SHOWN], "count": len(names), "reason": reason}
            lines.append(line("TIER", finding, search=search.number, name=tier.letter, **tier_values))
    return lines


def _location_lines(judged: JudgedQuestion, search: ShownSearch) -> list[Line]:
    """List the destination and the searched databases (section 4)."""
    if not search.locates:
        return []
    route_search, location = search.route_search, search.route_search.location
    return [
        line(
            "LOCATION",
            "NOT_LOCATED" if location.destination is None else "LOCATED",
            search=search.number,
            database_name=location.destination,
            service_name=judged.message.service,
            broker_instance=route_search.known_broker,
            reason=None if location.reason is None else str(location.reason),
            count=len(route_search.holders),
        ),
        *holder_lines(search),
    ]


def _transport_lines(judged: JudgedQuestion, search: ShownSearch, instance: SqlInstance) -> list[Line]:
    """List the lines on an address: an own address, forwarding, the hops (section 3)."""
    route_search, number = search.route_search, search.number
    if not search.is_told or not route_search.choice.is_usable or route_search.end.outcome is Outcome.DELIVERED:
        return []
    lines = []
    if route_search.is_from_network:
        lines.append(line("FORWARDING", _forwarding(instance), search=number))
        if route_search.end.counts_hops:
            hops = judged.message.hops_remaining
            lines.append(line("HOPS", _hops(judged.case.verdicts[0], hops), search=number, count=hops))
    if route_search.end.is_own:
        finding = "LOOP" if route_search.is_from_network else "COMES_BACK"
        address = search.address(judged.message.service)
        lines.append(line("OWN_ADDRESS", finding, search=number, name=route_search.route_name, address=address))
    return lines


def _forwarding(instance: SqlInstance) -> str:
    if not instance.is_forwarding_known:
        return "NOT_KNOWN"
    return "ON" if instance.is_forwarding else "OFF"


def _hops(verdict: Verdict, hops: int | None) -> str:
    if hops is None:
        return "NO_LIMIT"
    return "NONE_LEFT" if verdict.reason is Reason.HOP_LIMIT else "LEFT"


def _outcome_line(verdict: TableRow) -> Line:
    return line(
        "OUTCOME",
        "DEPENDS_ON_DIALOG" if verdict["outcome"] is None else "DECIDED",
        outcome=verdict["outcome"],
        reason=verdict["reason"],
        name=verdict["route_name"],
        address=verdict["address"],
        mirror_address=verdict["mirror_address"],
        database_name=verdict["destination_database"],
        broker_instance=verdict["broker_instance"],
    )


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`.

    Args:
        verdict: one row with the columns of resolved_routes. Columns that depend on an unknown dialog are null.
        steps: the path, rows of `result_schemas.EXPLAINED_STEPS`.
        others: for a conversation, the number of further stored messages of the same end.
        remedies: the actions where the path fails, some with a statement. It is empty if the path is right, or if
            the dialog of a message that stays decides.
        followed: the paths of a message that may leave its instance, None for others.
    """

    verdict: SchemaRows
    steps: SchemaRows
    others: int = 0
    remedies: tuple[Remedy, ...] = ()
    followed: FollowedMessage | None = None

    @property
    def end(self) -> str | None:
        """The ending of the path, or the outcome of a message that stays. None if its dialog decides."""
        if self.followed is None:
            [verdict] = self.verdict
            return cast("str | None", verdict["outcome"])
        ends = {str(path.judged.end) for path in self.followed.paths}
        return next(iter(ends)) if len(ends) == 1 else None

    @property
    def remedy(self) -> Remedy | None:
        """The first remedy, None without one."""
        return self.remedies[0] if self.remedies else None


@checked
def explain(
    tables: Mapping[str, Table] | Config,
    question: Question,
    *,
    as_of: datetime | None = None,
    clock: datetime | None = None,
    exports: Sequence[str] = (),
    spark: SparkSession | None = None,
) -> Explanation:
    """Explain one message: the verdict of `resolve`, and the path to it (rule book, sections 0 to 6).

    The rows of its instance are checked. If it leaves, its path is followed.

    Args:
        tables: a configuration, whose tables are opened at their newest versions, or tables by its keys, as for
            `resolve`, optionally with those of import (`schemas.KEPT`): DataFrames, Arrow tables or datasets.
        question: the message.
        as_of: the decision time of a run with a single one (UTC). The question's own time has priority.
        clock: the current time. An imported status with a later time is never newer than others.
        exports: files and folders of exported views with causes other than routing, as for `check`.
        spark: the session for tables that need one. By default one is started.

    Returns:
        The verdict (one row of ``resolved_routes``), the steps to it (`result_schemas.EXPLAINED_STEPS`) and the
        remedies.

    Raises:
        QuestionError: no such message, instance or database exists, or a run would reject the message.
        InputError: a table breaks its contract.

    Example:
        >>> answer = routing.explain(routing.load_config("job.yaml"), routing.StoredMessage("m3"))
        >>> [verdict] = answer.verdict
        >>> verdict["outcome"], verdict["reason"], verdict["route_name"]
        ('SENT', 'MIRROR_ADDRESS', 'Far')
    """
    source, as_of = open_source(tables, as_of, spark)
    posed = pose(source, question, as_of)
    judged, followed = judge_question(posed.question, posed.known_tables), None
    if judged.may_leave:
        followed = follow_question(judged, CheckedInputs(posed.read_estate()).network_for(judged.services))
    background = source.read_background(posed, clock)

    def read_facts() -> RemedyFacts:
        return source.describe_facts(posed.read_estate(), judged.services)

    remedies = advise_on_question(judged, followed, read_facts, background.status, exports)
    answered = answer(judged, posed.known_tables, background)
    return replace(answered, others=posed.other_count, remedies=remedies, followed=followed)


def answer(
    judged: JudgedQuestion, known_tables: KnownTables, background: MessageBackground = NOTHING
) -> Explanation:
    """Explain a judged message by known facts, without remedies."""
    verdict = verdict_row(judged)
    return Explanation(
        SchemaRows(RESOLVED_ROUTES.optional(), (verdict,)),
        SchemaRows(EXPLAINED_STEPS, number_lines(path(judged, known_tables, verdict, background))),
    )
