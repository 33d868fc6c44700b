"""The estates of the source documents, small enough to follow message by message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from routing.demo import dynamic_routing as dynamic
from routing.demo import multiple_routes as multiple
from routing.demo import routing_examples as examples
from routing.demo.drafting import EstateDraft, Tables

_EXAMPLES = "Service Broker Routing Examples"
_MULTIPLE = "Using multiple routes in Service Broker"
_DYNAMIC = "Service Broker Dynamic Routing"
_ROUTES = "Routes"

_ESTATES: tuple[tuple[str, str, str, Callable[[str], EstateDraft]], ...] = (
    ("example-1", "Only AutoCreatedLocal", _EXAMPLES, examples.default_configuration),
    ("example-2", "A route that names a service", _EXAMPLES, examples.specific_service),
    ("example-3", "A route with a mirror", _EXAMPLES, examples.mirrored_database),
    ("example-4", "One address for the rest", _EXAMPLES, examples.all_external_services),
    ("example-5", "Two broker instances of a service", _EXAMPLES, examples.balanced_service),
    ("example-6", "Forwarding one service", _EXAMPLES, examples.forwarding_one_service),
    ("example-7", "Forwarding what is not here", _EXAMPLES, examples.forwarding_all_services),
    ("load-balancing", "Load balancing by dialog id", _MULTIPLE, multiple.load_balancing),
    ("unfair", "A doubled route, the same share", _MULTIPLE, multiple.unfair_load_balancing),
    ("high-availability", "Two gateways, one target", _MULTIPLE, multiple.high_availability),
    ("together", "Balanced and highly available", _MULTIPLE, multiple.both_together),
    ("two-open-routes", "Open routes to two instances", _MULTIPLE, multiple.two_open_routes),
    ("another-id", "Another broker's id in msdb", _MULTIPLE, multiple.another_brokers_id),
    ("dynamic-routing", "A route that is asked for", _DYNAMIC, dynamic.dynamic_routing),
    ("parts-of-a-route", "Service, broker id and address", _ROUTES, examples.parts_of_a_route),
)


@dataclass(frozen=True)
class DemoEstate:
    """The input tables of one estate: rows by table name, every row with every column."""

    title: str
    source: str
    tables: Tables


def document_estates() -> tuple[DemoEstate, ...]:
    """Return the estates of the documents; no two share an instance, so that all resolve in one run.

    Instance names start with the estate's own, such as ``example-2/host1``.
    """
    return tuple(
        DemoEstate(f"{name}: {title}", source, build(name).tables) for name, title, source, build in _ESTATES
    )
