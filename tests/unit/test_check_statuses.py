"""check on the errors that SQL Server reports: the cause of each number, from its own exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.cli import main
from routing.views.check.checking import check
from tests.check_texts import UNWRAPPED, print_check
from tests.exported import AT, GUID, database, endpoint, export, route, waiting, whole_shop

ENQUEUING = "An exception occurred while enqueueing a message in the target queue. Error: {}, State: 1. {}"
DBO = (
    'Cannot execute as the database principal because the principal "dbo" does not exist, this type '
    "of principal cannot"
    " be impersonated, or you do not have permission."
)
RECEIVING = "An error occurred while receiving data: '{}'."
MASTER_KEY = (
    "-- SELECT name FROM sys.symmetric_keys WHERE name = N'##MS_DatabaseMasterKey##';\n"
    "-- CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'<password>';\n"
    "-- OPEN MASTER KEY DECRYPTION BY PASSWORD = N'<password>';\n"
    "-- ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY;"
)
LIST_ENDPOINTS = "-- SELECT e.name, e.state_desc"


NO_ENDPOINT = dict.fromkeys(("endpoint_id", "is_message_forwarding_enabled", "machine_name", "port"))
"""The row of an instance without an endpoint."""


def words_and_statements(
    folder: Path, service: str, status: str, number: int | None = None, **views: Any
) -> tuple[str, str | None]:
    """The words and the statements for one message of SHOP with a status."""
    row = waiting(1, service, transmission_status=status, error_number=number)
    whole_shop(folder, [row], **views)
    [group] = check([str(folder)]).groups
    assert group.needs_somebody
    assert group.advice
    words = " ".join(f"On {each.remedy.instance}: {each.remedy.text}" for each in group.advice)
    statements = [each.remedy.statement for each in group.advice if each.remedy.statement is not None]
    return words, "\n".join(statements) or None


def stock(folder: Path, at: str = AT, **views: Any) -> Path:
    """Return STOCK, which listens at tcp://stock:4022 and has //stock in Stock. ``views`` replaces some."""
    rows_by_view: dict[str, Any] = {
        "databases": [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c")],
        "service_broker_endpoints": [
            {"endpoint_id": 1, "is_message_forwarding_enabled": 0, "machine_name": "STOCK", "port": 4022}
        ],
        "routes": {"msdb": [route("AutoCreatedLocal")], "Stock": [route("AutoCreatedLocal")]},
        "services": {"msdb": [], "Stock": [{"name": "//stock"}]},
        **views,
    }
    return export(folder, "STOCK", at, **{view: rows for view, rows in rows_by_view.items() if rows is not None})


def to_stock(address: str = "TCP://stock:4022") -> dict[str, Any]:
    return {"routes": {"msdb": [route("AutoCreatedLocal")], "Orders": [route("ToStock", "//stock", address)]}}


OWNER = [
    (15517, DBO),
    (33009, "The database owner SID recorded in the master database differs … in database 'Orders'."),
    (33019, "Cannot create implicit user for the special login 'sa'."),
    (15404, "Could not obtain information about Windows NT group/user 'CORP\\jane', error code 0x5."),
    (
        916,
        (
            'The server principal "jane" is not able to access the database "Orders" under the current '
            "security context."
        ),
    ),
]


@pytest.mark.parametrize("number", [28005, None], ids=["numbered", "by its text"])
@pytest.mark.parametrize(("inner", "cause"), OWNER)
def test_the_owner_of_a_restored_database(inner: int, cause: str, number: int | None, tmp_path: Path) -> None:
    words, statement = words_and_statements(tmp_path, "//orders", ENQUEUING.format(inner, cause), number)
    assert statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa];"
    assert "owner of the database" in words
    assert ("is not the one in sys.databases" in words) is (inner == 33009)


def test_the_owner_in_another_language_and_of_another_database(tmp_path: Path) -> None:
    views = {
        "databases": [
            database("msdb", "d4d4d4d4", 4),
            database("Orders", "0d0d0d0d"),
            database("Bill]s", "b1b1b1b1", 6),
        ],
        "services": {"msdb": [], "Orders": [], "Bill]s": [{"name": "//bills"}]},
        "routes": {"msdb": [], "Orders": [route("AutoCreatedLocal")], "Bill]s": []},
    }
    words, statement = words_and_statements(
        tmp_path, "//bills", "Ausnahme beim Einreihen. Fehler: 15517, Status: 1.", 28005, **views
    )
    assert statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Bill]]s] TO [sa];"
    assert "do the same for 'Orders', which sends" in words


def test_the_owner_where_no_dialog_was_exported(tmp_path: Path) -> None:
    views = {"conversation_endpoints": None, "services": None, "databases": None}
    words, statement = words_and_statements(tmp_path, "//orders", ENQUEUING.format(15517, DBO), **views)
    assert statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa];"
    assert "do not show which database holds the service" in words


