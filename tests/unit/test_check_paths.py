"""check follows messages that leave their instance, in both directions, to the place where they get stuck."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import routing
from routing.cases.message_cases import MessageResult
from routing.document import SqlStatement
from routing.rules.timeline import moment_of
from routing.views.check.checking import Check, check
from routing.views.check.grouping import STUCK_KINDS, MessageGroup
from tests.check_texts import print_check, print_message
from tests.exported import GUID, database, endpoint, export, handle, route, waiting
from tests.exported_networks import exported_network, write_network
from tests.frames import arrow

ORDERS, STOCK, STOCK_2, OLD = (GUID.format(digits) for digits in ("0d0d0d0d", "a1a1a1a1", "a2a2a2a2", "ffffffff"))
LOCAL = route("AutoCreatedLocal")
TO_STOCK = route("ToStock", "//stock", "TCP://stock:4022")
BACK = route("Back", "//orders", "TCP://shop:4022")
Row = dict[str, Any]


@dataclass
class Server:
    """An exported instance without the views in ``left_out``, and routes of some databases.

    ``databases`` has (id, is on).
    """

    databases: dict[str, tuple[str, int]]
    services: dict[str, list[str]] = field(default_factory=dict)
    routes: dict[str, list[Row]] = field(default_factory=dict)
    forwards: int = 0
    port: int = 4022
    machine: str | None = None
    left_out: set[str] = field(default_factory=set)
    unread_routes: set[str] = field(default_factory=set)

    def write(self, folder: Path, name: str, **more: Any) -> None:
        databases = {"msdb": ("d4" * 4, 1), **self.databases}
        views: dict[str, Any] = {
            "databases": [
                {**database(each, "00000000", number, is_on), "service_broker_guid": as_guid(broker)}
                for number, (each, (broker, is_on)) in enumerate(databases.items(), start=4)
            ],
            "service_broker_endpoints": [
                {
                    "endpoint_id": 1,
                    "is_message_forwarding_enabled": self.forwards,
                    "machine_name": self.machine or name.split("\\")[0],
                    "full_name": f"{self.machine or name.split(chr(92))[0]}.example",
                    "port": self.port,
                }
            ],
            "routes": {
                each: self.routes.get(each, [LOCAL]) for each in databases if each not in self.unread_routes
            },
            "services": {
                each: [{"name": service} for service in self.services.get(each, [])] for each in databases
            },
            **more,
        }
        export(folder, name, **{view: rows for view, rows in views.items() if view not in self.left_out})


def as_guid(broker: str) -> str:
    return broker if "-" in broker else GUID.format(broker)


def shop(*routes: Row, **more: Any) -> Server:
    """The sender: Orders with //orders, and a route to the stock unless others are given."""
    return Server(
        {"Orders": (ORDERS, 1)},
        {"Orders": ["//orders"]},
        {"Orders": [LOCAL, *(routes or (TO_STOCK,))]},
        **more,
    )


def stock(*routes: Row, services: Sequence[str] = ("//stock",), is_on: int = 1, **more: Any) -> Server:
    """The target: Stock with //stock, and a route back unless others are given."""
    msdb = {"msdb": more.pop("msdb")} if "msdb" in more else {}
    return Server(
        {"Stock": (more.pop("broker", STOCK), is_on)},
        {"Stock": list(services)},
        {"Stock": [LOCAL, *(routes or (BACK,))], **msdb},
        **more,
    )


def hub(*msdb: Row, forwards: int = 1, **more: Any) -> Server:
    """A forwarder that holds nothing."""
    return Server({}, {}, {"msdb": list(msdb)}, forwards=forwards, **more)


def to(name: str, service: str | None, host: str, **columns: Any) -> Row:
    return route(name, service, f"TCP://{host}" if ":" in host else f"TCP://{host}:4022", **columns)


def bound_to(broker: str) -> Row:
    return endpoint(1, far_broker_instance=broker)


@dataclass
class Case:
    """Servers, and the end of the message of SHOP's Orders to //stock.

    ``stuck`` has the instance, searched database and reason of each failed path. ``remedies`` has the instance of
    each remedy and its statement, or words of it if a value is missing. ``mended`` is the end after running the
    first statement.
    """

    servers: dict[str, Server]
    end: str
    stuck: list[tuple[str, str, str]] = field(default_factory=list)
    remedies: list[tuple[str, str]] = field(default_factory=list)
    mended: str | None = "DELIVERED"
    dialog: Row = field(default_factory=lambda: endpoint(1))
    service: str = "//stock"
    from_service: str = "//orders"
    needs: list[tuple[str | None, str | None, str]] = field(default_factory=list)


CREATE_BACK = (
    "USE [Stock];\nCREATE ROUTE [Route to //orders] WITH SERVICE_NAME = N'//orders', ADDRESS = N'TCP://shop:4022';"
)
CREATE_LOCAL = "USE [msdb];\nCREATE ROUTE [AutoCreatedLocal] WITH ADDRESS = N'LOCAL';"
ENABLE_FORWARDING = "-- ALTER ENDPOINT [<endpoint>] FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED);"
BY_HUB = to("ToStock", "//stock", "hub")
FORWARDED = to("Stock", "//stock", "stock")
HOME_BY_HUB = to("Back", "//orders", "hub")
HOME = to("Orders", "//orders", "shop")

