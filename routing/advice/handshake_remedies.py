"""Remedies for two endpoints that do not agree: on encryption, on authentication, or on a certificate.

Each function is one case: None where it is not the one at hand, or where its views were not exported.
"""

from __future__ import annotations

from collections.abc import Mapping

from routing.advice import statements
from routing.advice.broker_copies import MASTER
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, to_fill_in
from routing.advice.server_remedies import alter_endpoint, name_endpoint
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import join_words, named

_PEER_CERTIFICATE, _PRIVATE_KEY = 28035, 28037
_OWN_CERTIFICATE = (9762, 9763, 9764, 9765, 28022, 28023, 28036, 28055)
_REPORTED: Mapping[StatusTrouble | None, str] = {
    StatusTrouble.CERTIFICATE_EXPIRED: "has expired",
    StatusTrouble.CERTIFICATE_NOT_YET_VALID: "is not valid yet",
}
ALGORITHM = "encryption algorithm"
"""The words of an error about encryption, in lower case."""
AGREE_ON_AES = ("Let both endpoints use AES: run ALTER ENDPOINT on each that does not.", "RC4 is no longer safe.")
"""The actions for endpoints without a common algorithm."""
_ALGORITHM_RISK = "The endpoint closes its connections. A partner that only takes RC4 cannot connect afterwards."


def agree_on_encryption(status: ReportedStatus) -> Remedy | None:
    """Return ALTER ENDPOINT for two endpoints without a common encryption algorithm."""
    names = [name for name in (status.instance, status.find_peer_name()) if name is not None]
    endpoints = {name: status.server.endpoint(name) for name in names}
    used = {name: endpoint.algorithms for name, endpoint in endpoints.items() if endpoint and endpoint.algorithms}
    is_common = len(used) == 2 and bool(frozenset.intersection(*used.values()))
    if is_common or (len(used) < 2 and ALGORITHM not in (status.case.status_text.text or "").lower()):
        return None
    shown = [f"{named(name)} uses {', '.join(sorted(algorithms))}" for name, algorithms in used.items()]
    algorithms_text = f": {join_words(shown)}" if shown else ""
    old = [name for name, algorithms in used.items() if "AES" not in algorithms]
    return alter_endpoint(
        status.server,
        old[0] if old else status.instance,
        "FOR SERVICE_BROKER (ENCRYPTION = REQUIRED ALGORITHM AES)",
        f"The two endpoints have no encryption algorithm in common{algorithms_text}.",
        AGREE_ON_AES,
        risk=_ALGORITHM_RISK,
        confidence=Confidence.CERTAIN if len(used) == 2 else Confidence.LIKELY,
    )


def install_certificate(status: ReportedStatus) -> Remedy | None:
    """Advise to install the peer's certificate, and leave this side's endpoint unchanged."""
    words = (status.case.status_text.text or "").lower()
    is_missing = "not found" in words or status.case.status_text.number == 28045
    if status.case.status_text.number not in (28035, 28045) or not is_missing:
        return None
    return _install(status.server, status.instance, status.find_peer_name())


def _install(server: ServerEvidence, place: str, holder: str | None) -> Remedy:
    """Advise to create the certificate of the endpoint of ``holder`` in master of ``place``."""
    peer = "the other side" if holder is None else named(holder)
    peer_certificate = None if holder is None else server.endpoint_certificate(holder)
    certificate = (
        None if peer_certificate is None else statements.identifier(peer_certificate.name)
    ) or "[<certificate>]"
    endpoint = name_endpoint(server, place)
    cause = f"{named(place)} does not know the certificate that the endpoint of {peer} uses."
    actions = (
        (
            f"On {peer}, write the public certificate of its endpoint to a file: BACKUP CERTIFICATE {certificate}"
            " TO FILE."
        ),
        f"Copy the file, and create the certificate in master of {named(place)} for a separate user.",
        "Leave the endpoints and their own certificates unchanged.",
    )
    return to_fill_in(
        RemedyPlace(place, MASTER),
        cause,
        actions,
        "CREATE LOGIN [<login>] WITH PASSWORD = N'<password>';",
        "CREATE USER [<user>] FOR LOGIN [<login>];",
        f"CREATE CERTIFICATE {certificate} AUTHORIZATION [<user>] FROM FILE = N'<file>';",
        f"GRANT CONNECT ON ENDPOINT::{endpoint} TO [<login>];",
        risk="The holder of that private key can then connect to the endpoint.",
        confidence=Confidence.LIKELY,
    )


