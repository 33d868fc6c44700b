"""What to do where the target cannot take a message: queue, owner, keys, broker, permissions."""

from __future__ import annotations

from routing.analysis.check import pasting
from routing.analysis.check.pasting import named
from routing.analysis.check.serving import MASTER, list_queues
from routing.analysis.check.status_facts import KnownPlace, ReportedStatus
from routing.analysis.check.stuck import PlacedRemedy, Remedy, ready, to_fill_in
from routing.analysis.differing import likeness
from routing.analysis.statuses import WORDS
from routing.rules.estate import Database, Instance, Kind
from routing.rules.locating import has_id
from routing.terms import MSDB

_UNKNOWN = "<database>"
_SCHEMA = "dbo."


def turn_queue_on(status: ReportedStatus) -> PlacedRemedy:
    """Return ALTER QUEUE in the target's database; the text has the queue's name, the exports the database's."""
    words, place = WORDS[status.trouble], status.find_target()
    queue = _queue(status)
    if place is None or place.database is None or queue is None:
        instance = status.instance if place is None else place.instance
        database = _UNKNOWN if place is None or place.database is None else place.database
        lines = (list_queues(status.service), f"ALTER QUEUE {queue or '[<schema>].[<queue>]'} WITH STATUS = ON;")
        where = "" if place is not None else " It is in the database that holds the service."
        return PlacedRemedy(instance, to_fill_in(f"{words}{where}", database, *lines))
    words += f" It is in {named(place.database)}."
    return PlacedRemedy(place.instance, ready(words, place.database, f"ALTER QUEUE {queue} WITH STATUS = ON;"))


def _queue(status: ReportedStatus) -> str | None:
    """The queue that the text names, as it is pasted; None where it names none."""
    names = status.quoted_names
    if not names:
        return None
    name, schema = names[0], ""
    if name.startswith(_SCHEMA):
        name, schema = name.removeprefix(_SCHEMA), "[dbo]."
    pasted = pasting.identifier(name)
    return None if pasted is None else f"{schema}{pasted}"


def give_owner(status: ReportedStatus) -> PlacedRemedy:
    """Return ALTER AUTHORIZATION for the target's database, else for the sender's."""
    words = WORDS[status.trouble]
    place = _database_in_text(status) or status.find_target()
    if place is None or place.database is None:
        words += (
            " Which database holds the service is not known from these exports; where it is another one, change"
        )
        words += " the owner of that as well."
        place = KnownPlace(status.instance, status.database)
    elif place != (status.instance, status.database):
        words += f" Where the text stays, do the same for {named(status.database)}, which sends."
    login = "[sa]"
    database = pasting.identifier(place.database)
    line = None if database is None else f"ALTER AUTHORIZATION ON DATABASE::{database} TO {login};"
    return PlacedRemedy(place.instance, ready(f"{words} Any valid login may own it; sa is one.", MASTER, line))


def make_master_key(status: ReportedStatus) -> PlacedRemedy:
    """Return how the master key is made, or opened and encrypted by the service master key."""
    place = _database_in_text(status) or KnownPlace(status.instance, status.database)
    return PlacedRemedy(place.instance, _master_key(WORDS[status.trouble], place))


def open_master_key(status: ReportedStatus) -> PlacedRemedy:
    """Return the same for the database in which a message could not be enqueued: the target's."""
    place = _database_in_text(status) or status.find_target()
    if place is None or place.database is None:
        place = KnownPlace(status.instance, status.database)
    return PlacedRemedy(place.instance, _master_key(WORDS[status.trouble], place))


def _master_key(words: str, place: KnownPlace) -> Remedy:
    words += f" In {named(place.database)}: CREATE MASTER KEY where the query finds none; else the other two."
    return to_fill_in(
        words,
        place.database or "",
        "SELECT name FROM sys.symmetric_keys WHERE name = N'##MS_DatabaseMasterKey##';",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'<password>';",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = N'<password>';",
        "ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY;",
    )


def _database_in_text(status: ReportedStatus) -> KnownPlace | None:
    """The database of the sender's instance that the text names; None where it names none that is known."""
    known = {*status.here.databases, status.database}
    found = [name for name in status.quoted_names if name in known]
    return KnownPlace(status.instance, found[-1]) if found else None


def grant_send(status: ReportedStatus) -> PlacedRemedy:
    """Return GRANT SEND in the target's database, to a user that somebody has to choose."""
    place = status.find_target()
    service = pasting.identifier(status.service)
    lines: list[str | None] = [None, None]
    if service is not None:
        lines = [f"GRANT SEND ON SERVICE::{service} TO {user};" for user in ("[<user>]", "[public]")]
    database = _UNKNOWN if place is None or place.database is None else place.database
    instance = status.instance if place is None else place.instance
    return PlacedRemedy(instance, to_fill_in(WORDS[status.trouble], database, *lines))