CASES: dict[str, Case] = {
    "arrives, and the acknowledgement comes back": Case({"SHOP": shop(), "STOCK": stock()}, "DELIVERED"),
    "arrives by a forwarder, both ways": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(FORWARDED, HOME), "STOCK": stock(HOME_BY_HUB)}, "DELIVERED"
    ),
    "the next instance lacks the service": Case(
        {"SHOP": shop(), "STOCK": stock(services=["//other"])},
        "DROPPED",
        [("STOCK", "msdb", "SERVICE_NOT_FOUND")],
        [("STOCK", "-- CREATE ROUTE [Route to //stock] WITH SERVICE_NAME = N'//stock', ADDRESS = N'tcp://<host>")],
        mended=None,
    ),
    "the next instance spells the service otherwise": Case(
        {"SHOP": shop(), "STOCK": stock(services=["//Stock"])},
        "DROPPED",
        [("STOCK", "msdb", "SERVICE_NOT_FOUND")],
        [("STOCK", "is called '//Stock'")],
        mended=None,
    ),
    "the service is in a third instance, to which the second does not forward": Case(
        {"SHOP": shop(), "STOCK": stock(services=["//other"]), "DEPOT": stock(broker=STOCK_2)},
        "DROPPED",
        [("STOCK", "msdb", "SERVICE_NOT_FOUND")],
        [("SHOP", "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://DEPOT.example:4022';")],
    ),
    "the broker of the target database is off": Case(
        {"SHOP": shop(), "STOCK": stock(is_on=0)},
        "DROPPED",
        [("STOCK", "msdb", "BROKER_DISABLED")],
        [("STOCK", "USE [master];\nALTER DATABASE [Stock] SET ENABLE_BROKER WITH NO_WAIT;")],
    ),
    "the broker of the target's msdb is off": Case(
        {"SHOP": shop(), "STOCK": Server({"msdb": ("d5" * 4, 0), "Stock": (STOCK, 1)}, {"Stock": ["//stock"]})},
        "DELAYED",
        [("STOCK", "msdb", "SCOPE_BROKER_DISABLED")],
        [("STOCK", "USE [master];\nALTER DATABASE [msdb] SET ENABLE_BROKER WITH NO_WAIT;")],
        mended="NO_RETURN_PATH",
    ),
    "msdb has no route for it": Case(
        {"SHOP": shop(), "STOCK": stock(msdb=[to("Other", "//other", "depot")])},
        "DELAYED",
        [("STOCK", "msdb", "NO_ROUTE")],
        [("STOCK", CREATE_LOCAL)],
    ),
    "msdb leads on, and forwarding is off": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(FORWARDED, HOME, forwards=0), "STOCK": stock()},
        "DROPPED",
        [("HUB", "msdb", "FORWARDING_DISABLED")],
        [("HUB", ENABLE_FORWARDING)],
        mended=None,
    ),
    "a forwarder has no route for it": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(HOME), "STOCK": stock(HOME_BY_HUB)},
        "DELAYED",
        [("HUB", "msdb", "NO_ROUTE")],
        [
            (
                "HUB",
                (
                    "USE [msdb];\nCREATE ROUTE [Route to //stock] WITH SERVICE_NAME = N'//stock', ADDRESS ="
                    " N'tcp://STOCK.example:4022';"
                ),
            ),
            ("SHOP", "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://STOCK.example:4022';"),
        ],
    ),
    "a forwarder's route has expired": Case(
        {
            "SHOP": shop(BY_HUB),
            "HUB": hub(to("Stock", "//stock", "stock", lifetime="2026-01-05T17:00:00"), HOME),
            "STOCK": stock(HOME_BY_HUB),
        },
        "DELAYED",
        [("HUB", "msdb", "NO_ROUTE")],
        [
            (
                "HUB",
                (
                    "USE [msdb];\nSET XACT_ABORT ON;\nBEGIN TRANSACTION;\n"
                    "DROP ROUTE [Stock];\nCREATE ROUTE [Stock] WITH SERVICE_NAME = N'//stock',"
                    " ADDRESS = N'TCP://stock:4022';\nCOMMIT TRANSACTION;"
                ),
            ),
            ("SHOP", "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';"),
        ],
    ),
    "a forwarder's route is spelt otherwise": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(to("Stock", "//stock/", "stock"), HOME), "STOCK": stock(HOME_BY_HUB)},
        "DELAYED",
        [("HUB", "msdb", "NO_ROUTE")],
        [
            ("HUB", "USE [msdb];\nALTER ROUTE [Stock] WITH SERVICE_NAME = N'//stock';"),
            ("SHOP", "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';"),
        ],
    ),
    "two forwarders send it to each other": Case(
        {
            "SHOP": shop(BY_HUB),
            "HUB": hub(to("Stock", "//stock", "gate")),
            "GATE": hub(to("Stock", "//stock", "hub")),
            "STOCK": stock(),
        },
        "LOOP",
        [("HUB", "msdb", "LOOP")],
        [("GATE", "USE [msdb];\nALTER ROUTE [Stock] WITH ADDRESS = N'tcp://STOCK.example:4022';")],
    ),
    "a forwarder sends it back to the sender": Case(
        {
            "SHOP": Server(
                {"Orders": (ORDERS, 1)},
                {"Orders": ["//orders"]},
                {"Orders": [LOCAL, BY_HUB], "msdb": [BY_HUB]},
                forwards=1,
            ),
            "HUB": hub(to("Stock", "//stock", "shop")),
            "STOCK": stock(),
        },
        "LOOP",
        [("HUB", "msdb", "LOOP")],
        [("HUB", "USE [msdb];\nALTER ROUTE [Stock] WITH ADDRESS = N'tcp://STOCK.example:4022';")],
    ),
    "the target itself sends it round": Case(
        {
            "SHOP": shop(BY_HUB),
            "HUB": hub(FORWARDED),
            "STOCK": stock(msdb=[to("Stock", "//stock", "hub")], forwards=1),
        },
        "LOOP",
        [("HUB", "msdb", "LOOP")],
        [("STOCK", "USE [msdb];\nALTER ROUTE [Stock] WITH ADDRESS = N'LOCAL';")],
    ),
    "a forwarder leads to itself": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(to("Stock", "//stock", "hub")), "STOCK": stock()},
        "DROPPED",
        [("HUB", "msdb", "ROUTING_LOOP")],
        [("HUB", "USE [msdb];\nALTER ROUTE [Stock] WITH ADDRESS = N'tcp://STOCK.example:4022';")],
    ),
    "a chain of a dozen forwarders arrives": Case(
        {
            "SHOP": shop(to("ToStock", "//stock", "h0")),
            **{f"H{number}": hub(to("S", "//stock", f"h{number + 1}"), HOME) for number in range(11)},
            "H11": hub(FORWARDED, HOME),
            "STOCK": stock(),
        },
        "DELIVERED",
    ),
    "no route leads back": Case(
        {"SHOP": shop(), "STOCK": stock(to("Other", "//other", "shop"))},
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", CREATE_BACK)],
    ),
    "no route at all in the target's database": Case(
        {
            "SHOP": shop(),
            "STOCK": Server({"Stock": (STOCK, 1)}, {"Stock": ["//stock"]}, {"Stock": [to("O", "//o", "shop")]}),
        },
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "NO_ROUTE")],
        [("STOCK", CREATE_BACK)],
    ),
    "the route back has expired": Case(
        {"SHOP": shop(), "STOCK": stock(to("Back", "//orders", "shop", lifetime="2026-01-05T17:59:59"))},
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "BROKER_INSTANCE_NOT_FOUND")],
        [
            (
                "STOCK",
                (
                    "USE [Stock];\nSET XACT_ABORT ON;\nBEGIN TRANSACTION;\n"
                    "DROP ROUTE [Back];\nCREATE ROUTE [Back] WITH SERVICE_NAME = N'//orders',"
                    " ADDRESS = N'TCP://shop:4022';\nCOMMIT TRANSACTION;"
                ),
            )
        ],
    ),
    "the route back is spelt otherwise": Case(
        {"SHOP": shop(), "STOCK": stock(to("Back", "//Orders", "shop"))},
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", "USE [Stock];\nALTER ROUTE [Back] WITH SERVICE_NAME = N'//orders';")],
    ),
    "the route back has the id from before a restore": Case(
        {"SHOP": shop(), "STOCK": stock(to("Back", "//orders", "shop", broker_instance=OLD))},
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", f"USE [Stock];\nALTER ROUTE [Back] WITH BROKER_INSTANCE = N'{ORDERS}';")],
    ),
    "the route back says LOCAL": Case(
        {"SHOP": shop(), "STOCK": stock(route("Back", "//orders", "LOCAL"))},
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", "USE [Stock];\nALTER ROUTE [Back] WITH ADDRESS = N'tcp://SHOP.example:4022';")],
    ),
    "a forwarder on the way back has no route": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(FORWARDED), "STOCK": stock(HOME_BY_HUB)},
        "NO_RETURN_PATH",
        [("HUB", "msdb", "NO_ROUTE")],
        [
            (
                "HUB",
                (
                    "USE [msdb];\nCREATE ROUTE [Route to //orders] WITH SERVICE_NAME = N'//orders', ADDRESS ="
                    " N'tcp://SHOP.example:4022';"
                ),
            ),
            ("STOCK", "USE [Stock];\nALTER ROUTE [Back] WITH ADDRESS = N'tcp://SHOP.example:4022';"),
        ],
    ),
    "a forwarder on the way back does not forward": Case(
        {"SHOP": shop(), "HUB": hub(HOME, forwards=0), "STOCK": stock(HOME_BY_HUB)},
        "NO_RETURN_PATH",
        [("HUB", "msdb", "FORWARDING_DISABLED")],
        [("HUB", ENABLE_FORWARDING)],
        mended=None,
    ),
    "the way back goes round": Case(
        {
            "SHOP": shop(),
            "HUB": hub(to("O", "//orders", "gate")),
            "GATE": hub(to("O", "//orders", "hub")),
            "STOCK": stock(HOME_BY_HUB),
        },
        "NO_RETURN_PATH",
        [("HUB", "msdb", "LOOP")],
        [("GATE", "USE [msdb];\nALTER ROUTE [O] WITH ADDRESS = N'tcp://SHOP.example:4022';")],
    ),
    "two ways back, one of them dead": Case(
        {"SHOP": shop(), "DEPOT": stock(services=["//x"]), "STOCK": stock(BACK, to("Old", "//orders", "depot"))},
        "NO_RETURN_PATH",
        [("DEPOT", "msdb", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", "USE [Stock];\nALTER ROUTE [Old] WITH ADDRESS = N'TCP://shop:4022';")],
    ),
    "the way back by TRANSPORT, for a service whose name holds the address": Case(
        {
            "SHOP": Server(
                {"Orders": (ORDERS, 1)}, {"Orders": ["tcp://shop:4022/orders"]}, {"Orders": [LOCAL, TO_STOCK]}
            ),
            "STOCK": Server(
                {"Stock": (STOCK, 1)}, {"Stock": ["//stock"]}, {"Stock": [route("Any", None, "TRANSPORT")]}
            ),
        },
        "DELIVERED",
        from_service="tcp://shop:4022/orders",
    ),
    "the way back by TRANSPORT, for a service whose name holds none": Case(
        {
            "SHOP": shop(),
            "STOCK": Server(
                {"Stock": (STOCK, 1)}, {"Stock": ["//stock"]}, {"Stock": [route("Any", None, "TRANSPORT")]}
            ),
        },
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "TRANSPORT_ADDRESS_INVALID")],
        [("STOCK", CREATE_BACK.replace("TCP://shop:", "tcp://SHOP.example:"))],
    ),
    "the way back by TRANSPORT to a port that is another instance's": Case(
        {
            "SHOP": Server(
                {"Orders": (ORDERS, 1)}, {"Orders": ["tcp://shop:5022/orders"]}, {"Orders": [LOCAL, TO_STOCK]}
            ),
            "SHOP\\TWO": Server({"Other": (STOCK_2, 1)}, port=5022),
            "STOCK": Server(
                {"Stock": (STOCK, 1)}, {"Stock": ["//stock"]}, {"Stock": [route("Any", None, "TRANSPORT")]}
            ),
        },
        "NO_RETURN_PATH",
        [("SHOP\\TWO", "msdb", "BROKER_INSTANCE_NOT_FOUND")],
        mended=None,
        from_service="tcp://shop:5022/orders",
    ),
    "localhost leads to another instance of the machine": Case(
        {
            "BOX": shop(to("ToStock", "//stock", "localhost:5022")),
            "BOX\\TWO": stock(to("Back", "//orders", "localhost:4022"), port=5022),
        },
        "DELIVERED",
    ),
    "localhost leads to another instance of the machine, which lacks the service": Case(
        {
            "BOX": shop(to("ToStock", "//stock", "localhost:5022")),
            "BOX\\TWO": stock(services=["//other"], port=5022),
        },
        "DROPPED",
        [("BOX\\TWO", "msdb", "SERVICE_NOT_FOUND")],
        mended=None,
    ),
    "the way back by localhost stays at the target": Case(
        {"SHOP": shop(), "STOCK": stock(to("Back", "//orders", "localhost:4022"))},
        "NO_RETURN_PATH",
        [("STOCK", "msdb", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", "USE [Stock];\nALTER ROUTE [Back] WITH ADDRESS = N'tcp://SHOP.example:4022';")],
    ),
    "one's own address leads by msdb to another instance": Case(
        {
            "SHOP": Server(
                {"Orders": (ORDERS, 1)},
                {"Orders": ["//orders"]},
                {"Orders": [LOCAL, to("Home", "//stock", "shop")], "msdb": [LOCAL, TO_STOCK]},
                forwards=1,
            ),
            "STOCK": stock(is_on=0),
        },
        "DROPPED",
        [("STOCK", "msdb", "BROKER_DISABLED")],
        [("STOCK", "USE [master];\nALTER DATABASE [Stock] SET ENABLE_BROKER WITH NO_WAIT;")],
    ),
    "a principal that lacks it, and a mirror that has it": Case(
        {
            "SHOP": shop(
                to("ToStock", "//stock", "depot", mirror_address="TCP://stock:4022", broker_instance=STOCK)
            ),
            "DEPOT": stock(services=["//other"], broker=STOCK_2),
            "STOCK": stock(),
        },
        "DELIVERED",
    ),
    "a principal and a mirror that both lack it": Case(
        {
            "SHOP": shop(
                to("ToStock", "//stock", "depot", mirror_address="TCP://stock:4022", broker_instance=STOCK)
            ),
            "DEPOT": stock(services=["//other"], broker=STOCK_2),
            "STOCK": stock(services=["//other"]),
        },
        "DROPPED",
        [("DEPOT", "msdb", "BROKER_INSTANCE_NOT_FOUND"), ("STOCK", "msdb", "SERVICE_NOT_FOUND")],
        mended=None,
    ),
    "two open routes, of which the alternative leads to an instance that lacks it": Case(
        {
            "SHOP": shop(TO_STOCK, to("ZAlso", "//stock", "depot")),
            "STOCK": stock(),
            "DEPOT": stock(services=["//other"], broker=STOCK_2),
        },
        "DROPPED",
        [("DEPOT", "msdb", "SERVICE_NOT_FOUND")],
        [("SHOP", "USE [Orders];\nALTER ROUTE [ZAlso] WITH ADDRESS = N'TCP://stock:4022';")],
    ),
    "a route with the id from before a restore, an open dialog": Case(
        {
            "SHOP": shop(to("ToStock", "//stock", "stock", broker_instance=OLD)),
            "STOCK": stock(),
        },
        "DROPPED",
        [("STOCK", "msdb", "BROKER_INSTANCE_NOT_FOUND")],
        [("SHOP", f"USE [Orders];\nALTER ROUTE [ToStock] WITH BROKER_INSTANCE = N'{STOCK}';")],
    ),
    "a dialog that is bound to the id from before a restore": Case(
        {"SHOP": shop(), "STOCK": stock()},
        "DROPPED",
        [("STOCK", "msdb", "BROKER_INSTANCE_NOT_FOUND")],
        [("SHOP", "END CONVERSATION, and begin them again")],
        mended=None,
        dialog=bound_to(OLD),
    ),
    "the next instance asks for a route": Case(
        {
            "SHOP": shop(),
            "STOCK": stock(msdb=[LOCAL, route("Ask", "SQL/ServiceBroker/BrokerConfiguration")]),
        },
        "DELAYED",
        [("STOCK", "msdb", "ROUTE_REQUESTED")],
        [("STOCK", "BrokerConfiguration service exists")],
        mended=None,
    ),
    "the acknowledgement reaches a copy of the database": Case(
        {
            "SHOP": shop(),
            "COPY": Server({"Orders": (ORDERS, 1)}, {"Orders": ["//orders"]}),
            "STOCK": stock(to("Back", "//orders", "copy")),
        },
        "NO_RETURN_PATH",
        [("COPY", "msdb", "LOCAL_SERVICE")],
        [("COPY", "SET NEW_BROKER"), ("SHOP", "SET NEW_BROKER")],
        mended=None,
    ),
    "the target is a copy of another one, and no route leads back": Case(
        {
            "SHOP": shop(),
            "STOCK": stock(to("Other", "//other", "shop")),
            "COPY": stock(),
        },
        "NO_RETURN_PATH",
        [("STOCK", "Stock", "BROKER_INSTANCE_NOT_FOUND")],
        [("STOCK", "SET DISABLE_BROKER"), ("COPY", "SET NEW_BROKER"), ("STOCK", CREATE_BACK)],
        mended=None,
    ),
    "a reply to a database without the service that shares the broker instance of the one that began": Case(
        {"SHOP": shop(to("ToStock", "//stock", "depot")), "DEPOT": stock(services=["//other"]), "STOCK": stock()},
        "DROPPED",
        [("DEPOT", "msdb", "SERVICE_NOT_FOUND")],
        [
            ("DEPOT", "SET NEW_BROKER"),
            ("SHOP", "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://STOCK.example:4022';"),
        ],
        mended=None,
        dialog=endpoint(1, far_broker_instance=STOCK, is_initiator=0),
    ),
    "msdb of a hub that does not forward leads to another port of a known machine": Case(
        {
            "SHOP": shop(BY_HUB),
            "HUB": hub(to("Stock", "//stock", "stock:4023"), HOME, forwards=0),
            "STOCK": stock(),
        },
        "DROPPED",
        [("HUB", "msdb", "FORWARDING_DISABLED")],
        [("HUB", "USE [msdb];\nALTER ROUTE [Stock] WITH ADDRESS = N'tcp://STOCK.example:4022';")],
        mended=None,
    ),
    "msdb of a hub that does not forward leads to an instance that neither holds it nor routes on": Case(
        {"SHOP": shop(BY_HUB), "HUB": hub(FORWARDED, forwards=0), "STOCK": stock(services=["//other"])},
        "DROPPED",
        [("HUB", "msdb", "FORWARDING_DISABLED")],
        [("HUB", "-- ALTER ROUTE [Stock] WITH ADDRESS = N'tcp://<host>:<port>';")],
        mended=None,
    ),
    "msdb of the target leads to an old address": Case(
        {"SHOP": shop(), "STOCK": stock(msdb=[LOCAL, to("Old", "//stock", "gone")])},
        "DROPPED",
        [("STOCK", "msdb", "FORWARDING_DISABLED")],
        [("STOCK", "USE [msdb];\nALTER ROUTE [Old] WITH ADDRESS = N'LOCAL';")],
    ),
    "an msdb route behind one's own address leads to an instance that lacks the service": Case(
        {
            "SHOP": Server(
                {"Orders": (ORDERS, 1)},
                {"Orders": ["//orders"]},
                {"Orders": [LOCAL, to("Home", "//stock", "shop")], "msdb": [LOCAL, to("On", "//stock", "depot")]},
                forwards=1,
            ),
            "DEPOT": stock(services=["//other"], broker=STOCK_2),
            "STOCK": stock(),
        },
        "DROPPED",
        [("DEPOT", "msdb", "SERVICE_NOT_FOUND")],
        [("SHOP", "USE [msdb];\nALTER ROUTE [On] WITH ADDRESS = N'tcp://STOCK.example:4022';")],
    ),
    "an address that no export has": Case(
        {"SHOP": shop()},
        "NOT_KNOWN",
        needs=[(None, None, "INSTANCE_AT_ADDRESS")],
    ),
    "an address that reads like the one instance whose endpoint was not exported": Case(
        {"SHOP": shop(), "STOCK": stock(left_out={"service_broker_endpoints"})},
        "DELIVERED",
    ),
    "the same, which lacks the service": Case(
        {"SHOP": shop(), "STOCK": stock(services=["//x"], left_out={"service_broker_endpoints"})},
        "DROPPED",
        [("STOCK", "msdb", "SERVICE_NOT_FOUND")],
        mended=None,
    ),
    "an address that reads like two instances of a machine": Case(
        {
            "SHOP": shop(),
            "STOCK": stock(left_out={"service_broker_endpoints"}),
            "STOCK\\TWO": stock(left_out={"service_broker_endpoints"}),
        },
        "NOT_KNOWN",
        needs=[(None, None, "INSTANCE_AT_ADDRESS")],
    ),
    "an instance to which routes lead by two ports, and none is known to be its own": Case(
        {
            "SHOP": shop(TO_STOCK, to("Other", "//other", "stock:4023")),
            "STOCK": stock(left_out={"service_broker_endpoints"}),
        },
        "NOT_KNOWN",
        needs=[("STOCK", None, "INSTANCE_AT_ADDRESS")],
    ),
    "the port of SQL Server itself": Case(
        {"SHOP": shop(to("S", "//stock", "stock:1433")), "STOCK": stock(left_out={"service_broker_endpoints"})},
        "NOT_KNOWN",
        needs=[("STOCK", None, "INSTANCE_AT_ADDRESS")],
    ),
    "the next instance without its services": Case(
        {"SHOP": shop(), "STOCK": stock(left_out={"services"})},
        "NOT_KNOWN",
        needs=[("STOCK", "Stock", "SERVICES")],
    ),
    "the next instance without its routes": Case(
        {"SHOP": shop(), "STOCK": stock(left_out={"routes"})},
        "NOT_KNOWN",
        needs=[("STOCK", "msdb", "ROUTES")],
    ),
    "the way back starts in a database whose routes were not exported": Case(
        {
            "SHOP": shop(),
            "STOCK": Server({"Stock": (STOCK, 1)}, {"Stock": ["//stock"]}, unread_routes={"Stock"}),
        },
        "NOT_KNOWN",
        needs=[("STOCK", "Stock", "ROUTES")],
    ),
    "the next instance with its endpoint alone": Case(
        {"SHOP": shop(), "STOCK": stock(left_out={"routes", "services", "databases"})},
        "NOT_KNOWN",
        needs=[("STOCK", None, "DATABASES"), ("STOCK", "msdb", "ROUTES")],
    ),
    "the way back leaves what is known": Case(
        {"SHOP": shop(), "STOCK": stock(HOME_BY_HUB)},
        "NOT_KNOWN",
        needs=[(None, None, "INSTANCE_AT_ADDRESS")],
    ),
}


def checked(folder: Path, case: Case, *, status: str = "", then: Sequence[str] = ()) -> Check:
    queue = [waiting(1, case.service, from_service_name=case.from_service, transmission_status=status)]
    for number, (name, server) in enumerate(case.servers.items()):
        sent = {} if number else {"transmission_queue": {"Orders": queue}}
        ends = {} if number else {"conversation_endpoints": {"Orders": [case.dialog]}}
        server.write(folder, name, **sent, **ends)
    return check([str(folder)], then=then)


def stuck_at(group: MessageGroup) -> list[tuple[str, str, str]]:
    """Return where and why each path fails. A delivered path without acknowledgement fails on its return path."""
    assert group.path is not None
    ways = [one for one in group.path.failing_paths if one.is_return or one.hop_path.ending.value != "DELIVERED"]
    return [
        (
            one.hop_path.instance or "",
            one.hop_path.hops[-1].scope if one.hop_path.ending.value != "LOOP" else "msdb",
            str(one.hop_path.reason or one.hop_path.ending),
        )
        for one in ways
    ]


def is_told(expected: tuple[str, str], advice: Any) -> bool:
    instance, text = expected
    statement = advice.remedy.statement or ""
    exact = not text.startswith("--") and text.startswith("USE ")
    is_shown = statement == text if exact else text in statement or text in advice.remedy.text
    return advice.remedy.instance == instance and is_shown


@pytest.mark.parametrize("name", CASES)
def test_each_case_ends_as_expected(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    [group] = checked(tmp_path / "exports", case, status="?").groups
    path = group.path
    assert group.first.case.outcome in ("SENT", "FORWARDED")
    assert path is not None
    assert (group.first.case.end, stuck_at(group)) == (case.end, case.stuck)
    assert group.first.case.is_failing is (case.end not in ("DELIVERED", "NOT_KNOWN"))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.remedies])
