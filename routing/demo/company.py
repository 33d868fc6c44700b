"""Draft the instances, databases, services and routes of a made-up retail company.

Headquarters, two forwarders, a gateway to partners, four pricing servers, two depots and six stores. Places are
written ``instance.database``.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from routing.demo.drafting import EstateDraft
from routing.terms import BROKER_CONFIGURATION_SERVICE

MIDNIGHT = datetime(2026, 1, 5, tzinfo=timezone.utc)
NORTHERN_STORES = ("leeds", "york", "hull")
SOUTHERN_STORES = ("bath", "exeter", "truro")
STORES = NORTHERN_STORES + SOUTHERN_STORES
PRICING = tuple(f"pricing-{n}.Pricing" for n in range(1, 5))
# Hours of the day at which routes change.
STOCK_DETOUR = (11.0, 13.0)
LABELS_LOST = (13 + 40 / 60, 17 + 5 / 60)
BLUEBIRD_CREATED = (9.25, 17.0)

_FORWARDERS = ("fwd-north", "fwd-south")
_HEADQUARTERS = {
    "hq-orders": {
        "Orders": "Orders/Entry",
        "Returns": "Orders/Returns",
        "Labels": "Shipping/Labels",
        "Archive": "Orders/Archive",
    },
    "hq-finance": {"Ledger": "Finance/Ledger", "Invoicing": "Finance/Invoices"},
    "hq-stock": {"Stock": "Stock/Levels", "Purchasing": "Stock/Purchasing"},
    "hq-customers": {
        "Loyalty": "Customers/Loyalty",
        "Campaigns": "Customers/Campaigns",
        "Care": "Customers/Care",
    },
    "hq-reports": {"Reporting": "Reports/Sales", "Directory": BROKER_CONFIGURATION_SERVICE},
}
_DISABLED = ("hq-orders.Archive", "depot-west.msdb")
_WITHOUT_LOCAL = ("depot-east.Picking", "edge-partners.Exchange", "pricing-4.msdb")
# Databases that reach others only by their own routes.
_WITHOUT_OUTBOUND = ("hq-customers.Campaigns", "hq-customers.Care", "hq-orders.Archive")


def at_hour(hour: float) -> datetime:
    """Return the time of the day, to the second."""
    return MIDNIGHT + timedelta(seconds=round(hour * 3600))


def guid(rng: random.Random) -> str:
    """Return a random GUID from the generator."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def service(name: str) -> str:
    """Return the full name of a company service. Other names stay unchanged."""
    return name if name.startswith(("tcp:", "SQL/")) else f"//larkfield.example/{name}"


def address(instance: str) -> str:
    """Return the network address of an instance."""
    return f"tcp://{instance}.larkfield.example:4022"


def split(place: str) -> tuple[str, str]:
    """Split a place into instance and database."""
    instance, _, database = place.partition(".")
    return instance, database


@dataclass(frozen=True)
class CompanyTables:
    """The configuration tables, and by place the broker instances and the services."""

    draft: EstateDraft
    broker_ids: dict[str, str]
    services: dict[str, str]


def found_company(rng: random.Random) -> CompanyTables:
    """Draw the broker instances and write the configuration."""
    company = CompanyTables(EstateDraft(), {}, {})
    for instance, databases in _instances().items():
        addresses = [address(instance)]
        if instance == "hq-stock":
            addresses.append("tcp://10.20.0.13:4022")
        company.draft.instance(instance, *addresses, forwarding=instance in _FORWARDERS)
        for database, name in {**databases, "msdb": ""}.items():
            _add_database(company, rng, f"{instance}.{database}", name)
    _route_stores(company)
    _route_headquarters(company)
    _route_partners(company)
    _route_depots(company)
    _route_forwarders(company)
    return company


def _instances() -> dict[str, dict[str, str]]:
    """Return the user databases by instance, each with its service."""
    instances = dict(_HEADQUARTERS)
    for forwarder in _FORWARDERS:
        instances[forwarder] = {"Monitoring": f"Monitoring/{forwarder}"}
    instances["edge-partners"] = {"Exchange": "Partners/Exchange"}
    for place in PRICING:
        instances[split(place)[0]] = {"Pricing": "Pricing/Quotes"}
    for region in ("East", "West"):
        databases = {name: f"Depot/{region}/{name}" for name in ("Picking", "Shipping")}
        instances[f"depot-{region.lower()}"] = databases
    for store in STORES:
        databases = {name: f"Stores/{store.title()}/{name}" for name in ("Till", "Shelf")}
        instances[f"store-{store}"] = databases
    return instances


