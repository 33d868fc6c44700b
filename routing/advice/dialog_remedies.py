"""Remedies for the security of dialogs: certificates of users, and remote service bindings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routing.advice import statements
from routing.advice.database_remedies import own_database
from routing.advice.remedy import Confidence, Remedy, to_fill_in
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.cases.server_facts import CertificateFacts
from routing.render.phrases import join_words, named
from routing.rules.text import collated

LIST_CERTIFICATES = "SELECT name, start_date, expiry_date, pvt_key_encryption_type_desc FROM sys.certificates;"
_LIST_USERS = (
    "SELECT name, USER_NAME(principal_id), pvt_key_encryption_type_desc, is_active_for_begin_dialog"
    " FROM sys.certificates;"
)
_CREATE = (
    "CREATE CERTIFICATE [<certificate>] AUTHORIZATION {} WITH SUBJECT = N'<subject>',"
    " START_DATE = N'<date>', EXPIRY_DATE = N'<date>';"
)
_INSTALL = "CREATE CERTIFICATE [<certificate>] AUTHORIZATION {} FROM FILE = N'<file of the other side>';"
_RENEW_THERE = (
    "It is the public part of the other side's certificate: create another one there, and install its public part"
    " here for the same user."
)
_PRINCIPAL = re.compile(r"\(I[Dd]:? *(\d+)\)", re.ASCII)
_OTHER_KEY, _OTHER_LENGTH = (11230,), (9734, 9735)
_DBO, _DROPPED_USER = 1, (9728, 9730, 9768)
_ALTERED: Mapping[int, tuple[str, str, str]] = {
    9733: (
        "has no private key",
        "Add its private key from a backup, or create another certificate for the user.",
        "PRIVATE KEY (FILE = N'<file>', DECRYPTION BY PASSWORD = N'<password>')",
    ),
    9737: (
        "has a private key that is encrypted by a password",
        "Encrypt the key by the database master key instead.",
        "PRIVATE KEY (DECRYPTION BY PASSWORD = N'<password>')",
    ),
    9767: (
        "is disabled for BEGIN DIALOG",
        "Enable it, or create another certificate for the user.",
        "ACTIVE FOR BEGIN_DIALOG = ON",
    ),
}
"""The fault of the certificate of a dialog's user by number, the action, and the option of ALTER CERTIFICATE."""
_NOT_ON_MANAGED = (
    "A dialog with encryption needs a remote service binding, which a Managed Instance does not support."
)
_PEOPLE = ("dbo", None)
_OWNER_RISK = "The holder of that private key can then act as this user."


def renew_dialog_certificate(status: ReportedStatus) -> Remedy:
    """Advise on the certificates of a dialog's users, by those in the export."""
    by_number = _create_user(status) or _compare_keys(status) or _alter(status)
    exported = by_number or _name_invalid(status) or _give_to_user(status)
    if exported is not None:
        return exported
    number, lines = _find_principal(status), [LIST_CERTIFICATES]
    if number is not None:
        lines.append(f"SELECT USER_NAME({number});")
    return _of_database(status, *lines, *(line.format("[<user>]") for line in (_CREATE, _INSTALL)))


def _alter(status: ReportedStatus) -> Remedy | None:
    """Advise ALTER CERTIFICATE if dialogs cannot use the certificate of the user."""
    number = status.case.status_text.number
    if number is None or number not in _ALTERED:
        return None
    fault, action, option = _ALTERED[number]
    principal = _find_principal(status)
    names = [one.name for one in _certificates(status) if principal is not None and one.principal_id == principal]
    name = statements.identifier(names[0]) if len(names) == 1 else "[<certificate>]"
    line = None if name is None else f"ALTER CERTIFICATE {name} WITH {option};"
    which = f"Certificate {named(names[0])}" if len(names) == 1 else "The certificate"
    cause = f"{which} of the dialog's user {fault}."
    return to_fill_in(status.place, cause, (action,), _LIST_USERS, line, confidence=Confidence.LIKELY)


def _create_user(status: ReportedStatus) -> Remedy | None:
    """Advise how to create a dropped user of a dialog again, with its certificate and binding."""
    if status.numbers.isdisjoint(_DROPPED_USER):
        return None
    if _find_principal(status) == _DBO:
        # Nobody can drop dbo: its login is the owner of the database.
        return own_database(status.server, status.place)
    cause = (
        f"The user of the dialogs to {named(status.service)} was dropped in {named(status.database)} after they"
        " began, or lost its login."
    )
    actions = (
        "Create the user again, with the certificate of the other side, and bind it to the service.",
        "If the binding still exists, run ALTER REMOTE SERVICE BINDING instead.",
        "If old dialogs keep the status, send their messages again in new ones, and end the old ones.",
    )
    create = "CREATE USER [<user>] WITHOUT LOGIN;"
    lines = create, _INSTALL.format("[<user>]"), _bind(status, "[<user>]")
    return to_fill_in(status.place, cause, actions, *lines, confidence=Confidence.LIKELY)


def _compare_keys(status: ReportedStatus) -> Remedy | None:
    """Advise other certificates if two do not belong together, or if their keys have a wrong length."""
    if not status.numbers.isdisjoint(_OTHER_KEY):
        cause = "The two sides of the dialog do not have the same certificates: one may have been created again."
        actions = (
            "Compare the thumbprints on both sides: each public part belongs to a private key of the other side.",
            "Install the public part again, where it differs, and send the messages again in new dialogs.",
        )
        look = "SELECT name, thumbprint, pvt_key_encryption_type_desc FROM sys.certificates;"
        return to_fill_in(status.place, cause, actions, look, _INSTALL.format("[<user>]"))
    if status.numbers.isdisjoint(_OTHER_LENGTH):
        return None
    cause = "The key of the certificate of the dialog's user has a length that Windows cannot use."
    actions = (
        "Create a certificate with another key, such as one of 2048 bits, on the side that owns it.",
        "Then give its public part to the other side.",
    )
    return to_fill_in(status.place, cause, actions, LIST_CERTIFICATES, _CREATE.format("[<user>]"))


