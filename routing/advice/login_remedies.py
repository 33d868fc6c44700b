"""Remedies for connections that the other side refuses, by its error log and by CONNECT on its endpoint.

Each function is one case: None where it is not the one at hand, or where its views were not exported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from routing.advice import handshake_remedies, statements
from routing.advice.broker_copies import MASTER
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.send_remedies import EVERYBODY
from routing.advice.server_remedies import name_endpoint
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble, find_trouble
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.background import StatusText
from routing.cases.server_evidence import ServerEvidence
from routing.cases.server_facts import Grants
from routing.importing.catalog.conversation_rows import error_number
from routing.render.phrases import join_words, named, quote_log
from routing.rules import text

_LOGIN_ATTEMPTS, _OF_SSPI = (28047, 28048), 9649
_CONNECT_RISK = "The login can then connect to the endpoint."
_LOGON_FAILED = (
    *("8009030c", "80090303", "80090304", "8009030e", "80090311", "80090322", "80090350"),
    *("c000005e", "c000006d", "c000006e"),
)
_CERTIFICATES_INSTEAD = "Or let both endpoints use certificates, which need no domain."
_OF_POLICY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "80090331": (
        "Windows finds no algorithm that both servers allow, as when a policy of one forbids RC4 for Kerberos.",
        (
            "Compare the encryption types that both servers and their service accounts allow for Kerberos.",
            "Compare the TLS versions and cipher suites that Windows allows on both servers.",
        ),
    ),
    "80090346": (
        "Windows refuses the channel bindings of the connection: Extended Protection expects others on one side.",
        (
            "Compare Extended Protection of both instances in SQL Server Configuration Manager.",
            "Compare the policies of both servers on channel bindings and NTLM.",
            "Let the route lead directly to the server: a proxy between them breaks the bindings.",
        ),
    ),
}
"""The causes and actions for errors of Windows by which a policy of a server forbids a connection."""
_SHOWN_LOGINS = 5
_LOGIN = re.compile(r"login (?:attempt by user )?(['\"])([^'\"]*)\1", re.IGNORECASE)
_ANONYMOUS = "anonymous logon"


def find_refusal(status: ReportedStatus) -> Remedy | None:
    """Return the remedy for a connection from the error log of the other side."""
    reported = read_peer_log(status)
    if reported is None:
        return None
    remedy = _REFUSALS[reported.trouble](reported)
    log_line = quote_log(reported.instance, reported.case.status_text.text or "")
    if remedy is None:
        peer = named(status.instance)
        cause = f"{named(reported.instance)} refuses the connection of {peer}, and its error log says why."
        actions = (log_line, *STATUSES[reported.trouble].actions)
        return Remedy(RemedyPlace(reported.instance, MASTER), cause, actions, confidence=Confidence.LIKELY)
    return replace(remedy.with_confidence_at_most(Confidence.LIKELY), actions=(log_line, *remedy.actions))


def read_peer_log(status: ReportedStatus) -> ReportedStatus | None:
    """Return the status of a connection as the other side logs it, or None without such a line."""
    peer = status.find_peer()
    if peer is None or peer.name == status.instance:
        return None
    for line in status.server.log_lines(peer.name, "Service Broker"):
        trouble, logged = _unwrap(status, line)
        if trouble is not None:
            case = replace(status.case, instance=peer.name, status_text=logged)
            return replace(status, trouble=trouble, case=case, peer=status.instance, supposed=None)
    return None


def read_wrapped(status: ReportedStatus) -> Remedy | None:
    """Return the remedy for a login attempt that failed, by the error that its text names."""
    if status.case.status_text.number not in _LOGIN_ATTEMPTS:
        return None
    trouble, inner = _unwrap(status, status.case.status_text.text or "")
    if trouble is None:
        return None
    return _REFUSALS[trouble](replace(status, trouble=trouble, case=replace(status.case, status_text=inner)))


def _unwrap(status: ReportedStatus, line: str) -> tuple[StatusTrouble | None, StatusText]:
    """Return the refusal that a failed login attempt names, or None for the trouble, and its status."""
    _, _, inner = line.partition("failed with error: '")
    number = error_number(inner or line)
    trouble = None if number is None else find_trouble(number, line)
    wrapped = StatusText(status.case.status_text.observed_at, number, line)
    return (trouble if trouble in _REFUSALS else None), wrapped


def grant_connect(status: ReportedStatus) -> Remedy | None:
    """Advise GRANT CONNECT on the endpoint that refuses a login: that of the side which reports it.

    A login of the machine of that side is refused by the other side, and so is one that only the exported grants
    of the other side lack. A login that has the permission in the export gets no second grant.
    """
    login, instance = _find_login(status), status.instance
    if login is not None and _is_refused_there(status, login):
        peer = status.find_peer()
        if peer is None:
            return None
        instance = peer.name
    if is_anonymous(login):
        return unite_accounts(status.server, instance, status.find_peer_name())
    grants = status.server.connect_grants(instance)
    place, at = RemedyPlace(instance, MASTER), f"the endpoint of {named(instance)}"
    subject = "The login of the other side" if login is None else f"Login {named(login)}"
    pasted_login = "[<login>]" if login is None else statements.identifier(login)
    pasted = name_endpoint(status.server, instance)
    line = None if pasted_login is None else f"GRANT CONNECT ON ENDPOINT::{pasted} TO {pasted_login};"
    build = to_fill_in if login is None or "<" in pasted else ready
    granted, all_denied = grants or Grants()
    denied = [name for name in all_denied if name in (login, EVERYBODY)]
    if denied:
        cause = f"CONNECT on {at} is denied to {join_words(map(named, denied))}, and a denial beats every grant."
        revoked = statements.identifier(denied[0])
        lines = (None if revoked is None else f"REVOKE CONNECT ON ENDPOINT::{pasted} FROM {revoked};", line)
        return build(place, cause, ("Take the denial back, and grant CONNECT to the login.",), *lines)
    if login in granted or (login is not None and EVERYBODY in granted):
        cause = f"{subject} has CONNECT on {at} by this export: the cause is another one."
        actions = (
            "If somebody granted it after the message failed, wait: SQL Server tries again by itself.",
            "Otherwise check that the login is not disabled, and that none of its groups is denied CONNECT.",
            f"Compare the login with the one that the error log of {named(instance)} names.",
        )
        return Remedy(place, cause, actions, confidence=Confidence.LIKELY)
    grantees = join_words(map(named, granted), _SHOWN_LOGINS) if granted else "no login"
    by_export = "" if grants is None else f" By this export {grantees} has it."
    cause = f"{subject} has no CONNECT permission on {at}.{by_export}"
    is_sure = grants is not None and status.server.was_exported("server_permissions", status.instance)
    confidence = Confidence.CERTAIN if is_sure else Confidence.LIKELY
    return build(place, cause, ("Grant it CONNECT.",), line, risk=risk_of_connect(login), confidence=confidence)


def risk_of_connect(login: str | None) -> str:
    """Return the risk of a login's CONNECT on an endpoint."""
    return "Every login can then connect to the endpoint." if login == EVERYBODY else _CONNECT_RISK


