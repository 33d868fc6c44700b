"""Remedies for brokers that are off, and for databases that share a broker instance because one is a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from routing.advice import statements
from routing.advice.remedy import AlteredDatabases, Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.status_meanings import StatusTrouble
from routing.advice.stuck_messages import AdviceEstate, StuckMessage
from routing.advice.trouble_catalogue import ENABLE_RISK, NEW_BROKER_RISK, STATUSES
from routing.render.phrases import join_words, named, quote_log
from routing.rules import text
from routing.rules.estate import Database, SqlInstance
from routing.terms import MSDB, MatchingStep

MASTER = "master"
_ENABLE_AT_ONCE, NEW_BROKER = "ENABLE_BROKER WITH ROLLBACK IMMEDIATE", "NEW_BROKER WITH ROLLBACK IMMEDIATE"
_OTHER_ID = "does not match the one in sys.databases"
_LEAVE_RISK = (
    "Until it is back the database has no replica to fail over to. ROLLBACK IMMEDIATE rolls back the open"
    " transactions of everybody in the database and ends their sessions."
)
COPY_RISK = f"{NEW_BROKER_RISK} DISABLE_BROKER stops its messages, and also rolls back the open transactions."
"""The risk of separating a copy of a database from the other one."""


def enable_scope(stuck: StuckMessage) -> Remedy:
    """Advise ENABLE_BROKER for the searched database, which has its broker off."""
    scope = stuck.last.scope
    cause = f"The broker of {named(scope)} is off: its routes are not searched."
    return enable_database(stuck.estate, stuck.sql_instance, scope, cause)


def enable_target(stuck: StuckMessage) -> Remedy | None:
    """Advise ENABLE_BROKER for a database that holds the service, if the brokers of all are off."""
    fitting = stuck.fitting_here
    if not fitting:
        return None
    in_own_database = [holder for holder in fitting if holder.name == stuck.database]
    first = (in_own_database or fitting)[0].name
    return enable_database(
        stuck.estate, stuck.sql_instance, first, f"The service is in {named(first)}, whose broker is off."
    )


def enable_database(estate: AdviceEstate, instance: SqlInstance, database: str, cause: str) -> Remedy:
    """Advise ENABLE_BROKER, which keeps the id, or another remedy if SQL Server refuses it.

    SQL Server refuses it if another database of the instance has the id, for a database in an availability group
    or a mirroring session, and on a Managed Instance.
    """
    place = RemedyPlace(instance.name, MASTER)
    refused = _enable_later(estate, place, database, cause)
    if refused is not None:
        return refused
    twins = find_twins(estate, instance, database)
    on = [twin.name for twin in twins if twin.is_enabled]
    if on:
        one_of_two = (
            (
                f"The broker cannot be enabled while {named(min(on))} has the same id (error 9772): one of the two"
                " is a copy, and only the one that dialogs are meant for may have the id."
            ),
            "Give the copy a new id, or disable its broker.",
        )
        return part_twins(estate, instance, database, cause, one_of_two)
    agent = ": stop SQL Server Agent for that time." if database == MSDB else "."
    actions = [f"Enable it while nobody else uses {named(database)}{agent}"]
    if twins:
        twin = named(min(twin.name for twin in twins))
        actions.append(f"Leave the broker of {twin} off or give it NEW_BROKER: it has the same id (error 9772).")
    at_once = statements.alter_database(database, _ENABLE_AT_ONCE)
    if at_once is not None:
        actions.append(
            f"If it fails because others use the database (error 5070), run {at_once.rstrip(';')}: that rolls back"
            " their open transactions and ends their sessions."
        )
    line, altered = statements.enable_broker(database), AlteredDatabases((database,))
    remedy = ready(place, cause, actions, line, risk=ENABLE_RISK, altered=altered)
    logged = estate.server.log_lines(instance.name, _OTHER_ID)
    refused_before = [line for line in logged if f'"{text.collated(database)}"' in text.collated(line)]
    return or_renew(remedy, quote_log(instance.name, refused_before[0])) if refused_before else remedy


def or_renew(remedy: Remedy, *quotes: str) -> Remedy:
    """Add NEW_BROKER to a remedy with ENABLE_BROKER, in case the id in the database is another one."""
    if not remedy.is_complete:
        return remedy
    entry = STATUSES[StatusTrouble.ID_DIFFERS]
    actions = tuple(dict.fromkeys((*remedy.actions, *quotes, *entry.actions)))
    return replace(remedy, actions=actions, risk=f"{ENABLE_RISK} {entry.risk}", confidence=Confidence.LIKELY)


def _enable_later(estate: AdviceEstate, place: RemedyPlace, database: str, cause: str) -> Remedy | None:
    """Advise how to enable the broker of a database that must first leave its group or session.

    Return None if nothing prevents ENABLE_BROKER.
    """
    if estate.server.is_managed(place.instance):
        managed = ("ENABLE_BROKER is not supported there: restore the database from one whose broker is on.",)
        return Remedy(place, f"{cause} {named(place.instance)} is a Managed Instance.", managed)
    facts = estate.server.database(place.instance, database)
    if facts is None or not (facts.is_in_group or facts.is_mirrored):
        return None
    if facts.is_in_group:
        feature, name = "an availability group", statements.identifier(database)
        removal = None if name is None else f"ALTER AVAILABILITY GROUP [<group>] REMOVE DATABASE {name};"
        rejoining = None if name is None else f"ALTER AVAILABILITY GROUP [<group>] ADD DATABASE {name};"
        joins = "Then restore it on each secondary and join it there, or let automatic seeding do so."
    else:
        feature = "a mirroring session"
        removal = statements.alter_database(database, "PARTNER OFF")
        rejoining = statements.alter_database(database, "PARTNER = N'<TCP://partner:port>'")
        joins = "Then restore it on the partner WITH NORECOVERY, and set the partner on both sides."
    actions = (
        f"{named(database)} is in {feature}, where SQL Server refuses ENABLE_BROKER (error 1468).",
        "On the primary, take it out, enable the broker, and put it back.",
        joins,
    )
    lines = removal, statements.alter_database(database, _ENABLE_AT_ONCE), rejoining
    altered = AlteredDatabases((database,))
    return to_fill_in(
        place, cause, actions, *lines, risk=_LEAVE_RISK, confidence=Confidence.LIKELY, altered=altered
    )


def find_twins(estate: AdviceEstate, instance: SqlInstance, database: str) -> list[Database]:
    """Return the other databases of an instance that have the broker instance of one.

    A snapshot has that of its database, and neither sends nor takes messages.
    """
    of_instance = instance.databases.get(database)
    if of_instance is None or of_instance.broker is None:
        return []
    twins = (twin for twin in instance.brokers[of_instance.broker] if twin.name != database)
    facts = ((twin, estate.server.database(instance.name, twin.name)) for twin in twins)
    return [twin for twin, twin_facts in facts if twin_facts is None or not twin_facts.is_snapshot]


def name_twins(estate: AdviceEstate, *places: RemedyPlace) -> Iterator[str]:
    """Yield a sentence for each database that shares a broker instance with one of these on its instance."""
    for place in dict.fromkeys(places):
        instance = estate.instances.get(place.instance)
        twins = [] if instance is None else find_twins(estate, instance, place.database or "")
        for twin in sorted(twins, key=lambda twin: twin.name):
            yield (
                f"{named(twin.name)} of {named(place.instance)} has the broker instance of"
                f" {named(place.database)}: if it is a copy, run ALTER DATABASE … SET NEW_BROKER there."
            )


def part_twins(
    estate: AdviceEstate, instance: SqlInstance, database: str, cause: str, actions: tuple[str, ...]
) -> Remedy:
    """Advise how to separate two databases of one instance, in comments because no view shows the copy."""
    place = RemedyPlace(instance.name, MASTER)
    twins = find_twins(estate, instance, database)
    if not twins:
        return Remedy(RemedyPlace(instance.name), cause, actions)
    twin = min(twins, key=lambda twin: (not twin.is_enabled, twin.name)).name
    lines = (
        *_part_copy(database),
        *_part_copy(twin),
        "Then enable the broker of the database that dialogs are meant for:",
        statements.enable_broker(database),
    )
    altered = AlteredDatabases((database, twin))
    return to_fill_in(place, cause, actions, *lines, risk=COPY_RISK, altered=altered)


def _part_copy(database: str) -> tuple[str | None, ...]:
    name = statements.identifier(database)
    return (
        None if name is None else f"If {name} is the copy and needs its own broker:",
        statements.alter_database(database, NEW_BROKER),
        None if name is None else f"If {name} is the copy and needs no broker:",
        statements.alter_database(database, "DISABLE_BROKER WITH ROLLBACK IMMEDIATE"),
    )


def part_copies(
    estate: AdviceEstate,
    reached: RemedyPlace,
    service: str,
    sender: RemedyPlace | None = None,
    *,
    passed_instances: Collection[str] | None = None,
) -> list[Remedy]:
    """Return the remedies for messages that end at one of several databases with the same broker instance.

    ``reached`` is the end of messages to the service. ``sender`` is the database that an acknowledgement is for.
    No view shows which database is the copy, so each gets a remedy. The list is empty if no other database has the
    service. With ``passed_instances``, only copies count that routes connect with one of these instances.
    """
    other_places = [
        RemedyPlace(name, database.name)
        for name, database in _copies_of(estate, reached, service)
        if passed_instances is None or _are_connected(estate, name, passed_instances)
    ]
    is_other = sender is not None and not estate.server.are_replicas(reached, sender)
    if sender is not None and is_other and sender not in (reached, *other_places):
        other_places.append(sender)
    if not other_places:
        return []
    places = [reached, *other_places]
    if len({place.instance for place in places}) == 1:
        instance = estate.instances[reached.instance]
        return [part_twins(estate, instance, reached.database or "", _state_copies(places, sender), _ADVICE)]
    return [_part_copy_at(place, places, sender) for place in places]


_ADVICE = (
    "Find out which database is the copy: no view shows it.",
    "Give the copy its own broker instance, or disable its broker.",
)


def _copies_of(estate: AdviceEstate, reached: RemedyPlace, service: str) -> Iterator[tuple[str, Database]]:
    """Yield the other databases with the same service and broker instance, and an enabled broker."""
    instance = estate.instances.get(reached.instance)
    database = None if instance is None else instance.databases.get(reached.database or "")
    if database is None or database.broker is None:
        return
    for name, copy in estate.instances.holders_of(service, database.broker):
        is_replica = estate.server.are_replicas(reached, (name, copy.name))
        if copy.is_enabled and (name, copy.name) != reached and not is_replica:
            yield name, copy


def part_from_holder(stuck: StuckMessage) -> Remedy | None:
    """Return the remedy for a database without the service that has the broker instance of its holder.

    Messages with this id are taken as replies to that database, before any route is searched.
    """
    if stuck.last.step is not MatchingStep.REPLY:
        return None
    databases = stuck.sql_instance.brokers.get(stuck.last.known_broker or "")
    if databases is None:
        return None
    reached, server = stuck.place(min(database.name for database in databases)), stuck.estate.server
    elsewhere = (RemedyPlace(name, holder.name) for name, holder in stuck.holders_elsewhere())
    holders = [place for place in elsewhere if not server.are_replicas(reached, place)]
    if not holders:
        return None
    return _part_copy_at(reached, [reached, *holders], stuck.back_to)


def _are_connected(estate: AdviceEstate, name: str, passed_instances: Collection[str]) -> bool:
    pairs = [(name, other) for other in passed_instances] + [(other, name) for other in passed_instances]
    return name in passed_instances or any(_leads(estate, source, target) for source, target in pairs)


def _leads(estate: AdviceEstate, source: str, target: str) -> bool:
    instance = estate.instances.get(source)
    if instance is None:
        return False
    owners = (owner for address in instance.route_addresses for owner in estate.network.owners(address, instance))
    return any(owner.name == target for owner in owners)


def _state_copies(places: list[RemedyPlace], sender: RemedyPlace | None) -> str:
    first, *other_places = (f"{named(place.database)} of instance {named(place.instance)}" for place in places)
    share = f"{join_words(other_places)}: one of them is a copy"
    if sender is None:
        return f"The message ends at {first}, which has the same broker instance as {share}."
    return f"The acknowledgement ends at {first}, which has the same broker instance as {share}."


def _part_copy_at(place: RemedyPlace, places: list[RemedyPlace], sender: RemedyPlace | None) -> Remedy:
    database = place.database or ""
    actions: tuple[str, ...] = (
        f"If {named(database)} here is the copy, give it another broker instance or disable its broker.",
    )
    if len({text.collated(place.database or "") for place in places}) == 1:
        actions += ("If they are replicas of one database, let the route lead to their listener instead.",)
    at_master = RemedyPlace(place.instance, MASTER)
    cause = _state_copies(places, sender)
    altered = AlteredDatabases((database,))
    return to_fill_in(at_master, cause, actions, *_part_copy(database), risk=COPY_RISK, altered=altered)
