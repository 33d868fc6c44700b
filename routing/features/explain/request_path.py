"""Where the message goes that asks for a route: from the database that asks to every end that it may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile

from routing.features.explain.lines import SHOWN, Line, line
from routing.plan.paths import trace_request
from routing.plan.planner import plan_decisions
from routing.rules.estate import SqlInstance
from routing.rules.network import EstateNetwork
from routing.rules.ways import HopPath, MessageTrace, PathHop
from routing.terms import BROKER_CONFIGURATION_SERVICE, Ending, Reason


@dataclass(frozen=True)
class OtherInstances:
    """The estate around the instance of a message.

    ``read`` returns the other instances, as far as requests that arrive there have to do with them. ``is_known``:
    whether what decides a hop was read whole.
    """

    read: Callable[[], Mapping[str, SqlInstance]] = dict
    is_known: Callable[[PathHop], bool] = lambda hop: True


_LOST = (str(Ending.DELAYED), str(Ending.DROPPED), str(Ending.LOOP))
NO_OTHER_INSTANCES = OtherInstances()


def request_lines(here: SqlInstance, database: str, t: int, others: OtherInstances) -> list[Line]:
    """Return the path of the request that a database makes at a time: each way hop by hop, at most `SHOWN` ways.

    Other instances are read only where the request leaves its own.
    """
    instances: Mapping[str, SqlInstance] = {here.name: here}
    traces = _follow(instances, here, database, t)
    if any(hop_path.ending is Ending.LEFT_ESTATE for trace in traces for hop_path in trace.ways):
        instances = {**others.read(), here.name: here}
        traces = _follow(instances, here, database, t)
    hop_paths = list(dict.fromkeys(hop_path for trace in traces for hop_path in trace.ways))
    ends = [_end_line(hop_path, instances, others) for hop_path in hop_paths]
    is_cut = any(trace.is_cut for trace in traces)
    is_lost = not is_cut and all(end["finding"] in _LOST for end in ends)
    asked = {"service_name": BROKER_CONFIGURATION_SERVICE, "count": len(hop_paths)}
    lines = [line("REQUEST_PATH", "LOST" if is_lost else "FOLLOWED", **_place(here.name, database), **asked)]
    for hop_path, end in list(zip(hop_paths, ends, strict=True))[:SHOWN]:
        lines += [*map(_hop_line, takewhile(others.is_known, hop_path.hops)), end]
    if len(hop_paths) > SHOWN or is_cut:
        lines.append(line("REQUEST_END", str(Ending.TOO_MANY_WAYS), count=len(hop_paths)))
    return lines


def _follow(instances: Mapping[str, SqlInstance], here: SqlInstance, database: str, t: int) -> list[MessageTrace]:
    return list(trace_request(EstateNetwork(instances), plan_decisions().at, here, database, t))


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


def _end_line(hop_path: HopPath, instances: Mapping[str, SqlInstance], others: OtherInstances) -> Line:
    for hop in hop_path.hops:
        if not others.is_known(hop):
            return line("REQUEST_END", str(Ending.NOT_KNOWN), **_place(hop.instance_name, hop.scope))
    is_off = hop_path.reason is Reason.FORWARDING_DISABLED and hop_path.instance is not None
    is_doubtful = is_off and not instances[hop_path.instance or ""].is_forwarding_known
    finding = "FORWARDING_NOT_KNOWN" if is_doubtful else str(hop_path.ending)
    return line("REQUEST_END", finding, **_place(hop_path.instance, hop_path.database), address=hop_path.address)


def _place(instance: str | None, database: str | None) -> dict[str, str | None]:
    return {"instance_name": instance, "database_name": database}