def test_a_failing_path_has_its_remedies(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    [group] = checked(tmp_path, case).groups
    advice = [(each.remedy.instance, each.remedy.statement or each.remedy.text) for each in group.advice]
    assert len(group.advice) == len(case.remedies), advice
    assert all(map(is_told, case.remedies, group.advice)), advice


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.remedies and case.mended])
def test_the_first_statement_mends_the_path(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    instance, statement = case.remedies[0]
    fix = tmp_path / "fix.sql"
    fix.write_text(f":CONNECT {instance}\n{statement}\n")
    done = checked(tmp_path / "exports", case, then=[str(fix)])
    assert done.with_scripts is not None
    assert [result.case.end for result in done.with_scripts.results] == [case.mended]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.needs])
def test_missing_exports_of_a_path_are_listed(name: str, tmp_path: Path) -> None:
    from routing.views.check.check_json import as_object

    case = CASES[name]
    [group] = as_object(checked(tmp_path, case))["groups"]
    needs = [(each["instance_name"], each["database_name"], each["code"]) for each in group["path"]["not_known"]]
    assert needs == case.needs
    assert all(each["view"].startswith("sys.") for each in group["path"]["not_known"])


# What lint says of the path that a message fails on: code, instance, database and object.
FINDINGS = {
    "the next instance lacks the service": [("SBR022", "STOCK", "msdb", "//stock")],
    "the next instance spells the service otherwise": [("SBR016", "SHOP", "Orders", "ToStock")],
    "the broker of the target database is off": [("SBR034", "STOCK", "Stock", "Stock")],
    "the broker of the target's msdb is off": [("SBR035", "STOCK", "msdb", "msdb")],
    "msdb has no route for it": [("SBR021", "STOCK", "msdb", "//stock")],
    "msdb leads on, and forwarding is off": [("SBR025", "HUB", "msdb", "Stock")],
    "a forwarder's route has expired": [("SBR029", "HUB", "msdb", "Stock")],
    "two forwarders send it to each other": [("SBR026", "GATE", "msdb", "//stock")],
    "a forwarder leads to itself": [("SBR037", "HUB", "msdb", "Stock")],
    "no route leads back": [("SBR020", "STOCK", "Stock", "//orders")],
    "the route back has expired": [("SBR029", "STOCK", "Stock", "Back")],
    "the route back has the id from before a restore": [("SBR015", "STOCK", "Stock", "Back")],
    "a forwarder on the way back does not forward": [("SBR025", "HUB", "msdb", "Orders")],
    "two ways back, one of them dead": [("SBR022", "DEPOT", "msdb", "//orders")],
    "the way back by localhost stays at the target": [("SBR037", "STOCK", "Stock", "Back")],
    "one's own address leads by msdb to another instance": [("SBR034", "STOCK", "Stock", "Stock")],
    "the next instance asks for a route": [
        ("SBR033", "STOCK", "msdb", "Ask"),
        ("SBR043", "STOCK", "msdb", "Ask"),
    ],
    "localhost leads to another instance of the machine, which lacks the service": [
        ("SBR022", "BOX\\TWO", "msdb", "//stock")
    ],
    "the acknowledgement reaches a copy of the database": [("SBR014", "COPY", "Orders", ORDERS)],
}


