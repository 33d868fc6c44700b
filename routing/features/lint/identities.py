"""Findings on databases: doubled broker ids, disabled brokers, services held twice."""

from __future__ import annotations

from collections.abc import Iterator

from routing.features.lint.lint_estate import LintEstate, is_users
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.features.lint.refused import catches_all
from routing.rules import text
from routing.terms import MSDB


def broker_ids(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR012 to SBR014: each broker id that several databases have.

    Where instances share it, it stands under the first of them by name.
    """
    sentence = "databases %s have one broker id"
    found_in: dict[str, dict[str, set[str]]] = {}
    for instance, name, guid in estate.tables["databases"].rows("instance_name", "name", "service_broker_guid"):
        broker = text.broker_id(guid)
        if instance is not None and name is not None and broker is not None:
            found_in.setdefault(broker, {}).setdefault(instance, set()).add(name)
    for broker, by_instance in found_in.items():
        for instance, names in by_instance.items():
            if len(names) > 1:
                yield finding("SBR012", (instance, None), broker, sentence, list_names(names))
        if len(by_instance) > 1:
            # Between instances the first database by name speaks for each.
            places = sorted((instance, min(names)) for instance, names in by_instance.items())
            code = "SBR014" if len({name for _, name in places}) == 1 else "SBR013"
            yield finding(code, places[0], broker, sentence, list_names(map(".".join, places)))


def disabled_brokers(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR034 and SBR035: a database that cannot send or receive, though it has services or routes."""
    in_use = {(instance, database) for instance, database, route in estate.live_routes if not catches_all(route)}
    services = estate.tables["services"].rows("instance_name", "database_name", "name")
    in_use |= {
        (instance, database) for instance, database, name in services if name is not None and is_users(name)
    }
    columns = ("instance_name", "name", "is_broker_enabled")
    for instance, name, is_enabled in estate.tables["databases"].rows(*columns):
        if is_enabled is False and name == MSDB:
            yield finding("SBR035", (instance, name), name, "messages from the network are delayed")
        elif is_enabled is False and (instance, name) in in_use:
            yield finding("SBR034", (instance, name), name, "its services and routes do nothing")


def doubled_services(estate: LintEstate) -> Iterator[LintFinding]:
    """Find SBR019: an open dialog goes to the sender's own database, else to the first by name (D5)."""
    for instance in estate.instances.values():
        for service in estate.services_of_users(instance):
            names = {database.name for database in instance.holders_of(service)}
            if len(names) > 1:
                sentence = "databases %s hold the service"
                yield finding("SBR019", (instance.name, None), service, sentence, list_names(names))