def agree_on_authentication(status: ReportedStatus) -> Remedy | None:
    """Return the remedy for two exported endpoints without a common kind of authentication."""
    peer = status.find_peer_name()
    endpoints = [status.server.endpoint(name) for name in (status.instance, peer) if name is not None]
    used = [endpoint.authentication for endpoint in endpoints if endpoint is not None and endpoint.authentication]
    if len(used) < 2 or _kinds(used[0]) & _kinds(used[1]):
        return None
    cause = (
        f"The two endpoints have no kind of authentication in common: {named(status.instance)} uses {used[0]} and"
        f" {named(peer)} uses {used[1]}."
    )
    actions = (
        "Give both the same kind: certificates, or Windows accounts of domains that trust each other.",
        "Each side then needs the other's certificate or account, with CONNECT permission on its endpoint.",
    )
    option = "FOR SERVICE_BROKER (AUTHENTICATION = <kind>)"
    return alter_endpoint(status.server, status.instance, option, cause, actions)


def _kinds(authentication: str) -> set[str]:
    """Return the authentication kinds of an endpoint. NEGOTIATE means both kinds of Windows authentication."""
    kinds = set(authentication.upper().replace(",", " ").split())
    return kinds | {"NTLM", "KERBEROS"} if "NEGOTIATE" in kinds else kinds


def renew_peer_certificate(status: ReportedStatus) -> Remedy | None:
    """Advise to renew an invalid certificate of the other side, and leave this side's unchanged."""
    peer = status.find_peer()
    if status.case.status_text.number != _PEER_CERTIFICATE or peer is None:
        return None
    return _renew(status.server, peer.name, status.instance, status.trouble)


def renew_own_certificate(status: ReportedStatus) -> Remedy | None:
    """Advise to renew the certificate of the endpoint that reports it as invalid."""
    if status.case.status_text.number not in _OWN_CERTIFICATE:
        return None
    restored = _restore_private_key(status.server, status.instance)
    return restored or _renew(status.server, status.instance, status.find_peer_name(), status.trouble)


def _restore_private_key(server: ServerEvidence, instance: str) -> Remedy | None:
    certificate = server.endpoint_certificate(instance)
    if certificate is None or (certificate.has_private_key is not False and not certificate.has_password):
        return None
    name = statements.identifier(certificate.name) or "[<certificate>]"
    if certificate.has_password:
        cause = (
            f"The private key of certificate {named(certificate.name)} of the endpoint of {named(instance)} is"
            " encrypted by a password: an endpoint needs one that is encrypted by the master key."
        )
        line = f"ALTER CERTIFICATE {name} WITH PRIVATE KEY (DECRYPTION BY PASSWORD = N'<password>');"
        action = "Encrypt the key by the master key of master instead."
        return to_fill_in(RemedyPlace(instance, MASTER), cause, (action,), line, confidence=Confidence.LIKELY)
    cause = (
        f"Certificate {named(certificate.name)} of the endpoint of {named(instance)} has no private key: it"
        " was created from the public file alone."
    )
    actions = (
        "Give it the private key from its backup: the partners keep their copies.",
        "Without a backup, create another certificate for the endpoint, and give its public part to the partners.",
    )
    line = f"ALTER CERTIFICATE {name} WITH PRIVATE KEY (FILE = N'<file>', DECRYPTION BY PASSWORD = N'<password>');"
    return to_fill_in(RemedyPlace(instance, MASTER), cause, actions, line, confidence=Confidence.LIKELY)


