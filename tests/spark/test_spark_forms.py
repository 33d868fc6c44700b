"""Spark reads texts and messages as the tables of forms show, and every character as the plain rules do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from routing.messages import openers
from routing.messages.validate import add_reasons
from routing.plan.key_rows import FROM_NETWORK
from routing.rules import hashing, requesting
from routing.rules import text as plain
from routing.schemas import MESSAGES
from routing.tables import spark_forms as forms
from routing.tables.cached_frames import BroadcastBudget, side_of
from routing.tables.frames import spark_schema
from routing.tables.spark_forms import read_brokers
from tests.frames import frame_of
from tests.message_forms import ATTEMPTS, OF_ITS_PLACE, PLACES, REJECTIONS, expected_reasons, rejection_tables
from tests.text_forms import FORMS as TABLES
from tests.text_forms import ascii_texts, differences, other_texts

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

pytestmark = pytest.mark.core
Read = dict[str, list[Any]]

NAMESPACE = 'urn:"<&>'
# Each form by name: Spark's function, and the function of the rules.
FORMS: dict[str, tuple[Callable[[Column], Column], Callable[[str], Any]]] = {
    # This form is computed in steps, each in a separate projection.
    "broker_id": (lambda _: F.col("broker_id"), plain.broker_id),
    "fold": (forms.fold, plain.fold),
    "empty_as_null": (forms.empty_as_null, plain.empty_as_null),
    "is_guid": (forms.is_guid, plain.is_guid),
    "address_in_name": (
        lambda name: forms.empty_as_null(forms.leading_address(name)),
        plain.address_in_name,
    ),
    "address_in_name, compared": (
        lambda name: forms.fold_any(forms.empty_as_null(forms.leading_address(name))),
        lambda name: plain.comparable_address(plain.address_in_name(name) or "") or None,
    ),
    "conversation_id": (forms.conversation_id, plain.fold),
    "missing_route": (
        lambda name: openers.missing_route(name, NAMESPACE),
        lambda name: requesting.missing_route(name, NAMESPACE),
    ),
    "dialog_id_hash": (
        lambda value: forms.hash_dialog_id(forms.conversation_id(value)),
        hashing.dialog_id_hash,
    ),
    # For messages, an id is only lowered after it is known to be a GUID.
    "is_guid, lowered": (lambda value: forms.is_guid(F.lower(value)), plain.is_guid),
    "lowered where a GUID": (
        lambda value: F.when(forms.is_guid(value), F.lower(value)),
        lambda value: plain.fold(value) if plain.is_guid(value) else None,
    ),
}


@pytest.fixture(scope="module")
def read(spark: SparkSession) -> Read:
    """Return all texts and null as Spark reads them, by form and in order, from one job."""
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    schema = StructType([StructField("place", IntegerType()), StructField("x", StringType())])
    texts = [*ascii_texts(), *other_texts(), None]
    rows = [{"place": place, "x": one} for place, one in enumerate(texts)]
    forms = [in_spark(F.col("x")).alias(name) for name, (in_spark, _) in FORMS.items()]
    with_brokers = read_brokers(frame_of(spark, rows, schema), broker_id="x")
    found = sorted(with_brokers.select("place", "x", *forms).collect(), key=lambda row: row["place"])
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


def test_null_stays_null_in_every_form(read: Read) -> None:
    """The hash is the exception. Spark returns its seed for null, but the hash needs a conversation id."""
    assert {form: values[-1] for form, values in read.items()} == {**dict.fromkeys(FORMS), "dialog_id_hash": 42}


def test_texts_cover_true_and_false() -> None:
    """Enough texts have an id or an address, and enough have none."""
    for form in ("broker_id", "is_guid", "address_in_name"):
        answers = [bool(FORMS[form][1](one)) for one in ascii_texts()]
        assert min(answers.count(True), answers.count(False)) > 30, form
    assert {sign for one in other_texts() for sign in one} >= {
        chr(c) for c in range(128, 0x110000) if c >> 11 != 27
    }


def test_rejected_messages_have_their_reasons(spark: SparkSession) -> None:
    """One job checks each reason, and that a message is valid in any place."""
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    declared = spark_schema(MESSAGES)
    kinds = {f.name: LongType() if isinstance(f.dataType, IntegerType) else f.dataType for f in declared}
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    messages = frame_of(spark, rejection_tables()["messages"], schema)
    places = [(name, place) for name, database in PLACES.items() for place in (database, FROM_NETWORK)]
    scopes = spark.createDataFrame(places, "instance_name string, database_name string")
    well_formed = F.coalesce(forms.is_well_formed(), F.lit(False)).alias("is_well_formed")
    side = side_of(scopes, fits=True)
    reasons = add_reasons(messages, side, frozenset(), BroadcastBudget(limit=0))
    found = reasons.select("message_sequence_number", "reasons", well_formed).collect()
    assert len(found) == len(REJECTIONS)
    assert {row[0]: row[1] for row in found if row[1]} == expected_reasons()
    assert {row[0]: row[2] for row in found} == {
        place: not set(codes) - OF_ITS_PLACE for place, (_, codes) in enumerate(REJECTIONS)
    }


def test_the_last_attempt_of_a_message(spark: SparkSession) -> None:
    names = ("instance_name", "message_id", "attempt")
    rows = spark.createDataFrame(
        [row[:3] for row in ATTEMPTS], "instance_name string, message_id string, attempt int"
    )
    last_attempts = sorted(row[:3] for row in ATTEMPTS if row[3])
    assert sorted(tuple(row) for row in forms.last_rows(rows).select(*names).collect()) == last_attempts
