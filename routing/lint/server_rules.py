"""Find lasting faults of servers in exports: certificates, queues, endpoints and owners."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from routing.cases.server_evidence import ServerEvidence
from routing.cases.server_facts import CertificateFacts
from routing.lint.lint_estate import LintFinding, finding, is_users
from routing.rules.timeline import moment_of
from routing.terms import MSDB

_MASTER, _STARTED = "master", "STARTED"


def find_in_servers(server: ServerEvidence, now: int, days: int) -> Iterator[LintFinding]:
    """Yield the findings at a time in microseconds. ``days`` defines how soon a certificate expires."""
    yield from _endpoints(server)
    yield from _certificates(server, now, days)
    yield from _queues(server)
    yield from _owners(server)


def _endpoints(server: ServerEvidence) -> Iterator[LintFinding]:
    for instance, endpoint in server.endpoints.items():
        if endpoint.state not in (None, _STARTED):
            yield finding("SBR052", (instance, None), endpoint.name, "its state is %s", endpoint.state)


def _certificates(server: ServerEvidence, now: int, days: int) -> Iterator[LintFinding]:
    for instance in server.endpoints:
        certificate = server.endpoint_certificate(instance)
        if certificate is not None:
            yield from _dates(instance, _MASTER, certificate, "the endpoint", now, days)
    for (instance, database), users in server.bound_users.items():
        for user in users:
            certificates_of_user = [
                certificate
                for certificate in server.certificates(instance, database)
                if certificate.user_name == user
            ]
            if certificates_of_user:
                # SQL Server takes the certificate that is valid for the longest time.
                last = max(certificates_of_user, key=lambda certificate: certificate.expires or "")
                yield from _dates(instance, database, last, f"user {user}", now, days)


def _dates(
    instance: str, database: str, certificate: CertificateFacts, used_by: str, now: int, days: int
) -> Iterator[LintFinding]:
    place = instance, database
    if certificate.has_expired(moment_of(now)):
        sentence = "%s uses it, and it was valid until %s"
        yield finding("SBR049", place, certificate.name, sentence, used_by, certificate.expires)
    elif certificate.has_expired(moment_of(now) + timedelta(days=days)):
        sentence = "%s uses it, and it is valid until %s"
        yield finding("SBR050", place, certificate.name, sentence, used_by, certificate.expires)


def _queues(server: ServerEvidence) -> Iterator[LintFinding]:
    for (instance, database), queue in server.list_queues():
        services = [name for name in queue.services if is_users(name)]
        if database == MSDB or not queue.is_off:
            continue
        if services:
            yield finding("SBR051", (instance, database), queue.name, "it is the queue of service %s", services[0])
        elif not queue.has_known_services:
            yield finding("SBR051", (instance, database), queue.name, "its services are not known")


def _owners(server: ServerEvidence) -> Iterator[LintFinding]:
    for (instance, database), facts in server.databases.items():
        if facts.has_lost_owner and facts.is_broker_on:
            yield finding("SBR053", (instance, None), database, "its broker is on, and its owner is not a login")
