"""Remedies that change no route: brokers, services, queues, the endpoint, and the dialogs themselves.

Each function is one case: None where it is not the one at hand.
"""

from __future__ import annotations

from routing.advice import statements
from routing.advice.reasons import advice
from routing.advice.remedy import MessageRemedy, PlacedRemedy, in_words, ready, to_fill_in
from routing.advice.stuck_groups import StuckGroup
from routing.cases.near_misses import SERVICE
from routing.render.phrases import named
from routing.rules import text
from routing.rules.estate import Database, SqlInstance
from routing.rules.locating import has_id
from routing.rules.text import OTHER_BROKER
from routing.terms import MSDB

# What to do where a dialog is over: its other end is gone, and nobody will answer.


QUERY_NOTIFICATION = "sqlquerynotificationservice"
EVENT_NOTIFICATION = "eventnotificationservice"
# WITH CLEANUP, since the other side does not answer any more.
_END_ALL = (
    "DECLARE @handle uniqueidentifier;",
    "WHILE 1 = 1",
    "BEGIN",
    "    SET @handle = NULL;",
    "    SELECT TOP (1) @handle = conversation_handle FROM sys.conversation_endpoints WHERE far_service = {};",
    "    IF @handle IS NULL BREAK;",
    "    END CONVERSATION @handle WITH CLEANUP;",
    "END;",
)


def end_conversations(words: str, database: str, service: str) -> MessageRemedy:
    """Advise how to find the conversations with a service, and end one of them."""
    name = statements.literal(service)
    query = None
    if name is not None:
        query = (
            "SELECT conversation_handle, state_desc, far_broker_instance FROM sys.conversation_endpoints"
            f" WHERE far_service = {name};"
        )
    return to_fill_in(words, database, query, "END CONVERSATION '<conversation_handle>' WITH CLEANUP;")


def end_dead_dialog(database: str, service: str) -> MessageRemedy | None:
    """Advise on messages for a notification service that is gone; None for any other service."""
    name = service.casefold()
    if name.startswith(QUERY_NOTIFICATION):
        words = (
            f"A client of query notifications (SqlDependency) made service {named(service)} for itself, and the"
            " service is dropped when the client goes: nobody waits for these messages. End the dialogs, and do"
            " not create the service. A client that calls SqlDependency.Stop leaves none."
        )
        literal = statements.literal(service)
        lines = [None if literal is None else line.replace("{}", literal) for line in _END_ALL]
        return ready(words, database, *lines)
    if is_of_event_notifications(service):
        return make_event_notification(
            "These are answers to an event notification that is gone", database, service
        )
    return None


def is_of_event_notifications(service: str | None) -> bool:
    """Return True if a service is the one from which SQL Server sends event notifications."""
    return service is not None and service.casefold().endswith(EVENT_NOTIFICATION)


def make_event_notification(words: str, database: str, service: str) -> MessageRemedy:
    """Advise how to create an event notification anew, and end its old dialogs."""
    words += (
        ", or that has another broker instance than the target's database has now. DROP EVENT NOTIFICATION and"
        " CREATE EVENT NOTIFICATION make it anew, with the broker instance of today; then end the old dialogs. Do"
        " not create a service for it."
    )
    return end_conversations(words, database, service)


MASTER = "master"
_TWO_WAYS = "One of the two ways:"
_NOT_KNOWN = "whether forwarding is on is not known, and it is taken as off"


def enable_scope(stuck: StuckGroup) -> MessageRemedy:
    """Return ENABLE_BROKER for the database whose routes are searched, whose broker is off."""
    words = f"The broker of {named(stuck.last.scope)} is off: its routes are not searched."
    return enable_database(stuck.here, stuck.last.scope, words)


def enable_target(stuck: StuckGroup) -> MessageRemedy | None:
    """Return ENABLE_BROKER for a database that holds the service, where the brokers of all are off."""
    fitting = stuck.fitting_here
    if not fitting:
        return None
    in_own_database = [holder for holder in fitting if holder.name == stuck.database]
    first = (in_own_database or fitting)[0].name
    words = f"The service is in {named(first)}, whose broker is off."
    return enable_database(stuck.here, first, words)