@pytest.mark.parametrize("name", FINDINGS)
def test_findings_of_lint_are_shown_with_the_messages(name: str, tmp_path: Path) -> None:
    done = checked(tmp_path, CASES[name])
    [group] = done.groups
    findings = [(one.code, one.instance_name, one.database_name, one.object) for one in done.findings_on(group)]
    assert set(FINDINGS[name]) <= set(findings)
    assert set(done.findings_on(group)) == set(done.findings)


@pytest.mark.parametrize(
    ("view", "codes"), [("services", {"SBR022"}), ("routes", {"SBR020", "SBR021"})], ids=["services", "routes"]
)
def test_missing_views_cause_no_finding(view: str, codes: set[str], tmp_path: Path) -> None:
    """A service or route that was not exported is not reported as missing."""
    servers = {"SHOP": shop(), "STOCK": stock(left_out={view})}
    done = checked(tmp_path, Case(servers, "NOT_KNOWN"))
    assert {one.code for one in done.every_finding}.isdisjoint(codes)


def test_an_assumed_address_is_reported(tmp_path: Path) -> None:
    from routing.views.check.check_json import as_object

    done = checked(tmp_path, CASES["an address that reads like the one instance whose endpoint was not exported"])
    [group] = as_object(done)["groups"]
    assert group["path"]["assumed"] == [{"address": "TCP://stock:4022", "instance_name": "STOCK"}]
    line = "  - judging by its name, 'STOCK' listens at 'TCP://stock:4022': its own addresses are not known\n"
    assert line in print_check(done)


