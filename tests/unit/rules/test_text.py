"""Comparing ids and addresses: rule book, sections 0 and 3, and the grammar in tables.md."""

from __future__ import annotations

from typing import Any

import pytest

from routing.rules import text
from tests.text_forms import FORMS

parametrize = pytest.mark.parametrize
_READ = [(name, word, expected) for name, form in FORMS.items() for word, expected in form.table]


@parametrize(("form", "word", "expected"), _READ, ids=[f"{name} {word!a}" for name, word, _ in _READ])
def test_a_text_is_read_as_its_table_says(form: str, word: str | None, expected: Any) -> None:
    read = FORMS[form].rule(word)
    assert (read, type(read)) == (expected, type(expected))


def test_null_is_not_a_guid() -> None:
    assert not text.is_guid(None)


@parametrize(
    ("written", "compared"),
    [
        ("", ""),
        ("/", ""),
        (" TCP://Hub:1// \n", "tcp://hub:1"),
        ("tcp://hub:1/ /", "tcp://hub:1/ "),
        ("/tcp", "/tcp"),
        ("\u00a0A", "\u00a0a"),
        ("\u00c9/", "\u00c9"),
    ],
)
def test_the_compared_form_of_an_address(written: str, compared: str) -> None:
    assert text.comparable_address(written) == compared


# An address: is it LOCAL, TRANSPORT, of the tcp form; its host and its port.
@parametrize(
    ("address", "is_local", "is_transport", "is_tcp", "host", "port"),
    [
        (None, False, False, False, None, None),
        ("", False, False, False, None, None),
        ("local", True, False, False, None, None),
        (" LOCAL/ ", True, False, False, None, None),
        ("LOCAL x", False, False, False, None, None),
        ("Transport", False, True, False, None, None),
        ("\tTRANSPORT//", False, True, False, None, None),
        ("tcp://Hub", False, False, True, "hub", None),
        (" TCP://Hub:04022/ ", False, False, True, "hub", "04022"),
        ("tcp://.:1", False, False, True, ".", "1"),
        ("tcp://[2001:DB8::7]:4022", False, False, True, "[2001:db8::7]", "4022"),
        ("tcp://[fe80::1%eth0]", False, False, True, "[fe80::1%eth0]", None),
        ("tcp://hub:123456", False, False, False, None, None),
        ("tcp://hub:", False, False, False, None, None),
        ("tcp://hub:\u0661", False, False, False, None, None),
        ("tcp://hub/x", False, False, False, None, None),
        ("tcp://h ub", False, False, False, None, None),
        ("tcp://[]:1", False, False, False, None, None),
        ("tcp://[hub]:1", False, False, False, None, None),
        ("tcp://:1", False, False, False, None, None),
        ("tcp://", False, False, False, None, None),
        ("http://hub:1", False, False, False, None, None),
        ("hub:1", False, False, False, None, None),
    ],
)
def test_the_grammar_of_addresses(
    address: str | None, is_local: bool, is_transport: bool, is_tcp: bool, host: str | None, port: str | None
) -> None:
    assert text.is_local(address) is is_local
    assert text.is_transport(address) is is_transport
    assert text.is_tcp(address) is is_tcp
    assert (text.host(address), text.port(address)) == (host, port)
