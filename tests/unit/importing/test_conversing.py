"""Truth tables for the changes of an export to stored dialogs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.importing.history import dialog_changes
from tests.estate_rows import endpoint

AT = datetime(2026, 1, 5, tzinfo=timezone.utc)
UNIT = {("HUB", "Shop")}


def dialog(conversation: str = "c1", database: str = "Shop", *, is_initiator: bool = True, **columns: Any) -> Any:
    names = ("conversation_group_id", "far_service", "far_broker_instance", "lifetime")
    empty = dict.fromkeys((*names, "acknowledged_at", "acknowledged_broker_instance"))
    key = {"instance_name": "HUB", "database_name": database, "conversation_id": conversation}
    return endpoint(0, **key, is_initiator=is_initiator, **{**empty, **columns})


@pytest.mark.parametrize(
    ("far", "stored", "wanted"),
    [
        # The id of the export; what is stored: far id, acknowledged at, by whom; what is to be stored of it.
        ("x", ("y", None, None), ("x", None, None)),
        (None, ("y", None, None), (None, None, None)),
        # An id without a time says nothing: the export holds.
        ("x", ("y", None, "z"), ("x", None, None)),
        ("Z", ("y", AT, "z"), ("y", AT, "z")),
        ("x", ("y", AT, "z"), ("x", AT, "z")),
        (None, ("y", AT, "z"), (None, AT, "z")),
        ("x", ("y", AT, None), ("y", AT, "x")),
        (None, ("y", AT, None), ("y", AT, None)),
        (None, (None, None, None), (None, None, None)),
        # Only A to Z are folded: this is the Kelvin sign.
        ("\u212a", ("y", AT, "k"), ("\u212a", AT, "k")),
    ],
)
def test_changes_of_an_acknowledgement(far: str | None, stored: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    names = ("far_broker_instance", "acknowledged_at", "acknowledged_broker_instance")
    new, old = dialog(far_broker_instance=far), dialog("C1", **dict(zip(names, stored, strict=True)))
    changes = dialog_changes([new], [old], UNIT)
    if wanted == stored:
        assert (changes.put, changes.remove, changes.counts) == ([], [], Counter(unchanged=1))
    else:
        assert changes.put == [dialog(**dict(zip(names, wanted, strict=True)))]
        assert (changes.remove, changes.counts) == ([], Counter(changed=1))


def test_added_and_removed_dialogs() -> None:
    """The two endpoints of a conversation are separate dialogs. Only covered databases lose dialogs."""
    gone, other = dialog("c2"), dialog("c3", "Other")
    target = dialog(is_initiator=False)
    changes = dialog_changes([dialog(), target], [dialog(), gone, other], UNIT)
    assert (changes.put, changes.remove) == ([target], [gone])
    assert changes.counts == Counter(unchanged=1, added=1, removed=1)


@pytest.mark.parametrize("name", ["conversation_group_id", "far_service", "lifetime"])
def test_every_column_counts(name: str) -> None:
    columns: dict[str, Any] = {name: AT if name == "lifetime" else "new"}
    assert dialog_changes([dialog(**columns)], [dialog()], UNIT).put == [dialog(**columns)]
    assert dialog_changes([dialog()], [dialog(**columns)], UNIT).put == [dialog()]
    assert not dialog_changes([dialog(**columns)], [dialog(**columns)], UNIT)