def test_one_message_is_explained_to_its_end(tmp_path: Path) -> None:

    from routing.commands.checked_message import explain_as_object

    done = checked(tmp_path, CASES["no route leads back"])
    output = print_message(done, "c0000001-0000-4000-8000-000000000000")
    assert output.startswith("Message 'c0000001-0000-4000-8000-000000000000:I:0:Orders' is stuck: SENT, ")
    assert "\nFollowed from there, it ends NO_RETURN_PATH\n- there:\n" in output
    last = "  1. 'STOCK', 'Stock': step 5, route 'AutoCreatedLocal', DELAYED"
    assert f"- and back, the acknowledgement:\n{last}" in output
    [explained] = explain_as_object(done, "c0000001-0000-4000-8000-000000000000")["explained"]
    assert explained["end"] == "NO_RETURN_PATH"
    assert [way["direction"] for way in explained["path"]["ways"]] == ["THERE", "BACK"]


@pytest.mark.parametrize(
    ("case", "script", "sides"),
    [
        pytest.param(
            CASES["no route leads back"],
            f":CONNECT STOCK\n{CREATE_BACK}\n",
            [("SENT", "NO_RETURN_PATH", "STOCK"), ("SENT", "DELIVERED", "STOCK")],
            id="it mends the acknowledgement",
        ),
        pytest.param(
            CASES["a forwarder on the way back has no route"],
            (
                ":CONNECT HUB\nUSE [msdb];\n"
                "CREATE ROUTE [Home] WITH SERVICE_NAME = N'//orders', ADDRESS = N'TCP://shop:4022';\n"
            ),
            [("SENT", "NO_RETURN_PATH", "STOCK"), ("SENT", "DELIVERED", "STOCK")],
            id="it mends a forwarder of the acknowledgement",
        ),
        pytest.param(
            Case(
                {"SHOP": shop(BY_HUB), "HUB": hub(FORWARDED), "STOCK": stock(), "DEPOT": stock(broker=STOCK_2)},
                "DELIVERED",
            ),
            ":CONNECT HUB\nUSE [msdb];\nALTER ROUTE [Stock] WITH ADDRESS = N'TCP://depot:4022';\n",
            [("SENT", "DELIVERED", "STOCK"), ("SENT", "DELIVERED", "DEPOT")],
            id="it leads the forwarder to another target",
        ),
    ],
)
def test_a_script_for_another_instance_is_a_change(
    case: Case, script: str, sides: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    from routing.views.check.check_json import as_object

    fix = tmp_path / "fix.sql"
    fix.write_text(script)
    done = checked(tmp_path / "exports", case, then=[str(fix)])
    [change] = as_object(done)["then"]["changes"]
    assert sides == [
        (change[side]["outcome"], change[side]["end"], change[side]["end_instance"])
        for side in ("before", "after")
    ]
    was, now = (f"ends {end} at '{instance}'" for _, end, instance in sides)
    assert f"{was} → SENT, " in print_check(done)
    assert now in print_check(done)


def test_a_page_shows_failing_paths_and_their_remedies(tmp_path: Path) -> None:
    from routing.views.check.check_report import as_report

    page = as_report(checked(tmp_path, CASES["no route leads back"]))
    assert page.endings == {"NO_RETURN_PATH": 1}
    ends = [(flow.ending_reason, flow.ending_instance) for flow in page.flows]
    assert ends == [("BROKER_INSTANCE_NOT_FOUND", "STOCK")]
    assert page.problems is not None
    [problem] = page.problems
    assert any("what to do on 'STOCK'" in str(block) for block in problem.blocks)
    assert [block.text for block in problem.blocks if isinstance(block, SqlStatement)] == [CREATE_BACK]


def test_a_page_counts_messages_without_acknowledgement_where_they_end(tmp_path: Path) -> None:
    from routing.views.check.check_report import as_report

    [flow] = as_report(checked(tmp_path, CASES["a forwarder on the way back has no route"])).flows
    assert (flow.ending_reason, flow.ending_instance) == ("NO_ROUTE", "STOCK")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.remedies])