# The status, its number, what the words hold, the statement or how it begins.
OF_ORDERS = [
    (
        ENQUEUING.format(
            15581, "Please create a master key in the database or open the master key in the session."
        ),
        None,
        "The master key of the database is missing",
        f"-- USE [Orders];\n{MASTER_KEY}",
    ),
    (
        (
            "The session keys for this conversation could not be created or accessed. The database master "
            "key is required"
            " for this operation."
        ),
        None,
        "ENCRYPTION = OFF",
        f"-- USE [Orders];\n{MASTER_KEY}",
    ),
    (
        "Die Sitzungsschlüssel konnten nicht erstellt werden.",
        28050,
        "ENCRYPTION = OFF",
        f"-- USE [Orders];\n{MASTER_KEY}",
    ),
    (
        "Service Broker needs to access the master key in the database 'Orders'. Error code:32.",
        28054,
        "needs a master key",
        f"-- USE [Orders];\n{MASTER_KEY}",
    ),
    (
        "You do not have permission to access the service '//orders'.",
        None,
        "GRANT SEND ON SERVICE",
        (
            "-- USE [Orders];\n-- GRANT SEND ON SERVICE::[//orders] TO [<user>];\n"
            "-- GRANT SEND ON SERVICE::[//orders] TO [public];"
        ),
    ),
    (
        'The service queue "OrdersQueue" is currently disabled.',
        None,
        "a poison message",
        "USE [Orders];\nALTER QUEUE [OrdersQueue] WITH STATUS = ON;",
    ),
    (
        'Die Dienstwarteschlange "dbo.Bestellungen" ist deaktiviert.',
        9617,
        "a poison message",
        "USE [Orders];\nALTER QUEUE [dbo].[Bestellungen] WITH STATUS = ON;",
    ),
    (
        ENQUEUING.format(9617, 'The service queue "Q" is currently disabled.'),
        28005,
        "a poison message",
        "USE [Orders];\nALTER QUEUE [Q] WITH STATUS = ON;",
    ),
    (
        (
            "Dialog security is unavailable for this conversation because there is no security certificate "
            "bound to the database principal (Id: 1)."
        ),
        None,
        "Create a certificate for the user",
        "-- USE [Orders];\n-- SELECT name, start_date",
    ),
    (
        (
            "The security certificate bound to database principal (Id: 5) is not yet valid. Either wait for "
            "the certificate to become valid or install a certificate that is currently valid."
        ),
        None,
        "Compare its start date with the clock",
        "-- USE [Orders];\n-- SELECT name, start_date",
    ),
    (
        (
            "Dialog security is not available for this conversation because there is no remote service "
            "binding for the target service."
        ),
        None,
        "remote service binding",
        "-- USE [Orders];\n-- CREATE REMOTE SERVICE BINDING [<binding>] TO SERVICE N'//orders'",
    ),
    (
        "Service Broker received an error message on this conversation.",
        9784,
        "END CONVERSATION",
        "-- USE [Orders];\n-- SELECT conversation_handle",
    ),
    ("Etwas ganz anderes.", None, "is in another language than English, or unknown here", None),
    ("Etwas ganz anderes.", 4711, "Look it up in sys.messages", None),
]


@pytest.mark.parametrize(("status", "number", "words", "statement"), OF_ORDERS)
def test_causes_that_hold_back_a_local_message(
    status: str, number: int | None, words: str, statement: str | None, tmp_path: Path
) -> None:
    shown, text = words_and_statements(tmp_path, "//orders", status, number)
    assert words in shown
    assert (text or "").startswith(statement or "")
    assert (text is None) == (statement is None)


def test_an_unreadable_text_is_shown_whole_and_counts_as_trouble(tmp_path: Path) -> None:
    status = "Etwas, das " + "sehr " * 200 + "lang ist: tun Sie dies."
    whole_shop(tmp_path, [waiting(1, "//orders", transmission_status=status)])
    shown = print_check(check([str(tmp_path)]))
    assert status in shown
    assert "about which SQL Server reports no trouble" not in shown


CLIENT = "SqlQueryNotificationService-6ed7b9a7-1111-4b4b-8f2c-1a2b3c4d5e6f"


@pytest.mark.parametrize("status", ["", "Etwas ganz anderes.", "The target service name could not be found."])
def test_a_gone_client_is_found_with_only_the_queue_exported(status: str, tmp_path: Path) -> None:
    export(tmp_path, "SHOP", transmission_queue={"Orders": [waiting(1, CLIENT, transmission_status=status)]})
    [group] = check([str(tmp_path)]).groups
    [advice] = group.advice
    assert "nobody waits for these messages" in advice.remedy.text
    assert "END CONVERSATION @handle WITH CLEANUP" in (advice.remedy.statement or "")