def _add_database(company: CompanyTables, rng: random.Random, place: str, name: str) -> None:
    instance, database = split(place)
    company.broker_ids[place] = guid(rng)
    held_services = []
    if name:
        company.services[place] = service(name)
        held_services.append(service(name))
    company.draft.database(
        instance, database, company.broker_ids[place], *held_services, enabled=place not in _DISABLED
    )
    if place not in _WITHOUT_LOCAL:
        company.draft.local(instance, database)
    if instance.startswith(("hq-", "pricing-")) and name and place not in _WITHOUT_OUTBOUND:
        company.draft.route(instance, database, "Outbound", address("fwd-north"))


def _route_stores(company: CompanyTables) -> None:
    draft, ids = company.draft, company.broker_ids
    loyalty = service("Customers/Loyalty"), ids["hq-customers.Loyalty"]
    for store in STORES:
        instance, north = f"store-{store}", store in NORTHERN_STORES
        for database in ("Till", "Shelf"):
            # Northern stores have a second route out, southern ones do not.
            draft.route(instance, database, "Outbound-1", address(_FORWARDERS[0 if north else 1]))
            if north:
                draft.route(instance, database, "Outbound-2", address("fwd-south"))
        draft.route(instance, "Till", "Shelf", "LOCAL", company.services[f"{instance}.Shelf"])
        for number, place in enumerate(PRICING, start=1):
            to, broker = address(split(place)[0]), ids[place]
            draft.route(instance, "Till", f"Pricing-{number}", to, service("Pricing/Quotes"), broker)
        for number, forwarder in enumerate(_FORWARDERS, start=1):
            draft.route(instance, "Till", f"Loyalty-{number}", address(forwarder), *loyalty)
        _route_ledger(draft, instance, "Till")
        _route_stock(draft, instance)


def _route_ledger(draft: EstateDraft, instance: str, database: str) -> None:
    """Add a mirrored route to the ledger. Its partner is not an instance of the estate."""
    draft.route(
        instance,
        database,
        "Ledger",
        address("hq-finance"),
        service("Finance/Ledger"),
        mirror_address=address("hq-finance-b"),
    )


def _route_stock(draft: EstateDraft, instance: str) -> None:
    """Add three versions of a route: the old address, a detour, the new address."""
    leaves, returns = (at_hour(hour) for hour in STOCK_DETOUR)
    for to, valid_from, valid_to in (
        (address("hq-stock"), None, leaves),
        (address("fwd-south"), leaves, returns),
        ("tcp://10.20.0.13:4022", returns, None),
    ):
        name = service("Stock/Levels")
        draft.route(instance, "Shelf", "Stock", to, name, valid_from=valid_from, valid_to=valid_to)


def _route_headquarters(company: CompanyTables) -> None:
    draft, ids = company.draft, company.broker_ids
    purchasing = service("Stock/Purchasing"), ids["hq-stock.Purchasing"]
    draft.route("hq-orders", "Orders", "Purchasing", address("hq-stock"), *purchasing)
    draft.route("hq-orders", "Orders", "Archive", "LOCAL", service("Orders/Archive"))
    draft.route("hq-orders", "Orders", "Invoices", address("hq-finance"), service("Finance/Invoices"))
    # Its own address, as somebody wrote who copied the route from another server.
    draft.route("hq-stock", "Purchasing", "Stock", "tcp://localhost:4022", service("Stock/Levels"))
    draft.route("hq-customers", "Care", "ByName", "TRANSPORT")
    pinned = service("Pricing/Quotes"), ids["pricing-4.Pricing"]
    draft.route("pricing-4", "msdb", "Pricing", "LOCAL", *pinned)


def _route_partners(company: CompanyTables) -> None:
    draft = company.draft
    to = address("hq-reports")
    draft.route("hq-customers", "Campaigns", "ConfigurationRoute", to, BROKER_CONFIGURATION_SERVICE)
    created, ends = (at_hour(hour) for hour in BLUEBIRD_CREATED)
    draft.route(
        "hq-customers",
        "Campaigns",
        "Bluebird",
        "tcp://b2b.bluebird.example:4022",
        service("Partners/Bluebird"),
        valid_from=created,
        lifetime=ends,
    )
    draft.route("edge-partners", "Exchange", "ByName", "TRANSPORT")
    supplier = "tcp://b2b.brightfoods.example:4022"
    draft.route("edge-partners", "msdb", "Suppliers", supplier, service("Suppliers/Orders"))


def _route_depots(company: CompanyTables) -> None:
    draft = company.draft
    labels_lost, labels_back = (at_hour(hour) for hour in LABELS_LOST)
    labels = address("hq-orders"), service("Shipping/Labels")
    for instance in ("depot-east", "depot-west"):
        # The first version's lifetime runs out before the second one is there.
        draft.route(instance, "Shipping", "Labels", *labels, lifetime=labels_lost, valid_to=labels_back)
        draft.route(instance, "Shipping", "Labels", *labels, valid_from=labels_back)


