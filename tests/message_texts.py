"""The English texts of sys.messages that a transmission_status may have, by SQL Server's number.

They come from the manual's list of events and errors. ``…`` replaces a value. 28071 is not given as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

MESSAGE_TEXTS: Mapping[int, str] = {
    8408: "Target service '…' does not support contract '…'.",
    8409: (
        "This message could not be delivered because the targeted service does not support the service contract. "
        "Targeted service: '…', service contract: '…'."
    ),
    8425: "The service contract '…' is not found.",
    8428: 'The message type "…" is not found.',
    8430: "The message body failed the configured validation.",
    8437: (
        "The message received was sent by a Target service, but the message type '…' is marked SENT BY INITIATOR "
        "in the contract."
    ),
    8457: (
        "The message received was sent by the initiator of the conversation, but the message type '…' is marked "
        "SENT BY TARGET in the contract."
    ),
    8462: (
        "The remote conversation endpoint is either in a state where no more messages can be exchanged, or it has "
        "been dropped."
    ),
    8469: "Remote service has been altered.",
    8470: "Remote service has been dropped.",
    8487: "The remote service contract has been dropped.",
    8489: "The dialog has exceeded the specified LIFETIME.",
    8490: "Cannot find the remote service '…' because it does not exist.",
    8494: "You do not have permission to access the service '…'.",
    8495: "The conversation has already been acknowledged by another instance of this service.",
    8498: "The remote service has sent a message of type '…' that is not part of the local contract.",
    9616: (
        "A message of type '…' was received and failed XML validation. …. This occurred in the message with "
        "Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    9617: 'The service queue "…" is currently disabled.',
    9642: (
        "An error occurred in a Service Broker/Database Mirroring transport connection endpoint, Error: …, State: "
        "…. (Near endpoint role: …, far endpoint address: '…')"
    ),
    9649: (
        "A security (SSPI) error occurred when connecting to another service broker: '…'. Check the Windows Event "
        "Log for more information."
    ),
    9652: "Service Broker failed to retrieve the session key for encrypting a message.",
    9659: "The … of route '…' cannot be empty.",
    9660: "The … of route '…' must be less than … characters long.",
    9661: 'The SERVICE_NAME and BROKER_INSTANCE of route "…" must be specified when using mirroring.',
    9662: 'Cannot specify BROKER_INSTANCE without SERVICE_NAME in route "…".',
    9666: "The Service Broker protocol transport is disabled or not configured.",
    9704: (
        "This message could not be delivered because it failed XML validation. This failure occurred while the "
        "message was being delivered to the target service."
    ),
    9719: "The database for this conversation endpoint is attached or restored.",
    9720: "The database for the remote conversation endpoint is attached or restored.",
    9723: 'The database "…" will not be started as the broker due to duplication in the broker instance ID.',
    9727: (
        "Dialog security is not available for this conversation because there is no remote service binding for "
        "the target service. Create a remote service binding, or specify ENCRYPTION = OFF in the BEGIN DIALOG "
        "statement."
    ),
    9728: (
        "Cannot find the security certificate because the lookup database principal ID (…) is not valid. The "
        "security principal may have been dropped after the conversation was created."
    ),
    9730: (
        "Cannot find the security certificate because the lookup database principal (Id: …) does not correspond "
        "to a server principal. The security principal may have been dropped after the conversation was created."
    ),
    9731: (
        "Dialog security is unavailable for this conversation because there is no security certificate bound to "
        "the database principal (Id: …). Either create a certificate for the principal, or specify ENCRYPTION = "
        "OFF when beginning the conversation."
    ),
    9733: (
        "There is no private key for the security certificate bound to database principal (Id: …). The "
        "certificate may have been created or installed incorrectly. Reinstall the certificate, or create a new "
        "certificate."
    ),
    9734: (
        "The length of the private key for the security certificate bound to database principal (Id: …) is "
        "incompatible with the Windows cryptographic service provider. The key length must be a multiple of 64 "
        "bytes."
    ),
    9735: (
        "The length of the public key for the security certificate bound to database principal (Id: …) is "
        "incompatible with the Windows cryptographic service provider. The key length must be a multiple of 64 "
        "bytes."
    ),
    9736: "An error occurred in dialog transmission: Error: …, State: …. …",
    9737: (
        "The private key for the security certificate bound to the database principal (ID …) is password "
        "protected. Password protected private keys are not supported for use with secure dialogs."
    ),
    9743: 'The … of route "…" must be an address when using mirroring.',
    9744: 'The … of route "…" is not a valid address.',
    9745: "The ADDRESS of route '…' cannot be 'TRANSPORT' when SERVICE_NAME is specified.",
    9746: "The LIFETIME of route '…' must be in the range … to ….",
    9747: "The ADDRESS and MIRROR_ADDRESS of route '…' cannot be the same.",
    9748: "The Service Broker protocol transport is not available.",
    9749: "Target queue is busy; message(s) queued for delivery.",
    9750: (
        "No route matches the destination service name for this conversation. Create a route to the destination "
        "service name for messages in this conversation to be delivered."
    ),
    9751: "Authentication failed with error: '…'.",
    9752: (
        "Service Broker connection was refused. The user account of the remote server is not permitted to log in "
        "to this SQL Server: User account: '…', IP address: '…'."
    ),
    9753: "The target service broker is unreachable.",
    9754: "Connection attempt failed with error: '…'.",
    9755: "An error occurred while receiving data: '…'.",
    9756: "An internal exception occurred while connecting to an adjacent broker: Error: …, State: …. …",
    9757: "Service Broker/Database Mirroring network protocol error occurred.",
    9758: "Login protocol negotiation error occurred.",
    9759: "An error occurred while sending data: '…'.",
    9761: (
        "The Broker Configuration conversation on dialog handle '…' closed due to an error. To troubleshoot this "
        "problem, investigate the error: '…'."
    ),
    9762: (
        "An error occurred while looking up the public key certificate associated with this SQL Server instance: "
        "No certificate was found."
    ),
    9763: (
        "An error occurred while looking up the public key certificate associated with this SQL Server instance: "
        "The certificate found is not valid at the current time."
    ),
    9764: (
        "An error occurred while looking up the public key certificate associated with this SQL Server instance: "
        "The certificate found is too large."
    ),
    9765: (
        "An error occurred while looking up the public key certificate associated with this SQL Server instance: "
        "The certificate found has no associated private key."
    ),
    9766: (
        "An unknown internal error (…) occurred while looking up the public key certificate associated with this "
        "SQL Server instance."
    ),
    9767: (
        "The security certificate bound to database principal (Id: …) has been disabled for use with BEGIN "
        'DIALOG. See the Books Online topics "Certificates and Service Broker" for an overview and "ALTER '
        'CERTIFICATE (Transact-SQL)" for syntax to make a certificate ACTIVE FOR BEGIN_DIALOG.'
    ),
    9768: (
        "A database user associated with the secure conversation was dropped before credentials had been "
        "exchanged with the far endpoint. Avoid using DROP USER while conversations are being created."
    ),
    9770: "Locating routes and security information via the Broker Configuration Service.",
    9771: "The service broker manager is disabled in single-user mode.",
    9772: (
        'The Service Broker in database "…" cannot be enabled because there is already an enabled Service Broker '
        "with the same ID."
    ),
    9773: (
        'The Service Broker in database "…" is disabled because there is already an enabled Service Broker with '
        "the same ID."
    ),
    9776: (
        'Cannot enable the Service Broker in database "…" because the Service Broker GUID in the database (…) '
        "does not match the one in sys.databases (…)."
    ),
    9777: (
        'The Service Broker in database "…" will be disabled because the Service Broker GUID in the database (…) '
        "does not match the one in sys.databases (…)."
    ),
    9779: (
        "Service Broker received an END CONVERSATION message on this conversation. Service Broker will not "
        "transmit the message; it will be held until the application ends the conversation."
    ),
    9780: "The service broker manager is initializing.",
    9781: "The service broker manager is shutting down.",
    9783: "DNS lookup failed with error: '…'.",
    9784: (
        "Service Broker received an error message on this conversation. Service Broker will not transmit the "
        "message; it will be held until the application ends the conversation."
    ),
    9785: "Invalid address specified: '…'.",
    9787: "An error occurred while processing broker mirroring routes. Error: …. State: ….",
    9788: (
        "Unable to route the incoming message. The system database msdb containing routing information is not "
        "available."
    ),
    9789: (
        "Unable to route the incoming message. The system database msdb containing routing information is not "
        "available. The broker is disabled in msdb."
    ),
    9790: (
        "Unable to route the incoming message. The system database msdb containing routing information is in "
        "SINGLE USER mode."
    ),
    9791: "The broker is disabled in the sender's database.",
    9792: "Could not forward the message because forwarding is disabled in this SQL Server instance.",
    9793: (
        "The target service name could not be found. Ensure that the service name is specified correctly and/or "
        "the routing information has been supplied."
    ),
    9794: "The broker mirroring manager has not fully initialized.",
    9795: "Could not find the target broker in the local SQL Server instance.",
    9796: (
        "The target service name matched a LOCAL route, but there is no service by that name in the local SQL "
        "Server instance."
    ),
    9797: "Classification has been delayed because the routing information is currently being updated.",
    9798: (
        "The message could not be delivered because it could not be classified. Enable broker message "
        "classification trace to see the reason for the failure."
    ),
    11209: (
        "This message could not be delivered because the conversation ID could not be associated with an active "
        "conversation. The message origin is: '…'."
    ),
    11210: (
        'This message has been dropped because the TO service could not be found. Service name: "…". Message '
        'origin: "…".'
    ),
    11211: (
        "This message has been dropped because the user does not have permission to access the target database. "
        'Database ID: …. Message origin: "…".'
    ),
    11212: "This message could not be delivered because the conversation endpoint has already been closed.",
    11213: "This message could not be delivered because this is not the first message in the conversation.",
    11214: (
        "This message could not be delivered because the '…' contract could not be found or the service does not "
        "accept conversations for the contract."
    ),
    11215: (
        "This message could not be delivered because the user with ID … in database ID … does not have permission "
        "to send to the service. Service name: '…'."
    ),
    11216: "This message could not be delivered because there is already another task processing this message.",
    11217: (
        "This message could not be delivered because it is out of sequence with respect to the conversation. "
        "Conversation receive sequence number: …, Message sequence number: …."
    ),
    11218: "This message could not be delivered because it is a duplicate.",
    11219: "This message could not be delivered because the destination queue has been disabled. Queue ID: ….",
    11220: "This message could not be delivered because the TO broker instance is missing.",
    11221: "This message could not be delivered because there is an inconsistency in the message header.",
    11222: (
        "This message could not be delivered because the TO service name in the message does not match the name "
        "in the conversation endpoint. Message TO Service Name: '…'. Conversation Endpoint TO Service Name: '…'."
    ),
    11223: (
        "This message could not be delivered because the service contract name in the message does not match the "
        "name in the conversation endpoint. Message service contract name: '…'. Conversation endpoint service "
        "contract name: '…'."
    ),
    11224: (
        "This message could not be delivered because another instance of this service program has already started "
        "conversing with this endpoint."
    ),
    11225: (
        "This message could not be delivered because the message type name could not be found. Message type name: "
        "'…'."
    ),
    11226: (
        "This message could not be delivered because the message type is not part of the service contract. "
        "Message type name: '…'. Service contract name: '…'."
    ),
    11227: (
        "This message could not be delivered because the initiator service has sent a message with a message type "
        "that can only be sent by the target. Message type name: '…'. Service contract name: '…'."
    ),
    11228: (
        "This message could not be delivered because the target service has sent a message with a message type "
        "that can only be sent by the initiator. Message type name: '…'. Service contract name: '…'."
    ),
    11229: "This message could not be delivered because the security context could not be retrieved.",
    11230: "This message could not be delivered because the message could not be decrypted and validated.",
    11231: (
        "This message could not be delivered because the conversation endpoint is not secured, however the "
        "message is secured."
    ),
    11232: (
        "This message could not be delivered because the conversation endpoint is secured, however the message is "
        "not secured."
    ),
    11233: (
        "This message has been dropped because the session key of the conversation endpoint does not match that "
        "of the message."
    ),
    11282: (
        "This message has been dropped due to licensing restrictions. See the documentation for further details."
    ),
    28000: "The decrypted session key has an unexpected size.",
    28001: (
        "A corrupted message has been received. It contains invalid flags. This occurred in the message with "
        "Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    28002: "Cannot start service broker manager. Operating system error: ….",
    28003: "An internal service broker error occurred. Operating system error: ….",
    28004: "This message could not be delivered because the '…' action cannot be performed in the '…' state.",
    28005: "An exception occurred while enqueueing a message in the target queue. Error: …, State: …. …",
    28007: (
        "A corrupted message has been received. The highest seen message number must be greater than the "
        "acknowledged message number. This occurred in the message with Conversation ID '…', Initiator: …, and "
        "Message sequence number: …."
    ),
    28010: (
        "This message could not be delivered because it contains an invalid acknowledged message number. Highest "
        "expected message number: …. Acknowledged message number: …, fragment number: …."
    ),
    28011: "This message could not be delivered because its … has expired or is invalid.",
    28012: "The Service Broker in the target database is unavailable: '…'.",
    28013: "The service broker is administratively disabled.",
    28014: "The database is in read-only mode.",
    28015: "The database is in single-user mode.",
    28016: "The message has been dropped because the service broker in the target database is unavailable: '…'.",
    28017: "The message has been dropped because the target service broker is unreachable.",
    28018: "The database is a replica of a mirrored database.",
    28019: "System error … occurred while creating a new message element GUID for this forwarded message.",
    28020: "Could not create user token for user … in database ….",
    28021: "One or more messages could not be delivered to the local service targeted by this dialog.",
    28022: (
        "An error occurred while looking up the public key certificate associated with this SQL Server instance: "
        "The certificate is not yet valid."
    ),
    28023: (
        "An error occurred while looking up the public key certificate associated with this SQL Server instance: "
        "The certificate has expired."
    ),
    28024: (
        "The security certificate bound to database principal (Id: …) is not yet valid. Either wait for the "
        "certificate to become valid or install a certificate that is currently valid."
    ),
    28025: (
        "The security certificate bound to database principal (Id: …) has expired. Create or install a new "
        "certificate for the database principal."
    ),
    28026: "Connection handshake failed. Not enough memory available. State ….",
    28027: "Connection handshake failed. There is no compatible …. State ….",
    28028: (
        "Connection handshake failed. Could not send a handshake message because the connection was closed by "
        "peer. State …."
    ),
    28029: "Connection handshake failed. Unexpected event (…) for current context (…). State ….",
    28030: "Connection handshake failed. A call to the SQL Server Network Interface failed: (…) …. State ….",
    28031: "Connection handshake failed. An OS call failed: (…) …. State ….",
    28032: (
        "A previously existing connection with the same peer was detected during connection handshake. This "
        "connection lost the arbitration and it will be closed. All traffic will be redirected to the previously "
        "existing connection. This is an informational message only. No user action is required. State …."
    ),
    28033: (
        "A new connection was established with the same peer. This connection lost the arbitration and it will be "
        "closed. All traffic will be redirected to the newly opened connection. This is an informational message "
        "only. No user action is required. State …."
    ),
    28034: "Connection handshake failed. The login '…' does not have CONNECT permission on the endpoint. State ….",
    28035: (
        "Connection handshake failed. The certificate used by the peer is invalid due to the following reason: …. "
        "State …."
    ),
    28036: (
        "Connection handshake failed. The certificate used by this endpoint was not found: …. Use DBCC CHECKDB in "
        "master database to verify the metadata integrity of the endpoints. State …."
    ),
    28037: (
        "Connection handshake failed. Error … occurred while initializing the private key corresponding to the "
        "certificate. The SQL Server errorlog and the Windows event log may contain entries related to this "
        "error. State …."
    ),
    28038: "Connection handshake failed. The handshake verification failed. State ….",
    28039: (
        "Connection handshake failed. The receive SSPI packet is not of type of the negotiated package. State …."
    ),
    28040: "A corrupted message has been received. The adjacent error message header is invalid.",
    28041: "A corrupted message has been received. The encrypted payload offset is invalid (…).",
    28042: "A corrupted message has been received. The arbitration request header is invalid.",
    28043: "A corrupted message has been received. The arbitration response header is invalid.",
    28044: (
        "A corrupted message has been received. It is not encrypted and signed using the currently configured "
        "endpoint algorithm. This occurred in the message with Conversation ID '…', Initiator: …, and Message "
        "sequence number: …."
    ),
    28045: (
        "Connection handshake failed. The certificate used by the peer does not match the one in MASTER database "
        "with same issuer name and serial number. State …."
    ),
    28047: "Service Broker login attempt failed with error: '…'. …",
    28048: "Service Broker login attempt by user '…' failed with error: '…'. …",
    28049: "A corrupted message has been received. The proxy connect message header is invalid.",
    28050: (
        "The session keys for this conversation could not be created or accessed. The database master key is "
        "required for this operation."
    ),
    28051: (
        "Could not save a dialog session key. A master key is required in the database to save the session key."
    ),
    28052: "Cannot decrypt session key while regenerating master key with FORCE option.",
    28053: (
        "Service Broker could not upgrade conversation session keys in database '…' to encrypted format (Error: "
        "…). The Service Broker in this database was disabled. A master key is required to the database in order "
        "to enable the broker."
    ),
    28054: (
        "Service Broker needs to access the master key in the database '…'. Error code:…. The master key has to "
        "exist and the service master key encryption is required."
    ),
    28055: (
        "The certificate '…' is not valid for endpoint authentication. The certificate must have a private key "
        "encrypted with the database master key and current UTC date has to be between the certificate start date "
        "and the certificate expiration date."
    ),
    28056: (
        "This message could not be delivered because the user with ID … in database ID … does not have control "
        "permission on the service. Service name: '…'."
    ),
    28057: (
        "Service Broker in database '…' has a pending conversation upgrade operation. A database master key in "
        "the database is required for this operation to complete."
    ),
    28058: "Service Broker could not upgrade this conversation during a database upgrade operation.",
    28059: (
        "Connection handshake failed. The received premaster secret of size … does not have the expected size of "
        "…. State …."
    ),
    28061: (
        "A corrupted message has been received. The adjacent message integrity check signature could not be "
        "validated."
    ),
    28062: "A corrupted message has been received. The signed dialog message header is invalid.",
    28063: (
        "A corrupted message has been received. A required variable data field is not present: …. This occurred "
        "in the message with Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    28064: (
        "A corrupted message has been received. A string variable data field is not a valid UNICODE string: …. "
        "This occurred in the message with Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    28065: (
        "A corrupted message has been received. The unsigned dialog message header is invalid. This occurred in "
        "the message with Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    28066: (
        "A corrupted message has been received. The security dialog message header is invalid. This occurred in "
        "the message with Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    28067: (
        "A corrupted message has been received. The encrypted offset of the envelope does not match the payload "
        "encrypted offset. This occurred in the message with Conversation ID '…', Initiator: …, and Message "
        "sequence number: …."
    ),
    28068: (
        "A corrupted message has been received. The envelope payload is bigger than the message. This occurred in "
        "the message with Conversation ID '…', Initiator: …, and Message sequence number: …."
    ),
    28069: "Unexpected session key when encrypting a dialog message.",
    28070: "Connection handshake failed. The received SSPI message Confirm status is unexpected. State ….",
    28071: "… could not be forwarded …",
    28072: (
        "A serious error occurred in the Service Broker message transmitter (operation …): Error: …, State: …. "
        "Message transmission will resume in … seconds."
    ),
    28073: (
        "An out of memory condition has occurred in the Service Broker message transmitter (operation …). Message "
        "transmission will resume in … seconds."
    ),
    28074: (
        "Service Broker could not upgrade conversation with conversation_handle '…'. Use END CONVERSATION ... "
        "WITH CLEANUP to delete this conversation, then try again to enable the broker. Use ALTER DATABASE ... "
        "SET ERROR_BROKER to error all conversations in this database. Use ALTER DATABASE ... SET NEW_BROKER to "
        "delete all conversations in this database."
    ),
    28075: (
        "The broker in the sender's database is in single user mode. Messages cannot be delivered while in single "
        "user mode."
    ),
    28079: "Connection handshake failed. The received SSPI packet is not of the expected direction. State ….",
    28080: "Connection handshake failed. The … endpoint is not configured. State ….",
    28081: (
        "Connection handshake failed. An unexpected status … was returned when trying to send a handshake "
        "message. State …."
    ),
    28082: (
        "Connection handshake failed. An unexpected internal failure occurred when trying to marshal a message. "
        "State …."
    ),
    28090: (
        "An error occurred while deleting sent messages from the transmission queue, Error: …, State: …. Verify "
        "that no other operation is locking the transmission queue, and that the database is available."
    ),
    28098: (
        "A previously existing connection with the same peer was found after DNS lookup. This connection will be "
        "closed. All traffic will be redirected to the previously existing connection. This is an informational "
        "message only. No user action is required."
    ),
}
