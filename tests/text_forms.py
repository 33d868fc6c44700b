"""One table of texts as the rules, Spark and Arrow read them, and many more texts on which they must agree."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from routing.rules import hashing, text

Texts = list[str]
GUID = "5FB8D92B-ed69-4c80-afbb-2aa6a7d3cb2d"
FOLDED = "5fb8d92b-ed69-4c80-afbb-2aa6a7d3cb2d"
ZEROS = "00000000-0000-0000-0000-000000000000"
_PACKED, _RANDOM, _GUIDS, _SEED = 256, 4000, 200, 20260105


class TextForm(NamedTuple):
    """A function of the rules, and texts with its expected results."""

    rule: Callable[[Any], Any]
    table: Sequence[tuple[str | None, Any]]


FORMS = {
    "fold": TextForm(
        text.fold,
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
            ("a\x00B", "a\x00b"),
        ],
    ),
    "empty_as_null": TextForm(text.empty_as_null, [(None, None), ("", None), (" ", " "), ("x", "x")]),
    "broker_id": TextForm(
        text.broker_id,
        [
            (None, None),
            ("", None),
            (" \t\r\n", None),
            ("{}", None),
            (" { \n} ", None),
            (ZEROS, None),
            (f" {ZEROS}", None),
            (f"{{{ZEROS}}}", None),
            (f"\t{{ {ZEROS} }}", None),
            (GUID, FOLDED),
            (FOLDED, FOLDED),
            (f" {GUID}\n", FOLDED),
            (f"\r{{\t{GUID} }} ", FOLDED),
            # D1: any text is an id; one pair of braces only; no other blank than the four.
            ("DatabaseA", "databasea"),
            (ZEROS[:-1], ZEROS[:-1]),
            (f"{{{GUID}", f"{{{FOLDED}"),
            (f"{{{{{GUID}}}}}", f"{{{FOLDED}}}"),
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
    ),
    "is_guid": TextForm(
        text.is_guid,
        [
            ("", False),
            (GUID, True),
            (GUID.upper(), True),
            (ZEROS, True),
            (f"{{{GUID}}}", False),
            (f" {GUID}", False),
            (f"{GUID}\n", False),
            (GUID[:-1], False),
            (GUID + "0", False),
            (GUID.replace("-", ""), False),
            (GUID.replace("5", "g"), False),
            (GUID[:-1] + "\u0130", False),
            (GUID.replace("5", "\uff15"), False),
            (GUID.replace("-", "_"), False),
        ],
    ),
    "address_in_name": TextForm(
        text.address_in_name,
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
    ),
    # What XXH64 gives with seed 42, as Spark's own function has it.
    "dialog_id_hash": TextForm(
        hashing.dialog_id_hash,
        [
            ("abc", 1423657621850124518),
            ("aBC", 1423657621850124518),
            ("6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a0001", -8367975887838753628),
            ("6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a0002", -861968757827549059),
            ("6B1F0B9A-6A0E-4A52-9C7B-0D6F6D9A0003", -6838570742282400457),
            ("6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a0004", 5917326566894755064),
        ],
    ),
}

# Of these texts are made that nearly are ids, GUIDs, addresses and XML.
_PARTS = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "\x0b",
        "\u00a0",
        "{",
        "}",
        "{",
        "}",
        "-",
        ".",
        "%",
        "/",
        "/",
        ":",
        ":",
        "[",
        "]",
    ),
    *("A", "z", "0", "7", "4022", "123456", "tcp://", "TCP://", "Tcp:/", "hub", "East", "LOCAL", "Transport"),
    *("[::1]", "[2001:DB8::7]", "[fe80::1%eth0]", ":4022", ":04022/", "&", "<", ">", '"', "'", "\x01"),
    *(GUID, GUID.upper(), f"{{{GUID}}}", ZEROS, GUID[:-1], GUID.replace("-", "")),
)
_BEYOND_ASCII = (
    *("\u00c9", "\u0130", "\u212a", "\u1e9e", "\u03a3", "\uff21", "\u0661", "\ufffe", "\U00010400", "\u3000"),
)


@cache
def ascii_texts() -> Texts:
    """Every character alone and within texts, texts that are made at random, and those of the tables."""
    rng = random.Random(_SEED)
    singles = [chr(code) for code in range(1, 128)]
    around = [made for one in singles for made in (one, f"{one}A{one}", f"tcp://h{one}:1", GUID.replace("5", one))]
    mixed = ["".join(rng.choice((sign, sign.upper())) for sign in guid) for guid in random_guids(rng, _GUIDS)]
    return [*_listed(is_ascii=True), *around, "".join(singles), *mixed, *_at_random(rng, _PARTS)]


@cache
def other_texts() -> Texts:
    """Every other character within a text, and those alone that some language takes for blanks, digits or hex."""
    rng = random.Random(_SEED + 1)
    codes = [code for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    packed = ("".join(map(chr, codes[at : at + _PACKED])) for at in range(0, len(codes), _PACKED))
    special = [
        chr(code) for code in codes if unicodedata.category(chr(code)) in ("Zs", "Zl", "Zp", "Cc", "Cf", "Nd")
    ]
    around = [made for one in special for made in (f"{one}A{one}", f"tcp://h:{one}/", GUID.replace("5", one))]
    return [
        *_listed(is_ascii=False),
        *(f"tcp://AZaz{some}MNmn:1/A" for some in packed),
        *around,
        *_at_random(rng, (*_PARTS, *_BEYOND_ASCII)),
    ]


def random_guids(rng: random.Random, count: int) -> Texts:
    """So many GUIDs in lower case."""
    ids = [f"{rng.getrandbits(128):032x}" for _ in range(count)]
    return [f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}" for one in ids]


def _listed(*, is_ascii: bool) -> Texts:
    words = {word for form in FORMS.values() for word, _ in form.table if word is not None and "\0" not in word}
    return sorted(word for word in words if word.isascii() is is_ascii)


def _at_random(rng: random.Random, parts: tuple[str, ...]) -> Iterator[str]:
    return ("".join(rng.choices(parts, k=rng.randint(1, 7))) for _ in range(_RANDOM))


def differences(texts: Sequence[str | None], found: Sequence[Any], wanted: Sequence[Any]) -> list[str]:
    """The first few texts that are read otherwise: each from where the two readings begin to differ."""
    differing = []
    for one, got, expected in zip(texts, found, wanted, strict=True):
        if got != expected:
            signs = enumerate(zip(str(got), str(expected), strict=False))
            at = next((place for place, (here, there) in signs if here != there), 0)
            differing.append(f"{str(one)[:20]!a}: {str(got)[at:][:8]!a} not {str(expected)[at:][:8]!a}")
    return differing[:3]
