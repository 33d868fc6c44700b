"""The texts of transmission_status, each as SQL Server writes it, with the values that it fills in."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.importing.catalog.conversation_rows import error_number, outcome
from routing.rules.observed import TOPICS

LINES = (Path(__file__).parent / "transmission_statuses.txt").read_text(encoding="utf-8").splitlines()
"""A number, and its text."""
WRITTEN = {int(number): text for number, _, text in (line.partition(" ") for line in LINES)}
DELAYED = {
    *(9750, 9761, 9770, 9771, 9780, 9781, 9787, 9788, 9789, 9790, 9791, 9792, 9793, 9794, 9795, 9796, 9797, 9798),
    28075,
}


@pytest.mark.parametrize("number", WRITTEN)
def test_the_number_of_a_text(number: int) -> None:
    text = WRITTEN[number]
    broken = text.replace(" ", "\r\n", 3).replace(" ", "  ", 2)
    assert [error_number(one) for one in (text, broken, text.upper(), f" {text}\n")] == [number] * 4
    assert outcome(number) == ("DELAYED" if number in DELAYED else None)


def test_every_known_number_has_its_text() -> None:
    assert WRITTEN.keys() == {number for numbers in TOPICS.values() for number in numbers}


@pytest.mark.parametrize(
    ("status", "number", "decided"),
    [
        ("The target service name could not be found. Ensure that the service name is", 9793, "DELAYED"),
        ("No route matches the destination service  name for this conversation.", 9750, "DELAYED"),
        ("Classification failed, error 9796.", 9796, "DELAYED"),
        ("Msg 9791, Level 16", 9791, "DELAYED"),
        ("An exception occurred. Error: 15517, State: 1. Cannot execute as owner", 28005, None),
        ("Something else with error 15517 in it", 15517, None),
        # The number that a text names is the cause that it tells.
        (
            "An exception occurred while enqueueing a message in the target queue. Error: 9617, State: 1.",
            9617,
            None,
        ),
        (
            "Connection attempt failed with\terror: '10061(The target machine\r\nactively refused it.)'.",
            9754,
            None,
        ),
        ("The Service Broker in the target database is unavailable: 'x'.", 28012, None),
        ("The Service Broker endpoint is in disabled or stopped state.", 9666, None),
        ("Der Zieldienst wurde nicht gefunden", None, None),
        # 28005 in French, Spanish and Chinese: a sentence, then the exception with its state.
        ("Une exception s'est produite dans la file. Erreur : 15517, État : 1. Impossible", 28005, None),
        ("Se ha producido una excepcion en la cola. Error: 15581, estado: 7. Cree una clave", 28005, None),
        ("\u53d1\u751f\u4e86\u5f02\u5e38\u3002\u9519\u8bef: 33009\uff0c\u72b6\u6001: 2\u3002", 28005, None),
        # The number of the operating system is no number of SQL Server.
        ("Fehler beim Verbindungsversuch: '10061(Es konnte keine Verbindung hergestellt werden)'.", None, None),
        ("Connection handshake failed. Something new. State 4.", None, None),
        ("Something at tcp://host:9793 went wrong", None, None),
        ("", None, None),
    ],
)
def test_the_number_of_a_transmission_status(status: str, number: int | None, decided: str | None) -> None:
    assert error_number(status) == number
    assert outcome(number) == decided


def test_texts_of_values_are_not_mistaken_for_sql_servers_texts() -> None:
    assert error_number(f"DNS lookup failed with error: '{WRITTEN[9793]}'.") == 9783
    assert error_number("The security certificate bound to database principal (Id: 7) is not there") is None
