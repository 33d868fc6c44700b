"""Write the lines of an explanation that surround the path of the rules.

They show the path of a request for a route, gaps and age of the data on the instance, and the status of SQL
Server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from routing import terms
from routing.delta.import_times import newest_after
from routing.plan.checked_inputs import instances_of
from routing.plan.paths import trace_request
from routing.plan.planner import Planner
from routing.render.phrases import LONGEST_STATUS
from routing.render.wording import printable
from routing.result_schemas import EXPLAINED_STEPS
from routing.rules import observed, reconciling, text
from routing.rules.estate import SqlInstance
from routing.rules.following import HopPath, MessageTrace, PathHop
from routing.rules.network import EstateNetwork
from routing.rules.observed import NumberAgreement, ReasonComparison
from routing.rules.reconciling import PairClass, SeenMessage
from routing.rules.resolving import Verdict
from routing.rules.timeline import SECOND, moment_of
from routing.tables.table_columns import TableColumns

# A line of a path is one flat row, so that two explanations can be compared line by line.
Line = terms.TableRow
# How many routes, databases or ids one list shows; the rest are counted.
SHOWN = 20
_TIMES = ("valid_from", "valid_to", "at")


def line(item: str, finding: str, **values: Any) -> Line:
    """Return one line. Fields of `EXPLAINED_STEPS` without a value are null, and times are microseconds."""
    return {"item": item, "finding": finding, **values}


def number_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Add missing columns to lines, as rows of `EXPLAINED_STEPS`, and number them from 1."""
    return tuple({**_complete(fields), "position": number} for number, fields in enumerate(lines, start=1))


def _complete(partial_line: Line) -> Line:
    row = {name: partial_line.get(name) for name in EXPLAINED_STEPS.names}
    return {
        **row,
        **{name: moment_of(partial_line[name]) for name in _TIMES if partial_line.get(name) is not None},
    }


@dataclass(frozen=True)
class OtherInstances:
    """The estate around the instance of a message.

    ``read`` returns the other instances with the facts for requests that arrive there. ``is_known`` returns True
    if all facts that decide a hop were read.
    """

    read: Callable[[], Mapping[str, SqlInstance]] = dict
    is_known: Callable[[PathHop], bool] = lambda hop: True


_LOST = (str(terms.Ending.DELAYED), str(terms.Ending.DROPPED), str(terms.Ending.LOOP))
NO_OTHER_INSTANCES = OtherInstances()


def request_lines(instance: SqlInstance, database: str, t: int, other_instances: OtherInstances) -> list[Line]:
    """Return the paths of a database's request at a time, hop by hop, for at most `SHOWN` branches.

    Other instances are read only if the request leaves its own.
    """
    instances: Mapping[str, SqlInstance] = {instance.name: instance}
    traces = _follow(instances, instance, database, t)
    if any(hop_path.ending is terms.Ending.LEFT_ESTATE for trace in traces for hop_path in trace.hop_paths):
        instances = {**other_instances.read(), instance.name: instance}
        traces = _follow(instances, instance, database, t)
    hop_paths = list(dict.fromkeys(hop_path for trace in traces for hop_path in trace.hop_paths))
    ends = [_end_line(hop_path, instances, other_instances) for hop_path in hop_paths]
    is_cut = any(trace.is_cut for trace in traces)
    is_lost = not is_cut and all(end["finding"] in _LOST for end in ends)
    request = {"service_name": terms.BROKER_CONFIGURATION_SERVICE, "count": len(hop_paths)}
    lines = [line("REQUEST_PATH", "LOST" if is_lost else "FOLLOWED", **_place(instance.name, database), **request)]
    for hop_path, end in list(zip(hop_paths, ends, strict=True))[:SHOWN]:
        lines += [*map(_hop_line, takewhile(other_instances.is_known, hop_path.hops)), end]
    if len(hop_paths) > SHOWN or is_cut:
        lines.append(line("REQUEST_END", str(terms.Ending.TOO_MANY_WAYS), count=len(hop_paths)))
    return lines


def _follow(
    instances: Mapping[str, SqlInstance], instance: SqlInstance, database: str, t: int
) -> list[MessageTrace]:
    return list(trace_request(EstateNetwork(instances), Planner().at, instance, database, t))


def _hop_line(hop: PathHop) -> Line:
    return line(
        "REQUEST_HOP",
        str(hop.outcome),
        **_place(hop.instance_name, hop.scope),
        step=None if hop.matching_step is None else int(hop.matching_step),
        name=hop.route_name,
        address=hop.address,
        broker_instance=hop.broker_instance,
        outcome=str(hop.outcome),
        reason=str(hop.reason),
    )


def _end_line(hop_path: HopPath, instances: Mapping[str, SqlInstance], other_instances: OtherInstances) -> Line:
    for hop in hop_path.hops:
        if not other_instances.is_known(hop):
            return line("REQUEST_END", str(terms.Ending.NOT_KNOWN), **_place(hop.instance_name, hop.scope))
    is_off = hop_path.reason is terms.Reason.FORWARDING_DISABLED and hop_path.instance is not None
    is_doubtful = is_off and not instances[hop_path.instance or ""].is_forwarding_known
    finding = "FORWARDING_NOT_KNOWN" if is_doubtful else str(hop_path.ending)
    return line("REQUEST_END", finding, **_place(hop_path.instance, hop_path.database), address=hop_path.address)


