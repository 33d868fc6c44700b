"""For every finding of lint the smallest estate that has it, and one that has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from routing.demo.drafting import EstateDraft
from routing.terms import BROKER_CONFIGURATION_SERVICE
from tests.lint_drafts import (
    BACK,
    DAY,
    FAR,
    NOW,
    TO_STOCK,
    asked_by_a_gate,
    asking,
    both_hold,
    configuration,
    databases,
    dialogs,
    doubled_route,
    gateways,
    long_loop,
    loop,
    mirrored_loop,
    pair,
    routes,
    sales,
    sole_stock_behind_a_gate,
    two_senders,
    versions,
    with_depot,
    with_disabled,
    with_instance,
    without_broker_id,
)
from tests.lint_targets import (
    TO_THREE,
    any_service_that_is_asked_for,
    any_service_twice,
    both_by_a_chain,
    both_by_a_gate,
    both_targets,
    by_loopback,
    gates_to_one,
    held_here,
    listener,
)

Found = tuple[str, "str | None", "str | None"]


class Estate(NamedTuple):
    """A code, a builder of tables with or without it, and its findings as instance, database and object."""

    code: str
    build: Callable[[], EstateDraft]
    found: Sequence[Found]


_R = [("one", "Sales", "R")]
_SPREAD = (("one", "Sales", "B1", FAR, "Spread", "id-1"), ("one", "Sales", "B2", FAR, "Spread", "id-2"))

HAS: tuple[Estate, ...] = (
    Estate("SBR001", sales(FAR, ""), _R),
    Estate("SBR002", sales(FAR, "x" * 257), _R),
    # 129 characters, 258 of UTF-16.
    Estate("SBR002", sales(FAR, "\U0001f600" * 129), _R),
    Estate("SBR003", sales(FAR, "Elsewhere", mirror_address="tcp://mirror:4022"), _R),
    Estate("SBR004", sales(FAR, None, "id-far"), _R),
    Estate("SBR005", sales("LOCAL", "Elsewhere", "id-far", mirror_address="tcp://mirror:4022"), _R),
    Estate("SBR005", sales(FAR, "Elsewhere", "id-far", mirror_address="transport"), _R),
    Estate("SBR006", sales("http://far:4022"), _R),
    Estate("SBR006", sales(FAR, "Elsewhere", "id-far", mirror_address="mirror:4022"), _R),
    Estate("SBR007", sales("transport", "Elsewhere"), _R),
    Estate("SBR008", sales(FAR, "Elsewhere", valid_from=NOW, lifetime=NOW), _R),
    Estate("SBR008", sales(FAR, "Elsewhere", lifetime=NOW + timedelta(seconds=2**31)), _R),
    Estate("SBR009", sales(FAR, "Elsewhere", "id-far", mirror_address="TCP://FAR:4022/"), _R),
    Estate("SBR010", doubled_route, [("one", None, "one, Sales, R")]),
    Estate("SBR011", sales(FAR, BROKER_CONFIGURATION_SERVICE, "id-far"), _R),
    Estate("SBR012", databases(("one", "Copy", "id-sales")), [("one", None, "id-sales")]),
    Estate("SBR013", databases(("two", "Copy", "id-Sales")), [("one", "Sales", "id-sales")]),
    Estate("SBR014", databases(("two", "Sales", "id-Sales")), [("one", "Sales", "id-sales")]),
    Estate("SBR015", sales("LOCAL", "Sales", "id-stock"), _R),
    Estate("SBR015", sales("tcp://two:4022", "Stock", "id-nobody"), _R),
    Estate("SBR016", sales("tcp://two:4022", "stock/"), _R),
    Estate(
        "SBR017",
        routes(
            ("one", "Sales", "B1", FAR, "Spread", "id-1"),
            ("one", "Sales", "B2", FAR, "Spread", "id-2"),
            ("one", "Sales", "Open", FAR, "Spread"),
        ),
        [("one", "Sales", "Open")],
    ),
    Estate(
        "SBR018",
        lambda: both_hold(TO_STOCK, ("one", "Sales", "R2", "tcp://three:4022", "Stock")),
        _R,
    ),
    Estate("SBR019", databases(("two", "Second", "id-second", "Stock")), [("two", None, "Stock")]),
    Estate("SBR020", routes(TO_STOCK, local=False), [("two", "Stock", "Sales")]),
    Estate("SBR021", routes(TO_STOCK, local=False), [("two", "msdb", "Stock")]),
    # A loopback name leads to the other instance of the machine.
    Estate(
        "SBR021",
        with_instance("tcp://one:5022", sales("tcp://localhost:5022", "Elsewhere")),
        [("beside", "msdb", "Elsewhere")],
    ),
    Estate("SBR015", with_instance("tcp://one:5022", sales("tcp://localhost:5022", "Elsewhere", "id-far")), _R),
    Estate("SBR022", routes(("one", "Sales", "R", "tcp://two:4022", "Lost")), [("two", "msdb", "Lost")]),
    Estate("SBR023", pair, [("one", "msdb", "Sales"), ("two", "msdb", "Stock")]),
    Estate("SBR024", lambda: pair(local=False), [("one", "msdb", "Sales"), ("two", "msdb", "Stock")]),
    # Others route Stock here: that is SBR021.
    Estate("SBR024", routes(TO_STOCK, local=False), [("one", "msdb", "Sales")]),
    Estate("SBR025", routes(("one", "msdb", "R", FAR, "Elsewhere")), [("one", "msdb", "R")]),
    Estate("SBR040", routes(("one", "msdb", "R", FAR, "Elsewhere"), forwarding=None), [("one", "msdb", "R")]),
    Estate("SBR015", routes((*TO_STOCK, "id-nobody"), forwarding=None), _R),
    Estate("SBR026", loop(back="tcp://one:4022"), [("one", "msdb", "Lost")]),
    Estate("SBR026", long_loop(closed=True), [("f0", "msdb", "Lost")]),
    Estate("SBR026", mirrored_loop, [("one", "msdb", "Lost")]),
    # Each forwarder takes the other for the one that knows the way; the services here are no exception.
    Estate(
        "SBR026",
        routes(
            ("one", "msdb", "On", "tcp://two:4022"),
            ("two", "msdb", "Back", "tcp://one:4022"),
            forwarding=True,
            local=False,
        ),
        [("one", "msdb", "Sales"), ("one", "msdb", "Stock"), ("one", "msdb", "any other service")],
    ),
    # The same route twice under two names.
    Estate("SBR027", routes(TO_STOCK, ("one", "Sales", "S", "TCP://two:4022/", "Stock")), [("one", "Sales", "S")]),
    # LOCAL comes before a network address for every message where the id is here.
    Estate(
        "SBR027",
        routes(
            ("one", "Sales", "Here", "LOCAL", "Sales", "id-sales"),
            ("one", "Sales", "There", FAR, "Sales", "id-sales"),
        ),
        [("one", "Sales", "There")],
    ),
    # A network address comes before TRANSPORT.
    Estate(
        "SBR027",
        routes(("one", "Sales", "Any", FAR), ("one", "Sales", "ByName", "TRANSPORT")),
        [("one", "Sales", "ByName")],
    ),
    Estate("SBR029", sales(FAR, "Elsewhere", lifetime=NOW), _R),
    Estate("SBR030", sales(FAR, "Elsewhere", lifetime=NOW + 30 * DAY), _R),
    Estate("SBR031", sales("tcp://far", "Elsewhere"), _R),
    Estate("SBR032", sales("tcp://two:5022", "Stock"), _R),
    Estate("SBR032", sales("tcp://localhost:5022", "Elsewhere"), _R),
    Estate("SBR048", sales("tcp://__host__:4022", "Elsewhere"), _R),
    Estate("SBR048", sales("tcp://your-server:4022", "Elsewhere"), _R),
    Estate("SBR033", configuration(named=False), [("one", "Sales", "Ask")]),
    Estate("SBR034", with_disabled("one", "Sales"), [("one", "Sales", "Sales")]),
    Estate("SBR035", with_disabled("one", "msdb"), [("one", "msdb", "msdb")]),
    Estate("SBR036", pair, [("one", "msdb", "AutoCreatedLocal"), ("two", "msdb", "AutoCreatedLocal")]),
    Estate("SBR037", sales("TCP://one:4022/", "Sales"), _R),
    Estate("SBR037", sales("tcp://localhost:4022", "Sales"), _R),
    Estate("SBR038", dialogs("id-1", "id-2"), [("one", "Sales", "Stock")]),
    Estate("SBR041", both_targets(TO_THREE), _R),
    Estate("SBR041", both_by_a_gate, [("gate", "msdb", "On-three")]),
    Estate("SBR041", both_by_a_chain, _R),
    Estate("SBR041", listener(), _R),
    Estate("SBR041", held_here, [("another", "Sales", "A")]),
    Estate("SBR041", by_loopback, [("another", "Sales", "A")]),
    Estate("SBR041", any_service_twice, [("one", "App", "A"), ("one", "Sales", "A")]),
    Estate("SBR043", asking("LOCAL"), [("one", "Sales", "Ask")]),
    Estate("SBR043", asking("tcp://two:4022"), [("one", "Sales", "Ask")]),
    # A request that msdb makes is sent from msdb.
    Estate("SBR043", asking("LOCAL", scope="msdb"), [("one", "msdb", "Ask")]),
    # The service is there, and nothing leads to it: what arrives for it matches no route of msdb.
    Estate("SBR043", asking("tcp://two:4022", answered_by="two", local=False), [("one", "Sales", "Ask")]),
    Estate("SBR043", asked_by_a_gate(forwarding=True), [("gate", "msdb", "Ask"), ("one", "Sales", "Ask")]),
    Estate("SBR043", asked_by_a_gate(forwarding=False), [("gate", "msdb", "Ask"), ("one", "Sales", "Ask")]),
    Estate("SBR044", sales("LOCAL", "Elsewhere"), _R),
    Estate("SBR044", sales("local", "Elsewhere", "ID-Sales"), _R),
    Estate("SBR044", routes(("one", "msdb", "R", "LOCAL", "Elsewhere")), [("one", "msdb", "R")]),
    # The route that leads elsewhere is for messages of another broker instance.
    Estate(
        "SBR044",
        routes(("one", "Sales", "R", "LOCAL", "Stock"), ("one", "Sales", "S", FAR, "Stock", "id-far")),
        _R,
    ),
    Estate("SBR045", with_depot(), [("one", "Depot", "Depot"), ("one", "Sales", "Sales")]),
    # A route of the instance that names the service is enough, whichever database it stands in.
    Estate("SBR045", with_depot(("one", "Sales", "R", "LOCAL", "Depot")), [("one", "Sales", "Sales")]),
    # One that leads elsewhere, or is for arrivals, does not lead to it.
    Estate(
        "SBR045",
        with_depot(("one", "msdb", "R", "LOCAL", "Depot"), ("one", "Depot", "S", FAR, "Depot")),
        [("one", "Depot", "Depot"), ("one", "Sales", "Sales")],
    ),
    Estate("SBR046", sales("tcp://two:4022", "Stock"), _R),
    Estate("SBR046", sales("LOCAL", "Sales"), _R),
    Estate("SBR046", routes(("one", "msdb", "R", "LOCAL", "Sales")), [("one", "msdb", "R")]),
    Estate(
        "SBR046",
        sole_stock_behind_a_gate(forwarding=True),
        [("gate", "msdb", "On"), ("one", "Sales", "R"), ("one", "Sales", "S")],
    ),
    Estate(
        "SBR047",
        routes(*_SPREAD, ("one", "Sales", "B3", "TCP://FAR:4022/", "Spread", "{ID-2}")),
        [("one", "Sales", "B3")],
    ),
)

HAS_NOT: tuple[Estate, ...] = tuple(
    Estate(code, build, [])
    for code, build in (
        ("SBR001", sales(FAR, None)),
        ("SBR002", sales(FAR, "x" * 256)),
        ("SBR002", sales(FAR, "\U0001f600" * 128)),
        ("SBR003", sales(FAR, "Elsewhere", "id-far", mirror_address="tcp://mirror:4022")),
        ("SBR004", sales(FAR, "Elsewhere", "id-far")),
        ("SBR005", sales(FAR, "Elsewhere", "id-far", mirror_address="tcp://mirror:4022")),
        ("SBR006", sales(" TCP://far:4022// ")),
        ("SBR007", sales("TRANSPORT")),
        ("SBR008", sales(FAR, "Elsewhere", valid_from=NOW, lifetime=NOW + timedelta(seconds=2**31 - 1))),
        ("SBR009", sales(FAR, "Elsewhere", "id-far", mirror_address="tcp://far:4023")),
        ("SBR010", versions),
        # An address outside the grammar is SBR006 alone.
        ("SBR010", sales("http://far:4022")),
        ("SBR011", sales(FAR, BROKER_CONFIGURATION_SERVICE)),
        ("SBR012", databases(("one", "Copy", "id-copy"))),
        ("SBR013", databases(("two", "Sales", "id-Sales"))),
        ("SBR014", databases(("two", "Sales", "id-other"))),
        ("SBR015", sales("LOCAL", "Sales", "id-sales")),
        ("SBR015", sales("tcp://two:4022", "Stock", "id-stock")),
        # A place outside the tables may host any id.
        ("SBR015", sales(FAR, "Elsewhere", "id-nobody")),
        # A forwarder may know the way.
        ("SBR015", routes((*TO_STOCK, "id-nobody"), forwarding=True)),
        ("SBR016", sales("tcp://two:4022", "Stock")),
        ("SBR016", sales(FAR, "Elsewhere")),
        (
            "SBR017",
            routes(
                ("one", "Sales", "B1", FAR, "Spread", "id-1"),
                ("one", "Sales", "B2", FAR, "Spread", "id-2"),
            ),
        ),
        # One id is no balancing: bound messages take its route, open ones the other.
        (
            "SBR017",
            routes(("one", "Sales", "B1", FAR, "Spread", "id-1"), ("one", "Sales", "Open", FAR, "Spread")),
        ),
        ("SBR018", gateways),
        # What is proved is SBR041 and nothing besides.
        ("SBR018", both_targets(TO_THREE)),
        ("SBR019", databases(("two", "Second", "id-second", "Other"))),
        ("SBR020", routes(TO_STOCK, BACK)),
        # One way back is enough: which of the sender's services begins the dialog is not known.
        ("SBR020", two_senders),
        ("SBR021", routes(TO_STOCK)),
        ("SBR022", routes(TO_STOCK)),
        ("SBR023", lambda: pair(local=False)),
        ("SBR024", pair),
        ("SBR025", routes(("one", "msdb", "R", FAR, "Elsewhere"), forwarding=True)),
        # Off only as long as it is not known.
        ("SBR025", routes(("one", "msdb", "R", FAR, "Elsewhere"), forwarding=None)),
        ("SBR040", routes(("one", "msdb", "R", FAR, "Elsewhere"))),
        ("SBR040", routes(("one", "msdb", "R", FAR, "Elsewhere"), forwarding=True)),
        ("SBR040", routes(forwarding=None)),
        ("SBR026", loop(back=FAR)),
        ("SBR026", long_loop(closed=False)),
        ("SBR027", routes(TO_STOCK, ("one", "Sales", "S", "tcp://three:4022", "Stock"))),
        (
            "SBR027",
            routes(
                ("one", "Sales", "Here", "LOCAL", "Sales"),
                ("one", "Sales", "There", FAR, "Sales"),
                ("one", "Sales", "Pinned", FAR, "Sales", "id-far"),
                ("one", "Sales", "Any", "LOCAL"),
                ("one", "Sales", "ByName", "TRANSPORT"),
            ),
        ),
        ("SBR029", versions),
        ("SBR030", sales(FAR, "Elsewhere", lifetime=NOW + 31 * DAY)),
        ("SBR030", sales(FAR, "Elsewhere", lifetime=NOW)),
        ("SBR031", sales(FAR, "Elsewhere")),
        ("SBR048", sales("tcp://sql_01.example:4022", "Elsewhere")),
        ("SBR048", sales("tcp://10.0.0.7:4022", "Elsewhere")),
        ("SBR032", sales("tcp://two:4022", "Stock")),
        ("SBR032", sales("tcp://far:5022", "Elsewhere")),
        ("SBR032", with_instance("tcp://one:5022", sales("tcp://localhost:5022", "Elsewhere"))),
        ("SBR033", configuration(named=True)),
        ("SBR034", databases(("two", "Idle", "id-idle-2"), enabled=False)),
        ("SBR035", pair),
        ("SBR036", lambda: pair(local=False)),
        ("SBR037", sales("tcp://two:4022", "Stock")),
        ("SBR038", dialogs("id-1", "ID-1")),
        ("SBR038", dialogs("id-1", "id-2", group=False)),
        # Only what arrives at one of them is known to be delivered.
        ("SBR041", lambda: both_hold(TO_STOCK, TO_THREE)),
        ("SBR041", gates_to_one),
        ("SBR041", listener(mirrored=True)),
        # Each is balanced to its own target.
        ("SBR041", both_targets((*TO_THREE, "id-stock-3"), (*TO_STOCK, "id-stock"), to_stock=False)),
        # The routes of another tier are not used in turn with these.
        ("SBR041", both_targets((*TO_THREE[:3], "LOCAL", "Stock"))),
        # A request comes first, and whether one is pending is not in the tables that lint reads.
        ("SBR041", any_service_that_is_asked_for),
        ("SBR043", asking("LOCAL", answered_by="one")),
        ("SBR043", asking("tcp://two:4022", answered_by="two")),
        # A place outside the tables may hold the service.
        ("SBR043", asking(FAR)),
        # One that the transport may take is enough.
        ("SBR043", asking("tcp://two:4022", "tcp://three:4022", answered_by="three")),
        # A forwarder may know the way, and this one is only taken not to forward.
        ("SBR043", asked_by_a_gate(forwarding=None, asks=False)),
        # Nothing asks where nothing is searched.
        ("SBR043", asking("LOCAL", enabled=False)),
        ("SBR044", sales("LOCAL", "Sales")),
        # What LOCAL cannot take goes on to the network address.
        (
            "SBR044",
            routes(("one", "Sales", "R", "LOCAL", "Stock"), ("one", "Sales", "S", "tcp://two:4022", "Stock")),
        ),
        # An id that is not here is SBR015 alone, requests are SBR043 alone.
        ("SBR044", sales("LOCAL", "Elsewhere", "id-stock")),
        ("SBR044", asking("LOCAL")),
        # Every database holds it.
        ("SBR044", sales("LOCAL", "http://schemas.microsoft.com/SQL/Notifications/EventNotificationService")),
        ("SBR044", asking("LOCAL", enabled=False, service="Elsewhere")),
        ("SBR045", pair),
        (
            "SBR045",
            with_depot(
                ("one", "Sales", "R", "LOCAL", "Depot"), ("one", "Depot", "S", "LOCAL", "Sales", "id-sales")
            ),
        ),
        # A request for a route comes before AutoCreatedLocal: that is SBR033.
        ("SBR045", configuration(named=True)),
        ("SBR046", sales("tcp://two:4022", "Stock", "id-stock")),
        ("SBR046", sales(FAR, "Stock")),
        # A second instance of the service is known: which one is meant, or whether both, nothing tells.
        ("SBR046", lambda: both_hold(TO_STOCK)),
        ("SBR046", sole_stock_behind_a_gate(forwarding=None)),
        # There is none to give.
        ("SBR046", without_broker_id),
        # Requests are sent without one.
        ("SBR046", asking("tcp://two:4022", answered_by="two")),
        # One id by two ways: it is reached where one of them is down.
        ("SBR047", routes(*_SPREAD, ("one", "Sales", "B3", "tcp://two:4022", "Spread", "id-2"))),
        # There is nothing to share out; that it is doubled is SBR027.
        ("SBR047", routes(_SPREAD[0], ("one", "Sales", "B3", FAR, "Spread", "id-1"))),
        # What is said of a share is not said again.
        ("SBR027", routes(*_SPREAD, ("one", "Sales", "B3", FAR, "Spread", "id-2"))),
    )
)
