"""Remedies for stuck messages by case, and the results after applying them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routing.advice.remedies import CASES, remedy_of
from routing.advice.trouble_catalogue import CLEANUP_RISK
from routing.rules.resolving import Verdict
from routing.terms import Outcome, Reason
from tests.unit.remedied import OLD, PAST, A, Asked, B, C, D, read, route, server

# The sender, where it sends from, and msdb.
MINE: dict[str, tuple[str | None, bool]] = {"Orders": (A, True), "msdb": (D, True)}
LOCAL = route("Orders", "AutoCreatedLocal", "LOCAL")
SHOP = server({"Stock": (C, True)}, [("Stock", "S")])
OTHER = server({"Stock": (B, True)}, [("Stock", "S")])
NOBODY = server({})
BACK = route("Orders", "back", "tcp://hub:4022", "S")
TO_SHOP = "tcp://shop:4022"


def advice_for(hub: object, shop: object = NOBODY, **more: object) -> Asked:
    return Asked({"hub": hub, "shop": shop}, **more)  # type: ignore[dict-item, arg-type]


# The case; the estate; the reason; the statement, whether it is complete; the outcome and the reason after it.
EVENTS = "http://schemas.microsoft.com/SQL/Notifications/EventNotificationService"
READY = [
    (
        "spelt in another case",
        advice_for(server(MINE, (), [route("Orders", "r", TO_SHOP, "s")])),
        Reason.NO_ROUTE,
        "USE [Orders];\nALTER ROUTE [r] WITH SERVICE_NAME = N'S';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "spelt with a blank and a slash, while another route takes it",
        advice_for(server(MINE, (), [LOCAL, route("Orders", "r", TO_SHOP, "S /")])),
        Reason.SERVICE_NOT_FOUND,
        "USE [Orders];\nALTER ROUTE [r] WITH SERVICE_NAME = N'S';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "a route of another spelling that a service needs, and the messages' own is known elsewhere",
        advice_for(
            server(MINE, (), [route("Orders", "r", "tcp://depot:4022", "s")]),
            server({"Stock": (C, True)}, [("Stock", "S"), ("Stock", "s")]),
        ),
        Reason.NO_ROUTE,
        "USE [Orders];\nCREATE ROUTE [Route to S a99df5fc] WITH SERVICE_NAME = N'S', ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "expired",
        advice_for(server(MINE, (), [route("Orders", "r", TO_SHOP, "S", C, PAST, "tcp://twin:4022")])),
        Reason.NO_ROUTE,
        "USE [Orders];\nSET XACT_ABORT ON;\nBEGIN TRANSACTION;\n"
        "DROP ROUTE [r];\nCREATE ROUTE [r] WITH SERVICE_NAME = N'S', BROKER_INSTANCE = N'" + C + "',"
        " ADDRESS = N'tcp://shop:4022', MIRROR_ADDRESS = N'tcp://twin:4022';\nCOMMIT TRANSACTION;",
        Reason.MIRROR_ADDRESS,
    ),
    (
        "the route has an old id, the messages the one of today",
        advice_for(server(MINE, (), [LOCAL, route("Orders", "r", TO_SHOP, "S", OLD)]), SHOP, broker=C),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        f"USE [Orders];\nALTER ROUTE [r] WITH BROKER_INSTANCE = N'{C}';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "somebody dropped the LOCAL route",
        advice_for(server({**MINE, "Stock": (C, True)}, [("Stock", "S")])),
        Reason.NO_ROUTE,
        "USE [Orders];\nCREATE ROUTE [AutoCreatedLocal] WITH ADDRESS = N'LOCAL';",
        Reason.LOCAL_SERVICE,
    ),
    (
        "its name is taken by a route for something else, in another case",
        advice_for(
            server(
                {**MINE, "Stock": (C, True)},
                [("Stock", "S")],
                [
                    route("Orders", "AUTOCREATEDLOCAL", TO_SHOP, "T"),
                    route("Orders", "route to s", TO_SHOP, "U"),
                ],
            )
        ),
        Reason.NO_ROUTE,
        "USE [Orders];\nCREATE ROUTE [Route to S 2] WITH SERVICE_NAME = N'S', ADDRESS = N'LOCAL';",
        Reason.LOCAL_SERVICE,
    ),
    (
        "caught by AutoCreatedLocal while another instance has the service",
        advice_for(server(MINE, (), [LOCAL]), SHOP),
        Reason.SERVICE_NOT_FOUND,
        "USE [Orders];\nCREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "a LOCAL route that names the service, which is elsewhere",
        advice_for(server(MINE, (), [route("Orders", "r", "LOCAL", "S")]), SHOP),
        Reason.SERVICE_NOT_FOUND,
        "USE [Orders];\nALTER ROUTE [r] WITH ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "bound to another instance's id, while a database here holds the service too",
        advice_for(
            server({**MINE, "Copy": (B, True)}, [("Copy", "S")], [route("Orders", "r", "LOCAL", "S")]),
            SHOP,
            broker=C,
        ),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        (
            "USE [Orders];\nCREATE ROUTE [Route to S 671813ab] WITH SERVICE_NAME = N'S',"
            f" BROKER_INSTANCE = N'{C}', ADDRESS = N'TCP://Shop.example:4022';"
        ),
        Reason.NETWORK_ADDRESS,
    ),
    (
        "two instances hold the service, one has the id",
        Asked(
            {"hub": server(MINE, (), [LOCAL]), "depot": OTHER, "shop": SHOP},
            broker=C,
        ),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        "USE [Orders];\nCREATE ROUTE [Route to S a99df5fc] WITH SERVICE_NAME = N'S', ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "LOCAL routes name old ids, the database has a new one",
        advice_for(
            server(
                {**MINE, "Stock": (C, True)},
                [("Stock", "S")],
                [
                    route("Orders", "r1", "LOCAL", "S", OLD),
                    route("Orders", "r2", "LOCAL", "S", OLD.replace("f", "e")),
                ],
            )
        ),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        (
            f"USE [Orders];\nALTER ROUTE [r1] WITH BROKER_INSTANCE = N'{C}';\n"
            f"ALTER ROUTE [r2] WITH BROKER_INSTANCE = N'{C}';"
        ),
        Reason.LOCAL_SERVICE,
    ),
    (
        "TRANSPORT, and a name without an address",
        advice_for(server(MINE, (), [route("Orders", "r", "TRANSPORT")]), SHOP),
        Reason.TRANSPORT_ADDRESS_INVALID,
        "USE [Orders];\nCREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "TRANSPORT, and the service is here",
        advice_for(server({**MINE, "Stock": (C, True)}, [("Stock", "S")], [route("Orders", "r", "TRANSPORT")])),
        Reason.TRANSPORT_ADDRESS_INVALID,
        "USE [Orders];\nCREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'LOCAL';",
        Reason.LOCAL_SERVICE,
    ),
    (
        "the target's broker is off",
        advice_for(server({**MINE, "Stock": (C, False)}, [("Stock", "S")], [LOCAL])),
        Reason.BROKER_DISABLED,
        "USE [master];\nALTER DATABASE [Stock] SET ENABLE_BROKER WITH NO_WAIT;",
        Reason.LOCAL_SERVICE,
    ),
    (
        "the sender's broker is off",
        advice_for(server({**MINE, "Orders": (A, False)}, [], [route("Orders", "r", TO_SHOP)])),
        Reason.SCOPE_BROKER_DISABLED,
        "USE [master];\nALTER DATABASE [Orders] SET ENABLE_BROKER WITH NO_WAIT;",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "msdb's broker is off",
        advice_for(
            server(
                {**MINE, "msdb": (D, False), "Stock": (C, True)},
                [("Stock", "S")],
                [BACK, route("msdb", "AutoCreatedLocal", "LOCAL")],
            )
        ),
        Reason.SCOPE_BROKER_DISABLED,
        "USE [master];\nALTER DATABASE [msdb] SET ENABLE_BROKER WITH NO_WAIT;",
        Reason.LOCAL_SERVICE,
    ),
    (
        "in a circle, and the service is here",
        advice_for(
            server(
                {**MINE, "Stock": (C, True)},
                [("Stock", "S")],
                [BACK, route("msdb", "all", "tcp://hub:4022")],
                forwards=True,
            )
        ),
        Reason.ROUTING_LOOP,
        "USE [msdb];\nALTER ROUTE [all] WITH ADDRESS = N'LOCAL';",
        Reason.LOCAL_SERVICE,
    ),
    (
        "in a circle, and the service is elsewhere",
        advice_for(server(MINE, (), [BACK, route("msdb", "all", "tcp://hub:4022")], forwards=True), SHOP),
        Reason.ROUTING_LOOP,
        "USE [Orders];\nALTER ROUTE [back] WITH ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
    (
        "back here, forwarding off, and the service is here",
        advice_for(
            server(
                {**MINE, "Stock": (C, True)}, [("Stock", "S")], [BACK, route("msdb", "all", "tcp://depot:4022")]
            )
        ),
        Reason.FORWARDING_DISABLED,
        "USE [msdb];\nCREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'LOCAL';",
        Reason.LOCAL_SERVICE,
    ),
    (
        "back here by a route for anything, and the service is elsewhere",
        advice_for(server(MINE, (), [replace(BACK, remote_service_name=None)]), SHOP),
        Reason.NO_ROUTE,
        "USE [Orders];\nCREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'TCP://Shop.example:4022';",
        Reason.NETWORK_ADDRESS,
    ),
]
# The case; the estate; the reason; words that are said; the statement, all of it comment, or None.
FOUND_OUT_FIRST = [
    (
        "for a client of event notifications that is gone",
        advice_for(server(MINE, (), [LOCAL]), service=EVENTS),
        Reason.SERVICE_NOT_FOUND,
        "DROP EVENT NOTIFICATION and CREATE EVENT NOTIFICATION",
        (
            "-- USE [Orders];\n-- SELECT conversation_handle, state_desc, far_broker_instance FROM"
            f" sys.conversation_endpoints WHERE far_service = N'{EVENTS}';\n"
            "-- END CONVERSATION '<conversation_handle>' WITH CLEANUP;"
        ),
    ),
    (
        "nothing known holds it",
        advice_for(server(MINE)),
        Reason.NO_ROUTE,
        "No known database holds service 'S'",
        "-- USE [Orders];\n-- CREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "the other instance's address is not known",
        advice_for(server(MINE, (), [LOCAL]), SHOP, addresses={"hub": ["tcp://hub:4022"]}),
        Reason.SERVICE_NOT_FOUND,
        "The service is in 'Stock' of instance 'shop'; route 'AutoCreatedLocal' of 'Orders' took the messages",
        "-- USE [Orders];\n-- CREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "addresses that lead nowhere from here: a loopback, without a port, the instance's own",
        advice_for(
            server(MINE, (), [LOCAL]),
            SHOP,
            addresses={
                "hub": ["tcp://hub:4022"],
                "shop": ["tcp://localhost:4022", "tcp://shop", "TCP://HUB:4022/"],
            },
        ),
        Reason.SERVICE_NOT_FOUND,
        "Find out its address first.",
        "-- USE [Orders];\n-- CREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "several instances hold it",
        Asked({"hub": server(MINE, (), [LOCAL]), "depot": OTHER, "shop": SHOP}),
        Reason.SERVICE_NOT_FOUND,
        "Find out which instance it is first.",
        "-- USE [Orders];\n-- CREATE ROUTE [Route to S f80cb92b] WITH SERVICE_NAME = N'S', ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "a service is spelt nearly so",
        advice_for(server({**MINE, "Stock": (C, True)}, [("Stock", "s/")], [LOCAL])),
        Reason.SERVICE_NOT_FOUND,
        "the service in 'Stock' of instance 'hub' is called 's/'",
        None,
    ),
    (
        "a route is spelt as a service needs it",
        advice_for(
            server(MINE, (), [route("Orders", "r", TO_SHOP, "s")]), server({"Stock": (C, True)}, [("Stock", "s")])
        ),
        Reason.NO_ROUTE,
        "the service in 'Stock' of instance 'shop' is called 's'",
        None,
    ),
    (
        "the dialog is bound to an old id",
        advice_for(server({**MINE, "Stock": (C, True)}, [("Stock", "S")], [LOCAL]), broker=OLD),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        f"bound to broker instance '{OLD}', but 'Stock' of instance 'hub', which holds the service, has '{C}'",
        None,
    ),
    (
        "the id is nobody's, the service neither",
        advice_for(server(MINE, (), [LOCAL]), broker=OLD),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        f"No known database holds service 'S' with broker instance '{OLD}'",
        "-- USE [Orders];\n-- CREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "a route has an old id, and the messages have another old one",
        advice_for(server(MINE, (), [LOCAL, route("Orders", "r", TO_SHOP, "S", OLD)]), broker=B),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        f"Route 'r' of 'Orders' has broker instance '{OLD}', but the messages are bound to '{B}'",
        f"-- USE [Orders];\n-- ALTER ROUTE [r] WITH BROKER_INSTANCE = N'{B}';",
    ),
    (
        "a route of another spelling would be one of several ids that dialogs are dealt to",
        advice_for(
            server(MINE, (), [route("Orders", "r1", "LOCAL", "S", OLD), route("Orders", "r2", TO_SHOP, "s", C)])
        ),
        Reason.BROKER_INSTANCE_NOT_FOUND,
        f"No known database holds service 'S' with broker instance '{OLD}'",
        "-- USE [Orders];\n-- ALTER ROUTE [r1] WITH ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "bound to a database here that does not hold it",
        advice_for(server({**MINE, "Stock": (C, True)}, (), [LOCAL]), broker=C),
        Reason.SERVICE_NOT_FOUND,
        "The messages are bound to 'Stock', which does not hold service 'S'",
        (
            "-- USE [Orders];\n-- SELECT conversation_handle, state_desc, far_broker_instance FROM"
            " sys.conversation_endpoints WHERE far_service = N'S';\n"
            "-- END CONVERSATION '<conversation_handle>';"
        ),
    ),
    (
        "forwarding is off",
        advice_for(server(MINE, (), [BACK, route("msdb", "on", "tcp://depot:4022")])),
        Reason.FORWARDING_DISABLED,
        "route 'on' of 'msdb' leads on to 'tcp://depot:4022', and message forwarding is off",
        (
            "-- USE [master];\n-- SELECT name FROM sys.service_broker_endpoints;\n"
            "-- ALTER ENDPOINT [<endpoint>] FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED);"
        ),
    ),
    (
        "in a circle, and nothing known holds the service",
        advice_for(server(MINE, (), [BACK, route("msdb", "all", "tcp://hub:4022")], forwards=True)),
        Reason.ROUTING_LOOP,
        "No known database holds service 'S'",
        "-- USE [Orders];\n-- ALTER ROUTE [back] WITH ADDRESS = N'tcp://<host>:<port>';",
    ),
    (
        "another database has the id of the one whose broker is off",
        advice_for(server({**MINE, "Stock": (C, False), "Copy": (C, True)}, [("Stock", "S")], [LOCAL])),
        Reason.BROKER_DISABLED,
        "cannot be enabled while 'Copy' has the same id (error 9772)",
        (
            "-- USE [master];\n-- If [Stock] is the copy and needs its own broker:\n"
            "-- ALTER DATABASE [Stock] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;\n"
            "-- If [Stock] is the copy and needs no broker:\n"
            "-- ALTER DATABASE [Stock] SET DISABLE_BROKER WITH ROLLBACK IMMEDIATE;\n"
            "-- If [Copy] is the copy and needs its own broker:\n"
            "-- ALTER DATABASE [Copy] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;\n"
            "-- If [Copy] is the copy and needs no broker:\n"
            "-- ALTER DATABASE [Copy] SET DISABLE_BROKER WITH ROLLBACK IMMEDIATE;\n"
            "-- Then enable the broker of the database that dialogs are meant for:\n"
            "-- ALTER DATABASE [Stock] SET ENABLE_BROKER WITH NO_WAIT;"
        ),
    ),
    (
        "the routing is right: the queue",
        advice_for(server({**MINE, "Stock": (C, True)}, [("Stock", "S")], [LOCAL])),
        Reason.LOCAL_SERVICE,
        "look at the target queue",
        (
            "-- USE [Stock];\n-- SELECT SCHEMA_NAME(q.schema_id), q.name, q.is_receive_enabled,"
            " q.is_enqueue_enabled FROM sys.service_queues AS q JOIN sys.services AS s ON s.service_queue_id ="
            " q.object_id WHERE s.name = N'S';\n-- ALTER QUEUE [<schema>].[<queue>] WITH STATUS = ON;"
        ),
    ),
    (
        "the routing is right: the transport",
        advice_for(server(MINE, (), [route("Orders", "r", TO_SHOP)])),
        Reason.NETWORK_ADDRESS,
        "the route is right and the connection fails",
        None,
    ),
    (
        "asked for a route",
        advice_for(server(MINE, (), [route("Orders", "c", "LOCAL", "SQL/ServiceBroker/BrokerConfiguration")])),
        Reason.ROUTE_REQUESTED,
        "BrokerConfiguration service exists",
        (
            "-- USE [Orders];\n"
            "-- CREATE ROUTE [Route to S] WITH SERVICE_NAME = N'S', ADDRESS = N'tcp://<host>:<port>';"
        ),
    ),
]


@pytest.mark.parametrize(
    ("estate", "reason", "statement", "afterwards"), [pytest.param(*row, id=name) for name, *row in READY]
)
def test_a_statement_that_can_be_run(estate: Asked, reason: Reason, statement: str, afterwards: Reason) -> None:
    assert estate.verdict().reason is reason
    remedy = estate.remedy()
    assert (remedy.statement, remedy.is_complete) == (statement, True)
    assert estate.apply_remedy(remedy).verdict().reason is afterwards


@pytest.mark.parametrize(
    ("estate", "reason", "words", "statement"), [pytest.param(*row, id=name) for name, *row in FOUND_OUT_FIRST]
)
def test_a_statement_that_needs_an_answer_first_is_a_comment(
    estate: Asked, reason: Reason, words: str, statement: str | None
) -> None:
    assert estate.verdict().reason is reason
    remedy = estate.remedy()
    assert (remedy.statement, remedy.is_complete) == (statement, False)
    assert remedy.discards_messages == (remedy.risk or "").startswith(CLEANUP_RISK)
    assert words in remedy.text
    assert read(remedy).statements == ()
    assert estate.apply_remedy(remedy).verdict().reason is reason


def test_a_new_broker_id_only_helps_new_dialogs() -> None:
    stock = server({**MINE, "Stock": (C, True)}, [("Stock", "S")], [route("Orders", "r", "LOCAL", "S", OLD)])
    bound, begun = advice_for(stock, broker=OLD), advice_for(stock)
    remedy = bound.remedy()
    assert remedy.statement == f"USE [Orders];\nALTER ROUTE [r] WITH BROKER_INSTANCE = N'{C}';"
    assert "END CONVERSATION for open dialogs" in remedy.text
    assert bound.apply_remedy(remedy).verdict().reason is Reason.BROKER_INSTANCE_NOT_FOUND
    assert begun.apply_remedy(remedy).verdict().reason is Reason.LOCAL_SERVICE


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason.DIALOG_EXPIRED, "begin a new dialog"),
        (Reason.HOP_LIMIT, "raise the limit"),
        (Reason.MIRROR_ADDRESS, "the route is right and the connection fails"),
        (Reason.TRANSPORT_ADDRESS, "the route is right and the connection fails"),
    ],
)
def test_a_remedy_without_a_statement_has_an_action(reason: Reason, words: str) -> None:
    remedy = remedy_of(replace(advice_for(server(MINE)).stuck(), verdict=Verdict(None, Outcome.DROPPED, reason)))
    assert words in remedy.text
    assert (remedy.statement, remedy.is_complete) == (None, False)


def test_a_remedy_names_three_places_and_counts_the_rest() -> None:
    many = {f"shop{number}": SHOP for number in range(5)}
    remedy = Asked({"hub": server(MINE, (), [LOCAL]), **many}).remedy()
    places = "'Stock' of instance 'shop0', 'Stock' of instance 'shop1', 'Stock' of instance 'shop2' and 2 more"
    assert places in remedy.text


def test_a_route_used_by_other_messages_stays() -> None:
    estate = advice_for(server(MINE, (), [route("Orders", "r", TO_SHOP, "s")]))
    assert "ALTER ROUTE [r]" in (estate.remedy().statement or "")
    remedy = remedy_of(estate.stuck(services_in_use={"S", "s"}))
    assert (remedy.statement or "").startswith("-- USE [Orders];\n-- CREATE ROUTE [Route to S]")


def test_unknown_forwarding_is_named() -> None:
    stuck = advice_for(server(MINE, (), [BACK, route("msdb", "on", "tcp://depot:4022")])).stuck()
    assert "message forwarding is off" in remedy_of(stuck).cause
    stuck.estate.instances["hub"] = replace(stuck.sql_instance, is_forwarding_known=False)
    assert "message forwarding is not known to be on" in remedy_of(stuck).cause


def test_every_reason_has_its_cases() -> None:
    assert {reason for reasons, _ in CASES for reason in reasons} == set(Reason)
