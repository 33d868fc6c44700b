"""Advise on the permissions that a sender needs in the target's database."""

from __future__ import annotations

import re
from collections.abc import Sequence

from routing.advice import statements
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.status_facts import ReportedStatus, find_quoted
from routing.cases.server_evidence import ServerEvidence
from routing.cases.server_facts import Grants
from routing.render.phrases import join_words, named
from routing.rules.text import collated

EVERYBODY = "public"
"""The role that sends for dialogs without a user."""
DENIED = re.compile(
    r"The (?P<permission>[A-Z]+) permission was denied on the object '(?P<name>[^']+)',"
    r" database '(?P<database>[^']+)', schema '(?P<schema>[^']+)'"
)
"""The text of error 229."""
# The words are the same in every language.
_PERMISSION = re.compile(r"\b(SEND|RECEIVE|EXECUTE|SELECT|INSERT|UPDATE|DELETE|REFERENCES|CONTROL)\b", re.ASCII)
_SEND_RISK = "A grant to public lets every sender that can connect send to the service."
_OWNER, _OWNERS = "dbo", "db_owner"
_ROLES_UNKNOWN = "Which roles it has is not known: export sys.database_role_members, by sbroute import queries."
_ON_OBJECT, _NO_SEND, _NO_CONTROL, _NOBODY = 229, 11215, 28056, "0"
_CONTROL_RISK = "The user can then alter and drop the service too."
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])", re.ASCII)
_GRANT_THERE = "Grant it to that user, in the database of the object."
_FOR_PUBLIC = (
    "Grant SEND on the service to public in the target's database, if anybody who can connect may send.",
    "Or bind a user with a certificate to the service, and grant SEND to that user.",
)


def grant_missing_send(
    server: ServerEvidence,
    sender: RemedyPlace,
    target: RemedyPlace,
    service: str,
    from_service: str | None,
    *,
    is_reported: bool = False,
) -> Remedy | None:
    """Advise GRANT SEND if dialogs of another instance have no user in the target's database that may send.

    ``is_reported`` is True if SQL Server says so.
    """
    place = target.instance, target.database or ""
    grants = server.send_grants(*place, service)
    if grants is None or target.instance == sender.instance:
        return None
    is_bound = server.has_binding(sender.instance, sender.database or "", service)
    user, why = (None, "") if is_bound is False else _find_user(server, sender, target, from_service)
    roles = frozenset[str]() if user is None else server.roles_of(*place, user)
    acting = {EVERYBODY, *(roles or ()), *(() if user is None else (user,))}
    senders = grants.granted
    denied = next((name for name in grants.denied if name in acting), None)
    if denied is not None:
        return _revoke_denial(target, service, denied)
    if _OWNERS in acting or acting.intersection(senders):
        return None
    pasted = statements.identifier(service)
    if user is not None:
        is_open = roles is None and not is_reported
        return _grant_to(target, service, user, why, senders, is_open=is_open and bool(senders))
    if is_bound is not False and senders:
        return _install_copy(server, sender, target, senders) if is_bound and not is_reported else None
    if is_bound is True:
        cause = (
            f"Nobody may send to service {named(service)} of {named(target.database)}: the target throws the"
            " messages away."
        )
        action = f"Grant SEND to the user of {named(target.database)} that owns the certificate of the sender."
        return to_fill_in(target, cause, (action,), _grant(pasted, "[<user>]"), confidence=Confidence.LIKELY)
    granted = join_words(map(named, senders)) if senders else "nobody"
    cause = (
        f"A dialog without a remote service binding, or with an anonymous one, sends as public, and"
        f" {granted} may send to service {named(service)}: the target throws the messages away."
    )
    line = _grant(pasted, f"[{EVERYBODY}]")
    return ready(target, cause, _FOR_PUBLIC, line, risk=_SEND_RISK, confidence=Confidence.LIKELY)