def open_private_key(status: ReportedStatus) -> Remedy | None:
    """Advise on the master key of master, by which SQL Server opens the private key of an endpoint."""
    if status.case.status_text.number != _PRIVATE_KEY:
        return None
    restored = _restore_private_key(status.server, status.instance)
    if restored is not None:
        return restored
    cause = (
        f"{named(status.instance)} cannot open the private key of its endpoint's certificate: the key is missing,"
        " or the service master key does not open the master key of master, as after a restore."
    )
    actions = (
        "Open the master key of master, and encrypt it by the service master key.",
        "If the certificate has no private key here, create it again FROM FILE WITH PRIVATE KEY.",
    )
    lines = (
        "SELECT name, pvt_key_encryption_type_desc FROM sys.certificates;",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = N'<password>';",
        "ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY;",
    )
    place = RemedyPlace(status.instance, MASTER)
    return to_fill_in(place, cause, actions, *lines, confidence=Confidence.LIKELY)


def compare_certificates(server: ServerEvidence, sender: str, peer: str | None) -> Remedy | None:
    """Advise on the exported certificates of two endpoints: one is not valid, or the other side lacks it."""
    pairs = [(sender, peer), *([] if peer is None else [(peer, sender)])]
    used = [(holder, partner, server.endpoint_certificate(holder)) for holder, partner in pairs]
    for holder, partner, certificate in used:
        now = server.exported_at(holder)
        if certificate is None or now is None:
            continue
        restored = _restore_private_key(server, holder)
        if restored is not None:
            return restored
        if certificate.has_expired(now) or certificate.is_early(now):
            return _renew(server, holder, partner)
    for holder, partner, certificate in used:
        endpoint = server.endpoint(holder)
        if partner is None or certificate is None or certificate.subject is None or endpoint is None:
            continue
        if endpoint.authentication != "CERTIFICATE":
            continue
        is_known = any(copy.is_copy_of(certificate) for copy in server.certificates(partner, MASTER))
        if server.was_exported("certificates", partner, MASTER) and not is_known:
            return _install(server, partner, holder)
    return None


def _renew(
    server: ServerEvidence, holder: str, partner: str | None, trouble: StatusTrouble | None = None
) -> Remedy:
    """Advise another certificate for the endpoint of ``holder``. Its partner gets the public part.

    ``trouble`` is that of the status, which counts if the certificate was not exported.
    """
    certificate, now = server.endpoint_certificate(holder), server.exported_at(holder)
    is_early = trouble is StatusTrouble.CERTIFICATE_NOT_YET_VALID
    if certificate is not None:
        is_early = now is not None and certificate.is_early(now)
    dates = None if certificate is None else certificate.starts if is_early else certificate.expires
    until = "" if dates is None else f", valid {'from' if is_early else 'until'} {dates}"
    shown = "The certificate" if certificate is None else f"Certificate {named(certificate.name)}{until},"
    is_known = certificate is not None and now is not None and (is_early or certificate.has_expired(now))
    problem = "is not valid now" if is_known else _REPORTED.get(trouble, "is missing or not valid now")
    cause = f"{shown} of the endpoint of {named(holder)} {problem}."
    other = "the other side" if partner is None else named(partner)
    actions = [f"On {named(holder)} create a certificate that is valid, and give it to the endpoint."]
    if is_early:
        actions = [
            f"Compare the clock of {named(holder)} with UTC: SQL Server takes START_DATE as UTC.",
            "Wait until the certificate is valid, or create one that is valid now.",
        ]
    actions += [
        f"Write its public part to a file, and create it in master of {other} for the same user.",
        f"Leave the endpoint of {other} unchanged.",
    ]
    return to_fill_in(
        RemedyPlace(holder, MASTER),
        cause,
        actions,
        "CREATE CERTIFICATE [<certificate>] WITH SUBJECT = N'<subject>', EXPIRY_DATE = N'<date>';",
        "BACKUP CERTIFICATE [<certificate>] TO FILE = N'<file>';",
        f"ALTER ENDPOINT {name_endpoint(server, holder)}"
        " FOR SERVICE_BROKER (AUTHENTICATION = CERTIFICATE [<certificate>]);",
        risk="Partners that do not have the certificate yet cannot connect until they have it.",
        confidence=Confidence.LIKELY,
    )