def enable_database(instance: SqlInstance, database: str, words: str) -> MessageRemedy:
    """Return ENABLE_BROKER, which keeps the id; not where another database of the instance has it."""
    twins = find_twins(instance, database)
    on = [twin.name for twin in twins if twin.is_enabled]
    if on:
        words += (
            f" It cannot be enabled while {named(min(on))} has the same id (error 9772): one is a copy of the"
            " other, and only the one that dialogs are meant for may have it. A new id ends all dialogs of the"
            " database that gets it."
        )
        statement = tell_twins_apart(instance, database)
        return in_words(words) if statement is None else MessageRemedy(words, statement, lead=_TWO_WAYS)
    if twins:
        words += (
            f" {named(min(twin.name for twin in twins))} has the same id (a copy): enable the broker of one of"
            " them alone, and NEW_BROKER on the copy, which ends all its dialogs (error 9772 else)."
        )
    words += " The broker is enabled while nobody else is in the database: have others leave it"
    words += ", and stop SQL Server Agent for the while." if database == MSDB else "."
    return ready(words, MASTER, statements.enable_broker(database))


def find_twins(instance: SqlInstance, database: str) -> list[Database]:
    """Return the other databases of an instance that have the broker instance of one."""
    databases = instance.databases
    broker = databases[database].broker if database in databases else None
    return [
        each
        for each in databases.values()
        if broker is not None and each.broker == broker and each.name != database
    ]


def part_copies(stuck: StuckGroup, arrived: str) -> list[PlacedRemedy]:
    """Return the remedies for an acknowledgement that another database than the sender's gets, ``arrived``.

    Both have the same broker instance, and which of them is the copy no view tells. So there is a remedy for each.
    """
    if stuck.back_to is None:
        raise ValueError("an acknowledgement goes back to a database")
    instance, database = stuck.back_to
    words = (
        f"The acknowledgement is delivered to {named(arrived)} of instance {named(stuck.instance)}, which has the"
        f" broker instance of the database that sent, {named(database)} of instance {named(instance)}. One of the"
        " two is a copy: give it another broker instance, which ends all its dialogs."
    )
    if instance == stuck.instance:
        statement = tell_twins_apart(stuck.here, arrived)
        remedy = in_words(words) if statement is None else MessageRemedy(words, statement, lead=_TWO_WAYS)
        return [PlacedRemedy(instance, remedy)]
    if text.collated(database) == text.collated(arrived):
        words += " Replicas of one database share it: then let the route back lead to their listener."
    copies = ((stuck.instance, arrived), (instance, database))
    return [PlacedRemedy(place, _renew_broker(words, name)) for place, name in copies]


def _renew_broker(words: str, database: str) -> MessageRemedy:
    """Return NEW_BROKER for a database that may be a copy, as a comment."""
    lead = f"If {named(database)} here is the copy:"
    return to_fill_in(words, MASTER, statements.new_broker(database), lead=lead)


def tell_twins_apart(instance: SqlInstance, database: str) -> str | None:
    """Return two ways to give one of two databases a new broker instance, as comments; None without a twin.

    Which of them is the copy no view tells.
    """
    twins = find_twins(instance, database)
    if not twins:
        return None
    twin = min(twins, key=lambda each: (not each.is_enabled, each.name)).name
    names = statements.identifier(database), statements.identifier(twin)
    lines = (
        f"{names[0]} is the copy, whose dialogs may end:",
        statements.new_broker(database),
        f"{names[1]} is the copy, whose dialogs may end:",
        statements.new_broker(twin),
        statements.enable_broker(database),
    )
    return statements.as_comment(statements.in_database(MASTER, lines))


def name_spellings(stuck: StuckGroup) -> MessageRemedy | None:
    """Return the remedy where a service is spelt nearly so: it cannot be renamed, so senders use its name."""
    near = [miss for miss in stuck.near if miss.what == SERVICE and miss.service != stuck.service]
    if not near:
        return None
    miss = near[0]
    return MessageRemedy(
        f"The messages are for {named(stuck.service)}; the service in {named(miss.database)} of instance"
        f" {named(miss.instance)} is called {named(miss.service)}. Names are compared exactly and a service cannot"
        " be renamed: BEGIN DIALOG, and the route, must use its name, or a service of that spelling be created."
    )