def test_trace_gives_the_advice_of_check(name: str, tmp_path: Path) -> None:
    done = checked(tmp_path, CASES[name])
    [group] = done.groups
    assert traced_advice(done, group.first) == [advice.remedy.as_object() for advice in group.advice]


def test_trace_gives_the_advice_of_check_in_random_networks(tmp_path: Path) -> None:
    rng, compared = random.Random(5), 0
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_network(folder, exported_network(rng, 24))
        done = check([str(folder)])
        for group in done.groups:
            if group.kind not in STUCK_KINDS:
                continue
            advice = unnumbered(json.dumps([advice.remedy.as_object() for advice in group.advice]))
            for result in group.results:
                assert unnumbered(json.dumps(traced_advice(done, result, [str(folder)]))) == advice
                compared += 1
    assert compared > 40


def traced_advice(done: Check, result: MessageResult, exports: Sequence[str] = ()) -> list[Row]:
    rows = done.estate.evidence.rows
    keys = ("instances", "databases", "services", "routes", "messages", "dialogs")
    traced = routing.trace(
        arrow({key: list(rows[key]) for key in keys}),
        routing.StoredMessage(result.row["message_id"], result.row["instance_name"]),
        as_of=moment_of(done.estate.times[result.row["instance_name"]]),
        exports=exports,
    )
    return [remedy.as_object() for remedy in traced.remedies]


