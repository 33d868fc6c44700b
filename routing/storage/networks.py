"""The rules' view of a whole estate, from columns of its tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from routing.process.garbage import no_search_for_cycles
from routing.rules.estate import Instance, furnish
from routing.rules.network import Network
from routing.rules.requesting import Request
from routing.storage.columns import Columns, instances_of, routes_of, services_of
from routing.terms import BROKER_CONFIGURATION_SERVICE


def network_of(settings: Mapping[str, Columns], services: Collection[str]) -> Network:
    """All instances, and the requests on record, as far as messages to some services have to do with them.

    ``settings`` are columns of routes, databases, services, instances and, if there is one, route_requests.
    """
    listed = instances_of({key: settings[key] for key in ("instances", "databases")})
    instances = furnish_for(listed, settings, services)
    requests = settings.get("route_requests")
    return Network(instances, {} if requests is None else requests_of(requests.naming("service_name", services)))


def whole_network(settings: Mapping[str, Columns]) -> Network:
    """All instances with all that is known of each, and the requests on record; ``settings`` as `network_of`."""
    requests = settings.get("route_requests")
    return Network(instances_of(settings), {} if requests is None else requests_of(requests))


def furnish_for(
    instances: Mapping[str, Instance], settings: Mapping[str, Columns], services: Collection[str]
) -> dict[str, Instance]:
    """Listed instances with what messages to some services can have to do with: only that becomes objects."""
    with_routes = set(settings["routes"].values["instance_name"])
    listed = {name: replace(one, has_routes=name in with_routes) for name, one in instances.items()}
    names = {*services, None, "", BROKER_CONFIGURATION_SERVICE}
    holding = settings["services"].naming("name", names)
    routes = settings["routes"].naming("remote_service_name", names)
    with no_search_for_cycles():
        return furnish(listed, services_of(holding), routes_of(routes))


def requests_of(requests: Columns) -> dict[tuple[str, str, str], list[Request]]:
    """Requests by instance, database and service."""
    found: dict[tuple[str, str, str], list[Request]] = defaultdict(list)
    names = ("instance_name", "database_name", "service_name", "requested_at", "message_id", "ended_at")
    for instance, database, service, requested_at, message_id, ended_at in requests.rows(*names):
        found[instance, database, service].append(Request(requested_at, message_id, ended_at))
    return dict(found)
