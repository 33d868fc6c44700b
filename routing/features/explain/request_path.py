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
    if any(way.ending is Ending.LEFT_ESTATE for trace in traces for way in trace.ways):
        instances = {**others.read(), here.name: here}
        traces = _follow(instances, here, database, t)
    ways = list(dict.fromkeys(way for trace in traces for way in trace.ways))
    ends = [_end_line(way, instances, others) for way in ways]
    is_cut = any(trace.is_cut for trace in traces)
    is_lost = not is_cut and all(end["finding"] in _LOST for end in ends)
    asked = {"service_name": BROKER_CONFIGURATION_SERVICE, "count": len(ways)}
    lines = [line("REQUEST_PATH", "LOST" if is_lost else "FOLLOWED", **_place(here.name, database), **asked)]
    for way, end in list(zip(ways, ends, strict=True))[:SHOWN]:
        lines += [*map(_hop_line, takewhile(others.is_known, way.hops)), end]
    if len(ways) > SHOWN or is_cut:
        lines.append(line("REQUEST_END", str(Ending.TOO_MANY_WAYS), count=len(ways)))
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


def _end_line(way: HopPath, instances: Mapping[str, SqlInstance], others: OtherInstances) -> Line:
    for hop in way.hops:
        if not others.is_known(hop):
            return line("REQUEST_END", str(Ending.NOT_KNOWN), **_place(hop.instance_name, hop.scope))
    is_off = way.reason is Reason.FORWARDING_DISABLED and way.instance is not None
    is_doubtful = is_off and not instances[way.instance or ""].is_forwarding_known
    finding = "FORWARDING_NOT_KNOWN" if is_doubtful else str(way.ending)
    return line("REQUEST_END", finding, **_place(way.instance, way.database), address=way.address)


def _place(instance: str | None, database: str | None) -> dict[str, str | None]:
    return {"instance_name": instance, "database_name": database}