def _install_copy(
    server: ServerEvidence, sender: RemedyPlace, target: RemedyPlace, senders: Sequence[str]
) -> Remedy | None:
    """Advise CREATE CERTIFICATE FROM FILE if the target's database lacks the sender's certificate."""
    place = target.instance, target.database or ""
    usable = [one for one in server.certificates(sender.instance, sender.database or "") if one.has_private_key]
    if len(usable) != 1 or usable[0].subject is None or not server.was_exported("certificates", *place):
        return None
    certificate = usable[0]
    if any(copy.is_copy_of(certificate) for copy in server.certificates(*place)):
        return None
    name, users = statements.identifier(certificate.name), [one for one in senders if one != EVERYBODY]
    cause = (
        f"{named(target.database)} of {named(target.instance)} has no copy of {named(certificate.name)},"
        " the sender's certificate: the target throws the messages away."
    )
    actions = (
        f"In {named(sender.database)} of {named(sender.instance)}, run BACKUP CERTIFICATE … TO FILE.",
        "Create it from the file in the target's database, for the user that may send to the service.",
    )
    user = (statements.identifier(users[0]) if len(users) == 1 else None) or "[<user>]"
    line = None if name is None else f"CREATE CERTIFICATE {name} AUTHORIZATION {user} FROM FILE = N'<file>';"
    return to_fill_in(target, cause, actions, line, confidence=Confidence.LIKELY)


def grant_send(status: ReportedStatus) -> Remedy:
    """Return GRANT SEND in the target's database, to the user of the dialogs or to one that somebody chooses."""
    on_object, target = _grant_on_object(status), status.find_target()
    if on_object is not None:
        return on_object
    if status.case.status_text.number == _NO_CONTROL:
        return _grant_control(status)
    if target is not None and target.database is not None:
        sent = status.place, target, status.service, status.case.from_service
        missing = grant_missing_send(status.server, *sent, is_reported=True)
        if missing is not None:
            return missing
    service, entry, place = statements.identifier(status.service), status.entry, status.place_at_target()
    if _sends_as_nobody(status):
        cause = "The dialog has no user in the target's database: it sends as public, which lacks SEND."
        line = _grant(service, f"[{EVERYBODY}]")
        build = to_fill_in if target is None else ready
        return build(place, cause, _FOR_PUBLIC, line, risk=entry.risk, confidence=Confidence.LIKELY)
    lines = [_grant(service, user) for user in ("[<user>]", f"[{EVERYBODY}]")]
    return to_fill_in(place, entry.cause, entry.actions, *lines, risk=entry.risk)


def _grant_control(status: ReportedStatus) -> Remedy:
    """Advise GRANT CONTROL on a service, which the user of a reply needs on the service that began the dialog."""
    place, service = status.place_at_target(), statements.identifier(status.service)
    user, _ = _find_user(status.server, status.place, place, status.case.from_service)
    grantee = "[<user>]" if user is None else statements.identifier(user)
    cause = f"The user of the dialog has no CONTROL permission on service {named(status.service)}."
    actions = (
        "Look up the user: its number is in the text, for USER_NAME.",
        "Grant it CONTROL on the service, or let it own the service.",
    )
    line = None if service is None or grantee is None else f"GRANT CONTROL ON SERVICE::{service} TO {grantee};"
    return to_fill_in(place, cause, actions, line, risk=_CONTROL_RISK, confidence=Confidence.LIKELY)


def grant_denied(target: RemedyPlace, user: str | None, line: str) -> str | None:
    """Return the GRANT in its database that a user lacks by a line, or None. None as user is to be filled in."""
    grantee, denied = "[<user>]" if user is None else statements.identifier(user), DENIED.search(line)
    if denied is None or grantee is None or collated(denied["database"]) != collated(target.database or ""):
        return None
    parts = [statements.identifier(denied[part]) for part in ("schema", "name")]
    return f"GRANT {denied['permission']} ON {'.'.join(part or '[<name>]' for part in parts)} TO {grantee};"


def _grant_on_object(status: ReportedStatus) -> Remedy | None:
    line, target = status.case.status_text.text or "", status.place_at_target()
    if _ON_OBJECT not in status.numbers:
        return None
    user, _ = _find_user(status.server, status.place, target, status.case.from_service)
    return grant_on_object(target, user, line, status.service)


def grant_on_object(target: RemedyPlace, user: str | None, line: str, service: str = "") -> Remedy | None:
    """Advise the permission on another object than the service, if the text of error 229 names one."""
    # The name of a service may have such a word too.
    permission = _PERMISSION.search(line.replace(service, "") if service else line)
    if permission is None or permission[0] == "SEND":
        return None
    quoted_names = find_quoted(line)
    name = named(quoted_names[0]) if quoted_names else "an object"
    cause = (
        f"The user of the dialog has no {permission[0]} permission on {name}, which SQL Server or a trigger needs"
        " to enqueue the messages."
    )
    grant = grant_denied(target, user, line)
    if grant is None:
        return Remedy(target, cause, (_GRANT_THERE,), confidence=Confidence.LIKELY)
    return to_fill_in(target, cause, (_GRANT_THERE,), grant, confidence=Confidence.LIKELY)


