"""Mutants of the meaning of a transmission_status and of the texts on it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_MEANING = ("tests/unit/test_statuses.py",)
_CHECK = ("tests/unit/test_check_statuses.py",)
_PAIRS = ("tests/unit/rules/test_observed.py",)
_EXPORT = ("tests/unit/importing/test_catalog_covering.py",)


def _of_meaning(name: str, rule: str, before: str, after: str) -> Mutant:
    return Mutant(name, rule, "routing/advice/status_meanings.py", before, after, _MEANING)


def _of_advice(room: str, name: str, rule: str, before: str, after: str) -> Mutant:
    return Mutant(name, rule, f"routing/advice/{room}.py", before, after, _CHECK)


MUTANTS = (
    _of_meaning(
        "outer-number-alone",
        "the number that the text of 28005 names says what is wrong",
        "    named = {number, *find_system_numbers(text), *wrapped}\n",
        "    named = {number}\n",
    ),
    _of_meaning(
        "unread-is-none",
        "a text that cannot be read is never taken for no trouble",
        "        return StatusTrouble.UNREAD\n",
        "        return None\n",
    ),
    Mutant(
        "text-before-number",
        "the number that the server found counts before the text",
        "routing/importing/catalog/conversation_rows.py",
        "known_number or error_number(status)",
        "error_number(status) or known_number",
        _EXPORT,
    ),
    Mutant(
        "local-route-is-no-missing-route",
        "SQL Server says 9793 of a LOCAL route that leads nowhere, too",
        "routing/rules/observed.py",
        "        (Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND),\n        _COMPATIBLE,\n"
        '        "SQL Server reports the same',
        '        (Reason.SERVICE_NOT_FOUND,),\n        _COMPATIBLE,\n        "SQL Server reports the same',
        _PAIRS,
    ),
    _of_advice(
        "status_advice",
        "suspicion-before-the-next-try",
        "where a route takes the messages now, first that SQL Server tries again",
        "(TRIES_AGAIN, EXPORT_AGAIN,",
        "(EXPORT_AGAIN, TRIES_AGAIN,",
    ),
    _of_advice(
        "status_advice",
        "no-verdict-no-answer",
        "a status of a message without a verdict is answered",
        "        return not (is_of_routes and has_remedy)\n",
        "        return False\n",
    ),
    _of_advice(
        "connection_advice",
        "any-port-is-the-endpoint-s",
        "port 1433 is none of a Service Broker endpoint",
        "    if port == TSQL_PORT:\n",
        "    if port != TSQL_PORT:\n",
    ),
    _of_advice(
        "service_remedies",
        "client-is-there",
        "nobody waits for messages to a client of query notifications that is gone",
        "    if client is not None and client.name:\n",
        "    if client is None:\n",
    ),
)
