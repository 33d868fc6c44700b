"""Small estates for the tests of lint, each built by a function.

`apart` renames an estate, so that all of them fit into one set of tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from routing.demo.drafting import EstateDraft
from routing.terms import BROKER_CONFIGURATION_SERVICE, ZERO_GUID

Tables = dict[str, list[dict[str, Any]]]
NOW = datetime(2026, 1, 5, 10, 30, tzinfo=timezone.utc)
DAY = timedelta(days=1)
FAR = "tcp://far:4022"
TO_STOCK = ("one", "Sales", "R", "tcp://two:4022", "Stock")
BACK = ("two", "Stock", "Back", "tcp://one:4022", "Sales")
_BROKERS = (
    "service_broker_guid",
    "broker_instance",
    "far_broker_instance",
    "acknowledged_broker_instance",
    "to_broker_instance",
)
_SERVICES = ("remote_service_name", "far_service", "to_service_name")


def apart(tables: Tables, label: str) -> Tables:
    """The same tables with instances, broker instances, hosts and services that no other estate has."""
    return {key: [_apart(key, row, label) for row in rows] for key, rows in tables.items()}


def together(name: str | None, label: str) -> str | None:
    """A name of a finding as the estate wrote it."""
    if name is None:
        return None
    return name.removeprefix(f"{label}/").removeprefix(f"{label}:").removesuffix(f"#{label}")


def _apart(table: str, row: dict[str, Any], label: str) -> dict[str, Any]:
    changed = dict(row)
    services = ("name",) if table == "services" else _SERVICES
    for column, value in row.items():
        if column == "instance_name" and value is not None:
            changed[column] = f"{label}/{value}"
        elif column == "addresses" and value:
            changed[column] = [_elsewhere(address, label) for address in value]
        elif not isinstance(value, str) or not value or len(value) > 100:
            continue
        elif column in ("address", "mirror_address"):
            changed[column] = _elsewhere(value, label)
        elif column in _BROKERS and value != ZERO_GUID:
            braced = value.endswith("}")
            changed[column] = f"{value.removesuffix('}')}#{label}" + "}" * braced
        elif column in services and not value.startswith(("SQL/", "http://schemas.", "tcp:")):
            changed[column] = f"{label}:{value}"
    return changed


def _elsewhere(address: str, label: str) -> str:
    loopback = r"localhost|127\.0\.0\.1"
    return re.sub(rf"(?i)^(tcp://)(?!{loopback})([^/:\[]{{2,}})", rf"\1\2.{label}", address)


def pair(*, forwarding: bool | None = False, local: bool = True) -> EstateDraft:
    """Return Sales on `one` and Stock on `two` with their services, and AutoCreatedLocal in msdb if ``local``."""
    draft = EstateDraft()
    for instance, database in (("one", "Sales"), ("two", "Stock")):
        draft.instance(instance, f"tcp://{instance}:4022", forwarding=forwarding)
        draft.database(instance, database, f"id-{database}", database)
        draft.database(instance, "msdb", f"id-msdb-{instance}")
        if local:
            draft.local(instance, "msdb")
    return draft


def sales(
    address: str, service: str | None = None, broker: str | None = None, **columns: Any
) -> Callable[[], EstateDraft]:
    """The pair with route R of Sales."""

    def build() -> EstateDraft:
        draft = pair()
        draft.route("one", "Sales", "R", address, service, broker, **columns)
        return draft

    return build


def with_instance(address: str, build: Callable[[], EstateDraft]) -> Callable[[], EstateDraft]:
    """An estate with one more instance, which has an address."""

    def build_both() -> EstateDraft:
        draft = build()
        draft.instance("beside", address)
        return draft

    return build_both


def routes(
    *routes: tuple[Any, ...], forwarding: bool | None = False, local: bool = True
) -> Callable[[], EstateDraft]:
    """Return the pair with routes, given as (instance, database, name, address[, service[, broker]])."""

    def build() -> EstateDraft:
        draft = pair(forwarding=forwarding, local=local)
        for route in routes:
            draft.route(*route)
        return draft

    return build


def databases(*rows: tuple[Any, ...], **columns: Any) -> Callable[[], EstateDraft]:
    """Return the pair with databases, given as (instance, name, broker instance, services…)."""

    def build() -> EstateDraft:
        draft = pair()
        for row in rows:
            draft.database(*row, **columns)
        return draft

    return build


def with_disabled(instance: str, name: str) -> Callable[[], EstateDraft]:
    def build() -> EstateDraft:
        draft = pair()
        for row in draft.tables["databases"]:
            if (row["instance_name"], row["name"]) == (instance, name):
                row["is_broker_enabled"] = False
        draft.database("one", "Idle", "id-idle", enabled=False)
        return draft

    return build


def dialogs(*brokers: str, group: bool = True) -> Callable[[], EstateDraft]:
    def build() -> EstateDraft:
        draft = pair()
        for number, broker in enumerate(brokers):
            draft.dialog(
                "one",
                "Sales",
                f"{number:08d}-0000-4000-8000-000000000000",
                conversation_group_id="group" if group else f"group-{number}",
                far_service="Stock",
                far_broker_instance=broker,
            )
        return draft

    return build


def doubled_route() -> EstateDraft:
    draft = pair()
    for address in (FAR, "LOCAL"):
        draft.route("one", "Sales", "R", address, "Elsewhere")
    return draft


def configuration(*, named: bool) -> Callable[[], EstateDraft]:
    def build() -> EstateDraft:
        draft = pair()
        draft.route("one", "Sales", "Ask", FAR, BROKER_CONFIGURATION_SERVICE)
        draft.local("one", "Sales")
        if named:
            draft.route("one", "Sales", "Here", "LOCAL", "Sales")
        return draft

    return build


def versions() -> EstateDraft:
    """An old version's lifetime is over, and the next version is in force."""
    draft = pair()
    draft.route("one", "Sales", "R", FAR, "Elsewhere", valid_to=NOW - DAY, lifetime=NOW - 2 * DAY)
    draft.route("one", "Sales", "R", FAR, "Elsewhere", valid_from=NOW - DAY)
    return draft


