"""Which broker ids compete for the open dialogs to a service, since when, and which ids never do; by the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from routing.features.explain.path_sentences import quote_name
from routing.features.lint.lint_estate import with_keys
from routing.features.lint.lint_finding import list_names
from routing.features.near_differences import BROKER_OFF, EXPIRED, NOT_YET
from routing.features.report.facts import NeverPicked
from routing.plan.estate import instances_of, routes_of
from routing.plan.planner import Planner, plan_decisions
from routing.render.wording import format_time
from routing.rules import text
from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import EstateRoute, SqlInstance
from routing.rules.timeline import TimeInterval
from routing.tables.table_columns import TableColumns
from routing.tables.times import moment_of

SHADOWED, DOUBLED, COMES_BACK = "SHADOWED", "DOUBLED", "COMES_BACK"
"""Words of `NeverPicked.why`, besides EXPIRED, NOT_YET_VALID and BROKER_DISABLED."""


class ChoiceScope(NamedTuple):
    """A scope that shares out dialogs to a service: ``database`` is the one whose routes are searched.

    It is the sender's, or msdb for what arrives over the network or has come back to its own instance.
    """

    instance: str
    database: str
    service: str


Bounds = tuple["int | None", "int | None"]
"""A half-open interval of time, in microseconds since 1970, None for no bound."""


@dataclass(frozen=True)
class InstanceChoice:
    """The ids that compete for the open dialogs of a scope, as long as they were the same.

    ``owners``: by id, in the rules' order, the database that has it (``instance.database``), None where none is
    known. ``never``: the others that routes name, with why no dialog gets them or, of those that come back, why
    nothing tells which dialogs did.
    """

    scope: ChoiceScope
    bounds: Bounds
    owners: Mapping[str, str | None]
    never: Sequence[NeverPicked]


def find_choices(tables: Mapping[str, TableColumns], now: int) -> list[InstanceChoice]:
    """Return the scopes whose routes name a service with two broker ids at least, as of a time, in their order.

    ``tables``: instances, databases, services and routes, the latter with all their versions. The interval is the
    one around ``now`` (microseconds since 1970) in which the same ids compete. Versions of routes that are over
    count for it, and name no id.
    """
    whole, planner = with_keys(tables), plan_decisions()
    instances, owners = instances_of(whole), _owners(whole["databases"])
    return [
        _choice(scope, routes, instances[scope.instance], planner, owners, now)
        for scope, routes in sorted(_named(whole["routes"], now).items())
        if scope.instance in instances and len({one.route.broker for one in routes}) > 1
    ]


class _Named(NamedTuple):
    """A version of a route that is not over, unless by its lifetime."""

    route: EstateRoute
    lifetime: int | None


def _named(routes: TableColumns, now: int) -> dict[ChoiceScope, list[_Named]]:
    """Return the routes with a service and a broker id, of today and of later, by who searches them."""
    routes_by_scope: dict[ChoiceScope, list[_Named]] = {}
    ends = routes.rows("valid_to", "lifetime")
    for (instance, database, route), (valid_to, lifetime) in zip(routes_of(routes), ends, strict=True):
        if route.service is not None and route.broker is not None and (valid_to is None or now < valid_to):
            scope = ChoiceScope(instance, database, route.service)
            routes_by_scope.setdefault(scope, []).append(_Named(route, lifetime))
    return routes_by_scope


def _owners(databases: TableColumns) -> dict[str, str]:
    """Return by broker id the databases that have it, mostly one."""
    names_by_broker: dict[str, list[str]] = {}
    for instance, name, guid in databases.rows("instance_name", "name", "service_broker_guid"):
        broker = text.broker_id(guid)
        if broker is not None:
            names_by_broker.setdefault(broker, []).append(f"{instance}.{name}")
    return {broker: list_names(names) for broker, names in names_by_broker.items()}


def _choice(
    scope: ChoiceScope,
    named: Sequence[_Named],
    instance: SqlInstance,
    planner: Planner[Decision],
    owners: Mapping[str, str],
    now: int,
) -> InstanceChoice:
    # What arrives finds the same ids as what msdb sends itself, and that alone may come back.
    key = RoutingKey.of_names(instance, scope.database, scope.service, None, is_initiator=True)
    spans = _around(planner.timeline(key, instance).intervals(), now)
    span = next(one for one in spans if _is_not_over(one, now))
    counted, _ = _competing(span)
    return InstanceChoice(
        scope,
        (spans[0].valid_from, spans[-1].valid_to),
        {broker: owners.get(broker) for broker in counted},
        tuple(_never(named, span.choices, now)),
    )


def _around(spans: Iterable[TimeInterval[Decision]], now: int) -> list[TimeInterval[Decision]]:
    """Return the spans of a key, around a time, in which the same ids compete."""
    alike = (list(same) for _, same in groupby(spans, key=_competing))
    return next(same for same in alike if _is_not_over(same[-1], now))


def _is_not_over(span: TimeInterval[Decision], now: int) -> bool:
    return span.valid_to is None or now < span.valid_to


def _competing(span: TimeInterval[Decision]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids that step 3 may pick: those whose dialogs show it, and those whose dialogs are decided anew.

    What comes back to its own instance is decided by the routes of msdb, and its row tells of these alone.
    """
    picks = {decision.first.pick: decision.again is not None for decision in span.choices}
    ids = sorted((broker, is_back) for broker, is_back in picks.items() if broker is not None)
    return tuple(b for b, is_back in ids if not is_back), tuple(b for b, is_back in ids if is_back)