def unnumbered(text: str) -> str:
    """Remove the numbers from the names of new routes, which depend on the other remedies."""
    return re.sub(r" \d+\]", "]", text)


def test_messages_of_other_broker_instances_have_other_remedies(tmp_path: Path) -> None:
    circle = to("Circle", None, "HUB.example")
    servers = {"HUB": hub(circle), "STOCK": stock(), "DEPOT": stock(broker=STOCK_2)}
    ends = [endpoint(1, far_broker_instance=STOCK), endpoint(2, far_broker_instance=STOCK_2)]
    queue = [waiting(number, "//stock", from_service_name="//orders") for number in (1, 2)]
    shop(BY_HUB).write(
        tmp_path, "SHOP", transmission_queue={"Orders": queue}, conversation_endpoints={"Orders": ends}
    )
    for name, server in servers.items():
        server.write(tmp_path, name)
    told = {
        (result.handle, advice.remedy.statement or "")
        for group in check([str(tmp_path)]).groups
        for result in group.results
        for advice in group.advice
        if advice.remedy.instance == "HUB"
    }
    for number, host in ((1, "STOCK"), (2, "DEPOT")):
        [statement] = [statement for handle_, statement in told if handle_ == handle(number)]
        assert f"://{host}." in statement, statement


def test_a_route_is_missing_where_it_was_requested(tmp_path: Path) -> None:
    """A request in the sending database comes before a route that leads back to its instance."""
    around = [LOCAL, to("Rest", None, "SHOP.example")]
    asking = [*around, route("Ask", "SQL/ServiceBroker/BrokerConfiguration", "LOCAL")]
    server = Server({"Orders": (ORDERS, 1)}, {"Orders": ["//orders"]}, {"Orders": asking, "msdb": around})
    [group] = checked(tmp_path, Case({"SHOP": server}, "DELAYED")).groups
    assert group.verdict is not None
    assert group.verdict.reason == "ROUTE_REQUESTED"
    assert [advice.remedy.place for advice in group.advice] == [("SHOP", "Orders")]


def test_a_lost_reply_keeps_no_message_of_its_own_instance(tmp_path: Path) -> None:
    server = Server(
        {"Orders": (ORDERS, 1), "Stock": (STOCK, 1)},
        {"Orders": ["//orders"], "Stock": ["//stock"]},
        {"Stock": [to("Far", None, "far")]},
    )
    done = checked(tmp_path, Case({"SHOP": server, "FAR": hub(forwards=0)}, "DELIVERED"))
    [group] = done.groups
    assert traced_advice(done, group.first) == []
    assert not any("comes back" in advice.remedy.text for advice in group.advice)
