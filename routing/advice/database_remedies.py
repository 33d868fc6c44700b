"""Remedies for databases that take no messages: their owner is lost, or they are closed or read-only."""

from __future__ import annotations

from dataclasses import replace

from routing.advice import statements
from routing.advice.broker_copies import MASTER
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import join_words, named

_SINGLE_USER = "SINGLE_USER"
_WRITE_RISK = "Somebody may have made the database read-only on purpose, as for a standby or an archive."
_SINGLE_RISK = "ROLLBACK IMMEDIATE ends the session that has the database for itself, and rolls back its work."


def open_database(server: ServerEvidence, place: RemedyPlace) -> Remedy | None:
    """Return the remedy for a database that was exported as closed, read-only or in single-user mode."""
    facts, name = server.database(place.instance, place.database), statements.identifier(place.database)
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
        line = None if name is None else f"ALTER DATABASE {name} SET ONLINE;"
        action = "Find out why, and bring it online: a database that is RESTORING needs RESTORE … WITH RECOVERY."
        return to_fill_in(at, cause, (action,), line, confidence=Confidence.CERTAIN)
    if facts.is_read_only and not facts.is_in_group:
        cause = f"{shown} is read-only, and takes no messages."
        line = None if name is None else f"ALTER DATABASE {name} SET READ_WRITE WITH NO_WAIT;"
        return ready(at, cause, ("Make it writable.",), line, risk=_WRITE_RISK)
    if facts.user_access == _SINGLE_USER:
        cause = f"{shown} is in mode SINGLE_USER, in which Service Broker delivers nothing."
        line = None if name is None else f"ALTER DATABASE {name} SET MULTI_USER WITH ROLLBACK IMMEDIATE;"
        return ready(at, cause, ("Open it for everybody.",), line, risk=_SINGLE_RISK)
    return None


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


def own_database(server: ServerEvidence, place: RemedyPlace) -> Remedy | None:
    """Return ALTER AUTHORIZATION for a database whose owner is not a login of the instance."""
    facts, name = server.database(place.instance, place.database), statements.identifier(place.database)
    if facts is None or not facts.has_lost_owner:
        return None
    cause = (
        f"The owner of {named(place.database)} is no login of {named(place.instance)}, as after a restore or an"
        " attach. Service Broker cannot act in its name there (errors 15517, 15404, 33009)."
    )
    line = None if name is None else f"ALTER AUTHORIZATION ON DATABASE::{name} TO [sa];"
    actions = ("Give the database another owner: any valid login may own it, such as sa.",)
    return ready(RemedyPlace(place.instance, MASTER), cause, actions, line, confidence=Confidence.LIKELY)
