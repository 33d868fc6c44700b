"""sys.transmission_queue.transmission_status → SQL Server's error number, and whether routing delays it.

Texts are those of sys.messages in English; what stands for a value there is left out here.
"""

from __future__ import annotations

import re

from routing.terms import Outcome

_TEXTS = {
    9666: "transport is disabled or not configured",
    9719: "the database for this conversation endpoint is attached or restored",
    9720: "the database for the remote conversation endpoint is attached or restored",
    9748: "protocol transport is not available",
    9749: "target queue is busy",
    9750: "no route matches the destination service name for this conversation",
    9753: "the target service broker is unreachable",
    9754: "connection attempt failed with error",
    9755: "an error occurred while receiving data",
    9757: "network protocol error occurred",
    9758: "login protocol negotiation error occurred",
    9759: "an error occurred while sending data",
    9761: "the broker configuration conversation on dialog handle",
    9770: "locating routes and security information via the broker configuration service",
    9772: "cannot be enabled because there is already an enabled service broker with the same id",
    9773: "is disabled because there is already an enabled service broker with the same id",
    9776: "cannot enable the service broker in database",
    9777: "will be disabled because the service broker guid in the database",
    9779: "service broker received an end conversation message on this conversation",
    9783: "dns lookup failed with error",
    9784: "service broker received an error message on this conversation",
    9785: "invalid address specified",
    9787: "an error occurred while processing broker mirroring routes",
    9789: "the broker is disabled in msdb",
    9790: "the system database msdb containing routing information is in single user mode",
    9788: "the system database msdb containing routing information is not available",
    9791: "the broker is disabled in the sender's database",
    9792: "forwarding is disabled in this sql server instance",
    9793: "the target service name could not be found",
    9794: "the broker mirroring manager has not fully initialized",
    9795: "could not find the target broker in the local sql server instance",
    9796: "the target service name matched a local route, but there is no service by that name",
    9797: "classification has been delayed because the routing information is currently being updated",
    9798: "could not be classified",
    28016: "has been dropped because the service broker in the target database is unavailable",
    28017: "has been dropped because the target service broker is unreachable",
    28012: "the service broker in the target database is unavailable",
    28013: "the service broker is administratively disabled",
    28014: "the database is in read-only mode",
    28015: "the database is in single-user mode",
    28018: "the database is a replica of a mirrored database",
    28021: "could not be delivered to the local service targeted by this dialog",
    28071: "could not be forwarded",
}
_OTHERS = {9723, 9751, 9752, 9756}
_KNOWN = _TEXTS.keys() | _OTHERS
# Routing itself makes these wait; all others say what became of a message after it was routed.
_DELAYED = {9750, 9761, 9770, 9787, 9788, 9789, 9790, 9791, 9792, 9793, 9794, 9795, 9796, 9797, 9798}
_STANDING_ALONE = re.compile(r"(?<![\w:.\-('\"])\d{4,5}(?![\w\-(]|\.\d)")
_AFTER_ERROR = re.compile(r"\b(?:error|msg)\b(?: number)?[: ]+(\d{3,5})\b(?!\()", re.IGNORECASE)


def error_number(status: str) -> int | None:
    """The number that the text names, else the one of the text itself; None where neither is known."""
    for match in _STANDING_ALONE.finditer(status):
        if int(match.group(0)) in _KNOWN:
            return int(match.group(0))
    words = " ".join(status.lower().split())
    for number, text in _TEXTS.items():
        if text in words:
            return number
    named = _AFTER_ERROR.search(status)
    return int(named.group(1)) if named else None


def outcome(number: int | None) -> str | None:
    """DELAYED where routing itself makes the message wait; None where its outcome cannot be known."""
    return str(Outcome.DELAYED) if number in _DELAYED else None