def _place(instance: str | None, database: str | None) -> dict[str, str | None]:
    return {"instance_name": instance, "database_name": database}


_UNKNOWN_TEXT = ReasonComparison(NumberAgreement.SAYS_NOTHING, "A text that this project does not know.")


# The time (microseconds) after which a message with a blank status was sent but not acknowledged.
_WAITING_FOR_A_TRY = 10 * 60 * SECOND
_AGREEMENTS = {
    PairClass.CONFIRMED: NumberAgreement.AGREES,
    PairClass.COMPATIBLE: NumberAgreement.COMPATIBLE,
    PairClass.CONTRADICTED: NumberAgreement.CONTRADICTS,
}


@dataclass(frozen=True)
class StatusText:
    """SQL Server's status of a message: its time in microseconds, number and text. The text is None if blank.

    ``event`` is the source of an event, or None for a transmission_status. ``outcome`` and ``next_hop`` come from
    the event.
    """

    observed_at: int
    number: int | None
    text: str | None
    event: str | None = None
    outcome: terms.Outcome | None = None
    next_hop: str | None = None

    def is_silence(self, enqueued: int) -> bool:
        """Return True if a message waited long enough with a blank status to count as sent."""
        return self.event is None and self.text is None and self.observed_at - enqueued > _WAITING_FOR_A_TRY

    def compared(
        self, reason: terms.Reason, *, in_msdb: bool, outcome: terms.Outcome | None = None
    ) -> ReasonComparison:
        """Compare a status with a verdict. ``in_msdb`` is True if the routes of msdb were searched last."""
        if self.event is not None and outcome is not None:
            observation = SeenMessage(self.event, self.outcome, self.number)
            comparison = reconciling.compare(observation, Verdict(None, outcome, reason), in_msdb=in_msdb)
            return ReasonComparison(_AGREEMENTS.get(comparison.kind, NumberAgreement.SAYS_NOTHING), comparison.why)
        if self.number is None and self.text is not None:
            return _UNKNOWN_TEXT
        return observed.compare(reason, self.number, in_msdb=in_msdb)


NO_STATUS = StatusText(-(2**63), None, None)
"""The status of a message that was never observed."""


@dataclass(frozen=True)
class MessageBackground:
    """The facts about a message outside the rules.

    ``instance_gap`` is the finding of item INSTANCE, or None if the instance is known well enough. ``status`` is
    the newest one of the message, or None if none is stored. ``newest`` is the last import of tables without a
    history, by instance (`import_times.newest_of`).
    """

    instance_gap: str | None = None
    status: StatusText | None = None
    newest: Mapping[str, int] = field(default_factory=dict)

    def before_the_path(self, instance: str, t: int) -> list[Line]:
        """List the lines before any verdict. ``t`` is the time of the decision."""
        later = newest_after(self.newest, instance, t)
        lines = [] if later is None else [line("IMPORT", "LATER", name=instance, at=later)]
        return lines if self.instance_gap is None else [*lines, line("INSTANCE", self.instance_gap, name=instance)]

    def after_the_verdict(self, outcome: str | None, reason: str | None, *, in_msdb: bool) -> list[Line]:
        """List the lines on SQL Server's status, beside the verdict."""
        if self.status is None or outcome is None or reason is None:
            return []
        compared = self.status.compared(terms.Reason(reason), in_msdb=in_msdb, outcome=terms.Outcome(outcome))
        return [
            line(
                "STATUS",
                str(compared.agreement),
                at=self.status.observed_at,
                error_number=self.status.number,
                status_text=self.status.text,
                name=self.status.event,
                outcome=None if self.status.outcome is None else str(self.status.outcome),
                address=self.status.next_hop,
                why=compared.why,
            )
        ]


NOTHING = MessageBackground()
"""The background of a message without further facts."""


def find_gap(near: Mapping[str, TableColumns]) -> str | None:
    """Return whether of an instance only the name is known (ONLY_NAME), or only that and routes (ONLY_ROUTES).

    ``near`` has the rows of this one instance.
    """
    near_instances = instances_of({key: near[key] for key in ("instances", "databases")}).values()
    if not any(instance.is_only_named for instance in near_instances):
        return None
    return "ONLY_ROUTES" if len(near["routes"]) else "ONLY_NAME"


def status_of(row: terms.ReadRow) -> StatusText:
    """Read the status of a row of observed_routing."""
    number, status_text = row["error_number"], text.empty_as_null(row["status_text"])
    if row["source"] == terms.TRANSMISSION_QUEUE:
        return StatusText(row["observed_at"], number, status_text)
    outcome = terms.known_outcome(row["outcome"])
    return StatusText(
        row["observed_at"], number, status_text, row["source"], outcome, text.empty_as_null(row["next_hop"])
    )


def status(status_text: StatusText) -> str:
    """Return a status with its number and its full text, because the end of the text may name the solution."""
    number = "" if status_text.number is None else f"{status_text.number}, "
    return f"{number}'{printable((status_text.text or '')[:LONGEST_STATUS])}'"