def loop(*, back: str) -> Callable[[], EstateDraft]:
    """Return an estate where arrivals for Lost at `one` are forwarded to `two`, and from there to ``back``."""
    return routes(
        ("one", "msdb", "On", "tcp://two:4022", "Lost"),
        ("two", "msdb", "Back", back, "Lost"),
        forwarding=True,
        local=False,
    )


def long_loop(*, closed: bool) -> Callable[[], EstateDraft]:
    """Return a ring of five forwarders. The last hop has only a route for any service."""

    def build() -> EstateDraft:
        draft = EstateDraft()
        for number in range(5):
            name = f"f{number}"
            draft.instance(name, f"tcp://{name}:4022", forwarding=True)
            draft.database(name, "msdb", f"id-{name}")
            if number < 4:
                draft.route(name, "msdb", "Next", f"tcp://f{number + 1}:4022", "Lost", "id-lost")
        draft.route("f4", "msdb", "Rest", "tcp://f0:4022" if closed else FAR)
        return draft

    return build


def mirrored_loop() -> EstateDraft:
    """Return `one`, which forwards to a mirrored database with a partner at `two`, which sends back."""
    draft = routes(("two", "msdb", "Back", "tcp://one:4022", "Lost", "id-lost"), forwarding=True, local=False)()
    draft.route("one", "msdb", "On", FAR, "Lost", "id-lost", mirror_address="tcp://two:4022")
    return draft


def both_hold(*routes: tuple[Any, ...]) -> EstateDraft:
    """The pair, and Stock on `three` as well."""
    draft = pair()
    draft.instance("three", "tcp://three:4022", forwarding=True)
    draft.database("three", "Stock", "id-stock-3", "Stock")
    draft.database("three", "msdb", "id-msdb-three")
    for route in routes:
        draft.route(*route)
    return draft


def two_senders() -> EstateDraft:
    """Sales holds a second service, which nothing leads back to."""
    draft = routes(TO_STOCK, BACK)()
    draft.tables["services"].append({"instance_name": "one", "database_name": "Sales", "name": "Another"})
    return draft


def gateways() -> EstateDraft:
    """Two open routes to forwarders that do not hold the service."""
    draft = both_hold(TO_STOCK, ("one", "Sales", "R2", "tcp://gate:4022", "Stock"))
    draft.instance("gate", "tcp://gate:4022", forwarding=True)
    return draft


def asking(
    *addresses: str,
    scope: str = "Sales",
    answered_by: str | None = None,
    local: bool = True,
    enabled: bool = True,
    service: str = BROKER_CONFIGURATION_SERVICE,
) -> Callable[[], EstateDraft]:
    """Return a database of `one` with a route to each address for a service, by default for requests.

    The database Directory of ``answered_by`` has the service. `three` exists besides `one` and `two`.
    """

    def build() -> EstateDraft:
        draft = pair(local=local)
        draft.instance("three", "tcp://three:4022")
        draft.database("three", "msdb", "id-msdb-three")
        draft.local("three", "msdb")
        for number, address in enumerate(addresses):
            draft.route("one", scope, "Ask" if not number else f"Ask-{number}", address, service)
        if answered_by is not None:
            draft.database(answered_by, "Directory", "id-directory", service)
        for row in draft.tables["databases"]:
            if (row["instance_name"], row["name"]) == ("one", scope):
                row["is_broker_enabled"] = enabled
        return draft

    return build


def asked_by_a_gate(*, forwarding: bool | None, asks: bool = True) -> Callable[[], EstateDraft]:
    """Return an estate where requests pass a gate to `two` without the service. The gate may ask too."""

    def build() -> EstateDraft:
        draft = asking("tcp://gate:4022")()
        draft.instance("gate", "tcp://gate:4022", forwarding=forwarding)
        draft.database("gate", "msdb", "id-msdb-gate")
        name, service = ("Ask", BROKER_CONFIGURATION_SERVICE) if asks else ("On", None)
        draft.route("gate", "msdb", name, "tcp://two:4022", service)
        return draft

    return build


def with_depot(*routes: tuple[Any, ...]) -> Callable[[], EstateDraft]:
    """The pair, and Depot beside Sales, each with AutoCreatedLocal."""

    def build() -> EstateDraft:
        draft = pair()
        draft.database("one", "Depot", "id-depot", "Depot")
        for database in ("Depot", "Sales"):
            draft.local("one", database)
        for route in routes:
            draft.route(*route)
        return draft

    return build


def sole_stock_behind_a_gate(*, forwarding: bool | None) -> Callable[[], EstateDraft]:
    """Two open routes to Stock: one leads to it, the other to a gate that sends it on."""

    def build() -> EstateDraft:
        draft = routes(TO_STOCK, ("one", "Sales", "S", "tcp://gate:4022", "Stock"))()
        draft.instance("gate", "tcp://gate:4022", forwarding=forwarding)
        draft.route("gate", "msdb", "On", "tcp://two:4022", "Stock")
        return draft

    return build


def without_broker_id() -> EstateDraft:
    """Stock's database has no broker instance."""
    draft = routes(TO_STOCK)()
    for row in draft.tables["databases"]:
        if row["name"] == "Stock":
            row["service_broker_guid"] = ZERO_GUID
    return draft
