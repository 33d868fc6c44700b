"""What to do where the target cannot take a message: queue, owner, keys, broker, permissions."""

from __future__ import annotations

from routing.features.check import pasting
from routing.features.check.pasting import named
from routing.features.check.serving import MASTER, enable_database, list_queues
from routing.features.check.status_facts import KnownPlace, ReportedStatus
from routing.features.check.stuck_groups import MessageRemedy, PlacedRemedy, ready, to_fill_in
from routing.features.status_meanings import WORDS
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
    """Return the queue that the text names, as it is pasted; None where it names none."""
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
    """Advise how to create the master key, or open it and encrypt it by the service master key."""
    place = _database_in_text(status) or KnownPlace(status.instance, status.database)
    return PlacedRemedy(place.instance, _master_key(WORDS[status.trouble], place))


def open_master_key(status: ReportedStatus) -> PlacedRemedy:
    """Advise on the master key of the database in which a message could not be enqueued: the target's."""
    place = _database_in_text(status) or status.find_target()
    if place is None or place.database is None:
        place = KnownPlace(status.instance, status.database)
    return PlacedRemedy(place.instance, _master_key(WORDS[status.trouble], place))


def _master_key(words: str, place: KnownPlace) -> MessageRemedy:
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
    """Return the database of the sender's instance that the text names; None where none is known."""
    known_databases = {*status.here.databases, status.database}
    quoted_databases = [name for name in status.quoted_names if name in known_databases]
    return KnownPlace(status.instance, quoted_databases[-1]) if quoted_databases else None


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
        return PlacedRemedy(status.instance, MessageRemedy(words))
    target = status.network.instances[place.instance]
    return PlacedRemedy(place.instance, enable_database(target, place.database, words))


def enable_own_broker(status: ReportedStatus) -> PlacedRemedy:
    """Return ENABLE_BROKER of the sending database."""
    return PlacedRemedy(status.instance, enable_database(status.here, status.database, WORDS[status.trouble]))


def enable_msdb_broker(status: ReportedStatus) -> PlacedRemedy:
    """Advise to enable the broker of msdb."""
    return PlacedRemedy(status.instance, enable_database(status.here, MSDB, WORDS[status.trouble]))


def look_at_target(status: ReportedStatus) -> PlacedRemedy:
    """Advise what to look at where the target takes no messages, and no hop is known to fail."""
    target, place = status.find_target_instance(), status.find_target()
    words = "" if status.address is None else f"At {named(status.address)}: "
    words += WORDS[status.trouble]
    if target is None or place is None or place.database is None:
        words += " Its exports beside these would tell which."
        return PlacedRemedy(status.instance if target is None else target.name, MessageRemedy(words))
    words += (
        f" By these exports {named(target.name)} has all that they need, in {named(place.database)}: see that the"
        " database is online, that the queue is on, and what the error log there says."
    )
    return PlacedRemedy(target.name, to_fill_in(words, place.database, list_queues(status.service)))