def test_a_lifetime_that_is_over_does_not_end_the_other_dialogs_of_a_client(tmp_path: Path) -> None:
    services = {"msdb": [], "Orders": [{"name": CLIENT}]}
    status = "The dialog has exceeded the specified LIFETIME."
    whole_shop(tmp_path, [waiting(1, CLIENT, transmission_status=status)], services=services)
    [group] = check([str(tmp_path)]).groups
    assert not any("WITH CLEANUP" in (advice.remedy.statement or "") for advice in group.advice)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_host_without_a_name_may_be_gone_with_its_service(is_known: bool, tmp_path: Path) -> None:
    status = "DNS lookup failed with error: '11001(No such host is known.)'."
    whole_shop(tmp_path, [waiting(1, "//stock", transmission_status=status)])
    if is_known:
        export(tmp_path, "HUB", services={"Stock": [{"name": "//stock"}]})
    [group] = check([str(tmp_path)]).groups
    assert ("If the service is gone" in group.advice[0].remedy.text) is not is_known


def test_a_table_dependency_loses_its_trigger_before_its_dialogs(tmp_path: Path) -> None:
    name = CLIENT.replace("SqlQueryNotificationService-", "dbo_Items_")
    status = "The target service name could not be found."
    whole_shop(tmp_path, [waiting(1, f"{name}_Receiver", transmission_status=status)])
    [group] = check([str(tmp_path)]).groups
    statement = group.advice[0].remedy.statement or ""
    assert (
        0 < statement.index(f"DROP TRIGGER [<schema>].[tr_{name}_Sender];") < statement.index("END CONVERSATION")
    )
    assert "CREATE ROUTE" not in statement


def test_one_message_without_a_verdict_is_shown_with_its_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = waiting(1, "//stock", transmission_status=RECEIVING.format("10061(No)"))
    export(tmp_path, "SHOP", transmission_queue={"Orders": [row]})
    asked = ["check", str(tmp_path), "--message", row["conversation_handle"]]
    assert main([*asked, *UNWRAPPED]) == 0
    output = capsys.readouterr().out
    assert (
        "SQL Server says: 9755, 'An error occurred while receiving data: '10061(No)'.'. Nothing listens" in output
    )
    assert main([*asked, "--format", "json"]) == 0
    [explained] = json.loads(capsys.readouterr().out)["explained"]
    assert (explained["error_number"], explained["verdict"]) == (9755, None)


def test_an_existing_client_has_its_own_trouble(tmp_path: Path) -> None:
    services = {"msdb": [], "Orders": [{"name": CLIENT}]}
    words, statement = words_and_statements(
        tmp_path, CLIENT, ENQUEUING.format(15404, "Could not obtain"), services=services
    )
    assert statement == "USE [master];\nALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa];"
    assert "nobody waits" not in words


@pytest.mark.parametrize("number", [9770, 9761])
@pytest.mark.parametrize("dialogs", [{}, {"conversation_endpoints": None}])
def test_a_request_of_another_conversation_is_reported(
    number: int, dialogs: dict[str, Any], tmp_path: Path
) -> None:
    words, _ = words_and_statements(tmp_path, "//nobody", "Irgendetwas.", number, **dialogs)
    assert "BrokerConfiguration service" in words
    assert "another language" not in words


def test_a_broker_kept_off_by_another_database_is_reported_without_a_verdict(tmp_path: Path) -> None:
    listed = [database("Orders", "0d0d0d0d", 5, 0), database("Copy", "0d0d0d0d", 6, 1)]
    rest: dict[str, Any] = {"databases": listed, "conversation_endpoints": None, "routes": None}
    words, statement = words_and_statements(
        tmp_path, "//orders", "The broker is disabled in the sender's database.", **rest
    )
    assert "error 9772" in words
    assert "-- ALTER DATABASE [Copy] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;" in (statement or "")


def test_a_text_of_another_number_is_shown_beside_many_of_one(tmp_path: Path) -> None:
    queue = [waiting(n, "//stock", transmission_status=RECEIVING.format(f"10061(No {n})")) for n in range(1, 6)]
    whole_shop(tmp_path, [*queue, waiting(9, "//stock", transmission_status="Etwas ganz anderes.")])
    shown = print_check(check([str(tmp_path)]))
    assert "SQL Server reports for 1 message: 'Etwas ganz anderes.'" in shown
    assert "SQL Server reports other statuses for 3 messages" in shown


def test_the_target_queue_of_another_instance(tmp_path: Path) -> None:
    stock(tmp_path)
    words, statement = words_and_statements(
        tmp_path, "//stock", 'The service queue "S" is currently disabled.', **to_stock()
    )
    assert (statement or "").startswith("USE [Stock];\nALTER QUEUE [S] WITH STATUS = ON;")
    assert words.startswith("On STOCK: The target queue is off")