def begin_anew(stuck: StuckGroup) -> MessageRemedy | None:
    """Advise to begin dialogs anew that are bound to a broker instance which no known database has."""
    near = [miss for miss in stuck.near if miss.what == SERVICE and miss.differences == (OTHER_BROKER,)]
    if not near or stuck.last.pick is not None:
        return None
    miss = near[0]
    return MessageRemedy(
        f"The dialogs are bound to broker instance {named(stuck.broker)}; {named(miss.database)} of instance"
        f" {named(miss.instance)}, which holds the service, has {named(miss.broker)}. A dialog keeps the one that"
        " it is bound to: END CONVERSATION, and begin them anew without it."
    )


def notify_anew(stuck: StuckGroup) -> MessageRemedy | None:
    """Advise how to create an event notification anew whose target is gone."""
    if stuck.broker is None or stuck.last.pick is not None or not is_of_event_notifications(stuck.from_service):
        return None
    words = (
        f"SQL Server sends these for an event notification to service {named(stuck.service)} that nothing holds"
    )
    return make_event_notification(words, stuck.database or stuck.scope, stuck.service)


def end_refused(stuck: StuckGroup) -> MessageRemedy | None:
    """Advise how to end dialogs bound to a database of the instance without the service."""
    broker = stuck.last.known_broker
    bound_databases = [
        each.name for each in stuck.here.databases.values() if broker is not None and has_id(each, broker)
    ]
    if not bound_databases:
        return None
    words = (
        f"The messages are bound to {named(min(bound_databases))}, which does not hold service"
        f" {named(stuck.service)}: SQL Server ends such a dialog with error 8490. End it here too and begin it"
        " anew, without it, where there is more to say; a service that is created now does not bring it back."
    )
    return end_conversations(words, stuck.database or stuck.scope, stuck.service)


def end_dead(stuck: StuckGroup) -> MessageRemedy | None:
    """Advise how to end dialogs with a service of notifications whose client is gone."""
    return end_dead_dialog(stuck.database or stuck.scope, stuck.service)


def enable_forwarding(stuck: StuckGroup) -> MessageRemedy:
    """Advise to enable forwarding on the endpoint, whose name no view that is read tells."""
    forwarding = "forwarding is off" if stuck.here.is_forwarding_known else _NOT_KNOWN
    first = f"Route {named(stuck.verdict.rerouted_from)} of {named(stuck.database)} leads to this very instance"
    if stuck.database is None:
        first = "The messages come from the network"
    words = (
        f"{first}, and from there route {named(stuck.verdict.route_name)} of {named(MSDB)} leads on; {forwarding}."
        " Enable it on the Service Broker endpoint, whose name must be found out first, or correct the routes."
    )
    return to_fill_in(
        words,
        MASTER,
        "SELECT name FROM sys.service_broker_endpoints;",
        "ALTER ENDPOINT [<endpoint>] FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED);",
    )


def look_at_queue(stuck: StuckGroup) -> MessageRemedy:
    """Return the routing is right; the target queue, whose name must be found out first, may be disabled."""
    where = stuck.verdict.destination_database or stuck.scope
    return to_fill_in(
        f"{advice(stuck.verdict.reason)} It is in {named(where)}.",
        where,
        list_queues(stuck.service),
        "ALTER QUEUE [<schema>].[<queue>] WITH STATUS = ON;",
    )


def list_queues(service: str) -> str | None:
    """Return the query for the queue of a service; None where its name cannot be pasted."""
    name = statements.literal(service)
    query = "SELECT SCHEMA_NAME(q.schema_id), q.name, q.is_receive_enabled, q.is_enqueue_enabled"
    query += (
        " FROM sys.service_queues AS q JOIN sys.services AS s ON s.service_queue_id = q.object_id WHERE s.name = "
    )
    return None if name is None else f"{query}{name};"


def say(stuck: StuckGroup) -> MessageRemedy:
    """Return words alone, where no statement helps."""
    return MessageRemedy(advice(stuck.verdict.reason) or "")
