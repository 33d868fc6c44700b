"""Who sends what to whom in the made-up company, and how much of it.

A flow is a kind of conversation. What becomes of its messages is not written here: the routes
decide; the path only says at which instances they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from routing.demo.company import (
    BLUEBIRD_CREATED,
    LABELS_LOST,
    NORTHERN_STORES,
    PRICING,
    STOCK_DETOUR,
    STORES,
)
from routing.terms import BROKER_CONFIGURATION_SERVICE

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

    ``start`` is a place, or an instance alone where the sender is outside; ``path`` the instances
    at which messages arrive; ``target`` the place that answers; ``back`` the instances at which
    answers arrive. ``bound_to`` is the place whose broker id the sender knows, or an id itself;
    ``balanced`` the places of which the dialog id picks one. ``hours`` bound the messages' times;
    ``pause`` and ``seen_waiting`` (minutes after the sending) are ranges; ``lifetime`` in minutes.
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