def open_endpoint(status: ReportedStatus) -> Remedy | None:
    """Advise GRANT CONNECT if no login may connect to the endpoint of the other side."""
    peer = status.find_peer()
    endpoint = None if peer is None else status.server.endpoint(peer.name)
    if peer is None or endpoint is None or endpoint.name is None:
        return None
    grants = status.server.connect_grants(peer.name)
    if grants is None or grants.granted:
        return None
    cause = (
        f"No login has CONNECT on the endpoint of {named(peer.name)}: only its owner and members of sysadmin can"
        " connect to it."
    )
    credential = "Windows account" if endpoint.authentication not in (None, "CERTIFICATE") else "certificate"
    action = f"Grant CONNECT to the login of the {credential} that {named(status.instance)} connects with."
    line = f"GRANT CONNECT ON ENDPOINT::{name_endpoint(status.server, peer.name)} TO [<login>];"
    return to_fill_in(
        RemedyPlace(peer.name, MASTER), cause, (action,), line, risk=_CONNECT_RISK, confidence=Confidence.LIKELY
    )


def list_logins(status: ReportedStatus) -> str | None:
    """Return a sentence on the logins that may connect to the endpoint of the other side, or None."""
    peer = status.find_peer_name()
    if peer is None or status.server.endpoint(peer) is None:
        return None
    granted, _ = status.server.connect_grants(peer) or Grants()
    if not granted:
        return None
    which = join_words(map(named, granted), _SHOWN_LOGINS)
    return f"CONNECT on the endpoint of {named(peer)} is granted to {which}: compare the login."