CONNECTIONS = [
    ("10061(No connection could be made because the target machine actively refused it.)", "Nothing listens at"),
    ("10061(failed to retrieve text for this error. Reason: 15100)", "Nothing listens at"),
    ("10054(An existing connection was forcibly closed by the remote host.)", "28047"),
    ("64(The specified network name is no longer available.)", "network between the two servers fails"),
    ("121(The semaphore timeout period has expired.)", "network between the two servers fails"),
    ("10060(A connection attempt failed.)", "network between the two servers fails"),
    ("11001(No such host is known.)", "cannot resolve the host name"),
]


@pytest.mark.parametrize("text", ["An error occurred while receiving data: '{}'.", "Échec: '{}'."])
@pytest.mark.parametrize(("error", "words"), CONNECTIONS)
def test_the_error_of_a_connection_is_explained(error: str, words: str, text: str, tmp_path: Path) -> None:
    number = None if text.startswith("An") else 9759
    assert words in words_and_statements(tmp_path, "//stock", text.format(error), number)[0]


@pytest.mark.parametrize("error", ["10061(No)", "10054(No)", "64(No)"])
@pytest.mark.parametrize(
    ("address", "is_known", "statement"),
    [
        ("TCP://stock:1433", True, "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';"),
        (
            "TCP://stock:1433",
            False,
            "-- USE [Orders];\n-- ALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:<port>';",
        ),
        ("TCP://stock:4025", True, "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';"),
        ("TCP://stock", True, "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';"),
    ],
)
def test_a_wrong_port_is_corrected(
    error: str, address: str, is_known: bool, statement: str, tmp_path: Path
) -> None:
    if is_known:
        stock(tmp_path)
    shown = words_and_statements(tmp_path, "//stock", RECEIVING.format(error), **to_stock(address))
    assert shown[1] == statement


def test_a_wrong_port_is_corrected_where_no_dialog_was_exported(tmp_path: Path) -> None:
    shop: dict[str, Any] = {**to_stock("TCP://stock:1433"), "conversation_endpoints": None}
    stock(tmp_path)
    words, statement = words_and_statements(tmp_path, "//stock", RECEIVING.format("10054(No)"), **shop)
    assert statement == "USE [Orders];\nALTER ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022';"
    assert "port 1433, which is for T-SQL connections" in words


# The queue alone was exported: the status, its number, what the words hold.
ALONE = [
    ("The target service name could not be found.", None, "SQL Server finds no route for the service name"),
    ("Der Name des Zieldiensts wurde nicht gefunden.", 9793, "SQL Server finds no route for the service name"),
    ("Etwas ganz anderes.", None, "is in another language"),
    (
        "Locating routes and security information via the Broker Configuration Service.",
        None,
        "BrokerConfiguration",
    ),
    ("The Service Broker protocol transport is disabled or not configured.", None, "or create one"),
    (RECEIVING.format("10061(No)"), None, "Nothing listens at the route's address"),
    ('The service queue "Q" is currently disabled.', None, "The target queue is off"),
    ("The target service broker is unreachable.", None, "Compare the names"),
]


@pytest.mark.parametrize(("status", "number", "words"), ALONE)
def test_a_status_is_answered_with_only_the_queue_exported(
    status: str, number: int | None, words: str, tmp_path: Path
) -> None:
    queue = [waiting(1, "//stock", transmission_status=status, error_number=number)]
    export(tmp_path, "SHOP", transmission_queue={"Orders": queue})
    [group] = check([str(tmp_path)]).groups
    assert [words in each.remedy.text for each in group.advice] == [True]


def test_nothing_listens_where_there_is_no_endpoint(tmp_path: Path) -> None:
    stock(tmp_path, service_broker_endpoints=[NO_ENDPOINT])
    words, statement = words_and_statements(tmp_path, "//stock", RECEIVING.format("10061(No)"), **to_stock())
    assert "On STOCK: Nothing listens at 'TCP://stock:4022': 'STOCK' has no Service Broker endpoint" in words
    assert (statement or "").startswith(
        "-- USE [master];\n-- CREATE ENDPOINT [ServiceBrokerEndpoint] STATE = STARTED"
    )


@pytest.mark.parametrize("status", ["The Service Broker protocol transport is disabled or not configured."])
def test_the_sender_has_no_endpoint(status: str, tmp_path: Path) -> None:
    words, statement = words_and_statements(tmp_path, "//stock", status, service_broker_endpoints=None)
    assert "has no started Service Broker endpoint" in words
    assert (statement or "").startswith("-- USE [master];\n-- CREATE ENDPOINT [ServiceBrokerEndpoint]")
    words, statement = words_and_statements(tmp_path / "with", "//stock", status)
    assert "check that it is STARTED" in words
    assert "-- ALTER ENDPOINT [<endpoint>] STATE = STARTED;" in (statement or "")