def _route_forwarders(company: CompanyTables) -> None:
    draft, ids = company.draft, company.broker_ids
    for forwarder in _FORWARDERS:
        draft.route(forwarder, "msdb", "ByName", "TRANSPORT")
        _route_ledger(draft, forwarder, "msdb")
        for place, name in company.services.items():
            instance, database = split(place)
            if instance.startswith(("fwd-", "pricing-")) or database in ("Ledger", "Directory"):
                continue
            broker = ids[place] if database == "Loyalty" else None
            route = f"{instance}-{database}"
            draft.route(forwarder, "msdb", route, address(instance), name, broker)
    # Both routes lead to the forwarder's own address.
    for database in ("Monitoring", "msdb"):
        to = address("fwd-south").upper()
        draft.route("fwd-south", database, "Totals", to, service("Monitoring/Totals"))
    # A store that closed: its entry was pointed at the forwarder itself.
    penzance = service("Stores/Penzance/Till")
    draft.route("fwd-south", "msdb", "store-penzance-Till", address("fwd-south"), penzance)


# Who sends what to whom in the made-up company, and how much of it.
#
# A flow is a kind of conversation. What becomes of its messages is not written here: the routes decide; the
# path only says at which instances they arrive.


OLD_ID = "0d8f4a52-6c1b-4e7a-9b35-e1f2a7c94d60"
NEW_PARTNERS = (
    "Foxglove",
    "Harrier",
    "Juniper",
    "Kestrel",
    "Marlow",
    "Osprey",
    "Redwing",
    "Teasel",
)
WAITING_PARTNER = "Partners/Ashdown"
ANSWERED_PARTNER = "Partners/Bluebird"


@dataclass(frozen=True)
class ConversationKind:
    """A kind of conversation.

    ``start`` is a place, or an instance if the sender is outside. ``path`` has the instances where messages
    arrive. ``target`` answers, and ``back`` has the instances where answers arrive. ``bound_to`` is a broker
    instance, or the place that has it. The dialog id picks one of the ``balanced`` places. ``hours`` limit the
    messages' times. ``pause`` and ``seen_waiting`` (minutes after sending) are ranges. ``lifetime`` is in minutes.
    """

    weight: float
    start: str
    service: str
    path: tuple[str, ...] = ()
    target: str | None = None
    back: tuple[str, ...] = ()
    bound_to: str | None = None
    balanced: tuple[str, ...] = ()
    hours: tuple[float, float] = (0.0, 24.0)
    messages: tuple[int, int] = (1, 3)
    pause: tuple[float, float] = (0.1, 8.0)
    hops: int = 6
    lifetime: float | None = None
    seen_waiting: tuple[float, float] | None = None


def all_flows() -> list[ConversationKind]:
    """Return every flow of the day, in a fixed order."""
    flows = [flow for store in STORES for flow in _store(store)]
    return [*flows, *_headquarters(), *_depots(), *_partners(), *_faults()]


def _store(store: str) -> Iterator[ConversationKind]:
    till, shelf_database, home = f"store-{store}.Till", f"store-{store}.Shelf", f"store-{store}"
    forwarder = "fwd-north" if store in NORTHERN_STORES else "fwd-south"
    back = ("fwd-north", home)
    yield ConversationKind(16, till, f"Stores/{store.title()}/Shelf", target=shelf_database)
    yield ConversationKind(6, till, "Orders/Entry", (forwarder, "hq-orders"), "hq-orders.Orders", back)
    yield ConversationKind(18, till, "Pricing/Quotes", balanced=PRICING, back=back)
    yield ConversationKind(5, till, "Finance/Ledger", ("hq-finance",), messages=(1, 4))
    loyalty = "hq-customers.Loyalty"
    path = ("fwd-north", "hq-customers")
    yield ConversationKind(5, till, "Customers/Loyalty", path, loyalty, back, bound_to=loyalty)
    yield ConversationKind(3, till, "Reports/Sales", (forwarder, "hq-reports"), hours=(19.5, 23.0))
    stock, leaves, returns = "hq-stock.Stock", *STOCK_DETOUR
    direct = ("hq-stock",)
    yield ConversationKind(2.5, shelf_database, "Stock/Levels", direct, stock, back, hours=(0.0, leaves))
    detour = ("fwd-south", "hq-stock")
    yield ConversationKind(1, shelf_database, "Stock/Levels", detour, stock, back, hours=STOCK_DETOUR)
    yield ConversationKind(3, shelf_database, "Stock/Levels", direct, stock, back, hours=(returns, 24.0))