def _bind(status: ReportedStatus, user: str | None) -> str | None:
    """Return CREATE REMOTE SERVICE BINDING, or None if a name cannot be pasted."""
    service = statements.literal(status.service)
    if service is None or user is None:
        return None
    return f"CREATE REMOTE SERVICE BINDING [<binding>] TO SERVICE {service} WITH USER = {user};"


def bind_user(status: ReportedStatus) -> Remedy:
    """Return the remote service binding that a dialog with encryption needs."""
    if status.server.is_managed(status.instance):
        return Remedy(status.place, _NOT_ON_MANAGED, ("Begin the dialog with ENCRYPTION = OFF.",))
    other = _correct_binding(status)
    if other is not None:
        return other
    users = {certificate.user_name for certificate in _copies(status) if certificate.user_name not in _PEOPLE}
    user = statements.identifier(users.pop()) if len(users) == 1 else "[<user>]"
    return _of_database(status, _bind(status, user))


def _correct_binding(status: ReportedStatus) -> Remedy | None:
    """Advise another binding if the only one has the service's name in another spelling."""
    bindings = status.server.bindings(status.instance, status.database)
    near = [row for row in bindings if collated(row["remote_service_name"]) == collated(status.service)]
    if len(near) != 1 or near[0]["remote_service_name"] == status.service:
        return None
    binding, user = near[0], near[0]["user_name"]
    cause = (
        f"Binding {named(binding['name'])} is for {named(binding['remote_service_name'])}, but the messages are"
        f" for {named(status.service)}: names are compared exactly."
    )
    line = _bind(status, "[<user>]" if user is None else statements.identifier(user))
    action = "Create a binding with the service's own spelling."
    return to_fill_in(status.place, cause, (action,), line, confidence=Confidence.LIKELY)


def _of_database(status: ReportedStatus, *lines: str | None) -> Remedy:
    entry = status.entry
    return to_fill_in(status.place, entry.cause, entry.actions, *lines, risk=entry.risk)


def _find_principal(status: ReportedStatus) -> int | None:
    number = _PRINCIPAL.search(status.case.status_text.text or "")
    return None if number is None else int(number[1])


def _certificates(status: ReportedStatus) -> Sequence[CertificateFacts]:
    return status.server.certificates(status.instance, status.database)


def _copies(status: ReportedStatus) -> list[CertificateFacts]:
    """Return the certificates of the sending database without a private key: those of other sides."""
    return [certificate for certificate in _certificates(status) if certificate.has_private_key is False]


def _name_invalid(status: ReportedStatus) -> Remedy | None:
    """Return the remedy for certificates of the dialog's user that have expired or are not yet valid."""
    now, principal = status.server.exported_at(status.instance), _find_principal(status)
    invalid = [
        certificate
        for certificate in _certificates(status)
        if principal in (None, certificate.principal_id)
        and now is not None
        and (certificate.has_expired(now) or certificate.is_early(now))
    ]
    if not invalid or status.trouble is StatusTrouble.NO_DIALOG_CERTIFICATE:
        return None
    names = (
        f"{named(certificate.name)} (from {certificate.starts} to {certificate.expires})"
        for certificate in invalid
    )
    users = {certificate.user_name for certificate in invalid}
    user = (statements.identifier(next(iter(users))) if len(users) == 1 else None) or "[<user>]"
    entry = status.entry
    cause = f"{entry.cause} By this export: {join_words(names)}."
    is_theirs = all(certificate.has_private_key is False for certificate in invalid)
    actions = (_RENEW_THERE,) if is_theirs else entry.actions
    lines = (LIST_CERTIFICATES, (_INSTALL if is_theirs else _CREATE).format(user))
    return to_fill_in(status.place, cause, actions, *lines, risk=entry.risk, confidence=Confidence.LIKELY)


def _give_to_user(status: ReportedStatus) -> Remedy | None:
    """Advise ALTER AUTHORIZATION for a certificate that belongs to the owner of the database, not to the user."""
    user = status.server.bound_user(status.instance, status.database, status.service)
    if status.trouble is not StatusTrouble.NO_DIALOG_CERTIFICATE or user is None:
        return None
    if any(certificate.user_name == user for certificate in _certificates(status)):
        return None
    owned = [
        certificate
        for certificate in _copies(status)
        if certificate.user_name == "dbo" or certificate.principal_id == _DBO
    ]
    pasted = statements.identifier(user)
    if not owned:
        return None
    cause = (
        f"User {named(user)}, to which the binding of {named(status.service)} leads, owns no certificate in"
        f" {named(status.database)}:"
        f" {join_words(named(certificate.name) for certificate in owned)} belongs to dbo."
    )
    actions = ("Give the certificate of the other side to the user.",)
    name = statements.identifier(owned[0].name) if len(owned) == 1 else "[<certificate>]"
    line = None if pasted is None or name is None else f"ALTER AUTHORIZATION ON CERTIFICATE::{name} TO {pasted};"
    return to_fill_in(status.place, cause, actions, line, risk=_OWNER_RISK, confidence=Confidence.LIKELY)
