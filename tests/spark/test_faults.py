"""Spark finds and counts the faults in dialogs."""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from routing.errors import InputError
from routing.schemas import INPUTS, KEYS, SETTINGS
from routing.tables.cached_frames import FRAME_LIMITS, FrameLimits
from tests.frames import Tables, arrow_of, frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, SEED = 400, 20260105
BARE = {"instance_name": "hub", "database_name": "a", "conversation_id": "x", "is_initiator": True}
# These have no capitals outside ASCII, because Spark folds some of them.
_TEXTS = ("a", "A", "b, c", "", None, "%s", "x" * 99 + "\U0001f600é")
_IDS = ("id", " {} ", "{ID}", "00000000-0000-0000-0000-000000000000", "{", "", None)
_ADDRESSES = ("LOCAL", " transport/", "tcp://far:4022", "TCP://[::1]", "far", "tcp://:1", "tcp://x y", "", None)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES = (
    *(None, None, _EPOCH, _EPOCH - timedelta(microseconds=1), _EPOCH + timedelta(days=20_000, milliseconds=120)),
    datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc),
)


def _value(rng: random.Random, name: str, kind: str) -> Any:
    if kind == "array<string>":
        return rng.choice((None, [], rng.sample(_ADDRESSES, 3)))
    if kind == "timestamp":
        return rng.choice(_TIMES)
    if kind == "boolean":
        return rng.choice((True, False, None))
    if kind == "int":
        return rng.choice((1, None))
    if "address" in name:
        return rng.choice(_ADDRESSES)
    return rng.choice(_IDS if "broker" in name else _TEXTS)


def random_tables() -> Tables:
    """Return rows with all kinds of faults and many duplicate keys."""
    rng = random.Random(SEED)
    return {
        key: [{f.name: _value(rng, f.name, str(f.kind)) for f in INPUTS[key]} for _ in range(ROWS)] for key in KEYS
    }


# The driver holds few dialogs. Spark finds and counts the faults of many.
few_and_many = pytest.mark.parametrize(
    "limits", [pytest.param(FRAME_LIMITS, id="few"), pytest.param(FrameLimits(held_rows=-1), id="as if many")]
)
# Python workers find the faults of a configuration that is too large for the driver.
on_workers = pytest.param(FrameLimits(driver_rows=-1), id="on workers")


@pytest.mark.parametrize("limits", [*few_and_many.args[1], on_workers])
def test_faults_of_dialogs_are_those_of_plain_columns(spark: SparkSession, limits: FrameLimits) -> None:
    """Spark validates dialogs. Their faults are counted and reported with the others."""
    from routing.messages import validate
    from routing.messages.setting_frames import open_settings
    from routing.tables.frames import has_arrow
    from routing.tables.read_rows import columns_of
    from routing.tables.row_faults import refuse_faults

    if limits.driver_rows < 0 and not has_arrow():
        pytest.skip("before pyspark 4.0 the driver validates")
    rows = random_tables()
    tables = {key: arrow_of(rows[key], INPUTS[key]) for key in SETTINGS}
    dialogs = frame_of(spark, rows["dialogs"], INPUTS["dialogs"])
    for only in (("dialogs",), KEYS):
        tables_read = {key: table if key in only else table.slice(0, 0) for key, table in tables.items()}
        columns = {key: columns_of(table, key) for key, table in tables_read.items()}
        with pytest.raises(InputError) as plain:
            refuse_faults({**columns, "dialogs": columns_of(dialogs, "dialogs")})
        read = validate.read(
            {**tables_read, "dialogs": dialogs}, limits, partial(open_settings, tables_read, spark)
        )
        assert (read.settings is None) == (limits.driver_rows < 0)
        with pytest.raises(InputError) as found:
            validate.check(read)
        assert str(found.value) == str(plain.value)
        assert int(re.findall(r"and (\d+) more", str(found.value))[0]) > ROWS / 2


@few_and_many
def test_dialogs_are_counted_by_what_they_decide(spark: SparkSession, limits: FrameLimits) -> None:
    from routing.messages import validate
    from routing.schemas import DIALOGS

    rows = [
        {**BARE, "lifetime": _EPOCH},
        {**BARE, "is_initiator": False, "acknowledged_at": _EPOCH},
        {**BARE, "database_name": "b", "acknowledged_broker_instance": "id"},
        {**BARE, "database_name": "c", "acknowledged_at": _EPOCH, "acknowledged_broker_instance": "id"},
        {**BARE, "database_name": "d", "far_broker_instance": "id", "lifetime": _EPOCH},
        {**BARE, "database_name": "e", "far_broker_instance": "{ }"},
        {**BARE, "database_name": "f"},
    ]
    settings = {key: arrow_of([], schema) for key, schema in INPUTS.items() if key in SETTINGS}
    checked = validate.check(validate.read({**settings, "dialogs": frame_of(spark, rows, DIALOGS)}, limits))
    assert (checked.dialog_rows, checked.ending) == (5, 2)
    nothing = [rows[2], rows[-1]]
    none = validate.check(validate.read({**settings, "dialogs": frame_of(spark, nothing, DIALOGS)}, limits))
    assert (none.dialogs, none.dialog_rows, none.ending) == (None, 0, 0)
