"""Measure how evenly dialogs were shared out among the broker instances that compete for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import NamedTuple

from routing.engines.traffic_tables import BalancedDialogs, TimeSpans, open_traffic
from routing.groups import group_pairs
from routing.lint.lint_estate import list_names, with_keys
from routing.plan.checked_inputs import instances_of, routes_of
from routing.plan.planner import Planner
from routing.render.phrases import quote_name
from routing.render.wording import format_time
from routing.rules import text
from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import EstateRoute, SqlInstance
from routing.rules.text import BROKER_OFF, EXPIRED, NOT_YET
from routing.rules.timeline import TimeInterval, moment_of
from routing.tables.table_columns import Table, TableColumns
from routing.terms import SortKey
from routing.views.page.facts import BalancedInstance, DialogBalance, NeverPicked
from routing.views.report.flows import DECIDED, FLOW

SHADOWED, DOUBLED, COMES_BACK = "SHADOWED", "DOUBLED", "COMES_BACK"
"""The words of `NeverPicked.why` in addition to EXPIRED, NOT_YET_VALID and BROKER_DISABLED."""


class ChoiceScope(NamedTuple):
    """A scope that balances dialogs to a service. ``database`` has the routes to search.

    It is the sender's database, or msdb for arrivals and for messages that came back to their own instance.
    """

    instance: str
    database: str
    service: str


Bounds = tuple["int | None", "int | None"]
"""A half-open interval of time, in microseconds since 1970, None for no bound."""


@dataclass(frozen=True)
class InstanceChoice:
    """The ids that compete for the open dialogs of a scope, with the interval in which they do.

    ``owners`` has the database with each id (``instance.database``) in the order of the rules, or None if it is
    unknown. ``never`` are other ids in routes, with the reason why they get no dialogs. Dialogs for ids that come
    back are listed there too, because they cannot be recognised.
    """

    scope: ChoiceScope
    bounds: Bounds
    owners: Mapping[str, str | None]
    never: Sequence[NeverPicked]


def find_choices(tables: Mapping[str, TableColumns], now: int) -> list[InstanceChoice]:
    """Return the scopes with routes for one service to two or more broker instances at a time, in order.

    ``tables`` are instances, databases, services and all versions of routes. The interval is the one around
    ``now`` (microseconds since 1970) in which the same ids compete. Expired versions of routes affect the
    interval, but their ids are left out.
    """
    whole, planner = with_keys(tables), Planner()
    instances, owners = instances_of(whole), _owners(whole["databases"])
    return [
        _choice(scope, routes, instances[scope.instance], planner, owners, now)
        for scope, routes in sorted(_named(whole["routes"], now).items())
        if scope.instance in instances and len({routing_row.route.broker for routing_row in routes}) > 1
    ]


class _Named(NamedTuple):
    """A version of a route that is not over, unless by its lifetime."""

    route: EstateRoute
    lifetime: int | None


def _named(routes: TableColumns, now: int) -> dict[ChoiceScope, list[_Named]]:
    """Return the routes with a service and a broker instance by searching scope, including future ones."""
    routes_by_scope: dict[ChoiceScope, list[_Named]] = {}
    ends = routes.rows("valid_to", "lifetime")
    for (instance, database, route), (valid_to, lifetime) in zip(routes_of(routes), ends, strict=True):
        if route.service is not None and route.broker is not None and (valid_to is None or now < valid_to):
            scope = ChoiceScope(instance, database, route.service)
            routes_by_scope.setdefault(scope, []).append(_Named(route, lifetime))
    return routes_by_scope


def _owners(databases: TableColumns) -> dict[str, str]:
    rows = databases.rows("instance_name", "name", "service_broker_guid")
    named = group_pairs((text.broker_id(guid), f"{instance}.{name}") for instance, name, guid in rows)
    return {broker: list_names(names) for broker, names in named.items() if broker is not None}


def _choice(
    scope: ChoiceScope,
    named: Sequence[_Named],
    instance: SqlInstance,
    planner: Planner,
    owners: Mapping[str, str],
    now: int,
) -> InstanceChoice:
    # Arrivals find the same ids as messages that msdb sends, and only the latter may come back.
    key = RoutingKey.of_names(instance, scope.database, scope.service, None, is_initiator=True)
    spans = _around(planner.timeline(key, instance).intervals(), now)
    span = next(span_of_choice for span_of_choice in spans if _is_not_over(span_of_choice, now))
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
    """Return the ids that step 3 may pick: ids that dialogs show, and ids of dialogs that are decided again.

    Messages that come back to their own instance are decided by msdb's routes, and their rows show only these.
    """
    picks = {decision.first.pick: decision.second is not None for decision in span.choices}
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
_COMES_BACK = "its address is this instance: msdb routes dialogs with this id again, and they cannot be recognised"


def _unreached(decision: Decision) -> _Why:
    search = decision.first
    if search.match is None:
        return BROKER_OFF, f"the broker of {quote_name(search.scope)} is off: its routes are not searched"
    route_names = quote_name(list_names(route.name or "" for route in search.match.routes))
    return SHADOWED, f"open dialogs take {route_names}, which names the service and no broker instance"


def _behind_another(route: EstateRoute, decision: Decision) -> _Why | None:
    search = decision.first
    if route.name == search.route_name:
        return None if decision.second is None else (COMES_BACK, _COMES_BACK)
    if not search.choice.is_usable or route.name in {other.name for other in search.choice.routes}:
        return None
    first = f"{quote_name(search.route_name)} names the same id, which has one share"
    if route.name in {other.name for other in search.routes}:
        return DOUBLED, f"{first}, and is used before this one"
    return DOUBLED, f"{first}, and the same address"


def _not_in_force(route: EstateRoute, lifetime: int | None, now: int) -> _Why:
    if lifetime is not None and lifetime <= now:
        return EXPIRED, f"it expired at {format_time(moment_of(lifetime))}"
    begins = now if route.live_from is None else route.live_from
    return NOT_YET, f"it is not valid before {format_time(moment_of(begins))}"


def spans_of(choices: Iterable[InstanceChoice]) -> dict[tuple[str, str, str], Bounds]:
    """Return the span of ``decided_at`` in which the dialogs of each scope are counted."""
    return {choice.scope: choice.bounds for choice in choices}


_DIALOG = ("broker_instance", "rerouted_from", "conversation_id", "matching_step")


def count_dialogs(resolved: Table, spans: TimeSpans) -> BalancedDialogs:
    """Return the number of dialogs that were balanced to each broker instance (matching step 3), by scope.

    ``spans`` have the instance, the database with the routes, the service, and the first and last decision time in
    microseconds (None for no bound). Messages without a dialog are left out. A dialog counts once for a broker
    instance, even if it has many messages.
    """
    return open_traffic(resolved).last_attempts((*FLOW, DECIDED, *_DIALOG)).balanced_dialogs(spans)


FEWEST = 5
"""The minimal number of expected dialogs for each id, below which the normal distribution is not valid."""
_OUTSIDE = 0.05
"""Fair choices leave any band of a report with this probability at most."""


def find_balances(choices: Iterable[InstanceChoice], dialogs: BalancedDialogs) -> list[DialogBalance]:
    """Return a balance for each choice: the unfair ones first, those without bands last, most dialogs first.

    Args:
        choices: the ids that compete in each scope.
        dialogs: the dialogs that step 3 shared out in the time of their choice, each counted once.
    """
    counted: dict[ChoiceScope, dict[str, int]] = {}
    for target, count in dialogs.items():
        scope = ChoiceScope(target.instance, target.database, target.service)
        counted.setdefault(scope, {})[target.broker_instance] = count
    balances = [_balance(choice, counted.get(choice.scope, {})) for choice in choices]
    return sorted(_with_bands(balances), key=_place)


def _balance(choice: InstanceChoice, counted: Mapping[str, int]) -> DialogBalance:
    counts = [counted.get(broker, 0) for broker in choice.owners]
    expected = sum(counts) / len(counts) if counts else 0.0
    # If an id comes back, msdb may show some of its arrived dialogs. The other ids get fair shares of the rest.
    coming_back = {balanced_id.broker_instance for balanced_id in choice.never if balanced_id.why == COMES_BACK}
    other_brokers = sorted(counted.keys() - choice.owners.keys() - coming_back)
    picks = [
        BalancedInstance(broker, owner, count, expected, None, None)
        for (broker, owner), count in zip(choice.owners.items(), counts, strict=True)
    ]
    # Ids that were picked under earlier routes have no expected share today.
    picks += [BalancedInstance(broker, None, counted[broker], 0.0, None, None) for broker in other_brokers]
    why_no_band = _why_no_band(counts, other_brokers)
    return DialogBalance(*choice.scope, *choice.bounds, tuple(picks), choice.never, why_no_band)


def _why_no_band(counts: Sequence[int], other_brokers: Sequence[str]) -> str | None:
    if other_brokers:
        return "dialogs got broker instances that do not compete by these routes: others were valid then"
    if not counts:
        return "no broker instance has dialogs that can be counted"
    if len(counts) == 1:
        return "only one broker instance has dialogs that can be counted"
    if not any(counts):
        return "no dialog was balanced in this time"
    if sum(counts) < FEWEST * len(counts):
        dialogs = "1 dialog is" if sum(counts) == 1 else f"{sum(counts):,} dialogs are"
        return f"{dialogs} too few for {len(counts):,} broker instances, at least {FEWEST} for each are needed"
    return None


def _with_bands(balances: Sequence[DialogBalance]) -> Iterator[DialogBalance]:
    """Yield balances with their bands, which are wider the more of them there are (Bonferroni)."""
    ids = [len(balance.picks) for balance in balances if balance.why_no_band is None]
    # Two ids share one band, because the excess of one is the lack of the other.
    bands = sum(1 if id_count == 2 else id_count for id_count in ids)
    deviations = NormalDist().inv_cdf(1 - _OUTSIDE / 2 / max(bands, 1))
    for balance in balances:
        if balance.why_no_band is None:
            picks = tuple(_with_band(pick, 1 / len(balance.picks), deviations) for pick in balance.picks)
            yield replace(balance, picks=picks)
        else:
            yield balance


def _with_band(pick: BalancedInstance, share: float, deviations: float) -> BalancedInstance:
    reach = deviations * sqrt(pick.expected * (1 - share))
    return replace(pick, low=max(0, ceil(pick.expected - reach)), high=floor(pick.expected + reach))


def _place(balance: DialogBalance) -> SortKey:
    dialogs = sum(pick.dialogs for pick in balance.picks)
    judged = (False, True, None).index(balance.is_fair)
    return (judged, -dialogs, balance.instance, balance.database, balance.service)
