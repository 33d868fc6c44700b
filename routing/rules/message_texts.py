"""The words by which the English texts of sys.messages are known, by SQL Server's number.

They come from the manual's list of events and errors. ``…`` replaces a value or words in between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# A part of each text is enough, because a status may be cut off.
_PARTS: Mapping[int, str] = {
    8408: "Target service '…' does not support contract",
    8409: "the targeted service does not support the service contract",
    8425: "The service contract '…' is not found",
    8428: 'The message type "…" is not found',
    8430: "The message body failed the configured validation",
    8437: "sent by a Target service, but the message type '…' is marked SENT BY INITIATOR in the contract",
    8457: (
        "sent by the initiator of the conversation, but the message type '…' is marked SENT BY TARGET in the "
        "contract"
    ),
    8462: "The remote conversation endpoint is either in a state where no more messages can be exchanged",
    8469: "Remote service has been altered",
    8470: "Remote service has been dropped",
    8487: "The remote service contract has been dropped",
    8489: "The dialog has exceeded the specified LIFETIME",
    8490: "Cannot find the remote service '…' because it does not exist",
    8494: "You do not have permission to access the service",
    8495: "The conversation has already been acknowledged by another instance of this service",
    8498: "The remote service has sent a message of type '…' that is not part of the local contract",
    9616: "A message of type '…' was received and failed XML validation",
    9617: 'The service queue "…" is currently disabled',
    9642: "transport connection endpoint",
    9649: "A security (SSPI) error occurred when connecting to another service broker",
    9652: "Service Broker failed to retrieve the session key for encrypting a message",
    9659: "of route '…' cannot be empty",
    9660: "of route '…' must be less than … characters long",
    9661: 'The SERVICE_NAME and BROKER_INSTANCE of route "…" must be specified when using mirroring',
    9662: "Cannot specify BROKER_INSTANCE without SERVICE_NAME in route",
    9666: "transport is disabled or not configured",
    9704: "This message could not be delivered because it failed XML validation",
    9719: "The database for this conversation endpoint is attached or restored",
    9720: "The database for the remote conversation endpoint is attached or restored",
    9723: "will not be started as the broker due to duplication in the broker instance ID",
    9727: "Dialog security is not available for this conversation",
    9728: "Cannot find the security certificate because the lookup database principal ID (…) is not valid",
    9730: "Cannot find the security certificate because…does not correspond to a server principal",
    9731: "Dialog security is unavailable for this conversation",
    9733: "There is no private key for the security certificate bound to database principal",
    9734: "The length of the private key for the security certificate bound to database principal",
    9735: "The length of the public key for the security certificate bound to database principal",
    9737: "The private key for the security certificate bound to the database principal…is password protected",
    9743: 'of route "…" must be an address when using mirroring',
    9744: 'of route "…" is not a valid address',
    9745: "The ADDRESS of route '…' cannot be 'TRANSPORT' when SERVICE_NAME is specified",
    9746: "The LIFETIME of route '…' must be in the range",
    9747: "The ADDRESS and MIRROR_ADDRESS of route '…' cannot be the same",
    9748: "protocol transport is not available",
    9749: "Target queue is busy",
    9750: "No route matches the destination service name for this conversation",
    9751: "Authentication failed with error",
    9752: "connection was refused. The user account of the remote server is not permitted",
    9753: "The target service broker is unreachable",
    9754: "Connection attempt failed with error",
    9755: "An error occurred while receiving data",
    9756: "An internal exception occurred while connecting to an adjacent broker",
    9757: "network protocol error occurred",
    9758: "Login protocol negotiation error occurred",
    9759: "An error occurred while sending data",
    9761: "The Broker Configuration conversation on dialog handle",
    9762: (
        "looking up the public key certificate associated with this SQL Server instance: No certificate was found"
    ),
    9763: (
        "looking up the public key certificate associated with this SQL Server instance: The certificate found is "
        "not valid at the current time"
    ),
    9764: (
        "looking up the public key certificate associated with this SQL Server instance: The certificate found is "
        "too large"
    ),
    9765: (
        "looking up the public key certificate associated with this SQL Server instance: The certificate found "
        "has no associated private key"
    ),
    9766: (
        "An unknown internal error (…) occurred while looking up the public key certificate associated with this "
        "SQL Server instance"
    ),
    9767: "security certificate bound to database principal…has been disabled for use with BEGIN DIALOG",
    9768: "A database user associated with the secure conversation was dropped",
    9770: "Locating routes and security information via the Broker Configuration Service",
    9771: "The service broker manager is disabled in single-user mode",
    9772: "cannot be enabled because there is already an enabled Service Broker with the same ID",
    9773: "is disabled because there is already an enabled Service Broker with the same ID",
    9776: "Cannot enable the Service Broker in database",
    9777: "will be disabled because the Service Broker GUID in the database",
    9779: "Service Broker received an END CONVERSATION message on this conversation",
    9780: "The service broker manager is initializing",
    9781: "The service broker manager is shutting down",
    9783: "DNS lookup failed with error",
    9784: "Service Broker received an error message on this conversation",
    9785: "Invalid address specified",
    9787: "An error occurred while processing broker mirroring routes",
    9788: "The system database msdb containing routing information is not available",
    9789: (
        "The system database msdb containing routing information is not available. The broker is disabled in msdb"
    ),
    9790: "The system database msdb containing routing information is in SINGLE USER mode",
    9791: "The broker is disabled in the sender's database",
    9792: "forwarding is disabled in this SQL Server instance",
    9793: "The target service name could not be found",
    9794: "The broker mirroring manager has not fully initialized",
    9795: "Could not find the target broker in the local SQL Server instance",
    9796: "The target service name matched a LOCAL route, but there is no service by that name",
    9797: "Classification has been delayed because the routing information is currently being updated",
    9798: "could not be classified",
    11210: "dropped because the TO service could not be found",
    11211: "dropped because the user does not have permission to access the target database",
    11212: "the conversation endpoint has already been closed",
    11213: "this is not the first message in the conversation",
    11214: "contract could not be found or the service does not accept conversations for the contract",
    11215: "does not have permission to send to the service",
    11219: "the destination queue has been disabled",
    11225: "the message type name could not be found",
    11226: "the message type is not part of the service contract",
    11227: "the initiator service has sent a message with a message type that can only be sent by the target",
    11228: "the target service has sent a message with a message type that can only be sent by the initiator",
    11229: "the security context could not be retrieved",
    11230: "the message could not be decrypted and validated",
    11231: "the conversation endpoint is not secured, however the message is secured",
    11232: "the conversation endpoint is secured, however the message is not secured",
    11233: "the session key of the conversation endpoint does not match",
    11282: "dropped due to licensing restrictions",
    28000: "The decrypted session key has an unexpected size",
    28001: "A corrupted message has been received. It contains invalid flags",
    28004: "This message could not be delivered because the '…' action cannot be performed in the '…' state",
    28005: "An exception occurred while enqueueing a message in the target queue",
    28007: "A corrupted message has been received. The highest seen message number",
    28010: "This message could not be delivered because it contains an invalid acknowledged message number",
    28011: "This message could not be delivered because its … has expired or is invalid",
    28012: "The Service Broker in the target database is unavailable",
    28013: "The service broker is administratively disabled",
    28014: "The database is in read-only mode",
    28015: "The database is in single-user mode",
    28016: "has been dropped because the service broker in the target database is unavailable",
    28017: "has been dropped because the target service broker is unreachable",
    28018: "The database is a replica of a mirrored database",
    28021: "could not be delivered to the local service targeted by this dialog",
    28022: (
        "looking up the public key certificate associated with this SQL Server instance: The certificate is not "
        "yet valid"
    ),
    28023: (
        "looking up the public key certificate associated with this SQL Server instance: The certificate has "
        "expired"
    ),
    28024: "security certificate bound to database principal…is not yet valid",
    28025: "security certificate bound to database principal…has expired",
    28026: "Connection handshake failed. Not enough memory available",
    28027: "Connection handshake failed. There is no compatible",
    28028: (
        "Connection handshake failed. Could not send a handshake message because the connection was closed by peer"
    ),
    28029: "Connection handshake failed. Unexpected event",
    28030: "Connection handshake failed. A call to the SQL Server Network Interface failed",
    28031: "Connection handshake failed. An OS call failed",
    28032: "A previously existing connection with the same peer was detected during connection handshake",
    28033: "A new connection was established with the same peer",
    28034: "Connection handshake failed. The login '…' does not have CONNECT permission on the endpoint",
    28035: "Connection handshake failed. The certificate used by the peer is invalid",
    28036: "Connection handshake failed. The certificate used by this endpoint was not found",
    28037: "Connection handshake failed. Error … occurred while initializing the private key",
    28038: "Connection handshake failed. The handshake verification failed",
    28039: "Connection handshake failed. The receive SSPI packet is not of type of the negotiated package",
    28040: "A corrupted message has been received. The adjacent error message header is invalid",
    28041: "A corrupted message has been received. The encrypted payload offset is invalid",
    28042: "A corrupted message has been received. The arbitration request header is invalid",
    28043: "A corrupted message has been received. The arbitration response header is invalid",
    28044: (
        "A corrupted message has been received. It is not encrypted and signed using the currently configured "
        "endpoint algorithm"
    ),
    28045: (
        "Connection handshake failed. The certificate used by the peer does not match the one in MASTER database"
    ),
    28047: "login attempt failed with error",
    28048: "login attempt by user '…' failed with error",
    28049: "A corrupted message has been received. The proxy connect message header is invalid",
    28050: "The session keys for this conversation could not be created or accessed",
    28051: "Could not save a dialog session key",
    28052: "Cannot decrypt session key while regenerating master key with FORCE option",
    28053: "could not upgrade conversation session keys in database '…' to encrypted format",
    28054: "Service Broker needs to access the master key in the database",
    28055: "is not valid for endpoint authentication",
    28056: "does not have control permission on the service",
    28057: "has a pending conversation upgrade operation",
    28058: "Service Broker could not upgrade this conversation during a database upgrade",
    28059: "Connection handshake failed. The received premaster secret of size",
    28061: (
        "A corrupted message has been received. The adjacent message integrity check signature could not be "
        "validated"
    ),
    28062: "A corrupted message has been received. The signed dialog message header is invalid",
    28063: "A corrupted message has been received. A required variable data field is not present",
    28064: "A corrupted message has been received. A string variable data field is not a valid UNICODE string",
    28065: "A corrupted message has been received. The unsigned dialog message header is invalid",
    28066: "A corrupted message has been received. The security dialog message header is invalid",
    28067: "A corrupted message has been received. The encrypted offset of the envelope does not match",
    28068: "A corrupted message has been received. The envelope payload is bigger than the message",
    28069: "Unexpected session key when encrypting a dialog message",
    28070: "Connection handshake failed. The received SSPI message Confirm status is unexpected",
    28071: "could not be forwarded",
    28072: "A serious error occurred in the Service Broker message transmitter",
    28073: "An out of memory condition has occurred in the Service Broker message transmitter",
    28074: "Service Broker could not upgrade conversation with conversation_handle",
    28075: "The broker in the sender's database is in single user mode",
    28079: "Connection handshake failed. The received SSPI packet is not of the expected direction",
    28080: "Connection handshake failed. The … endpoint is not configured",
    28081: (
        "Connection handshake failed. An unexpected status … was returned when trying to send a handshake message"
    ),
    28082: "Connection handshake failed. An unexpected internal failure occurred when trying to marshal a message",
    28090: "An error occurred while deleting sent messages from the transmission queue",
    28098: "A previously existing connection with the same peer was found after DNS lookup",
}
_VALUE = re.compile(r"['\"]?…['\"]?")

PIECES: Mapping[int, tuple[str, ...]] = {
    number: tuple(piece.strip(" ()") for piece in _VALUE.split(part.lower())) for number, part in _PARTS.items()
}
"""The words that distinguish a text from all others, in lower case and in their order."""