def explain_logon(status: ReportedStatus) -> Remedy | None:
    """Advise on Windows authentication that the domain or a policy refuses."""
    words, endpoint = (status.case.status_text.text or "").lower(), status.server.endpoint(status.instance)
    by_windows = endpoint is None or endpoint.authentication != "CERTIFICATE"
    for code, (cause, actions) in _OF_POLICY.items():
        if code in words:
            actions += (_CERTIFICATES_INSTEAD,) if by_windows else ()
            return Remedy(RemedyPlace(status.instance), cause, actions, confidence=Confidence.LIKELY)
    is_of_windows = status.case.status_text.number == _OF_SSPI and by_windows
    if not is_of_windows and not any(code in words for code in _LOGON_FAILED):
        return None
    return unite_accounts(status.server, status.instance, status.find_peer_name())


def is_anonymous(login: str | None) -> bool:
    """Return True if Windows could not prove the account of a connection, and logged it in as anonymous."""
    return login is not None and text.fold(login.rpartition("\\")[2]) == _ANONYMOUS


def unite_accounts(server: ServerEvidence, instance: str, peer: str | None) -> Remedy:
    """Advise accounts or certificates with which two instances can authenticate each other."""
    other = "the other side" if peer is None else named(peer)
    cause = f"Windows refuses the account with which {named(instance)} and {other} connect to each other."
    actions = (
        "Do not grant CONNECT to ANONYMOUS LOGON: then anybody could connect.",
        "Run both services under domain accounts of one domain, or of domains that trust each other.",
        r"A service that runs as LocalSystem or NETWORK SERVICE connects as DOMAIN\MACHINE$: create this login.",
        "Grant the login of each side CONNECT on the endpoint of the other.",
        "Kerberos also needs an SPN for each account, MSSQLSvc/HOST:PORT with the endpoint's port (setspn -L).",
        _CERTIFICATES_INSTEAD,
    )
    line = f"GRANT CONNECT ON ENDPOINT::{name_endpoint(server, instance)} TO [<login>];"
    place = RemedyPlace(instance, MASTER)
    return to_fill_in(place, cause, actions, "CREATE LOGIN [<login>] FROM WINDOWS;", line, risk=_CONNECT_RISK)


def _is_refused_there(status: ReportedStatus, login: str) -> bool:
    """Return True if the other side of the connection refuses a login, by its name or by the exported grants."""
    account = text.fold(login.rpartition("\\")[2])
    if account == f"{text.machine_of(status.instance)}$":
        return True
    peer = status.find_peer()
    # The error log of an instance is about its own endpoint.
    if peer is None or status.peer is not None:
        return False
    return _lacks_connect(status, peer.name, login) and not _lacks_connect(status, status.instance, login)


def _lacks_connect(status: ReportedStatus, instance: str, login: str) -> bool:
    """Return True if the grants on the endpoint of an instance were exported and a login has none."""
    grants = status.server.connect_grants(instance)
    if grants is None:
        return False
    names = {login, EVERYBODY}
    return not names.isdisjoint(grants.denied) or names.isdisjoint(grants.granted)


def _find_login(status: ReportedStatus) -> str | None:
    logins = _LOGIN.findall(status.case.status_text.text or "")
    if logins:
        return logins[-1][1].rstrip(".") or None
    with_domain = [name for name in status.quoted_names if "\\" in name]
    return with_domain[0] if with_domain else None


def _renew_certificate(status: ReportedStatus) -> Remedy | None:
    return handshake_remedies.renew_peer_certificate(status) or handshake_remedies.renew_own_certificate(status)


_REFUSALS: Mapping[StatusTrouble, Callable[[ReportedStatus], Remedy | None]] = {
    StatusTrouble.NO_CONNECT: grant_connect,
    StatusTrouble.NO_ENDPOINT_CERTIFICATE: handshake_remedies.install_certificate,
    StatusTrouble.CERTIFICATE_EXPIRED: _renew_certificate,
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: _renew_certificate,
    StatusTrouble.HANDSHAKE_FAILED: explain_logon,
}
"""What the error log of the other side may say of a connection, with its remedies."""
