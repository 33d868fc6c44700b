"""The meaning of a transmission_status in English, and of numbers in other languages."""

from __future__ import annotations

import re

import pytest

from routing.advice.status_meanings import CAUSES, StatusTrouble, find_trouble
from routing.advice.trouble_catalogue import REASONS, STATUSES
from routing.importing.catalog.conversation_rows import error_number
from routing.rules.observed import NUMBERS

ENQUEUING = "An exception occurred while enqueueing a message in the target queue. Error: {}, State: 1. {}"
DBO = (
    'Cannot execute as the database principal because the principal "dbo" does not exist, this type of principal'
    " cannot be impersonated, or you do not have permission."
)
OWNER_SID = (
    "The database owner SID recorded in the master database differs from the database owner SID recorded in"
    " database 'Stock'. You should correct this situation by resetting the owner of database 'Stock' using the"
    " ALTER AUTHORIZATION statement."
)
HANDSHAKE = "Connection handshake failed. "
RECEIVING = "An error occurred while receiving data: '{}({})'."
SENDING = "An error occurred while sending data: '{}({})'."
CONNECTING = "Connection attempt failed with error: '{}({})'."

UNAVAILABLE = "The Service Broker in the target database is unavailable: '{}'."
# Texts of which the number is read as well.
TEXTS = [
    ("The target service name could not be found. Ensure that the service name is right.", "NO_ROUTE"),
    ("No route matches the destination service name for this conversation. Create a route to it.", "NO_ROUTE"),
    ("Locating routes and security information via the Broker Configuration Service.", "ROUTE_REQUESTED"),
    ("The target service broker is unreachable.", "NOT_TAKEN_THERE"),
    (CONNECTING.format(10061, "No connection could be made because the target refused it."), "NOTHING_LISTENS"),
    (RECEIVING.format(10061, "failed to retrieve text for this error. Reason: 15105"), "NOTHING_LISTENS"),
    (SENDING.format(10061, "No connection could be made"), "NOTHING_LISTENS"),
    (RECEIVING.format(10054, "An existing connection was forcibly closed"), "CLOSED_BY_OTHER_SIDE"),
    (SENDING.format(10053, "An established connection was aborted"), "CLOSED_BY_OTHER_SIDE"),
    (RECEIVING.format(64, "The specified network name is no longer available."), "NETWORK_FAILS"),
    (CONNECTING.format(121, "The semaphore timeout period has expired."), "NETWORK_FAILS"),
    (CONNECTING.format(10060, "A connection attempt failed because"), "NETWORK_FAILS"),
    (CONNECTING.format(11001, "No such host is known."), "NAME_NOT_RESOLVED"),
    (CONNECTING.format(10013, "An attempt was made to access a socket"), "CONNECTION_FORBIDDEN"),
    (CONNECTING.format(13, "Permission denied"), "CONNECTION_FORBIDDEN"),
    (CONNECTING.format(10055, "An operation on a socket could not be performed"), "CONNECTION_FORBIDDEN"),
    (CONNECTING.format(10048, "Only one usage of each socket address"), "CONNECTION_FORBIDDEN"),
    (CONNECTING.format(1225, "The remote computer refused the network connection."), "NOTHING_LISTENS"),
    (UNAVAILABLE.format("The database is in single-user mode."), "TARGET_DATABASE_CLOSED"),
    (UNAVAILABLE.format("The service broker is administratively disabled."), "TARGET_BROKER_OFF"),
    ("An error occurred in dialog transmission: Error: 15517, State: 1. Cannot", "OWNER_NOT_VALID"),
    ("An error occurred in dialog transmission: Error: 5, State: 1. ?", "TRANSMITTER_FAILED"),
    ("The message could not be delivered because it could not be classified.", "NOT_CLASSIFIED"),
    (ENQUEUING.format(15151, "Cannot find the user 'OrderUser', because it does not exist"), "NAME_NOT_FOUND"),
    (ENQUEUING.format(15151, "Cannot find the user 'dbo', because it does not exist"), "OWNER_NOT_VALID"),
    (ENQUEUING.format(15151, "Der Benutzer „dboReader“ wurde nicht gefunden"), "NAME_NOT_FOUND"),
    (ENQUEUING.format(15151, "Der Benutzer „dbo“ wurde nicht gefunden"), "OWNER_NOT_VALID"),
    (ENQUEUING.format(15151, "L'utilisateur « dbo » est introuvable"), "OWNER_NOT_VALID"),
    ("DNS lookup failed with error: '11001(No such host is known.)'.", "NAME_NOT_RESOLVED"),
    ("The Service Broker protocol transport is disabled or not configured.", "NO_ENDPOINT"),
    (ENQUEUING.format(15517, DBO), "OWNER_NOT_VALID"),
    (ENQUEUING.format(33009, OWNER_SID), "OWNER_NOT_VALID"),
    (ENQUEUING.format(33019, "Cannot create implicit user for the special login 'sa'."), "OWNER_NOT_VALID"),
    (ENQUEUING.format(15404, "Could not obtain information about Windows NT user 'C\\D'."), "OWNER_NOT_VALID"),
    (ENQUEUING.format(916, 'The server principal "x" is not able to access "Stock".'), "OWNER_NOT_VALID"),
    (ENQUEUING.format(15581, "Please create a master key in the database or open it."), "MASTER_KEY_CLOSED"),
    (ENQUEUING.format(9617, 'The service queue "Q" is currently disabled.'), "QUEUE_OFF"),
    (ENQUEUING.format(1105, "Could not allocate space for object 'x' in database 'S'."), "TARGET_FULL"),
    (ENQUEUING.format(9002, "The transaction log for database 'S' is full due to 'LOG_BACKUP'."), "TARGET_FULL"),
    (
        ENQUEUING.format(824, "SQL Server detected an error during a read of page (1:9002) in 'S'."),
        "TARGET_DAMAGED",
    ),
    (ENQUEUING.format(701, "There is insufficient system memory in resource pool 'default'."), "NO_MEMORY"),
    (ENQUEUING.format(3906, "Failed to update database 'S' because it is read-only."), "TARGET_DATABASE_CLOSED"),
    (ENQUEUING.format(983, "Unable to access availability database 'S'."), "TARGET_DATABASE_CLOSED"),
    (ENQUEUING.format(1222, "Lock request time out period exceeded."), "QUEUE_BUSY"),
    (ENQUEUING.format(229, "The SEND permission was denied on the object '//b', database 'S'."), "NO_PERMISSION"),
    (
        ENQUEUING.format(229, "The EXECUTE permission was denied on the object 'p', database 'S'."),
        "NO_PERMISSION",
    ),
    (ENQUEUING.format(8152, "String or binary data would be truncated."), "TARGET_EXCEPTION"),
    ("The session keys for this conversation could not be created or accessed.", "NO_SESSION_KEY"),
    ("Service Broker needs to access the master key in the database 'S'. Error code:32.", "NO_SESSION_KEY"),
    (
        "The security certificate bound to database principal (Id: 5) is not yet valid.",
        "CERTIFICATE_NOT_YET_VALID",
    ),
    ("The security certificate bound to database principal (Id: 5) has expired.", "CERTIFICATE_EXPIRED"),
    (
        (
            "Dialog security is unavailable for this conversation because there is no security certificate bound"
            " to the database principal (Id: 1)."
        ),
        "NO_DIALOG_CERTIFICATE",
    ),
    (
        (
            "Dialog security is not available for this conversation because there is no remote service binding"
            " for the target service."
        ),
        "NO_BINDING",
    ),
    (
        f"{HANDSHAKE}The certificate used by this endpoint was not found: Certificate expired. State 85.",
        "CERTIFICATE_EXPIRED",
    ),
    (
        f"{HANDSHAKE}The certificate used by this endpoint was not found: Certificate not found. State 85.",
        "NO_ENDPOINT_CERTIFICATE",
    ),
    (
        (
            f"{HANDSHAKE}The certificate used by the peer is invalid due to the following reason: Certificate"
            " not yet valid. State 89."
        ),
        "CERTIFICATE_NOT_YET_VALID",
    ),
    (f"{HANDSHAKE}The login 'C\\S$' does not have CONNECT permission on the endpoint. State 84.", "NO_CONNECT"),
    (f"{HANDSHAKE}There is no compatible encryption algorithm. State 22.", "HANDSHAKE_FAILED"),
    (f"{HANDSHAKE}Error 15581 occurred while initializing the private key.", "NO_ENDPOINT_CERTIFICATE"),
    ('The service queue "StockQueue" is currently disabled.', "QUEUE_OFF"),
    ("You do not have permission to access the service '//stock'.", "NO_PERMISSION"),
    ("Cannot find the remote service '//s' because it does not exist.", "SERVICE_GONE"),
    (
        (
            'The Service Broker in database "S" cannot be enabled because there is already an enabled'
            " Service Broker with the same ID."
        ),
        "DOUBLED_ID",
    ),
    ("The broker is disabled in the sender's database.", "SENDER_BROKER_OFF"),
    # The numbers that a text in any language quotes.
    ("La tentative a échoué avec l'erreur : '10061(Aucune connexion)'.", "NOTHING_LISTENS"),
    ("Fehler beim Verbindungsversuch: '10060(Ein Verbindungsversuch)'.", "NETWORK_FAILS"),
    ("Errore durante la ricezione: '10054(Connessione interrotta)'.", "CLOSED_BY_OTHER_SIDE"),
    ("Erreur : 15517, État : 1. Impossible d'exécuter en tant que", "OWNER_NOT_VALID"),
    ("Der Name des Zieldiensts (3) wurde nicht gefunden.", "UNREAD"),
    ("Fehler 12(34).", "UNREAD"),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_text_has_its_trouble(text: str, expected: str) -> None:
    assert find_trouble(error_number(text), text) == expected


# The server's number, and its text in another language.
IN_OTHERS = [
    (28005, "Ausnahme beim Einreihen in die Zielwarteschlange. Fehler: 15517, Status: 1. …", "OWNER_NOT_VALID"),
    (28005, "Exception lors de la mise en file d'attente. Erreur : 15581, État : 3.", "MASTER_KEY_CLOSED"),
    (28005, "对目标队列中的消息进行排队时出现异常。错误: 33009; 状态: 1", "OWNER_NOT_VALID"),
    (9736, "An error occurred in dialog transmission: Error: 701, State: 1.", "NO_MEMORY"),
    (28005, "エラー:916、状態:4。", "OWNER_NOT_VALID"),
    (28005, "Error: 1551, estado: 15517.5", "TARGET_EXCEPTION"),
    (
        9755,
        "Fehler beim Empfangen von Daten: '10054(Eine vorhandene Verbindung wurde geschlossen.)'.",
        "CLOSED_BY_OTHER_SIDE",
    ),
    (9754, "Échec de connexion : '10061(Aucune connexion a pas abouti)'.", "NOTHING_LISTENS"),
    (9754, "Fallo: '0x80090308(algo)'.", "NETWORK_FAILS"),
    (9617, 'Die Dienstwarteschlange "Q" ist derzeit deaktiviert.', "QUEUE_OFF"),
    (9793, "Der Name des Zieldiensts wurde nicht gefunden.", "NO_ROUTE"),
    (15517, "Als Datenbankprinzipal kann nicht ausgeführt werden", "OWNER_NOT_VALID"),
    (28005, "Fehler: 9733, Status: 1. Es ist kein privater Schlüssel vorhanden", "NO_DIALOG_CERTIFICATE"),
    (28005, "Fehler: 8425, Status: 2.", "CONTRACT_NOT_TAKEN"),
    (28005, "Fehler: 15562, Status: 1.", "NOT_TRUSTED"),
    (28005, "Fehler: 3960, Status: 2.", "QUEUE_BUSY"),
    (28005, "Fehler: 229, Status: 5. Die Berechtigung SEND wurde verweigert.", "NO_PERMISSION"),
    (28005, "Fehler: 15151, Status: 1.", "NAME_NOT_FOUND"),
    (28002, "?", "SYSTEM_FAILED"),
    (28020, "?", "USER_NOT_VALID"),
    (11209, "?", "CONVERSATION_ENDED"),
    (11218, "?", "SENT_AGAIN"),
    (11222, "?", "MESSAGE_REFUSED"),
    (11224, "?", "TAKEN_BY_OTHER"),
    (4711, "Something of another kind", "OTHER_NUMBER"),
    (28052, "Der Sitzungsschlüssel kann nicht entschlüsselt werden.", "KEY_LOST"),
    (28090, "Fehler: 1222, Status: 51.", "TRANSMITTER_FAILED"),
    (28073, "?", "TRANSMITTER_FAILED"),
    (28044, "?", "MESSAGE_CORRUPTED"),
    (8489, "?", "LIFETIME_OVER"),
    (8425, "?", "CONTRACT_NOT_TAKEN"),
    (None, "Der Name des Zieldiensts wurde nicht gefunden.", "UNREAD"),
    (None, "", None),
    (9793, None, None),
]


@pytest.mark.parametrize(("number", "text", "expected"), IN_OTHERS)
def test_the_number_decides_if_the_text_is_unknown(
    number: int | None, text: str | None, expected: str | None
) -> None:
    assert find_trouble(number, text) == expected


def test_every_known_number_has_a_trouble_whatever_its_text_says() -> None:
    assert [number for number in sorted(NUMBERS) if find_trouble(number, "?") is StatusTrouble.OTHER_NUMBER] == []


def test_every_entry_has_a_cause_of_one_sentence_and_actions() -> None:
    for entry in (*REASONS.values(), *STATUSES.values()):
        assert re.findall(r"\.(?= [A-Z]|$)", entry.cause) == ["."], entry
        assert entry.actions
        assert all(re.fullmatch(r"[A-Z].*[.]", action) for action in (*entry.actions, entry.risk or "X."))


def test_every_trouble_has_words_and_numbers() -> None:
    assert set(STATUSES) == set(StatusTrouble)
    assert set(StatusTrouble) - {row.trouble for row in CAUSES} == {
        StatusTrouble.OTHER_NUMBER,
        StatusTrouble.UNREAD,
    }
