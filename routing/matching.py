"""Rule book, section 2: which routes match a message, as predicates in one ordered tuple of steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing.terms import BROKER_CONFIGURATION_SERVICE, MatchingStep


@dataclass(frozen=True)
class Bound:
    """What of a message the matching looks at: its service, and the broker id that it is bound to or null."""

    service: Column
    broker: Column


@dataclass(frozen=True)
class Route:
    """What of a route the matching looks at: its service name or null, its broker instance or null."""

    service: Column
    broker: Column


Predicate = Callable[[Bound, Route], Column]


def names_service(message: Bound, route: Route) -> Column:
    """The route names the message's service, exactly."""
    return route.service == message.service


def broker_instance(message: Bound, route: Route) -> Column:
    """Step 1: names the service, and has the broker instance that the message is bound to."""
    return names_service(message, route) & (route.broker == message.broker)


def service(message: Bound, route: Route) -> Column:
    """Step 2: names the service, and has no broker instance."""
    return names_service(message, route) & route.broker.isNull()


def balanced(message: Bound, route: Route) -> Column:
    """Step 3: the message is open; names the service, and has a broker instance."""
    return names_service(message, route) & route.broker.isNotNull() & message.broker.isNull()


def route_request(message: Bound, route: Route) -> Column:
    """Step 4: names the BrokerConfiguration service, which can be asked for a route."""
    return route.service == BROKER_CONFIGURATION_SERVICE


def any_service(message: Bound, route: Route) -> Column:
    """Step 5: neither a service name nor a broker instance (D3: an instance without a service never matches)."""
    return route.service.isNull() & route.broker.isNull()


STEPS: tuple[tuple[MatchingStep, Predicate], ...] = (
    (MatchingStep.BROKER_INSTANCE, broker_instance),
    (MatchingStep.SERVICE, service),
    (MatchingStep.BALANCED, balanced),
    (MatchingStep.ROUTE_REQUEST, route_request),
    (MatchingStep.ANY_SERVICE, any_service),
)


def matching_step(message: Bound, route: Route) -> Column:
    """The first step in which a route matches a message (int), null where it matches in none."""
    return F.coalesce(*(F.when(matches(message, route), F.lit(int(step))) for step, matches in STEPS))


def first_step(steps: Column) -> Column:
    """The step that ends the search, of the steps of all routes: the first but for 4, which `asks` judges."""
    return F.array_min(F.filter(steps, lambda step: step != int(MatchingStep.ROUTE_REQUEST)))


def asks(steps: Column) -> Column:
    """Whether step 4 is reached: no earlier step matched, and the BrokerConfiguration service has a route."""
    earlier = F.exists(steps, lambda step: step < int(MatchingStep.ROUTE_REQUEST))
    return F.array_contains(steps, int(MatchingStep.ROUTE_REQUEST)) & ~earlier


def step_without_route(is_bound: Column, is_held: Column) -> Column:
    """Steps 6 and 7: a bound message finds a service of this instance, else nothing matched."""
    return F.when(is_bound & is_held, F.lit(int(MatchingStep.SERVICE_OF_THIS_INSTANCE))).when(
        ~(is_bound & is_held), F.lit(int(MatchingStep.NO_MATCH))
    )


def picks(is_balanced: Column, brokers: Column) -> Column:
    """Step 3: the distinct broker ids of the matches, sorted; one null element where nothing is picked.

    The dialog-ID hash chooses among them: the plan has one choice for each.
    """
    sorted_ids = F.array_sort(F.array_distinct(brokers))
    nothing = F.array(F.lit(None).cast("string"))
    return F.when(is_balanced, sorted_ids).when(~is_balanced, nothing)
