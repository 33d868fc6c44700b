"""Decoding bytes: byte-order marks, UTF-16 without one, UTF-8, and Windows-1252 otherwise."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from routing.importing.tsql.script_reader import DecodedScript, decode, read_file

SCRIPT = "CREATE ROUTE [Größe] WITH ADDRESS = 'LOCAL'\r\n"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (codecs.BOM_UTF8 + SCRIPT.encode(), "UTF-8 with byte-order mark"),
        (codecs.BOM_UTF16_LE + SCRIPT.encode("utf-16-le"), "UTF-16 LE with byte-order mark"),
        (codecs.BOM_UTF16_BE + SCRIPT.encode("utf-16-be"), "UTF-16 BE with byte-order mark"),
        (codecs.BOM_UTF32_LE + SCRIPT.encode("utf-32-le"), "UTF-32 LE with byte-order mark"),
        (codecs.BOM_UTF32_BE + SCRIPT.encode("utf-32-be"), "UTF-32 BE with byte-order mark"),
        (SCRIPT.encode("utf-16-le"), "UTF-16 LE"),
        (SCRIPT.encode("utf-16-be"), "UTF-16 BE"),
        (SCRIPT.encode(), "UTF-8"),
        (SCRIPT.encode("cp1252"), "Windows-1252"),
    ],
)
def test_each_encoding_gives_the_same_text(data: bytes, encoding: str) -> None:
    assert decode(data) == DecodedScript(SCRIPT, encoding)


def test_undecodable_characters_are_counted() -> None:
    assert decode(b"a\x81\xe9") == DecodedScript("a\ufffdé", "Windows-1252", 1)
    assert decode(codecs.BOM_UTF16_LE + b"a\x00b") == DecodedScript("a\ufffd", "UTF-16 LE with byte-order mark", 1)


@pytest.mark.parametrize("sign", "89+/")
def test_utf_7_is_refused_by_name(sign: str) -> None:
    with pytest.raises(ValueError, match="it is in UTF-7"):
        decode(f"+/v{sign}-".encode() + SCRIPT.encode("utf-7"))


def test_an_empty_file_is_utf_8() -> None:
    assert decode(b"") == DecodedScript("", "UTF-8")


def test_a_nul_alone_does_not_make_utf_16() -> None:
    assert decode(b"SELECT 1\x00 -- a binary tail").encoding == "UTF-8"


@pytest.mark.parametrize(
    ("data", "is_text"),
    [
        (b"", True),
        (b"DROP ROUTE [a\x81]", True),
        (b"PRINT 'a\x07\x1b[0m'\r\n\f-- a page\x1a", True),
        ("DROP ROUTE a".encode("utf-16-le"), True),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", False),
        (b"PK\x03\x04\x14\x00", False),
        (b"\x1f\x8b\x08\x08\x01\x02\x03abcdef", False),
    ],
)
def test_files_that_are_not_text(data: bytes, is_text: bool) -> None:
    assert decode(data).is_text is is_text


def test_utf_8_below_utf_16_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_bytes(SCRIPT.encode("utf-16") + SCRIPT.encode())
    with pytest.raises(ValueError, match="it has parts that are not in UTF-16"):
        read_file(file)
