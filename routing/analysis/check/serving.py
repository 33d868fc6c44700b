"""Remedies that change no route: brokers, services, queues, the endpoint, and the dialogs themselves.

Each function is one case: None where it is not the one at hand.
"""

from __future__ import annotations

from routing.analysis.check import pasting
from routing.analysis.check.near import SERVICE
from routing.analysis.check.pasting import named
from routing.analysis.check.stuck import Remedy, Stuck, ready, to_fill_in
from routing.analysis.differing import OTHER_BROKER
from routing.analysis.explain.wording import advice
from routing.rules.locating import has_id
from routing.terms import MSDB

MASTER = "master"
_NOT_KNOWN = "Whether forwarding is on is not known, and it is taken as off."


def enable_scope(stuck: Stuck) -> Remedy:
    """The broker of the database whose routes are searched is off."""
    words = f"The broker of {named(stuck.last.scope)} is off: its routes are not searched."
    return _enable(stuck, stuck.last.scope, words)


def enable_target(stuck: Stuck) -> Remedy | None:
    """The service is here, and the brokers of all databases that hold it are off."""
    fitting = stuck.fitting_here
    if not fitting:
        return None
    own = [holder for holder in fitting if holder.name == stuck.database]
    first = (own or fitting)[0].name
    words = f"The service is in {named(first)}, whose broker is off."
    return _enable(stuck, first, words)


def _enable(stuck: Stuck, database: str, words: str) -> Remedy:
    """ENABLE_BROKER, which keeps the id; not where another database of the instance has it."""
    known = stuck.here.databases
    broker = known[database].broker if database in known else None
    twins = [each.name for each in known.values() if each.is_enabled and each.broker == broker]
    if twins and broker is not None:
        words += (
            f" It cannot be enabled while {named(min(twins))} has the same id (error 9772): one is a copy of the"
            " other, and only the one that dialogs are meant for may have it."
        )
        return Remedy(words)
    words += " The broker is enabled while nobody else is in the database: have others leave it"
    words += ", and stop SQL Server Agent for the while." if database == MSDB else "."
    return ready(words, MASTER, pasting.enable_broker(database))


def name_spellings(stuck: Stuck) -> Remedy | None:
    """A service is spelt nearly so: a service cannot be renamed, whoever sends has to use its name."""
    near = [miss for miss in stuck.near if miss.what == SERVICE and miss.service != stuck.service]
    if not near:
        return None
    miss = near[0]
    return Remedy(
        f"The messages are for {named(stuck.service)}; the service in {named(miss.database)} of instance"
        f" {named(miss.instance)} is called {named(miss.service)}. Names are compared exactly and a service cannot"
        " be renamed: BEGIN DIALOG, and the route, must use its name, or a service of that spelling be created."
    )


def begin_anew(stuck: Stuck) -> Remedy | None:
    """The dialog is bound to an id that no known database with the service has any more."""
    near = [miss for miss in stuck.near if miss.what == SERVICE and miss.differences == (OTHER_BROKER,)]
    if not near or stuck.last.pick is not None:
        return None
    miss = near[0]
    return Remedy(
        f"The dialogs are bound to broker instance {named(stuck.broker)}; {named(miss.database)} of instance"
        f" {named(miss.instance)}, which holds the service, has the id {named(miss.broker)}. A dialog keeps the id"
        " that it is bound to: END CONVERSATION, and begin them anew without the old id."
    )


def create_service(stuck: Stuck) -> Remedy | None:
    """The database that the messages are bound to is here, and does not hold the service."""
    broker = stuck.last.known_broker
    bound = [each.name for each in stuck.here.databases.values() if broker is not None and has_id(each, broker)]
    if not bound:
        return None
    words = (
        f"The messages are bound to {named(min(bound))}, which does not hold service {named(stuck.service)}:"
        " create it, on a queue and with a contract that must be found out first."
    )
    name = pasting.identifier(stuck.service)
    line = None if name is None else f"CREATE SERVICE {name} ON QUEUE [<schema>].[<queue>] ([<contract>]);"
    return to_fill_in(words, min(bound), line)


def enable_forwarding(stuck: Stuck) -> Remedy:
    """A route of msdb leads on, and forwarding is off at the endpoint, whose name no view that is read tells."""
    forwarding = "Forwarding is off." if stuck.here.is_forwarding_known else _NOT_KNOWN
    first = f"Route {named(stuck.verdict.rerouted_from)} of {named(stuck.database)} leads to this very instance"
    if stuck.database is None:
        first = "The messages come from the network"
    words = (
        f"{first}, and from there route {named(stuck.verdict.route_name)} of {named(MSDB)} leads on. {forwarding}"
        " Enable it on the Service Broker endpoint, whose name must be found out first, or correct the routes."
    )
    return to_fill_in(
        words,
        MASTER,
        "SELECT name FROM sys.service_broker_endpoints;",
        "ALTER ENDPOINT [<endpoint>] FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED);",
    )


def look_at_queue(stuck: Stuck) -> Remedy:
    """The routing is right; the target queue, whose name must be found out first, may be disabled."""
    where = stuck.verdict.destination_database or stuck.scope
    service = pasting.literal(stuck.service)
    query = "SELECT SCHEMA_NAME(q.schema_id), q.name, q.is_receive_enabled, q.is_enqueue_enabled"
    query += (
        " FROM sys.service_queues AS q JOIN sys.services AS s ON s.service_queue_id = q.object_id WHERE s.name = "
    )
    return to_fill_in(
        f"{advice(stuck.verdict.reason)} It is in {named(where)}.",
        where,
        None if service is None else f"{query}{service};",
        "ALTER QUEUE [<schema>].[<queue>] WITH STATUS = ON;",
    )


def say(stuck: Stuck) -> Remedy:
    """No statement helps."""
    return Remedy(advice(stuck.verdict.reason) or "")
