"""The catalogue of troubles: cause, actions and risk of every reason and status.

Every printed answer uses these words. This includes text, HTML, JSON and T-SQL of each command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routing.advice.status_meanings import StatusTrouble
from routing.terms import ERROR_NUMBERS, MSDB, MSDB_BROKER_DISABLED, Reason


@dataclass(frozen=True)
class TroubleEntry:
    """The words on one trouble: ``cause`` is one sentence, ``actions`` are one or more.

    ``risk`` names deleted, locked or stopped objects, and is None if there is no risk.
    """

    cause: str
    actions: tuple[str, ...]
    risk: str | None = None

    @property
    def advice(self) -> str:
        """The actions as one text."""
        return " ".join(self.actions)

    @property
    def text(self) -> str:
        """The cause and the actions as one text."""
        return f"{self.cause} {self.advice}"


def _entry(cause: str, *actions: str, risk: str | None = None) -> TroubleEntry:
    return TroubleEntry(cause, actions, risk)


ENABLE_RISK = "The statement needs the database for itself for a moment. It fails while others use the database."
"""The risk of ENABLE_BROKER WITH NO_WAIT."""
CLEANUP_RISK = (
    "END CONVERSATION WITH CLEANUP deletes the conversation with all of its messages on this side: the unread"
    " ones, and those that wait to be sent. The other side is not informed. First send again any"
    " messages that are still needed."
)
"""The risk of ending a conversation with cleanup."""
END_RISK = (
    "END CONVERSATION deletes the messages of the conversation that are unread in the local queue. Send again"
    " first what is still needed."
)
"""The risk of ending a conversation."""
NEW_BROKER_RISK = (
    "NEW_BROKER ends all conversations of the database without a message to the other sides, and deletes their"
    " messages. It needs the database for itself: WITH ROLLBACK IMMEDIATE rolls back all open transactions."
)
"""The risk of a new broker instance."""
TRUST_RISK = "Modules of the database may then act in the whole instance with the rights of its owner."
"""The risk of TRUSTWORTHY."""
_FORWARDING_RISK = "The instance then forwards every message that its msdb routes lead to another address."
_CERTIFICATE_RISK = "Open connections keep the old certificate until they end."
_CONNECTION = (
    "If the message still waits, the route is right and the connection fails.",
    "Check name resolution, the firewall, the two endpoints and their certificates.",
)

# Troubles that are both a reason of the rules and a status of SQL Server.


_SERVICE_NOT_HERE = _entry(
    "A LOCAL route matches, but no database of this instance holds the service.",
    "Create a route to the instance that holds the service, or create the service here.",
    "Names are compared exactly: case and blanks count.",
)
_BROKER_NOT_HERE = _entry(
    "No database here that holds the service has the broker instance that the message is bound to.",
    "Compare the broker instance with service_broker_guid in sys.databases.",
    "A restored database may have a new one, and a route or BEGIN DIALOG may name an old one.",
)
_FORWARDING_OFF = _entry(
    "The message must be forwarded, and message forwarding is off.",
    "Enable MESSAGE_FORWARDING on the Service Broker endpoint, or correct the msdb route.",
    risk=_FORWARDING_RISK,
)
_ROUTE_REQUESTED = _entry(
    "SQL Server has asked for a route, and all messages of the conversation wait until that request ends.",
    "Check that the SQL/ServiceBroker/BrokerConfiguration service exists, that its program answers, and that it"
    " ends its conversation.",
    "A service of the sender's own instance needs a LOCAL route that names it: the BrokerConfiguration route"
    " comes before AutoCreatedLocal.",
)
_LIFETIME_OVER = _entry("The lifetime of the dialog is over.", "Let the application begin a new dialog.")

REASONS: Mapping[Reason, TroubleEntry] = {
    Reason.LOCAL_SERVICE: _entry(
        "A database of this instance holds the service, and a LOCAL route leads to it.",
        "If the message does not arrive, look at the target queue: it may be disabled, or a poison message may"
        " block it.",
    ),
    Reason.NETWORK_ADDRESS: _entry("A route leads to a network address.", *_CONNECTION),
    Reason.MIRROR_ADDRESS: _entry("A route leads to an address and its mirror.", *_CONNECTION),
    Reason.TRANSPORT_ADDRESS: _entry(
        "A TRANSPORT route leads to the address in the service's name.", *_CONNECTION
    ),
    Reason.ROUTE_REQUESTED: _ROUTE_REQUESTED,
    Reason.NO_ROUTE: _entry(
        "No route matches the service.",
        "Create a route for the service, or create AutoCreatedLocal again if somebody dropped it.",
    ),
    Reason.SERVICE_NOT_FOUND: _SERVICE_NOT_HERE,
    Reason.BROKER_INSTANCE_NOT_FOUND: _BROKER_NOT_HERE,
    Reason.BROKER_DISABLED: _entry(
        "The broker of the database that holds the service is off.",
        "Run ALTER DATABASE … SET ENABLE_BROKER for the target database.",
        risk=ENABLE_RISK,
    ),
    Reason.SCOPE_BROKER_DISABLED: _entry(
        "The broker is off in the database whose routes are searched.",
        "Run ALTER DATABASE … SET ENABLE_BROKER for that database.",
        risk=ENABLE_RISK,
    ),
    Reason.TRANSPORT_ADDRESS_INVALID: _entry(
        "A TRANSPORT route takes the address from the service name, which has none.",
        "Give the route an address, or the service a name that begins with tcp://HOST:PORT.",
    ),
    Reason.FORWARDING_DISABLED: _FORWARDING_OFF,
    Reason.HOP_LIMIT: _entry(
        "The message has no hops left.", "Look for forwarders that send messages in a circle, or raise the limit."
    ),
    Reason.ROUTING_LOOP: _entry(
        "A route leads back to the instance that the message comes from.",
        "Use LOCAL if the service is in this instance. Otherwise correct the address.",
    ),
    Reason.DIALOG_EXPIRED: _LIFETIME_OVER,
}
"""The words for each reason."""

STATUSES: Mapping[StatusTrouble, TroubleEntry] = {
    StatusTrouble.NO_ROUTE: _entry(
        "SQL Server finds no route for the service name, or only a LOCAL route while no database of the instance"
        " holds the service.",
        "Create the route, or correct its service name, broker instance or lifetime.",
        "Names are compared exactly.",
        "On the target's side the text is about a reply: a route to the service that sent is missing there.",
    ),
    StatusTrouble.ROUTE_REQUESTED: _ROUTE_REQUESTED,
    StatusTrouble.REQUEST_FAILED: _entry(
        "The conversation that asked for a route ended with the error in the text.",
        "Repair the BrokerConfiguration service, or create the route that it was asked for.",
    ),
    StatusTrouble.SERVICE_NOT_HERE: _SERVICE_NOT_HERE,
    StatusTrouble.BROKER_NOT_HERE: _BROKER_NOT_HERE,
    StatusTrouble.FORWARDING_OFF: _FORWARDING_OFF,
    StatusTrouble.SENDER_BROKER_OFF: _entry(
        "The broker of the sending database is off.", "Enable it with ENABLE_BROKER.", risk=ENABLE_RISK
    ),
    StatusTrouble.MSDB_BROKER_OFF: _entry(
        "The broker of msdb is off.", "Enable it with ENABLE_BROKER.", risk=ENABLE_RISK
    ),
    StatusTrouble.PASSING: _entry(
        "SQL Server could not route at that moment: it was starting, in single-user mode, or its routes were"
        " being changed.",
        "Wait: SQL Server tries again by itself.",
    ),
    StatusTrouble.NOT_CLASSIFIED: _entry(
        "SQL Server could not choose a route for the message, and this text does not say why.",
        "Record the event broker_message_classify in the sending instance (sbroute import queries --events): it"
        " has the reason.",
    ),
    StatusTrouble.NOT_TAKEN_THERE: _entry(
        "The instance at the route's address does not take the message.",
        "Compare the names of the service and the broker instance of its database there, letter by letter.",
        "Check that the database is online, that its broker is on, and that the routes of msdb there lead to it.",
    ),
    StatusTrouble.NO_ENDPOINT: _entry(
        "The sending instance has no started Service Broker endpoint to reach another instance.",
        "Start the endpoint, or create one with STATE = STARTED.",
        risk="The endpoint opens its port to the network.",
    ),
    StatusTrouble.BAD_ADDRESS: _entry(
        "The address of the route is invalid.", "Correct it: the form is TCP://HOST:PORT."
    ),
    StatusTrouble.NAME_NOT_RESOLVED: _entry(
        "The sending server cannot resolve the host name in the route's address.",
        "Correct the name in the route, or in the DNS.",
    ),
    StatusTrouble.NOTHING_LISTENS: _entry(
        "Nothing listens at the route's address.",
        "Check that the Service Broker endpoint there is STARTED, that it listens on the port of the address, and"
        " that the firewall lets the port through.",
    ),
    StatusTrouble.CLOSED_BY_OTHER_SIDE: _entry(
        "The other side accepted the connection and closed it.",
        "Look for message 28047 in the other side's error log, which says why.",
        "Check that both endpoints agree on authentication, certificates and encryption.",
        "Check that the login has CONNECT permission on the endpoint, and that the port is its own.",
    ),
    StatusTrouble.NETWORK_FAILS: _entry(
        "The network between the two servers fails: a firewall drops packets, the host is wrong, or a connection"
        " times out.",
        "Test the address and the port from the sending server, for example with Test-NetConnection.",
    ),
    StatusTrouble.CONNECTION_FORBIDDEN: _entry(
        "The operating system of the sending server forbids SQL Server this connection, before anything leaves the"
        " server.",
        "Let sqlservr.exe connect: look at outbound firewall rules, the virus scanner, and SELinux on Linux.",
        "For 10024, 10048 and 10055 find a program with thousands of connections (netstat -ano).",
        "Leave the route unchanged.",
    ),
    StatusTrouble.CONNECTION_REPLACED: _entry(
        "Two connections to the same instance met, and SQL Server closed one.",
        "Wait: SQL Server uses the other one.",
    ),
    StatusTrouble.OWNER_NOT_VALID: _entry(
        "The owner of the database is not a valid login of this server, as after a restore or an attach, or when"
        " its domain does not answer.",
        "Give the database another owner.",
    ),
    StatusTrouble.MASTER_KEY_CLOSED: _entry(
        "The master key of the database is missing, or the server cannot open it, as after a restore.",
        "Create the key, or open it and encrypt it by the service master key.",
    ),
    StatusTrouble.NO_SESSION_KEY: _entry(
        "A dialog with encryption needs a master key in the database that the service master key can open.",
        "Create the key.",
        "Within one instance you can do without: BEGIN DIALOG … WITH ENCRYPTION = OFF.",
    ),
    StatusTrouble.NO_PERMISSION: _entry(
        "The user that sends has no permission to send to the service.",
        "Run GRANT SEND ON SERVICE in the target's database, for the user of the remote service binding.",
        "Grant it to public only if anybody may send.",
        risk="A grant to public lets every sender that can connect send to the service.",
    ),
    StatusTrouble.NO_ACCESS: _entry(
        "The user that sends has no CONNECT permission in the target's database.",
        "Run GRANT CONNECT there, for the owner of the sender's certificate.",
    ),
    StatusTrouble.USER_NOT_VALID: _entry(
        "SQL Server cannot act as the user that the text names by its number: the user, its login or its domain"
        " account is gone, or the domain does not answer.",
        "Look up both numbers with DB_NAME and USER_NAME. User 1 is dbo, and its login is the database's owner.",
        "Map the user to a login again with ALTER USER … WITH LOGIN. For dbo, give the database another owner.",
    ),
    StatusTrouble.NAME_NOT_FOUND: _entry(
        "SQL Server does not find the user or the object that the text names, or the user of the dialog may not"
        " see it.",
        "Create it again under the same name in the target's database, or grant the user a permission on it.",
    ),
    StatusTrouble.NOT_TRUSTED: _entry(
        "The sender acts in the target's database as a user of the sending one, which is not trusted there.",
        "Set TRUSTWORTHY for the sending database if both are in one instance.",
        "If it is on, grant AUTHENTICATE in the target's database to the owner of the sending one.",
        "Or secure the dialog with certificates.",
        risk=TRUST_RISK,
    ),
    StatusTrouble.NO_CONNECT: _entry(
        "The login of the other side may not connect to the endpoint.",
        "Run GRANT CONNECT ON ENDPOINT there for that login.",
    ),
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: _entry(
        "The certificate is not valid yet.",
        "Compare its start date with the clock of the server, both in UTC.",
        "Wait, or install a certificate that is valid now.",
        risk=_CERTIFICATE_RISK,
    ),
    StatusTrouble.CERTIFICATE_EXPIRED: _entry(
        "The certificate has expired.",
        "Create another certificate, and give it to the endpoint or to the user.",
        "Give its public part to the other side.",
        risk=_CERTIFICATE_RISK,
    ),
    StatusTrouble.NO_DIALOG_CERTIFICATE: _entry(
        "The user of the dialog has no certificate that can be used.",
        "Create a certificate for the user: that of the other side FROM FILE for a remote service binding.",
        "Or begin the dialog with ENCRYPTION = OFF.",
    ),
    StatusTrouble.NO_ENDPOINT_CERTIFICATE: _entry(
        "A certificate of the endpoints is missing or cannot be used.",
        "Check that the endpoint's certificate is in master with its private key.",
        "Check that the other side's public part was created there FROM FILE, for a separate user.",
        risk=_CERTIFICATE_RISK,
    ),
    StatusTrouble.NO_BINDING: _entry(
        "A dialog with encryption needs a remote service binding for the target service.",
        "Create the binding for a user that owns the target's certificate.",
        "Or begin the dialog with ENCRYPTION = OFF.",
    ),
    StatusTrouble.HANDSHAKE_FAILED: _entry(
        "The two endpoints do not agree.",
        "Check that both use the same kind of authentication and encryption.",
        "Check that each side knows the other's certificate or service account, and that the login has CONNECT"
        " permission.",
    ),
    StatusTrouble.QUEUE_OFF: _entry(
        "The target queue is off: a message that was rolled back five times in a row (a poison message) turns it"
        " off.",
        "First find the cause in the program that receives from the queue, or it is turned off again.",
        "Then turn the queue on.",
    ),
    StatusTrouble.QUEUE_BUSY: _entry(
        "The target queue is busy.",
        "Wait: the queue takes the message when it can.",
        "If the status stays, look there for a session that locks the queue.",
    ),
    StatusTrouble.TARGET_BROKER_OFF: _entry(
        "The broker of the target's database is off, or the database is not online.",
        "Bring the database online, and enable its broker with ENABLE_BROKER.",
        risk=ENABLE_RISK,
    ),
    StatusTrouble.TARGET_DATABASE_CLOSED: _entry(
        "The target's database takes no messages: it is read-only, in single-user mode, a replica, or not online.",
        "If it is a replica, let the route lead to the principal or to the group's listener.",
        "Otherwise make it writable and online.",
    ),
    StatusTrouble.TARGET_FULL: _entry(
        "A database that the text names has no space left: its files, its log or the disk of the target are full.",
        "Free space there, or let the file grow. For a full log, read log_reuse_wait_desc in sys.databases.",
        "Then wait: SQL Server tries again by itself.",
    ),
    StatusTrouble.TARGET_DAMAGED: _entry(
        "Pages of the target's database are damaged.", "Run DBCC CHECKDB there, and restore from a backup."
    ),
    StatusTrouble.NO_MEMORY: _entry(
        "The target's instance has too little memory.", "Raise max server memory there, or stop other work."
    ),
    StatusTrouble.DATABASE_NOT_OPENED: _entry(
        "SQL Server cannot open the database that the text names: it is gone, not online, or closed to the login.",
        "Look at its state. Bring it online, or restore it under this name.",
        "If it is online, create a user for the login in it.",
    ),
    StatusTrouble.ENDED_BY_TRIGGER: _entry(
        "A trigger ended the transaction that takes the message.",
        "Find the trigger among those of the instance and of the database, and read its code.",
        "Correct it, or stop it with DISABLE TRIGGER until it is corrected.",
        risk="While the trigger is disabled, it guards and records nothing.",
    ),
    StatusTrouble.TARGET_EXCEPTION: _entry(
        "An exception at the target queue holds the message back.",
        "Read the text: it names the exception, and its end gives the solution.",
    ),
    StatusTrouble.CONTRACT_NOT_TAKEN: _entry(
        "The target's database lacks the contract or a message type, or its service does not take the contract.",
        "Create the message types and the contract there too.",
        "Then run ALTER SERVICE … (ADD CONTRACT …).",
    ),
    StatusTrouble.LICENSE: _entry(
        "Two instances of Express or Web edition exchange messages only through one of Standard or Enterprise.",
        "Route the messages through one with MESSAGE_FORWARDING, or upgrade an instance.",
    ),
    StatusTrouble.MESSAGE_REFUSED: _entry(
        "The target refuses this very message, for its XML or for the state of its dialog.",
        "Read the text: it says why. For a timestamp, compare the clocks of both servers.",
    ),
    StatusTrouble.SENT_AGAIN: _entry(
        "The message arrived twice or before another one of its dialog, because SQL Server sends again until it"
        " gets an acknowledgement.",
        "Wait: SQL Server sends again what is still needed.",
        "If it repeats, check the route from the target back to the sender, by which the acknowledgement comes.",
    ),
    StatusTrouble.TAKEN_BY_OTHER: _entry(
        "Another copy of the service has taken the dialog first, as when routes lead to several databases.",
        "Do not send again: the dialog continues with that copy.",
        "If there should be one target, name its broker instance in the route, or drop the other routes.",
    ),
    StatusTrouble.DOUBLED_ID: _entry(
        "Another database of the instance has the same broker instance, as after a copy or a restore.",
        "Run ENABLE_BROKER for the database that dialogs are meant for.",
        "Run NEW_BROKER for the copy, or DISABLE_BROKER if the copy needs no Service Broker.",
        risk=NEW_BROKER_RISK,
    ),
    StatusTrouble.ID_DIFFERS: _entry(
        "The broker instance in the database differs from that in sys.databases.",
        "Run NEW_BROKER for the database if ENABLE_BROKER fails with error 9776.",
        risk=NEW_BROKER_RISK,
    ),
    StatusTrouble.RESTORED: _entry(
        "The database was attached or restored, and its dialogs are no longer those of the other side.",
        "End these dialogs and begin new ones.",
        risk=CLEANUP_RISK,
    ),
    StatusTrouble.SERVICE_GONE: _entry(
        "The database that the dialog is bound to has no such service, and the dialog ends with this error.",
        "End the dialog.",
        "Do not create the service for it.",
        risk=END_RISK,
    ),
    StatusTrouble.CONVERSATION_ENDED: _entry(
        "The other side has ended the conversation, and nothing more is delivered in it.",
        "Run END CONVERSATION here too, and begin a new dialog if there is more to send.",
        risk=END_RISK,
    ),
    StatusTrouble.LIFETIME_OVER: _LIFETIME_OVER,
    StatusTrouble.KEY_LOST: _entry(
        "The dialog's session key is lost or cannot be used, as after a master key was regenerated with FORCE.",
        "Send again the messages that the other side did not get, in a new dialog.",
        "Then run END CONVERSATION for the old one.",
        risk=END_RISK,
    ),
    StatusTrouble.TRANSMITTER_FAILED: _entry(
        "SQL Server could not send a message of its transmission queue, or could not delete one that it had sent.",
        "Read the error in the text: a lock, a closed database or too little memory may be the cause.",
        "Look for sessions that hold locks in the sending database.",
        "Do not delete messages: SQL Server tries again by itself.",
    ),
    StatusTrouble.SYSTEM_FAILED: _entry(
        "The operating system refused something to Service Broker: the text has its error.",
        "Look up that error, such as too little memory, and look at the error log of that time.",
        "If Service Broker did not start, restart SQL Server when the cause is gone.",
        risk="A restart ends all connections and rolls back open transactions.",
    ),
    StatusTrouble.MESSAGE_CORRUPTED: _entry(
        "A message arrived damaged, or not encrypted and signed as the endpoint expects.",
        "Check that both endpoints have the same encryption and algorithm.",
        "Check the network, and that only SQL Server connects to the endpoint's port.",
    ),
    StatusTrouble.STATEMENT_REFUSED: _entry(
        "SQL Server refused a statement about routes with this number.",
        "Correct the statement: no message has this status.",
    ),
    StatusTrouble.OTHER_NUMBER: _entry(
        "The meaning of this number is not known here.", "Look it up in sys.messages, and read the whole text."
    ),
    StatusTrouble.UNREAD: _entry(
        "This text could not be read: it is in another language than English, or unknown here, and may report any"
        " trouble.",
        "Export the queue again with the queries of `sbroute import queries`: their column error_number has SQL"
        " Server's own number.",
        "Until then, read the text.",
    ),
}
"""The words for each status, with solutions from public reports."""


def error_number(reason: str | None, scope: str | None) -> int | None:
    """Return SQL Server's number for a reason, or None. ``scope`` is the database last searched."""
    if reason is None:
        return None
    if reason == Reason.SCOPE_BROKER_DISABLED and scope == MSDB:
        return MSDB_BROKER_DISABLED
    return ERROR_NUMBERS.get(Reason(reason))


def number_reason(reason: Reason | str, scope: str | None) -> str:
    """Return a reason with SQL Server's number for it, if any: "NO_ROUTE, SQL Server's number: 9793"."""
    number = error_number(str(reason), scope)
    return str(reason) if number is None else f"{reason}, SQL Server's number: {number}"
