"""Remedies for databases that take no messages: their owner is lost, or they are closed or read-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from routing.advice import statements
from routing.advice.broker_copies import MASTER
from routing.advice.remedy import AlteredDatabases, Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.trouble_catalogue import TRUST_RISK, TroubleEntry
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import join_words, named

ANOTHER_OWNER = "Give the database another owner: any valid login may own it, such as sa."
"""The action for a database whose owner is no login."""
_WRITE_RISK = "Somebody may have made the database read-only on purpose, as for a standby or an archive."
_SINGLE_RISK = "ROLLBACK IMMEDIATE ends the session that has the database for itself, and rolls back its work."


class _Recovery(NamedTuple):
    """How a database of one state comes online."""

    actions: tuple[str, ...]
    statement: str | None = None
    risk: str | None = None


_RESTORING = "RESTORING"
_LOOK_FIRST = _Recovery(
    (
        "Read why in the error log, such as a missing file, a full disk or damaged pages.",
        "Mend that and bring it online, or restore it from a backup.",
    ),
    "ALTER DATABASE {} SET ONLINE;",
)
_RECOVERIES: Mapping[str, _Recovery] = {
    "OFFLINE": _Recovery(("Find out who set it offline, and bring it online.",), "ALTER DATABASE {} SET ONLINE;"),
    _RESTORING: _Recovery(
        (
            "If it is a replica, as of log shipping or mirroring, let the route lead to the primary.",
            "If it is to take messages here, restore the last log backup and recover it.",
        ),
        "RESTORE DATABASE {} WITH RECOVERY;",
        "No further backup can be restored after the recovery, so log shipping to this database ends.",
    ),
    "RECOVERING": _Recovery(("Wait: SQL Server recovers it and then brings it online.",)),
    "SUSPECT": _Recovery(
        (
            "Read why in the error log, such as a missing file, a full disk or damaged pages.",
            "Restore it from a backup: SET ONLINE alone does not mend it.",
        )
    ),
}
"""The recovery for each state of a database. Others, such as RECOVERY_PENDING, need a look at the error log."""


def open_database(server: ServerEvidence, place: RemedyPlace) -> Remedy | None:
    """Return the remedy for a database that was exported as closed, read-only or in single-user mode."""
    facts = server.database(place.instance, place.database)
    if facts is None:
        return None
    at, shown = RemedyPlace(place.instance, MASTER), f"{named(place.database)} of {named(place.instance)}"
    if facts.mirroring_role == "MIRROR":
        partner = "" if facts.mirroring_partner is None else f", {named(facts.mirroring_partner)}"
        cause = f"{shown} is the mirror of a mirroring session, and only the principal takes messages."
        actions = (f"Let the route lead to the principal{partner}, with the mirror as MIRROR_ADDRESS.",)
        return Remedy(at, cause, actions, confidence=Confidence.CERTAIN)
    if facts.is_closed:
        cause = f"{shown} is {facts.state}, and takes no messages."
        return _bring_online(at, cause, facts.state or "", place.database)
    if facts.is_standby:
        cause = f"{shown} is a standby of log shipping, which is read-only and takes no messages."
        return _bring_online(at, cause, _RESTORING, place.database)
    opened = AlteredDatabases((place.database,), is_opening=True)
    if facts.is_read_only and not facts.is_in_group:
        cause = f"{shown} is read-only, and takes no messages."
        line = statements.alter_database(place.database, "READ_WRITE WITH NO_WAIT")
        return ready(at, cause, ("Make it writable.",), line, risk=_WRITE_RISK, altered=opened)
    if facts.user_access == "SINGLE_USER":
        cause = f"{shown} is in mode SINGLE_USER, in which Service Broker delivers nothing."
        line = statements.alter_database(place.database, "MULTI_USER WITH ROLLBACK IMMEDIATE")
        return ready(at, cause, ("Open it for everybody.",), line, risk=_SINGLE_RISK, altered=opened)
    return None


def _bring_online(at: RemedyPlace, cause: str, state: str, database: str | None) -> Remedy:
    recovery = _RECOVERIES.get(state, _LOOK_FIRST)
    if recovery.statement is None:
        return Remedy(at, cause, recovery.actions, confidence=Confidence.CERTAIN)
    name, altered = statements.identifier(database), AlteredDatabases((database,))
    line, risk = None if name is None else recovery.statement.format(name), recovery.risk
    return to_fill_in(at, cause, recovery.actions, line, risk=risk, confidence=Confidence.CERTAIN, altered=altered)


def open_holder(server: ServerEvidence, instance: str, service: str) -> Remedy | None:
    """Return the remedy for a database that is not online and may hold a service that no known one holds."""
    closed = server.closed_databases.get(instance, ())
    remedy = open_database(server, RemedyPlace(instance, closed[0])) if closed else None
    if remedy is None:
        return None
    more_databases = f" So are {join_words(map(named, closed[1:]))}." if closed[1:] else ""
    cause = f"{remedy.cause}{more_databases} Its services are not in these exports: it may hold {named(service)}."
    actions = (*remedy.actions, "If it does not hold the service, find the instance that does, and route there.")
    return replace(remedy.with_confidence_at_most(Confidence.TO_BE_CHECKED), cause=cause, actions=actions)


def open_key(server: ServerEvidence, place: RemedyPlace, entry: TroubleEntry) -> Remedy:
    """Advise how to create the master key of a database, or encrypt it by the service master key.

    ``entry`` has the words on the trouble.
    """
    has_key = server.has_master_key(place.instance, place.database or "")
    facts = server.database(place.instance, place.database)
    if has_key is None and facts is not None and facts.is_key_of_server:
        # It is encrypted by a service master key. After a restore this is the other server's key.
        has_key = True
    look = "SELECT name FROM sys.symmetric_keys WHERE name = N'##MS_DatabaseMasterKey##';"
    create = "CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'<password>';"
    encrypt = (
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = N'<password>';",
        "ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY;",
    )
    if has_key is None:
        which = (
            f"Look for the key in {named(place.database)}: use CREATE MASTER KEY if it is missing, else OPEN and"
            " ALTER MASTER KEY."
        )
        return to_fill_in(place, entry.cause, (*entry.actions, which), look, create, *encrypt)
    which = f"{named(place.database)} has {'a' if has_key else 'no'} master key."
    lines = encrypt if has_key else (create,)
    action = "Open the key, and encrypt it by the service master key." if has_key else "Create the key."
    actions = (action, *entry.actions[1:])
    return to_fill_in(place, f"{entry.cause} {which}", actions, *lines, confidence=Confidence.LIKELY)


def own_database(server: ServerEvidence, place: RemedyPlace) -> Remedy | None:
    """Return ALTER AUTHORIZATION for a database if its owner is not a login of the instance."""
    facts = server.database(place.instance, place.database)
    if facts is None or not facts.has_lost_owner:
        return None
    cause = (
        f"The owner of {named(place.database)} is no login of {named(place.instance)}, as after a restore or an"
        " attach. Service Broker cannot act in its name there (errors 15517, 15404, 33009)."
    )
    return give_to_sa(server, place, cause, (ANOTHER_OWNER,))


def give_to_sa(server: ServerEvidence, place: RemedyPlace, cause: str, actions: tuple[str, ...]) -> Remedy:
    """Advise ALTER AUTHORIZATION that gives a database to sa, by its name in this instance."""
    line = statements.own_database(place.database, server.find_sa(place.instance))
    return _alter(place, cause, actions, line)


def trust(place: RemedyPlace, cause: str, actions: tuple[str, ...]) -> Remedy:
    """Advise TRUSTWORTHY for a database."""
    return _alter(place, cause, actions, statements.alter_database(place.database, "TRUSTWORTHY ON"), TRUST_RISK)


def _alter(
    place: RemedyPlace, cause: str, actions: tuple[str, ...], line: str | None, risk: str | None = None
) -> Remedy:
    at_master, altered = RemedyPlace(place.instance, MASTER), AlteredDatabases((place.database,))
    return ready(at_master, cause, actions, line, risk=risk, confidence=Confidence.LIKELY, altered=altered)