@pytest.mark.parametrize("status", ["", "The target service name could not be found."])
def test_a_sender_without_an_endpoint_is_foreseen(status: str, tmp_path: Path) -> None:
    words, statement = words_and_statements(tmp_path, "//stock", status, service_broker_endpoints=[NO_ENDPOINT])
    assert words.startswith("On SHOP: 'SHOP' has no Service Broker endpoint")
    assert (statement or "").startswith("-- USE [master];\n-- CREATE ENDPOINT [ServiceBrokerEndpoint]")
    [local] = check(
        [str(whole_shop(tmp_path / "x", [waiting(1, "//orders")], service_broker_endpoints=[NO_ENDPOINT]))]
    ).groups
    [advice] = local.advice
    assert "look at the target queue" in advice.remedy.text


# The databases of the sender, and what is said of the one whose broker is off.
TWINS = [
    (
        [database("Orders", "0d0d0d0d", 5, 0), database("Copy", "0d0d0d0d", 6, 1)],
        "cannot be enabled while 'Copy'",
    ),
    ([database("Orders", "0d0d0d0d", 5, 0), database("Copy", "0d0d0d0d", 6, 0)], "Leave the broker of 'Copy' off"),
]


@pytest.mark.parametrize(("databases", "words"), TWINS)
def test_a_doubled_broker_id_is_foreseen(databases: list[Any], words: str, tmp_path: Path) -> None:
    listed = [database("msdb", "d4d4d4d4", 4), *databases]
    shown, statement = words_and_statements(
        tmp_path, "//orders", "The broker is disabled in the sender's database.", databases=listed
    )
    assert words in shown
    assert "9772" in shown
    if "cannot" in words:
        assert "-- ALTER DATABASE [Orders] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;" in (statement or "")
        assert "-- ALTER DATABASE [Copy] SET NEW_BROKER WITH ROLLBACK IMMEDIATE;" in (statement or "")
    else:
        assert statement == "USE [master];\nALTER DATABASE [Orders] SET ENABLE_BROKER WITH NO_WAIT;"


