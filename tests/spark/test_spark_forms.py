"""What Spark does with each message's own texts, beside the plain rules: equal for every character there is."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from routing.messages import dialog_hash, ids, keying, openers
from routing.messages.ids import read_brokers
from routing.rules import hashing, requesting
from routing.rules import text as plain
from tests.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

pytestmark = pytest.mark.core
Texts = list[str]
Read = dict[str, list[Any]]

GUID = "5FB8D92B-ed69-4c80-afbb-2aa6a7d3cb2d"
ZEROS = "00000000-0000-0000-0000-000000000000"
NAMESPACE = 'urn:"<&>'
_PACKED, _RANDOM, _GUIDS, _SEED = 256, 4000, 200, 20260105
# By name: as Spark reads it, as the rules do.
FORMS: dict[str, tuple[Callable[[Column], Column], Callable[[str], Any]]] = {
    # Read in steps, each a projection of its own.
    "broker_id": (lambda _: F.col("broker_id"), plain.broker_id),
    "empty_as_null": (ids.empty_as_null, plain.empty_as_null),
    "is_guid": (ids.is_guid, plain.is_guid),
    "address_in_name": (lambda name: ids.empty_as_null(ids.leading_address(name)), plain.address_in_name),
    "address_in_name, compared": (
        lambda name: ids.fold_any(ids.empty_as_null(ids.leading_address(name))),
        lambda name: plain.comparable_address(plain.address_in_name(name) or "") or None,
    ),
    "conversation_id": (ids.conversation_id, plain.fold),
    "missing_route": (
        lambda name: openers.missing_route(name, NAMESPACE),
        lambda name: requesting.missing_route(name, NAMESPACE),
    ),
    "dialog_id_hash": (lambda given: dialog_hash.builtin(ids.conversation_id(given)), hashing.dialog_id_hash),
    # On the way of the messages an id is only put into lower case, once it is known to be a GUID.
    "is_guid, lowered": (lambda given: ids.is_guid(F.lower(given)), plain.is_guid),
    "lowered where a GUID": (
        lambda given: F.when(ids.is_guid(given), F.lower(given)),
        lambda given: plain.fold(given) if plain.is_guid(given) else None,
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
    "\u00c9",
    "\u0130",
    "\u212a",
    "\u1e9e",
    "\u03a3",
    "\uff21",
    "\u0661",
    "\ufffe",
    "\U00010400",
    "\u3000",
)


@cache
def _ascii() -> Texts:
    """Every character alone and within texts, and texts that are made at random."""
    rng = random.Random(_SEED)
    singles = [chr(code) for code in range(1, 128)]
    around = [made for one in singles for made in (one, f"{one}A{one}", f"tcp://h{one}:1", GUID.replace("5", one))]
    ids = [f"{rng.getrandbits(128):032x}" for _ in range(_GUIDS)]
    guids = [f"{i[:8]}-{i[8:12]}-{i[12:16]}-{i[16:20]}-{i[20:]}" for i in ids]
    mixed = ["".join(rng.choice((sign, sign.upper())) for sign in guid) for guid in guids]
    return [*around, "".join(singles), *mixed, *_at_random(rng, _PARTS)]


@cache
def _beyond_ascii() -> Texts:
    """Every other character within a text, and those alone that some language takes for blanks, digits or hex."""
    rng = random.Random(_SEED + 1)
    codes = [code for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    packed = ("".join(map(chr, codes[at : at + _PACKED])) for at in range(0, len(codes), _PACKED))
    special = [
        chr(code) for code in codes if unicodedata.category(chr(code)) in ("Zs", "Zl", "Zp", "Cc", "Cf", "Nd")
    ]
    around = [made for one in special for made in (f"{one}A{one}", f"tcp://h:{one}/", GUID.replace("5", one))]
    return [
        *(f"tcp://AZaz{some}MNmn:1/A" for some in packed),
        *around,
        *_at_random(rng, (*_PARTS, *_BEYOND_ASCII)),
    ]


def _at_random(rng: random.Random, parts: tuple[str, ...]) -> Iterator[str]:
    return ("".join(rng.choices(parts, k=rng.randint(1, 7))) for _ in range(_RANDOM))


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> Read:
    """All texts, and null after them, as Spark reads them: by form, in the order of the texts. One job."""
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    schema = StructType([StructField("place", IntegerType()), StructField("x", StringType())])
    texts = [*_ascii(), *_beyond_ascii(), None]
    rows = [{"place": place, "x": one} for place, one in enumerate(texts)]
    forms = [in_spark(F.col("x")).alias(name) for name, (in_spark, _) in FORMS.items()]
    given = read_brokers(frame_of(spark, rows, schema), broker_id="x")
    found = sorted(given.select("place", "x", *forms).collect(), key=lambda row: row["place"])
    assert [row["x"] for row in found] == texts
    return {name: [row[name] for row in found] for name in FORMS}


@pytest.mark.parametrize("form", FORMS)
def test_every_ascii_text_is_read_alike(read: Read, form: str) -> None:
    assert _differences(form, _ascii(), read[form][: len(_ascii())]) == []


@pytest.mark.parametrize("form", FORMS)
def test_every_other_text_is_read_alike(read: Read, form: str) -> None:
    assert _differences(form, _beyond_ascii(), read[form][len(_ascii()) : -1]) == []


def _differences(form: str, texts: Texts, found: list[Any]) -> list[str]:
    """The first few texts that are read otherwise than the rules say: what begins to differ in both readings."""
    told = []
    for one, got in zip(texts, found, strict=True):
        wanted = FORMS[form][1](one)
        if got != wanted:
            signs = enumerate(zip(str(got), str(wanted), strict=False))
            at = next((place for place, (here, there) in signs if here != there), 0)
            told.append(f"{one[:20]!a}: {str(got)[at:][:8]!a} not {str(wanted)[at:][:8]!a}")
    return told[:3]


def test_null_is_nothing(read: Read) -> None:
    """But for the hash, which is asked for conversation ids only: Spark gives its seed."""
    assert {form: values[-1] for form, values in read.items()} == {**dict.fromkeys(FORMS), "dialog_id_hash": 42}


def test_the_texts_reach_both_answers() -> None:
    """Ids and addresses are found and not found, often enough to tell a difference."""
    for form in ("broker_id", "is_guid", "address_in_name"):
        answers = [bool(FORMS[form][1](one)) for one in _ascii()]
        assert min(answers.count(True), answers.count(False)) > 30, form
    assert {sign for one in _beyond_ascii() for sign in one} >= {
        chr(c) for c in range(128, 0x110000) if c >> 11 != 27
    }


# A sound message; what is changed; whether it has all that it needs (tables.md).
_MESSAGE = {
    "message_id": "m",
    "to_service_name": "S",
    "is_initiator": False,
    "enqueue_time": datetime(2026, 1, 5, tzinfo=timezone.utc),
    "hops_remaining": None,
    "conversation_id": GUID,
    "to_broker_instance": None,
    "from_service_name": None,
}
_OPTIONAL = ("hops_remaining", "to_broker_instance", "from_service_name")
_WELL_FORMED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    (dict.fromkeys(_MESSAGE), False),
    *(({name: None}, False) for name in _MESSAGE if name not in _OPTIONAL),
    *(({name: ""}, False) for name in ("message_id", "to_service_name", "conversation_id")),
    *(({name: " "}, True) for name in ("message_id", "to_service_name")),
    ({"is_initiator": True}, True),
    *(({"hops_remaining": hops}, True) for hops in (0, -1, 2**31 - 1, -(2**31))),
    *(({"hops_remaining": hops}, False) for hops in (2**31, -(2**31) - 1)),
    ({"conversation_id": ZEROS}, True),
    *(({"conversation_id": one}, False) for one in (f"{{{GUID}}}", f" {GUID}", GUID[:-1], "x")),
]


def test_a_message_has_all_that_it_needs(spark: SparkSession) -> None:
    from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType, TimestampType

    kinds = (StringType(), StringType(), BooleanType(), TimestampType(), LongType(), *3 * (StringType(),))
    names = ["place", *_MESSAGE]
    schema = StructType([StructField(*field) for field in zip(names, (LongType(), *kinds), strict=True)])
    rows = [{"place": place, **_MESSAGE, **change} for place, (change, _) in enumerate(_WELL_FORMED)]
    kept = F.when(keying.is_well_formed(), True).otherwise(False)
    judged = frame_of(spark, rows, schema).select("place", kept.alias("is_well_formed"))
    found = judged.collect()
    assert {row["place"]: row["is_well_formed"] for row in found} == {
        place: expected for place, (_, expected) in enumerate(_WELL_FORMED)
    }