def _never(named: Sequence[_Named], decisions: Sequence[Decision], now: int) -> Iterator[NeverPicked]:
    """Yield why routes that no dialog takes by a pick are there in vain, in the order of ids and names."""
    picked = {decision.first.pick: decision for decision in decisions}
    for route, lifetime in sorted(named, key=lambda one: (one.route.broker or "", one.route.name or "")):
        decision = picked.get(route.broker)
        if route.is_live(now):
            why = _unreached(decisions[0]) if decision is None else _behind_another(route, decision)
        else:
            why = _not_in_force(route, lifetime, now) if decision is None else None
        if why is not None:
            yield NeverPicked(route.broker or "", route.name or "", *why)


_Why = tuple[str, str]
_COMES_BACK = (
    "its address is this very instance: dialogs that get this id are routed again by msdb, and nothing tells which"
    " of those did"
)


def _unreached(decision: Decision) -> _Why:
    """Return why no open dialog reaches a route in force: another step ends the search, or there is none."""
    search = decision.first
    if search.match is None:
        return BROKER_OFF, f"the broker of {quote_name(search.scope)} is off: its routes are not searched"
    route_names = quote_name(list_names(each.name or "" for each in search.match.routes))
    return SHADOWED, f"open dialogs take {route_names}, which names the service and no broker id"


def _behind_another(route: EstateRoute, decision: Decision) -> _Why | None:
    """Return why a route of an id that may be picked is not used; None for one that may be used."""
    search = decision.first
    if route.name == search.route_name:
        return None if decision.again is None else (COMES_BACK, _COMES_BACK)
    if not search.choice.is_usable or route.name in {each.name for each in search.choice.routes}:
        return None
    first = f"{quote_name(search.route_name)} names the same id, which has one share"
    if route.name in {each.name for each in search.routes}:
        return DOUBLED, f"{first}, and is used before this one"
    return DOUBLED, f"{first}, and the same address"


def _not_in_force(route: EstateRoute, lifetime: int | None, now: int) -> _Why:
    if lifetime is not None and lifetime <= now:
        return EXPIRED, f"it expired at {format_time(moment_of(lifetime))}"
    begins = now if route.live_from is None else route.live_from
    return NOT_YET, f"it is not valid before {format_time(moment_of(begins))}"