# What STOCK has otherwise, what the words hold, the statement.
BACK = route("Back", "//from", "TCP://shop:4022")
LACKS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"services": {"msdb": [], "Stock": [{"name": "//Stock"}]}}, "of instance 'STOCK' is called '//Stock'", None),
    ({"services": {"msdb": [], "Stock": []}}, "On STOCK: No known database holds service '//stock'", None),
    (
        {"databases": [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c", 5, 0)]},
        "The service is in 'Stock', whose broker is off",
        "USE [master];\nALTER DATABASE [Stock] SET ENABLE_BROKER WITH NO_WAIT;",
    ),
    (
        {"databases": [database("msdb", "d5d5d5d5", 4, 0), database("Stock", "5c5c5c5c")]},
        "The broker of 'msdb' is off",
        "USE [master];\nALTER DATABASE [msdb] SET ENABLE_BROKER WITH NO_WAIT;",
    ),
    (
        {"routes": {"msdb": [], "Stock": [route("AutoCreatedLocal")]}},
        "no LOCAL route of 'msdb' leads to it",
        "USE [msdb];\nCREATE ROUTE [AutoCreatedLocal] WITH ADDRESS = N'LOCAL';",
    ),
    (
        {"routes": {"msdb": [route("AutoCreatedLocal")], "Stock": [BACK]}},
        "On STOCK: At 'TCP://stock:4022': The instance at the route's address does not take the message.",
        None,
    ),
    (
        {"routes": {"msdb": [route("AutoCreatedLocal")], "Stock": [BACK]}},
        "By these exports 'STOCK' has all that the messages need, in 'Stock'",
        None,
    ),
]


@pytest.mark.parametrize("dialogs", ["known", "unknown"])
@pytest.mark.parametrize(("views", "words", "statement"), LACKS)
def test_missing_objects_are_looked_up_at_the_destination(
    views: dict[str, Any], words: str, statement: str | None, dialogs: str, tmp_path: Path
) -> None:
    stock(tmp_path, **views)
    shop: dict[str, Any] = {**to_stock(), "services": {"msdb": [], "Orders": [{"name": "//from"}]}}
    if dialogs == "unknown":
        shop["conversation_endpoints"] = None
    shown, text = words_and_statements(tmp_path, "//stock", "The target service broker is unreachable.", **shop)
    assert words in shown
    assert statement is None or text == statement


# The number, the text, what the words hold, what the statements of the target's database hold.
AT_TARGET = [
    (
        8408,
        "Target service '//stock' does not support contract '//orders'.",
        "does not take contract '//orders'",
        "USE [Stock];\nALTER SERVICE [//stock] (ADD CONTRACT [//orders]);",
    ),
    (
        8408,
        "Target service '//stock' does not support contract 'DEFAULT'.",
        "BEGIN DIALOG without ON CONTRACT takes [DEFAULT]",
        "-- ALTER SERVICE [//stock] (ADD CONTRACT [DEFAULT]);",
    ),
    (
        8425,
        "The service contract '//orders' is not found.",
        "in 'Orders' of 'SHOP', and compare",
        "-- CREATE CONTRACT [//orders] ([<message type>] SENT BY <side>);\n-- ALTER SERVICE [//stock] (ADD",
    ),
    (8428, 'The message type "//type" is not found.', "in 'Orders' of 'SHOP'", "-- CREATE MESSAGE TYPE [//type]"),
    (28005, "Fehler: 8408, Status: 1.", "and compare", "-- ALTER SERVICE [//stock] (ADD CONTRACT [<contract>]);"),
    (
        9616,
        "A message of type '//type' was received and failed XML validation. This occurred in the message …",
        "not the XML that message type '//type' requires",
        "-- ALTER MESSAGE TYPE [//type] VALIDATION = <validation>;",
    ),
    (
        28005,
        ENQUEUING.format(
            229, "The EXECUTE permission was denied on the object 'f', database 'Stock', schema 'd'."
        ),
        "has no EXECUTE permission on 'f'",
        "-- GRANT EXECUTE ON [d].[f] TO [<user>];",
    ),
    (
        28005,
        ENQUEUING.format(15151, "Cannot find the user 'Web', because it does not exist or …"),
        "does not find 'Web'",
        "-- SELECT name, type_desc FROM sys.database_principals WHERE name = N'Web';",
    ),
    *(
        (
            28005,
            ENQUEUING.format(number, text),
            "cannot open the database that the text names",
            "-- SELECT name, state_desc, user_access_desc FROM sys.databases WHERE name = N'Audit';",
        )
        for number, text in (
            (911, "Database 'Audit' does not exist. Make sure that the name is entered correctly."),
            (4060, 'Cannot open database "Audit" requested by the login. The login failed.'),
        )
    ),
    (
        28005,
        ENQUEUING.format(911, "…"),
        "cannot open the database",
        "-- SELECT name, state_desc, user_access_desc FROM sys.databases;",
    ),
    (
        28005,
        ENQUEUING.format(3609, "The transaction ended in the trigger. The batch has been aborted."),
        "A trigger ended the transaction",
        "-- SELECT name, parent_class_desc, is_disabled FROM sys.server_triggers;",
    ),
    (
        28056,
        "The user with ID 6 in database ID 5 does not have control permission on the service.",
        "has no CONTROL permission on service '//stock'",
        "-- GRANT CONTROL ON SERVICE::[//stock] TO [<user>];",
    ),
    (9617, 'The service queue "sales.Q" is currently disabled.', "is off", "ALTER QUEUE [sales].[Q] WITH STATUS"),
    (28005, ENQUEUING.format(979, "…"), "secondary replica", "-- ALTER ROUTE [ToStock] WITH ADDRESS"),
    (28005, ENQUEUING.format(15151, "Cannot find the service '//stock', …"), "no permission", "-- GRANT SEND ON"),
    (
        28005,
        ENQUEUING.format(15151, "Cannot find the user 'dbo', …"),
        "The owner",
        "ON DATABASE::[Stock] TO [sa];",
    ),
]


@pytest.mark.parametrize(("number", "status", "words", "statement"), AT_TARGET)
def test_an_error_of_the_target_gets_a_statement(
    number: int, status: str, words: str, statement: str, tmp_path: Path
) -> None:
    stock(tmp_path)
    shown, text = words_and_statements(tmp_path, "//stock", status, number, **to_stock())
    assert words in shown
    assert statement in (text or "")


@pytest.mark.parametrize(
    ("number", "status", "line"),
    [
        (8408, "Target service '//stock' does not support contract '//c'.", "-- ALTER SERVICE [//stock] (ADD"),
        (
            8494,
            "You do not have permission to access the service '//stock'.",
            "-- GRANT SEND ON SERVICE::[//stock]",
        ),
        (9617, 'The service queue "Q" is currently disabled.', "-- ALTER QUEUE [Q] WITH STATUS = ON;"),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_statement_for_an_unknown_database(
    number: int, status: str, line: str, is_named: bool, tmp_path: Path
) -> None:
    if is_named:
        stock(tmp_path, databases=None, services=None)
    words, statement = words_and_statements(tmp_path, "//stock", status, number, **to_stock())
    assert "for the database that holds '//stock', which these exports do not show" in words
    [group] = check([str(tmp_path)]).groups
    remedy = group.advice[0].remedy
    assert remedy.server == ("'STOCK'" if is_named else "the server that holds '//stock'")
    assert remedy.as_object()["instance_name"] == ("STOCK" if is_named else None)
    assert is_named or remedy.as_statement(()).server == "<the server that holds '//stock'>"
    assert line in (statement or "")
    assert all(line.startswith("--") for line in (statement or "").splitlines())


@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("Acme.Queue", ["[Acme.Queue]", "[Acme].[Queue]"]),
        ("Stock.sales.Q", ["[Stock.sales.Q]", "[sales].[Q]"]),
        ("Stock.dbo.Q", ["[dbo].[Q]"]),
    ],
)
def test_a_queue_whose_name_may_have_a_point(name: str, statements: list[str], tmp_path: Path) -> None:
    stock(tmp_path)
    status = f'The service queue "{name}" is currently disabled.'
    _, statement = words_and_statements(tmp_path, "//stock", status, 9617, **to_stock())
    lines = [line for line in (statement or "").splitlines() if "ALTER QUEUE" in line]
    assert [line.removeprefix("-- ") for line in lines] == [
        f"ALTER QUEUE {q} WITH STATUS = ON;" for q in statements
    ]
    assert all(line.startswith("--") for line in lines) is (len(statements) > 1)


@pytest.mark.parametrize("number", [8457, 11226])
def test_a_message_type_is_no_contract_of_the_service(number: int, tmp_path: Path) -> None:
    stock(tmp_path)
    status = "The message type is not part of the contract: '//type', '//orders'."
    _, statement = words_and_statements(tmp_path, "//stock", status, number, **to_stock())
    assert "-- SELECT c.name, m.name" in (statement or "")
    assert "ADD CONTRACT" not in (statement or "")


def test_the_name_of_a_service_is_no_permission(tmp_path: Path) -> None:
    service = "//stock/UPDATE"
    status = f"You do not have permission to access the service '{service}'."
    words, statement = words_and_statements(tmp_path, service, status, 8494)
    assert "UPDATE permission" not in words
    assert f"-- GRANT SEND ON SERVICE::[{service}]" in (statement or "")


def test_the_queue_of_database_mail_is_started_by_its_name_with_a_schema(tmp_path: Path) -> None:
    stock(tmp_path, services={"msdb": [{"name": "//stock"}], "Stock": []})
    status = 'The service queue "dbo.ExternalMailQueue" is currently disabled.'
    _, statement = words_and_statements(tmp_path, "//stock", status, 9617, **to_stock())
    assert "ALTER QUEUE [dbo].[ExternalMailQueue] WITH STATUS = ON;\nEXEC msdb" in (statement or "")


def test_nobody_has_dropped_dbo(tmp_path: Path) -> None:
    status = "… the lookup database principal (Id: 1) does not correspond to a server principal."
    lost = {**database("Orders", "0d0d0d0d"), "owner_is_known": 0, "owner_sid": "0x0106"}
    databases = [database("msdb", "d4d4d4d4", 4), lost]
    _, statement = words_and_statements(tmp_path, "//stock", status, 9730, databases=databases)
    assert "ALTER AUTHORIZATION ON DATABASE::[Orders] TO [sa];" in (statement or "")
    words, _ = words_and_statements(tmp_path, "//stock", status, 9730)
    assert "dropped" not in words


def test_the_dropped_user_of_a_dialog_is_created_again(tmp_path: Path) -> None:
    dropped = "Cannot find the security certificate because the lookup database principal ID (8) is not valid."
    assert words_and_statements(tmp_path, "//stock", dropped)[1]
    dropped = "A database user associated with the secure conversation was dropped before credentials had been …"
    words, statement = words_and_statements(tmp_path, "//stock", dropped, 9768)
    assert "The user of the dialogs to '//stock' was dropped in 'Orders'" in words
    lines = [line.split("[", 1)[0] for line in (statement or "").splitlines()[1:]]
    assert lines == ["-- CREATE USER ", "-- CREATE CERTIFICATE ", "-- CREATE REMOTE SERVICE BINDING "]


OF_KEYS = [
    (11230, "The message could not be decrypted and validated.", "each public part belongs to a private key"),
    (9735, "The length of the public key … (Id: 7) is incompatible …", "has a length that Windows cannot use"),
    (9727, "Dialog security is not available for this conversation.", "Binding 'b' is for '//Stock'"),
]


@pytest.mark.parametrize(("number", "status", "expected"), OF_KEYS)
def test_the_keys_of_a_dialog_do_not_belong_together(
    number: int, status: str, expected: str, tmp_path: Path
) -> None:
    bindings = [{"name": "b", "remote_service_name": "//Stock", "user_name": "StockUser"}]
    bound = {"remote_service_bindings": {"Orders": bindings}}
    words, statement = words_and_statements(tmp_path, "//stock", status, number, **bound)
    assert expected in words
    assert ("TO SERVICE N'//stock' WITH USER = [StockUser];" in (statement or "")) is (number == 9727)


def test_a_destination_that_is_not_known(tmp_path: Path) -> None:
    shown, statement = words_and_statements(tmp_path, "//stock", "The target service broker is unreachable.")
    assert "Compare the names of the service and the broker instance" in shown
    assert statement is None


@pytest.mark.parametrize(
    ("status", "number"),
    [
        ("The target service name could not be found.", None),
        ("Der Name des Zieldiensts wurde nicht gefunden.", 9793),
        ("The target service name matched a LOCAL route, but there is no service by that name here.", None),
        ("Locating routes and security information via the Broker Configuration Service.", None),
        ("The broker is disabled in the sender's database.", None),
    ],
)
@pytest.mark.parametrize("service", ["//stock", "//orders"])
def test_a_status_is_of_the_last_attempt(status: str, number: int | None, service: str, tmp_path: Path) -> None:
    words, statement = words_and_statements(tmp_path, service, status, number)
    assert words.startswith("On SHOP: The status is of the last attempt")
    assert "after 4, 8, 16, 32 and then every 64 seconds." in words
    assert words.index("Wait, and export the queue again") < words.index("and compare")
    assert statement is None


@pytest.mark.parametrize("number", [None, 8490])
@pytest.mark.parametrize("broker", [None, "0d0d0d0d", "99999999"])
def test_a_client_of_query_notifications_is_gone(number: int | None, broker: str | None, tmp_path: Path) -> None:
    service = "SqlQueryNotificationService-6ed7b9a7-1111-4b4b-8f2c-1a2b3c4d5e6f"
    dialogs = [endpoint(1, far_broker_instance=None if broker is None else GUID.format(broker))]
    status = "" if number is None else f"Cannot find the remote service '{service}' because it does not exist."
    words, statement = words_and_statements(tmp_path, service, status, number, dialogs=dialogs)
    assert "nobody waits for these messages" in words
    assert f"WHERE far_service = N'{service}';" in (statement or "")
    assert "    END CONVERSATION @handle WITH CLEANUP;" in (statement or "")
    assert "CREATE SERVICE" not in (statement or "")


EVENTS = "http://schemas.microsoft.com/SQL/Notifications/EventNotificationService"
# From and to which service, the broker instance, what the words hold; the statement holds the last.
NOTIFIED = [
    ("//target", EVENTS, None, "DROP EVENT NOTIFICATION and CREATE EVENT NOTIFICATION", "END CONVERSATION"),
    (EVENTS, "//gone", None, "DROP EVENT NOTIFICATION and CREATE EVENT NOTIFICATION", "END CONVERSATION"),
    (EVENTS, "//gone", "0d0d0d0d", "DROP EVENT NOTIFICATION and CREATE EVENT NOTIFICATION", "END CONVERSATION"),
    (EVENTS, "//gone", "99999999", "DROP EVENT NOTIFICATION and CREATE EVENT NOTIFICATION", "END CONVERSATION"),
]


@pytest.mark.parametrize(("sender", "service", "broker", "words", "part"), NOTIFIED)
def test_an_event_notification_is_recreated(
    sender: str, service: str, broker: str | None, words: str, part: str, tmp_path: Path
) -> None:
    broker_id = None if broker is None else GUID.format(broker)
    queue = [waiting(1, service, from_service_name=sender, to_broker_instance=broker_id)]
    whole_shop(tmp_path, queue)
    [group] = check([str(tmp_path)]).groups
    [advice] = group.advice
    assert words in advice.remedy.text
    assert part in (advice.remedy.statement or "")
    assert "CREATE SERVICE" not in (advice.remedy.statement or "")


def test_two_statuses_of_one_group_are_both_answered(tmp_path: Path) -> None:
    queue = [
        waiting(1, "//stock", transmission_status=RECEIVING.format("10061(No)")),
        waiting(2, "//stock", transmission_status="", error_number=None),
        waiting(3, "//stock", transmission_status="x", error_number=28050),
    ]
    whole_shop(tmp_path, queue)
    [group] = check([str(tmp_path)]).groups
    refused, no_key = group.advice
    assert "Nothing listens" in refused.remedy.text
    assert "needs a master key" in no_key.remedy.text
    assert (refused.count, no_key.count) == (1, 1)


@pytest.mark.parametrize(
    ("status", "adds"),
    [
        (ENQUEUING.format(15517, DBO), True),
        ("Etwas ganz anderes.", True),
        ("The target service name could not be found.", False),
        ("", False),
    ],
)
def test_a_delaying_verdict_comes_before_its_status(status: str, adds: bool, tmp_path: Path) -> None:
    words, statement = words_and_statements(tmp_path, "//nobody", status)
    assert words.startswith("On SHOP: No known database holds service '//nobody'")
    assert ("owner of the database" in words or "another language" in words) == adds
    assert "CREATE ROUTE" in (statement or "")