def grant_access(status: ReportedStatus) -> Remedy:
    """Return GRANT CONNECT in the target's database, to the user of the dialogs if it is known."""
    target, entry = status.find_target(), status.entry
    user = None if target is None else _find_user(status.server, status.place, target, status.case.from_service)[0]
    pasted = None if user is None else statements.identifier(user)
    line = f"GRANT CONNECT TO {pasted or '[<user>]'};"
    build = to_fill_in if pasted is None else ready
    return build(status.place_at_target(), entry.cause, entry.actions, line, confidence=Confidence.LIKELY)


def _grant(service: str | None, user: str | None) -> str | None:
    return None if service is None or user is None else f"GRANT SEND ON SERVICE::{service} TO {user};"


def _sends_as_nobody(status: ReportedStatus) -> bool:
    """Return True if the text of error 11215 names user id 0: the ids of a user and of a database come first."""
    if status.case.status_text.number != _NO_SEND:
        return False
    return _NOBODY in _NUMBER.findall(status.case.status_text.text or "")[:2]


def list_senders(server: ServerEvidence, target: RemedyPlace, service: str) -> str | None:
    """Return a sentence on the users that may send to a service, or None if they are unknown or everybody."""
    senders, _ = server.send_grants(target.instance, target.database or "", service) or Grants()
    if not senders or EVERYBODY in senders:
        return None
    return (
        f"SEND on {named(service)} is granted to {join_words(map(named, senders))}: check that this user owns the"
        f" copy of the sender's certificate in {named(target.database)}."
    )


def _revoke_denial(target: RemedyPlace, service: str, denied: str) -> Remedy:
    """Advise REVOKE for a denial of SEND to everybody, or to the user of the dialogs or a role of it."""
    cause = (
        f"SEND on service {named(service)} of {named(target.database)} is denied to {named(denied)}, and a"
        " denial beats every grant."
    )
    pasted, grantee = statements.identifier(service), statements.identifier(denied)
    line = None if pasted is None or grantee is None else f"REVOKE SEND ON SERVICE::{pasted} FROM {grantee};"
    actions = ("Take the denial back, and grant SEND to the users that may send.",)
    return ready(target, cause, actions, line, confidence=Confidence.LIKELY)


def _find_user(
    server: ServerEvidence, sender: RemedyPlace, target: RemedyPlace, from_service: str | None
) -> tuple[str | None, str]:
    """Return the user as which dialogs of a database act in the target's database, and the fact that shows it."""
    place = target.instance, target.database or ""
    own_certificates = [
        certificate
        for certificate in server.certificates(sender.instance, sender.database or "")
        if certificate.has_private_key and certificate.subject is not None
    ]
    owners = {
        copy.user_name: copy.name
        for copy in server.certificates(*place)
        if not copy.has_private_key and any(copy.is_copy_of(certificate) for certificate in own_certificates)
    }
    if len(owners) == 1:
        [(owner, name)] = owners.items()
        user = None if owner == _OWNER else owner
        return user, f"which owns {named(name)}, the copy of the sender's certificate"
    bound_user = None if owners or from_service is None else server.bound_user(*place, from_service)
    return bound_user, f"to which the binding of {named(from_service)} leads"


def _grant_to(
    target: RemedyPlace, service: str, user: str, why: str, senders: Sequence[str], *, is_open: bool
) -> Remedy:
    """Advise GRANT SEND to the user of the dialogs, while nobody or another one has it.

    ``is_open``: it is not known whether one of those with SEND is a role of the user.
    """
    granted = f"only {join_words(map(named, senders))} has SEND" if senders else "nobody has SEND"
    unless = f"if {named(user)} is no member of it, " if is_open else ""
    cause = (
        f"The dialogs send as user {named(user)} of {named(target.database)}, {why}, but {granted} on service"
        f" {named(service)}: {unless}the target throws the messages away."
    )
    line = _grant(statements.identifier(service), statements.identifier(user))
    action = f"Grant SEND on the service to {named(user)}."
    if not is_open:
        return ready(target, cause, (action,), line, confidence=Confidence.LIKELY)
    return to_fill_in(target, cause, (_ROLES_UNKNOWN, action), line)
