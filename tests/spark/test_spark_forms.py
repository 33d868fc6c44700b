"""What Spark does with each message's own texts, beside the plain rules: equal for every character there is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from routing.messages import dialog_hash, ids, keying, openers
from routing.messages.ids import read_brokers
from routing.rules import hashing, requesting
from routing.rules import text as plain
from tests.frames import frame_of
from tests.text_forms import FORMS as TABLES
from tests.text_forms import GUID, ZEROS, ascii_texts, differences, other_texts

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

pytestmark = pytest.mark.core
Read = dict[str, list[Any]]

NAMESPACE = 'urn:"<&>'
# By name: as Spark reads it, as the rules do.
FORMS: dict[str, tuple[Callable[[Column], Column], Callable[[str], Any]]] = {
    # Read in steps, each a projection of its own.
    "broker_id": (lambda _: F.col("broker_id"), plain.broker_id),
    "fold": (ids.fold, plain.fold),
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


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> Read:
    """All texts, and null after them, as Spark reads them: by form, in the order of the texts. One job."""
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    schema = StructType([StructField("place", IntegerType()), StructField("x", StringType())])
    texts = [*ascii_texts(), *other_texts(), None]
    rows = [{"place": place, "x": one} for place, one in enumerate(texts)]
    forms = [in_spark(F.col("x")).alias(name) for name, (in_spark, _) in FORMS.items()]
    given = read_brokers(frame_of(spark, rows, schema), broker_id="x")
    found = sorted(given.select("place", "x", *forms).collect(), key=lambda row: row["place"])
    assert [row["x"] for row in found] == texts
    return {name: [row[name] for row in found] for name in FORMS}


@pytest.mark.parametrize("form", FORMS)
def test_every_text_is_read_as_the_rules_read_it(read: Read, form: str) -> None:
    texts = [*ascii_texts(), *other_texts()]
    assert differences(texts, read[form][:-1], [FORMS[form][1](one) for one in texts]) == []


def test_each_text_is_read_as_its_table_says(read: Read) -> None:
    place = {text: number for number, text in enumerate([*ascii_texts(), *other_texts()])}
    for form in FORMS.keys() & TABLES.keys():
        table = {text: expected for text, expected in TABLES[form].table if text in place}
        assert {text: read[form][place[text]] for text in table} == table
        assert len(table) >= 3, form


def test_null_is_nothing(read: Read) -> None:
    """But for the hash, which is asked for conversation ids only: Spark gives its seed."""
    assert {form: values[-1] for form, values in read.items()} == {**dict.fromkeys(FORMS), "dialog_id_hash": 42}


def test_the_texts_reach_both_answers() -> None:
    """Ids and addresses are found and not found, often enough to tell a difference."""
    for form in ("broker_id", "is_guid", "address_in_name"):
        answers = [bool(FORMS[form][1](one)) for one in ascii_texts()]
        assert min(answers.count(True), answers.count(False)) > 30, form
    assert {sign for one in other_texts() for sign in one} >= {
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
