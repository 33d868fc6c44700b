"""List the errors that have a page in the documentation, with the text that people search for and the sources.

The words of a page are those of the catalogue. ``tests.error_pages`` writes the pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routing.advice.status_meanings import StatusTrouble, find_trouble
from tests.message_texts import MESSAGE_TEXTS


@dataclass(frozen=True)
class ErrorSource:
    """A public text that confirms the cause or the solution of an error."""

    title: str
    address: str


@dataclass(frozen=True)
class ErrorPage:
    """An error with a page.

    ``text`` is the message as SQL Server writes it, with values. ``inner`` is the number of an exception or of the
    operating system that the text wraps. ``query`` shows the cause of an error that no message has as its status.
    """

    number: int
    text: str
    sources: tuple[ErrorSource, ...]
    inner: int | None = None
    query: str | None = None

    @property
    def name(self) -> str:
        """The name of the page: the number, and the wrapped number if there is one."""
        return str(self.number) if self.inner is None else f"{self.number}-{self.inner}"

    @property
    def status(self) -> str:
        """The transmission_status of a message with this error. It is empty if no message has the error."""
        return self.text if self.query is None else ""

    @property
    def trouble(self) -> StatusTrouble:
        """The trouble that the message reports."""
        return find_trouble(self.number, self.text) or StatusTrouble.UNREAD


_MANUAL = "https://learn.microsoft.com/sql/"
_BROKER = f"{_MANUAL}database-engine/service-broker/"


def _manual(title: str, page: str) -> ErrorSource:
    return ErrorSource(f"SQL Server manual: {title}", f"{_BROKER}{page}")


_DELIVERY = _manual("Troubleshooting routing and message delivery", "troubleshooting-routing-and-message-delivery")
_ROUTING = _manual("Service Broker routing", "service-broker-routing")
_DYNAMIC = _manual("Service Broker dynamic routing", "service-broker-dynamic-routing")
_IDENTITIES = _manual("Managing Service Broker identities", "managing-service-broker-identities")
_ACTIVATE = _manual(
    "Activate Service Broker message delivery in databases",
    "how-to-activate-service-broker-message-delivery-in-databases-transact-sql",
)
_FORWARDING = _manual(
    "Activate Service Broker message forwarding", "how-to-activate-service-broker-message-forwarding-transact-sql"
)
_NETWORKING = _manual(
    "Activate Service Broker networking", "how-to-activate-service-broker-networking-transact-sql"
)
_BY_CERTIFICATE = _manual(
    "Allow Service Broker network access by using certificates",
    "how-to-allow-service-broker-network-access-by-using-certificates-transact-sql",
)
_DIALOG_CERTIFICATES = _manual("Certificates for dialog security", "certificates-for-dialog-security")
_BINDING = _manual("Creating a remote service binding", "creating-a-remote-service-binding")
_PERMISSIONS = _manual(
    "Configure permissions for a local service",
    "how-to-configure-permissions-for-a-local-service-transact-sql",
)
_POISON = _manual("Removing poison messages", "removing-poison-messages")
_ERRORS = _manual("Handling Service Broker error messages", "handling-service-broker-error-messages")
_BETWEEN_DATABASES = _manual(
    "Completing a conversation between databases", "completing-a-conversation-between-databases"
)
_SOCKETS = ErrorSource(
    "Windows: Windows Sockets error codes",
    "https://learn.microsoft.com/windows/win32/winsock/windows-sockets-error-codes-2",
)
_SYSTEM = ErrorSource(
    "Windows: System error codes (0-499)",
    "https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-",
)
_CLOSED = ErrorSource(
    "MSSQLTips 5567: Service Broker error receiving data, 10054",
    "https://www.mssqltips.com/sqlservertip/5567/"
    "sql-server-service-broker-error-receiving-data-10054-an-existing-connection-was-forcibly-closed-by-the-remote-host/",
)
_OWNER = ErrorSource(
    "Database Administrators: What is the purpose of the database owner",
    "https://dba.stackexchange.com/questions/18610/what-is-the-purpose-of-the-database-owner",
)
_OWNER_TROUBLES = ErrorSource(
    "Dan Guzman: Database owner troubles", "https://weblogs.sqlteam.com/dang/2008/01/13/database-owner-troubles"
)
_WINDOWS_OWNER = ErrorSource(
    "SQL Server manual: MSSQLSERVER_15404",
    f"{_MANUAL}relational-databases/errors-events/mssqlserver-15404-database-engine-error",
)
_MASTER_KEYS = ErrorSource(
    "Bob Beauchemin: Service Broker and database master keys",
    "https://www.sqlskills.com/blogs/bobb/service-broker-and-database-master-keys/",
)
_ALTER_MASTER_KEY = ErrorSource(
    "SQL Server manual: ALTER MASTER KEY", f"{_MANUAL}t-sql/statements/alter-master-key-transact-sql"
)
_QUERY_NOTIFICATIONS = ErrorSource(
    "Remus Rusanu: When it rains, it pours", "https://rusanu.com/2007/11/10/when-it-rains-it-pours/"
)
_NO_CERTIFICATE = ErrorSource(
    "Stack Overflow 2599839: Help with Service Broker error message",
    "https://stackoverflow.com/questions/2599839/help-with-service-broker-error-message",
)
_CONNECT = ErrorSource("SQLRx: AlwaysOn – Connection handshake failure", "https://blog.sqlrx.com/tag/endpoint/")
_ENCRYPTION = ErrorSource(
    "MSSQLTips 4296: no compatible encryption algorithm", "https://www.mssqltips.com/sqlservertip/4296/"
)
_EXPIRED = ErrorSource(
    "Andrew Ing: SQL Server Service Broker", "http://www.andrewing.co.uk/sql-server-service-broker-sssb/"
)
_SAME_ID = ErrorSource(
    "Nakul Vachhrajani: Msg 9772",
    "https://nakulvachhrajani.com/2013/09/16/"
    "0295-sql-server-database-restore-manually-enabling-service-broker-msg-9772/",
)
_IN_GROUP = ErrorSource(
    "Configuration Manager documentation, issue 1432", "https://github.com/MicrosoftDocs/SCCMdocs/issues/1432"
)
_EXCLUSIVE = ErrorSource(
    "Remus Rusanu: How long should I expect ALTER DATABASE … SET ENABLE_BROKER to run?",
    "https://rusanu.com/2006/01/30/how-long-should-i-expect-alter-databse-set-enable_broker-to-run/",
)
_PORT_IN_USE = ErrorSource(
    "SQL Server manual: MSSQLSERVER_9692",
    f"{_MANUAL}relational-databases/errors-events/mssqlserver-9692-database-engine-error",
)
_LOG_FULL = ErrorSource(
    "SQL Server manual: troubleshoot a full transaction log (error 9002)",
    f"{_MANUAL}relational-databases/logs/troubleshoot-a-full-transaction-log-sql-server-error-9002",
)
_SITE = ErrorSource(
    "Configuration Manager: SQL configuration for replication",
    "https://learn.microsoft.com/mem/configmgr/core/servers/manage/replication/sql-configuration",
)

_REFUSED = "No connection could be made because the target machine actively refused it."
_FORCIBLY = "An existing connection was forcibly closed by the remote host."
_TIMED_OUT = (
    "A connection attempt failed because the connected party did not properly respond after a period of time, or"
    " established connection failed because connected host has failed to respond."
)
_DBO = (
    'Cannot execute as the database principal because the principal "dbo" does not exist, this type of principal'
    " cannot be impersonated, or you do not have permission."
)
_OWNER_SID = (
    "The database owner SID recorded in the master database differs from the database owner SID recorded in"
    " database 'Orders'. You should correct this situation by resetting the owner of database 'Orders' using the"
    " ALTER AUTHORIZATION statement."
)
_PRINCIPAL = (
    'The server principal "sa" is not able to access the database "Orders" under the current security context.'
)
_MASTER_KEY = (
    "Please create a master key in the database or open the master key in the session before performing this"
    " operation."
)


def _page(number: int, *sources: ErrorSource, inner: int | None = None, values: tuple[str, ...] = ()) -> ErrorPage:
    """Return a page whose text is the message with values in place of ``…``, from the first to the last."""
    text = MESSAGE_TEXTS[number]
    for value in values:
        text = text.replace("…", value, 1)
    return ErrorPage(number, text, sources, inner)


def _exception(inner: int, text: str, *sources: ErrorSource) -> ErrorPage:
    return _page(28005, *sources, inner=inner, values=(str(inner), "1", text))


PAGES = (
    ErrorPage(
        1468,
        'The operation cannot be performed on database "Orders" because it is involved in a database mirroring'
        " session or an availability group. Some operations are not allowed on a database that is participating in"
        " a database mirroring session or in an availability group.",
        (_IN_GROUP,),
        query="SELECT name, is_broker_enabled, replica_id, group_database_id FROM sys.databases;",
    ),
    ErrorPage(
        5070,
        "Database state cannot be changed while other users are using the database 'Orders'",
        (_EXCLUSIVE, _IDENTITIES),
        query="SELECT session_id, login_name FROM sys.dm_exec_sessions WHERE database_id = DB_ID(N'Orders');",
    ),
    _page(8490, _QUERY_NOTIFICATIONS, _ERRORS, values=("//stock",)),
    _page(8494, _PERMISSIONS, values=("//orders",)),
    _page(9617, _DELIVERY, _POISON, values=("OrdersQueue",)),
    _page(9666, _DELIVERY, _NETWORKING),
    ErrorPage(
        9692,
        (
            "The Service Broker protocol transport cannot listen on port 4022 because it is in use by another"
            " process."
        ),
        (_PORT_IN_USE,),
        query="SELECT name, state_desc, port, ip_address FROM sys.tcp_endpoints;",
    ),
    _page(9727, _BINDING, _DIALOG_CERTIFICATES),
    _page(9731, _NO_CERTIFICATE, _DIALOG_CERTIFICATES, values=("5",)),
    _page(9748, _DELIVERY, _NETWORKING),
    _page(9750, _DELIVERY, _ROUTING),
    _page(9753, _DELIVERY),
    _page(9754, _SOCKETS, inner=10060, values=(f"10060({_TIMED_OUT})",)),
    _page(9754, _SOCKETS, _DELIVERY, inner=10061, values=(f"10061({_REFUSED})",)),
    _page(9755, _SYSTEM, inner=64, values=("64(The specified network name is no longer available.)",)),
    _page(9755, _SYSTEM, inner=121, values=("121(The semaphore timeout period has expired.)",)),
    _page(9755, _CLOSED, _DELIVERY, inner=10054, values=(f"10054({_FORCIBLY})",)),
    _page(9759, _CLOSED, _DELIVERY, inner=10054, values=(f"10054({_FORCIBLY})",)),
    _page(9761, _DYNAMIC, values=("{E0000001-0000-4000-8000-000000000000}", "no route")),
    _page(9770, _DYNAMIC),
    _page(9772, _SAME_ID, _IDENTITIES, values=("Orders",)),
    _page(9773, _IDENTITIES, values=("5",)),
    _page(9779, _ERRORS),
    _page(9783, _SOCKETS, inner=11001, values=("11001(No such host is known.)",)),
    _page(9784, _ERRORS),
    _page(9789, _IDENTITIES),
    _page(9791, _ACTIVATE, _IDENTITIES),
    _page(9792, _FORWARDING),
    _page(9793, _DELIVERY, _ROUTING),
    _page(9795, _ROUTING, _IDENTITIES),
    _page(9796, _ROUTING, _DELIVERY),
    _page(11215, _PERMISSIONS, values=("5", "6", "//orders")),
    _exception(916, _PRINCIPAL, _BETWEEN_DATABASES),
    _exception(9002, "The transaction log for database 'Orders' is full due to 'LOG_BACKUP'.", _LOG_FULL),
    _exception(
        15404,
        "Could not obtain information about Windows NT group/user 'CORP\\jane', error code 0x5.",
        _OWNER,
        _WINDOWS_OWNER,
    ),
    _exception(15517, _DBO, _OWNER, _OWNER_TROUBLES),
    _exception(15581, _MASTER_KEY, _ALTER_MASTER_KEY),
    _exception(33009, _OWNER_SID, _OWNER_TROUBLES),
    _exception(33019, "Cannot create implicit user for the special login 'sa'.", _OWNER_TROUBLES),
    _page(28012, _ACTIVATE, _IDENTITIES, values=("The service broker is administratively disabled.",)),
    _page(28013, _ACTIVATE, _IDENTITIES),
    _page(28024, _DIALOG_CERTIFICATES, values=("5",)),
    _page(28025, _DIALOG_CERTIFICATES, values=("5",)),
    _page(28027, _ENCRYPTION, values=("encryption algorithm", "22")),
    _page(28034, _CONNECT, _BY_CERTIFICATE, values=("CORP\\SHOP$", "84")),
    _page(28035, _SITE, _BY_CERTIFICATE, values=("Certificate not found", "89")),
    _page(28036, _EXPIRED, _BY_CERTIFICATE, values=("Certificate expired", "85")),
    _page(28050, _MASTER_KEYS, _ALTER_MASTER_KEY),
    _page(28054, _QUERY_NOTIFICATIONS, _ALTER_MASTER_KEY, values=("Orders", "32")),
)
"""The errors with a page, in the order of their numbers."""

_ENDPOINTS = "`sys.service_broker_endpoints` and `sys.tcp_endpoints` of both instances"
_ERROR_LOG = "the error log of both instances"
_TRANSPORT_CERTIFICATES = f"`sys.certificates` of `master` in both instances, and {_ERROR_LOG}"
_DIALOG_SECURITY = "`sys.certificates` and `sys.remote_service_bindings` of the sending database"
_IS_ENABLED = "`is_broker_enabled` in `sys.databases`"
_TARGET_STATE = f"`state_desc`, `is_read_only`, `user_access_desc` and {_IS_ENABLED} of the target's instance"
_GUIDS = "`service_broker_guid` and `is_broker_enabled` in `sys.databases`"
_CONVERSATION = "`state_desc` and `far_service` in `sys.conversation_endpoints` of both databases"
_MASTER_KEY_VIEW = "`sys.symmetric_keys`, and `is_master_key_encrypted_by_server` in `sys.databases`"

WHERE_TO_LOOK: Mapping[StatusTrouble, str] = {
    StatusTrouble.NO_ROUTE: "`sys.routes` of the sending database, and `sys.services` of the target",
    StatusTrouble.ROUTE_REQUESTED: "`sys.routes` of the sending database, and the BrokerConfiguration service",
    StatusTrouble.REQUEST_FAILED: "the queue of the BrokerConfiguration service, and the error log",
    StatusTrouble.SERVICE_NOT_HERE: "`sys.routes` of the sending database, and `sys.services` of every database",
    StatusTrouble.BROKER_NOT_HERE: f"{_GUIDS}, and `broker_instance` in `sys.routes`",
    StatusTrouble.FORWARDING_OFF: "`is_message_forwarding_enabled` in `sys.service_broker_endpoints`",
    StatusTrouble.SENDER_BROKER_OFF: f"{_IS_ENABLED}, for the sending database",
    StatusTrouble.MSDB_BROKER_OFF: f"{_IS_ENABLED}, for `msdb`",
    StatusTrouble.PASSING: "`transmission_status` again, some minutes later",
    StatusTrouble.NOT_CLASSIFIED: "the event `broker_message_classify`, and the error log",
    StatusTrouble.NOT_TAKEN_THERE: "`sys.services`, `sys.databases` and `msdb.sys.routes` of the target instance",
    StatusTrouble.NO_ENDPOINT: "`sys.service_broker_endpoints` of the sending instance",
    StatusTrouble.BAD_ADDRESS: "`address` in `sys.routes`",
    StatusTrouble.NAME_NOT_RESOLVED: "`address` in `sys.routes`, and the DNS of the sending server",
    StatusTrouble.NOTHING_LISTENS: _ENDPOINTS,
    StatusTrouble.CLOSED_BY_OTHER_SIDE: f"{_ENDPOINTS}, and {_ERROR_LOG}",
    StatusTrouble.NETWORK_FAILS: "the network between the two servers",
    StatusTrouble.CONNECTION_FORBIDDEN: "the firewall, virus scanner and connections of the sending server",
    StatusTrouble.CONNECTION_REPLACED: "`sys.dm_broker_connections`",
    StatusTrouble.OWNER_NOT_VALID: "`owner_sid` in `sys.databases`, for the databases of both services",
    StatusTrouble.MASTER_KEY_CLOSED: _MASTER_KEY_VIEW,
    StatusTrouble.NO_SESSION_KEY: _MASTER_KEY_VIEW,
    StatusTrouble.NO_PERMISSION: "`sys.database_permissions` of the target's database",
    StatusTrouble.NO_ACCESS: "`sys.database_permissions` and `sys.certificates` of the target's database",
    StatusTrouble.USER_NOT_VALID: "`sys.database_principals` and `sys.databases` of the target",
    StatusTrouble.NAME_NOT_FOUND: "`sys.database_principals` and `sys.objects` of the target's database",
    StatusTrouble.DATABASE_NOT_OPENED: "`state_desc` in `sys.databases` of the target's instance",
    StatusTrouble.ENDED_BY_TRIGGER: "`sys.triggers` and `sys.server_triggers` of the target",
    StatusTrouble.NOT_TRUSTED: "`is_trustworthy_on` in `sys.databases`, for the sending database",
    StatusTrouble.NO_CONNECT: "`sys.server_permissions` of the other instance",
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: "`start_date` in `sys.certificates`",
    StatusTrouble.CERTIFICATE_EXPIRED: "`expiry_date` in `sys.certificates`",
    StatusTrouble.NO_DIALOG_CERTIFICATE: _DIALOG_SECURITY,
    StatusTrouble.NO_ENDPOINT_CERTIFICATE: _TRANSPORT_CERTIFICATES,
    StatusTrouble.NO_BINDING: "`sys.remote_service_bindings` of the sending database",
    StatusTrouble.HANDSHAKE_FAILED: f"{_ENDPOINTS}, and {_ERROR_LOG}",
    StatusTrouble.QUEUE_OFF: "`is_receive_enabled` in `sys.service_queues` of the target's database",
    StatusTrouble.QUEUE_BUSY: "`transmission_status` again, some minutes later",
    StatusTrouble.TARGET_BROKER_OFF: _TARGET_STATE,
    StatusTrouble.TARGET_DATABASE_CLOSED: _TARGET_STATE,
    StatusTrouble.TARGET_FULL: "`log_reuse_wait_desc` in `sys.databases`, and the files of the target's database",
    StatusTrouble.TARGET_DAMAGED: "`msdb.dbo.suspect_pages`, and the error log of the target's server",
    StatusTrouble.NO_MEMORY: "`sys.dm_os_process_memory`, and the error log of the target's server",
    StatusTrouble.TARGET_EXCEPTION: "the error that the text names",
    StatusTrouble.CONTRACT_NOT_TAKEN: "`sys.service_contracts` and `sys.service_contract_usages` of the target",
    StatusTrouble.LICENSE: "`SERVERPROPERTY('Edition')` of both instances",
    StatusTrouble.MESSAGE_REFUSED: _CONVERSATION,
    StatusTrouble.SENT_AGAIN: "`sys.routes` of the target's database and of its `msdb`",
    StatusTrouble.TAKEN_BY_OTHER: "`sys.routes` of the sending database, and `sys.services` of every database",
    StatusTrouble.ID_DIFFERS: f"{_GUIDS}, and the error log",
    StatusTrouble.DOUBLED_ID: _GUIDS,
    StatusTrouble.RESTORED: _CONVERSATION,
    StatusTrouble.SERVICE_GONE: "`sys.services` of the database that the dialog is bound to",
    StatusTrouble.CONVERSATION_ENDED: _CONVERSATION,
    StatusTrouble.LIFETIME_OVER: _CONVERSATION,
    StatusTrouble.KEY_LOST: _CONVERSATION,
    StatusTrouble.TRANSMITTER_FAILED: "`sys.dm_tran_locks` and the state of the sending database",
    StatusTrouble.SYSTEM_FAILED: "the error log of the instance",
    StatusTrouble.MESSAGE_CORRUPTED: f"{_ENDPOINTS}, and {_ERROR_LOG}",
    StatusTrouble.STATEMENT_REFUSED: "the statement, with `sbroute lint`",
}
"""The views and logs that show each trouble."""