def _headquarters() -> Iterator[ConversationKind]:
    orders, purchasing, care = "hq-orders.Orders", "hq-stock.Purchasing", "hq-customers.Care"
    back = ("fwd-north", "hq-orders")
    yield ConversationKind(8, orders, "Stock/Purchasing", ("hq-stock",), purchasing, back, bound_to=purchasing)
    yield ConversationKind(5, orders, "Finance/Ledger", ("fwd-north", "hq-finance"))
    yield ConversationKind(4, orders, "Finance/Invoices", ("hq-finance",), lifetime=240)
    yield ConversationKind(6, purchasing, "Stock/Levels", target="hq-stock.Stock")
    yield ConversationKind(4, purchasing, "tcp://edi.brightfoods.example:4022/Orders", ("fwd-north",))
    yield ConversationKind(4, care, "tcp://desk.swiftparcel.example:4022/Collections", back=("hq-customers",))


def _depots() -> Iterator[ConversationKind]:
    yield ConversationKind(
        6,
        "depot-east.Picking",
        "Depot/East/Shipping",
        target="depot-east.Shipping",
        bound_to="depot-east.Shipping",
    )
    yield ConversationKind(6, "depot-west.Picking", "Depot/West/Shipping", target="depot-west.Shipping")
    labels_lost, labels_back = LABELS_LOST
    for instance in ("depot-east", "depot-west"):
        shipping, labels = f"{instance}.Shipping", "hq-orders.Labels"
        for hours in ((0.0, labels_lost), (labels_back, 24.0)):
            back = ("fwd-north", instance)
            yield ConversationKind(5, shipping, "Shipping/Labels", ("hq-orders",), labels, back, hours=hours)
        yield ConversationKind(20, shipping, "Shipping/Labels", hours=LABELS_LOST)
        yield ConversationKind(12, shipping, "Shipping/Labels", hours=LABELS_LOST, seen_waiting=(5.0, 90.0))


def _partners() -> Iterator[ConversationKind]:
    campaigns, exchange = "hq-customers.Campaigns", "edge-partners.Exchange"
    for partner in NEW_PARTNERS:
        yield ConversationKind(0.4, campaigns, f"Partners/{partner}", hours=(8.0, 19.0))
    yield ConversationKind(1, campaigns, WAITING_PARTNER)
    yield ConversationKind(4, campaigns, ANSWERED_PARTNER, hours=BLUEBIRD_CREATED)
    yield ConversationKind(0.4, campaigns, ANSWERED_PARTNER, hours=(BLUEBIRD_CREATED[1], 24.0))
    yield ConversationKind(0.5, campaigns, BROKER_CONFIGURATION_SERVICE, ("hq-reports",), messages=(1, 1))
    yield ConversationKind(4, exchange, "tcp://b2b.brightfoods.example:4022/Orders", back=("edge-partners",))
    yield ConversationKind(1, exchange, "Suppliers/Brightfoods")
    yield ConversationKind(4, "edge-partners", "Partners/Exchange")
    yield ConversationKind(1.5, "edge-partners", "Suppliers/Orders")


def _faults() -> Iterator[ConversationKind]:
    """Yield the kinds of conversations that go wrong."""
    north = ("fwd-north",)
    yield ConversationKind(1, "store-york.Till", "orders/entry", north)
    yield ConversationKind(1, "depot-west.Picking", "Depot/West/Sorting")
    path = ("fwd-south", "hq-orders")
    yield ConversationKind(1, "store-bath.Till", "Orders/Returns", path, bound_to=OLD_ID)
    yield ConversationKind(0.7, "depot-west.Picking", "Depot/West/Shipping", bound_to=OLD_ID)
    yield ConversationKind(1, "hq-orders.Orders", "Orders/Archive")
    yield ConversationKind(0.7, "hq-reports.Reporting", "Orders/Archive", (*north, "hq-orders"))
    yield ConversationKind(1, "hq-orders.Archive", "Reports/Sales", hours=(1.0, 4.0))
    yield ConversationKind(1, "hq-orders.Orders", "Depot/West/Picking", (*north, "depot-west"))
    yield ConversationKind(0.7, "fwd-north", "Orders/Entry", hops=0)
    yield ConversationKind(0.7, "store-truro.Till", "Stores/Penzance/Till", ("fwd-south",))
    yield ConversationKind(0.4, "fwd-south.Monitoring", "Monitoring/Totals", hours=(22.0, 24.0))
    yield ConversationKind(1, "depot-east.Picking", "Depot/East/Robots")
    yield ConversationKind(0.5, "pricing-4", "Pricing/History")
    yield ConversationKind(
        1,
        "hq-orders.Orders",
        "Finance/Invoices",
        hours=(0.0, 22.0),
        lifetime=20,
        seen_waiting=(30.0, 90.0),
    )