def enable_target_broker(status: ReportedStatus) -> PlacedRemedy:
    """Return ENABLE_BROKER of the target's database."""
    place = status.find_target()
    words = WORDS[status.trouble]
    if place is None or place.database is None:
        return PlacedRemedy(status.instance, Remedy(words))
    return PlacedRemedy(place.instance, ready(words, MASTER, pasting.enable_broker(place.database)))


def enable_own_broker(status: ReportedStatus) -> PlacedRemedy:
    """Return ENABLE_BROKER of the sending database."""
    return PlacedRemedy(
        status.instance, ready(WORDS[status.trouble], MASTER, pasting.enable_broker(status.database))
    )


def enable_msdb_broker(status: ReportedStatus) -> PlacedRemedy:
    """Return ENABLE_BROKER of msdb."""
    words = f"{WORDS[status.trouble]} Stop SQL Server Agent for the while."
    return PlacedRemedy(status.instance, ready(words, MASTER, pasting.enable_broker(MSDB)))


def find_lack(status: ReportedStatus) -> PlacedRemedy:
    """Return what the destination lacks, looked up in its exports; what to look for where these are not known."""
    target = status.find_target_instance()
    if target is None or target.is_only_addressed:
        words = f"{_to(status)}{WORDS[status.trouble]} Its exports beside these would tell which."
        return PlacedRemedy(status.instance if target is None else target.name, Remedy(words))
    return PlacedRemedy(target.name, _find_lack(status, target))


def _to(status: ReportedStatus) -> str:
    return "" if status.address is None else f"At {named(status.address)}: "


def _find_lack(status: ReportedStatus, target: Instance) -> Remedy:
    head = f"{named(target.name)} does not take the messages."
    msdb = target.databases.get(MSDB)
    if msdb is not None and not msdb.is_enabled:
        words = f"{head} The broker of its msdb is off, so nothing that arrives is routed. Stop SQL Server Agent"
        return ready(f"{words} for the while.", MASTER, pasting.enable_broker(MSDB))
    holders = target.holders_of(status.service)
    if not holders:
        return _lacks_service(status, target, head)
    broker = _bound_to(status)
    fitting = [holder for holder in holders if has_id(holder, broker)]
    if not fitting:
        return Remedy(
            f"{head} Its {named(holders[0].name)} holds service {named(status.service)} and has the broker id"
            f" {named(holders[0].broker)}; the messages are bound to {named(broker)}. Correct the route's broker"
            " instance, END CONVERSATION, and begin the dialogs anew."
        )
    enabled = [holder for holder in fitting if holder.is_enabled]
    if not enabled:
        words = f"{head} The broker of its {named(fitting[0].name)}, which holds the service, is off."
        return ready(words, MASTER, pasting.enable_broker(fitting[0].name))
    if broker is None and _has_no_way_in(status, target):
        words = f"{head} No route of its msdb leads to a service of its own, as AutoCreatedLocal does."
        return ready(words, MSDB, "CREATE ROUTE [AutoCreatedLocal] WITH ADDRESS = N'LOCAL';")
    return _look_further(status, enabled[0], head)


def _lacks_service(status: ReportedStatus, target: Instance, head: str) -> Remedy:
    near = [held for held in target.holders if likeness(held) == likeness(status.service)]
    if near:
        place = target.holders_of(near[0])[0].name
        return Remedy(
            f"{head} Its {named(place)} holds service {named(near[0])}; the messages are for"
            f" {named(status.service)}. Names are compared exactly, and a service cannot be renamed: BEGIN DIALOG"
            " and the route must use its name, or a service of that spelling be created there."
        )
    led_on = target.routes.get(MSDB, {}).get(status.service, ())
    if led_on:
        return Remedy(
            f"{head} No database of it holds service {named(status.service)}, and route {named(led_on[0].name)} of"
            f" its msdb leads to {named(led_on[0].address)}: see that this is right, and that forwarding is on."
        )
    return Remedy(
        f"{head} No database of it that is in these exports holds service {named(status.service)}: correct the"
        " address of the route, or create the service there; names are compared exactly."
    )


def _bound_to(status: ReportedStatus) -> str | None:
    return status.broker if status.verdict is None else status.verdict.broker_instance


def _has_no_way_in(status: ReportedStatus, target: Instance) -> bool:
    """Return True if the routes of msdb are known and none of them leads to services of the instance."""
    if not status.evidence.was_exported("routes", target.name, MSDB):
        return False
    routes = target.routes.get(MSDB, {})
    return not any(
        route.kind is Kind.LOCAL for service in (None, status.service) for route in routes.get(service, ())
    )


def _look_further(status: ReportedStatus, holder: Database, head: str) -> Remedy:
    return to_fill_in(
        f"{head} By these exports it has all that they need: {named(holder.name)} holds the service and its broker"
        " is on. There, see that the database is online, that the queue is on, and what the error log says.",
        holder.name,
        list_queues(status.service),
    )
