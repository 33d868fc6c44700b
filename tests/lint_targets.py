"""Small estates in which Stock is at two instances, for the finding on several target endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from routing.demo.drafting import EstateDraft
from routing.terms import BROKER_CONFIGURATION_SERVICE
from tests.lint_drafts import FAR, TO_STOCK, both_hold

TO_THREE = ("one", "Sales", "R2", "tcp://three:4022", "Stock")


def both_targets(*routes: tuple[Any, ...], to_stock: bool = True) -> Callable[[], EstateDraft]:
    """Return Stock on `two` and `three`, which accept arrivals. Sales has route R to `two` if ``to_stock``."""

    def build() -> EstateDraft:
        draft = both_hold(*([TO_STOCK] if to_stock else []), *routes)
        draft.local("three", "msdb")
        return draft

    return build


def both_by_a_gate() -> EstateDraft:
    """Return an estate with one route to a gate. The gate's msdb forwards to both."""
    draft = both_targets(("one", "Sales", "R", "tcp://gate:4022", "Stock"), to_stock=False)()
    draft.instance("gate", "tcp://gate:4022", forwarding=True)
    for name in ("two", "three"):
        draft.route("gate", "msdb", f"On-{name}", f"tcp://{name}:4022", "Stock")
    return draft


def gates_to_one() -> EstateDraft:
    """Return two gates that forward to `two`, and a third to `three` that is not known to forward."""
    gates = {"gate1": ("two", True), "gate2": ("two", True), "gate3": ("three", None)}
    away = [("one", "Sales", f"By-{gate}", f"tcp://{gate}:4022", "Stock") for gate in gates]
    draft = both_targets(*away, to_stock=False)()
    for gate, (target, forwarding) in gates.items():
        draft.instance(gate, f"tcp://{gate}:4022", forwarding=forwarding)
        draft.route(gate, "msdb", "On", f"tcp://{target}:4022", "Stock")
    return draft


def listener(*, mirrored: bool = False) -> Callable[[], EstateDraft]:
    """Return `two` and `three` with the address of a listener. Stock has one id on both if ``mirrored``."""

    def build() -> EstateDraft:
        draft = both_targets(("one", "Sales", "R", "tcp://stock-ag:4022", "Stock"), to_stock=False)()
        for row in draft.tables["instances"]:
            if row["instance_name"] != "one":
                row["addresses"] = [*cast("list[str]", row["addresses"]), "tcp://stock-ag:4022"]
        for row in draft.tables["databases"]:
            if mirrored and row["name"] == "Stock":
                row["service_broker_guid"] = "id-stock"
        return draft

    return build


def any_service_twice() -> EstateDraft:
    """Return two databases that send unknown services through the same gates. One of them knows Stock."""
    draft = both_targets(to_stock=False)()
    draft.database("one", "App", "id-app")
    draft.database("one", "Web", "id-web")
    for database in ("App", "Web", "Sales"):
        draft.route("one", database, "A", "tcp://two:4022/")
        draft.route("one", database, "B", "tcp://THREE:4022")
    draft.route("one", "Web", "C", "tcp://two:4022", "Stock", "id-stock")
    return draft


def any_service_that_is_asked_for() -> EstateDraft:
    """Routes for any service, and one for requests."""
    draft = both_targets(("one", "Sales", "A", "tcp://two:4022"), to_stock=False)()
    draft.route("one", "Sales", "B", "tcp://three:4022")
    draft.route("one", "Sales", "Ask", FAR, BROKER_CONFIGURATION_SERVICE)
    return draft


def both_by_a_chain() -> EstateDraft:
    """One route leads to `two`, the other by two gates to `three`."""
    draft = both_targets(("one", "Sales", "R2", "tcp://gate1:4022", "Stock"))()
    for gate, onward in (("gate1", "gate2"), ("gate2", "three")):
        draft.instance(gate, f"tcp://{gate}:4022", forwarding=True)
        draft.route(gate, "msdb", "On", f"tcp://{onward}:4022", "Stock")
    return draft


def held_here() -> EstateDraft:
    """Return two instances with the same routes for any service, including LOCAL. `one` has Stock itself."""
    draft = both_targets(to_stock=False)()
    draft.instance("another", "tcp://another:4022")
    draft.database("another", "Sales", "id-another")
    draft.database("one", "Depot", "id-depot", "Stock")
    for instance in ("another", "one"):
        draft.route(instance, "Sales", "A", "tcp://two:4022")
        draft.route(instance, "Sales", "B", "tcp://three:4022")
        draft.local(instance, "Sales")
    return draft


def by_loopback() -> EstateDraft:
    """Return two instances with the same routes for any service, one to itself. `another` forwards Stock."""
    draft = both_targets(to_stock=False)()
    draft.tables["instances"][0]["is_message_forwarding_enabled"] = True
    draft.instance("another", "tcp://another:4022", forwarding=True)
    draft.database("another", "Sales", "id-another")
    draft.route("another", "msdb", "On", "tcp://three:4022", "Stock")
    draft.route("one", "msdb", "On", "tcp://three:4022", "Other")
    for instance in ("another", "one"):
        draft.route(instance, "Sales", "A", "tcp://two:4022")
        draft.route(instance, "Sales", "B", "tcp://localhost:4022")
    return draft
