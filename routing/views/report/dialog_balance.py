"""Measure how evenly dialogs were shared out among the broker instances that compete for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import exp, lgamma, log, log1p, sqrt
from typing import NamedTuple

from routing.engines.traffic_tables import BalancedDialogs, TimeSpans, open_traffic
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

# What chance does where each dialog gets one of several broker instances, each as likely as the others.


FEWEST = 5
"""So many of each must be expected at least, or the chi-square distribution says nothing of the counts."""
_TAIL = 0.025
_FAR = 10
"""So many standard deviations below the mean less than 1e-10 of all choices end."""


def band(dialogs: int, ids: int) -> tuple[int, int]:
    """Return the least and the most dialogs of an id in at least 95 of 100 fair choices among so many ids.

    These are the binomial distribution's own quantiles, at few dialogs as at many: less than the lower bound, and
    more than the upper one, come each with a probability of 2.5 % at most. The probabilities are summed one after
    another, from far below the mean, so that it takes some tens of square roots of ``dialogs``.
    """
    if ids == 1 or not dialogs:
        return dialogs, dialogs
    share = 1 / ids
    mean = dialogs * share
    low = high = max(0, int(mean - _FAR * sqrt(mean * (1 - share))))
    probability = _probability(low, dialogs, share)
    odds, so_far = share / (1 - share), probability
    is_low = so_far > _TAIL
    while so_far < 1 - _TAIL and high < dialogs:
        probability *= (dialogs - high) / (high + 1) * odds
        high += 1
        so_far += probability
        if not is_low:
            low, is_low = high, so_far > _TAIL
    return low, high


def _probability(count: int, dialogs: int, share: float) -> float:
    """Return the probability that an id with a share gets this very number of all dialogs."""
    log_arrangements = lgamma(dialogs + 1) - lgamma(count + 1) - lgamma(dialogs - count + 1)
    return exp(log_arrangements + count * log(share) + (dialogs - count) * log1p(-share))


def p_value(counts: Sequence[int]) -> float:
    """Return the probability that fair choices are at least as uneven as these counts: Pearson's chi-square test.

    There are two counts at least, and `FEWEST` expected of each. The package mpmath is needed.
    """
    import mpmath

    expected = sum(counts) / len(counts)
    distance = sum((count - expected) ** 2 for count in counts) / expected
    # The chi-square distribution's upper tail is a regularized incomplete gamma function.
    return float(mpmath.gammainc((len(counts) - 1) / 2, distance / 2, regularized=True))


def correct(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of several tests, in the order given, each corrected for their number by Holm's method.

    Below 0.05 then stands by mere chance any of them in 5 of 100 cases at most, however many they are.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for place, which in enumerate(sorted(range(len(p_values)), key=lambda which: p_values[which])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[which]))
        corrected[which] = least
    return corrected


# Which broker instances compete for the open dialogs to a service, since when, and which ids never do; by the
# rules.


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
    """Return the scopes whose routes name a service with two broker instances or more, as of a time, in order.

    ``tables``: instances, databases, services and routes, the latter with all their versions. The interval is the
    one around ``now`` (microseconds since 1970) in which the same ids compete. Versions of routes that are over
    count for it, and name no id.
    """
    whole, planner = with_keys(tables), Planner()
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
    """Return the routes with a service and a broker instance, of today and of later, by who searches them."""
    routes_by_scope: dict[ChoiceScope, list[_Named]] = {}
    ends = routes.rows("valid_to", "lifetime")
    for (instance, database, route), (valid_to, lifetime) in zip(routes_of(routes), ends, strict=True):
        if route.service is not None and route.broker is not None and (valid_to is None or now < valid_to):
            scope = ChoiceScope(instance, database, route.service)
            routes_by_scope.setdefault(scope, []).append(_Named(route, lifetime))
    return routes_by_scope


def _owners(databases: TableColumns) -> dict[str, str]:
    """Return by broker instance the databases that have it, mostly one."""
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
    planner: Planner,
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
    return SHADOWED, f"open dialogs take {route_names}, which names the service and no broker instance"


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


def spans_of(choices: Iterable[InstanceChoice]) -> dict[tuple[str, str, str], Bounds]:
    """Return the span of ``decided_at`` in which the dialogs of each scope are counted."""
    return {choice.scope: choice.bounds for choice in choices}


_DIALOG = ("broker_instance", "rerouted_from", "conversation_id", "matching_step")


def count_dialogs(resolved: Table, spans: TimeSpans) -> BalancedDialogs:
    """Return how many dialogs were balanced to each broker instance (matching step 3), by where they were.

    ``spans`` name the instances, databases whose routes are searched, and services, each with the time, in
    microseconds, from which on and before which its messages were decided (None: no bound). What has no dialog is
    left out. A dialog counts once for a broker instance, however many messages it has.
    """
    return open_traffic(resolved).last_attempts((*FLOW, DECIDED, *_DIALOG)).balanced_dialogs(spans)


def find_balances(choices: Iterable[InstanceChoice], dialogs: BalancedDialogs) -> list[DialogBalance]:
    """Return a balance for each choice; those that chance explains least first, then those of most dialogs.

    ``dialogs`` are those that step 3 shared out in the time of their choice, each counted once. mpmath is needed.
    """
    counted: dict[ChoiceScope, dict[str, int]] = {}
    for target, count in dialogs.items():
        scope = ChoiceScope(target.instance, target.database, target.service)
        counted.setdefault(scope, {})[target.broker_instance] = count
    balances = [_balance(choice, counted.get(choice.scope, {})) for choice in choices]
    return sorted(_corrected(balances), key=_place)


def _balance(choice: InstanceChoice, counted: Mapping[str, int]) -> DialogBalance:
    """Return the balance of a scope, with its p-value as it is for one test."""
    counts = [counted.get(broker, 0) for broker in choice.owners]
    # Of ids whose dialogs come back msdb may show some, of those that arrived: what is left of the others is fair.
    coming_back = {one.broker_instance for one in choice.never if one.why == COMES_BACK}
    others = sorted(counted.keys() - choice.owners.keys() - coming_back)
    total = sum(counts)
    low, high = band(total, len(counts)) if counts else (0, 0)
    picks = [
        BalancedInstance(broker, owner, count, total / len(counts), float(low), float(high))
        for (broker, owner), count in zip(choice.owners.items(), counts, strict=True)
    ]
    # Where the routes say otherwise today than they did, nothing is expected of an id, and it was picked.
    picks += [BalancedInstance(broker, None, counted[broker], 0.0, 0.0, 0.0) for broker in others]
    why_not = _why_no_test(counts, others)
    since, until = choice.bounds
    return DialogBalance(
        *choice.scope,
        since,
        until,
        tuple(picks),
        choice.never,
        p_value(counts) if why_not is None else None,
        why_not,
    )


def _why_no_test(counts: Sequence[int], others: Sequence[str]) -> str | None:
    """Return the reason why chance cannot be asked; None where it can."""
    if others:
        return "dialogs got broker instances that do not compete by these routes: others were in force then"
    if not counts:
        return "no broker instance has dialogs that can be counted"
    if len(counts) == 1:
        return "one broker instance alone has dialogs that can be counted"
    if not any(counts):
        return "no dialog was shared out in this time"
    if sum(counts) < FEWEST * len(counts):
        dialogs = "1 dialog is" if sum(counts) == 1 else f"{sum(counts):,} dialogs are"
        return f"{dialogs} too few for {len(counts):,} broker instances: it takes {FEWEST} for each"
    return None


def _corrected(balances: Sequence[DialogBalance]) -> list[DialogBalance]:
    """Correct each p-value for the number of services that were tested."""
    tested = [balance.p_value for balance in balances if balance.p_value is not None]
    corrected_values = iter(correct(tested))
    return [one if one.p_value is None else replace(one, p_value=next(corrected_values)) for one in balances]


def _place(balance: DialogBalance) -> SortKey:
    dialogs = sum(pick.dialogs for pick in balance.picks)
    unlikely = 2.0 if balance.p_value is None else balance.p_value
    return (unlikely, -dialogs, balance.instance, balance.database, balance.service)
