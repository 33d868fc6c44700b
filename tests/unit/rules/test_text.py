"""How ids and addresses are compared: rule book, sections 0 and 3; the grammar in tables.md."""

from __future__ import annotations

import pytest

from routing.rules import text

ZEROS = "00000000-0000-0000-0000-000000000000"
GUID = "5FB8D92B-ed69-4c80-afbb-2aa6a7d3cb2d"
FOLDED = "5fb8d92b-ed69-4c80-afbb-2aa6a7d3cb2d"
given = pytest.mark.parametrize


@given(
    ("written", "folded"),
    [
        ("", ""),
        ("AMZ amz 09", "amz amz 09"),
        # What stands before A and after Z is no letter.
        ("@A[Z`a{z", "@a[z`a{z"),
        # E with acute, dotted I, the Kelvin sign, sharp S, Sigma, a Deseret letter: as they are.
        ("\u00c9", "\u00c9"),
        ("A\u00c9Z", "a\u00c9z"),
        ("\u0130\u212a\u1e9e", "\u0130\u212a\u1e9e"),
        ("O\u03a3", "o\u03a3"),
        ("\U00010400B", "\U00010400b"),
    ],
)
def test_only_a_to_z_are_folded(written: str, folded: str) -> None:
    assert text.fold(written) == folded


@given(("written", "read"), [(None, None), ("", None), (" ", " "), ("x", "x")])
def test_empty_text_is_null(written: str | None, read: str | None) -> None:
    assert text.empty_as_null(written) == read


@given(
    ("written", "read"),
    [
        (None, None),
        ("", None),
        (" \t\r\n", None),
        ("{}", None),
        (" { \n} ", None),
        (ZEROS, None),
        (f"\t{{ {ZEROS} }}", None),
        (GUID, FOLDED),
        (f" {GUID}\n", FOLDED),
        (f"\r{{\t{GUID} }} ", FOLDED),
        # D1: any text is an id; one pair of braces only; no other blank than the four.
        ("DatabaseA", "databasea"),
        ("{{X}}", "{x}"),
        ("{", "{"),
        ("}", "}"),
        ("{X", "{x"),
        ("X}", "x}"),
        ("\u00a0X", "\u00a0x"),
        ("\x0bX\x0c", "\x0bx\x0c"),
        ("\u00c9", "\u00c9"),
        ("0", "0"),
    ],
)
def test_a_broker_id(written: str | None, read: str | None) -> None:
    assert text.broker_id(written) == read


@given(
    ("written", "is_one"),
    [
        (None, False),
        ("", False),
        (GUID, True),
        (ZEROS, True),
        (f"{{{GUID}}}", False),
        (f" {GUID}", False),
        (f"{GUID}\n", False),
        (GUID[:-1], False),
        (GUID + "0", False),
        (GUID.replace("-", ""), False),
        (GUID.replace("5", "g"), False),
        (GUID.replace("5", "\uff15"), False),
        (GUID.replace("-", "_"), False),
    ],
)
def test_a_guid(written: str | None, is_one: bool) -> None:
    assert text.is_guid(written) is is_one


@given(
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
def test_an_address_as_it_is_compared(written: str, compared: str) -> None:
    assert text.comparable_address(written) == compared


# An address: is it LOCAL, TRANSPORT, of the tcp form; its host and its port.
@given(
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


@given(
    ("service", "address"),
    [
        (None, None),
        ("", None),
        ("Billing", None),
        ("tcp://east:4022", "tcp://east:4022"),
        ("TCP://East:1/a\nb", "TCP://East:1"),
        ("tcp://east:04022//", "tcp://east:04022"),
        ("tcp://[2001:db8::7]:1/x", "tcp://[2001:db8::7]:1"),
        ("tcp://east/x", None),
        ("tcp://east:4022 ", None),
        ("tcp://east:4022\n", None),
        (" tcp://east:4022", None),
        ("tcp://east:123456", None),
        ("tcp://east:\u0661", None),
        ("tcp://ea st:1", None),
        ("tcp://:1", None),
    ],
)
def test_the_address_in_a_service_name(service: str | None, address: str | None) -> None:
    assert text.address_in_name(service) == address
